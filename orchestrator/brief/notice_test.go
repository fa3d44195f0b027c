package brief

import (
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/store/storetest"
)

// noticeOf is the notice of a task's end in a mission with these receipts, messages and asks.
func noticeOf(t *testing.T, task centurion.Task, isolated bool, receipts []centurion.Receipt, sent []store.Delivery, asks []store.Ask) (text string) {
	t.Helper()
	st := storetest.Open(t)
	iso := &isolation.Checkouts{}
	if isolated {
		iso.Ground = &isolation.Ground{}
	}
	task.ID, task.Mission, task.Session, task.Number = "tsk_1", "msn_1", "ses_1", 7
	err := st.Update(t.Context(), func(tx *store.Tx) (err error) {
		if err := tx.PutTask(&task); err != nil {
			return err
		}
		for i, r := range receipts {
			r.ID, r.Mission, r.Task = "rcp_"+string(rune('a'+i)), "msn_1", "tsk_1"
			if err := tx.PutReceipt(&r); err != nil {
				return err
			}
		}
		for i, d := range sent {
			d.ID, d.Mission, d.Session = "del_"+string(rune('a'+i)), "msn_1", "ses_1"
			if err := tx.PutDelivery(&d); err != nil {
				return err
			}
		}
		for i, a := range asks {
			a.ID, a.Mission = "que_"+string(rune('a'+i)), "msn_1"
			if err := tx.PutAsk(&a); err != nil {
				return err
			}
		}
		text, err = New(nil, iso, nil, nil).Notice(tx, plan.View{}, task)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A notice says how a task has ended, and what its parent can do about that; a permission is the person's matter.
func TestNoticeTellsTheEnd(t *testing.T) {
	t.Parallel()
	failed := func(kind centurion.Kind) *centurion.TaskError {
		return &centurion.TaskError{Kind: kind, Message: "it broke", Hint: "mend it"}
	}
	at := func(s int) centurion.Time { return centurion.Time{Time: time.Date(2026, 1, 1, 0, 0, s, 0, time.UTC)} }
	for name, c := range map[string]struct {
		task     centurion.Task
		isolated bool
		want     string
		not      string
	}{
		"completed": {centurion.Task{Item: "T1", Agent: "worker", Title: "One", Status: centurion.TaskCompleted, Started: at(1), Ended: at(63), Result: " done "}, false,
			"Task T1 (worker: One) is completed after 1m02s.\n|<result>\ndone\n</result>", "no file"},
		"changed nothing":       {centurion.Task{Item: "T1", Agent: "worker", Status: centurion.TaskCompleted}, true, "is completed.\n|It changed no file.\n", ""},
		"a review":              {centurion.Task{Item: "T1", Agent: agents.Reviewer, Status: centurion.TaskCompleted}, true, "is completed.\n", "no file"},
		"a review of nothing":   {centurion.Task{Item: "T1", Agent: agents.Reviewer, Status: centurion.TaskCompleted, Unchanged: true}, true, "its PASS alone shows nothing.\n", ""},
		"a review that rejects": {centurion.Task{Item: "T1", Agent: agents.Reviewer, Status: centurion.TaskCompleted, Reviews: true, Reason: state.FoundFaults, Unchanged: true}, true, "has found faults: T1 is open again.\n", "PASS"},
		"faults of its item":    {centurion.Task{Item: "T1", Agent: agents.Reviewer, Status: centurion.TaskCompleted, Reason: state.FoundFaults}, true, "has found faults: its item stays open.\n", ""},
		"no verdict":            {centurion.Task{Item: "T1", Agent: agents.Reviewer, Status: centurion.TaskCompleted, Reason: state.NoVerdict}, true, "it does not count.\n|T1 still needs a review: delegate_task", ""},
		"blocked":               {centurion.Task{Agent: "worker", Status: centurion.TaskBlocked, Error: failed(centurion.KindVerify)}, false, "Task w7 |is blocked.\nWhy: it broke\nWhat you can do: mend it.\n", ""},
		"blocked by a rule":     {centurion.Task{Status: centurion.TaskBlocked, Error: failed(centurion.KindPermission)}, false, "is blocked.\nWhy: it broke\n", "What you can do"},
		"failed":                {centurion.Task{Status: centurion.TaskFailed, Error: failed(centurion.KindTimeout)}, false, "has failed.\nWhy: it broke\n", "What you can do"},
		"cancelled":             {centurion.Task{Status: centurion.TaskCancelled}, false, "was cancelled.\n", "Why"},
		"what it wrote":         {centurion.Task{Status: centurion.TaskCompleted, Files: []string{"a", "b"}}, false, "Files changed with write and edit: a, b\n", ""},
		"what it merged": {centurion.Task{Item: "T1", Status: centurion.TaskCompleted, Files: []string{"a"}, Returns: 1, CameBack: 3, Rejections: []centurion.Rejection{{Cause: event.ReturnedStuck}},
			Landed: []centurion.Landed{{Commit: "0123456789", Files: []centurion.FileChange{{Status: "M", Path: "a", Added: 1}}}}}, true, "Integrated as 01234567: M a|It came back 3 times before that: it said that it was stuck.\n", "Files changed"},
		"a failure that came back": {centurion.Task{Status: centurion.TaskFailed, CameBack: 3}, false, "has failed.\n", "came back"},
		"its cost":                 {centurion.Task{Status: centurion.TaskCompleted, Usage: centurion.Usage{USD: 0.5, Tokens: centurion.Tokens{Input: 3}}}, false, "Cost: $0.50, 3 tokens.\n", ""},
		"its tokens":               {centurion.Task{Status: centurion.TaskCompleted, Usage: centurion.Usage{Unpriced: true, Tokens: centurion.Tokens{Input: 3}}}, false, "Cost: 3 tokens.\n", "$"},
	} {
		got := noticeOf(t, c.task, c.isolated, nil, nil, nil)
		has(t, got, strings.Split(c.want, "|")...)
		if c.not != "" && strings.Contains(got, c.not) {
			t.Errorf("%s: %q is in\n%s", name, c.not, got)
		}
	}
}

// A notice has the newest run of each check, what its proof is worth, and what the work took from it.
func TestNoticeTellsTheChecks(t *testing.T) {
	t.Parallel()
	got := noticeOf(t, centurion.Task{Item: "T1", Agent: "worker", Status: centurion.TaskCompleted}, false, []centurion.Receipt{
		{Command: "a", ExitCode: 1}, {Command: "b", Passed: true}, {Command: "c", ExitCode: 2},
		{Command: "a", Passed: true, Proof: centurion.ProofProven, Weakened: []string{"a_test.go lost a line"}}}, nil, nil)
	has(t, got, "Check `b` passed.\nCheck `c` failed with exit code 2.\nCheck `a` passed: proven.\nThe work weakens a check: a_test.go lost a line\n")
	if strings.Contains(got, "too little") || strings.Contains(got, "exit code 1") {
		t.Errorf("what is proven is doubted, or an old run is told:\n%s", got)
	}
	unproven := centurion.Receipt{Command: "a", Passed: true, Proof: centurion.ProofUnproven, Why: "it passes without the work"}
	flaky := centurion.Receipt{Command: "a", Passed: true, Proof: centurion.ProofFlaky}
	for _, c := range []struct {
		receipt centurion.Receipt
		status  centurion.TaskStatus
		want    string
	}{
		{unproven, centurion.TaskCompleted, "Check `a` passed: unproven, it passes without the work.\n|too little. Have it reviewed: delegate_task|send the plan with another command"},
		{flaky, centurion.TaskCompleted, "Check `a` passed: flaky.\n|too little. Have it reviewed: delegate_task|only the reviewer may change it now"},
		{unproven, centurion.TaskFailed, ""},
	} {
		got := noticeOf(t, centurion.Task{Item: "T1", Agent: "worker", Status: c.status}, false, []centurion.Receipt{c.receipt}, nil, nil)
		has(t, got, strings.Split(c.want, "|")...)
		if strings.Contains(got, "too little") != (c.want != "") {
			t.Errorf("%s of a task that is %s:\n%s", c.receipt.Proof, c.status, got)
		}
	}
}

// A notice quotes what the person said to the task while it worked, at most the newest six of each kind, and nothing that another said.
func TestNoticeQuotesThePerson(t *testing.T) {
	t.Parallel()
	at := func(s int) centurion.Time { return centurion.Time{Time: time.Date(2026, 1, 1, 0, 0, s, 0, time.UTC)} }
	mail := func(s int, text string, origin centurion.Origin) store.Delivery {
		return store.Delivery{Text: text, Origin: origin, Taken: at(s)}
	}
	ask := func(typ, task, by, answer string) store.Ask {
		return store.Ask{Type: typ, Task: task, Text: "which?", By: by, Answer: answer}
	}
	task := centurion.Task{Status: centurion.TaskCompleted, Started: at(10), Ended: at(20)}
	sent := []store.Delivery{mail(9, "before", centurion.OriginPerson), mail(10, "at first", centurion.OriginPerson), mail(15, "of the host", centurion.OriginHost),
		mail(20, "at last", centurion.OriginPerson), mail(21, "after", centurion.OriginPerson)}
	got := noticeOf(t, task, false, nil, sent, []store.Ask{ask(store.AskQuestion, "tsk_1", state.ByPerson, "blue"), ask(store.AskQuestion, "tsk_2", state.ByPerson, "of another"),
		ask(store.AskPermission, "tsk_1", state.ByPerson, "once"), ask(store.AskQuestion, "tsk_1", state.ByTimeout, "late"), ask(store.AskQuestion, "tsk_1", state.ByPerson, event.NobodyThere)})
	has(t, got, "The person wrote to it: \"at first\"\nThe person wrote to it: \"at last\"\nThe person was asked: \"which?\" and answered: \"blue\"\nCost: ")
	sent = nil
	for range maxPersonLines {
		sent = append(sent, mail(12, "old", centurion.OriginPerson))
	}
	got = noticeOf(t, task, false, nil, append(sent, mail(13, "new", centurion.OriginPerson)), nil)
	if strings.Count(got, "\"old\"") != maxPersonLines-1 || !strings.Contains(got, "\"new\"") {
		t.Errorf("of seven messages:\n%s", got)
	}
}
