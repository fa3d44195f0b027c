package takeover

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/orchestrator"
	"centurion/store"
	"centurion/workspace"
	"centurion/worktree"
)

// rig is a person's repository and a mission that is complete: its one task has put a.txt on the mission's branch, and nothing is merged.
type rig struct {
	*Person
	t       *testing.T
	dir     string
	mission centurion.Mission
	task    centurion.Task
}

func newRig(t *testing.T) *rig {
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
	h := orchestrator.New(orchestrator.Config{Store: s, Workspace: ws, Worktrees: func(ctx context.Context) (*worktree.Repo, error) {
		return worktree.Open(ctx, worktree.Options{Dir: dir, Home: home})
	}})
	r := &rig{Person: New(h, s, ws), t: t, dir: dir}
	r.git("init", "-q", "-b", "main")
	r.write("go.txt", "go\n")
	r.git("add", ".")
	r.git("commit", "-q", "-m", "first")
	r.work()
	return r
}

// work makes the mission's branch and records mission and task.
func (r *rig) work() {
	r.t.Helper()
	id, now := centurion.NewID(centurion.PrefixMission), centurion.Now()
	base := centurion.Base{Commit: r.git("rev-parse", "HEAD"), Head: r.git("rev-parse", "HEAD"), Branch: "main"}
	branch := "centurion/" + id + "/mission"
	r.git("switch", "-q", "-c", branch)
	r.write("a.txt", "a\n")
	r.git("add", ".")
	r.git("commit", "-q", "-m", "Make a.txt")
	tip := r.git("rev-parse", "HEAD")
	r.git("switch", "-q", "main")
	r.mission = centurion.Mission{ID: id, Goal: "make a.txt", Status: centurion.MissionCompleted, Directory: r.dir, Started: now, Updated: now,
		Session: centurion.NewID(centurion.PrefixSession), Isolation: centurion.IsolationWorktree, Base: &base, Branch: branch}
	r.task = centurion.Task{ID: centurion.NewID(centurion.PrefixTask), Mission: id, Agent: "worker", Title: "Make a.txt", Status: centurion.TaskCompleted,
		Created: now, Ended: now, Landed: []centurion.Landed{{Commit: tip, Before: base.Commit, Time: now,
			Files: []centurion.FileChange{{Path: "a.txt", Status: "added", Added: 1}}}}}
	err := r.store.Update(r.t.Context(), func(tx *store.Tx) error {
		if err := tx.PutMission(&r.mission); err != nil {
			return err
		}
		return tx.PutTask(&r.task)
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// git runs git as the person would, with nothing of the machine's configuration.
func (r *rig) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=Person", "-c", "user.email=person@localhost"}, args...)...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *rig) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o666); err != nil {
		r.t.Fatal(err)
	}
}

// has checks what a file of the person's says; "" means that it is not there.
func (r *rig) has(name, text string) {
	r.t.Helper()
	got, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	if string(got) != text {
		r.t.Errorf("%s says %q, want %q", name, got, text)
	}
}

func (r *rig) recorded() *centurion.Merged {
	r.t.Helper()
	rec, err := r.store.Mission(r.t.Context(), r.mission.ID)
	if err != nil {
		r.t.Fatal(err)
	}
	return rec.Merged
}

// A branch of the person's that lost the commit on which the mission began is merged into, and the report names that commit.
func TestMergeNamesALostBase(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	merge := func(want string) {
		t.Helper()
		got, err := r.Merge(t.Context(), r.mission.ID, MergeRequest{DryRun: true})
		if err != nil || got.Lost != want {
			t.Errorf("lost %q, want %q, %v", got.Lost, want, err)
		}
	}
	merge("")
	r.git("commit", "-q", "--amend", "-m", "another first")
	merge(r.mission.Base.Head)
	r.git("switch", "-q", "-c", "topic")
	merge("")
}

// A merge that nobody watches and that the person's own work stands in the way of is told of, and leaves no record of a merge.
func TestMergeUnasked(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), t.Context()
	w, err := r.workOf(ctx, r.mission.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.mergeable(ctx, &w); err != nil {
		t.Fatal(err)
	}
	chosen, err := w.choose(ctx, MergeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	r.write("a.txt", "mine\n")
	report := MergeReport{Branch: "main", Before: r.git("rev-parse", "HEAD")}
	if err := r.merge(ctx, &w, chosen, MergeRequest{}, &report); err != nil || report.Refused == nil || r.recorded() != nil {
		t.Errorf("written after it was looked at: %+v, %v, recorded %+v", report.Refused, err, r.recorded())
	}
	r.MergeUnasked(ctx, r.mission.ID)
	told, err := r.store.Events(ctx, store.EventQuery{Mission: r.mission.ID, Types: []centurion.EventType{centurion.EventMergeConflict}})
	if err != nil || len(told) != 1 || string(told[0].Data) != `{"branch":"main","files":["a.txt"],"person":true}` {
		t.Errorf("refusals told: %v, %v", told, err)
	}
	r.has("a.txt", "mine\n")
	if err := os.Remove(filepath.Join(r.dir, "a.txt")); err != nil {
		t.Fatal(err)
	}
	r.MergeUnasked(ctx, r.mission.ID)
	r.has("a.txt", "a\n")
	if got := r.recorded(); got == nil || got.Commit != r.git("rev-parse", "HEAD") {
		t.Errorf("recorded %+v", got)
	}
}

// What was merged is taken back, brought back, and the task alone is taken back, each as it is asked for.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), t.Context()
	first := r.git("rev-parse", "HEAD")
	if got, err := r.Diff(ctx, r.task.ID, DiffOptions{Patch: true}); err != nil || !strings.Contains(got.Patch, "+a") || len(got.Files) != 1 {
		t.Errorf("diff: %+v, %v", got, err)
	}
	if got, err := r.Merge(ctx, r.mission.ID, MergeRequest{}); err != nil || got.Refused != nil {
		t.Fatalf("merge: %+v, %v", got, err)
	}
	merged := r.git("rev-parse", "HEAD")
	r.has("a.txt", "a\n")
	for _, step := range []struct {
		name, id string
		q        UndoRequest
		file     string
		head     string // "" means a new commit
	}{
		{"undo", r.mission.ID, UndoRequest{}, "", first},
		{"redo", r.mission.ID, UndoRequest{Redo: true}, "a\n", merged},
		{"undo of the task", r.task.ID, UndoRequest{}, "", ""},
		{"redo of the task", r.task.ID, UndoRequest{Redo: true}, "a\n", ""},
	} {
		before := r.git("rev-parse", "HEAD")
		got, err := r.Undo(ctx, step.id, step.q)
		if err != nil || got.Refused != nil || !got.Person {
			t.Fatalf("%s: %+v, %v", step.name, got, err)
		}
		r.has("a.txt", step.file)
		if head := r.git("rev-parse", "HEAD"); step.head != "" && head != step.head || head == before {
			t.Errorf("%s: the branch stands at %s", step.name, head)
		}
	}
	task, err := r.store.Task(ctx, r.task.ID)
	if err != nil || len(task.Landed) != 3 || !task.Landed[1].Reverts || task.Landed[2].Reverts || !task.Undone.IsZero() {
		t.Errorf("recorded of the task: %+v, %v", task.Landed, err)
	}
	if got := r.recorded(); len(got.Only) > 0 || !got.Follows { // all of it is there
		t.Errorf("recorded of the mission: %+v", got)
	}
	events, err := r.store.Events(ctx, store.EventQuery{Mission: r.mission.ID, Types: []centurion.EventType{centurion.EventMergeDone, centurion.EventMergeUndone}, Limit: 100})
	var told []string
	for _, e := range events {
		told = append(told, strings.TrimSpace(string(e.Type)+" "+strings.Replace(e.Task, r.task.ID, "t", 1)))
	}
	if got, want := strings.Join(told, ", "), "merge.done, merge.undone, merge.done, merge.undone t, merge.done t"; err != nil || got != want {
		t.Errorf("told %q, %v, want %q", got, err, want)
	}
}

// A merge that was taken back on one branch is not brought back because another branch has its commit.
func TestRedoOnAnotherBranch(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), t.Context()
	if _, err := r.Merge(ctx, r.mission.ID, MergeRequest{}); err != nil {
		t.Fatal(err)
	}
	merged := r.git("rev-parse", "HEAD")
	if _, err := r.Undo(ctx, r.mission.ID, UndoRequest{}); err != nil {
		t.Fatal(err)
	}
	r.git("switch", "-q", "-c", "other", merged)
	got, err := r.Undo(ctx, r.mission.ID, UndoRequest{Redo: true})
	if err != nil || got.Refused == nil || !strings.Contains(got.Refused.Why, "reverted on main, and this is other") || r.recorded() != nil {
		t.Errorf("%+v, %v, recorded %+v", got.Refused, err, r.recorded())
	}
}

// Which items were merged stays recorded when one of their tasks is taken back.
func TestUndoOfATaskKeepsWhatWasChosen(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), t.Context()
	if got, err := r.Merge(ctx, r.mission.ID, MergeRequest{Only: []string{r.task.ID}}); err != nil || got.Refused != nil {
		t.Fatalf("%+v, %v", got, err)
	}
	chosen := r.recorded().Only
	if got, err := r.Undo(ctx, r.task.ID, UndoRequest{}); err != nil || got.Refused != nil {
		t.Fatalf("%+v, %v", got, err)
	}
	if got := r.recorded().Only; len(chosen) == 0 || !slices.Equal(got, chosen) {
		t.Errorf("merged were %q, and after the undo %q", chosen, got)
	}
}

// Beside what is in the way stands what neither changes these files nor moves them away.
func TestBesides(t *testing.T) {
	t.Parallel()
	task := func(item, commit string, f centurion.FileChange) centurion.Task {
		return centurion.Task{ID: "tsk_" + item, Item: item, Landed: []centurion.Landed{{Commit: commit, Files: []centurion.FileChange{f}}}}
	}
	w := workDone{tasks: []centurion.Task{task("T1", "1", centurion.FileChange{Path: "a"}), task("T2", "2", centurion.FileChange{Path: "b", Old: "a"}),
		task("T3", "3", centurion.FileChange{Path: "c", Old: "d"})}}
	names, commits := w.besides(nil, []string{"1", "2", "3"}, map[string]bool{"a": true})
	if strings.Join(names, " ") != "T3" || strings.Join(commits, " ") != "3" {
		t.Errorf("items %q, commits %q", names, commits)
	}
}

// The diff of a task that was cancelled has what it did and what was not merged: it stands on a branch of the task's own.
func TestDiffOfKeptWork(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), t.Context()
	r.task.Status, r.task.Landed = centurion.TaskCancelled, nil
	if err := r.store.Update(ctx, func(tx *store.Tx) error { return tx.PutTask(&r.task) }); err != nil {
		t.Fatal(err)
	}
	c, err := r.Diff(ctx, r.task.ID, DiffOptions{Patch: true})
	if err != nil || len(c.Files) != 0 {
		t.Fatalf("without a branch: %+v, %v", c.Files, err)
	}
	own := strings.TrimSuffix(r.mission.Branch, "mission") + r.task.ID
	for i, branch := range []string{own, own + "-2"} {
		r.git("switch", "-q", "-c", branch, r.mission.Branch)
		if i == 1 { // an attempt has gone on with what was there
			r.git("checkout", "-q", own, "--", ".")
			r.write("c.txt", "c\n")
		}
		r.write("b.txt", "b\n")
		r.git("add", ".")
		r.git("commit", "-q", "-m", "Unfinished work")
	}
	r.git("switch", "-q", "main")
	c, err = r.Diff(ctx, r.task.ID, DiffOptions{Patch: true})
	if err != nil || strings.Join(centurion.Paths(c.Files), " ") != "b.txt c.txt" || !strings.Contains(c.Patch, "+++ b/c.txt") || strings.Contains(c.Patch, "a.txt") {
		t.Fatalf("%+v, %v\n%s", c.Files, err, c.Patch)
	}
	if b := c.Files[0]; b.Added != 1 || strings.Count(c.Patch, "+++ b/b.txt") != 1 { // both branches have it
		t.Errorf("b.txt counts %d added lines:\n%s", b.Added, c.Patch)
	}
	r.git("branch", "-D", r.mission.Branch)
	if c, err = r.Diff(ctx, r.task.ID, DiffOptions{}); err != nil || !strings.Contains(strings.Join(centurion.Paths(c.Files), " "), "b.txt c.txt") {
		t.Errorf("without the mission's branch: %+v, %v", c.Files, err)
	}
}

// A merge after a chain of merges lays only what is new onto the person's branch, commit by commit, and nothing twice.
func TestMergeAfterAChain(t *testing.T) {
	for name, first := range map[string]func(r *rig) []string{
		"that began with one item": func(r *rig) []string { return []string{r.task.ID} },
		"of everything":            func(*rig) []string { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.write("mine.txt", "mine\n")
			r.git("add", ".")
			r.git("commit", "-q", "-m", "Mine")
			merge := func(only ...string) {
				t.Helper()
				if got, err := r.Merge(t.Context(), r.mission.ID, MergeRequest{Only: only}); err != nil || got.Refused != nil {
					t.Fatalf("%+v, %v", got, err)
				}
			}
			r.add("b.txt")
			merge(first(r)...)
			r.add("c.txt")
			merge()
			before := r.git("rev-parse", "HEAD")
			r.add("d.txt")
			merge()
			if got := r.git("log", "--format=%s %P", before+"..HEAD"); got != "Make d.txt "+before {
				t.Errorf("the third merge added:\n%s", got)
			}
			for _, name := range []string{"a", "b", "c", "d"} {
				if n := strings.Count(r.git("log", "--format=%s"), "Make "+name+".txt"); n != 1 {
					t.Errorf("%s.txt is made %d times", name, n)
				}
			}
			r.has("b.txt", "b.txt\n")
			r.has("d.txt", "d.txt\n")
		})
	}
}

// add puts a file on the mission's branch as the work of another task.
func (r *rig) add(name string) {
	r.t.Helper()
	r.git("switch", "-q", r.mission.Branch)
	before := r.git("rev-parse", "HEAD")
	r.write(name, name+"\n")
	r.git("add", ".")
	r.git("commit", "-q", "-m", "Make "+name)
	task := r.task
	task.ID = centurion.NewID(centurion.PrefixTask)
	task.Landed = []centurion.Landed{{Commit: r.git("rev-parse", "HEAD"), Before: before, Time: centurion.Now(),
		Files: []centurion.FileChange{{Path: name, Status: "added", Added: 1}}}}
	r.git("switch", "-q", "main")
	if err := r.store.Update(r.t.Context(), func(tx *store.Tx) error { return tx.PutTask(&task) }); err != nil {
		r.t.Fatal(err)
	}
}

// The commit that a merge makes names the goal in one short line, the items that were chosen, and the mission.
func TestMergeMessage(t *testing.T) {
	t.Parallel()
	m := centurion.Mission{ID: "msn_1", Goal: strings.Repeat("rate ", 20) + "\nwith a second line"}
	for name, c := range map[string]struct {
		only []string
		body string
	}{"all": {nil, ""}, "some": {[]string{"T1", "T3"}, "Items: T1, T3\n"}} {
		subject, body, _ := strings.Cut(mergeMessage(m, MergeRequest{Only: c.only}), "\n")
		if !strings.HasPrefix(subject, "rate rate ") || len([]rune(subject)) > 73 || body != "\n"+c.body+"Mission: msn_1\n" {
			t.Errorf("%s: %q, %q", name, subject, body)
		}
	}
}

// Of what was asked for by name only that is merged which still stands: what was taken back with its mission does not come back
// with a task that did the item anew, and alone there is nothing of it to merge.
func TestOnlyWhatStillStands(t *testing.T) {
	t.Parallel()
	now := centurion.Now()
	at := func(commits ...string) (all []centurion.Landed) {
		for _, c := range commits {
			all = append(all, centurion.Landed{Commit: c, Reverts: strings.HasPrefix(c, "-"), Time: now})
		}
		return all
	}
	task := func(id, item string, undone centurion.Time, commits ...string) centurion.Task {
		return centurion.Task{ID: id, Item: item, Status: centurion.TaskCompleted, Undone: undone, Landed: at(commits...)}
	}
	w := workDone{tasks: []centurion.Task{
		task("tsk_old", "T1", now, "1"), // with its mission
		task("tsk_new", "T1", centurion.Time{}, "2", "3"),
		task("tsk_gone", "T2", now, "4"),
		task("tsk_back", "T3", now, "5", "-5"), // alone
		task("tsk_again", "T4", centurion.Time{}, "6", "-6", "7"),
		task("tsk_none", "T5", centurion.Time{}),
	}}
	for names, want := range map[string]string{"T1": "2 3", "tsk_new": "2 3", "T4,t1": "2 3 7", "T2": "it was reverted", "tsk_old": "it was reverted",
		"T3": "it was reverted", "T5": "it has changed nothing", "T4,T2": "it was reverted", "T9": "no item and no task"} {
		got, err := w.only(strings.Split(names, ","))
		if err != nil {
			if !strings.Contains(err.Error(), want) || len(got) > 0 {
				t.Errorf("%s: %v, %v, want %q", names, got, err, want)
			}
			continue
		}
		if have := strings.Join(slices.Sorted(maps.Keys(got)), " "); have != want {
			t.Errorf("%s: %q, want %q", names, have, want)
		}
	}
}

// What is refused because it comes after something else in the plan is told with the branch that it was to come onto.
func TestRefusedForThePlanNamesTheBranch(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), t.Context()
	if err := os.MkdirAll(filepath.Join(r.dir, ".opencode"), 0o777); err != nil {
		t.Fatal(err)
	}
	r.write(".opencode/todo.md", "# P\n- [x] T1 One\n- [x] T2 Two\n  - after: T1\n")
	r.mission.Todo, r.task.Item, r.task.Outside = ".opencode/todo.md", "T2", []string{"a.txt"}
	one := centurion.Task{ID: centurion.NewID(centurion.PrefixTask), Mission: r.mission.ID, Item: "T1", Status: centurion.TaskCompleted, Created: r.task.Created,
		Landed: []centurion.Landed{{Commit: strings.Repeat("1", 40), Time: r.task.Created}}}
	if err := r.store.Update(ctx, func(tx *store.Tx) error {
		return errors.Join(tx.PutMission(&r.mission), tx.PutTask(&r.task), tx.PutTask(&one))
	}); err != nil {
		t.Fatal(err)
	}
	for _, dry := range []bool{true, false} {
		got, err := r.Merge(ctx, r.mission.ID, MergeRequest{Only: []string{"T2"}, DryRun: dry})
		if err != nil || got.Refused == nil || !strings.Contains(got.Refused.Why, "T2 comes after T1") {
			t.Fatalf("%+v, %v", got, err)
		}
		if got.Branch != "main" || got.Before != r.git("rev-parse", "HEAD") || got.After != "" {
			t.Errorf("dry %v: onto %q at %q, then %q", dry, got.Branch, got.Before, got.After)
		}
		if len(got.Items) != 1 || !slices.Equal(got.Items[0].Outside, r.task.Outside) {
			t.Errorf("items %+v", got.Items)
		}
	}
	r.has("a.txt", "")
}
