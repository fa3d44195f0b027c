package takeover

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/orchestrator"
	"centurion/store"
	"centurion/workspace"
	"centurion/worktree"
)

// newShared makes a mission that works in the project itself. Its tasks are made by writing: see [rig.wrote].
func newShared(t *testing.T, files map[string]string) (*rig, *worktree.Shadow) {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	s, err := store.Open(t.Context(), filepath.Join(home, "p.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	shadow, err := worktree.OpenShadow(t.Context(), worktree.Options{Dir: dir, Home: home})
	if err != nil {
		t.Fatal(err)
	}
	h := orchestrator.New(orchestrator.Config{Store: s, Workspace: ws, Shadow: func(context.Context) (*worktree.Shadow, error) { return shadow, nil }})
	r := &rig{Person: New(h, s, ws), t: t, dir: dir}
	for name, text := range files {
		r.write(name, text)
	}
	now := centurion.Now()
	r.mission = centurion.Mission{ID: centurion.NewID(centurion.PrefixMission), Goal: "change it", Status: centurion.MissionPaused, Directory: dir, Started: now, Updated: now,
		Session: centurion.NewID(centurion.PrefixSession), Isolation: centurion.IsolationShared}
	r.put(nil)
	return r, shadow
}

// put stores the mission and a task of it.
func (r *rig) put(t *centurion.Task) {
	r.t.Helper()
	err := r.store.Update(r.t.Context(), func(tx *store.Tx) error {
		if t != nil {
			return tx.PutTask(t)
		}
		return tx.PutMission(&r.mission)
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// wrote makes a task that has changed files so many seconds after the beginning: "" takes one away. Without an end it is still at work.
func (r *rig) wrote(s *worktree.Shadow, sec int, ended bool, files map[string]string) centurion.Task {
	r.t.Helper()
	ctx, when := r.t.Context(), centurion.Time{Time: r.mission.Started.Add(time.Duration(sec) * time.Second)}
	l := centurion.Landed{Time: when, Before: r.save(s)}
	for name, text := range files {
		if text != "" {
			r.write(name, text)
		} else if err := os.Remove(filepath.Join(r.dir, name)); err != nil {
			r.t.Fatal(err)
		}
	}
	now := r.save(s)
	var err error
	if l.Files, err = s.Stat(ctx, l.Before, now); err != nil {
		r.t.Fatal(err)
	}
	t := centurion.Task{ID: centurion.NewID(centurion.PrefixTask), Mission: r.mission.ID, Agent: "worker", Title: "Change it", Status: centurion.TaskRunning, Created: when}
	if ended {
		l.Commit, t.Ended, t.Status = now, when, centurion.TaskCompleted
	}
	t.Landed = []centurion.Landed{l}
	r.put(&t)
	return t
}

func (r *rig) save(s *worktree.Shadow) string {
	r.t.Helper()
	tree, err := s.Save(r.t.Context(), "test")
	if err != nil {
		r.t.Fatal(err)
	}
	return tree
}

func (r *rig) undone(id string) bool {
	r.t.Helper()
	t, err := r.store.Task(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return !t.Undone.IsZero()
}

// Where a directory with somebody's files has taken the place of a file, nothing is taken back, and nothing is recorded as taken back.
func TestUndoBlockedByDirectory(t *testing.T) {
	t.Parallel()
	r, s := newShared(t, map[string]string{"gone": "1\n", "a": "1\n"})
	task := r.wrote(s, 1, true, map[string]string{"gone": "", "a": "2\n"})
	if err := os.Mkdir(filepath.Join(r.dir, "gone"), 0o777); err != nil {
		t.Fatal(err)
	}
	r.write("gone/mine", "mine\n")
	for _, q := range []UndoRequest{{}, {Force: true}, {DryRun: true}} {
		got, err := r.Undo(t.Context(), task.ID, q)
		if err != nil || got.Refused == nil || !slices.Equal(got.Refused.Overlap, []string{"gone"}) || !strings.Contains(got.Refused.Next, "centurion undo "+task.ID) {
			t.Errorf("%+v: %+v, %v", q, got.Refused, err)
		}
	}
	r.has("a", "2\n")
	r.has("gone/mine", "mine\n")
	if r.undone(task.ID) {
		t.Error("it is recorded as taken back")
	}
	if err := os.RemoveAll(filepath.Join(r.dir, "gone")); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Undo(t.Context(), task.ID, UndoRequest{}); err != nil || got.Refused != nil || !r.undone(task.ID) {
		t.Errorf("%+v, %v", got, err)
	}
	r.has("gone", "1\n")
	r.has("a", "1\n")
}

// A task that had not ended when its mission was paused has written last: nobody has changed its files since, and a redo brings back what
// they were.
func TestUndoOfPausedMission(t *testing.T) {
	t.Parallel()
	r, s := newShared(t, map[string]string{"a": "1\n"})
	r.wrote(s, 1, true, map[string]string{"a": "2\n"})
	late := r.wrote(s, 2, false, map[string]string{"a": "3\n", "b": "b\n"})
	late.Landed[0].Commit = late.Landed[0].Before // as after a command of its own that came before its last write
	r.put(&late)
	ctx := t.Context()
	if got, err := r.Diff(ctx, r.mission.ID, DiffOptions{Patch: true}); err != nil || !strings.Contains(got.Patch, "+3") || strings.Contains(got.Patch, "+2") {
		t.Errorf("the diff is %q, %v", got.Patch, err)
	}
	if got, err := r.Undo(ctx, r.mission.ID, UndoRequest{}); err != nil || got.Refused != nil {
		t.Fatalf("%+v, %v", got.Refused, err)
	}
	r.has("a", "1\n")
	r.has("b", "")
	if got, err := r.Undo(ctx, r.mission.ID, UndoRequest{Redo: true}); err != nil || got.Refused != nil {
		t.Fatalf("%+v, %v", got.Refused, err)
	}
	r.has("a", "3\n")
	r.has("b", "b\n")
}

// An undo and a redo that a host has died in, after the files and before the record, are complete when they are asked for again.
func TestUndoCutOff(t *testing.T) {
	t.Parallel()
	r, s := newShared(t, map[string]string{"a": "1\n"})
	task := r.wrote(s, 1, true, map[string]string{"a": "2\n"})
	ctx := t.Context()
	for _, x := range []struct {
		text string
		q    UndoRequest
	}{{"1\n", UndoRequest{}}, {"2\n", UndoRequest{Redo: true}}} {
		r.write("a", x.text)
		if got, err := r.Undo(ctx, task.ID, x.q); err != nil || r.undone(task.ID) == x.q.Redo || len(got.Files) != 1 {
			t.Errorf("%+v: %+v, %v", x.q, got, err)
		}
		if _, err := r.Undo(ctx, task.ID, x.q); centurion.KindOf(err) != centurion.KindConflict {
			t.Errorf("%+v once more: %v", x.q, err)
		}
		r.has("a", x.text)
	}
}

// Of a redo it is said when its own task was taken back, not when another one was.
func TestRedoSaysWhen(t *testing.T) {
	t.Parallel()
	r, s := newShared(t, map[string]string{"a": "1\n", "b": "1\n"})
	first := r.wrote(s, 1, true, map[string]string{"a": "2\n"})
	second := r.wrote(s, 2, true, map[string]string{"b": "2\n"})
	ctx := t.Context()
	if _, err := r.Undo(ctx, first.ID, UndoRequest{}); err != nil {
		t.Fatal(err)
	}
	second.Undone = centurion.Time{Time: time.Now().Add(time.Hour)}
	r.put(&second)
	was, err := r.store.Task(ctx, first.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Undo(ctx, first.ID, UndoRequest{Redo: true, DryRun: true}); err != nil || !got.Undone.Equal(was.Undone.Time) {
		t.Errorf("%v, want %v, %v", got.Undone, was.Undone, err)
	}
}

// What was recorded without a tree belongs to no history, a file that was renamed is both, and a path names what lies below it only.
func TestSharedFiles(t *testing.T) {
	t.Parallel()
	files := []centurion.FileChange{{Path: "new", Old: "old"}}
	w := workDone{task: &centurion.Task{Landed: []centurion.Landed{{Commit: "c", Files: files}, {Before: "a", Commit: "b", Files: files}}, Ended: centurion.Now()}}
	all := w.wrote()
	if len(all) != 1 || all[0].Commit != "b" {
		t.Fatalf("%+v", all)
	}
	if got := spans(all, "now"); len(got) != 1 || !slices.Equal(got[0].paths, []string{"new", "old"}) || got[0].to != "b" {
		t.Errorf("%+v", got)
	}
	names := []string{"a", "a/b", "ab", "c"}
	for path, want := range map[string][]string{"a": {"a", "a/b"}, "./a/": {"a", "a/b"}, ".": names, "d": nil} {
		if got := namedIn(names, []string{path}); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// A task that is at work is not taken back alone, and nothing is touched where a file has changed since or it is only asked.
func TestUndoTouchesNothing(t *testing.T) {
	t.Parallel()
	r, s := newShared(t, map[string]string{"a": "1\n", "b": "1\n"})
	done := r.wrote(s, 1, true, map[string]string{"a": "2\n"})
	open := r.wrote(s, 2, false, map[string]string{"b": "2\n"})
	ctx := t.Context()
	if _, err := r.Undo(ctx, open.ID, UndoRequest{}); centurion.KindOf(err) != centurion.KindConflict || !strings.Contains(centurion.HintOf(err), "centurion cancel "+open.ID) {
		t.Errorf("%v, hint %q", err, centurion.HintOf(err))
	}
	if got, err := r.Undo(ctx, done.ID, UndoRequest{DryRun: true}); err != nil || len(got.Files) != 1 || !got.Person || r.undone(done.ID) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := r.Undo(ctx, done.ID, UndoRequest{Redo: true}); centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("nothing was taken back: %v", err)
	}
	r.write("a", "mine\n")
	if got, err := r.Undo(ctx, done.ID, UndoRequest{}); err != nil || got.Refused == nil || !slices.Equal(got.Refused.Overlap, []string{"a"}) || r.undone(done.ID) {
		t.Errorf("%+v, %v", got.Refused, err)
	}
	r.has("a", "mine\n")
	r.has("b", "2\n")
}

// What a mission's own agent has written is taken back and brought back like a task's, also with what was changed since.
func TestUndoOfOwnWriting(t *testing.T) {
	t.Parallel()
	r, s := newShared(t, map[string]string{"a": "1\n"})
	before := r.save(s)
	r.write("a", "2\n")
	after := r.save(s)
	r.mission.Wrote = []centurion.Landed{{Time: centurion.Now(), Before: before, Commit: after, Files: []centurion.FileChange{{Path: "a", Status: "modified"}}}}
	r.put(nil)
	ctx := t.Context()
	for _, text := range []string{"2\n", "mine\n"} { // the second time somebody has changed it since
		r.write("a", text)
		if got, err := r.Undo(ctx, r.mission.ID, UndoRequest{Force: true}); err != nil || got.Refused != nil {
			t.Fatalf("%+v, %v", got.Refused, err)
		}
		r.has("a", "1\n")
		if _, err := r.Undo(ctx, r.mission.ID, UndoRequest{}); centurion.KindOf(err) != centurion.KindConflict {
			t.Errorf("once more: %v", err)
		}
		if got, err := r.Undo(ctx, r.mission.ID, UndoRequest{Redo: true}); err != nil || got.Refused != nil {
			t.Fatalf("%+v, %v", got.Refused, err)
		}
		r.has("a", text)
		m, err := r.store.Mission(ctx, r.mission.ID)
		if err != nil || m.Wrote[0].Forced != "" {
			t.Errorf("it is still recorded that it was taken back by force: %+v, %v", m.Wrote, err)
		}
		r.write("a", "2\n")
	}
}

// A task that was taken back before keeps what its own undo has recorded when its mission is taken back with force.
func TestForcedOnlyOfWhatIsThere(t *testing.T) {
	t.Parallel()
	r, s := newShared(t, map[string]string{"a": "1\n", "b": "1\n"})
	first := r.wrote(s, 1, true, map[string]string{"a": "2\n"})
	r.wrote(s, 2, true, map[string]string{"b": "2\n"})
	ctx := t.Context()
	r.write("a", "mine\n")
	for _, id := range []string{first.ID, r.mission.ID} {
		if id == r.mission.ID {
			r.write("b", "mine, too\n")
		}
		if got, err := r.Undo(ctx, id, UndoRequest{Force: true}); err != nil || got.Refused != nil {
			t.Fatalf("%+v, %v", got.Refused, err)
		}
	}
	r.has("a", "1\n")
	r.has("b", "1\n")
	if got, err := r.Undo(ctx, r.mission.ID, UndoRequest{Redo: true}); err != nil || got.Refused != nil {
		t.Fatalf("%+v, %v", got.Refused, err)
	}
	r.has("a", "mine\n")
	r.has("b", "mine, too\n")
}

// What a redo has brought back is the work's again: the next undo and redo know nothing of what was changed before. And what stands as it
// should in one file only is not taken back yet.
func TestUndoAfterForcedRedo(t *testing.T) {
	t.Parallel()
	r, s := newShared(t, map[string]string{"a": "1\n", "b": "1\n"})
	first := r.wrote(s, 1, true, map[string]string{"a": "2\n"})
	r.wrote(s, 2, true, map[string]string{"b": "2\n"})
	ctx := t.Context()
	r.write("a", "mine\n")
	for _, q := range []UndoRequest{{Force: true}, {Redo: true}} {
		if got, err := r.Undo(ctx, first.ID, q); err != nil || got.Refused != nil {
			t.Fatalf("%+v: %+v, %v", q, got.Refused, err)
		}
	}
	r.has("a", "mine\n")
	r.write("a", "2\n")
	for _, q := range []UndoRequest{{}, {Redo: true}} {
		if got, err := r.Undo(ctx, first.ID, q); err != nil || got.Refused != nil {
			t.Fatalf("%+v: %+v, %v", q, got.Refused, err)
		}
	}
	r.has("a", "2\n")
	r.write("b", "1\n")
	if got, err := r.Undo(ctx, r.mission.ID, UndoRequest{Force: true}); err != nil || got.Refused != nil || !r.undone(first.ID) {
		t.Errorf("%+v, %v", got.Refused, err)
	}
	r.has("a", "1\n")
}

// What somebody writes after it was looked at is not touched, and not said to be taken back.
func TestRestoreChangedMeanwhile(t *testing.T) {
	t.Parallel()
	r, s := newShared(t, map[string]string{"a": "1\n"})
	task := r.wrote(s, 1, true, map[string]string{"a": "2\n"})
	l := task.Landed[0]
	r.write("a", "mine\n")
	if err := restoreAll(t.Context(), s, []span{{l.Before, l.Commit, []string{"a"}}}, UndoRequest{}, task.ID); centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("%v", err)
	}
	r.has("a", "mine\n")
}
