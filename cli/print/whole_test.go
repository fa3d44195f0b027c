package print

import (
	"errors"
	"io"
	"strings"
	"testing"

	"centurion"
	"centurion/cli/lookup"
	"centurion/host"
	"centurion/orchestrator/control"
	"centurion/orchestrator/mail"
	"centurion/store"
	"centurion/takeover"
	"centurion/trust"
	"centurion/tui"
)

// printed is what f writes, or its error.
func printed(f func(w io.Writer) error) string {
	var b strings.Builder
	if err := f(&b); err != nil {
		return "error: " + err.Error()
	}
	return b.String()
}

func compare(t *testing.T, rows [][2]string) {
	t.Helper()
	for i, r := range rows {
		if r[0] != r[1] {
			t.Errorf("%d: got\n%s\nwant\n%s", i, r[0], r[1])
		}
	}
}

// What an ask says depends on its type: who asks is told where that is not the mission itself, "always" only of a permission.
func TestAskWhole(t *testing.T) {
	ask := func(a store.Ask) string { return printed(func(w io.Writer) error { return Ask(w, a) }) }
	plan := store.Ask{ID: "per_1", Type: store.AskPlan, Permission: "plan", Title: "start?", Text: "2 items", Always: []string{"x"}}
	compare(t, [][2]string{
		{ask(plan), "per_1  plan  plan  start?\n"},
		{ask(store.Ask{ID: "per_1", Type: store.AskPermission, Permission: "bash", Text: "b", Agent: "commander", Address: "0/"}), "per_1  permission  bash  b\n    why: b\n"},
		{ask(store.Ask{ID: "per_1", Type: store.AskPermission, Permission: "bash", Title: "a", Agent: "worker", Address: "0/1", Line: "commander 0/", Always: []string{"a *", "b *"}}),
			"per_1  permission  bash  a\n    from worker 0/1, below commander 0/\n    always allows: bash a *, b *, for every agent of this mission\n"},
		{ask(store.Ask{ID: "que_1", Type: store.AskQuestion, Title: "q", Text: "?", Agent: "commander", Address: "0/"}), "que_1  question    q\n    from commander 0/\n"},
		{ask(store.Ask{ID: "que_1", Type: store.AskQuestion, Title: "q", Line: "commander 0/"}), "que_1  question    q\n"},
		{ask(store.Ask{ID: "msn_1", Type: lookup.BlockedMission, Title: "no", Text: "yes\nsir", Line: "x"}), "msn_1  mission    no\n"},
		{Approved(plan, true, tui.AnswerAlways), "approved always"},
	})
}

// A merge shows each thing on a line of its own, and nothing of its files where they are not known.
func TestMergeWhole(t *testing.T) {
	files := []centurion.FileChange{{Path: "a.go", Status: "M", Added: 1, Deleted: 2}}
	r := takeover.MergeReport{Mission: "msn_1", Branch: "main", Goal: strings.Repeat("x", 90), Commits: 2, Files: files, Trust: []string{"AGENTS.md", "opencode.json"},
		Items: []takeover.MergedItem{{Item: "T1", Task: "tsk_1", Title: "a", Proof: centurion.ProofUnproven}, {Item: "T2", Title: "b", Proof: centurion.ProofProven, Why: "w"}}}
	merge := func(r takeover.MergeReport) string {
		return printed(func(w io.Writer) error { return Merge(w, r, tui.ShowOptions{}) })
	}
	head := "2 commits of mission msn_1 onto main: " + centurion.Clip(r.Goal, 80) + "\n  T1    a · unproven\n  T2    b · proven\n"
	stat := printed(func(w io.Writer) error { return tui.Stat(w, files, tui.ShowOptions{}) })
	rest := stat + "! these files configure agents, and can only restrict them until you trust them (centurion trust): AGENTS.md, opencode.json\n"
	refused, unknown, one := r, r, r
	refused.Refused = &takeover.Refusal{}
	unknown.Refused, unknown.Files = refused.Refused, nil
	one.Commits, one.Goal, one.Items, one.Trust = 1, strings.Repeat("y", 80), nil, nil
	compare(t, [][2]string{
		{merge(r), head + rest}, {merge(refused), head + rest}, {merge(unknown), head},
		{merge(one), "1 commit of mission msn_1 onto main: " + one.Goal + "\n" + stat},
	})
}

// An undo says what of whose work was reverted, on which branch, and what follows.
func TestUndoWhole(t *testing.T) {
	undo := func(change func(*takeover.UndoReport)) string {
		r := takeover.UndoReport{Mission: "msn_1", Task: "tsk_1", Item: "T1", Branch: "main", Before: "0123456789ab", After: "ba9876543210"}
		change(&r)
		return printed(func(w io.Writer) error { return Undo(w, r, tui.ShowOptions{}) })
	}
	files := []centurion.FileChange{{Path: "a.go", Status: "M", Added: 1, Deleted: 2}}
	stat := printed(func(w io.Writer) error { return tui.Stat(w, files, tui.ShowOptions{}) })
	none := printed(func(w io.Writer) error { return tui.Stat(w, nil, tui.ShowOptions{}) })
	compare(t, [][2]string{
		{undo(func(r *takeover.UndoReport) { r.Files = files }), stat + "T1 is reverted on its mission's branch: 0123456789 → ba98765432; nothing of it was on yours\n"},
		{undo(func(r *takeover.UndoReport) { r.Item, r.Person, r.Later = "", true, nil }), none + "task tsk_1 is reverted on main: 0123456789 → ba98765432\n"},
		{undo(func(r *takeover.UndoReport) {
			r.Files, r.Task, r.After, r.Person, r.Redo, r.Kept, r.Open = files, "", "", true, true, "old", []string{"T2", "T3"}
		}), stat + "mission msn_1 is restored: 1 file\nthe old tip of its branch is kept as old\nopen again in the plan: T2, T3\n"},
		{undo(func(r *takeover.UndoReport) { r.Refused, r.Later = &takeover.Refusal{}, []string{"T2"} }),
			none + "T1 is reverted on its mission's branch: 0123456789 → ba98765432; nothing of it was on yours\nT2 comes after T1 in the plan and stays: check that it still works, or revert it too: centurion undo T2\n"},
		{undo(func(r *takeover.UndoReport) { r.DryRun = true }), none + "nothing was changed: this is what an undo would do\n"},
		{undo(func(r *takeover.UndoReport) { r.After, r.Task = "", "" }), none + "mission msn_1 is reverted: 0 files\n"},
	})
}

// What a cleanup, a repair, a message and the trust of files leave out is as much part of what they say as what they tell.
func TestStateWhole(t *testing.T) {
	tidy := func(change func(*host.TidyReport)) string {
		var r host.TidyReport
		change(&r)
		return printed(func(w io.Writer) error { return Tidy(w, r) })
	}
	repair := func(r store.Report) string { return printed(func(w io.Writer) error { return Repair(w, r) }) }
	trusted := func(s ...trust.State) string { return printed(func(w io.Writer) error { return Trust(w, s) }) }
	none := "0 sessions dropped, 0 tasks archived, 0 tasks removed, of 0 missions that ended.\n"
	compare(t, [][2]string{
		{tidy(func(*host.TidyReport) {}), none},
		{tidy(func(r *host.TidyReport) {
			r.Aside, r.Worktrees, r.HostPID = []string{"/a", "/b"}, []string{"/w", "/x"}, 1
		}),
			none + "No longer needed and removed, with files of removed tasks and missions that git ignores: /a, /b.\nNo longer needed and removed: /w, /x.\n" +
				"Process 1 hosts this project and did it; the state file shrinks only when no process hosts the project.\n"},
		{repair(store.Report{Accepted: true, Missing: 2}), "The file is whole, but its newest 2 events are missing. It was kept as it is.\nLook at what there is with: centurion ps\n"},
		{repair(store.Report{}), "Everything that could still be read is in a new file:\nLook at what there is with: centurion ps\n"},
		{repair(store.Report{Missing: 1}), "Everything that could still be read is in a new file:\nOf the newest 1 event nothing is left.\nLook at what there is with: centurion ps\n"},
		{State(control.State{Activity: "idle"}), "now: idle"},
		{State(control.State{Activity: "idle", Queued: 1}), "now: idle · 1 message unread"},
		{Sent(mail.Posted{Working: true, Address: "0/1", Task: "tsk_1", Agent: "worker"}, false), "sent to 0/1 (worker)"},
		{Sent(mail.Posted{Working: true, Task: "tsk_1", Agent: "worker"}, false), "sent to tsk_1 (worker)"},
		{trusted(), "no file of this project needs your trust\n"},
		{trusted(trust.State{Name: "a", Trusted: true}, trust.State{Name: "b", Items: []trust.Change{{Op: "-", Item: trust.Item{Line: 3, Kind: trust.Setup, Text: "x"}}}}),
			"a is trusted\nb " + trust.State{Name: "b"}.Why() + "\n  - b:3  setup       x\n"},
	})
}

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, errors.New("closed") }

// Whoever cannot be told learns of it: a command whose output is lost does not succeed.
func TestWriteErrors(t *testing.T) {
	var w closedPipe
	for name, err := range map[string]error{
		"ask":       Ask(w, store.Ask{}),
		"merged":    Merged(w, takeover.MergeReport{}),
		"dry merge": Merged(w, takeover.MergeReport{DryRun: true}),
		"merge":     Merge(w, takeover.MergeReport{Refused: &takeover.Refusal{}}, tui.ShowOptions{}),
		"undo":      Undo(w, takeover.UndoReport{}, tui.ShowOptions{}),
		"tidy":      Tidy(w, host.TidyReport{}),
		"repair":    Repair(w, store.Report{}),
		"trust":     Trust(w, nil),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
