package task

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/race"
	"centurion/orchestrator/state"
	"centurion/session"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/workspace/todo"
)

func planOf(t *testing.T, text string) plan.View {
	t.Helper()
	doc, err := todo.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return plan.View{Doc: doc}
}

// The end of a task is recorded whole, once, and its parent is told and woken if it has something to decide.
func TestRecordEnd(t *testing.T) {
	t.Parallel()
	v := planOf(t, "- [~] T1 One\n  - files: a.go\n")
	out := session.Outcome{Text: "done", Files: []string{"b.go", "a.go", "a.go"}}
	failed := &centurion.Error{Kind: centurion.KindVerify, Msg: "it failed", Hint: "mend it"}
	tries := func(n int) *centurion.Race { return &centurion.Race{ID: "tsk_1", Try: n, Agents: []string{"a", "b"}} }
	lost := race.Lost(centurion.Task{Item: "T1", Race: tries(2), Agent: "b"})
	for name, c := range map[string]struct {
		is     centurion.Task
		other  *centurion.Task
		status centurion.TaskStatus
		text   string
		cause  error
		wake   bool
		blind  bool
		want   centurion.Task // what the end adds
		told   string         // whether it is told, and wakes
	}{
		"completed":       {is: centurion.Task{Item: "T1", Agent: "worker"}, status: centurion.TaskCompleted, want: centurion.Task{Result: "done", Files: []string{"a.go", "b.go", "c.go"}, Outside: []string{"b.go", "c.go"}}, told: "true false"},
		"and it frees":    {is: centurion.Task{Agent: "worker"}, status: centurion.TaskCompleted, wake: true, want: centurion.Task{Result: "done", Files: []string{"a.go", "b.go", "c.go"}}, told: "true true"},
		"failed":          {is: centurion.Task{Agent: "worker"}, status: centurion.TaskFailed, cause: failed, want: centurion.Task{Result: "done", Files: []string{"a.go", "b.go", "c.go"}, Error: &centurion.TaskError{Kind: centurion.KindVerify, Message: "it failed", Hint: "mend it"}}, told: "true true"},
		"until resumed":   {is: centurion.Task{Item: "T1", Agent: "worker"}, status: centurion.TaskQueued, cause: centurion.ErrShutdown, want: centurion.Task{Reason: state.UntilResumed, Files: []string{"a.go", "b.go", "c.go"}}, told: ""},
		"a FAIL":          {is: centurion.Task{Agent: agents.Reviewer}, status: centurion.TaskCompleted, text: "FAIL: x", want: centurion.Task{Result: "FAIL: x", Files: []string{"a.go", "b.go", "c.go"}, Reason: state.FoundFaults}, told: "true false"},
		"no verdict":      {is: centurion.Task{Agent: agents.Reviewer}, status: centurion.TaskCompleted, text: "I looked.", want: centurion.Task{Result: "I looked.", Files: []string{"a.go", "b.go", "c.go"}, Reason: state.NoVerdict}, told: "true false"},
		"a blind PASS":    {is: centurion.Task{Agent: agents.Reviewer}, status: centurion.TaskCompleted, text: "PASS", blind: true, want: centurion.Task{Result: "PASS", Files: []string{"a.go", "b.go", "c.go"}, Reason: state.SawNothing}, told: "true false"},
		"overtaken":       {is: centurion.Task{Item: "T1", Race: tries(1)}, other: &centurion.Task{Item: "T1", Race: tries(2), Status: centurion.TaskRunning}, status: centurion.TaskCancelled, cause: lost, want: centurion.Task{Result: "done", Reason: lost.Error()}, told: ""},
		"the last try":    {is: centurion.Task{Item: "T1", Race: tries(1)}, other: &centurion.Task{Item: "T1", Race: tries(2), Status: centurion.TaskFailed}, status: centurion.TaskFailed, cause: failed, want: centurion.Task{Result: "done", Files: []string{"a.go", "b.go", "c.go"}, Outside: []string{"b.go", "c.go"}, Error: &centurion.TaskError{Kind: centurion.KindVerify, Message: "it failed", Hint: "mend it"}}, told: "true true"},
		"it ended before": {is: centurion.Task{Agent: "worker", Status: centurion.TaskCompleted, Result: "was"}, status: centurion.TaskFailed, cause: failed, want: centurion.Task{Result: "was", Status: centurion.TaskCompleted}, told: ""},
	} {
		t.Run(name, func(t *testing.T) {
			is := c.is
			if is.Status == "" {
				is.Status, is.Files, is.Landed = centurion.TaskRunning, []string{"c.go"}, nil
			}
			tasks := []centurion.Task{is}
			if c.other != nil {
				tasks = append(tasks, *c.other)
			}
			ts := recordedTasks(t, tasks...)
			ts.Checkouts = isolation.New(ts.Mission, nil, nil)
			ts.Brief = brief.New(ts.Mission, ts.Checkouts, nil, nil)
			r := &state.Run{ID: "tsk_1", Blind: c.blind, Before: 7}
			now, err := ts.Mission.Store.Task(t.Context(), "tsk_1")
			if err != nil {
				t.Fatal(err)
			}
			r.Now.Store(&now)
			end := out
			if c.text != "" {
				end.Text = c.text
			}
			var reported bool
			err = ts.Mission.Store.Update(t.Context(), func(tx *store.Tx) (err error) {
				reported, err = ts.recordEnd(tx, r, v, c.status, end, c.cause, c.wake)
				return err
			})
			got, terr := ts.Mission.Store.Task(t.Context(), "tsk_1")
			want := now
			if want.Status = c.status; c.want.Status != "" {
				want.Status = c.want.Status
			}
			want.Result, want.Files, want.Reason, want.Outside, want.Error, want.Ended = c.want.Result, c.want.Files, c.want.Reason, c.want.Outside, c.want.Error, got.Ended
			if name == "overtaken" {
				lostRace := *want.Race
				lostRace.Lost = true
				want.Race = &lostRace
			}
			if !reflect.DeepEqual(got, want) || got.Ended.IsZero() != (c.status == centurion.TaskQueued || c.want.Status != "") || err != nil || terr != nil {
				t.Errorf("%+v, want\n%+v; %v, %v", got, want, err, terr)
			}
			waiting, err := ts.Mission.Store.PendingDeliveries(t.Context(), "ses_0")
			told := ""
			for _, d := range waiting {
				if told = "true false"; d.Wake {
					told = "true true"
				}
			}
			if told != c.told || err != nil || reported == (name == "overtaken") {
				t.Errorf("told %q, reported %t, %v", told, reported, err)
			}
		})
	}
}

// The parent of a task is woken where its checks prove too little, and only there.
func TestEndsInDoubt(t *testing.T) {
	t.Parallel()
	v := planOf(t, "- [~] T1 One\n  - verify: `make`\n- [~] T2 Two\n")
	receipt := func(p centurion.Proof) *centurion.Receipt {
		return &centurion.Receipt{ID: "rcp_1", Mission: "msn_1", Task: "tsk_1", Item: "T1", Command: "make", Passed: true, Proof: p}
	}
	for name, c := range map[string]struct {
		task     centurion.Task
		status   centurion.TaskStatus
		receipt  *centurion.Receipt
		shared   bool
		noPlan   bool
		doubtful bool
	}{
		"unproven":      {centurion.Task{Item: "T1", Agent: "worker"}, centurion.TaskCompleted, receipt(centurion.ProofUnproven), false, false, true},
		"proven":        {centurion.Task{Item: "T1", Agent: "worker"}, centurion.TaskCompleted, receipt(centurion.ProofProven), false, false, false},
		"it failed":     {centurion.Task{Item: "T1", Agent: "worker"}, centurion.TaskFailed, receipt(centurion.ProofUnproven), false, false, false},
		"a review":      {centurion.Task{Item: "T1", Agent: agents.Reviewer}, centurion.TaskCompleted, receipt(centurion.ProofUnproven), false, false, false},
		"no checks":     {centurion.Task{Item: "T2", Agent: "worker"}, centurion.TaskCompleted, nil, false, false, false},
		"no item":       {centurion.Task{Agent: "worker"}, centurion.TaskCompleted, receipt(centurion.ProofUnproven), false, false, false},
		"an item gone":  {centurion.Task{Item: "T9", Agent: "worker"}, centurion.TaskCompleted, receipt(centurion.ProofUnproven), false, false, false},
		"one directory": {centurion.Task{Item: "T1", Agent: "worker"}, centurion.TaskCompleted, receipt(centurion.ProofUnproven), true, false, false},
		"without plan":  {centurion.Task{Item: "T1", Agent: "worker"}, centurion.TaskCompleted, receipt(centurion.ProofUnproven), false, true, false},
	} {
		ts := recordedTasks(t, c.task)
		if ts.Checkouts = isolation.New(ts.Mission, nil, nil); !c.shared {
			ts.Checkouts.Ground = &isolation.Ground{}
		}
		p := v
		if c.noPlan {
			p = plan.View{}
		}
		var got bool
		err := ts.Mission.Store.Update(t.Context(), func(tx *store.Tx) error {
			if c.receipt != nil {
				if err := tx.PutReceipt(c.receipt); err != nil {
					return err
				}
			}
			task, err := tx.Task("tsk_1")
			if err == nil {
				got, err = ts.endsInDoubt(tx, p, task, c.status)
			}
			return err
		})
		if got != c.doubtful || err != nil {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
}

// What the state refuses is an error of each step of a task that needs it.
func TestRefusedByTheState(t *testing.T) {
	t.Parallel()
	raced := centurion.Task{Item: "T1", Status: centurion.TaskRunning, Race: &centurion.Race{ID: "tsk_1", Try: 1}}
	in := func(ts *Tasks, f func(tx *store.Tx) error) error { return ts.Mission.Store.Update(ts.Mission.Ctx, f) }
	run := func(ts *Tasks) *state.Run {
		r := &state.Run{ID: "tsk_1", Item: "T1"}
		now, _ := ts.Mission.Store.Task(ts.Mission.Ctx, "tsk_1")
		if now.ID == "" {
			now = raced
		}
		r.Now.Store(&now)
		return r
	}
	end := func(ts *Tasks) error {
		ts.Checkouts = isolation.New(ts.Mission, nil, nil)
		return in(ts, func(tx *store.Tx) error {
			_, err := ts.recordEnd(tx, run(ts), plan.View{}, centurion.TaskFailed, session.Outcome{}, nil, false)
			return err
		})
	}
	put := func(ts *Tasks) error {
		return in(ts, func(tx *store.Tx) error {
			_, _, err := ts.recorder.putDelegation(tx, []centurion.Task{{ID: "tsk_9", Mission: "msn_1", Parent: "ses_0", Call: "c9", Session: "ses_7"}}, nil, map[string]string{})
			return err
		})
	}
	for name, c := range map[string]struct {
		table string
		write bool
		do    func(ts *Tasks) error
	}{
		"an end":               {"task", true, end},
		"the task of an end":   {"task", false, end},
		"an end that is told":  {"journal", true, end},
		"a result":             {"delivery", true, end},
		"the parent":           {"session", false, end},
		"a cancelled task":     {"task", true, func(ts *Tasks) error { return CancelIdle(ts.Mission.Ctx, ts.Mission.Store, "tsk_1", "x") }},
		"one that is told":     {"delivery", true, func(ts *Tasks) error { return CancelIdle(ts.Mission.Ctx, ts.Mission.Store, "tsk_1", "x") }},
		"a delegation":         {"task", true, put},
		"one that was made":    {"task", false, put},
		"its number":           {"serial", true, put},
		"a delegation's event": {"journal", true, put},
		"an earlier end":       {"task", false, func(ts *Tasks) error { _, err := ts.firstEnd(ts.Mission.Ctx, run(ts)); return err }},
		"who has won":          {"task", false, func(ts *Tasks) error { return ts.lostRace(ts.Mission.Ctx, run(ts)) }},
		"who is told": {"task", false, func(ts *Tasks) error {
			return in(ts, func(tx *store.Tx) error { _, err := reports(tx, raced); return err })
		}},
		"a receipt": {"receipt", false, func(ts *Tasks) error {
			return in(ts, func(tx *store.Tx) error { return takeReceipts(tx, raced, centurion.TaskCompleted) })
		}},
		"a task that is queued": {"journal", true, func(ts *Tasks) error { _, err := ts.requeue(ts.Mission.Ctx, "tsk_1", "x"); return err }},
		"the first work": {"mission", true, func(ts *Tasks) error {
			return in(ts, func(tx *store.Tx) error { return underWay(tx, "msn_1", "worker") })
		}},
		"all tasks": {"task", false, func(ts *Tasks) error { _, _, err := ts.Restart(ts.Mission.Ctx); return err }},
	} {
		ts := recordedTasks(t, raced)
		mend, err := storetest.Fail(t.Context(), ts.Mission.Store, c.table, c.write)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.do(ts); err == nil {
			t.Errorf("%s: no error", name)
		}
		if err := mend(); err != nil {
			t.Fatal(err)
		}
		if name == "all tasks" {
			continue
		}
		if err := c.do(recordedTasks(t, raced)); err != nil {
			t.Errorf("%s, when nothing is refused: %v", name, err)
		}
	}
}

// The other tries of a race end with who has won, and their ends are waited for, unless the work itself is stopped.
func TestEndRace(t *testing.T) {
	t.Parallel()
	tries := func(n int, id string) *centurion.Race { return &centurion.Race{ID: id, Try: n} }
	ts := recordedTasks(t)
	var ended []string
	add := func(id string, r *centurion.Race) *state.Run {
		run := &state.Run{ID: id, Done: make(chan struct{})}
		run.Now.Store(&centurion.Task{ID: id, Item: "T1", Agent: "a", Race: r})
		run.Cancel = func(err error) {
			if _, lost := errors.AsType[*race.LostError](err); lost {
				ended = append(ended, id)
			}
			close(run.Done)
		}
		ts.Mission.Add(run)
		return run
	}
	own := add("tsk_1", tries(1, "r"))
	other := add("tsk_2", tries(2, "r"))
	add("tsk_3", tries(1, "q"))
	add("tsk_4", nil)
	if got := ts.rivals(own); len(got) != 1 || got[0] != other {
		t.Errorf("rivals %+v", got)
	}
	if err := ts.endRace(t.Context(), own); err != nil || strings.Join(ended, " ") != "tsk_2" {
		t.Errorf("ended %s, %v", ended, err)
	}
	other.Done, other.Cancel = make(chan struct{}), func(error) {}
	ctx, stop := context.WithCancelCause(t.Context())
	stop(centurion.ErrShutdown)
	if err := ts.endRace(ctx, own); err != error(centurion.ErrShutdown) {
		t.Errorf("stopped: %v", err)
	}
}
