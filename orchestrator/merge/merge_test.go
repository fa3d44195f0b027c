package merge

import (
	"errors"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/claims"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/speculation"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/worktree"
)

// Who waits together is merged together, a crowd at most: the mission's own checks run once for them. Who has left the line is not
// waited for.
func TestBatch(t *testing.T) {
	t.Parallel()
	q := &Queue{}
	var all []*Work
	for range speculation.Crowd {
		l := &Work{}
		all = append(all, l)
		q.waiting = append(q.waiting, l)
	}
	if got := (&Queue{waiting: all[2:3:3]}).batch(all[2]); len(got) != 1 || got[0] != all[2] {
		t.Errorf("of one: %d", len(got))
	}
	if got := (&Queue{waiting: []*Work{all[2], all[3]}}).batch(all[2]); len(got) != 2 {
		t.Errorf("of two: %d", len(got))
	}
	q.waiting = append(q.waiting, &Work{})
	if got := q.batch(all[2]); len(got) != speculation.Crowd || got[0] != all[0] || !all[4].taken {
		t.Errorf("of %d: %d", speculation.Crowd+1, len(got))
	}
	if !q.quit(all[0]) || q.quit(&Work{}) {
		t.Error("who is taken is known")
	}
	all[1].Done = true
	if got := q.batch(all[2]); len(got) != speculation.Crowd-1 {
		t.Errorf("of those that are left: %d", len(got))
	}
}

// An output is "the same as the last time" only for a session that was sent it and still has it: not where its host died before it could say so,
// or where the work waited behind other work that turned the check red.
func TestSameOutputWasShown(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t)
	mission := &state.Mission{Store: st}
	say := func(text string, summary bool) {
		t.Helper()
		m := centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: "ses_1", Role: centurion.RoleUser, Summary: summary}
		if summary {
			m.Role = centurion.RoleAssistant
		}
		p := centurion.Part{ID: centurion.NewID(centurion.PrefixPart), SessionID: "ses_1", MessageID: m.ID, Type: centurion.PartText, Text: text}
		err := st.Update(t.Context(), func(tx *store.Tx) error {
			return errors.Join(tx.PutSession(&centurion.Session{ID: "ses_1"}), tx.PutMessage(&m), tx.PutPart(&p), tx.PutTask(&centurion.Task{ID: "tsk_1", Session: "ses_1"}))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	first := centurion.Receipt{ID: "rcp_1", Command: "c", Task: "tsk_1", ExitCode: 1, Output: "FAILED in 12 ms\n"}
	second := centurion.Receipt{ID: "rcp_2", Command: "c", Task: "tsk_1", ExitCode: 1, Output: "FAILED in 7 ms\n"}
	third := centurion.Receipt{ID: "rcp_3", Command: "c", Task: "tsk_1", ExitCode: 1, Output: "FAILED in 9 ms\n"}
	same := func(what string, r centurion.Receipt, want bool, before ...centurion.Receipt) {
		t.Helper()
		got := brief.AccountAgain(r, before, func(output string) bool { return mission.Shown(t.Context(), "tsk_1", output) })
		if strings.Contains(got, "the same as the last time") != want || strings.Contains(got, "FAILED") == want {
			t.Errorf("%s: %s", what, got)
		}
	}
	same("never shown", second, false, first)
	say(brief.Account(first), false)
	same("shown", second, true, first)
	same("shown the first time", third, true, first, second)
	passed := second
	passed.Passed = true
	same("green in between", third, false, first, passed)
	say("what was done so far", true)
	same("summarized since", second, false, first)
}

func TestMarked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"+<<<<<<< a\n+x\n+=======\n+y\n+>>>>>>> b\n": true,
		" <<<<<<< a\n x\n =======\n y\n >>>>>>> b\n": false, // they were there before
		"+=======\n+>>>>>>> b\n+<<<<<<< a\n":         false,
		"+heading\n+=======\n":                       false,
	} {
		if got := marked(centurion.FileDiff{Hunks: []centurion.Hunk{{Text: text}}}); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// Work that was merged before its host died is done, whatever its agent's last text is; that an earlier task's work was proven says nothing of
// what this one has left half done.
func TestStuckOn(t *testing.T) {
	t.Parallel()
	some := worktree.Commit{ID: "c"}
	for name, c := range map[string]struct {
		l     Work
		proof centurion.Proof
		done  bool
	}{
		"proven":                         {Work{Commit: some}, centurion.ProofProven, true},
		"proven, merged before":          {Work{}, centurion.ProofProven, true},
		"regression, merged before":      {Work{}, centurion.ProofRegression, true},
		"regression, asked for":          {Work{Commit: some, Keeps: true}, centurion.ProofRegression, true},
		"regression, of earlier work":    {Work{Commit: some}, centurion.ProofRegression, false},
		"unproven":                       {Work{Commit: some}, centurion.ProofUnproven, false},
		"flaky":                          {Work{Commit: some, Keeps: true}, centurion.ProofFlaky, false},
		"nothing changed, proven before": {Work{Idle: true}, centurion.ProofProven, false},
	} {
		back := stuckOn(&c.l, centurion.Receipt{Command: "check", Passed: true, Proof: c.proof})
		if (back == nil) != c.done || back != nil && !back.Ends {
			t.Errorf("%s: %+v", name, back)
		}
	}
}

// Who works alone is told to fix what failed; who does not may say that it is another's.
func TestFailedText(t *testing.T) {
	t.Parallel()
	held := &claims.Registry{}
	q := &Queue{claims: held}
	held.Take("T1", []string{"a.go"})
	a := &Author{Seat: &isolation.Seat{Holder: "T1"}}
	r := centurion.Receipt{Command: "check", ExitCode: 1}
	for i, want := range []string{"Fix the cause, then end your turn; the host runs it again.",
		"Others are working in the project at the same time; if the failure is in their files, say so and end your turn."} {
		if got := q.failedText(a, r); got != "The host ran your acceptance command and it failed.\n"+brief.Account(r)+"\n"+want {
			t.Errorf("%d others: %s", i, got)
		}
		held.Take("T2", []string{"b.go"})
	}
}

// A commit says whose work it is and, in at most ten lines, what came of it.
func TestCommitMessage(t *testing.T) {
	t.Parallel()
	one := centurion.Task{ID: "tsk_1", Mission: "msn_1", Agent: "worker", Item: "T1", Title: "Parse\n the limits"}
	for result, want := range map[string]string{
		"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n": "T1 Parse the limits\n\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n\nMission: msn_1\nTask: tsk_1\nAgent: worker\n",
		" \n":                                 "T1 Parse the limits\n\nMission: msn_1\nTask: tsk_1\nAgent: worker\n",
	} {
		if got := commitMessage(one, result); got != want {
			t.Errorf("%q: %q", result, got)
		}
	}
}

// What is said of a hollow test is said once for a session, and never as the return that would call a person.
func TestMayMend(t *testing.T) {
	t.Parallel()
	told := []centurion.Rejection{{Cause: event.ReturnedCheck}, {Cause: event.ReturnedHollow}}
	for name, c := range map[string]struct {
		returns int
		before  centurion.Task
		want    bool
	}{
		"at first":                        {0, centurion.Task{Session: "one", Rejections: told[:1]}, true},
		"before the last return":          {2, centurion.Task{Session: "one"}, true},
		"as the last return":              {3, centurion.Task{Session: "one"}, false},
		"told before in the same session": {0, centurion.Task{Session: "one", Rejections: told}, false},
		"told before in another session":  {0, centurion.Task{Session: "other", Rejections: told}, true},
	} {
		now := centurion.Task{ID: "now", Session: "one", Returns: c.returns}
		if got := mayMend(now, []centurion.Task{c.before, now}, 3); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The mission's own agent may replace only a check of an item that passed and proved nothing, and by nothing weaker.
func TestMayExchange(t *testing.T) {
	t.Parallel()
	receipt := func(item, command string, passed bool, p centurion.Proof) centurion.Receipt {
		return centurion.Receipt{Item: item, Command: command, Passed: passed, Proof: p}
	}
	receipts := []centurion.Receipt{receipt("T1", "hollow", true, centurion.ProofUnproven), receipt("T1", "good", true, centurion.ProofProven),
		receipt("T1", "red", false, ""), receipt("", "hollow", true, centurion.ProofUnproven)}
	for name, c := range map[string]struct {
		item     string
		from, to []string
		want     bool
	}{
		"one that proved nothing":      {"T1", []string{"hollow"}, []string{"better"}, true},
		"beside one that stays":        {"T1", []string{"good", "hollow"}, []string{"good", "better"}, true},
		"one that proved something":    {"T1", []string{"good"}, []string{"better"}, false},
		"one that failed":              {"T1", []string{"red"}, []string{"better"}, false},
		"one that never ran":           {"T1", []string{"new"}, []string{"better"}, false},
		"by one less":                  {"T1", []string{"hollow", "good"}, []string{"good"}, false},
		"by one that can only pass":    {"T1", []string{"hollow"}, []string{"true"}, false},
		"the mission's own":            {"", []string{"hollow"}, []string{"better"}, false},
		"one of another item":          {"T2", []string{"hollow"}, []string{"better"}, false},
		"written twice, and once then": {"T1", []string{"hollow", "hollow"}, []string{"better"}, true},
	} {
		if got := mayExchange(centurion.Exchange{Item: c.item, From: c.from, To: c.to}, receipts); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A failed check is told with everything that explains it, and nothing besides.
func TestAccount(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]centurion.Receipt{
		"`sh a` ended with exit code 1 after 7 ms. It printed nothing.":                                                      {Command: "sh a", Output: " \n"},
		"`sh a` ended with exit code 1 after 7 ms. it took too long. It printed nothing.":                                    {Command: "sh a", Error: "it took too long"},
		"`sh a | cat` ended with exit code 1 after 7 ms. A pipe fails if any of its commands does.\n<output>\nno\n</output>": {Command: "sh a | cat", Output: "no\n"},
	} {
		if r.ExitCode, r.Millis = 1, 7; brief.Account(r) != want {
			t.Errorf("%q, want %q", brief.Account(r), want)
		}
	}
}
