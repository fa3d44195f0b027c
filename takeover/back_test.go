package takeover

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/store"
)

func at(sec int) centurion.Time { return centurion.Time{Time: time.Unix(int64(sec), 0)} }

// What comes back first is what was taken back last: a task's work, a merge, or all of the mission.
func TestLatestUndo(t *testing.T) {
	t.Parallel()
	alone := func(id string, sec int) centurion.Task { // taken back by a commit of its own
		return centurion.Task{ID: id, Undone: at(sec), Landed: []centurion.Landed{{Commit: "1"}, {Commit: "2", Reverts: true}}}
	}
	whole := func(id string, sec int) centurion.Task { // with its mission
		return centurion.Task{ID: id, Undone: at(sec), Landed: []centurion.Landed{{Commit: "1"}}}
	}
	stands := centurion.Task{ID: "stands", Landed: []centurion.Landed{{Commit: "1"}}}
	merge := func(sec int) []centurion.TakenBack { return []centurion.TakenBack{{Time: at(1)}, {Time: at(sec)}} }
	for name, c := range map[string]struct {
		tasks   []centurion.Task
		back    []centurion.TakenBack
		dropped bool
		what    tookBack
		task    string
		at      int
	}{
		"nothing":                    {[]centurion.Task{stands}, nil, false, tookNothing, "", 0},
		"the newest of two tasks":    {[]centurion.Task{alone("a", 5), alone("b", 9), alone("c", 7), stands}, nil, false, tookTask, "b", 9},
		"a task after a merge":       {[]centurion.Task{alone("a", 5)}, merge(4), false, tookTask, "a", 5},
		"a merge after a task":       {[]centurion.Task{alone("a", 5)}, merge(6), false, tookMerge, "", 6},
		"the mission after a task":   {[]centurion.Task{alone("a", 5), whole("b", 6)}, nil, false, tookBranch, "", 6},
		"a task after the mission":   {[]centurion.Task{whole("b", 6), alone("a", 7)}, nil, false, tookTask, "a", 7},
		"its branch is at its start": {[]centurion.Task{whole("b", 6)}, merge(9), true, tookBranch, "", 6},
		"without work":               {[]centurion.Task{{ID: "x", Undone: at(9)}}, nil, false, tookNothing, "", 0},
	} {
		w := workDone{mission: centurion.Mission{TakenBack: c.back}, tasks: c.tasks}
		what, task, when := w.latestUndo(c.dropped)
		want := centurion.Time{}
		if c.at > 0 {
			want = at(c.at)
		}
		if what != c.what || idOf(task) != c.task || !when.Equal(want.Time) {
			t.Errorf("%s: %d, %q at %v, want %d, %q at %v", name, what, idOf(task), when, c.what, c.task, want)
		}
	}
}

// do runs an undo that has to end well, or to be refused with these words.
func (r *rig) do(q UndoRequest, id, refused string) UndoReport {
	r.t.Helper()
	got, err := r.Undo(r.t.Context(), id, q)
	said := ""
	switch {
	case err != nil:
		said = err.Error() + " " + centurion.HintOf(err)
	case got.Refused != nil:
		said = got.Refused.Why + " " + got.Refused.Next
	}
	if !strings.Contains(said, refused) || (said == "") != (refused == "") {
		r.t.Fatalf("%+v of %s: %q, want %q", q, id, said, refused)
	}
	return got
}

func (r *rig) merged() {
	r.t.Helper()
	if got, err := r.Merge(r.t.Context(), r.mission.ID, MergeRequest{}); err != nil || got.Refused != nil {
		r.t.Fatalf("%+v, %v", got, err)
	}
}

// A merge that was taken back comes back on the branch that it was on, also when the mission's own is gone.
func TestRedoOfAMerge(t *testing.T) {
	t.Parallel()
	redo := UndoRequest{Redo: true}
	for name, f := range map[string]func(t *testing.T, r *rig){
		"its branch is gone": func(t *testing.T, r *rig) {
			r.do(redo, r.mission.ID, "has no reverted change")
			r.merged()
			r.do(UndoRequest{}, r.mission.ID, "")
			r.git("branch", "-D", r.mission.Branch)
			r.do(redo, r.mission.ID, "")
			r.has("a.txt", "a\n")
		},
		"nothing was taken back and its branch is gone": func(t *testing.T, r *rig) {
			r.git("branch", "-D", r.mission.Branch)
			r.do(redo, r.mission.ID, "is gone")
		},
		"it was on a detached HEAD": func(t *testing.T, r *rig) {
			r.git("checkout", "-q", "--detach")
			r.merged()
			r.do(UndoRequest{}, r.mission.ID, "")
			r.git("switch", "-q", "main")
			r.do(redo, r.mission.ID, "git switch --detach ")
			r.git("checkout", "-q", "--detach")
			r.do(redo, r.mission.ID, "")
			r.has("a.txt", "a\n")
		},
		"one of two": func(t *testing.T, r *rig) {
			old := centurion.TakenBack{Merge: centurion.Merged{Branch: "main", Before: "x", Commit: "y", Commits: []string{"z"}}, Time: at(1)}
			r.merged()
			r.do(UndoRequest{}, r.mission.ID, "")
			r.amend(func(m *centurion.Mission) { m.TakenBack = append([]centurion.TakenBack{old}, m.TakenBack...) })
			r.do(redo, r.mission.ID, "")
			m, err := r.store.Mission(t.Context(), r.mission.ID)
			if err != nil || len(m.TakenBack) != 1 || m.TakenBack[0].Merge.Commit != "y" || m.Merged == nil {
				t.Errorf("taken back: %+v, merged %+v, %v", m.TakenBack, m.Merged, err)
			}
		},
		"the person has made the same change": func(t *testing.T, r *rig) {
			r.merged()
			r.do(UndoRequest{}, r.mission.ID, "")
			r.write("a.txt", "a\n")
			r.git("add", "-A")
			r.git("commit", "-qm", "mine")
			before := r.state()
			r.do(redo, r.mission.ID, "are in your branch already")
			if r.state() != before {
				t.Error("something was touched")
			}
		},
		"it is back already": func(t *testing.T, r *rig) { // by a host that died, or by hand
			r.merged()
			tip := r.git("rev-parse", "HEAD")
			r.do(UndoRequest{}, r.mission.ID, "")
			r.git("reset", "-q", "--hard", tip)
			before := r.state()
			if got := r.do(UndoRequest{Redo: true, DryRun: true}, r.mission.ID, ""); got.After != tip || r.state() != before {
				t.Errorf("a look at it: %+v", got)
			}
			if got := r.do(redo, r.mission.ID, ""); got.After != tip || !got.Person || len(got.Files) != 1 {
				t.Errorf("%+v", got)
			}
			if m := r.recorded(); m == nil || m.Commit != tip {
				t.Errorf("recorded %+v", m)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); f(t, newRig(t)) })
	}
}

// What was dropped with its mission comes back unless there is other work by then, and says what was done to which tasks.
func TestDropAndRedo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add("b.txt")
	single := r.change("b.txt", "c\n")
	tip := r.git("rev-parse", r.mission.Branch)
	r.do(UndoRequest{}, single.ID, "")
	r.do(UndoRequest{}, r.mission.ID, "its own branch would be reset to its start to do so: centurion undo "+r.mission.ID+" --yes")
	dropped := r.git("rev-parse", r.mission.Branch)
	got := r.do(UndoRequest{Drop: true}, r.mission.ID, "")
	kept := "refs/centurion/undone/" + r.mission.ID + "/1"
	if !got.Dropped || got.Kept != kept || got.Before != dropped || r.git("rev-parse", kept) != dropped || r.git("rev-parse", r.mission.Branch) != r.mission.Base.Commit {
		t.Errorf("dropped: %+v", got)
	}
	r.do(UndoRequest{Drop: true}, r.mission.ID, "was reverted already")
	r.git("switch", "-q", r.mission.Branch)
	r.write("new.txt", "n\n")
	r.git("add", ".")
	r.git("commit", "-q", "-m", "other work")
	r.git("switch", "-q", "main")
	r.do(UndoRequest{Redo: true}, r.mission.ID, "has done other work since")
	r.git("update-ref", "refs/heads/"+r.mission.Branch, r.mission.Base.Commit)
	r.do(UndoRequest{Redo: true}, r.mission.ID, "")
	if now := r.git("rev-parse", r.mission.Branch); now != dropped || now == tip {
		t.Errorf("the branch is at %s, want %s", now, dropped)
	}
	tasks, err := r.store.Tasks(t.Context(), r.mission.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks { // what was taken back alone before stays so
		if task.Undone.IsZero() == (task.ID == single.ID) {
			t.Errorf("%s is undone at %v", task.Title, task.Undone)
		}
	}
	r.do(UndoRequest{Drop: true}, r.mission.ID, "")
	if second := strings.TrimSuffix(kept, "1") + "2"; r.git("rev-parse", second) != dropped {
		t.Error("the second one is not kept beside the first")
	}
}

// A merge that is asked for again takes the commits that are not on the branch yet, alone if some are.
func TestChooseAgain(t *testing.T) {
	t.Parallel()
	back := centurion.TakenBack{Merge: centurion.Merged{From: "tip", Commits: []string{"1", "2", "3"}}}
	for name, c := range map[string]struct {
		merged        *centurion.Merged
		only          []string
		commits, lone []string
	}{
		"all":            {nil, nil, []string{"1", "2", "3"}, nil},
		"some are there": {&centurion.Merged{Commit: "m", Commits: []string{"2"}}, nil, []string{"1", "3"}, []string{"1", "3"}},
		"by name":        {nil, []string{"T1"}, []string{"1", "2", "3"}, []string{"1", "2", "3"}},
		"all are there":  {&centurion.Merged{Commit: "m", Commits: []string{"1", "2", "3"}}, nil, nil, nil},
	} {
		b := back
		b.Merge.Only = c.only
		w := workDone{mission: centurion.Mission{Base: &centurion.Base{Commit: "base"}, Merged: c.merged}}
		got, _ := w.chooseAgain(b)
		if !slices.Equal(got.commits, c.commits) || !slices.Equal(got.options.Only, c.lone) || !got.options.Again || got.options.Tip != "tip" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Who built on work that cannot be taken out is named, newest first, with the files; work of before it is not.
func TestStandsOn(t *testing.T) {
	t.Parallel()
	task := func(item string, sec int, f centurion.FileChange) centurion.Task {
		return centurion.Task{ID: "tsk_" + item, Item: item, Landed: []centurion.Landed{{Commit: item, Time: at(sec), Files: []centurion.FileChange{f}}}}
	}
	mine := task("T1", 5, centurion.FileChange{Path: "a"})
	gone := task("T6", 9, centurion.FileChange{Path: "a"})
	gone.Undone = at(10)
	w := workDone{mission: centurion.Mission{ID: "msn_1"}, task: &mine, tasks: []centurion.Task{mine, task("T2", 4, centurion.FileChange{Path: "a"}),
		task("T3", 6, centurion.FileChange{Path: "a"}), task("T4", 7, centurion.FileChange{Path: "b", Old: "a"}), task("T5", 8, centurion.FileChange{Path: "c"}), gone}}
	got := w.standsOn(mine.Landed[0])
	if got.Why != "T3, T4 built on it in a, b, and the two do not come apart" || got.Next != "revert the newest first: centurion undo tsk_T4" || len(got.Conflicts) != 2 {
		t.Errorf("%+v", got)
	}
	w.tasks = w.tasks[:2]
	if got := w.standsOn(mine.Landed[0]); !strings.Contains(got.Next, "take the whole mission back: centurion undo msn_1") {
		t.Errorf("nobody: %+v", got)
	}
}

// The undo of a task whose commit was made before its host died, and not recorded, is recorded when it is asked for again.
func TestCommittedUndoIsRecorded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	task := r.change("a.txt", "b\n")
	r.do(UndoRequest{}, task.ID, "")
	tip := r.git("rev-parse", r.mission.Branch)
	if err := r.store.Update(t.Context(), func(tx *store.Tx) error { return errors.Join(tx.PutTask(&task), tx.PutMission(&r.mission)) }); err != nil {
		t.Fatal(err)
	}
	if got := r.do(UndoRequest{}, task.ID, ""); got.Before != task.Landed[0].Commit || got.After != tip || r.git("rev-parse", r.mission.Branch) != tip {
		t.Errorf("%+v, want the commit %s", got, tip)
	}
	now, err := r.store.Task(t.Context(), task.ID)
	if err != nil || now.Undone.IsZero() || len(now.Landed) != 2 || now.Landed[1].Commit != tip || now.Landed[1].Before != task.Landed[0].Commit {
		t.Errorf("recorded %+v, %v", now.Landed, err)
	}
}

// Names in a line are at most twelve.
func TestSomeNames(t *testing.T) {
	t.Parallel()
	twelve := strings.Split("a b c d e f g h i j k l", " ")
	if got := someNames(twelve); got != strings.Join(twelve, ", ") {
		t.Error(got)
	}
	if got := someNames(append(twelve, "m", "n")); !strings.HasSuffix(got, "k, l and 2 more") {
		t.Error(got)
	}
}

// Of work in the project itself the parts count that are known: what still runs ends now, a file that moved goes back to its old
// name, and the oldest writing says where all began.
func TestWroteOf(t *testing.T) {
	t.Parallel()
	w := workDone{mission: centurion.Mission{Updated: at(9), Wrote: []centurion.Landed{{Before: "1", Commit: "2"}, {Commit: "x"}}}, tasks: []centurion.Task{
		{ID: "runs", Landed: []centurion.Landed{{Before: "3", Commit: "4"}}},
		{ID: "ended", Ended: at(5), Landed: []centurion.Landed{{Before: "5", Commit: "6"}}},
	}}
	flat := func(all []centurion.Landed) string {
		var b strings.Builder
		for _, l := range all {
			b.WriteString(l.Before + "-" + l.Commit + " ")
		}
		return b.String()
	}
	if got := flat(w.wrote()); got != "5-6 1-2 3- " {
		t.Errorf("of all: %s", got)
	}
	w.task = &w.tasks[1]
	if got := flat(w.wrote()); got != "5-6 " {
		t.Errorf("of one: %s", got)
	}
	moved := []centurion.Landed{{Before: "1", Commit: "2", Time: at(2), Files: []centurion.FileChange{{Path: "b", Old: "a"}}},
		{Before: "0", Commit: "3", Time: at(1), Files: []centurion.FileChange{{Path: "a"}}}}
	got := spans(moved, "now")
	if len(got) != 2 || got[0].from != "0" || got[0].to != "3" || !slices.Equal(got[0].paths, []string{"a"}) || got[1].from != "1" || got[1].to != "2" || !slices.Equal(got[1].paths, []string{"b"}) {
		t.Errorf("spans %+v", got)
	}
	if w := (workDone{}); w.takenBack() {
		t.Error("no work at all is taken back")
	}
}

// A change of what is recorded leaves the values alone that others have read.
func TestRecordIsNotShared(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), t.Context()
	r.merged()
	r.amend(func(m *centurion.Mission) { m.Updated = at(1) })
	w, err := r.workOf(ctx, r.mission.ID)
	if err == nil {
		err = w.open(ctx, r.Person)
	}
	if err != nil {
		t.Fatal(err)
	}
	held, updated := w.mission.Merged, w.mission.Updated
	if err := r.recordMerged(ctx, &w, func(m *centurion.Mission) { m.Merged.Commit = "other" }, nil); err != nil {
		t.Fatal(err)
	}
	if held.Commit == "other" || w.mission.Merged.Commit != "other" || !w.mission.Updated.After(updated.Time) {
		t.Errorf("%+v, now %+v; updated %v, before %v", held, w.mission.Merged, w.mission.Updated, updated)
	}
}

// A task that changed its own work later is undone as a whole, its newest change first.
func TestUndoOfATaskThatLandedTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before := r.git("rev-parse", r.mission.Branch)
	r.git("switch", "-q", r.mission.Branch)
	r.write("a.txt", "b\n")
	r.git("commit", "-q", "-a", "-m", "Change a.txt")
	r.git("switch", "-q", "main")
	r.task.Landed = append(r.task.Landed, centurion.Landed{Commit: r.git("rev-parse", r.mission.Branch), Before: before, Time: centurion.Now(),
		Files: []centurion.FileChange{{Path: "a.txt", Status: "modified", Added: 1}}})
	if err := r.store.Update(t.Context(), func(tx *store.Tx) error { return tx.PutTask(&r.task) }); err != nil {
		t.Fatal(err)
	}
	r.do(UndoRequest{}, r.task.ID, "")
	if got := r.git("ls-tree", "-r", "--name-only", r.mission.Branch); got != "go.txt" {
		t.Errorf("the branch still has %q", got)
	}
}
