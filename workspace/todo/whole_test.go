package todo_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"centurion"
	"centurion/workspace/todo"
)

// Edits at the edges of what a plan may look like, each with the whole text before and after.
func TestWholeEdits(t *testing.T) {
	t.Parallel()
	adds := func(section string, it todo.Item) func(*todo.Doc) error {
		return func(d *todo.Doc) error { return add(d, section, it) }
	}
	checks := func(id, proof string, verify ...string) func(*todo.Doc) error {
		return func(d *todo.Doc) error { return d.SetChecks(id, verify, proof) }
	}
	for _, tt := range []struct {
		name     string
		edit     func(*todo.Doc) error
		was, now string
	}{
		{"an empty plan", adds("", todo.Item{Title: "a"}), "", "- [ ] T1 a\n"},
		{"all of it", adds("M", todo.Item{Title: "a", Mark: todo.Done, Agent: "w", After: []string{"T1"}, Files: []string{"f", "g"}, Verify: []string{"c", "`d` e"}, Proof: "regression", Notes: []string{"n"}}),
			"- [ ] T1 a\n", "- [ ] T1 a\n\n## M\n- [x] T2 a @w\n  - after: T1\n  - files: f, g\n  - verify: `c`\n  - verify: `` `d` e ``\n  - proof: regression\n  - note: n\n"},
		{"numbers", adds("", todo.Item{Title: "b", Notes: []string{"n"}}), "1. [ ] T1 a", "1. [ ] T1 a\n2. [ ] T2 b\n   - note: n"},
		{"below a number", adds("", todo.Item{Title: "b", Parent: "T1"}), "10) [ ] T1 a\n", "10) [ ] T1 a\n    - [ ] T2 b\n"},
		{"below the last", adds("", todo.Item{Title: "c", Parent: "T1"}), "- [ ] T1 a\n  1. [ ] T2 b\n    - note: x\n- [ ] T3 d\n", "- [ ] T1 a\n  1. [ ] T2 b\n    - note: x\n  2. [ ] T4 c\n- [ ] T3 d\n"},
		{"the highest number", adds("", todo.Item{Title: "b"}), "- [ ] T999999999 a\n", "- [ ] T999999999 a\n- [ ] T1000000000 b\n"},
		{"a number that is too high", adds("", todo.Item{Title: "b"}), "- [ ] T1000000000 a\n", "- [ ] T1000000000 a\n- [ ] T1 b\n"},
		{"no number", adds("", todo.Item{Title: "b"}), "- [ ] T1x a\n- [ ] T-2 a\n", "- [ ] T1x a\n- [ ] T-2 a\n- [ ] T1 b\n"},
		{"a number that lost its box", adds("", todo.Item{Title: "b"}), "- [ ] T1 a\n- T7 x\nT9 y\n", "- [ ] T1 a\n- T7 x\nT9 y\n\n- [ ] T8 b\n"},
		{"a number that is waited for", adds("", todo.Item{Title: "b"}), "- [ ] T1 a\n  - after: T5\n", "- [ ] T1 a\n  - after: T5\n- [ ] T6 b\n"},
		{"the section's first word", adds("m1", todo.Item{ID: "X1", Title: "b"}), "## M1: one\n- [ ] T1 a\n## M2 two\n", "## M1: one\n- [ ] T1 a\n- [ ] X1 b\n## M2 two\n"},
		{"an empty section between", adds("M1", todo.Item{Title: "b"}), "## M1\n## M2\n- [ ] T1 a\n", "## M1\n- [ ] T2 b\n## M2\n- [ ] T1 a\n"},
		{"behind what is wrapped", adds("", todo.Item{Title: "b"}), "- [ ] T1 a\n  more\nand more\n\n# Z\n", "- [ ] T1 a\n  more\nand more\n\n# Z\n\n- [ ] T2 b\n"},
		{"a fence of an item", adds("", todo.Item{Title: "b"}), "- [ ] T1 a\n  ```\n  - [ ] T7 x\n  ```\n\ntext\n", "- [ ] T1 a\n  ```\n  - [ ] T7 x\n  ```\n\ntext\n\n- [ ] T2 b\n"},
		{"checks for others", checks("T1", "", "n"), "- [ ] T1 a\n  - verify: `o`\n  - proof: regression\n  - note: x\n  - verify: `p`\n", "- [ ] T1 a\n  - verify: `n`\n  - note: x\n"},
		{"checks and a proof", checks("T1", "regression", "n"), "- [ ] T1 a\n  - note: x", "- [ ] T1 a\n  - note: x\n  - verify: `n`\n  - proof: regression\n"},
		{"the plan's own checks", checks("", "", "n", "m"), "# P\r\n- verify: `o`\r\n\r\n- [ ] T1 a\r\n  - verify: `k`\r\n", "# P\r\n- verify: `n`\r\n- verify: `m`\r\n\r\n- [ ] T1 a\r\n  - verify: `k`\r\n"},
		{"no more checks", checks("", ""), "# P\n- verify: `o`\n- [ ] T1 a\n", "# P\n- [ ] T1 a\n"},
	} {
		d := parse(t, tt.was)
		if err := tt.edit(d); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := string(d.Bytes()); got != tt.now {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.now)
		}
		if again := parse(t, tt.now); !reflect.DeepEqual(again.Items(), d.Items()) {
			t.Errorf("%s is not read back", tt.name)
		}
	}
}

// A value that is one span of code is what the span holds; any other stays as it is written. What looks like an attribute and has no key, or
// no space behind the colon, is none.
func TestValuesOfAttributes(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"a": "a", "`a`": "a", "``a`b``": "a`b", "`` `a` ``": "`a`", "` a `": "a", "` a`": " a", "`  `": "  ", "` `": " ", "`a": "`a", "`a` b`": "`a` b`",
		"``a`": "``a`", "`a``": "`a``", "`a` and `b`": "`a` and `b`", "``a``` b``": "a``` b", "`": "`", "": ""} {
		it, _ := parse(t, "- [ ] T1 a\n  - own_er-x: "+value+"\n").Item("T1")
		if want := map[string][]string{"own_er-x": {want}}; !reflect.DeepEqual(it.Attrs, want) {
			t.Errorf("%q is %q, want %q", value, it.Attrs, want)
		}
	}
	for _, line := range []string{": a", "key:a", "key", "1key: a", "-key: a", "a b: c", "kéy: a"} {
		if it, _ := parse(t, "- [ ] T1 a\n  - "+line+"\n").Item("T1"); it.Attrs != nil {
			t.Errorf("%q gives %q", line, it.Attrs)
		}
	}
	it, _ := parse(t, "- [ ] T1 a\n  - after: T2 T3, none, `T4`, -\n  - files: a{b,c}, `d,e`, }f, {g\n").Item("T1")
	if !reflect.DeepEqual(it.After, []string{"T2", "T3", "T4"}) || !reflect.DeepEqual(it.Files, []string{"a{b,c}", "d,e", "}f", "{g"}) {
		t.Errorf("after %q, files %q", it.After, it.Files)
	}
}

func TestWhatItsErrorsSay(t *testing.T) {
	t.Parallel()
	say := func(err error) string {
		return fmt.Sprintf("%s: %v | %s", centurion.KindOf(err), err, centurion.HintOf(err))
	}
	_, err := todo.Parse([]byte("ok\n\xff\n"))
	if got, want := say(err), "usage: read todo: line 2 is not UTF-8 text | save the file as UTF-8"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	d := parse(t, "- [ ] T1 a\n  - after: T9\n- [ ] T2 b\n  - after: T3\n- [ ] T3 c\n  - after: T2\n- [ ] T4 d\n  - after: T4\n- [ ] T5 e\n- [ ] T5 f\n [ ] T6 g\n")
	var lines []string
	for _, p := range d.Problems() {
		lines = append(lines, fmt.Sprintf("%+v", p))
	}
	for got, want := range map[string]string{
		say(d.NoneLost(nil)):                                                  "usage: an item comes after one that does not exist: T1 after T9 | the items are T1, T2, T3, T4, T5, T5; name one of them, or leave that `after` out",
		say(d.NoneLost([]string{"T1 after T9"})):                              say(nil),
		strings.Join(d.Dangling(), "; "):                                      "T1 after T9",
		parse(t, "- [ ] T1 a\n  - after: t2\n- [ ] T2 b\n").Problems()[0].Msg: "T1 comes after t2, which does not exist; did you mean T2?",
		strings.Join(lines, "\n"): "{Line:2 IDs:[T1] Msg:T1 comes after T9, which does not exist}\n{Line:4 IDs:[T2 T3] Msg:T2, T3 wait for each other: remove one after:}\n" +
			"{Line:8 IDs:[T4] Msg:T4 comes after itself: remove one after:}\n{Line:10 IDs:[T5] Msg:id T5 stands on lines 9, 10: ids must be unique}\n" +
			"{Line:11 IDs:[] Msg:this is not read as an item: write it with a bullet and spaces, as `- [ ] T1 title`}",
	} {
		if got != want {
			t.Errorf("\n%s\nwant %s", got, want)
		}
	}
}

// The checks that an item was handed out with stay, whatever is written into the file, until an agent that may change them does.
func TestFrozen(t *testing.T) {
	t.Parallel()
	const plan = "# P\n- verify: `all`\n- [ ] T1 a\n  - verify: `one`\n  - proof: regression\n- [ ] T2 b\n  - verify: `two`\n"
	var f todo.Frozen
	if got := f.All(); len(got) > 0 || f.Apply(nil) != nil || f.Apply(parse(t, plan)) != nil {
		t.Errorf("frozen from the start: %v", got)
	}
	frozen := map[string]todo.Checks{}
	for _, id := range []string{"T1", "T2", "T9", ""} {
		c, ok := todo.ChecksIn(parse(t, plan), id)
		if ok != (id != "T9") {
			t.Errorf("%s is there: %t", id, ok)
		}
		frozen[id] = c
	}
	f.Set(frozen)
	delete(frozen, "T9")
	if want := (map[string]todo.Checks{"T1": {Verify: []string{"one"}, Proof: "regression"}, "T2": {Verify: []string{"two"}}, "": frozen[""]}); !reflect.DeepEqual(f.All(), want) {
		t.Errorf("frozen: %v", f.All())
	}
	f.All()["T1"] = todo.Checks{}
	changed := strings.NewReplacer("`one`", "`true`", "  - proof: regression\n", "", "`two`", "`2`").Replace(plan)
	d := parse(t, changed)
	undone := f.Apply(d)
	want := []centurion.Exchange{{Item: "T1", From: []string{"one"}, To: []string{"true"}}, {Item: "T2", From: []string{"two"}, To: []string{"2"}}}
	if !reflect.DeepEqual(undone, want) || !reflect.DeepEqual(d.Items()[0].Verify, []string{"one"}) || d.Items()[0].Proof != "regression" {
		t.Errorf("undone %v: %s", undone, d.Bytes())
	}
	for _, noted := range [][]centurion.Exchange{undone[:1], undone[1:]} {
		f.Note(noted)
	}
	if got := f.TakeNoted(); !reflect.DeepEqual(got, want) || f.TakeNoted() != nil {
		t.Errorf("noted %v", got)
	}

	// The agent has read a file that someone else had changed: only what it changed itself counts.
	sent := parse(t, strings.Replace(changed, "`2`", "`22`", 1))
	refused := errors.New("refused")
	if _, _, err := f.Accept(parse(t, changed), sent, func() error { return refused }); !errors.Is(err, refused) || !reflect.DeepEqual(f.All()["T2"].Verify, []string{"two"}) {
		t.Errorf("refused: %v, %v", err, f.All())
	}
	restore, undone, err := f.Accept(parse(t, changed), sent, func() error { return nil })
	if err != nil || !reflect.DeepEqual(undone, want) || !reflect.DeepEqual(restore, map[string]todo.Checks{"T2": {Verify: []string{"two"}}}) {
		t.Errorf("accepted: %v, %v, %v", restore, undone, err)
	}
	if got := sent.Items(); !reflect.DeepEqual(got[0].Verify, []string{"one"}) || got[0].Proof != "regression" || !reflect.DeepEqual(f.All()["T2"].Verify, []string{"22"}) || !reflect.DeepEqual(f.All()["T1"], frozen["T1"]) {
		t.Errorf("now %+v, %v", got, f.All())
	}
	if restore, undone, err := f.Accept(nil, parse(t, "- [ ] T1 a\n"), func() error { return nil }); err != nil || undone != nil || len(restore) != 2 || len(f.All()) != 1 {
		t.Errorf("without checks: %v, %v, %v; %v", restore, undone, err, f.All())
	}
}

// A plan in an answer, with everything around it that is none.
func TestPlanInText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Here:\n\n# P\n- verify: `c`\n\n## M\n- [ ] T1 a\n\nBye.\n## End\n": "# P\n- verify: `c`\n\n## M\n- [ ] T1 a\n",
		"```\n- [ ] T1 a\n```\nor\n```md\n- [ ] T1 a\n- [ ] T2 b\n```":      "- [ ] T1 a\n- [ ] T2 b\n",
		"- [x] T1 a\n":                           "",
		"no plan":                                "",
		"~~~\n- [ ] T1 a\n~~\n~~~~ \nafter":      "- [ ] T1 a\n",
		"- [ ] T1 a\n  - note: n\nverify: `x`\n": "- [ ] T1 a\n  - note: n\nverify: `x`\n",
		"```\n- [ ] T1 a":                        "- [ ] T1 a\n",
	} {
		got := ""
		if d := todo.FromText(text); d != nil {
			got = string(d.Bytes())
		}
		if got != want {
			t.Errorf("%q:\n got %q\nwant %q", text, got, want)
		}
	}
}
