package review

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/orchestrator/plan"
	"centurion/store"
	"centurion/workspace/todo"
)

// What keeps a mission from its end: living tasks, results that were not read, items that nobody works on, and mistakes of the plan.
func TestMissing(t *testing.T) {
	t.Parallel()
	doc := func(text string) plan.View {
		d, err := todo.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return plan.View{Doc: d}
	}
	runs := centurion.Task{ID: "tsk_1", Item: "T1", Agent: "worker", Title: "do it", Status: centurion.TaskRunning}
	over := centurion.Task{ID: "tsk_2", Item: "T2", Agent: "worker", Status: centurion.TaskCompleted}
	for name, c := range map[string]struct {
		v      View
		unread []store.Delivery
		want   []string
	}{
		"nothing":                {View{Mission: centurion.Mission{HadItems: true}, Plan: doc("# P\n- [x] T1 One\n- [-] T2 Two\n")}, nil, nil},
		"a task":                 {View{Plan: doc("# P\n- [~] T1 One\n"), Tasks: []centurion.Task{runs, over}}, nil, []string{"task T1 (worker, do it) is still running; end your turn, you will be told when it ends"}},
		"a result":               {View{Tasks: []centurion.Task{over}}, []store.Delivery{{Task: "tsk_2"}, {Task: "tsk_9"}}, []string{"task T2 has ended and its result has not been read; it follows now", "task tsk_9 has ended and its result has not been read; it follows now"}},
		"a message":              {View{}, []store.Delivery{{Text: "hello"}}, nil},
		"items":                  {View{Plan: doc("# P\n- [ ] T1 One\n- [~] T2 Two\n- [!] T3 Three\n")}, nil, []string{"item T1 (One) is open", "item T2 (Two) is running", "item T3 (Three) is blocked"}},
		"a group's items":        {View{Plan: doc("# P\n- [ ] T1 One\n  - [ ] T2 Two\n")}, nil, []string{"item T2 (Two) is open"}},
		"a mistake":              {View{Plan: doc("# P\n- [x] T1 One\n  - after: T1\n")}, nil, []string{"item T1 (One) is blocked", "the todo list, line 3: T1 comes after itself: remove one after:"}},
		"the plan is emptied":    {View{Mission: centurion.Mission{HadItems: true}, Plan: doc("# P\n")}, nil, []string{"the todo list had items and has none any more: write it again, or ask the person"}},
		"there never was a plan": {View{}, nil, nil},
		"it cannot be read":      {View{Unread: errors.New("no"), Mission: centurion.Mission{HadItems: true}}, nil, []string{"the todo list cannot be read: no"}},
		"a review":               {View{MayReview: true, Plan: doc("# P\n- [x] T2 Two\n"), Tasks: []centurion.Task{over}}, nil, []string{`item T2 (Two): it has no verify command; no review has passed since its work ended: delegate_task {"agent":"reviewer","item":"T2","description":"review T2","prompt":"…"}`}},
		"nobody reviews":         {View{Plan: doc("# P\n- [x] T2 Two\n"), Tasks: []centurion.Task{over}}, nil, nil},
	} {
		got := c.v.Missing(c.unread)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A passed review counts no more when files that it has judged are merged anew, by a task or by the mission's own agent; other files
// and older merges do not matter.
func TestStale(t *testing.T) {
	t.Parallel()
	landed := func(sec int64, files ...string) centurion.Landed {
		l := centurion.Landed{Time: centurion.MillisTime(sec * 1000)}
		for _, f := range files {
			l.Files = append(l.Files, centurion.FileChange{Path: f})
		}
		return l
	}
	work := func(item string, l ...centurion.Landed) centurion.Task { return centurion.Task{Item: item, Landed: l} }
	review := centurion.Task{Started: centurion.MillisTime(10_000)}
	for name, c := range map[string]struct {
		of    map[string]bool
		tasks []centurion.Task
		own   []centurion.Landed
		want  bool
	}{
		"nothing since":             {map[string]bool{"T1": true}, []centurion.Task{work("T1", landed(5, "a"))}, nil, false},
		"at the same moment":        {map[string]bool{"T1": true}, []centurion.Task{work("T1", landed(5, "a")), work("T2", landed(10, "a"))}, nil, false},
		"another task, same file":   {map[string]bool{"T1": true}, []centurion.Task{work("T1", landed(5, "a")), work("T2", landed(11, "b", "a"))}, nil, true},
		"another task, other file":  {map[string]bool{"T1": true}, []centurion.Task{work("T1", landed(5, "a")), work("T2", landed(11, "b"))}, nil, false},
		"files of an item not seen": {map[string]bool{"T1": true}, []centurion.Task{work("T1", landed(5, "a")), work("T2", landed(5, "b"), landed(11, "b"))}, nil, false},
		"a review of all":           {nil, []centurion.Task{work("T1", landed(5, "a")), work("T2", landed(5, "b"), landed(11, "b"))}, nil, true},
		"the own agent, same file":  {map[string]bool{"T1": true}, []centurion.Task{work("T1", landed(5, "a"))}, []centurion.Landed{landed(11, "a")}, true},
		"the own agent, other file": {map[string]bool{"T1": true}, []centurion.Task{work("T1", landed(5, "a"))}, []centurion.Landed{landed(11, "b")}, false},
		"the own agent, before":     {map[string]bool{"T1": true}, []centurion.Task{work("T1", landed(5, "a"))}, []centurion.Landed{landed(9, "a")}, false},
		"only what came later":      {map[string]bool{"T1": true}, []centurion.Task{work("T1", landed(11, "a"))}, nil, false},
	} {
		if got := stale(c.of, review, c.tasks, c.own); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Which review of a done item is still to come, and when: one that lives and did not begin before the work ended, or a planned one.
func TestComing(t *testing.T) {
	t.Parallel()
	doc, err := todo.Parse([]byte("# P\n- [x] T1 One\n- [ ] T2 Two\n- [ ] T3 Look @reviewer\n  - after: T1, T2, T4\n- [ ] T4 Four\n"))
	if err != nil {
		t.Fatal(err)
	}
	worked := centurion.Task{ID: "tsk_1", Item: "T1", Agent: "worker", Status: centurion.TaskCompleted, Ended: centurion.MillisTime(5000)}
	review := func(item string, s centurion.TaskStatus, sec int64) centurion.Task {
		r := centurion.Task{ID: "tsk_2", Number: 7, Item: item, Agent: "reviewer", Status: s}
		if sec > 0 {
			r.Started = centurion.MillisTime(sec * 1000)
		}
		return r
	}
	of := review("T1", centurion.TaskRunning, 6)
	of.Reviews = true
	for name, c := range map[string]struct {
		tasks    []centurion.Task
		by, when string
	}{
		"planned":                  {nil, "T3", "after T2, T4"},
		"it runs":                  {[]centurion.Task{review("T3", centurion.TaskRunning, 6)}, "T3", "now"},
		"it waits":                 {[]centurion.Task{review("T3", centurion.TaskWaiting, 0)}, "T3", "after T2, T4"},
		"it is queued, for all":    {[]centurion.Task{review("", centurion.TaskQueued, 0)}, review("", "", 0).Name(), "when it begins"},
		"it began too early":       {[]centurion.Task{review("T3", centurion.TaskRunning, 4)}, "", ""},
		"it is over":               {[]centurion.Task{review("T3", centurion.TaskFailed, 6)}, "T3", "after T2, T4"},
		"of this item":             {[]centurion.Task{of}, review("", "", 0).Name(), "now"},
		"a worker on another item": {[]centurion.Task{{ID: "tsk_3", Item: "T2", Agent: "worker", Status: centurion.TaskRunning}}, "T3", "after T2, T4"},
		"of what comes after none": {[]centurion.Task{review("T2", centurion.TaskRunning, 6)}, "T2", "now"},
	} {
		by, when := View{Plan: plan.View{Doc: doc}, Tasks: append([]centurion.Task{worked}, c.tasks...)}.Coming("T1")
		if by != c.by || when != c.when {
			t.Errorf("%s: %q %q, want %q %q", name, by, when, c.by, c.when)
		}
	}
	if by, when := (View{}).Coming("T1"); by+when != "" {
		t.Errorf("without a plan: %q %q", by, when)
	}
}

// An item that no check proves and no review has seen is named with what to do: wait for a review that comes, hand one out, or first have
// its faults mended.
func TestUnreviewed(t *testing.T) {
	t.Parallel()
	at := func(sec int64) centurion.Time { return centurion.MillisTime(sec * 1000) }
	worked := centurion.Task{ID: "tsk_1", Item: "T1", Agent: "worker", Status: centurion.TaskCompleted, Started: at(1), Ended: at(2)}
	review := centurion.Task{ID: "tsk_2", Item: "T2", Agent: "reviewer", Status: centurion.TaskCompleted, Started: at(3), Ended: at(4), Result: "FAIL: a.go"}
	runs := review
	runs.Status, runs.Ended, runs.Result = centurion.TaskRunning, centurion.Time{}, ""
	passes := review
	passes.Result = "PASS"
	const plain, planned = "# P\n- [x] T1 One\n", "# P\n- [x] T1 One\n- [ ] T2 Look @reviewer\n  - after: T1\n"
	for name, c := range map[string]struct {
		text  string
		tasks []centurion.Task
		want  string
	}{
		"no review":    {plain, []centurion.Task{worked}, `no review has passed since its work ended: delegate_task {"agent":"reviewer","item":"T1"`},
		"a review now": {planned, []centurion.Task{worked, runs}, "T2 reviews it now"},
		"planned":      {planned, []centurion.Task{worked}, `delegate_task {"agent":"reviewer","item":"T2"`},
		"faults":       {planned, []centurion.Task{worked, review}, "T2 has found faults: add an item for them and let T2 wait for it (after)"},
		"passed":       {strings.Replace(planned, "[ ] T2", "[x] T2", 1), []centurion.Task{worked, passes}, ""},
	} {
		doc, err := todo.Parse([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		got := View{MayReview: true, Plan: plan.View{Doc: doc}, Tasks: c.tasks}.Unreviewed()
		if (len(got) > 0) != (c.want != "") || len(got) > 0 && (!strings.HasPrefix(got[0], "item T1 (One): ") || !strings.Contains(got[0], c.want)) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
