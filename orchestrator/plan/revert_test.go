package plan

import (
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/workspace/todo"
)

// Issue "What real use showed", A.6: what an undo of an item's work opens: the item and the reviews that rest on it, and which verdicts
// do not count any more.
func TestRestOn(t *testing.T) {
	t.Parallel()
	doc, err := todo.Parse([]byte(`# P
- [x] T1 One @worker
- [x] T2 Two @worker
- [x] T3 Review of one @reviewer
  - after: T1
- [x] T4 Review of two @reviewer
  - after: T2
- [x] T5 Review of all @reviewer
- [ ] T6 Later review @reviewer
  - after: T1
`))
	if err != nil {
		t.Fatal(err)
	}
	review := func(id, item, result string, of bool) centurion.Task {
		return centurion.Task{ID: id, Item: item, Agent: "reviewer", Status: centurion.TaskCompleted, Result: result, Reviews: of}
	}
	tasks := []centurion.Task{{ID: "w1", Item: "T1", Agent: "worker", Status: centurion.TaskCompleted}, review("r3", "T3", "PASS", false),
		review("r4", "T4", "PASS", false), review("r5", "T5", "PASS", false), review("r1", "T1", "PASS", true), review("f1", "T1", "FAIL: no", true)}
	undone := slices.Clone(tasks)
	undone[1].Undone = centurion.Now()
	for name, tt := range map[string]struct {
		items   []string
		tasks   []centurion.Task
		earlier []centurion.Reverted
		open    string
		reviews string
	}{
		"the first":            {[]string{"T1"}, tasks, nil, "T1 T3 T5", "r3 r5 r1"},
		"the second":           {[]string{"T2"}, tasks, nil, "T2 T4 T5", "r4 r5"},
		"work without an item": {[]string{}, tasks, nil, "T5", "r5"},
		"all":                  {nil, tasks, nil, "T1 T2 T3 T4 T5", "r3 r4 r5 r1"},
		"not the person's":     {[]string{"T1"}, undone, nil, "T1 T3 T5", "r5 r1"},
		"after another undo":   {[]string{"T1"}, undone, []centurion.Reverted{{Items: []string{"T6"}, Reviews: []string{"r3"}}}, "T1 T3 T5 T6", "r3 r5 r1"},
	} {
		open, reviews := View{Doc: doc}.RestOn(tt.items, tt.tasks, tt.earlier)
		if got := strings.Join(open, " "); got != tt.open {
			t.Errorf("%s opens %q, want %q", name, got, tt.open)
		}
		if got := strings.Join(reviews, " "); got != tt.reviews {
			t.Errorf("%s voids %q, want %q", name, got, tt.reviews)
		}
	}
}
