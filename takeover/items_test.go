package takeover

import (
	"slices"
	"testing"

	"centurion"
)

// Which items a merge has brought: all where it was the only one and nobody chose, else those whose commits are in it.
func TestItemsOfAMerge(t *testing.T) {
	t.Parallel()
	w := workDone{tasks: []centurion.Task{done("tsk_1", "T1", "1"), done("tsk_2", "T2", "2"), done("tsk_x", "", "2")}}
	for name, c := range map[string]struct {
		merged centurion.Merged
		want   []string
	}{
		"all":          {centurion.Merged{Commits: []string{"1", "2"}}, nil},
		"chosen":       {centurion.Merged{Commits: []string{"2"}, Only: []string{"T2"}}, []string{"T2"}},
		"a second one": {centurion.Merged{Commits: []string{"2"}, Earlier: &centurion.Merged{Commit: "m"}}, []string{"T2"}},
	} {
		if got := w.itemsIn(c.merged); !slices.Equal(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	failed := done("tsk_3", "T3", "3")
	failed.Status = centurion.TaskFailed
	if got := itemsOf(w.tasks[0], w.tasks[1], w.tasks[2], w.tasks[0], failed); !slices.Equal(got, []string{"T1", "T2"}) {
		t.Errorf("of tasks: %q", got)
	}
	all, _ := newestMerge(&centurion.Merged{Before: "b", Commit: "c", Commits: []string{"2"}, Follows: true, Earlier: &centurion.Merged{Before: "a", Commit: "b", Commits: []string{"1"}}})
	if !slices.Equal(all.Commits, []string{"1", "2"}) {
		t.Errorf("a merge and what followed it have %q", all.Commits)
	}
}

// A merge that the person took back themselves is recorded as taken back where that was, and comes back from there.
func TestUndoOfWhatIsGoneAlready(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), t.Context()
	r.git("checkout", "-q", "--detach")
	r.merged()
	merged := r.git("rev-parse", "HEAD")
	r.git("switch", "-q", "main")
	got := r.do(UndoRequest{}, r.mission.ID, "")
	m, err := r.store.Mission(ctx, r.mission.ID)
	if err != nil || m.Merged != nil || len(m.TakenBack) != 1 {
		t.Fatalf("%+v, %+v, %v", m.Merged, m.TakenBack, err)
	}
	if back := m.TakenBack[0]; back.Merge.Branch != "main" || back.Before != merged || back.After != m.Base.Commit || got.Before != merged {
		t.Errorf("recorded %+v, told %+v", back, got)
	}
	r.do(UndoRequest{Redo: true}, r.mission.ID, "")
	if r.git("rev-parse", "main") != merged {
		t.Error("it did not come back as it was")
	}
}

// What comes after the work in the plan is told when that is taken back, not when it comes back.
func TestLaterIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.task.Item = "T2"
	r.add("b.txt")
	r.planned()
	r.write(".opencode/todo.md", "# P\n- [x] T1 Make a.txt @worker\n- [x] T2 More @worker\n  - after: T1\n")
	if got := r.do(UndoRequest{}, r.task.ID, ""); !slices.Equal(got.Later, []string{"T2"}) {
		t.Errorf("later: %q", got.Later)
	}
	if got := r.do(UndoRequest{Redo: true}, r.task.ID, ""); len(got.Later) > 0 {
		t.Errorf("later than what is back: %q", got.Later)
	}
}
