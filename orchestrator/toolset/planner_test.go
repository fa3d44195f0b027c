package toolset

import (
	"errors"
	"strings"
	"testing"

	"centurion"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/state"
	"centurion/tools"
	"centurion/workspace/todo"
)

func parse(t *testing.T, text string) *todo.Doc {
	t.Helper()
	doc, err := todo.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// A new plan keeps every item that is being worked on, and is never empty.
func TestKeepsRunning(t *testing.T) {
	t.Parallel()
	const one = "# Plan\n- [ ] T1 One\n"
	for name, c := range map[string]struct {
		plan  string
		items []string // of living tasks
		kind  centurion.Kind
	}{
		"nothing runs":        {one, nil, ""},
		"its item runs":       {one, []string{"T1"}, ""},
		"a task without item": {one, []string{"", "T1"}, ""},
		"another item runs":   {one, []string{"T1", "T2"}, centurion.KindConflict},
		"no items":            {"# Plan\n", nil, centurion.KindUsage},
		"nothing at all":      {"", nil, centurion.KindUsage},
	} {
		var runs []*state.Run
		for _, item := range c.items {
			runs = append(runs, &state.Run{Item: item})
		}
		if err := keepsRunning(runs, parse(t, c.plan)); centurion.KindOf(err) != c.kind {
			t.Errorf("%s: %v, want %q", name, err, c.kind)
		}
	}
}

// Single changes are made as they are sent, all or none, and a status may be written as models write it.
func TestApplyTodo(t *testing.T) {
	t.Parallel()
	const before = "# Plan\n- [ ] T1 One\n- [x] T2 Two\n  - after: T1\n"
	for name, c := range map[string]struct {
		update tools.TodoUpdate
		want   string // what the plan then has, parts separated by |
		kind   centurion.Kind
	}{
		"done":             {tools.TodoUpdate{Items: []tools.ItemUpdate{{ID: "T1", Status: "completed"}, {ID: "T2", Status: "Pending"}}}, "[x] T1 One|[ ] T2 Two", ""},
		"given up":         {tools.TodoUpdate{Items: []tools.ItemUpdate{{ID: "T1", Status: "canceled", Note: "no use"}, {ID: "T2", Status: "blocked"}}}, "[-] T1 One|no use|[!] T2 Two", ""},
		"said otherwise":   {tools.TodoUpdate{Items: []tools.ItemUpdate{{ID: "T1", Title: "Eins"}}}, "[ ] T1 Eins|[x] T2 Two", ""},
		"waits no more":    {tools.TodoUpdate{Items: []tools.ItemUpdate{{ID: "T2", After: []string{}}}}, "[x] T2 Two", ""},
		"one more":         {tools.TodoUpdate{Add: []tools.NewItem{{Title: "Three", Agent: "@reviewer", After: []string{"T1"}, Files: []string{"a.go"}, Verify: []string{"make"}}}}, "[ ] T3 Three @reviewer|after: T1|files: a.go|verify: `make`", ""},
		"one at once done": {tools.TodoUpdate{Add: []tools.NewItem{{ID: "T9", Title: "Nine"}}, Items: []tools.ItemUpdate{{ID: "T9", Status: "done"}}}, "[x] T9 Nine", ""},
		"no status":        {tools.TodoUpdate{Items: []tools.ItemUpdate{{ID: "T1", Status: "running"}}}, "", centurion.KindUsage},
		"no item":          {tools.TodoUpdate{Items: []tools.ItemUpdate{{ID: "T7", Status: "done"}}}, "", centurion.KindNotFound},
		"after nothing":    {tools.TodoUpdate{Items: []tools.ItemUpdate{{ID: "T1", After: []string{"T7"}}}}, "", centurion.KindUsage},
	} {
		doc := parse(t, before)
		err := applyTodo(doc, c.update)
		if centurion.KindOf(err) != c.kind {
			t.Errorf("%s: %v, want %q", name, err, c.kind)
		}
		rest := string(doc.Bytes())
		for part := range strings.SplitSeq(c.want, "|") {
			i := strings.Index(rest, part)
			if i < 0 {
				t.Errorf("%s: %q is not where it should be in\n%s", name, part, doc.Bytes())
				break
			}
			rest = rest[i+len(part):]
		}
		if name == "waits no more" && strings.Contains(string(doc.Bytes()), "after") {
			t.Errorf("%s:\n%s", name, doc.Bytes())
		}
	}
}

// A task does not tick its own item, which the host does at its end; everything else that it sends stays.
func TestOwnTickIsTheHosts(t *testing.T) {
	t.Parallel()
	sent := []tools.ItemUpdate{{ID: "T1", Status: "done", Note: "n"}, {ID: "T2", Status: "done"}, {ID: "T1", Status: "blocked"}}
	for item, want := range map[string]string{"T1": " done blocked", "T2": "done  blocked", "": "done done blocked"} {
		var got []string
		for _, u := range withoutOwnTick(&agent.Conversation{Task: &state.Run{Item: item}}, sent) {
			got = append(got, u.Status)
		}
		if strings.Join(got, " ") != want || sent[0].Status != "done" || sent[1].Status != "done" {
			t.Errorf("of %q: %q, want %q; sent was %+v", item, got, want, sent)
		}
	}
	if got := withoutOwnTick(&agent.Conversation{}, sent); got[0].Status != "done" {
		t.Error("the mission's own agent has an item")
	}
}

// Whoever reads a refused change of several items is told that none was made, and an error of another kind stays as it is.
func TestAllOrNone(t *testing.T) {
	t.Parallel()
	refused, other := &centurion.Error{Kind: centurion.KindUsage, Msg: "no"}, errors.New("else")
	if got := allOrNone(refused, 1); got != error(refused) {
		t.Errorf("one change: %v", got)
	}
	if got := allOrNone(refused, 2); !strings.Contains(got.Error(), "no (so none of the 2 changes of items was made)") || refused.Msg != "no" {
		t.Errorf("two changes: %v", got)
	}
	if got := allOrNone(other, 2); got != other {
		t.Errorf("another error: %v", got)
	}
}

// What an agent sent and what stays different because somebody else changed it meanwhile is named, with the check that counts.
func TestKeptNotes(t *testing.T) {
	t.Parallel()
	now := parse(t, "# Plan\n- [ ] T1 Eins\n  - verify: `make it`\n- [x] T2 Two\n")
	got := keptNotes("# Plan\n- [ ] T1 One\n- [ ] T2 Two\n- [ ] T3 Three\n", now)
	if len(got) != 1 || !strings.HasPrefix(got[0], "T1 was changed while you worked, and stays so: Eins, verify `make it`.") {
		t.Errorf("%q", got)
	}
}
