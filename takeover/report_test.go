package takeover

import (
	"slices"
	"strings"
	"testing"

	"centurion"
)

// What is told of a merge before it is made: files that need trust, files beside the plan, what git ignores, and the review that passed.
func TestMergeReportTellsAll(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), t.Context()
	r.add("opencode.json")
	r.planned()
	r.task.Outside = []string{"README.md"}
	r.put(&r.task)
	aside := centurion.Aside{Dir: "/kept", Files: []string{"out"}}
	r.amend(func(m *centurion.Mission) { m.Aside = []centurion.Aside{aside} })
	got, err := r.Merge(ctx, r.mission.ID, MergeRequest{DryRun: true})
	if err != nil || got.Refused != nil {
		t.Fatalf("%+v, %v", got, err)
	}
	if !slices.Equal(got.Trust, []string{"opencode.json"}) || len(got.Aside) != 1 || got.Aside[0].Dir != "/kept" || got.Running || got.Commits != 2 {
		t.Errorf("%+v", got)
	}
	i := slices.IndexFunc(got.Items, func(it MergedItem) bool { return it.Task == r.task.ID })
	if i < 0 || got.Items[i].Item != "T1" || got.Items[i].Title != "Make a.txt" || got.Items[i].Review != "T2" || !slices.Equal(got.Items[i].Outside, []string{"README.md"}) {
		t.Errorf("its items: %+v", got.Items)
	}
	later := r.change("opencode.json", "{}\n")
	later.Item = "T2"
	r.put(&later)
	if got, err := r.Undo(ctx, r.task.ID, UndoRequest{DryRun: true}); err != nil || !slices.Equal(got.Later, []string{"T2"}) || got.Item != "T1" {
		t.Errorf("what depends on it: %+v, %v", got, err)
	}
	if got, err := r.Undo(ctx, later.ID, UndoRequest{DryRun: true}); err != nil || len(got.Later) > 0 {
		t.Errorf("what depends on the last: %+v, %v", got, err)
	}
}

// A task, a mission in the project itself, and one whose work is all ignored by git cannot be merged, each with what to do instead.
func TestWhatCannotBeMerged(t *testing.T) {
	t.Parallel()
	r, ctx := newRig(t), t.Context()
	refused := func(what, id string, kind centurion.Kind, msg, hint string) {
		t.Helper()
		_, err := r.Merge(ctx, id, MergeRequest{})
		if centurion.KindOf(err) != kind || !strings.Contains(err.Error(), msg) || !strings.Contains(centurion.HintOf(err), hint) {
			t.Errorf("%s: %v (%s)", what, err, centurion.HintOf(err))
		}
	}
	refused("a task", r.task.ID, centurion.KindUsage, "is a task, and a mission is merged", "centurion merge "+r.mission.ID+" --only "+r.task.Name())
	r.git("update-ref", "refs/heads/"+r.mission.Branch, r.mission.Base.Commit)
	r.task.Landed, r.task.Aside = nil, []centurion.Aside{{Dir: "/kept", Files: []string{"out"}}}
	r.put(&r.task)
	refused("only ignored files", r.mission.ID, centurion.KindConflict, "has changed nothing that can be merged: git ignores out", "take what you want of it from there")
	r.amend(func(m *centurion.Mission) { m.Isolation = centurion.IsolationShared })
	refused("in the project", r.mission.ID, centurion.KindConflict, "works in the project itself", "centurion diff "+r.mission.ID)
}

// The proof of a task is that of its own newest checks; where it has none, that of the later work on its item.
func TestProofOfATask(t *testing.T) {
	t.Parallel()
	task := centurion.Task{ID: "tsk_1", Item: "T1"}
	of := func(task, item, command string, p centurion.Proof) centurion.Receipt {
		return centurion.Receipt{Task: task, Item: item, Command: command, Proof: p, Why: string(p) + "!"}
	}
	for name, tt := range map[string]struct {
		receipts []centurion.Receipt
		want     centurion.Proof
	}{
		"none":               {nil, ""},
		"its own":            {[]centurion.Receipt{of("tsk_1", "T1", "a", centurion.ProofProven)}, centurion.ProofProven},
		"the newest":         {[]centurion.Receipt{of("tsk_1", "T1", "a", centurion.ProofUnproven), of("tsk_1", "T1", "a", centurion.ProofProven)}, centurion.ProofProven},
		"the weakest":        {[]centurion.Receipt{of("tsk_1", "T1", "a", centurion.ProofFlaky), of("tsk_1", "T1", "b", centurion.ProofProven)}, centurion.ProofFlaky},
		"not a later task's": {[]centurion.Receipt{of("tsk_1", "T1", "a", centurion.ProofProven), of("tsk_2", "T1", "b", centurion.ProofUnproven)}, centurion.ProofProven},
		"a later task's":     {[]centurion.Receipt{of("tsk_2", "T1", "b", centurion.ProofUnproven)}, centurion.ProofUnproven},
		"of another item":    {[]centurion.Receipt{of("tsk_2", "T2", "b", centurion.ProofUnproven)}, ""},
	} {
		got, why, _ := proofOf(tt.receipts, task)
		if got != tt.want || tt.want != "" && why != string(tt.want)+"!" {
			t.Errorf("%s: %s, %q", name, got, why)
		}
	}
	task.Item = ""
	if got, _, _ := proofOf([]centurion.Receipt{of("tsk_2", "", "b", centurion.ProofUnproven)}, task); got != "" {
		t.Errorf("of another task without an item: %s", got)
	}
	for want, task := range map[string]centurion.Task{"it was reverted": undone(done("tsk_1", "T1", "1")), "its task is running": {Status: centurion.TaskRunning}, "it has changed nothing": undone(done("tsk_1", "T1"))} {
		if got := whyNoWork(task); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
