package v1

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/store"
)

// family is a mission that works, with a task that does.
type family struct {
	*rig
	child centurion.Session
	task  centurion.Task
}

func newFamily(t *testing.T) *family {
	x := &family{rig: newRig(t)}
	x.child = x.below("0/0")
	x.task = centurion.Task{ID: centurion.NewID(centurion.PrefixTask), Mission: x.mission.ID, Parent: x.root.ID, Session: x.child.ID, Status: centurion.TaskRunning, Attempt: 1}
	x.fact(centurion.EventTaskStarted, x.child.ID, x.task.ID, event.TaskData{Session: x.child.ID}, func(tx *store.Tx) error { return tx.PutTask(&x.task) })
	return x
}

// below records a session below the root.
func (x *family) below(address string) centurion.Session {
	s := x.root
	s.ID, s.ParentID, s.Agent, s.Metadata.Address = centurion.NewID(centurion.PrefixSession), x.root.ID, "worker", address
	x.update(func(tx *store.Tx) error { return tx.PutSession(&s) })
	return s
}

func answerIn(session string) centurion.Message {
	return centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: session, Role: centurion.RoleAssistant, ParentID: "msg_1", Agent: "worker",
		Time: centurion.MessageTime{Created: 1}, Path: centurion.MessagePath{Cwd: "/", Root: "/"}}
}

// says records a message of a session with a fact of this type.
func (x *family) says(kind centurion.EventType, session string) {
	m := answerIn(session)
	x.fact(kind, session, "", map[string]any{"message": m.ID}, func(tx *store.Tx) error { return tx.PutMessage(&m) })
}

// ends records what has become of the task.
func (x *family) ends(kind centurion.EventType, status centurion.TaskStatus) {
	x.task.Status = status
	x.fact(kind, x.task.Session, x.task.ID, event.TaskData{Session: x.task.Session}, func(tx *store.Tx) error { return tx.PutTask(&x.task) })
}

func (x *family) tell(session string, kinds ...centurion.EventType) {
	for _, kind := range kinds {
		x.fact(kind, session, "", map[string]any{"kind": centurion.KindNetwork, "error": "500"}, nil)
	}
}

// Issue "Real OpenCode clients" 2: a client knows after every transition whether a session works, waits for its provider or rests: one
// that is not told that work has ended turns its wheel for ever.
func TestStatusAfterEveryTransition(t *testing.T) {
	retry := event.RetryData{Attempt: 2, WaitMS: 60_000, Error: "429 Too Many Requests"}
	for name, test := range map[string]struct {
		do   func(x *family)
		want string // what is told, and what the states are then
	}{
		"work": {func(x *family) {}, "child busy; root busy, child busy"},
		"a turn of a child": {func(x *family) {
			x.tell(x.child.ID, centurion.EventSessionIdle)
			x.says(centurion.EventMessageCreated, x.child.ID)
		},
			"child busy, child idle, child busy; root busy, child busy"},
		"a turn of the root, whose mission works on": {func(x *family) { x.tell(x.root.ID, centurion.EventSessionIdle) }, "child busy; root busy, child busy"},
		"a request is repeated and has an answer": {func(x *family) {
			x.fact(centurion.EventProviderRetry, x.root.ID, "", retry, nil)
			x.fact(centurion.EventProviderRetry, x.root.ID, "", event.RetryData{Attempt: 3, WaitMS: 60_000, Reason: "429"}, nil)
			x.says(centurion.EventMessageUpdated, x.root.ID)
		}, "child busy, root retry, root retry, root busy; root busy, child busy"},
		"a request waits":    {func(x *family) { x.fact(centurion.EventProviderRetry, x.root.ID, "", retry, nil) }, "child busy, root retry; root retry, child busy"},
		"a turn is repeated": {func(x *family) { x.fact(centurion.EventTaskRetrying, x.child.ID, x.task.ID, retry, nil) }, "child busy, child retry; root busy, child retry"},
		"a call begins after a wait": {func(x *family) {
			x.fact(centurion.EventProviderRetry, x.child.ID, "", retry, nil)
			x.fact(centurion.EventToolStarted, x.child.ID, "", event.ToolData{}, nil)
		}, "child busy, child retry, child busy; root busy, child busy"},
		"a task completes":    {func(x *family) { x.ends(centurion.EventTaskCompleted, centurion.TaskCompleted) }, "child busy, child idle; root busy"},
		"a task fails":        {func(x *family) { x.ends(centurion.EventTaskFailed, centurion.TaskFailed) }, "child busy, child idle; root busy"},
		"a task is cancelled": {func(x *family) { x.ends(centurion.EventTaskCancelled, centurion.TaskCancelled) }, "child busy, child idle; root busy"},
		"another attempt": {func(x *family) {
			x.task.Session = x.below("0/1").ID
			x.ends(centurion.EventTaskRetrying, centurion.TaskRunning)
			x.says(centurion.EventMessageCreated, x.task.Session)
		}, "child busy, child idle, other busy; root busy, other busy"},
		"two attempts, of which the second has begun before the first is told": {func(x *family) {
			first := x.below("0/1").ID
			m := answerIn(first)
			x.task.ID, x.task.Call, x.task.Session = centurion.NewID(centurion.PrefixTask), "another", x.below("0/2").ID
			x.fact(centurion.EventTaskRetrying, x.task.Session, x.task.ID, event.TaskData{Session: x.task.Session}, func(tx *store.Tx) error {
				_, started := tx.Append(centurion.Event{Type: centurion.EventTaskStarted, Mission: x.mission.ID, Session: first, Task: x.task.ID, Data: event.Data(event.TaskData{Session: first})})
				_, said := tx.Append(centurion.Event{Type: centurion.EventMessageCreated, Mission: x.mission.ID, Session: first, Data: event.Data(map[string]any{"message": m.ID})})
				return errors.Join(started, said, tx.PutMessage(&m), tx.PutTask(&x.task))
			})
		}, "child busy, other busy, other idle; root busy, child busy"},
		"an abort of the root": {func(x *family) { x.tell(x.root.ID, centurion.EventSessionError, centurion.EventSessionAborted) }, "child busy, root idle; child busy"},
		"a message after an abort": {func(x *family) {
			x.tell(x.root.ID, centurion.EventSessionAborted)
			x.says(centurion.EventMessageCreated, x.root.ID)
		}, "child busy, root idle, root busy; root busy, child busy"},
		"a failure":            {func(x *family) { x.tell(x.root.ID, centurion.EventSessionError, centurion.EventMissionFailed) }, "child busy, child idle, root idle; "},
		"a pause":              {func(x *family) { x.tell(x.root.ID, centurion.EventMissionPaused) }, "child busy, child idle, root idle; "},
		"the end of a budget":  {func(x *family) { x.tell(x.root.ID, centurion.EventBudgetExceeded, centurion.EventMissionPaused) }, "child busy, child idle, root idle; "},
		"a person is needed":   {func(x *family) { x.tell(x.root.ID, centurion.EventMissionBlocked) }, "child busy, child idle, root idle; "},
		"a cancelled mission":  {func(x *family) { x.tell(x.root.ID, centurion.EventMissionCancelled) }, "child busy, child idle, root idle; "},
		"a completed mission":  {func(x *family) { x.tell(x.root.ID, centurion.EventMissionCompleted) }, "child busy, child idle, root idle; "},
		"a mission is resumed": {func(x *family) { x.tell(x.root.ID, centurion.EventMissionPaused, centurion.EventMissionResumed) }, "child busy, child idle, root idle, root busy; root busy"},
		"a message while a mission rests": {func(x *family) {
			x.tell(x.root.ID, centurion.EventMissionPaused)
			x.says(centurion.EventMessageCreated, x.root.ID)
		}, "child busy, child idle, root idle; "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newFamily(t)
			next := x.listen("/event")
			x.says(centurion.EventMessageCreated, x.child.ID)
			test.do(x)
			if got := x.statuses(next) + "; " + x.states(); got != test.want {
				t.Errorf("told\n%s, want\n%s", got, test.want)
			}
		})
	}
}

// statuses are those that are told until now, in their order. A session that becomes idle is told twice.
func (x *family) statuses(next func() told) string {
	_ = x.project.told.Await(x.Context(), x.store.LastSeq())
	x.ask("POST", "/tui/append-prompt", `{"text":"end"}`)
	var all []string
	for e := next(); e.Type != "tui.prompt.append"; e = next() {
		if e.Type != "session.status" {
			continue
		}
		s := x.name(e.Properties["sessionID"]) + " " + fmt.Sprint(e.Properties["status"].(map[string]any)["type"])
		if all = append(all, s); strings.HasSuffix(s, "idle") {
			if e := next(); e.Type != "session.idle" {
				x.Errorf("after %s %s is told", s, e.Type)
			}
		}
	}
	return strings.Join(all, ", ")
}

// states are those of the sessions that are not idle.
func (x *family) states() string {
	_, body := x.ask("GET", "/session/status", "")
	var states map[string]struct {
		Type    string
		Message string
		Next    int64
	}
	if err := json.Unmarshal([]byte(body), &states); err != nil {
		x.Fatal(err)
	}
	by := map[string]string{}
	for id, s := range states {
		by[x.name(id)] = x.name(id) + " " + s.Type
		if s.Type == "retry" && (s.Next < time.Now().UnixMilli() || !strings.HasPrefix(s.Message, "429")) {
			x.Errorf("a wait is told as %+v", s)
		}
	}
	var all []string
	for _, name := range []string{"root", "child", "other"} {
		if by[name] != "" {
			all = append(all, by[name])
		}
	}
	return strings.Join(all, ", ")
}

func (x *family) name(session any) string {
	switch session {
	case x.root.ID:
		return "root"
	case x.child.ID:
		return "child"
	}
	return "other"
}

// A host that begins anew knows what works, waits and rests.
func TestStatusAfterRestart(t *testing.T) {
	at := centurion.Time{Time: time.Now().Add(time.Hour)}
	for name, test := range map[string]struct {
		change func(x *family)
		want   string
	}{
		"work":             {func(x *family) {}, "root busy, child busy"},
		"a task has ended": {func(x *family) { x.ends(centurion.EventTaskFailed, centurion.TaskFailed) }, "root busy"},
		"an abort":         {func(x *family) { x.root.Metadata.Aborted = "by a person" }, "child busy"},
		"a wait":           {func(x *family) { x.child.Metadata.Retry = &centurion.Retry{At: at, Attempts: 1, Reason: "429"} }, "root busy, child retry"},
		"a wait is over":   {func(x *family) { x.child.Metadata.Retry = &centurion.Retry{Attempts: 1, Reason: "429"} }, "root busy, child busy"},
		"a pause":          {func(x *family) { x.mission.Status = centurion.MissionPaused }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newFamily(t)
			_ = x.project.told.Await(t.Context(), x.store.LastSeq())
			test.change(x)
			x.update(func(tx *store.Tx) error {
				for _, err := range []error{tx.PutMission(&x.mission), tx.PutSession(&x.root), tx.PutSession(&x.child)} {
					if err != nil {
						return err
					}
				}
				return nil
			})
			if err := x.project.begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := x.states(); got != test.want {
				t.Errorf("the states are %q, want %q", got, test.want)
			}
		})
	}
}
