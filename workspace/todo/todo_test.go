package todo_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"centurion"
	"centurion/guard/cputime"
	"centurion/workspace/todo"
)

const plan = `# Rate limits for the API
- verify: ` + "`go build ./... && go vet ./...`" + `

## M1 Core
- [ ] T1 Parse limits from the config file @worker
  - files: config/**
  - verify: ` + "`go test ./config/... -run Limits`" + `
- [ ] T2 Enforce them @worker
  - after: T1
  - files: limit/**
  - verify: ` + "`go test ./limit/...`" + `
- [ ] T3 Check the whole @reviewer
  - after: T1, T2
`

func parse(t testing.TB, text string) *todo.Doc {
	t.Helper()
	d, err := todo.Parse([]byte(text))
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	if string(d.Bytes()) != text {
		t.Fatalf("Bytes = %q, want %q", d.Bytes(), text)
	}
	return d
}

func ids(items []todo.Item) string {
	var out []string
	for _, it := range items {
		out = append(out, it.ID)
	}
	return strings.Join(out, " ")
}

// ORCH-89
func TestParseExample(t *testing.T) {
	d := parse(t, plan)
	if d.Title() != "Rate limits for the API" {
		t.Errorf("title %q", d.Title())
	}
	if diff := cmp.Diff([]string{"go build ./... && go vet ./..."}, d.Checks()); diff != "" {
		t.Error(diff)
	}
	want := []todo.Item{
		{ID: "T1", Title: "Parse limits from the config file", Agent: "worker", Mark: todo.Open, Section: "M1 Core", Line: 5,
			Files: []string{"config/**"}, Verify: []string{"go test ./config/... -run Limits"}},
		{ID: "T2", Title: "Enforce them", Agent: "worker", Mark: todo.Open, Section: "M1 Core", Line: 8,
			After: []string{"T1"}, Files: []string{"limit/**"}, Verify: []string{"go test ./limit/..."}},
		{ID: "T3", Title: "Check the whole", Agent: "reviewer", Mark: todo.Open, Section: "M1 Core", Line: 12,
			After: []string{"T1", "T2"}},
	}
	if diff := cmp.Diff(want, d.Items()); diff != "" {
		t.Error(diff)
	}
	if got := ids(d.Runnable()); got != "T1" {
		t.Errorf("runnable %q", got)
	}
	if len(d.Problems()) != 0 {
		t.Errorf("problems %v", d.Problems())
	}
}

// ORCH-89
func TestItemLines(t *testing.T) {
	for _, tt := range []struct {
		text string
		want string // id|title|agent|mark, empty for no item
	}{
		{"- [ ] T1 a", "T1|a||open"},
		{"* [~] T1: a b @worker", "T1|a b|worker|running"},
		{"+ [X] S1.1.1 x  ", "S1.1.1|x||done"},
		{"12. [-] M2-a x", "M2-a|x||cancelled"},
		{"3) [!] T1 x", "T1|x||blocked"},
		{"\t-\t[x]\tT1\tx\ty", "T1|x\ty||done"},
		{"- [ ] T1", "T1|||open"},
		{"- [ ]", "|||open"},
		{"- [ ] @worker", "||worker|open"},
		{"- [ ] T1 @worker", "T1||worker|open"},
		{"- [ ] Fix `a[0]` and [link](u) – ünïcode 名 @ end", "|Fix `a[0]` and [link](u) – ünïcode 名 @ end||open"},
		{"- [ ] mail a@b.c", "|mail a@b.c||open"},
		{"- [ ] T1. dot", "|T1. dot||open"},
		{"- [ ] 1T x", "|1T x||open"},
		{"- [ ] T x", "|T x||open"},
		// What is meant as a mark and is none stays an item, blocked.
		{"- [/] T1 x", "T1|x||blocked"},
		{"- [] T1 x", "T1|x||blocked"},
		{"- [ x] T1 x", "T1|x||blocked"},
		{"- [✓] T1 x", "T1|x||blocked"},
		{"- [x ] T1 x", "T1|x||blocked"},
		{"- [ X] T1 x", "T1|x||blocked"},
		{"- [   ] T1 x", "T1|x||blocked"},
		{"- [    ] T1 x", "T1|x||blocked"},
		{"- [0] footnote", ""},
		{"- x] T1 no box", ""},
		{"- [9] footnote", ""},
		{"- [^] footnote", ""},
		{"- [[] text", ""},
		{"- [ ] A;1 x", "|A;1 x||open"},
		{"- [ ] T1 a @my_agent-2.x", "T1|a|my_agent-2.x|open"},
		{"- [ ] T1 a @2x", "T1|a @2x||open"},
		{"- [ ] T1 a @b;c", "T1|a @b;c||open"},
		{"123456789) [ ] T1 x", "T1|x||open"},
		{". [ ] T1 x", ""},
		{"1: [ ] T1 x", ""},
		{"-[ ] T1", ""},
		{"- [ ]T1", ""},
		{"[ ] T1", ""},
		{"- [a](link)", ""},
		{"- [1] footnote", ""},
		{"- [WIP] text", ""},
		{"> - [ ] T1 quoted", ""},
		{"1234567890. [ ] T1", ""},
		{"# [ ] T1", ""},
	} {
		for _, eol := range []string{"", "\n", "\r\n"} {
			items := parse(t, "\ufeff"+tt.text+eol).Items()
			got := ""
			if len(items) == 1 {
				it := items[0]
				got = fmt.Sprintf("%s|%s|%s|%s", it.ID, it.Title, it.Agent, it.Mark)
			}
			if got != tt.want {
				t.Errorf("%q: got %q, want %q", tt.text+eol, got, tt.want)
			}
		}
	}
}

func TestAttributes(t *testing.T) {
	d := parse(t, strings.Join([]string{
		"- [ ] T1 first",
		"  After: T2,T3, `T4`",
		"  - files: a/{b,{c,d},e}/**,, `d, e.go`, ü ö.txt,",
		"\t* verify: go test ./... | tee x",
		"  - verify: `` echo `date` ``",
		"  - race: @alice, bob",
		"  - proof: `regression`",
		"  - note: see `x`",
		"  - note: two",
		"  - size: big",
		"  a09_b-c:\tx",
		"  2x: no attribute",
		"  a;b: no attribute",
		"  - http://example.com is no attribute",
		"  - two words: neither",
		"",
		"    - verify: after a blank line",
		"- [ ] T2 x",
		"  - after: none, -",
		"- [ ] T3 x",
		"- [ ] T4 x",
	}, "\n"))
	want := todo.Item{
		ID: "T1", Title: "first", Mark: todo.Open, Line: 1,
		After:  []string{"T2", "T3", "T4"},
		Files:  []string{"a/{b,{c,d},e}/**", "d, e.go", "ü ö.txt"},
		Verify: []string{"go test ./... | tee x", "echo `date`", "after a blank line"},
		Race:   []string{"alice", "bob"},
		Proof:  "regression",
		Notes:  []string{"see `x`", "two"},
		Attrs:  map[string][]string{"size": {"big"}, "a09_b-c": {"x"}},
	}
	got, _ := d.Item("T1")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(d.Problems()) != 0 {
		t.Errorf("problems %v", d.Problems())
	}
}

// What belongs to which item, and what is text.
func TestStructure(t *testing.T) {
	d := parse(t, strings.Join([]string{
		"# Title ##",
		"Some text.",
		"  verify: `one`",
		"- verify: two",
		"- note: of the mission",
		"```",
		"- [ ] F1 fenced",
		"- verify: fenced",
		"```",
		"## A #",
		"- [ ] T1 group @x",
		"  - [ ] T1.1 sub",
		"    - verify: deep",
		"    - [ ] T1.1.1 leaf",
		"  - verify: `of the group`",
		"  - [x] T1.2 sub",
		"      ~~~ go",
		"      - [ ] F2 fenced",
		"   ```",
		"      ~~~~",
		"- [ ] T2 wrapped",
		"  title",
		"  - note: n",
		"",
		"A paragraph ends the list.",
		"  - verify: of nobody",
		"#hash",
		"####### seven",
		"### B",
		"- group",
		"  - [ ] T3 x",
		"    - [ ] T3.1 x",
		"\t- [ ] T3.2 as deep as four spaces",
		"# Second",
		"- verify: not the title's",
		"- [ ] T4 x",
		"- a bullet beside it",
		"  - verify: of the bullet",
	}, "\n"))
	if diff := cmp.Diff([]string{"one", "two"}, d.Checks()); diff != "" {
		t.Error(diff)
	}
	var got []string
	for _, it := range d.Items() {
		got = append(got, fmt.Sprintf("%s<%s %s %v %v", it.ID, it.Parent, it.Section, it.Group, it.Verify))
	}
	want := []string{
		"T1< A true [of the group]", "T1.1<T1 A true [deep]", "T1.1.1<T1.1 A false []", "T1.2<T1 A false []",
		"T2< A false []", "T3< B true []", "T3.1<T3 B false []", "T3.2<T3 B false []", "T4<  false []",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if it, _ := parse(t, "- [ ] T1 group\n    - [ ] T1.1 four spaces\n \t- [ ] T1.2 a space and a tab\n").Item("T1.2"); it.Parent != "T1" {
		t.Errorf("it is below %q", it.Parent)
	}
	if it, _ := parse(t, "## A\n#hash\n####### seven\n- [ ] T1 x\n").Item("T1"); it.Section != "A" {
		t.Errorf("the section is %q", it.Section)
	}
	if title := parse(t, "## A\n- [ ] T1 x\n").Title(); title != "" {
		t.Errorf("a section became the title %q", title)
	}
	if c := d.Counts(); c != (todo.Counts{Open: 5, Done: 1}) {
		t.Errorf("counts %+v", c)
	}
}

// A race that cannot be run blocks its item, on the line that says so.
func TestRaceProblems(t *testing.T) {
	for race, want := range map[string]string{
		"  - race: a, b\n  - verify: x":             "",
		"  - race: @worker, worker\n  - verify: x":  "",
		"  - race: a, b, c, d, e\n  - verify: x":    "",
		"  - race: a\n  - verify: x":                "line 2: race: of T1 names one agent: name two or more, or write @a behind the title",
		"  - race: a, b, c\n  - race: d,e,f":        "line 3: race: of T1 names 6 agents: at most 5 can try one item",
		"  - race: a, b":                            "line 2: race: of T1 needs a verify: of the item, which tells whose work is right",
		"  - verify: x\n  - race: a, openai/gpt-5":  `line 3: race: of T1 has "openai/gpt-5", which is no name of an agent`,
		"  - verify: x\n  - race: a, worker:opus 4": `line 3: race: of T1 has "worker:opus 4", which is no name of an agent`,
		"  - race:": "line 2: race: of T1 is empty",
	} {
		d, got := parse(t, "- [ ] T1 x\n"+race+"\n"), ""
		for _, p := range d.Problems() {
			got += fmt.Sprintf("line %d: %s", p.Line, p.Msg)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", race, got, want)
		}
		if blocked := d.Status("T1") == todo.Blocked; blocked != (want != "") {
			t.Errorf("%q: blocked is %t", race, blocked)
		}
	}
	it, _ := parse(t, "- [ ] T1 x\n  - race: a, b\n  - verify: x\n").Item("T1")
	if got := it.Shown(); got != "x (race of a, b: about 2 times the cost)" {
		t.Error(got)
	}
	if got := (todo.Item{Title: "x"}).Shown(); got != "x" {
		t.Error(got)
	}
}

func TestParseErrors(t *testing.T) {
	for text, line := range map[string]string{
		"- [ ] T1\n```\n- [ ] T2\n":  "line 2",
		"a\n\n~~~~ x\n~~~\n":         "line 3",
		"- ```\n  - [ ] T1\n":        "line 1",
		"- [ ] T1\n- [ ] \xff\n":     "line 2",
		"\xfe\xff\x00-\x00 \x00[":    "line 1",
		"```\n- [ ] T1\n``` nope\n~": "line 1",
	} {
		d, err := todo.Parse([]byte(text))
		if d != nil || centurion.KindOf(err) != centurion.KindUsage || !strings.Contains(err.Error(), line) {
			t.Errorf("%q: got %v, %v, want a usage error that names %s", text, d, err, line)
		}
	}
	for _, text := range []string{"", "\n", "\ufeff", "``` a ` b\n- [ ] T1 x", "````\n```\n````\n"} {
		parse(t, text)
	}
}

func TestProblems(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string // line ids: part of the message
		run  string   // runnable
	}{
		"duplicate": {"- [ ] T1 a\n- [ ] T2 b\n- [ ] T1 c\n- [ ] T3 d\n  after: T1\n",
			[]string{"3 [T1]: lines 1, 3"}, "T2"},
		"ten times":           {strings.Repeat("- [ ] T1 a\n", 10), []string{"2 [T1]: lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10: ids"}, ""},
		"more than ten times": {strings.Repeat("- [ ] T1 a\n", 12), []string{"2 [T1]: 10, and 2 more: ids"}, ""},
		"unknown": {"- [ ] T1 a\n  - after: t2, X9\n- [ ] T2 b\n",
			[]string{"2 [T1]: mean T2?", "2 [T1]: X9, which does not exist"}, "T2"},
		"self":               {"- [ ] T1 a\n  - after: T1\n", []string{"2 [T1]: after itself"}, ""},
		"self, then another": {"- [ ] T1 a\n  - after: T1, T2\n- [ ] T2 b\n", []string{"2 [T1]: after itself"}, "T2"},
		"cycle beside what is waited for": {"- [ ] T1 a\n  - after: T3\n- [ ] T2 b\n  - after: T3, T4\n- [ ] T3 c\n- [ ] T4 d\n  - after: T2\n",
			[]string{"4 [T2 T4]: T2, T4 wait for each other"}, "T3"},
		"cycle": {"- [ ] T1 a\n  - after: T3\n- [ ] T2 b\n  - after: T1\n- [ ] T3 c\n  - after: T2\n- [ ] T4 d\n  - after: T3\n- [ ] T5 e\n", []string{"2 [T1 T2 T3]: T1, T2, T3 wait for each other"}, "T5"},
		"child after its parent": {"- [ ] T0 z\n- [ ] T1 a\n  - [ ] T2 b\n    - after: T1\n  - [ ] T3 c\n",
			[]string{"4 [T1 T2]: T1, T2 wait for each other"}, "T0"},
		"parent after its child": {"- [ ] T1 a\n  - after: T2\n  - [ ] T2 b\n", []string{"2 [T1 T2]: wait"}, ""},
		"mark":                   {"- [?] T1 a\n- [ ] T2 b\n", []string{"1 [T1]: [?] is no mark"}, "T2"},
		"proof":                  {"- [ ] T1 a\n  - proof: full\n- [ ] T2 b\n", []string{"2 [T1]: proof: of T1 is \"full\": the only value is regression"}, "T2"},
		"empty":                  {"- [ ] T1 a\n  - verify:\n  - after:\n", []string{"2 [T1]: empty", "3 [T1]: empty"}, ""},
		"two commands":           {"- [ ] T1 a\n  - verify: `a` and `b`\n", []string{"2 [T1]: one pair of backticks"}, ""},
		"mark without an id":     {"- [?] a\n- [ ] T2 b\n", []string{"1 []: [?] is no mark"}, "T2"},
		"half a command":         {"- [ ] T1 a\n  - verify: `go test` (fast)\n", []string{"2 [T1]: one pair of backticks"}, ""},
		"not indented":           {"- [ ] T1 a\n- verify: `x`\n- [ ] T2 b\n", []string{"2 [T1]: indent"}, "T2"},
		"behind a blank line":    {"- [ ] T1 a\n\n- verify: `x`\n- [ ] T2 b\n", []string{"3 [T1]: indent"}, "T2"},
		"proof beside":           {"- [ ] T1 a\n- proof: regression\n- verify: `x`\n", []string{"3 [T1]: indent"}, ""},
		"check":                  {"# T\nverify: ``\n- [ ] T1 a\n", []string{"2 []: one command"}, "T1"},
		"lost box":               {"- [ ] T2 a\n  - verify: `x`\n* T3 b\n  - files: b\n  - verify: `y`\n- [ ] T4 c\n", []string{"3 []: the files: under it has no owner"}, "T2 T4"},
		"lost box of the first":  {"# T\n* T1 b\n  - verify: `y`\n- [ ] T2 a\n", []string{"2 []: the verify: under it has no owner"}, "T2"},
		"lost box of a sub-item": {"- [ ] T1 a\n  - [ ] T2 b\n  * T3: c\n    verify: `y`\n", []string{"3 []: the verify: under it"}, "T2"},
		"lost box inside":        {"- [ ] T1 a\n  - [T2] b\n  - T2 b\n    - verify: `y`\n", []string{"3 []: the verify: under it"}, "T1"},
		"lost box, not indented": {"- [ ] T1 a\n- T2 b\n- verify: `y`\n", []string{"2 []: the verify: under it"}, "T1"},
		"no space":               {"- [ ] T1 a\n- [~]T2 b\n-[ ] T3 c\n[x] T4 d\n- [x](link)\n", []string{"2 []: not read as an item", "3 []: not read", "4 []: not read"}, "T1"},
		"prose":                  {"# T\n- about\n- verify: `x`\n\n## S\n- S3 buckets\n- [ ] T1 a\n  - see\n    - verify: `y`\n- [ ] T2 b\n", nil, "T1 T2"},
		"fine":                   {"- [ ] T1 a\n- note: prose\n- [ ] T2 b\n  - after: T1\n", nil, "T1"},
	} {
		t.Run(name, func(t *testing.T) {
			d := parse(t, tt.text)
			got := d.Problems()
			for i, p := range got {
				head, part, _ := strings.Cut(slices.Concat(tt.want, make([]string, 99))[i], ": ")
				if fmt.Sprint(p.Line, " ", p.IDs) != head || !strings.Contains(p.Msg, part) || strings.Contains(p.Msg, "mean ?") {
					t.Errorf("problem %+v, want %v", p, tt.want)
				}
			}
			if len(got) != len(tt.want) {
				t.Errorf("problems %+v, want %v", got, tt.want)
			}
			if run := ids(d.Runnable()); run != tt.run {
				t.Errorf("runnable %q, want %q", run, tt.run)
			}
			blocked := map[string]bool{}
			for _, p := range got {
				for _, id := range p.IDs {
					blocked[id] = true
					if d.Status(id) != todo.Blocked {
						t.Errorf("%s is %v, want blocked", id, d.Status(id))
					}
				}
			}
		})
	}
}

func TestBefore(t *testing.T) {
	t.Parallel()
	doc := parse(t, "- [x] T1 a\n- [x] T2 b\n  - after: T1, T7, T8\n- [x] T3 group\n  - after: T2\n  - [x] T4 c\n  - [x] without an id\n  - [x] T5 d\n    - after: T4\n"+
		"- [x] T6 e\n  - after: T3\n- [x] T8 f\n- [x] T8 g\n- [ ] T9 h\n  - after: T10\n- [ ] T10 i\n  - after: T9\n")
	for id, want := range map[string]string{"T1": "", "T2": "T1", "T4": "T1 T2", "T5": "T1 T2 T4", "T6": "T1 T2 T3 T4 T5", "T9": "T10", "T7": ""} {
		if got := strings.Join(doc.Before(id), " "); got != want {
			t.Errorf("%s comes after %q, want %q", id, got, want)
		}
	}
}

// What stands under a bullet that has lost its box belongs to nobody: no check of it measures the item above, or the mission.
func TestLostBoxHandsNothingOn(t *testing.T) {
	d := parse(t, "# T\n* T1 a\n  - verify: `a`\n- [ ] T2 b\n  - verify: `b`\n* T3 c\n  - verify: `c`\n  - [ ] T3.1 d\n- [ ] T4 e\n  - [ ] T4.1 f\n  - T4.2 g\n      - verify: `g`\n")
	if len(d.Checks()) != 0 {
		t.Errorf("checks of the mission: %q", d.Checks())
	}
	for id, want := range map[string]string{"T2": "b", "T3.1": "", "T4": "", "T4.1": ""} {
		if it, ok := d.Item(id); !ok || strings.Join(it.Verify, " ") != want {
			t.Errorf("%s has %q", id, it.Verify)
		}
	}
	if it, _ := d.Item("T3.1"); it.Parent != "" {
		t.Errorf("the sub-item of the lost item came to %s", it.Parent)
	}
	if err := d.AddNote("T4.1", "n"); err != nil {
		t.Fatal(err)
	}
	if it, _ := d.Item("T4.1"); strings.Join(it.Notes, " ") != "n" {
		t.Errorf("the note is not read back from %s", d.Bytes())
	}
}

func TestMisread(t *testing.T) {
	d := parse(t, "- [ ] T1 a\n* T2 b\n- [~]T3: c\n- [~ T4 d\n-[ ] T5 e\n  see T6\n  - T7: g\n```\n- T8 h\n```\n- after T9\n")
	for line, want := range map[int]string{-1: "", 0: "", 1: "- [ ] T1 a", 6: "see T6", 11: "- after T9", 12: "", 13: ""} {
		if got := d.Line(line); got != want {
			t.Errorf("line %d: %q, want %q", line, got, want)
		}
	}
	for id, want := range map[string]int{"": 0, "T1": 0, "T2": 2, "T3": 3, "T4": 4, "T5": 5, "T6": 0, "T7": 7, "T8": 0, "T9": 0} {
		if got := d.Misread(id); got != want {
			t.Errorf("%s: line %d, want %d", id, got, want)
		}
	}
}

// ORCH-89: after [-] dependants run, after [!] they wait; groups are what their sub-items are.
func TestStatus(t *testing.T) {
	for name, tt := range map[string]struct {
		text   string
		run    string
		counts todo.Counts
		status string // of T1
		unmet  string // of T9
	}{
		"done":       {"- [x] T1 a\n- [ ] T9 b\n  - after: T1\n", "T9", todo.Counts{Open: 1, Done: 1}, "done", ""},
		"cancelled":  {"- [-] T1 a\n- [ ] T9 b\n  - after: T1\n", "T9", todo.Counts{Open: 1, Cancelled: 1}, "cancelled", ""},
		"blocked":    {"- [!] T1 a\n- [ ] T9 b\n  - after: T1\n", "", todo.Counts{Open: 1, Blocked: 1}, "blocked", "T1"},
		"running":    {"- [~] T1 a\n- [ ] T9 b\n  - after: T1\n", "", todo.Counts{Open: 1, Running: 1}, "running", "T1"},
		"group open": {"- [x] T1 a\n  - [ ] T2 b\n- [ ] T9 c\n  - after: T1\n", "T2", todo.Counts{Open: 2}, "open", "T1"},
		"group done": {"- [ ] T1 a\n  - [x] T2 b\n  - [-] T3 c\n- [ ] T9 c\n  - after: T1\n", "T9",
			todo.Counts{Open: 1, Done: 1, Cancelled: 1}, "done", ""},
		"group all cancelled":               {"- [ ] T1 a\n  - [-] T2 b\n", "", todo.Counts{Cancelled: 1}, "cancelled", ""},
		"cancelled group":                   {"- [-] T1 a\n  - [ ] T2 b\n- [ ] T9 c\n  - after: T2\n", "T9", todo.Counts{Open: 1, Cancelled: 1}, "cancelled", ""},
		"cancelled group with what is done": {"- [-] T1 a\n  - [x] T2 b\n  - [ ] T3 c\n- [ ] T9 d\n  - after: T1\n", "T9", todo.Counts{Open: 1, Done: 1, Cancelled: 1}, "cancelled", ""},
		"blocked group":                     {"- [!] T1 a\n  - [ ] T2 b\n", "", todo.Counts{Blocked: 1}, "blocked", ""},
		"group waits":                       {"- [ ] T1 a\n  - after: T0\n  - [ ] T9 b\n- [~] T0 c\n", "", todo.Counts{Open: 1, Running: 1}, "open", "T0"},
		"group runs":                        {"- [ ] T1 a\n  - [~] T2 b\n  - [!] T3 b\n", "", todo.Counts{Running: 1, Blocked: 1}, "running", ""},
		"opened again behind what is done": {"- [ ] T1 a\n- [x] T2 b\n  - after: T1\n- [ ] T9 c\n  - after: T2\n", "T1",
			todo.Counts{Open: 2, Done: 1}, "open", "T1"},
		"cancelled behind what is done": {"- [ ] T1 a\n- [-] T2 b\n  - after: T1\n- [ ] T9 c\n  - after: T2\n", "T1 T9",
			todo.Counts{Open: 2, Cancelled: 1}, "open", ""},
		"nothing": {"text\n", "", todo.Counts{}, "unknown", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := parse(t, tt.text)
			if got := ids(d.Runnable()); got != tt.run {
				t.Errorf("runnable %q, want %q", got, tt.run)
			}
			if got := d.Counts(); got != tt.counts || got.Total() != tt.counts.Total() {
				t.Errorf("counts %+v, want %+v", got, tt.counts)
			}
			if got := d.Status("T1").String(); got != tt.status {
				t.Errorf("T1 is %s, want %s", got, tt.status)
			}
			if got := strings.Join(d.Unmet("T9"), " "); got != tt.unmet {
				t.Errorf("T9 waits for %q, want %q", got, tt.unmet)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	d := parse(t, "- [ ] T1 a\n- [ ] parse-12 b\n- [ ] c\n")
	if got := d.Unmet("T99"); got != nil {
		t.Errorf("what is not there waits for %q", got)
	}
	for id, want := range map[string]string{"parse-12": "", "t1": "T1", "T2": "T1", "parse-21": "parse-12", "nothing like it": ""} {
		if got := d.Nearest(id); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", id, got, want)
		}
	}
}

// A plan that was written to be slow is read all the same.
func TestParseHostile(t *testing.T) {
	var nested, chain strings.Builder
	for i := range 300 {
		fmt.Fprintf(&nested, "%s- [ ] N%d x\n%s - after: Z1\n%s- [ ] L%d x\n", strings.Repeat(" ", i), i, strings.Repeat(" ", i), strings.Repeat(" ", i+1), i)
	}
	for i := range 2000 {
		fmt.Fprintf(&chain, "- [ ] T%d x\n - after: T%d\n", i, i+1)
	}
	for name, text := range map[string]string{
		"duplicates": strings.Repeat("- [ ] T1 x\n  - after: T1\n", 2000),
		"unknown":    strings.Repeat("- [ ] a\n  - after: T1\n", 2000),
		"nested":     nested.String(),
		"chain":      chain.String(),
	} {
		t.Run(name, func(t *testing.T) {
			before := cputime.Used()
			d := parse(t, text)
			d.AssignIDs()
			d.Runnable()
			if took := cputime.Used() - before; took > 2*time.Second {
				t.Errorf("took %v of a processor", took)
			}
		})
	}
}
