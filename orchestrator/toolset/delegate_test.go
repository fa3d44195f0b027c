package toolset

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/budget"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/tools"
	"centurion/workspace"
)

// delegating is how the mission's own agent, or a task of it, hands out work in a mission with these tasks; each has the session of its number.
func delegating(t *testing.T, m centurion.Mission, of string, tasks ...centurion.Task) *delegator {
	t.Helper()
	st := storetest.Open(t)
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	m.ID, m.Session, m.Status = "msn_1", "ses_0", centurion.MissionRunning
	session := func(id, agent, address string) centurion.Session {
		return centurion.Session{ID: id, Agent: agent, Model: &centurion.SessionModel{Provider: "p", ID: "m"}, Metadata: centurion.SessionMeta{Mission: m.ID, Address: address}}
	}
	rec := session("ses_0", "commander", "0/")
	err = st.Update(t.Context(), func(tx *store.Tx) error {
		err := errors.Join(tx.PutMission(&m), tx.PutSession(&rec))
		for i, task := range tasks {
			task.ID, task.Mission, task.Number = fmt.Sprint("tsk_", i+1), m.ID, i+1
			if task.Parent == "" {
				task.Parent = "ses_0"
			}
			child := session(fmt.Sprint("ses_", i+1), task.Agent, fmt.Sprint("0/", i+1))
			child.Time.Archived = map[bool]int64{true: 1}[task.Title == "dropped"]
			err = errors.Join(err, tx.PutTask(&task), tx.PutSession(&child))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancelCause(t.Context())
	t.Cleanup(func() { end(nil) })
	mission := state.New(ctx, end, st, m, agents.Default())
	p := plan.New(mission, nil, nil, ws.Todo(), nil)
	models := agent.Models{Model: func(string) (agent.Model, error) { return agent.Model{}, nil }}
	all := agent.New(mission, isolation.New(mission, isolation.NewProject(st, ws, nil, nil), nil), p, nil, budget.New(m, nil), agent.Config{Models: models}, agent.Above{})
	own, err := mission.Cast.Find("commander")
	if err != nil {
		t.Fatal(err)
	}
	c, err := all.New(ctx, rec, own, nil)
	if err == nil {
		err = c.Load(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	if of != "" {
		c.Task = &state.Run{ID: of, Done: make(chan struct{})}
	}
	return &delegator{Set: &Set{Mission: mission, Plan: p, Workspace: ws, Sessions: all}, c: c}
}

// refused is a whole error as a model reads it, "" for none.
func refused(err error) string {
	if err == nil {
		return ""
	}
	return string(centurion.KindOf(err)) + ": " + err.Error() + " | " + centurion.HintOf(err)
}

// A task is found by its item, its name and its id, the newest first; what is not there is told with what is near or what there is.
func TestFind(t *testing.T) {
	t.Parallel()
	try := func(n int) *centurion.Race {
		return &centurion.Race{ID: "tsk_3", Try: n, Lost: n == 2, Agents: []string{"a", "b"}}
	}
	tasks := []centurion.Task{{Item: "T1"}, {Item: "T1"}, {Item: "T2", Race: try(1)}, {Item: "T2", Race: try(2)}, {}, {Parent: "ses_9", Item: "T7"}}
	const newest = "the newest are: T7, w5, T2/2, T2/1, T1"
	for _, c := range []struct{ of, name, want string }{
		{"", "T1", "tsk_2"}, {"", "T2", "tsk_3"}, {"", "T2/1", "tsk_3"}, {"", "T2/2", "tsk_4"}, {"", "w5", "tsk_5"}, {"", "w1", "tsk_1"}, {"", "tsk_1", "tsk_1"}, {"", "T7", "tsk_6"},
		{"", "", `not_found: there is no task "" | ` + newest},
		{"", "xyz12345", `not_found: there is no task "xyz12345" | ` + newest},
		{"", "T2/3", `not_found: there is no task "T2/3" | did you mean T2/2?`},
		{"tsk_9", "T1", "tsk_2"},
		{"tsk_9", "T7xxxxxxx", `not_found: there is no task "T7xxxxxxx" | the newest are: w5, T2/2, T2/1, T1, T1`},
	} {
		d := delegating(t, centurion.Mission{}, c.of, tasks...)
		got, err := d.find(t.Context(), c.name)
		if is := got.ID + refused(err); is != c.want {
			t.Errorf("%s %q: %s, want %s", c.of, c.name, is, c.want)
		}
	}
	if _, err := delegating(t, centurion.Mission{}, "").find(t.Context(), "T1"); refused(err) != `not_found: there is no task "T1" | nothing has been delegated yet` {
		t.Error(refused(err))
	}
}

// Whose session goes on is the newest task of that agent, if it has ended and its conversation is kept.
func TestResumes(t *testing.T) {
	t.Parallel()
	done := centurion.TaskCompleted
	tasks := []centurion.Task{{Item: "T1", Agent: "worker", Session: "ses_1", Status: done}, {Item: "T1", Agent: "reviewer", Session: "ses_2", Status: done}, {Item: "T2", Agent: "worker", Session: "ses_3", Status: centurion.TaskRunning},
		{Item: "T3", Agent: "worker", Status: centurion.TaskCancelled}, {Item: "T4", Agent: "worker", Session: "ses_5", Status: done, Title: "dropped"}, {Item: "T5", Agent: "worker", Session: "ses_gone", Status: done},
		{Item: "T1", Agent: "worker", Session: "ses_1", Status: centurion.TaskFailed}}
	d := delegating(t, centurion.Mission{}, "", tasks...)
	const fresh = "leave out resume to hand it to a new session"
	for _, c := range []struct{ agent, resume, want string }{
		{"worker", "", ""}, {"worker", "T1", "tsk_7"}, {"reviewer", "T1", "tsk_2"}, {"worker", "ses_1", "tsk_7"}, {"worker", "tsk_1", "tsk_1"}, {"worker", "w7", "tsk_7"},
		{"planner", "T1", "tsk_7conflict: task T1 is the worker's | resume it as worker, or leave out resume to hand it to a new planner"},
		{"worker", "T2", "tsk_3conflict: task T2 has not ended: it is running | you will be told when it ends; cancel it first if it is to do something else"},
		{"worker", "T3", "tsk_4conflict: task T3 ended before it began: there is nothing to resume | " + fresh},
		{"worker", "T4", "tsk_5conflict: the conversation of task T4 is not kept any more | " + fresh + ", with what it has to know in the prompt"},
		{"worker", "T5", "tsk_6conflict: the conversation of task T5 is not kept any more | " + fresh + ", with what it has to know in the prompt"},
		{"worker", "xyz12345", `not_found: there is no task "xyz12345" to resume | ` + fresh},
		{"worker", "T99", `not_found: there is no task "T99" to resume | ` + fresh},
	} {
		got, err := d.resumes(t.Context(), agents.Agent{Name: c.agent}, tools.Delegation{Resume: c.resume})
		if is := got.ID + refused(err); is != c.want && !(c.resume == "T99" && strings.Contains(is, "did you mean T")) {
			t.Errorf("%s %q: %s, want %s", c.agent, c.resume, is, c.want)
		}
	}
}

// Who may be handed work, and when.
func TestAllowed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opts  centurion.MissionOptions
		agent string
		want  string // the agent, or why not
	}{
		"a worker":            {centurion.MissionOptions{}, "Worker", "worker"},
		"itself":              {centurion.MissionOptions{}, "commander", "permission: the commander may not delegate to the commander | it may delegate to: planner, worker, reviewer"},
		"only a plan":         {centurion.MissionOptions{PlanOnly: true}, "worker", "permission: only a plan is wanted: no work is started | write the todo list with update_todo, or delegate to the planner, then end your turn"},
		"only a plan, by one": {centurion.MissionOptions{PlanOnly: true}, "planner", "planner"},
		"the plan first":      {centurion.MissionOptions{PlanFirst: true}, "worker", "permission: the person wants to see the plan before anything is written | save it first with update_todo, one item for small work; then this call shows it to the person and waits for the answer"},
		"who plans it":        {centurion.MissionOptions{PlanFirst: true}, "planner", "planner"},
	} {
		got, err := delegating(t, centurion.Mission{Options: c.opts}, "").allowed(t.Context(), tools.Delegation{Agent: c.agent})
		is := refused(err)
		if err == nil {
			is = got.Name
		}
		if is != c.want {
			t.Errorf("%s: %s, want %s", name, is, c.want)
		}
	}
	if _, err := delegating(t, centurion.Mission{}, "").allowed(t.Context(), tools.Delegation{Agent: "nobody"}); err == nil {
		t.Error("an unknown agent may be handed work")
	}
	if _, err := delegating(t, centurion.Mission{}, "tsk_1").Complete(t.Context(), nil, "s", ""); refused(err) != "permission: a task does not end the mission | end your turn with your result; the mission's own agent judges it" {
		t.Error(refused(err))
	}
}

// A task whose item comes after others is returned as waiting, as it will be; what is repeated is told as it stands.
func TestRecorded(t *testing.T) {
	t.Parallel()
	d := delegating(t, centurion.Mission{}, "")
	v := plan.View{Doc: parse(t, "- [ ] T1 One\n- [ ] T2 Two\n  - after: T1\n")}
	for name, c := range map[string]struct {
		task centurion.Task
		p    plan.View
		err  error
		want string
	}{
		"it waits":         {centurion.Task{Item: "T2", Status: centurion.TaskQueued}, v, nil, "waiting after T1"},
		"it may begin":     {centurion.Task{Item: "T1", Status: centurion.TaskQueued}, v, nil, "queued "},
		"a review":         {centurion.Task{Item: "T2", Reviews: true, Status: centurion.TaskQueued}, v, nil, "queued "},
		"known and ended":  {centurion.Task{Item: "T2", Status: centurion.TaskFailed}, v, nil, "failed "},
		"without a plan":   {centurion.Task{Item: "T2", Status: centurion.TaskQueued}, plan.View{}, nil, "queued "},
		"what was refused": {centurion.Task{Item: "T2", Status: centurion.TaskQueued}, v, errors.New("x"), "queued "},
	} {
		got, err := d.record(c.p, func(t centurion.Task, _ func()) (centurion.Task, error) { return t, c.err }, c.task, nil)
		if is := string(got.Status) + " " + got.Reason; is != c.want || err != c.err {
			t.Errorf("%s: %s, %v", name, is, err)
		}
	}
	a := []centurion.Task{{ID: "a", Status: centurion.TaskQueued, Reason: "r"}, {ID: "b", Status: centurion.TaskRunning}}
	if got := standOf(a); got != "a queued r\nb running \n" {
		t.Errorf("%q", got)
	}
	for status, want := range map[string]string{"open": " ", "PENDING": " ", "done": "x", "Completed": "x", "cancelled": "-", "canceled": "-", "blocked": "!"} {
		if mark, err := markOf(status); err != nil || string(rune(mark)) != want {
			t.Errorf("%s: %c, %v", status, mark, err)
		}
	}
	if _, err := markOf("running"); refused(err) != `usage: "running" is not a status | use open, done, cancelled or blocked; running is set by delegate_task` {
		t.Error(refused(err))
	}
}

// The notice of a cancelled task says who did it, and one that has ended stays as it is.
func TestCancelled(t *testing.T) {
	t.Parallel()
	d := delegating(t, centurion.Mission{}, "", centurion.Task{Item: "T1", Status: centurion.TaskCompleted})
	if got, err := d.Cancel(t.Context(), nil, "T1", ""); err != nil || got.Status != centurion.TaskCompleted {
		t.Errorf("%+v, %v", got, err)
	}
	if all, err := d.Tasks(t.Context(), nil); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	if got, can, err := d.Result(t.Context(), nil, "T1"); err != nil || can != "" || got.ID != "tsk_1" {
		t.Errorf("%+v, %q, %v", got, can, err)
	}
	if got, err := d.Await(t.Context(), nil, "tsk_1"); err != nil || got.ID != "tsk_1" {
		t.Errorf("%+v, %v", got, err)
	}
}
