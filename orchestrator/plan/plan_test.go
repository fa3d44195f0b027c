package plan

import (
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// planned is the plan of a mission with some tasks that nobody works on.
func planned(t *testing.T, text string, m centurion.Mission, tasks ...centurion.Task) *Plan {
	t.Helper()
	ws := project(t)
	write(t, ws, workspace.TodoPath, text)
	s := storetest.Open(t)
	m.ID, m.Status, m.Directory = "msn_1", centurion.MissionRunning, ws.Dir()
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		for _, task := range tasks {
			task.Mission = m.ID
			if err := tx.PutTask(&task); err != nil {
				return err
			}
		}
		return tx.PutMission(&m)
	})
	if err != nil {
		t.Fatal(err)
	}
	return New(state.New(t.Context(), nil, s, m, nil), nil, nil, ws.Todo(), func([]byte) bool { return false })
}

// A published plan implies the mission's level, which yields to the one that a person or an agent gave. A mission that has had items is
// known for it, and the same plan is published once.
func TestPublishedPlan(t *testing.T) {
	t.Parallel()
	const two, three = "# P\n- [ ] T1 One\n- [ ] T2 Two\n", "# P\n- [ ] T1 One\n- [ ] T2 Two\n  - after: T1\n"
	for name, test := range map[string]struct {
		text  string
		is    centurion.Mission
		level int
		from  string
		had   bool
	}{
		"independent items": {two, centurion.Mission{}, 2, centurion.LevelInferred, true},
		"in an order":       {three, centurion.Mission{}, 3, centurion.LevelInferred, true},
		"inferred before":   {three, centurion.Mission{Level: 2, LevelFrom: centurion.LevelInferred}, 3, centurion.LevelInferred, true},
		"by an agent":       {three, centurion.Mission{Level: 2, LevelFrom: "commander"}, 2, "commander", true},
		"by a person":       {three, centurion.Mission{Options: centurion.MissionOptions{Level: 1}}, 1, centurion.LevelByPerson, true},
		"no items":          {"# P\n", centurion.Mission{}, 0, "", false},
	} {
		p := planned(t, test.text, test.is)
		if err := p.TellTodo(t.Context()); err != nil {
			t.Fatal(err)
		}
		seq := p.st.Store.LastSeq()
		if err := p.TellTodo(t.Context()); err != nil || p.st.Store.LastSeq() != seq {
			t.Errorf("%s: the same plan is published again: %v", name, err)
		}
		m, err := p.st.Store.Mission(t.Context(), p.st.ID)
		if err != nil || m.Level != test.level || m.LevelFrom != test.from || m.HadItems != test.had {
			t.Errorf("%s: level %d by %q, had items: %v, %v", name, m.Level, m.LevelFrom, m.HadItems, err)
		}
	}
}

// The end of an item's task frees the items that come after it alone and that no task has.
func TestWouldFree(t *testing.T) {
	t.Parallel()
	const text = "# P\n- [~] T1 One\n- [~] T2 Two\n- [ ] T3 Three\n  - after: T1\n- [ ] T4 Four\n  - after: T1, T2\n- [ ] T5 Five\n"
	waits := centurion.Task{ID: "tsk_3", Item: "T3", Status: centurion.TaskWaiting}
	ended := waits
	ended.Status = centurion.TaskFailed
	for name, test := range map[string]struct {
		tasks  []centurion.Task
		item   string
		status centurion.TaskStatus
		want   bool
	}{
		"frees one":              {nil, "T1", centurion.TaskCompleted, true},
		"whose task has waited":  {[]centurion.Task{waits}, "T1", centurion.TaskCompleted, false},
		"whose task has ended":   {[]centurion.Task{ended}, "T1", centurion.TaskCompleted, true},
		"one of two":             {nil, "T2", centurion.TaskCompleted, false},
		"it failed":              {nil, "T1", centurion.TaskFailed, false},
		"nothing comes after":    {nil, "T5", centurion.TaskCompleted, false},
		"an item that is gone":   {nil, "T9", centurion.TaskCompleted, false},
		"a task without an item": {nil, "", centurion.TaskCompleted, false},
	} {
		p := planned(t, text, centurion.Mission{}, test.tasks...)
		got, err := p.WouldFree(t.Context(), centurion.Task{Item: test.item}, test.status)
		if got != test.want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// A revived mission keeps its plan's place, but for an archived plan: that one is copied, and stays what it is.
func TestPlanOfARevivedMission(t *testing.T) {
	t.Parallel()
	ws := project(t)
	const text = "# P\n- [x] T1 One\n"
	archived := workspace.ArchivePath + "/todo-msn_1.md"
	write(t, ws, archived, text)
	for _, at := range []string{workspace.TodoPath, archived, workspace.ArchivePath + "/todo-gone.md"} {
		path, err := OwnPath(t.Context(), ws, centurion.Mission{ID: "msn_1", Todo: at})
		if archive := strings.HasPrefix(at, workspace.ArchivePath); err != nil || archive == (path == at) || strings.HasPrefix(path, workspace.ArchivePath) {
			t.Errorf("%s is revived at %s: %v", at, path, err)
		}
		if at != archived {
			continue
		}
		for _, path := range []string{path, at} {
			if b, _, err := ws.ReadFile(path, 0); string(b) != text || err != nil {
				t.Errorf("%s: %q, %v", path, b, err)
			}
		}
	}
}

// A copy has items only if the plan has some; one that cannot be read counts as having some.
func TestCopyHasItems(t *testing.T) {
	t.Parallel()
	ws := project(t)
	for text, want := range map[string]bool{"# P\n- [ ] T1 One\n": true, "# P\nNothing yet.\n": false, "# P\n```\n": true, "": false} {
		from := workspace.TodoPath
		if text == "" {
			from = "gone.md"
		} else {
			write(t, ws, from, text)
		}
		path, items, err := Copy(t.Context(), ws, from, "msn_2")
		if err != nil || items != want {
			t.Errorf("%q: %v, %v", text, items, err)
		}
		if b, _, _ := ws.ReadFile(path, 0); text != "" && string(b) != text {
			t.Errorf("%q became %q", text, b)
		}
	}
	if _, items, err := Copy(t.Context(), ws, "", "msn_3"); items || err != nil {
		t.Errorf("of no plan: %v, %v", items, err)
	}
}

// The items that a plan's reviews cover are those before them, and a review without any covers all.
func TestPlannedReviews(t *testing.T) {
	t.Parallel()
	doc, err := todo.Parse([]byte("# P\n- [x] T1 One\n- [x] T2 Two\n- [ ] R1 Look @reviewer\n  - after: T1\n- [-] R2 Look @reviewer\n  - after: T2\n- [ ] R3 Look @reviewer\n"))
	if err != nil {
		t.Fatal(err)
	}
	v := View{Doc: doc}
	for item, want := range map[string][]string{"T1": {"R1", "R3"}, "T2": {"R3"}} {
		if got := v.Planned(item); !slices.Equal(got, want) || v.ReviewItem(item) != want[0] {
			t.Errorf("%s: %s, %s", item, got, v.ReviewItem(item))
		}
	}
}

// An item may be a review that names no reviewer if it has predecessors and neither an agent nor anything to write or to check.
func TestWhatMayBeAReview(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]bool{
		"- [ ] T2 Look\n  - after: T1\n":                     true,
		"- [ ] T2 Look\n":                                    false,
		"- [ ] T2 Look @worker\n  - after: T1\n":             false,
		"- [ ] T2 Look\n  - after: T1\n  - files: a.go\n":    false,
		"- [ ] T2 Look\n  - after: T1\n  - verify: `make`\n": false,
	} {
		doc, err := todo.Parse([]byte("# P\n- [x] T1 One\n" + lines))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(Outline(doc), "if it is itself one, name @reviewer"); got != want {
			t.Errorf("%q: %v", lines, got)
		}
	}
}

// The task that works on an item is found by that item, and by no other.
func TestRunOf(t *testing.T) {
	t.Parallel()
	st := state.New(t.Context(), nil, nil, centurion.Mission{ID: "msn_1"}, nil)
	p := New(st, nil, nil, project(t).Todo(), nil)
	for _, r := range []*state.Run{{ID: "tsk_1", Item: "T1"}, {ID: "tsk_2", Item: "T2"}, {ID: "tsk_3"}} {
		st.Add(r)
	}
	for item, want := range map[string]string{"T1": "tsk_1", "T2": "tsk_2", "T3": ""} {
		if got := p.RunOf(item); got != want {
			t.Errorf("%s: %q", item, got)
		}
	}
}
