package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/redact"
)

// boss is the orchestrator as far as the tools see it.
type boss struct {
	tasks     map[string]centurion.Task
	delegated []Delegation
	update    TodoUpdate
	missing   string // what Complete finds missing
	ends      time.Duration
	can       string // be started
}

func (b *boss) find(id string) (centurion.Task, error) {
	if t, ok := b.tasks[id]; ok {
		return t, nil
	}
	return centurion.Task{}, &centurion.Error{Kind: centurion.KindNotFound, Msg: "there is no task " + id, Hint: "did you mean tsk_1?"}
}

func (b *boss) Delegate(_ context.Context, c *Call, d Delegation) (centurion.Task, error) {
	if d.Agent != "worker" {
		return centurion.Task{}, &centurion.Error{Kind: centurion.KindUsage, Msg: "there is no agent " + d.Agent, Hint: "did you mean worker?"}
	}
	b.delegated = append(b.delegated, d)
	t := centurion.Task{ID: "tsk_new", Number: 9, Title: d.Description, Agent: d.Agent, Item: d.Item, Prompt: d.Prompt, Call: c.ID, Resumes: d.Resume, Status: centurion.TaskQueued}
	if b.tasks == nil {
		b.tasks = map[string]centurion.Task{}
	}
	b.tasks[t.ID] = t
	return t, nil
}

func (b *boss) Await(ctx context.Context, _ *Call, id string) (centurion.Task, error) {
	t, err := b.find(id)
	if err != nil {
		return t, err
	}
	select {
	case <-time.After(b.ends):
	case <-ctx.Done():
		return t, context.Cause(ctx)
	}
	t.Status, t.Result = centurion.TaskCompleted, "all done"
	return t, nil
}

func (b *boss) Tasks(context.Context, *Call) ([]centurion.Task, error) {
	var out []centurion.Task
	for i := range len(b.tasks) {
		out = append(out, b.tasks[fmt.Sprintf("tsk_%d", i+1)])
	}
	return out, nil
}

func (b *boss) Result(_ context.Context, _ *Call, id string) (centurion.Task, string, error) {
	t, err := b.find(id)
	return t, b.can, err
}

func (b *boss) Report(_ context.Context, t centurion.Task) (string, error) {
	return "the notice of " + t.Name() + ": " + t.Result, nil
}

func (b *boss) Cancel(_ context.Context, _ *Call, id, reason string) (centurion.Task, error) {
	t, err := b.find(id)
	if err == nil && !t.Status.Ended() {
		t.Status, t.Reason = centurion.TaskCancelled, reason
	}
	return t, err
}

func (b *boss) ItemTitle(item string) string {
	return map[string]string{"T4": "Write NEWS.md", "T5": "x"}[item]
}

func (b *boss) Complete(_ context.Context, _ *Call, summary, check string) (string, error) {
	if b.missing != "" {
		return "", &centurion.Error{Kind: centurion.KindConflict, Msg: b.missing}
	}
	return "the mission is complete", nil
}

func (b *boss) UpdateTodo(_ context.Context, _ *Call, u TodoUpdate) (string, bool, error) {
	b.update = u
	return "2 open", false, nil
}

func newBoss(t testing.TB) (*bench, *boss) {
	b := newBench(t)
	boss := &boss{}
	b.Delegator, b.Planner = boss, boss
	return b, boss
}

// ORCH-10, ORCH-44
func TestDelegateTask(t *testing.T) {
	b, boss := newBoss(t)
	prompt := "  do this\n\nexactly  "
	r := b.must("delegate_task", args{"agent": " worker ", "description": "parse limits", "prompt": prompt, "item": "T1"})
	says(t, r.Output, `T1 "parse limits" (worker) is queued.`, "You will be told when it ends; end your turn when nothing else is left to do.")
	want(t, "delegation", boss.delegated[0], Delegation{Agent: "worker", Description: "parse limits", Prompt: prompt, Item: "T1"})
	want(t, "consumed", len(r.Consumes), 0)
	want(t, "task", r.Metadata["task"], any("tsk_new"))
	r = b.must("delegate_task", args{"agent": "worker", "description": "changelog for 0.4.0", "prompt": "y", "item": "T4"})
	says(t, r.Output, `T4 "changelog for 0.4.0" (worker; item: Write NEWS.md) is queued.`)
	r = b.must("delegate_task", args{"agent": "worker", "description": "x", "prompt": "y", "item": "T5"})
	says(t, r.Output, `T5 "x" (worker) is queued.`) // nothing twice
	if strings.Contains(r.Output, "continues") {
		t.Errorf("a task that begins anew: %s", r.Output)
	}
	for _, background := range []bool{true, false} {
		r = b.must("delegate_task", args{"agent": "worker", "description": "x", "prompt": "y", "resume": " tsk_1 ", "background": background})
		says(t, r.Output, "It continues the earlier conversation; its name is w9 from now on.")
	}
	b.refused("delegate_task", args{"agent": "wroker", "description": "x", "prompt": "y"}, centurion.KindUsage, "no agent wroker", "did you mean worker?")
	b.refused("delegate_task", args{"agent": "worker", "description": "x"}, centurion.KindUsage, `"prompt" is missing`)
}

// ORCH-118
func TestDelegateAndWait(t *testing.T) {
	in := args{"agent": "worker", "description": "x", "prompt": "y", "background": false}
	run := func(t *testing.T, ctx context.Context, ends time.Duration) (Result, time.Duration, error) {
		c := &Call{Delegator: &boss{ends: ends}, Progress: func(string) {}}
		start := time.Now()
		r, err := tool(t, "delegate_task").Run(ctx, c, mustJSON(t, in))
		return r, time.Since(start), err
	}
	synctest.Test(t, func(t *testing.T) {
		r, took, err := run(t, t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		says(t, r.Output, "the notice of w9: all done")
		wantList(t, "consumed", r.Consumes, "tsk_new")
		want(t, "took", took, time.Minute)

		r, took, err = run(t, t.Context(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		says(t, r.Output, "has not ended after 5m and continues in the background", "You will be told")
		want(t, "consumed", len(r.Consumes), 0)
		want(t, "took", took, 5*time.Minute+10*time.Second)

		// The orchestrator's own end of the wait: the task as it stands, and no error.
		c := &Call{Delegator: waitsLess{&boss{}}, Progress: func(string) {}}
		r, err = tool(t, "delegate_task").Run(t.Context(), c, mustJSON(t, in))
		if err != nil {
			t.Fatal(err)
		}
		says(t, r.Output, "continues in the background")
		want(t, "consumed", len(r.Consumes), 0)

		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(centurion.ErrShutdown) })
		_, took, err = run(t, ctx, time.Hour)
		want(t, "kind", centurion.KindOf(err), centurion.KindInterrupted)
		want(t, "took", took, time.Second)
	})
}

// waitsLess gives up a wait before its caller does.
type waitsLess struct{ *boss }

func (w waitsLess) Await(_ context.Context, _ *Call, id string) (centurion.Task, error) {
	return w.find(id)
}

func mustJSON(t testing.TB, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func someTasks() map[string]centurion.Task {
	start := centurion.MillisTime(time.Now().Add(-30 * time.Second).UnixMilli())
	return map[string]centurion.Task{
		"tsk_1": {ID: "tsk_1", Number: 1, Title: "parse", Agent: "worker", Item: "T1", Status: centurion.TaskCompleted, Result: "parsed\n", Attempt: 2,
			Files: []string{"config/limits.go"}, Started: start, Ended: centurion.Time{Time: start.Add(20 * time.Second)},
			Usage: centurion.Usage{USD: 0.0123, Tokens: centurion.Tokens{Input: 1000, Output: 234}}},
		"tsk_2": {ID: "tsk_2", Number: 2, Title: "enforce", Agent: "worker", Status: centurion.TaskRunning, Started: start},
		"tsk_3": {ID: "tsk_3", Number: 3, Title: "look", Agent: "reviewer", Status: centurion.TaskWaiting, Reason: "for T1"},
		"tsk_4": {ID: "tsk_4", Number: 4, Title: "fail", Agent: "worker", Status: centurion.TaskFailed,
			Error: &centurion.TaskError{Kind: centurion.KindVerify, Message: "go test: exit code 1\nmore"}, Usage: centurion.Usage{Unpriced: true}},
	}
}

// ORCH-45
func TestGetTaskResult(t *testing.T) {
	b, boss := newBoss(t)
	boss.tasks = someTasks()
	r := b.must("get_task_result", args{"task_id": "tsk_1"})
	want(t, "output", r.Output, "the notice of T1: parsed\n")
	wantList(t, "consumed", r.Consumes, "tsk_1")
	r = b.must("get_task_result", args{"task_id": "tsk_2"})
	says(t, r.Output, "has not ended: running. You will be told")
	boss.can = "Can be started: T3."
	says(t, b.must("get_task_result", args{"task_id": "tsk_2"}).Output, "running. Can be started: T3. You will be told")
	want(t, "consumed", len(r.Consumes), 0)
	says(t, b.must("get_task_result", args{"task_id": "tsk_3"}).Output, "waiting: for T1")
	want(t, "failed", b.must("get_task_result", args{"task_id": "tsk_4"}).Output, "the notice of w4: ")
	b.refused("get_task_result", args{"task_id": "tsk_9"}, centurion.KindNotFound, "no task tsk_9", "did you mean tsk_1?")
}

// ORCH-46
func TestListTasks(t *testing.T) {
	b, boss := newBoss(t)
	want(t, "output", b.must("list_tasks", args{}).Output, "no task has been delegated yet")
	boss.tasks = someTasks()
	want(t, "output", b.must("list_tasks", args{}).Output, `T1 "parse" (worker): completed
w2 "enforce" (worker): running
w3 "look" (reviewer): waiting: for T1
w4 "fail" (worker): failed, verify: go test: exit code 1 …
`)
	says(t, b.must("list_tasks", args{"status": "waiting"}).Output, "w3")
	silent(t, b.must("list_tasks", args{"status": "waiting"}).Output, "parse", "w2")
	want(t, "none", b.must("list_tasks", args{"status": "queued"}).Output, "none of 4 tasks is queued")
	b.refused("list_tasks", args{"status": "done"}, centurion.KindUsage, "has to be one of queued, running")
	// Of two tasks of an item, its name means the newest; the other has its number, by which it is found as well.
	boss.tasks = map[string]centurion.Task{"tsk_1": {ID: "tsk_1", Number: 1, Item: "T1", Title: "try", Agent: "worker", Status: centurion.TaskFailed},
		"tsk_2": {ID: "tsk_2", Number: 2, Item: "T1", Title: "try again", Agent: "worker", Status: centurion.TaskRunning}}
	want(t, "two of an item", b.must("list_tasks", args{}).Output, "w1 \"try\" (worker; earlier task of T1): failed\nT1 \"try again\" (worker): running\n")
}

// ORCH-47
func TestCancelTask(t *testing.T) {
	b, boss := newBoss(t)
	boss.tasks = someTasks()
	want(t, "output", b.must("cancel_task", args{"task_id": "tsk_2", "reason": "no need"}).Output, `w2 "enforce" (worker) is cancelled.`)
	says(t, b.must("cancel_task", args{"task_id": "tsk_1"}).Output, "had ended before (completed); nothing was cancelled")
	b.refused("cancel_task", args{"task_id": "tsk_9"}, centurion.KindNotFound, "did you mean")
}

func TestMissionComplete(t *testing.T) {
	b, boss := newBoss(t)
	boss.missing = "T2 is open; tsk_3 runs"
	b.refused("mission_complete", args{"summary": "all done"}, centurion.KindConflict, "T2 is open; tsk_3 runs")
	boss.missing = ""
	r := b.must("mission_complete", args{"summary": "all done"})
	want(t, "output", r.Output, "the mission is complete")
	want(t, "ends the turn", r.EndTurn, true)
}

// S7: a key that a model says does not reach the plan, which is shown, sent and kept; what is not given stays not given.
func TestPlanHasNoKeys(t *testing.T) {
	c := &Call{Keys: redact.New(redact.Key{Name: "SERVICE", Value: "zq7-0wn-service-key"})}
	got, err := c.withoutKeys(TodoUpdate{Content: "use zq7-0wn-service-key", Items: []ItemUpdate{{ID: "T1", Note: "it is zq7-0wn-service-key", After: []string{}}, {ID: "T2", Title: "x"}},
		Add: []NewItem{{Title: "y", Verify: []string{"curl -H zq7-0wn-service-key"}}}})
	want(t, "error", err, nil)
	want(t, "plan", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", TodoUpdate{Content: "use [key SERVICE]", Items: []ItemUpdate{{ID: "T1", Note: "it is [key SERVICE]", After: []string{}}, {ID: "T2", Title: "x"}},
		Add: []NewItem{{Title: "y", Verify: []string{"curl -H [key SERVICE]"}}}}))
	want(t, "cleared", got.Items[0].After != nil && got.Items[1].After == nil, true)
}

func TestUpdateTodo(t *testing.T) {
	b, boss := newBoss(t)
	r := b.must("update_todo", `{"level":2,"items":[{"id":"T1","status":"done","note":"n"}],"add":[{"title":"x","after":["T1"],"verify":"make test"}]}`)
	want(t, "output", r.Output, "2 open")
	got := mustJSON(t, boss.update)
	want(t, "update", string(got), `{"Level":2,"Content":"","Items":[{"id":"T1","status":"done","note":"n"}],"Add":[{"title":"x","after":["T1"],"verify":["make test"]}]}`)
	b.refused("update_todo", args{}, centurion.KindUsage, "nothing was given to change")
	b.refused("update_todo", args{"items": []args{{"id": "T1"}}}, centurion.KindUsage, "in item T1")
	for _, one := range []string{`"status":"done"`, `"title":"t"`, `"note":"n"`} {
		b.must("update_todo", `{"items":[{"id":"T2",`+one+`}]}`)
		want(t, "one change", string(mustJSON(t, boss.update)), `{"Level":0,"Content":"","Items":[{"id":"T2",`+one+`}],"Add":null}`)
	}
	b.must("update_todo", `{"items":[{"id":"T2","after":["T1"]}]}`)
	want(t, "only what it waits for", string(mustJSON(t, boss.update)), `{"Level":0,"Content":"","Items":[{"id":"T2","after":["T1"]}],"Add":null}`)
	b.refused("update_todo", args{"level": 4}, centurion.KindUsage, "at most 3")
}

// What a role does not hold it cannot use, even if its model calls it.
func TestWithoutTheWayUp(t *testing.T) {
	b := newBench(t)
	for name, in := range map[string]args{
		"delegate_task": {"agent": "worker", "description": "x", "prompt": "y"}, "get_task_result": {"task_id": "tsk_1"}, "list_tasks": {},
		"cancel_task": {"task_id": "tsk_1"}, "mission_complete": {"summary": "x"}, "update_todo": {"level": 1},
	} {
		b.refused(name, in, centurion.KindPermission, "your role does not")
	}
}

// A call whose session has ended does nothing and says truthfully why.
func TestEndedCall(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(centurion.ErrShutdown)
	for _, tl := range All() {
		_, err := tl.Run(ctx, b.Call, json.RawMessage(`{"filePath":"new.txt","content":"x"}`))
		if k := centurion.KindOf(err); k != centurion.KindInterrupted {
			t.Errorf("%s: %v (%s)", tl.Name(), err, k)
		}
	}
	silent(t, b.must("ls", args{}).Output, "new.txt")
	silent(t, strings.Join(b.gate.permissions(), " "), "edit")
}
