package todo_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"centurion"
	"centurion/workspace/todo"
)

const messy = "\ufeff# T\r\n\r\n* [X]\tA1: title\t@worker \r\n\t* note: n\r\n\r\n```\r\n* [ ] A1\r\n```\r\n* [ ] A2\r\n* [?] A3 odd"

func TestEditsKeepTheRest(t *testing.T) {
	for name, tt := range map[string]struct {
		edit func(d *todo.Doc) error
		old  string // what of messy is replaced
		new  string
	}{
		"mark":            {func(d *todo.Doc) error { return d.SetMark("A2", todo.Done) }, "[ ] A2", "[x] A2"},
		"mark kept":       {func(d *todo.Doc) error { return d.SetMark("A1", todo.Done) }, "", ""},
		"mark mended":     {func(d *todo.Doc) error { return d.SetMark("A3", todo.Open) }, "[?]", "[ ]"},
		"title":           {func(d *todo.Doc) error { return d.SetTitle("A1", " new\nT9 `x` ") }, "title\t@", "new T9 `x`\t@"},
		"title at end":    {func(d *todo.Doc) error { return d.SetTitle("A3", "even") }, "odd", "even"},
		"no UTF-8":        {func(d *todo.Doc) error { return d.SetTitle("A3", "a\xffb") }, "odd", "a\ufffdb"},
		"title for none":  {func(d *todo.Doc) error { return d.SetTitle("A2", "x") }, "A2\r", "A2 x\r"},
		"note":            {func(d *todo.Doc) error { return d.AddNote("A1", "a\r\nb") }, "note: n\r\n", "note: n\r\n\t* note: a b\r\n"},
		"note at the end": {func(d *todo.Doc) error { return d.AddNote("A3", "x") }, "odd", "odd\r\n\t* note: x"},
		"checks":          {func(d *todo.Doc) error { return d.SetChecks("A1", []string{"a `b`", "c"}, "regression") }, "note: n\r\n", "note: n\r\n\t* verify: `` a `b` ``\r\n\t* verify: `c`\r\n\t* proof: regression\r\n"},
		"no checks":       {func(d *todo.Doc) error { return d.SetChecks("A1", nil, "") }, "", ""},
		"own checks":      {func(d *todo.Doc) error { return d.SetChecks("", []string{"c"}, "") }, "# T\r\n", "# T\r\n- verify: `c`\r\n"},
		"add": {func(d *todo.Doc) error {
			return add(d, "", todo.Item{Title: "x", Agent: "worker", After: []string{"A1"}})
		},
			"odd", "odd\r\n* [ ] T1 x @worker\r\n\t* after: A1"},
		"add section": {func(d *todo.Doc) error { return add(d, "New one", todo.Item{ID: "B1", Title: "x"}) },
			"odd", "odd\r\n\r\n## New one\r\n* [ ] B1 x"},
		"add below": {func(d *todo.Doc) error { return add(d, "", todo.Item{Title: "x", Parent: "A1"}) },
			"note: n\r\n", "note: n\r\n\t* [ ] T1 x\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d := parse(t, messy)
			if err := tt.edit(d); err != nil {
				t.Fatal(err)
			}
			if want := strings.Replace(messy, tt.old, tt.new, 1); string(d.Bytes()) != want {
				t.Errorf("got  %q\nwant %q", d.Bytes(), want)
			}
		})
	}
}

// An item that is cancelled stays so, and holds nobody up, although it comes after one that does not exist; and after: can be taken out.
func TestLostAfter(t *testing.T) {
	const plan = "- [-] T1 One\n  - after: T8\n- [ ] T2 Two\n  - after: T1\n  * after: T9, T8\n  - note: after: T9\n"
	d := parse(t, plan)
	if got := d.Status("T1"); got != todo.Cancelled {
		t.Errorf("T1 is %s", got)
	}
	if got := strings.Join(d.Dangling(), ", "); got != "T1 after T8, T2 after T9, T2 after T8" {
		t.Errorf("dangling: %s", got)
	}
	if err := d.ClearAfter("T2"); err != nil {
		t.Fatal(err)
	}
	if want := "- [-] T1 One\n  - after: T8\n- [ ] T2 Two\n  - note: after: T9\n"; string(d.Bytes()) != want {
		t.Errorf("got %q", d.Bytes())
	}
	if d := parse(t, strings.Replace(plan, ", T8", "", 1)); len(d.Unmet("T2")) != 1 {
		t.Errorf("T2 waits for %v", d.Unmet("T2"))
	}
}

func add(d *todo.Doc, section string, it todo.Item) error {
	_, err := d.Add(section, it)
	return err
}

func TestAddPlaces(t *testing.T) {
	item := todo.Item{Title: "new"}
	for name, tt := range map[string]struct{ text, section, want string }{
		"empty":              {"", "", "- [ ] T1 new\n"},
		"empty with section": {"", "M1", "## M1\n- [ ] T1 new\n"},
		"only a title":       {"# T\n", "", "# T\n\n- [ ] T1 new\n"},
		"below checks":       {"# T\n- verify: x\n", "", "# T\n- verify: x\n\n- [ ] T1 new\n"},
		"first section":      {"## A\n1. [ ] T4 x\n   - note: n\n\n\n## B\n", "A", "## A\n1. [ ] T4 x\n   - note: n\n2. [ ] T5 new\n\n\n## B\n"},
		"last section":       {"## A\n- [ ] T1 x\n\n## B\n", "", "## A\n- [ ] T1 x\n\n## B\n- [ ] T2 new\n"},
		"first word":         {"## M1 Core\n* [ ] T1 x\n## M2: More\n", "m1", "## M1 Core\n* [ ] T1 x\n* [ ] T2 new\n## M2: More\n"},
		"first word twice":   {"## M a\n\n## M b\n", "M", "## M a\n\n## M b\n\n## M\n- [ ] T1 new\n"},
		"waited for":         {"- [ ] T1 x\n  - after: T7\n", "", "- [ ] T1 x\n  - after: T7\n- [ ] T8 new\n"},
		"behind text":        {"## A\ntext\n", "A", "## A\ntext\n\n- [ ] T1 new\n"},
		"behind a fence":     {"## A\n```\n## B\n```\n", "A", "## A\n```\n## B\n```\n\n- [ ] T1 new\n"},
		"indented list":      {"- Group\n  - [ ] T1 x\n", "", "- Group\n  - [ ] T1 x\n  - [ ] T2 new\n"},
		"the last number":    {"999999999. [ ] T1 x\n", "", "999999999. [ ] T1 x\n999999999. [ ] T2 new\n"},
		"the next number":    {"9) [ ] T1 x\n", "", "9) [ ] T1 x\n10) [ ] T2 new\n"},
		"numbers, then not":  {"## A\n1. [ ] T1 x\n\n## B\n* [ ] T2 y\n", "A", "## A\n1. [ ] T1 x\n2. [ ] T3 new\n\n## B\n* [ ] T2 y\n"},
		"behind numbers":     {"## A\n  1) [ ] T1 x\n## C\n", "C", "## A\n  1) [ ] T1 x\n## C\n- [ ] T2 new\n"},
		"a section after":    {"  3. [ ] T1 x\n", "New", "  3. [ ] T1 x\n\n## New\n- [ ] T2 new\n"},
		"behind sub-items":   {"- [ ] T1 x\n  - [ ] T2 y\n", "", "- [ ] T1 x\n  - [ ] T2 y\n- [ ] T3 new\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d := parse(t, tt.text)
			id, err := d.Add(tt.section, item)
			if err != nil {
				t.Fatal(err)
			}
			if string(d.Bytes()) != tt.want {
				t.Errorf("got  %q\nwant %q", d.Bytes(), tt.want)
			}
			if it, ok := d.Item(id); !ok || it.Parent != "" {
				t.Errorf("item %q is %+v", id, it)
			}
		})
	}
}

// Where a new line goes and how it begins follows what stands around it.
func TestEditsFollowTheirSurroundings(t *testing.T) {
	note := func(id string) func(d *todo.Doc) error {
		return func(d *todo.Doc) error { return d.AddNote(id, "n") }
	}
	below := func(d *todo.Doc) error { return add(d, "", todo.Item{Title: "new", Parent: "T1"}) }
	for name, tt := range map[string]struct {
		edit      func(d *todo.Doc) error
		old, want string
	}{
		"a title where there was only an agent": {func(d *todo.Doc) error { return d.SetTitle("T1", "x") }, "- [ ] T1 @worker\n", "- [ ] T1 x @worker\n"},
		"waits for what it waited for":          {func(d *todo.Doc) error { return d.AddAfter("T1", "T2") }, "- [ ] T1 a\n  - after: T2\n- [ ] T2 b\n", "- [ ] T1 a\n  - after: T2\n- [ ] T2 b\n"},
		"waits for one more":                    {func(d *todo.Doc) error { return d.AddAfter("T1", "T2", "T3") }, "- [ ] T1 a\n  - after: T2\n- [ ] T2 b\n- [ ] T3 c\n", "- [ ] T1 a\n  - after: T2\n  - after: T3\n- [ ] T2 b\n- [ ] T3 c\n"},
		"note of a numbered item":               {note("T1"), "1. [ ] T1 a\n", "1. [ ] T1 a\n   - note: n\n"},
		"note as another item's":                {note("T2"), "- [ ] T1 a\n  * note: m\n- [ ] T2 b\n", "- [ ] T1 a\n  * note: m\n- [ ] T2 b\n  * note: n\n"},
		"note as its own":                       {note("T2"), "- [ ] T1 a\n  * note: m\n- [ ] T2 b\n    + note: o\n", "- [ ] T1 a\n  * note: m\n- [ ] T2 b\n    + note: o\n    + note: n\n"},
		"note without a bullet":                 {note("T1"), "- [ ] T1 a\n  size: big\n", "- [ ] T1 a\n  size: big\n  - note: n\n"},
		"note below another's wrapped line":     {note("T2"), "- [ ] T1 a\n  - [ ] T2 b\n", "- [ ] T1 a\n  - [ ] T2 b\n    - note: n\n"},
		"note where tabs are used":              {note("T2"), "- [ ] T1 a\n\t- [ ] T2 b\n", "- [ ] T1 a\n\t- [ ] T2 b\n\t\t- note: n\n"},
		"note behind a fence":                   {note("T1"), "- [ ] T1 a\n  ```\n  - [ ] F\n  ```\n- [ ] T2 b\n", "- [ ] T1 a\n  ```\n  - [ ] F\n  ```\n  - note: n\n- [ ] T2 b\n"},
		"note behind a fence at the end":        {note("T1"), "- [ ] T1 a\n  ```\n  x\n  ```", "- [ ] T1 a\n  ```\n  x\n  ```\n  - note: n"},
		"note behind a wrapped title":           {note("T1"), "- [ ] T1 a\nwrapped\n- [ ] T2 b\n", "- [ ] T1 a\nwrapped\n  - note: n\n- [ ] T2 b\n"},
		"below nested items":                    {below, "- [ ] T1 a\n  - [ ] T2 b\n    - [ ] T3 c\n      - note: m\n- [ ] T4 d\n", "- [ ] T1 a\n  - [ ] T2 b\n    - [ ] T3 c\n      - note: m\n  - [ ] T5 new\n- [ ] T4 d\n"},
		"below others with their bullet":        {below, "- [ ] T1 a\n    1) [ ] T2 b\n", "- [ ] T1 a\n    1) [ ] T2 b\n    2) [ ] T3 new\n"},
		"all that an item can have": {func(d *todo.Doc) error {
			return add(d, "", todo.Item{Title: "x", Agent: "@worker", Files: []string{"a", "b/**"}, Race: []string{"alice", "bob"}})
		}, "", "- [ ] T1 x @worker\n  - files: a, b/**\n  - race: alice, bob\n"},
		"a section that is written as a heading": {func(d *todo.Doc) error { return add(d, "## S", todo.Item{Title: "x"}) }, "## S\n- [ ] T1 a\n\n## T\n", "## S\n- [ ] T1 a\n- [ ] T2 x\n\n## T\n"},
		"a section is none of the title's":       {func(d *todo.Doc) error { return add(d, "S", todo.Item{Title: "x"}) }, "# S\n\n## S two\n", "# S\n\n## S two\n- [ ] T1 x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d := parse(t, tt.old)
			if err := tt.edit(d); err != nil || string(d.Bytes()) != tt.want {
				t.Errorf("%v\ngot  %q\nwant %q", err, d.Bytes(), tt.want)
			}
		})
	}
}

func TestEditErrors(t *testing.T) {
	d := parse(t, "- [ ] T1 a\n- [ ] T2 b\n- [ ] D1 c\n- [ ] D1 d\n")
	before := bytes.Clone(d.Bytes())
	for name, tt := range map[string]struct {
		err  error
		kind centurion.Kind
		says string
	}{
		"nearest":           {d.SetMark("t1", todo.Done), centurion.KindNotFound, "did you mean T1?"},
		"none near":         {d.AddNote("nothing", "x"), centurion.KindNotFound, "T1, T2, D1"},
		"no id":             {d.SetTitle("", "x"), centurion.KindNotFound, ""},
		"what is not there": {d.SetMark("nothing", todo.Done), centurion.KindNotFound, `there is no item "nothing"`},
		"after itself":      {d.AddAfter("T1", "T1"), centurion.KindUsage, "T1 cannot wait for T1"},
		"after nothing":     {d.AddAfter("T1", "T9"), centurion.KindUsage, "T1 cannot wait for T9"},
		"what there is":     {d.AddAfter("T1", "T9"), centurion.KindUsage, "the items are T1, T2, D1"},
		"add race":          {add(d, "", todo.Item{Title: "x", Race: []string{"@worker", "a b"}}), centurion.KindUsage, `race: "a b" is no name of an agent`},
		"add proof":         {add(d, "", todo.Item{Title: "x", Proof: "full"}), centurion.KindUsage, `proof: "full" is not known`},
		"add files":         {add(d, "", todo.Item{Title: "x", Files: []string{"a`b"}}), centurion.KindUsage, "without backticks"},
		"add note":          {add(d, "", todo.Item{Title: "x", Notes: []string{" a"}}), centurion.KindUsage, "one line"},
		"many":              {parse(t, strings.Repeat("- [ ] a\n", 3)+"- [ ] A1\n- [ ] A2\n- [ ] A3\n- [ ] A4\n- [ ] A5\n- [ ] A6\n- [ ] A7\n- [ ] A8\n- [ ] A9\n- [ ] B1\n- [ ] B2\n- [ ] B3\n").SetMark("nothing", todo.Done), centurion.KindNotFound, "A9, B1 and 2 more"},
		"ten":               {parse(t, "- [ ] A1\n- [ ] A2\n- [ ] A3\n- [ ] A4\n- [ ] A5\n- [ ] A6\n- [ ] A7\n- [ ] A8\n- [ ] A9\n- [ ] B1\n").SetMark("nothing", todo.Done), centurion.KindNotFound, "A9, B1"},
		"none at all":       {parse(t, "").SetMark("T1", todo.Done), centurion.KindNotFound, "the plan has no items"},
		"twice":             {d.SetMark("D1", todo.Done), centurion.KindConflict, "lines 3 and 4give one of them another id"},
		"mark":              {d.SetMark("T1", 'q'), centurion.KindUsage, "no mark"},
		"title":             {d.SetTitle("T1", " \n"), centurion.KindUsage, "empty"},
		"note":              {d.AddNote("T1", ""), centurion.KindUsage, "empty"},
		"add title":         {add(d, "", todo.Item{}), centurion.KindUsage, "title"},
		"add id":            {add(d, "", todo.Item{Title: "x", ID: "9 x"}), centurion.KindUsage, "cannot be an id"},
		"add known id":      {add(d, "", todo.Item{Title: "x", ID: "T2"}), centurion.KindConflict, "leave the id out to have one assigned"},
		"add mark":          {add(d, "", todo.Item{Title: "x", Mark: 'q'}), centurion.KindUsage, "no mark"},
		"add agent":         {add(d, "", todo.Item{Title: "x", Agent: "a b"}), centurion.KindUsage, "agent"},
		"add after":         {add(d, "", todo.Item{Title: "x", After: []string{"T1,T2"}}), centurion.KindUsage, "no id"},
		"add after a word":  {add(d, "", todo.Item{Title: "x", After: []string{"first"}}), centurion.KindUsage, "no id"},
		"add verify":        {add(d, "", todo.Item{Title: "x", Verify: []string{"a\nb"}}), centurion.KindUsage, "one line"},
		"add to nothing":    {add(d, "", todo.Item{Title: "x", Parent: "T8"}), centurion.KindNotFound, "T1"},
		"add heading":       {add(d, "x #", todo.Item{Title: "x"}), centurion.KindUsage, "heading"},
	} {
		if centurion.KindOf(tt.err) != tt.kind || !strings.Contains(fmt.Sprint(tt.err, centurion.HintOf(tt.err)), tt.says) {
			t.Errorf("%s: %v (%s), hint %q", name, tt.err, centurion.KindOf(tt.err), centurion.HintOf(tt.err))
		}
	}
	if !bytes.Equal(before, d.Bytes()) {
		t.Errorf("refused edits changed the text: %q", d.Bytes())
	}
}

func TestAssignIDs(t *testing.T) {
	d := parse(t, "- [ ] a\n- [x] T3 b\n- [ ]\n  - [ ] \n  - [~]\t@worker\n- [-] OAuth flow\r\n- [ ] z")
	if !d.AssignIDs() {
		t.Fatal("nothing assigned")
	}
	want := "- [ ] T4 a\n- [x] T3 b\n- [ ] T5\n  - [ ] T6\n  - [~]\tT7 @worker\n- [-] T8 OAuth flow\r\n- [ ] T9 z"
	if string(d.Bytes()) != want {
		t.Errorf("got  %q\nwant %q", d.Bytes(), want)
	}
	if d.AssignIDs() || string(d.Bytes()) != want {
		t.Errorf("the second time changed the text: %q", d.Bytes())
	}
	if it, _ := d.Item("T6"); it.Parent != "T5" {
		t.Errorf("T6 is %+v", it)
	}
}

// An id that somebody has had is not given out again, also not after another edit; that of an item which has lost its box is kept for it.
func TestReservedIDs(t *testing.T) {
	d := parse(t, "- [ ] T1 a\n- [ ] b\n")
	d.Reserve("T4", "X9", "M-7")
	if err := d.SetMark("T1", todo.Done); err != nil {
		t.Fatal(err)
	}
	if id, err := d.Add("", todo.Item{Title: "c"}); err != nil || id != "T5" {
		t.Errorf("added as %s (%v)", id, err)
	}
	if d.AssignIDs(); string(d.Bytes()) != "- [x] T1 a\n- [ ] T6 b\n- [ ] T5 c\n" {
		t.Errorf("%q", d.Bytes())
	}
	if _, err := d.Add("", todo.Item{ID: "T4", Title: "again"}); err != nil {
		t.Error(err) // somebody means it
	}
	lost := parse(t, "- [ ] T1 a\n* T2 b\n- [ ] c\n")
	if lost.AssignIDs(); string(lost.Bytes()) != "- [ ] T1 a\n* T2 b\n- [ ] T3 c\n" {
		t.Errorf("%q", lost.Bytes())
	}
}

// lineGen makes lines that look like a plan, more or less.
func lineGen() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		indent := rapid.SampledFrom([]string{"", "", "  ", "    ", "\t", "   "}).Draw(t, "indent")
		bullet := rapid.SampledFrom([]string{"- ", "* ", "+ ", "1. ", "", "-\t"}).Draw(t, "bullet")
		body := rapid.OneOf(
			rapid.Custom(func(t *rapid.T) string {
				return rapid.SampledFrom([]string{"[ ] ", "[x] ", "[X] ", "[~]\t", "[-] ", "[!] ", "[?] ", "[] "}).Draw(t, "mark") +
					rapid.StringMatching(`(T[0-9]{1,2}:? )?[a-z T1@]{0,12}`).Draw(t, "title")
			}),
			rapid.SampledFrom([]string{"after: T1, T2", "after: T3", "verify: `x`", "note: n", "files: a, b", "", "text", "T3 x", "[~]T3 x", "[x T4: y", "```", "~~~", "# H", "## S", "## M1 x"}),
			rapid.String(),
		).Draw(t, "body")
		return indent + bullet + strings.ReplaceAll(body, "\n", " ")
	})
}

func docGen() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		eol := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "eol")
		text := strings.Join(rapid.SliceOfN(lineGen(), 0, 25).Draw(t, "lines"), eol)
		return text + rapid.SampledFrom([]string{"", eol}).Draw(t, "end")
	})
}

// A mark is one byte; everything else is as it was, and what was asked for is read back.
func TestSetMarkProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, err := todo.Parse([]byte(docGen().Draw(t, "doc")))
		if err != nil {
			t.Skip()
		}
		d.AssignIDs()
		for _, it := range d.Items() {
			before := bytes.Clone(d.Bytes())
			mark := rapid.SampledFrom([]todo.Mark{todo.Open, todo.Running, todo.Done, todo.Cancelled, todo.Blocked}).Draw(t, "mark")
			odd := slices.ContainsFunc(d.Problems(), func(p todo.Problem) bool { return p.Line == it.Line && strings.Contains(p.Msg, "is no mark") })
			if err := d.SetMark(it.ID, mark); err != nil {
				if centurion.KindOf(err) != centurion.KindConflict {
					t.Fatalf("SetMark(%q): %v", it.ID, err)
				}
				continue
			}
			after := d.Bytes()
			if got, _ := d.Item(it.ID); got.Mark != mark {
				t.Fatalf("mark of %s is %v, want %v", it.ID, got.Mark, mark)
			}
			if odd {
				continue
			}
			diff := 0
			for i := range min(len(before), len(after)) {
				if before[i] != after[i] {
					diff++
				}
			}
			want := 1
			if it.Mark == mark {
				want = 0
			}
			if len(before) != len(after) || diff != want {
				t.Fatalf("%d bytes differ, want %d:\n%q\n%q", diff, want, before, after)
			}
		}
	})
}

// What is added is read back as it was given, and the lines that were there still are.
func TestAddProperty(t *testing.T) {
	word := rapid.StringMatching(`[a-zA-Z0-9 .:#*\[\]\x60_@-]{0,12}[a-z]`)
	command := rapid.StringMatching(`[a-z\x60$&|'" ]{0,8}[a-z\x60]`).Filter(func(s string) bool { return s == strings.TrimSpace(s) })
	rapid.Check(t, func(t *rapid.T) {
		text := docGen().Draw(t, "doc")
		d, err := todo.Parse([]byte(text))
		if err != nil {
			t.Skip()
		}
		it := todo.Item{
			Title:  strings.TrimSpace(word.Draw(t, "title")),
			Agent:  rapid.SampledFrom([]string{"worker", "my-agent"}).Draw(t, "agent"),
			Mark:   todo.Open,
			After:  rapid.SliceOfN(rapid.SampledFrom([]string{"A1", "T1"}), 0, 2).Draw(t, "after"),
			Files:  rapid.SliceOfN(rapid.StringMatching(`[a-z{},*/]{0,6}[a-z]`), 0, 3).Draw(t, "files"),
			Verify: rapid.SliceOfN(command, 0, 2).Draw(t, "verify"),
			Notes:  rapid.SliceOfN(rapid.StringMatching(`[a-z\x60:#]{1,6}`), 0, 2).Draw(t, "notes"),
			Proof:  rapid.SampledFrom([]string{"", todo.ProofRegression}).Draw(t, "proof"),
		}
		section := rapid.SampledFrom([]string{"", "S", "M1", "new one"}).Draw(t, "section")
		id, err := d.Add(section, it)
		if err != nil {
			t.Fatalf("Add: %v", err)
		}
		it.ID = id
		got, _ := d.Item(id)
		if section == "new one" && got.Section != section {
			t.Errorf("section %q", got.Section)
		}
		it.Section, it.Line = got.Section, got.Line
		if diff := cmp.Diff(it, got, cmp.Transformer("empty", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
			t.Fatalf("%s\nin %q", diff, d.Bytes())
		}
		kept(t, text, d.Bytes())
	})
}

// kept fails if a line of before is not in after, in its order.
func kept(t interface{ Fatalf(string, ...any) }, before string, after []byte) {
	rest := string(after)
	for line := range strings.Lines(before) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		_, tail, ok := strings.Cut(rest, line)
		if !ok {
			t.Fatalf("line %q of\n%q\nis not in\n%q", line, before, after)
		}
		rest = tail
	}
}

// ORCH-89
func FuzzParse(f *testing.F) {
	for _, s := range []string{plan, messy, "", "- [ ] T1 a\n  - after: T1\n", "- [ ] T1 a\n  - race: a, b\n  - verify: x\n", "- [ ] T1\n  race: a,`b,c`,{d,e},f,g\n", "1. [~] x\n\t- [x] y", "```\n```\n", "# a\n## b\n- [/] T1\n- [ ] T1 @x\r\n"} {
		f.Add([]byte(s), "T1", "note `x`\nmore")
	}
	f.Fuzz(func(t *testing.T, b []byte, id, text string) {
		d, err := todo.Parse(b)
		if err != nil {
			if centurion.KindOf(err) != centurion.KindUsage {
				t.Fatalf("kind of %v", err)
			}
			return
		}
		if !bytes.Equal(d.Bytes(), b) {
			t.Fatalf("round trip: %q became %q", b, d.Bytes())
		}
		if !utf8.Valid(b) {
			t.Fatal("accepted what is not UTF-8")
		}
		c := d.Counts()
		leaves := 0
		for _, it := range d.Items() {
			if !it.Group {
				leaves++
			}
		}
		if c.Total() != leaves || len(d.Runnable()) > c.Open {
			t.Fatalf("counts %+v of %d leaves, %d runnable", c, leaves, len(d.Runnable()))
		}
		d.AssignIDs()
		items := len(d.Items())
		for _, it := range d.Items() {
			if it.ID == "" {
				t.Fatalf("an item without an id is left in %q", d.Bytes())
			}
		}
		for _, edit := range []func() error{
			func() error { return d.SetMark(id, todo.Done) },
			func() error { return d.AddNote(id, text) },
			func() error { return d.SetTitle(id, text) },
		} {
			if err := edit(); centurion.KindOf(err) == centurion.KindInternal {
				t.Fatal(err)
			}
		}
		if len(d.Items()) != items {
			t.Fatalf("edits changed the number of items from %d to %d: %q", items, len(d.Items()), d.Bytes())
		}
		if _, err := d.Add(text, todo.Item{Title: id}); centurion.KindOf(err) == centurion.KindInternal {
			t.Fatal(err)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	text := []byte(strings.Repeat(strings.ReplaceAll(plan, "T", "X"), 10))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := todo.Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}

// Checks are replaced where they stood, with the proof line, and nothing else is.
func TestSetChecks(t *testing.T) {
	const plan = "# P\n- verify: `all`\n\ntext\n- [ ] T1 One\n  - note: n\n  - verify: `true`\n  - files: a\n  - proof: regression\n- [ ] T2 Two\n  - verify: `two`"
	for name, tt := range map[string]struct {
		id, proof string
		verify    []string
		want      string
	}{
		"one":       {"T1", "", []string{"a", "b"}, strings.NewReplacer("  - verify: `true`\n", "  - verify: `a`\n  - verify: `b`\n", "  - proof: regression\n", "").Replace(plan)},
		"the last":  {"T2", "regression", []string{"a"}, strings.Replace(plan, "`two`", "`a`\n  - proof: regression\n", 1)},
		"removed":   {"T1", "regression", nil, strings.NewReplacer("  - verify: `true`\n", "  - proof: regression\n", "  - proof: regression\n", "").Replace(plan)},
		"the plan":  {"", "", []string{"x"}, strings.Replace(plan, "`all`", "`x`", 1)},
		"its check": {"", "", nil, strings.Replace(plan, "- verify: `all`\n", "", 1)},
	} {
		d := parse(t, plan)
		if err := d.SetChecks(tt.id, tt.verify, tt.proof); err != nil {
			t.Fatal(err)
		}
		if got := string(d.Bytes()); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, tt.want)
		}
	}
	if err := parse(t, plan).SetChecks("T9", nil, ""); centurion.KindOf(err) != centurion.KindNotFound {
		t.Error(err)
	}
}
