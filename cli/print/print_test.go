package print

import (
	"strings"
	"testing"

	"centurion"
	"centurion/cli/lookup"
	"centurion/host"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/branches"
	"centurion/orchestrator/control"
	"centurion/orchestrator/mail"
	"centurion/server"
	"centurion/store"
	"centurion/takeover"
	"centurion/tui"
)

// S10: a person sees every character of what they are asked to allow, and for whom "always" would allow it.
func TestAsk(t *testing.T) {
	for name, c := range map[string]struct {
		ask  store.Ask
		want string
	}{
		"a permission": {store.Ask{ID: "per_1", Type: store.AskPermission, Permission: "bash", Title: "rm\u202e\nx", Text: "it  asks", Always: []string{"rm *"}},
			"per_1  permission  bash  rm\\u202e\\nx\n    why: it asks\n    always allows: bash rm *, for every agent of this mission\n"},
		"a question": {store.Ask{ID: "que_1", Type: store.AskQuestion, Text: "which\u202e\none?", Options: []string{"a\x1b", "b"}, Agent: "worker", Address: "0/1", Line: "commander 0/", Task: "tsk_1"},
			"que_1  question    which\\u202e one?\n    from worker 0/1, below commander 0/, task tsk_1\n    1  a\\x1b\n    2  b\n"},
		"a blocked mission": {store.Ask{ID: "msn_1", Type: lookup.BlockedMission, Title: "no\nprogress"}, "msn_1  mission    no progress\n"},
	} {
		var b strings.Builder
		if err := Ask(&b, c.ask); err != nil || b.String() != c.want {
			t.Errorf("%s: %v\n%q, want\n%q", name, err, b.String(), c.want)
		}
	}
	ask := store.Ask{Type: store.AskPermission, Permission: "bash", Always: []string{"rm *"}}
	for want, got := range map[string]string{
		"approved once": Approved(ask, true, tui.AnswerOnce), "approved always": Approved(ask, false, tui.AnswerAlways),
		"approved always: bash rm *, for every agent of this mission, until it ends": Approved(ask, true, tui.AnswerAlways),
		"approved once: there is nothing in it that could be allowed for always":     Approved(store.Ask{Type: store.AskPermission}, true, tui.AnswerAlways),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A merge tells what is not complete before it, a dry run of either that nothing was changed, and a refused one nothing.
func TestMergeAndUndoSay(t *testing.T) {
	said := func(f func(b *strings.Builder) error) string {
		var b strings.Builder
		if err := f(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	merge := takeover.MergeReport{Mission: "msn_1", Branch: "main", Unfinished: []string{"T2 is open"}, Items: []takeover.MergedItem{
		{Item: "T1", Proof: centurion.ProofUnproven, Why: "no test", Review: "T3"}, {Item: "T3", Review: "T3"}, {Item: "T4", Proof: centurion.ProofProven, Review: "T3"}}}
	got := said(func(b *strings.Builder) error { return Merge(b, merge, tui.ShowOptions{}) })
	for _, part := range []string{"! not complete: T2 is open\n", "T1     · unproven: no test; reviewed: PASS by T3\n", "T3     · no proof of its own; a review: PASS\n", "T4     · proven\n"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is not in\n%s", part, got)
		}
	}
	dry := said(func(b *strings.Builder) error {
		return Merged(b, takeover.MergeReport{DryRun: true, After: "0123456789ab"})
	})
	if dry != "nothing was changed: this is what a merge would do\n" {
		t.Errorf("a dry merge: %q", dry)
	}
	undo := takeover.UndoReport{Mission: "msn_1", Item: "T1", Task: "tsk_1", Branch: "main", Person: true, Before: "0123456789ab", After: "ba9876543210", Later: []string{"T2", "T3"}, Back: "centurion undo --redo"}
	later := "T2, T3 come after T1 in the plan and stay: check that they still work, or revert them too: centurion undo T3\n"
	for want, change := range map[string]func(*takeover.UndoReport){
		"T1 is reverted on main: 0123456789 → ba98765432\n" + later + "undo: centurion undo --redo\n": func(*takeover.UndoReport) {},
		later + "nothing was changed: this is what an undo would do\n":                                func(r *takeover.UndoReport) { r.DryRun = true },
		later + "nothing was changed: this is what undo --redo would do\n":                            func(r *takeover.UndoReport) { r.DryRun, r.Redo = true, true },
		"": func(r *takeover.UndoReport) { r.After, r.Refused = "", &takeover.Refusal{} },
	} {
		r := undo
		change(&r)
		if got := said(func(b *strings.Builder) error { return Undo(b, r, tui.ShowOptions{}) }); !strings.HasSuffix(got, want) || want == "" && got != "" {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// What a repair has lost is told beside what it has kept.
func TestRepairSays(t *testing.T) {
	r := store.Report{Tables: []store.TableReport{{Name: "event", Kept: 10, Lost: 2}, {Name: "task", Kept: 1}}, Missing: 3, Aside: []string{"/x.damaged"}}
	for want, r := range map[string]store.Report{
		"Nothing is wrong with this project's state.\n": {Sound: true},
		"The file is whole, but its newest event is missing. It was kept as it is.\nLook at what there is with: centurion ps\n": {Accepted: true, Missing: 1},
		"Everything that could still be read is in a new file:\n  event         10 kept, 2 lost\n  task           1 kept\n" +
			"Of the newest 3 events nothing is left.\nThe damaged file is kept: /x.damaged\nLook at what there is with: centurion ps\n": r,
	} {
		var b strings.Builder
		if err := Repair(&b, r); err != nil || b.String() != want {
			t.Errorf("%v, got\n%s\nwant\n%s", err, b.String(), want)
		}
	}
}

// A message says when it is read, and a rewind what it did.
func TestSentAndRewound(t *testing.T) {
	to := mail.Posted{Mission: "msn_1", Agent: "commander", Address: "0/"}
	for want, change := range map[string]func(*mail.Posted){
		"kept for 0/ (commander) of mission msn_1, which is interrupted; it is read with: centurion resume msn_1": func(p *mail.Posted) { p.Status = centurion.MissionRunning },
		"kept for 0/ (commander) of mission msn_1, which is paused; it is read with: centurion resume msn_1":      func(p *mail.Posted) { p.Status = centurion.MissionPaused },
		"sent to 0/ (commander)": func(p *mail.Posted) { p.Working = true },
		"sent to 0/ (commander); its task reads it when it continues, and is waiting: after T1": func(p *mail.Posted) {
			p.Working, p.State, p.Reason = true, centurion.TaskWaiting, "after T1"
		},
		"sent to 0/ (commander); its task reads it when it continues": func(p *mail.Posted) { p.Working, p.State = true, centurion.TaskQueued },
	} {
		p := to
		change(&p)
		if got := Sent(p, false); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := Sent(mail.Posted{Working: true, Address: "0/", Agent: "commander"}, true); !strings.HasSuffix(got, "; it is read at the end of the turn") {
		t.Error(got)
	}
	back := branches.Rewound{Mission: "msn_1", Session: "ses_1", From: "msg_9", Leaf: "msg_3", Undone: 2, Mark: "before-rewind-1"}
	for want, c := range map[string]struct {
		r  server.Rewind
		to string
	}{
		"ses_1 continues after msg_3; 2 messages left as a branch\nundo: centurion rewind ses_1 --to before-rewind-1\ncontinue: centurion resume msn_1": {server.Rewind{To: "msg_3"}, "msg_3"},
		"ses_1 stands at msg_9 already": {server.Rewind{To: "msg_9"}, "msg_9"},
		"msg_9 is called here":          {server.Rewind{Mark: "here"}, "msg_9"},
	} {
		got := back
		got.Leaf = c.to
		if said := Rewound(got, c.r); said != want {
			t.Errorf("got %q, want %q", said, want)
		}
	}
}

// How everything that waits is answered is said once, and a blocked mission is written to.
func TestHowToAnswer(t *testing.T) {
	permission, plan, question, blocked := store.Ask{Type: store.AskPermission}, store.Ask{Type: store.AskPlan}, store.Ask{Type: store.AskQuestion}, store.Ask{Type: lookup.BlockedMission}
	const send = `A blocked mission: send it what it needs (centurion send ID "TEXT"), then continue it: centurion resume ID`
	for want, all := range map[string][]store.Ask{
		"": nil, send: {blocked},
		"Answer with: centurion answer ID TEXT": {question, question},
		"Answer with: centurion approve ID [once|always], centurion deny ID, centurion approve ID, centurion deny ID, centurion answer ID TEXT\n" + send: {question, plan, permission, blocked},
	} {
		if got := HowToAnswer(all); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What was cleaned is told apart from what would be, and who did it.
func TestTidySays(t *testing.T) {
	report := host.TidyReport{}
	report.Missions, report.Sessions, report.Archived, report.Removed = 1, 2, 3, 1
	report.Worktrees, report.Aside = []string{"/w"}, []string{"/a"}
	for want, change := range map[string]func(*host.TidyReport){
		"2 sessions dropped, 3 tasks archived, 1 task removed, of 1 mission that ended.\n": func(*host.TidyReport) {},
		"2 sessions would be dropped, 3 tasks would be archived, 1 task would be removed, of 1 mission that ended.\nWould be removed, with files of removed tasks and missions that git ignores: /a.\nWould be removed: /w.\n": func(r *host.TidyReport) { r.DryRun, r.HostPID = true, 7 },
		"Process 7 hosts this project and did it; the state file shrinks only when no process hosts the project.\n":                                                                                                            func(r *host.TidyReport) { r.HostPID, r.Before = 7, 9 },
		"The state file has 1 KB; it had 2 KB.\n": func(r *host.TidyReport) { r.Before, r.After = 2048, 1024 },
	} {
		r := report
		change(&r)
		var b strings.Builder
		if err := Tidy(&b, r); err != nil || !strings.Contains(b.String(), want) || strings.Contains(b.String(), "state file") != (strings.Contains(want, "state file")) {
			t.Errorf("%v, got\n%s\nwant\n%s", err, b.String(), want)
		}
	}
}

// A merge that was refused before its change was known shows none; weakened checks and an interrupted merge are told.
func TestMergeTellsTrouble(t *testing.T) {
	var b strings.Builder
	r := takeover.MergeReport{Mission: "msn_1", Refused: &takeover.Refusal{}, Items: []takeover.MergedItem{{Task: "tsk_1", Title: "Work", Weakened: []string{"a_test.go was removed"}}}}
	if err := Merge(&b, r, tui.ShowOptions{}); err != nil || !strings.HasSuffix(b.String(), "        ! a_test.go was removed\n") || !strings.Contains(b.String(), "onto the detached HEAD") || !strings.Contains(b.String(), "tsk_1 Work") {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	if err := Merged(&b, takeover.MergeReport{Finished: true, Mission: "msn_1", Branch: "main", After: "abc"}); err != nil || b.String() != "a merge that was interrupted is complete now\nmerged into main: nothing → abc\nundo: centurion undo msn_1\n" {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// What becomes of a wish for a shorter conversation depends on who works on it.
func TestCompactSays(t *testing.T) {
	for want, p := range map[string]mail.Posted{
		"nothing to shorten":            {Short: true},
		"(commander) is shortened":      {Done: true, Status: centurion.MissionCompleted},
		"once mission msn_1 is resumed": {Status: centurion.MissionPaused},
		"before its next request":       {Working: true},
	} {
		p.Compact, p.Mission, p.Address, p.Agent = true, "msn_1", "0/", "commander"
		if got := Sent(p, false); !strings.Contains(got, want) || !strings.Contains(got, "0/ (commander)") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := State(control.State{Activity: "working", Waits: "person", Queued: 2, Calls: []agent.RunningCall{{Tool: "bash", Since: centurion.Now()}}}); got != "now: working, waits for person · bash for 0s · 2 messages unread" {
		t.Error(got)
	}
	if got := Rewound(branches.Rewound{Mission: "msn_1", Session: "ses_1", From: "msg_3", Leaf: "msg_9"}, server.Rewind{To: "msg_9"}); strings.Contains(got, "left as a branch") || !strings.Contains(got, "--to msg_3") {
		t.Errorf("to a later message: %s", got)
	}
}
