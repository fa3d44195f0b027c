package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/budget"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/store/storetest"
)

// recordedTasks are the tasks of a mission that runs, with these recorded; each has a session of the same number.
func recordedTasks(t *testing.T, tasks ...centurion.Task) *Tasks {
	t.Helper()
	st := storetest.Open(t)
	m := centurion.Mission{ID: "msn_1", Session: "ses_0", Status: centurion.MissionPlanning, Options: centurion.MissionOptions{MaxCost: 1}}
	err := st.Update(t.Context(), func(tx *store.Tx) error {
		err := errors.Join(tx.PutMission(&m), tx.PutSession(&centurion.Session{ID: "ses_0", Metadata: centurion.SessionMeta{Mission: m.ID, Address: "0/"}}))
		for i, task := range tasks {
			task.ID, task.Mission, task.Parent, task.Number = fmt.Sprint("tsk_", i+1), m.ID, "ses_0", i+1
			err = errors.Join(err, tx.PutTask(&task))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancelCause(t.Context())
	t.Cleanup(func() { end(nil) })
	return New(Deps{Mission: state.New(ctx, end, st, m, nil), Reserves: budget.New(m, nil), Returns: 3})
}

// refused is a whole error as its reader sees it, "" for none.
func refused(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimSuffix(string(centurion.KindOf(err))+": "+err.Error()+" | "+centurion.HintOf(err), " | ")
}

// A task of a mission that is not running is cancelled with its reason, and its parent is told at once, unless that was told before; what has
// ended for good stays.
func TestCancelIdle(t *testing.T) {
	t.Parallel()
	race := func(n int) *centurion.Race { return &centurion.Race{ID: "tsk_5", Try: n, Agents: []string{"a", "b"}} }
	ts := recordedTasks(t, centurion.Task{Status: centurion.TaskQueued}, centurion.Task{Status: centurion.TaskCompleted}, centurion.Task{Status: centurion.TaskBlocked}, centurion.Task{Status: centurion.TaskFailed},
		centurion.Task{Status: centurion.TaskWaiting, Race: race(1), Item: "T1"}, centurion.Task{Status: centurion.TaskWaiting, Race: race(2), Item: "T1"})
	st := ts.Mission.Store
	if err := st.Update(t.Context(), func(tx *store.Tx) error { // a message that the first try has not read
		return tx.PutDelivery(&store.Delivery{ID: "del_1", Mission: "msn_1", Session: "tsk_5", Text: "x"})
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id, want string
		told     string // the deliveries to the parent afterwards
	}{
		{"tsk_1", "cancelled why", "tsk_1 true"},
		{"tsk_2", "completed", "tsk_1 true"},
		{"tsk_3", "cancelled why", "tsk_1 true"}, // its end as blocked was told
		{"tsk_4", "failed", "tsk_1 true"},
		{"tsk_5", "cancelled why", "x false, tsk_1 true"}, // the other try still works
		{"tsk_6", "cancelled why", "x false, tsk_1 true, tsk_6 true"},
	} {
		if err := CancelIdle(t.Context(), st, c.id, "why"); err != nil {
			t.Errorf("%s: %v", c.id, err)
		}
		task, err := st.Task(t.Context(), c.id)
		got := string(task.Status)
		if task.Error != nil {
			got += " " + task.Error.Message
		}
		waiting, derr := st.PendingDeliveries(t.Context(), "ses_0")
		var told []string
		for _, d := range waiting {
			told = append(told, fmt.Sprint(d.Task+d.Text, " ", d.Wake))
		}
		if errors.Join(err, derr) != nil || got != c.want || strings.Join(told, ", ") != c.told {
			t.Errorf("%s is %s, told %q; %v, %v", c.id, got, told, err, derr)
		}
	}
	if err := CancelIdle(t.Context(), st, "tsk_9", "why"); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("an unknown one: %v", err)
	}
}

// The work of a mission begins with the first agent that is no planner.
func TestUnderWay(t *testing.T) {
	t.Parallel()
	ts := recordedTasks(t)
	for _, c := range []struct {
		agent string
		want  centurion.MissionStatus
	}{{agents.Planner, centurion.MissionPlanning}, {agents.Worker, centurion.MissionRunning}, {agents.Worker, centurion.MissionRunning}} {
		var m centurion.Mission
		err := ts.Mission.Store.Update(t.Context(), func(tx *store.Tx) error {
			err := underWay(tx, "msn_1", c.agent)
			m, _ = tx.Mission("msn_1")
			return err
		})
		if err != nil || m.Status != c.want {
			t.Errorf("%s: %s, %v", c.agent, m.Status, err)
		}
	}
	told, err := ts.Mission.Store.Events(t.Context(), store.EventQuery{Mission: "msn_1"})
	var d event.MissionData
	if err != nil || len(told) != 1 || json.Unmarshal(told[0].Data, &d) != nil || d.Status != centurion.MissionRunning {
		t.Errorf("told %+v, %v", told, err)
	}
}

// What a delegation is refused for, with what would help; the same call finds its task, and all tries of a race are recorded or none.
func TestPutDelegation(t *testing.T) {
	t.Parallel()
	ts := recordedTasks(t, centurion.Task{Status: centurion.TaskRunning, Session: "ses_1", Item: "T1", Call: "c1"}, centurion.Task{Status: centurion.TaskFailed, Session: "ses_2", Item: "T2", Call: "c2"})
	task := func(t centurion.Task) centurion.Task {
		t.Mission, t.Parent = "msn_1", "ses_0"
		return t
	}
	for _, c := range []struct {
		name  string
		tasks []centurion.Task
		want  string // the names of its tasks, or the error
		fresh bool
	}{
		{"the same call", []centurion.Task{task(centurion.Task{ID: "tsk_a", Call: "c2", Item: "T9"})}, "T2 failed", false},
		{"an item at work", []centurion.Task{task(centurion.Task{ID: "tsk_b", Call: "c3", Item: "T1"})}, "conflict: item T1 is already being worked on | you will be told when it ends; cancel it first if you want another to do it", false},
		{"a session at work", []centurion.Task{task(centurion.Task{ID: "tsk_c", Call: "c4", Session: "ses_1"})}, "conflict: task T1 has not ended: it is running | you will be told when it ends; cancel it first if it is to do something else", false},
		{"a session that rests", []centurion.Task{task(centurion.Task{ID: "tsk_d", Call: "c5", Session: "ses_2"})}, "w1 queued", true},
		{"that session again", []centurion.Task{task(centurion.Task{ID: "tsk_e", Call: "c6", Session: "ses_2"})}, "conflict: task w1 has not ended: it is queued | you will be told when it ends; cancel it first if it is to do something else", false},
		{"a race", []centurion.Task{task(centurion.Task{ID: "tsk_f", Call: "c7", Item: "T3", Race: &centurion.Race{ID: "tsk_f", Try: 1}}), task(centurion.Task{ID: "tsk_g", Call: "c7", Item: "T3", Race: &centurion.Race{ID: "tsk_f", Try: 2}})}, "T3/1 queued, T3/2 queued", true},
		{"its item in the same commit", []centurion.Task{task(centurion.Task{ID: "tsk_h", Call: "c8", Item: "T3"})}, "conflict: item T3 is already being worked on | you will be told when it ends; cancel it first if you want another to do it", false},
	} {
		atWork := map[string]string{"T1": "tsk_1"}
		if c.name == "its item in the same commit" {
			atWork["T3"] = "tsk_f"
		}
		var got []string
		var fresh bool
		var failed error
		err := ts.Mission.Store.Update(t.Context(), func(tx *store.Tx) error {
			var out []centurion.Task
			out, fresh, failed = ts.recorder.putDelegation(tx, c.tasks, make([]budget.Amount, len(c.tasks)), atWork)
			got = nil
			for _, o := range out {
				got = append(got, o.Name()+" "+string(o.Status))
			}
			return nil
		})
		is := strings.Join(got, ", ")
		if failed != nil {
			is = refused(failed)
		}
		if is != c.want || fresh != c.fresh || err != nil || fresh && c.tasks[0].Item != "" && atWork[c.tasks[0].Item] != c.tasks[0].ID {
			t.Errorf("%s: %s, fresh %t; %v, %v", c.name, is, fresh, atWork, err)
		}
	}
	portion := budget.Amount{}
	portion[budget.USD] = 1 << 50 // more than the mission may spend
	err := ts.Mission.Store.Update(t.Context(), func(tx *store.Tx) error {
		_, fresh, err := ts.recorder.putDelegation(tx, []centurion.Task{task(centurion.Task{ID: "tsk_x", Call: "x"}), task(centurion.Task{ID: "tsk_y", Call: "x"})}, []budget.Amount{{}, portion}, map[string]string{})
		if centurion.KindOf(err) != centurion.KindBudget || fresh {
			t.Errorf("more than the budget: %v", err)
		}
		return nil
	})
	if _, terr := ts.Mission.Store.Task(t.Context(), "tsk_x"); err != nil || centurion.KindOf(terr) != centurion.KindNotFound {
		t.Errorf("half of it is recorded: %v, %v", err, terr)
	}
}

// The receipts of a race's winner become those of the item; those of others stay under the names of their tries.
func TestTakeReceipts(t *testing.T) {
	t.Parallel()
	race := &centurion.Race{ID: "tsk_1", Try: 1}
	for name, c := range map[string]struct {
		task   centurion.Task
		status centurion.TaskStatus
		want   string
	}{
		"completed":        {centurion.Task{Race: race}, centurion.TaskCompleted, "T1 T2"},
		"merged, but lost": {centurion.Task{Race: race, Landed: []centurion.Landed{{}}}, centurion.TaskCancelled, "T1 T2"},
		"overtaken":        {centurion.Task{Race: race}, centurion.TaskCancelled, "T1/1 T2"},
		"no race":          {centurion.Task{}, centurion.TaskCompleted, "T1/1 T2"},
	} {
		c.task.Item = "T1"
		ts := recordedTasks(t, c.task)
		var items []string
		err := ts.Mission.Store.Update(t.Context(), func(tx *store.Tx) error {
			task, err := tx.Task("tsk_1")
			for i, item := range []string{"T1/1", "T2"} {
				err = errors.Join(err, tx.PutReceipt(&centurion.Receipt{ID: fmt.Sprint("rcp_", i), Mission: "msn_1", Task: "tsk_1", Item: item}))
			}
			err = errors.Join(err, takeReceipts(tx, task, c.status))
			all, rerr := tx.Receipts("msn_1", "tsk_1")
			items = nil
			for _, r := range all {
				items = append(items, r.Item)
			}
			return errors.Join(err, rerr)
		})
		if got := strings.Join(items, " "); err != nil || got != c.want {
			t.Errorf("%s: %s, want %s; %v", name, got, c.want, err)
		}
	}
}

// A person is asked about stuck work when an earlier task of the same item or session has ended as blocked by its checks.
func TestFirstEnd(t *testing.T) {
	t.Parallel()
	red := &centurion.TaskError{Kind: centurion.KindVerify}
	now := centurion.Task{Item: "T1", Session: "ses_9", Status: centurion.TaskRunning, Race: &centurion.Race{ID: "r"}}
	for name, c := range map[string]struct {
		earlier centurion.Task
		first   bool
	}{
		"of the item":          {centurion.Task{Item: "T1", Status: centurion.TaskBlocked, Error: red}, false},
		"of the session":       {centurion.Task{Session: "ses_9", Status: centurion.TaskBlocked, Error: red}, false},
		"of another item":      {centurion.Task{Item: "T2", Session: "ses_8", Status: centurion.TaskBlocked, Error: red}, true},
		"another try":          {centurion.Task{Item: "T1", Status: centurion.TaskBlocked, Error: red, Race: &centurion.Race{ID: "r"}}, true},
		"failed":               {centurion.Task{Item: "T1", Status: centurion.TaskFailed, Error: red}, true},
		"blocked by something": {centurion.Task{Item: "T1", Status: centurion.TaskBlocked, Error: &centurion.TaskError{Kind: centurion.KindPermission}}, true},
		"blocked by nothing":   {centurion.Task{Item: "T1", Status: centurion.TaskBlocked}, true},
	} {
		ts := recordedTasks(t, c.earlier, now)
		r := &state.Run{ID: "tsk_2", Item: "T1"}
		r.Now.Store(&now)
		if first, err := ts.firstEnd(t.Context(), r); first != c.first || err != nil {
			t.Errorf("%s: %t, %v", name, first, err)
		}
	}
}

// How a task ends depends on why its work ended, and on whether its mission stops.
func TestEndStatus(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err     error
		status  centurion.TaskStatus
		stopped centurion.TaskStatus // if the mission stops
	}{
		"done":       {nil, centurion.TaskCompleted, centurion.TaskCompleted},
		"cancelled":  {&centurion.Error{Kind: centurion.KindCancelled}, centurion.TaskCancelled, centurion.TaskCancelled},
		"forbidden":  {&centurion.Error{Kind: centurion.KindPermission}, centurion.TaskBlocked, centurion.TaskQueued},
		"stuck":      {&agent.StuckError{Err: &centurion.Error{Kind: centurion.KindVerify}}, centurion.TaskBlocked, centurion.TaskQueued},
		"not proven": {&centurion.Error{Kind: centurion.KindVerify}, centurion.TaskFailed, centurion.TaskQueued},
		"broken":     {errors.New("x"), centurion.TaskFailed, centurion.TaskQueued},
	} {
		ctx, end := context.WithCancelCause(t.Context())
		ts := New(Deps{Mission: state.New(ctx, end, nil, centurion.Mission{}, nil)})
		before := ts.endStatus(c.err)
		end(centurion.ErrShutdown)
		if after := ts.endStatus(c.err); before != c.status || after != c.stopped {
			t.Errorf("%s: %s, then %s", name, before, after)
		}
	}
}

// A person reads the agent's own words first, then why the work cannot be merged.
func TestStuckQuestion(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"":               "T1 One: the check failed.\nHow should it go on?",
		" I need a key ": "T1 One: the worker says: I need a key\nthe check failed.\nHow should it go on?",
	} {
		if got := stuckQuestion("T1 One", "worker", "the check failed. \n", said); got != want {
			t.Errorf("%q", got)
		}
	}
	long := strings.Repeat("x", 2000)
	if got := stuckQuestion("T1", "worker", long, long); strings.Count(got, "x") != 2*strings.Count(centurion.Clip(long, 1500), "x") {
		t.Errorf("%d of %d characters are shown", strings.Count(got, "x"), 2*len(long))
	}
}

// A task that has only just been recorded is launched in a moment: only at the second search that finds it without a goroutine it is lost.
func TestFindLostLooksTwice(t *testing.T) {
	t.Parallel()
	ts := recordedTasks(t, centurion.Task{Status: centurion.TaskQueued}, centurion.Task{Status: centurion.TaskCompleted})
	for poll := 1; poll <= leasePolls; poll++ {
		ts.FindLost()
		if looked := poll == leasePolls; (len(ts.lost.found) == 1 && ts.lost.found[0] == "tsk_1") != looked || ts.Mission.Run("tsk_1") != nil {
			t.Errorf("after %d polls: found %v, launched %t", poll, ts.lost.found, ts.Mission.Run("tsk_1") != nil)
		}
	}
}

// A try that begins when another one of its race is merged already, as after a crash, does not work: its race is lost.
func TestLostRaceDoesNotBegin(t *testing.T) {
	t.Parallel()
	try := func(n int, status centurion.TaskStatus) centurion.Task {
		return centurion.Task{Status: status, Race: &centurion.Race{ID: "tsk_1", Try: n, Agents: []string{"a", "b"}}}
	}
	for status, want := range map[centurion.TaskStatus]centurion.Kind{centurion.TaskCompleted: centurion.KindCancelled, centurion.TaskRunning: "", centurion.TaskFailed: ""} {
		ts := recordedTasks(t, try(1, status), try(2, centurion.TaskQueued))
		second, err := ts.Mission.Store.Task(t.Context(), "tsk_2")
		if err != nil {
			t.Fatal(err)
		}
		r := &state.Run{ID: second.ID}
		r.Now.Store(&second)
		if err := ts.ready(t.Context(), r); centurion.KindOf(err) != want || (err == nil) != (want == "") {
			t.Errorf("beside one that is %s: %v", status, err)
		}
	}
}
