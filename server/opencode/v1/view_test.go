package v1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/server"
	"centurion/store"
)

// brief is an event in one word or two: what a client goes by.
func brief(e told) string {
	at := func(path ...string) string {
		var v any = e.Properties
		for _, name := range path {
			m, _ := v.(map[string]any)
			v = m[name]
		}
		return fmt.Sprint(v)
	}
	switch e.Type {
	case "session.status":
		return "status " + at("status", "type")
	case "message.updated":
		return "message " + at("info", "role") + map[bool]string{true: " whole", false: ""}[at("info", "time", "completed") != "<nil>"]
	case "message.part.updated":
		if at("part", "type") == "tool" {
			return "part " + at("part", "tool") + " " + at("part", "state", "status")
		}
		return "part " + at("part", "type")
	case "message.part.delta":
		return "delta " + at("field")
	}
	return e.Type
}

// Issue "Real OpenCode clients" 2, 3, 4: facts become OpenCode's events in the order that its clients go by.
func TestFactsBecomeEvents(t *testing.T) {
	x := newRig(t)
	plain, global := x.listen("/event"), x.listen("/global/event")
	expect := func(want ...string) (all []told) {
		t.Helper()
		var got []string
		for range want {
			e := plain()
			got, all = append(got, brief(e)), append(all, e)
			if other := global(); other.ID != e.ID {
				t.Errorf("the stream of all projects has %s %s instead of %s", other.Type, other.ID, e.ID)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("told\n%v, want\n%v", strings.Join(got, ", "), strings.Join(want, ", "))
		}
		return all
	}
	root := x.root.ID
	user := centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: root, Role: centurion.RoleUser, Agent: "commander", Model: centurion.ModelRef{Provider: "custom", ID: "m"},
		Time: centurion.MessageTime{Created: 1}}
	said := centurion.Part{ID: centurion.NewID(centurion.PrefixPart), SessionID: root, MessageID: user.ID, Type: centurion.PartText, Text: "go"}
	put := func(m *centurion.Message, parts ...*centurion.Part) func(tx *store.Tx) error {
		return func(tx *store.Tx) error {
			err := tx.PutMessage(m)
			for _, p := range parts {
				err = errors.Join(err, tx.PutPart(p))
			}
			return err
		}
	}
	x.fact(centurion.EventMessageCreated, root, "", map[string]any{"message": user.ID, "role": "user"}, put(&user, &said))
	expect("message user", "part text") // its mission has been busy from the start

	answer := centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: root, Role: centurion.RoleAssistant, ParentID: user.ID, Agent: "commander",
		Model: user.Model, Path: centurion.MessagePath{Cwd: "/", Root: "/"}, Time: centurion.MessageTime{Created: 2}}
	x.fact(centurion.EventMessageCreated, root, "", map[string]any{"message": answer.ID, "role": "assistant"}, put(&answer))
	thought := centurion.NewID(centurion.PrefixPart)
	expect("message assistant")
	for i, want := range [][]string{{"part reasoning", "delta text"}, {"delta text"}} {
		x.hub.Publish(centurion.Event{Type: centurion.EventDelta, Session: root, Time: centurion.Now(), After: x.store.LastSeq(),
			Data: event.Data(event.DeltaData{Message: answer.ID, Part: thought, Field: "reasoning", Delta: fmt.Sprint(i)})})
		expect(want...)
	}

	call := centurion.Part{ID: centurion.NewID(centurion.PrefixPart), SessionID: root, MessageID: answer.ID, Type: centurion.PartTool, Tool: "delegate_task", CallID: "c1",
		State: &centurion.ToolState{Status: centurion.ToolRunning, Input: json.RawMessage(`{"agent":"worker","prompt":"do"}`), Time: centurion.PartTime{Start: 3}}}
	x.fact(centurion.EventToolStarted, root, "", event.ToolData{Tool: "delegate_task", Call: "c1", Message: answer.ID, Part: call.ID}, func(tx *store.Tx) error { return tx.PutPart(&call) })
	expect("part task pending", "part task running")

	child := centurion.Session{ID: centurion.NewID(centurion.PrefixSession), ParentID: root, Agent: "worker", Slug: "0-0", ProjectID: "global", Version: "9", Metadata: centurion.SessionMeta{Mission: x.mission.ID, Address: "0/0"}}
	task := centurion.Task{ID: centurion.NewID(centurion.PrefixTask), Mission: x.mission.ID, Parent: root, Call: answer.ID + "/c1", Session: child.ID, Status: centurion.TaskRunning, Attempt: 1}
	call.State = &centurion.ToolState{Status: centurion.ToolCompleted, Input: call.State.Input, Output: "it runs", Time: centurion.PartTime{Start: 3, End: 4}}
	x.fact(centurion.EventSessionCreated, child.ID, task.ID, nil, func(tx *store.Tx) error {
		return errors.Join(tx.PutSession(&child), tx.PutTask(&task), tx.PutPart(&call))
	})
	x.fact(centurion.EventTaskStarted, child.ID, task.ID, nil, nil)
	got := expect("session.created", "part task running") // it works in the background, whatever its call has returned
	state := got[1].Properties["part"].(map[string]any)["state"].(map[string]any)
	if m := state["metadata"]; m == nil || m.(map[string]any)["sessionId"] != child.ID {
		t.Errorf("the call leads to %v", m)
	}
	if in := state["input"].(map[string]any); in["subagent_type"] != "worker" || in["description"] == nil {
		t.Errorf("the call is told with %v", in)
	}
	x.fact(centurion.EventTaskUpdated, child.ID, task.ID, nil, nil) // nothing is new
	task.Status = centurion.TaskCompleted
	x.fact(centurion.EventTaskCompleted, child.ID, task.ID, nil, func(tx *store.Tx) error { return tx.PutTask(&task) })
	expect("part task completed")

	x.fact(centurion.EventProviderRetry, root, "", event.RetryData{Attempt: 1, WaitMS: 1000, Error: "429"}, nil)
	expect("status retry")
	answer.Time.Completed, answer.Finish = 5, centurion.FinishStop
	x.fact(centurion.EventMessageUpdated, root, "", map[string]any{"message": answer.ID}, put(&answer))
	expect("status busy", "part task completed", "message assistant whole", "session.updated")
	x.fact(centurion.EventTodoUpdated, root, "", event.TodoData{Items: []event.PlanItem{{ID: "T1", Title: "One", Status: "blocked"}, {ID: "T2", Title: "Two", Status: "running"}}}, nil)
	if todos := fmt.Sprint(expect("todo.updated")[0].Properties["todos"]); todos != "[map[content:T1 One (blocked) priority:medium status:pending] map[content:T2 Two priority:medium status:in_progress]]" {
		t.Errorf("the todos are %s", todos)
	}

	asked := centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: root, Role: centurion.RoleAssistant, ParentID: user.ID, Agent: "commander", Model: user.Model,
		Path: answer.Path, Time: centurion.MessageTime{Created: 6, Completed: 7}, Finish: centurion.FinishToolCalls}
	run := centurion.Part{ID: centurion.NewID(centurion.PrefixPart), SessionID: root, MessageID: asked.ID, Type: centurion.PartTool, Tool: "bash", CallID: "c2",
		State: &centurion.ToolState{Status: centurion.ToolPending}}
	end := centurion.Part{ID: centurion.NewID(centurion.PrefixPart), SessionID: root, MessageID: asked.ID, Type: centurion.PartStepFinish, Reason: centurion.FinishToolCalls}
	x.fact(centurion.EventMessageUpdated, root, "", map[string]any{"message": asked.ID}, put(&asked, &run, &end))
	expect("part bash pending", "session.updated")
	run.State = &centurion.ToolState{Status: centurion.ToolCompleted, Input: json.RawMessage(`{}`), Time: centurion.PartTime{Start: 7, End: 8}}
	x.fact(centurion.EventToolCompleted, root, "", event.ToolData{Tool: "bash", Call: "c2", Message: asked.ID, Part: run.ID}, func(tx *store.Tx) error { return tx.PutPart(&run) })
	expect("part bash completed", "part step-finish", "message assistant whole")

	byCall := store.Ask{ID: centurion.NewID(centurion.PrefixPermission), Type: store.AskPermission, Mission: x.mission.ID, Session: child.ID, Message: answer.ID, Call: "c1", Permission: "bash", Patterns: []string{"rm x"}}
	plan := store.Ask{ID: centurion.NewID(centurion.PrefixPermission), Type: store.AskPermission, Mission: x.mission.ID, Session: root, Permission: "bash", Title: "make check", Patterns: []string{"make check"}, Text: "a check of the plan"}
	for _, a := range []store.Ask{byCall, plan} {
		x.fact(centurion.EventPermissionAsked, a.Session, "", event.AskData{ID: a.ID, Type: a.Type, Message: a.Message, Call: a.Call}, func(tx *store.Tx) error { return tx.PutAsk(&a) })
	}
	got = expect("permission.asked", "question.asked")
	if q := fmt.Sprint(got[1].Properties["questions"]); !strings.Contains(q, "a check of the plan\nmake check") || !strings.Contains(q, "Always allow") {
		t.Errorf("what no dialog shows is asked as %s", q)
	}
	x.fact(centurion.EventPermissionReplied, child.ID, "", event.AskData{ID: byCall.ID, Type: byCall.Type, Message: byCall.Message, Call: byCall.Call, Answer: "rather not"}, nil)
	x.fact(centurion.EventQuestionAnswered, root, "", event.AskData{ID: "que_1", Type: store.AskQuestion, Answer: event.NoAnswer}, nil)
	if got = expect("permission.replied", "question.rejected"); got[0].Properties["reply"] != "reject" {
		t.Errorf("a refusal in words is told as %v", got[0].Properties["reply"])
	}

	x.fact(centurion.EventSessionIdle, root, "", nil, nil) // its mission works on: nothing is told
	x.fact(centurion.EventSessionError, root, "", map[string]any{"kind": centurion.KindCancelled, "error": "stopped"}, nil)
	if e := expect("session.error")[0]; !strings.Contains(fmt.Sprint(e.Properties["error"]), "MessageAbortedError") {
		t.Errorf("an abort is told as %v", e.Properties["error"])
	}
	x.fact(centurion.EventSessionAborted, root, "", nil, nil)
	expect("status idle", "session.idle")
	x.fact(centurion.EventMissionPaused, root, "", nil, nil) // nothing is left to be told
	_ = x.project.told.Await(t.Context(), x.store.LastSeq())
	if status, body := x.ask("GET", "/session/status", ""); status != 200 || body != "{}" {
		t.Errorf("at rest the states are %d %s", status, body)
	}
}

// goneOnce is a host that is gone when it is first asked for a message.
type goneOnce struct {
	server.API
	asked int
}

func (g *goneOnce) Message(_ context.Context, session, id string, _ ...string) (server.Message, error) {
	if g.asked++; g.asked == 1 {
		return server.Message{}, &centurion.Error{Kind: centurion.KindNetwork, Msg: "gone"}
	}
	return server.Message{Info: centurion.Message{ID: id, SessionID: session, Role: centurion.RoleUser}}, nil
}

// A fact is told although the host went away before what it names could be read: the next one is asked.
func TestFactOutlivesItsHost(t *testing.T) {
	g := &goneOnce{}
	var after []int64
	p := &Project{API: func() server.API { return g }, Note: func(text string) { t.Error(text) },
		Follow: func(_ context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error] {
			after = append(after, q.After)
			return func(yield func(centurion.Event, error) bool) {
				yield(centurion.Event{Seq: 5, Type: centurion.EventMessageCreated, Session: "ses_1", Data: json.RawMessage(`{"message":"msg_1","role":"user"}`)}, nil)
			}
		}}
	p.view.held = map[string]*unended{}
	reader := p.hub.Reader()
	if err := p.told.Run(t.Context(), server.EventQuery{After: 4}, p.Follow, p.tell, p.Note); err != nil || fmt.Sprint(after) != "[4 4]" {
		t.Errorf("%v, asked after %v", err, after)
	}
	if err := p.told.Await(t.Context(), 5); err != nil {
		t.Error(err)
	}
	if text, err := reader.Next(t.Context()); err != nil || !strings.Contains(string(text), "msg_1") {
		t.Errorf("told %s, %v", text, err)
	}
}

// whole is a host with one answer.
type whole struct {
	server.API
	answer server.Message
}

func (w *whole) Message(_ context.Context, _, _ string, parts ...string) (server.Message, error) {
	m := w.answer
	m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p centurion.Part) bool { return len(parts) > 0 && !slices.Contains(parts, p.ID) })
	return m, nil
}

func (w *whole) Session(_ context.Context, id string) (centurion.Session, error) {
	return centurion.Session{ID: id}, nil
}

// An answer is told as whole when the last of its calls has ended, and at once if none of them will run any more.
func TestAnswerEndsWithItsCalls(t *testing.T) {
	call := func(id string, status centurion.ToolStatus) centurion.Part {
		return centurion.Part{ID: id, Type: centurion.PartTool, Tool: "bash", State: &centurion.ToolState{Status: status}}
	}
	w := &whole{}
	p := &Project{API: func() server.API { return w }}
	p.view.parts, p.view.held = map[string]bool{}, map[string]*unended{}
	reader := p.hub.Reader()
	tells := func(parts ...string) (all []string) {
		t.Helper()
		if err := p.tellParts(t.Context(), "ses_1", "msg_1", parts...); err != nil {
			t.Fatal(err)
		}
		for !reader.Waits() {
			var e told
			if text, err := reader.Next(t.Context()); err != nil || json.Unmarshal(text, &e) != nil {
				t.Fatalf("%s, %v", text, err)
			}
			all = append(all, brief(e))
		}
		return all
	}
	expect := func(got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	}
	w.answer.Info = centurion.Message{ID: "msg_1", SessionID: "ses_1", Role: centurion.RoleAssistant, Finish: centurion.FinishToolCalls, Time: centurion.MessageTime{Created: 1, Completed: 2}}
	w.answer.Parts = []centurion.Part{call("prt_1", centurion.ToolPending), call("prt_2", centurion.ToolPending), {ID: "prt_3", Type: centurion.PartStepFinish}}
	expect(tells(), "part bash pending", "part bash pending")
	w.answer.Parts[0] = call("prt_1", centurion.ToolCompleted)
	expect(tells("prt_1"), "part bash completed")
	w.answer.Parts[1] = call("prt_2", centurion.ToolError)
	expect(tells("prt_2"), "part bash error", "part step-finish", "message assistant whole")

	w.answer.Info.Finish = centurion.FinishCancelled
	w.answer.Parts = []centurion.Part{call("prt_4", centurion.ToolPending), {ID: "prt_5", Type: centurion.PartStepFinish}}
	expect(tells(), "part bash pending", "part step-finish", "message assistant whole")
}

// A turn that was ended on purpose has OpenCode's name for that, which its clients do not show as a failure.
func TestNamesOfErrors(t *testing.T) {
	p := &Project{}
	reader := p.hub.Reader()
	for kind, want := range map[centurion.Kind]string{centurion.KindCancelled: "MessageAbortedError", centurion.KindInterrupted: "MessageAbortedError", centurion.KindBudget: "MessageAbortedError",
		centurion.KindNetwork: "UnknownError", "": "UnknownError"} {
		if err := p.tellError(t.Context(), centurion.Event{Session: "ses_1", Data: event.Data(map[string]any{"kind": kind, "error": "why"})}); err != nil {
			t.Fatal(err)
		}
		text, err := reader.Next(t.Context())
		if err != nil || !strings.Contains(string(text), `{"sessionID":"ses_1","error":{"name":"`+want+`","data":{"message":"why"}}}`) {
			t.Errorf("%s: %s, %v", kind, text, err)
		}
	}
}
