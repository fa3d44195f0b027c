package takeover

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"centurion"
	"centurion/store"
	"centurion/workspace/todo"
)

func planFor(t *testing.T, text string) *todo.Doc {
	t.Helper()
	doc, err := todo.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// done makes a task of an item with these commits.
func done(id, item string, commits ...string) centurion.Task {
	t := centurion.Task{ID: id, Item: item, Status: centurion.TaskCompleted}
	for _, c := range commits {
		t.Landed = append(t.Landed, centurion.Landed{Commit: c})
	}
	return t
}

func undone(t centurion.Task) centurion.Task { t.Undone = centurion.Now(); return t }

// What is merged by name has what it comes after in the plan: on the branch, in the same merge, or because somebody insists.
func TestLacking(t *testing.T) {
	t.Parallel()
	plan := planFor(t, "# P\n- [x] T1 One\n- [x] T2 Two\n  - after: T1\n- [x] T3 Three\n  - after: T2\n")
	two := done("tsk_2", "T2", "2")
	for name, c := range map[string]struct {
		tasks     []centurion.Task
		merged    []string
		q         MergeRequest
		commits   []string // that are chosen
		why, next string   // words of the refusal; empty if there is none
	}{
		"it is missing": {[]centurion.Task{done("tsk_1", "T1", "1"), two}, nil, MergeRequest{Only: []string{"T2"}, DryRun: true}, []string{"2"},
			"T2 comes after T1 in the plan, which is not on your branch", "merge both: centurion merge msn_1 --only T1,T2; or T2 as it is, if you know that it works: centurion merge msn_1 --only T2 --force"},
		"all of them":         {[]centurion.Task{done("tsk_1", "T1", "1"), two}, nil, MergeRequest{}, []string{"2"}, "", ""},
		"somebody insists":    {[]centurion.Task{done("tsk_1", "T1", "1"), two}, nil, MergeRequest{Only: []string{"T2"}, Force: true}, []string{"2"}, "", ""},
		"in the same merge":   {[]centurion.Task{done("tsk_1", "T1", "1"), two}, nil, MergeRequest{Only: []string{"T1", "T2"}}, []string{"1", "2"}, "", ""},
		"merged already":      {[]centurion.Task{done("tsk_1", "T1", "1"), two}, []string{"1"}, MergeRequest{Only: []string{"T2"}}, []string{"2"}, "", ""},
		"half of it merged":   {[]centurion.Task{done("tsk_1", "T1", "1", "1b"), two}, []string{"1"}, MergeRequest{Only: []string{"T2"}}, []string{"2"}, "T2 comes after T1", "--only T1,T2"},
		"never done":          {[]centurion.Task{done("tsk_1", "T1"), two}, nil, MergeRequest{Only: []string{"T2"}}, []string{"2"}, "", ""},
		"reverted":            {[]centurion.Task{undone(done("tsk_1", "T1", "1")), two}, nil, MergeRequest{Only: []string{"T2"}}, []string{"2"}, "T2 comes after T1 in the plan, and T1 was reverted", "restore it: centurion undo --redo tsk_1; or merge without it: centurion merge msn_1 --only T2 --force"},
		"reverted, was empty": {[]centurion.Task{undone(done("tsk_1", "T1")), two}, nil, MergeRequest{Only: []string{"T2"}}, []string{"2"}, "", ""},
		"reverted and done again": {[]centurion.Task{undone(done("tsk_1", "T1", "1")), done("tsk_9", "T1", "9"), two}, []string{"9"}, MergeRequest{Only: []string{"T2"}}, []string{"2"},
			"", ""},
		"two come late": {[]centurion.Task{done("tsk_1", "T1", "1"), two, done("tsk_3", "T3", "3")}, nil, MergeRequest{Only: []string{"T2", "T3"}, Squash: true}, []string{"2", "3"},
			"T2, T3 come after T1 in the plan", "merge all of them: centurion merge msn_1 --only T1,T2,T3 --squash; or T2, T3 as they are, if you know that they work"},
	} {
		w := workDone{mission: centurion.Mission{ID: "msn_1"}, tasks: c.tasks}
		if len(c.merged) > 0 {
			w.mission.Merged = &centurion.Merged{Commit: "m", Commits: c.merged}
		}
		r := w.lacking(plan, picked{commits: c.commits}, c.q)
		switch {
		case r == nil && c.why == "":
		case r == nil || c.why == "" || !strings.Contains(r.Why, c.why) || !strings.Contains(r.Next, c.next):
			t.Errorf("%s: %+v", name, r)
		}
	}
	w := workDone{tasks: []centurion.Task{two, done("tsk_3", "T3", "3"), undone(done("tsk_3b", "T3", "4")), done("tsk_x", "T2")}}
	one := done("tsk_1", "T1", "1")
	w.task = &one
	if got := w.later(plan); !slices.Equal(got, []string{"T2", "T3"}) {
		t.Errorf("later than T1: %q", got)
	}
	w.tasks[1] = undone(w.tasks[1])
	if got := w.later(plan); !slices.Equal(got, []string{"T2"}) {
		t.Errorf("without what was undone: %q", got)
	}
}

// A command that is told says all that was asked for.
func TestMergeCommandSaysAll(t *testing.T) {
	t.Parallel()
	for want, q := range map[string]MergeRequest{
		"centurion merge m":                                  {DryRun: true},
		"centurion merge m --only T1,T2":                     {Only: []string{"T1", "T2"}},
		"centurion merge m --squash --yes":                   {Squash: true, Unfinished: true},
		"centurion merge m --only T1 --squash --yes --force": {Only: []string{"T1"}, Squash: true, Unfinished: true, Force: true},
	} {
		if got := mergeCommand("m", q); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A merge takes what is not there yet: from where the last one ended, or commit by commit where some were left out or anything was
// taken back.
func TestChooseWhatIsNotThere(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), t.Context()
	r.add("b.txt")
	commits := strings.Fields(r.git("rev-list", "--reverse", "main.."+r.mission.Branch))
	whole := &centurion.Merged{Branch: "main", Commit: "m", From: commits[0], Commits: commits[:1]}
	part, second := *whole, *whole
	part.Only = []string{"T1"}
	second.Earlier = &centurion.Merged{Commit: "e"}
	for name, c := range map[string]struct {
		merged *centurion.Merged
		q      MergeRequest
		only   []string
		base   centurion.Base
	}{
		"nothing is there":        {nil, MergeRequest{}, nil, *r.mission.Base},
		"one merge of all so far": {whole, MergeRequest{}, nil, centurion.Base{Commit: commits[0], Head: "m", Branch: "main"}},
		"one of a part":           {&part, MergeRequest{}, commits[1:], *r.mission.Base},
		"a second one":            {&second, MergeRequest{}, commits[1:], *r.mission.Base},
		"by name":                 {nil, MergeRequest{Only: []string{r.task.ID}}, commits[:1], *r.mission.Base},
	} {
		for _, back := range []bool{false, true} {
			r.amend(func(m *centurion.Mission) {
				m.Merged, m.TakenBack = c.merged, nil
				if back {
					m.TakenBack = []centurion.TakenBack{{Merge: *whole}}
				}
			})
			w, err := r.workOf(ctx, r.mission.ID)
			if err == nil {
				err = w.open(ctx, r.Person)
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := w.choose(ctx, c.q)
			if o := got.options; err != nil || !slices.Equal(o.Only, c.only) || !reflect.DeepEqual(o.Base, c.base) || o.Again != back || o.Tip != commits[1] || got.tip != commits[1] {
				t.Errorf("%s, taken back %v: %+v, %v", name, back, got, err)
			}
		}
	}
}

// What a task's diff shows: its commits as one step where nobody else's lie between, the mission's in order, and text that is not
// UTF-8 byte for byte.
func TestDiffOfSteps(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), t.Context()
	r.git("switch", "-q", r.mission.Branch)
	commit := func(name, text string) centurion.Landed {
		before := r.git("rev-parse", "HEAD")
		r.write(name, text)
		r.git("add", ".")
		r.git("commit", "-q", "-m", "Make "+name)
		return centurion.Landed{Before: before, Commit: r.git("rev-parse", "HEAD"), Time: centurion.Now()}
	}
	second := commit("b.txt", "b\n")
	commit("other.txt", "o\n") // somebody else's
	third := commit("latin.txt", "caf\xe9\n")
	all := strings.Fields(r.git("rev-list", "--reverse", "main..HEAD"))
	r.git("switch", "-q", "main")
	r.task.Landed = append(r.task.Landed, second, third)
	r.put(&r.task)
	c, err := r.Diff(ctx, r.task.ID, DiffOptions{Patch: true})
	if err != nil || strings.Join(centurion.Paths(c.Files), " ") != "a.txt b.txt latin.txt" || len(c.Commits) != 3 {
		t.Fatalf("%+v, %v", c, err)
	}
	if strings.Count(c.Patch, "# ") != 1 || !strings.Contains(c.Patch, "# commit "+third.Commit) {
		t.Errorf("the steps are\n%s", c.Patch)
	}
	if utf8.ValidString(string(c.Bytes())) || !strings.Contains(string(c.Raw), "caf\xe9") {
		t.Errorf("the bytes are %q", c.Raw)
	}
	c, err = r.Diff(ctx, r.mission.ID, DiffOptions{Patch: true, Paths: []string{"b.txt"}})
	if err != nil || !slices.Equal(c.Commits, all) || c.Raw != nil || len(c.Files) != 4 || !strings.Contains(c.Patch, "+++ b/b.txt") || strings.Contains(c.Patch, "a.txt") {
		t.Errorf("of the mission: %+v, %v", c, err)
	}
}

// Of tasks that ended without success the branches are named that hold more than the mission began with.
func TestUnmerged(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), t.Context()
	family := strings.TrimSuffix(r.mission.Branch, "mission")
	var tasks []centurion.Task
	want := map[string]string{}
	for i, s := range []centurion.TaskStatus{centurion.TaskBlocked, centurion.TaskFailed, centurion.TaskCancelled, centurion.TaskCompleted, centurion.TaskRunning, centurion.TaskFailed, centurion.TaskFailed} {
		task := centurion.Task{ID: centurion.NewID(centurion.PrefixTask), Status: s}
		tasks = append(tasks, task)
		switch i {
		case 5: // nothing was done
			r.git("branch", family+task.ID, r.mission.Base.Commit)
		case 6: // it has none
		default:
			r.git("branch", family+task.ID, r.mission.Branch)
		}
		if i < 3 {
			want[task.ID] = family + task.ID
		}
	}
	got := Unmerged(ctx, t.TempDir(), r.mission, tasks)
	if len(got) != len(want) {
		t.Errorf("%v, want %v", got, want)
	}
	for id, branch := range want {
		if got[id] != branch {
			t.Errorf("%s: %q", id, got[id])
		}
	}
}

// Of several newest checks the weakest counts, those of the mission's end do not.
func TestMergedItems(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), t.Context()
	r.task.Item = "T1"
	back := done("tsk_back", "T2", "x")
	back.Landed[0].Reverts = true
	err := r.store.Update(ctx, func(tx *store.Tx) error {
		for i, c := range []centurion.Receipt{{Command: "a", Proof: centurion.ProofProven}, {Command: "b", Proof: centurion.ProofFlaky, Why: "it changes"}, {Command: "c", Proof: centurion.ProofUnproven, Final: true}} {
			c.ID, c.Mission, c.Task, c.Item = centurion.NewID("rcp"), r.mission.ID, r.task.ID, "T1"
			if i == 1 {
				c.Weakened = []string{"TestX"}
			}
			if err := tx.PutReceipt(&c); err != nil {
				return err
			}
		}
		return tx.PutTask(&r.task)
	})
	if err != nil {
		t.Fatal(err)
	}
	w, err := r.workOf(ctx, r.mission.ID)
	if err != nil {
		t.Fatal(err)
	}
	w.tasks = append(w.tasks, back, undone(done("tsk_gone", "T3", "x")), done("tsk_other", "T4", "y"))
	items, err := r.mergedItems(ctx, w, []string{"x", r.task.Landed[0].Commit})
	if err != nil || len(items) != 1 || items[0].Item != "T1" || items[0].Proof != centurion.ProofFlaky || items[0].Why != "it changes" || !slices.Equal(items[0].Weakened, []string{"TestX"}) {
		t.Errorf("%+v, %v", items, err)
	}
}

// The latest work of an item is what an undo of it opens again: later work of another task that is done and stands replaces it.
func TestLatest(t *testing.T) {
	t.Parallel()
	failed := done("tsk_3", "T1", "3")
	failed.Status = centurion.TaskFailed
	for name, c := range map[string]struct {
		other centurion.Task
		want  int
	}{
		"alone":             {done("tsk_2", "T2", "2"), 1},
		"done by another":   {done("tsk_2", "T1", "2"), 0},
		"that was undone":   {undone(done("tsk_2", "T1", "2")), 1},
		"that failed":       {failed, 1},
		"one without items": {done("tsk_2", "", "2"), 1},
	} {
		mine := done("tsk_1", "T1", "1")
		w := workDone{tasks: []centurion.Task{mine, c.other}}
		if got := w.latest([]centurion.Task{mine}); len(got) != c.want {
			t.Errorf("%s: %d", name, len(got))
		}
	}
}

// until is a context that ends as soon as something has happened.
type until struct {
	context.Context
	over func() bool
}

func (u until) Err() error {
	if u.over() {
		return context.Canceled
	}
	return nil
}

// Whoever is cancelled at the moment in which a branch has moved finds that recorded: it can be gone on from there and back.
func TestWhatMovedABranchIsRecorded(t *testing.T) {
	t.Parallel()
	merge := func(ctx context.Context, r *rig) error {
		_, err := r.Merge(ctx, r.mission.ID, MergeRequest{})
		return err
	}
	undo := func(q UndoRequest, task bool) func(context.Context, *rig) error {
		return func(ctx context.Context, r *rig) error {
			id := r.mission.ID
			if task {
				id = r.task.ID
			}
			_, err := r.Undo(ctx, id, q)
			return err
		}
	}
	type step = func(context.Context, *rig) error
	all := []step{merge, undo(UndoRequest{}, false), undo(UndoRequest{Redo: true}, false), undo(UndoRequest{}, true), undo(UndoRequest{Redo: true}, true)}
	own := []step{undo(UndoRequest{Drop: true}, false), undo(UndoRequest{Redo: true}, false), undo(UndoRequest{}, true), undo(UndoRequest{Redo: true}, true)}
	for name, steps := range map[string][]step{"merged": all, "on its own branch": own} {
		for n := range steps {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				for _, s := range steps[:n] {
					if err := s(t.Context(), r); err != nil {
						t.Fatal(err)
					}
				}
				heads := func() string {
					var b strings.Builder
					for _, branch := range []string{"main", r.mission.Branch} {
						id, _ := os.ReadFile(filepath.Join(r.dir, ".git", "refs", "heads", filepath.FromSlash(branch)))
						b.Write(id)
					}
					return b.String()
				}
				before := heads()
				if err := steps[n](until{t.Context(), func() bool { return heads() != before }}, r); err != nil {
					t.Fatalf("step %d: %v", n, err)
				}
				if heads() == before {
					t.Fatalf("step %d moved nothing", n)
				}
				m, err := r.store.Mission(t.Context(), r.mission.ID)
				if err != nil {
					t.Fatal(err)
				}
				if newest := m.Merged; newest != nil && newest.Commit != r.git("rev-parse", "main") {
					t.Errorf("step %d: the record ends at %q", n, newest.Commit)
				}
				for i, s := range steps[n+1:] {
					if err := s(t.Context(), r); err != nil {
						t.Errorf("step %d after that was cancelled: %v", n+1+i, err)
					}
				}
			})
		}
	}
}

// A merge that the person's branch refuses leaves the record of the one before it.
func TestRefusedMergeKeepsTheOneBefore(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), t.Context()
	if _, err := r.Merge(ctx, r.mission.ID, MergeRequest{}); err != nil {
		t.Fatal(err)
	}
	first := *r.recorded()
	r.add("b.txt")
	w, err := r.workOf(ctx, r.mission.ID)
	if err == nil {
		_, err = r.mergeable(ctx, &w)
	}
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := w.choose(ctx, MergeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	r.write("b.txt", "mine\n")
	report := MergeReport{Branch: "main", Before: first.Commit}
	if err := r.merge(ctx, &w, chosen, MergeRequest{}, &report); err != nil || report.Refused == nil {
		t.Fatalf("%+v, %v", report, err)
	}
	if got := r.recorded(); got == nil || got.Commit != first.Commit {
		t.Errorf("recorded %+v", got)
	}
}
