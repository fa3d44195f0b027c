package takeover

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/store"
)

// amend records a change of the mission.
func (r *rig) amend(change func(m *centurion.Mission)) {
	r.t.Helper()
	err := r.store.Update(r.t.Context(), func(tx *store.Tx) error {
		m, err := tx.Mission(r.mission.ID)
		if err != nil {
			return err
		}
		change(&m)
		return tx.PutMission(&m)
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// change has another task write a file that there is, on the mission's branch, and returns it.
func (r *rig) change(name, text string) centurion.Task {
	r.t.Helper()
	r.git("switch", "-q", r.mission.Branch)
	before := r.git("rev-parse", "HEAD")
	r.write(name, text)
	r.git("commit", "-q", "-a", "-m", "Change "+name)
	task := r.task
	task.ID, task.Title = centurion.NewID(centurion.PrefixTask), "Change "+name
	task.Landed = []centurion.Landed{{Commit: r.git("rev-parse", "HEAD"), Before: before, Time: centurion.Now(),
		Files: []centurion.FileChange{{Path: name, Status: "modified", Added: 1, Deleted: 1}}}}
	r.git("switch", "-q", "main")
	if err := r.store.Update(r.t.Context(), func(tx *store.Tx) error { return tx.PutTask(&task) }); err != nil {
		r.t.Fatal(err)
	}
	return task
}

// state is all that a dry run must not change.
func (r *rig) state() string {
	r.t.Helper()
	m, err := r.store.Mission(r.t.Context(), r.mission.ID)
	if err != nil {
		r.t.Fatal(err)
	}
	tasks, err := r.store.Tasks(r.t.Context(), r.mission.ID)
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := json.Marshal([]any{r.git("for-each-ref"), r.git("status", "--porcelain"), m.Merged, m.Reverted, m.TakenBack, m.Status, tasks})
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

// A dry run says what would be done and changes nothing: of a merge, of its undo and redo, of a task's, and of what is on the mission's
// branch only.
func TestDryRun(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), t.Context()
	dry := func(id string, q UndoRequest) UndoReport {
		t.Helper()
		before := r.state()
		q.DryRun = true
		got, err := r.Undo(ctx, id, q)
		if err != nil || got.Refused != nil || !got.DryRun || got.Mission != r.mission.ID || len(got.Files) != 1 || got.Files[0].Path != "a.txt" {
			t.Errorf("dry run of %+v: %+v, %v", q, got, err)
		}
		if after := r.state(); after != before {
			t.Errorf("the dry run of %+v has changed\n%s\ninto\n%s", q, before, after)
		}
		return got
	}
	do := func(id string, q UndoRequest) {
		t.Helper()
		if got, err := r.Undo(ctx, id, q); err != nil || got.Refused != nil {
			t.Fatalf("%+v: %+v, %v", q, got, err)
		}
	}
	if got := dry(r.mission.ID, UndoRequest{}); got.Person || !got.Dropped {
		t.Errorf("of what is not merged: %+v", got)
	}
	if got := dry(r.task.ID, UndoRequest{}); got.Person || got.Title != "Make a.txt" || got.Task != r.task.ID {
		t.Errorf("of a task that is not merged: %+v", got)
	}
	if _, err := r.Undo(ctx, r.mission.ID, UndoRequest{}); centurion.KindOf(err) != centurion.KindUsage || !strings.Contains(centurion.HintOf(err), "--yes") {
		t.Errorf("without being told to: %v", err)
	}
	before := r.state()
	m, err := r.Merge(ctx, r.mission.ID, MergeRequest{DryRun: true})
	if err != nil || m.Refused != nil || !m.DryRun || m.Commits != 1 || m.Goal != "make a.txt" || m.From != r.git("rev-parse", r.mission.Branch) || m.Branch != "main" || len(m.Files) != 1 || r.state() != before {
		t.Errorf("a merge: %+v, %v", m, err)
	}
	if m, err = r.Merge(ctx, r.mission.ID, MergeRequest{}); err != nil || m.After != r.git("rev-parse", "HEAD") {
		t.Fatalf("%+v, %v", m, err)
	}
	if got := dry(r.mission.ID, UndoRequest{}); !got.Person || got.Branch != "main" || got.Before != m.After {
		t.Errorf("of a merge: %+v", got)
	}
	if got := dry(r.task.ID, UndoRequest{}); !got.Person {
		t.Errorf("of a merged task: %+v", got)
	}
	do(r.mission.ID, UndoRequest{})
	if got := dry(r.mission.ID, UndoRequest{Redo: true}); !got.Person || !got.Redo {
		t.Errorf("of an undo: %+v", got)
	}
	do(r.mission.ID, UndoRequest{Redo: true})
	do(r.task.ID, UndoRequest{})
	dry(r.task.ID, UndoRequest{Redo: true})
	r.has("a.txt", "")
}

// What there is nothing of to merge, to take back or to bring back is refused with what there is instead.
func TestNothingToDo(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), t.Context()
	refused := func(what string, err error, msg, hint string) {
		t.Helper()
		if centurion.KindOf(err) != centurion.KindConflict || !strings.Contains(err.Error(), msg) || !strings.Contains(centurion.HintOf(err), hint) {
			t.Errorf("%s: %v (%s)", what, err, centurion.HintOf(err))
		}
	}
	undo := func(id string, q UndoRequest) error {
		t.Helper()
		_, err := r.Undo(ctx, id, q)
		return err
	}
	refused("redo of a task that stands", undo(r.task.ID, UndoRequest{Redo: true}), "was not reverted", "centurion show "+r.task.ID)
	refused("redo of a mission that stands", undo(r.mission.ID, UndoRequest{Redo: true}), "", "")
	if _, err := r.Merge(ctx, r.mission.ID, MergeRequest{}); err != nil {
		t.Fatal(err)
	}
	_, err := r.Merge(ctx, r.mission.ID, MergeRequest{})
	refused("a second merge", err, "was merged already: on main as "+r.git("rev-parse", "HEAD")[:12], "centurion undo "+r.mission.ID)
	_, err = r.Merge(ctx, r.mission.ID, MergeRequest{Only: []string{r.task.ID}})
	refused("a second merge of an item", err, r.task.ID+" of mission "+r.mission.ID+" was merged already", "centurion undo")
	if err := undo(r.task.ID, UndoRequest{}); err != nil {
		t.Fatal(err)
	}
	refused("a second undo", undo(r.task.ID, UndoRequest{}), "was reverted already", "centurion undo --redo "+r.task.ID)

	r = newRig(t)
	got, err := r.Undo(ctx, r.mission.ID, UndoRequest{Drop: true})
	if err != nil || !got.Dropped || got.Kept == "" || r.git("rev-parse", got.Kept) != got.Before || r.git("rev-parse", r.mission.Branch) != r.mission.Base.Commit || got.Back != "centurion undo --redo "+r.mission.ID {
		t.Errorf("what is dropped: %+v, %v", got, err)
	}
	refused("what was dropped", undo(r.mission.ID, UndoRequest{Drop: true}), "was reverted already", "centurion undo --redo "+r.mission.ID)
	refused("redo of a task that went with its mission", undo(r.task.ID, UndoRequest{Redo: true}), "was reverted with its mission", "centurion undo --redo "+r.mission.ID)
	_, err = r.Merge(ctx, r.mission.ID, MergeRequest{})
	refused("a merge of what was dropped", err, "has changed nothing: there is nothing to merge", "centurion show")
	if err := undo(r.mission.ID, UndoRequest{Redo: true}); err != nil || r.git("rev-parse", r.mission.Branch) != got.Before {
		t.Errorf("what was dropped is not back: %v", err)
	}
	task, err := r.store.Task(ctx, r.task.ID)
	if err != nil || !task.Undone.IsZero() {
		t.Errorf("the task is recorded as taken back: %v, %v", task.Undone, err)
	}

	r.amend(func(m *centurion.Mission) { m.Base = nil })
	_, err = r.Merge(ctx, r.mission.ID, MergeRequest{})
	refused("a mission that has not begun", err, "has not begun to work yet", "centurion show")
}

// What other work was built on is not taken back before that, which is named with the files.
func TestUndoOfWhatOthersBuiltOn(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), t.Context()
	r.add("b.txt")
	later := r.change("a.txt", "b\n")
	before := r.state()
	got, err := r.Undo(ctx, r.task.ID, UndoRequest{})
	if err != nil || got.Refused == nil || r.state() != before {
		t.Fatalf("%+v, %v", got, err)
	}
	if f := got.Refused; !strings.Contains(f.Why, `built on it in a.txt, and the two do not come apart`) || strings.Contains(f.Why, "and ") && strings.Contains(f.Why, "b.txt") ||
		f.Next != "revert the newest first: centurion undo "+later.ID || len(f.Conflicts) != 1 || f.Conflicts[0].Path != "a.txt" || got.Back != "" {
		t.Errorf("%+v, back %q", f, got.Back)
	}
	for _, id := range []string{later.ID, r.task.ID} {
		if got, err := r.Undo(ctx, id, UndoRequest{}); err != nil || got.Refused != nil || got.Back != "centurion undo --redo "+id {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if files := r.git("ls-tree", "--name-only", r.mission.Branch); files != "b.txt\ngo.txt" {
		t.Errorf("left are %q", files)
	}
	if got, err := r.Undo(ctx, r.task.ID, UndoRequest{Redo: true}); err != nil || got.Refused != nil || got.Back != "centurion undo "+r.task.ID {
		t.Errorf("brought back: %+v, %v", got, err)
	}
}

// A mission that is not complete is merged only when somebody says so, or in parts.
func TestMergeOfUnfinished(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		q  func(r *rig) MergeRequest
		ok bool
	}{
		"nobody said so": {func(*rig) MergeRequest { return MergeRequest{} }, false},
		"said so":        {func(*rig) MergeRequest { return MergeRequest{Unfinished: true} }, true},
		"a part":         {func(r *rig) MergeRequest { return MergeRequest{Only: []string{r.task.ID}} }, true},
		"a dry run":      {func(*rig) MergeRequest { return MergeRequest{DryRun: true} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.amend(func(m *centurion.Mission) { m.Status, m.Reason = centurion.MissionPaused, "enough" })
			got, err := r.Merge(t.Context(), r.mission.ID, test.q(r))
			if strings.Join(got.Unfinished, "|") != "it is paused (enough)" {
				t.Errorf("unfinished %q", got.Unfinished)
			}
			if test.ok != (err == nil) {
				t.Fatalf("%v", err)
			}
			if err != nil && (centurion.KindOf(err) != centurion.KindConflict || !strings.Contains(err.Error(), "is not complete: it is paused (enough)") || !strings.Contains(centurion.HintOf(err), "centurion resume "+r.mission.ID) || r.recorded() != nil) {
				t.Errorf("%v, recorded %+v", err, r.recorded())
			}
		})
	}
}

// Of a mission that is not complete a merge names the items of its plan that are open, and neither those that were cancelled nor the groups
// they are in.
func TestUnfinishedItems(t *testing.T) {
	t.Parallel()
	r := newRig(t).planned()
	r.write(".opencode/todo.md", "# P\n- [x] T1 Make a.txt @worker\n- [ ] T2 The rest\n  - [ ] T3 Make b.txt @worker\n  - [-] T4 Make c.txt @worker\n- [ ] T5 Look at it @reviewer\n")
	r.amend(func(m *centurion.Mission) { m.Status, m.Reason = centurion.MissionPaused, "enough" })
	got, err := r.Merge(t.Context(), r.mission.ID, MergeRequest{DryRun: true})
	if want := []string{"it is paused (enough)", "T3 is open, T5 is open"}; err != nil || !slices.Equal(got.Unfinished, want) {
		t.Errorf("unfinished %q, want %q, %v", got.Unfinished, want, err)
	}
}

// Where the person's own work stands in the way a merge names the files, what to do, and what can be merged at this moment.
func TestMergeInTheWay(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), t.Context()
	r.add("b.txt")
	r.write("a.txt", "mine\n")
	r.git("add", "a.txt")
	before := r.state()
	got, err := r.Merge(ctx, r.mission.ID, MergeRequest{})
	if err != nil || got.Refused == nil || r.state() != before {
		t.Fatalf("%+v, %v", got, err)
	}
	if f := got.Refused; f.Why != "you have uncommitted work in a.txt, which would have to be changed" || !strings.HasPrefix(f.Next, "commit it, or ") ||
		!strings.Contains(f.Next, "; or merge now what does not touch these files: centurion merge "+r.mission.ID+" --only ") || strings.Join(f.Overlap, " ") != "a.txt" {
		t.Errorf("uncommitted: %+v", f)
	}
	if got, err = r.Merge(ctx, r.mission.ID, MergeRequest{Only: []string{r.task.ID}}); err != nil || got.Refused == nil || !strings.HasPrefix(got.Refused.Next, "commit it, or ") {
		t.Errorf("uncommitted, one task: %+v, %v", got.Refused, err)
	}
	r.git("commit", "-q", "-m", "mine")
	if got, err = r.Merge(ctx, r.mission.ID, MergeRequest{}); err != nil || got.Refused == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	if f := got.Refused; !strings.Contains(f.Why, "it does not agree with what your branch has: a.txt") || !strings.Contains(f.Next, "centurion diff "+r.mission.ID) ||
		len(f.Conflicts) != 1 || f.Conflicts[0].Path != "a.txt" || !strings.Contains(f.Next, "--only ") {
		t.Errorf("committed: %+v", f)
	}
	if got, err = r.Merge(ctx, r.mission.ID, MergeRequest{Only: []string{r.task.ID}}); err != nil || got.Refused == nil || !strings.HasPrefix(got.Refused.Why, r.task.ID+" cannot be merged alone: ") {
		t.Errorf("alone: %+v, %v", got.Refused, err)
	}
	if r.recorded() != nil {
		t.Errorf("recorded %+v", r.recorded())
	}
}

// What is told of a merge: where to, which files, and whether a person or the mission itself has done it.
func TestMergeIsTold(t *testing.T) {
	t.Parallel()
	for _, unasked := range []bool{false, true} {
		r, ctx := newRig(t), t.Context()
		if unasked {
			r.MergeUnasked(ctx, r.mission.ID)
		} else if _, err := r.Merge(ctx, r.mission.ID, MergeRequest{}); err != nil {
			t.Fatal(err)
		}
		events, err := r.store.Events(ctx, store.EventQuery{Mission: r.mission.ID, Types: []centurion.EventType{centurion.EventMergeDone}})
		if err != nil || len(events) != 1 {
			t.Fatalf("%v, %v", events, err)
		}
		d, err := event.Decode[event.MergeData](events[0])
		if err != nil || d.Branch != "main" || strings.Join(d.Files, " ") != "a.txt" || !d.Person {
			t.Errorf("unasked %v: %+v, %v", unasked, d, err)
		}
		m, err := r.store.Mission(ctx, r.mission.ID)
		if err != nil || m.Merged.Branch != "main" || m.Merged.Before != m.Base.Commit || m.Merged.Commit != r.git("rev-parse", "HEAD") || m.Merged.Time.IsZero() || m.Merged.From != r.git("rev-parse", r.mission.Branch) {
			t.Errorf("recorded %+v, %v", m.Merged, err)
		}
	}
}

// Work that a redo would bring onto what the person has changed meanwhile is refused, and stays where it can be brought back from.
func TestRedoInTheWay(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), t.Context()
	if _, err := r.Merge(ctx, r.mission.ID, MergeRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Undo(ctx, r.mission.ID, UndoRequest{}); err != nil {
		t.Fatal(err)
	}
	r.write("a.txt", "mine\n")
	got, err := r.Undo(ctx, r.mission.ID, UndoRequest{Redo: true})
	if err != nil || got.Refused == nil || strings.Join(got.Refused.Overlap, " ") != "a.txt" || r.recorded() != nil {
		t.Fatalf("%+v, %v, recorded %+v", got, err, r.recorded())
	}
	r.has("a.txt", "mine\n")
	if err := os.Remove(filepath.Join(r.dir, "a.txt")); err != nil {
		t.Fatal(err)
	}
	if got, err = r.Undo(ctx, r.mission.ID, UndoRequest{Redo: true}); err != nil || got.Refused != nil || got.Undone.IsZero() {
		t.Errorf("%+v, %v", got, err)
	}
	r.has("a.txt", "a\n")
}

// An item is named by its id, a task by its own or the beginning of that; what is not there is answered with what is near, or with all.
func TestNamed(t *testing.T) {
	t.Parallel()
	w := workDone{mission: centurion.Mission{ID: "msn_1"}, tasks: []centurion.Task{
		{ID: "tsk_abcdef1", Item: "T1"}, {ID: "tsk_abcdef2", Item: "T2"}, {ID: "tsk_xyzxyz1", Number: 7}, {ID: "tsk_abcdef3", Item: "T1"}}}
	for name, want := range map[string]string{"T1": "tsk_abcdef1 tsk_abcdef3", "t2": "tsk_abcdef2", "tsk_xyzxyz1": "tsk_xyzxyz1", "tsk_xyz": "", "tsk_xyzx": "tsk_xyzxyz1",
		"tsk_abcdef": "", "T": "", "T9": ""} {
		var got []string
		for _, t := range w.named(name) {
			got = append(got, t.ID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if err := w.unknown("T22"); centurion.HintOf(err) != "did you mean T2?" {
		t.Errorf("near: %v (%s)", err, centurion.HintOf(err))
	}
	if err := w.unknown("completely else"); !strings.Contains(err.Error(), "it has ") || !strings.Contains(err.Error(), "T1") {
		t.Errorf("not near: %v", err)
	}
}

// What an undo has done to the branch is recorded, whoever is cancelled meanwhile: of the task and of what it means for the plan.
func TestUndoIsNotCutOff(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w, err := r.workOf(t.Context(), r.mission.ID)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	now := centurion.Now()
	if _, err := r.revert(ctx, w, centurion.Reverted{What: "it", Task: r.task.ID}, nil, []centurion.Task{r.task}, func(t *centurion.Task) { t.Undone = now }); err != nil {
		t.Error(err)
	}
	m, err := r.store.Mission(t.Context(), r.mission.ID)
	task, terr := r.store.Task(t.Context(), r.task.ID)
	if err != nil || terr != nil || len(m.Reverted) != 1 || task.Undone.IsZero() {
		t.Errorf("%+v, %v, undone %v, %v", m.Reverted, err, task.Undone, terr)
	}
	if err := r.restore(ctx, w, "it", []centurion.Task{task}, func(t *centurion.Task) { t.Undone = centurion.Time{} }, func(centurion.Reverted) bool { return true }); err != nil {
		t.Error(err)
	}
	if task, err = r.store.Task(t.Context(), r.task.ID); err != nil || !task.Undone.IsZero() {
		t.Errorf("brought back: undone %v, %v", task.Undone, err)
	}
}

// After a merge was recorded, the work is what its rows say, also those of its task: another host may have written them meanwhile.
func TestRecordedWorkIsReadAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w, err := r.workOf(t.Context(), r.task.ID)
	if err != nil {
		t.Fatal(err)
	}
	now := r.task
	now.Title = "meanwhile"
	r.put(&now)
	if err := r.recordMerged(t.Context(), &w, func(m *centurion.Mission) { m.Goal = "changed" }, nil); err != nil {
		t.Fatal(err)
	}
	if w.task.Title != now.Title || w.mission.Goal != "changed" || !slices.ContainsFunc(w.tasks, func(t centurion.Task) bool { return t.Title == now.Title }) {
		t.Errorf("task %q, mission %q", w.task.Title, w.mission.Goal)
	}
}
