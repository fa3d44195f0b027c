package todo_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"centurion/workspace/todo"
)

// ORCH-73: the plan is found in an answer, with what belongs to it and without the prose around it.
func TestFromText(t *testing.T) {
	fence := "```"
	for name, tt := range map[string]struct{ text, want string }{
		"nothing":                {"I looked around and found nothing to plan.\n- one thing\n- another", ""},
		"empty":                  {"", ""},
		"all done":               {"What I did:\n- [x] read the code\n- [x] read the tests\n", ""},
		"the plan alone":         {plan, plan},
		"prose around":           {"I looked at config/ and limit/.\n\n" + plan + "\nThree items in two waves.\n", plan},
		"a report before":        {"# Report\nFound much.\n\n## M1\n- [ ] T1 One\n", "## M1\n- [ ] T1 One\n"},
		"in a fence":             {"Here it is:\n\n" + fence + "markdown\n" + plan + fence + "\n\nDone.", plan},
		"in an open fence":       {"Here it is:\n" + fence + "\n- [ ] T1 One", "- [ ] T1 One\n"},
		"the larger fence":       {fence + "\n- [ ] T0 small\n" + fence + "\n" + fence + "\n" + plan + fence, plan},
		"the larger fence first": {fence + "\n- [ ] T1 a\n- [ ] T2 b\n" + fence + "\n" + fence + "\n- [ ] T0 small\n" + fence, "- [ ] T1 a\n- [ ] T2 b\n"},
		"the first of two":       {fence + "\n- [ ] T1 a\n" + fence + "\n" + fence + "\n- [ ] T2 b\n" + fence, "- [ ] T1 a\n"},
		"a fence of code":        {"- [ ] T1 One\n\n" + fence + "go\nfunc f() {}\n" + fence + "\n", "- [ ] T1 One\n"},
		"CRLF":                   {"So:\r\n- [ ] T1 One\r\n  - verify: `x`\r\n", "- [ ] T1 One\n  - verify: `x`\n"},
		"no UTF-8":               {"\xff\n- [ ] T1 \xffOne\n", "- [ ] T1 \uFFFDOne\n"},
		"a lost constraint":      {"- [ ] T1 One\nafter: T9\n\nBye.", "- [ ] T1 One\nafter: T9\n"}, // kept, so that it is told as a problem
	} {
		d := todo.FromText(tt.text)
		switch {
		case d == nil && tt.want != "":
			t.Errorf("%s: no plan was found", name)
		case d != nil && string(d.Bytes()) != tt.want:
			t.Errorf("%s: got\n%q, want\n%q", name, d.Bytes(), tt.want)
		}
	}
}

// ORCH-73: whatever an agent says, what is taken from it is a plan that can be read, kept and read again.
func FuzzFromText(f *testing.F) {
	for _, s := range []string{plan, messy, "prose\n\n" + plan + "\nmore", "```md\n" + plan + "```", "~~~\n- [ ] a\n", "# a\n- [ ]\n", "1. [ ] x\r\n\tafter: y", "- [ ] a\n```\n- [ ] b\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d := todo.FromText(s)
		if d == nil {
			return
		}
		open := slices.ContainsFunc(d.Items(), func(it todo.Item) bool { return it.Mark == todo.Open })
		if !open || !utf8.Valid(d.Bytes()) || !strings.HasSuffix(string(d.Bytes()), "\n") {
			t.Fatalf("from %q: %q", s, d.Bytes())
		}
		again := todo.FromText(string(d.Bytes()))
		if again == nil || len(again.Items()) != len(d.Items()) {
			t.Fatalf("%q: read again %v", d.Bytes(), again)
		}
	})
}
