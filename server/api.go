// Package server is both ends of the wire between the process that hosts a project's missions and everything that reads
// or drives them from outside: the HTTP handler under /centurion/v1, the typed client, and the shapes that both speak.
// It decides nothing: what a request asks for is done by the store and the orchestrator.
//
// Delivery: facts come from the journal in order and without loss, from any sequence number on; a reader that was away
// asks again from the last one it saw. Token deltas come in between while a reader keeps up, and are lost where it does
// not.
package server

import (
	"context"
	"iter"
	"reflect"
	"slices"

	"centurion"
	"centurion/event"
	"centurion/orchestrator"
	"centurion/orchestrator/branches"
	"centurion/orchestrator/retention"
	"centurion/store"
	"centurion/takeover"
	"centurion/workspace"
)

// API is what can be read and done from outside. *Local does it in the hosting process, *Client through its socket.
// Ids may be given by a unique prefix. Errors are those of the store and the orchestrator, with their kinds.
type API interface {
	Live
	Person
	Missions(ctx context.Context) ([]Mission, error) // newest first
	Mission(ctx context.Context, id string) (Mission, error)
	Tasks(ctx context.Context, mission string) ([]Task, error) // "" means the latest mission; oldest first
	Task(ctx context.Context, id string) (Task, error)
	Sessions(ctx context.Context, mission string) ([]centurion.Session, error)
	Session(ctx context.Context, id string) (centurion.Session, error)
	Messages(ctx context.Context, session string) ([]Message, error)
	Receipts(ctx context.Context, mission string) ([]centurion.Receipt, error)
	Asks(ctx context.Context) ([]store.Ask, error) // those that wait
	// Events yields facts after a sequence number, and goes on with new ones as long as ctx lasts if q.Follow is set.
	Events(ctx context.Context, q EventQuery) iter.Seq2[centurion.Event, error]
	Answer(ctx context.Context, ask, answer string) error
	Cancel(ctx context.Context, id, reason string) error
	// Start records a new mission, and Resume raises the limits of one that had stopped; then the hosting process works on
	// it. Of one that is being worked on already, only how many sessions run at once is changed.
	Start(ctx context.Context, goal string, opts centurion.MissionOptions) (Mission, error)
	Resume(ctx context.Context, id string, opts centurion.MissionOptions) (Mission, error)
	// Send stores a message for an agent of a mission; see orchestrator.Host.Send. An empty Mission means the latest. A
	// blocked mission goes on when its Commander is written to.
	Send(ctx context.Context, p orchestrator.Post) (orchestrator.Posted, error)
	// LastSeq is the sequence number of the newest event.
	LastSeq(ctx context.Context) (int64, error)
	// Pause stops a mission so that it can be resumed, and returns when it has stopped.
	Pause(ctx context.Context, id, reason string) error
	// Tidy drops, archives and removes what is left of missions that have ended.
	Tidy(ctx context.Context, o retention.TidyOptions) (retention.TidyReport, error)
	// Compact asks for a session's history to be shortened before its next request, and returns at once.
	Compact(ctx context.Context, session string) error
	// Tree returns all messages of a session, Messages those of its current line.
	Tree(ctx context.Context, session string) (Tree, error)
	// Rewind takes a conversation back to an older message; see orchestrator.Host.Rewind.
	Rewind(ctx context.Context, session string, r Rewind) (branches.Rewound, error)
	// Fork copies a conversation into a new mission, which is paused; see orchestrator.Host.Fork.
	Fork(ctx context.Context, session, at string) (branches.Forked, error)
}

// EventQuery selects events.
type EventQuery struct {
	After   int64
	Mission string
	Session string
	Task    string
	Deltas  bool
	Follow  bool
	Toasts  bool // also the notices that follow from these events, as events that have no sequence number; some may be missed
	// View is empty for the facts as they are, or ViewAgent for what they mean for agents (see package event/agent): the
	// events of Session or of Task's session with what its children do nested into it, or of all of Mission. With Deltas
	// the text comes as it is written.
	View string
	// Keep says that the reader will take the mission over when its host ends, for as long as it reads.
	Keep bool
}

// Mission is a mission as it is told to the outside.
type Mission struct {
	ID        string                  `json:"id"`
	Goal      string                  `json:"goal"`
	Status    centurion.MissionStatus `json:"status"`
	Directory string                  `json:"directory"`
	Branch    string                  `json:"branch,omitempty"`
	Level     int                     `json:"level,omitempty"`
	LevelFrom string                  `json:"level_from,omitempty"` // person, inferred, or the agent that assessed it
	Session   string                  `json:"session,omitempty"`
	Todo      string                  `json:"todo,omitempty"`      // its plan, relative to the directory
	HasPlan   bool                    `json:"has_plan,omitempty"`  // the file there is its own
	PutAside  string                  `json:"put_aside,omitempty"` // where the plan was put that it found and that no mission owned
	Model     string                  `json:"model,omitempty"`
	Tasks     map[string]int          `json:"tasks"`
	centurion.Usage
	MaxCost    float64                       `json:"max_cost,omitempty"`
	Rounds     int                           `json:"rounds"`
	DurationMS int64                         `json:"duration_ms"`
	Verified   int                           `json:"verified"`
	Unverified int                           `json:"unverified"`
	Unproven   []string                      `json:"unproven,omitempty"`
	Flaky      []string                      `json:"flaky,omitempty"`
	Evidence   centurion.Evidence            `json:"evidence,omitempty"` // what shows that it is done, when it stopped last
	Reviewed   map[string]centurion.PassedBy `json:"reviewed,omitempty"` // items that a review has passed: that review, by item
	Asks       int                           `json:"asks,omitempty"`     // that wait for a person
	Reason     string                        `json:"reason,omitempty"`
	Summary    string                        `json:"summary,omitempty"`
	Started    centurion.Time                `json:"started"`
	Updated    centurion.Time                `json:"updated"`

	ToolCalls int                `json:"tool_calls"`
	Reserved  centurion.Reserved `json:"reserved,omitzero"` // of its limits, as it was at the newest answer

	Options centurion.MissionOptions `json:"options"` // as it was started, with what resumes have changed

	Isolation string              `json:"isolation,omitempty"` // worktree or shared
	Base      *centurion.Base     `json:"base,omitempty"`      // what its work starts from
	Checkout  *centurion.Checkout `json:"checkout,omitempty"`  // where its own agent works
	Merged    *centurion.Merged   `json:"merged,omitempty"`    // where its work was put last
	Aside     []centurion.Aside   `json:"aside,omitempty"`     // what its own agent has written and git ignores
}

// Task is a task as it is told to the outside.
type Task struct {
	ID      string               `json:"id"`
	Number  int                  `json:"number,omitempty"`
	Name    string               `json:"name"` // what people call it, in any command: T2, w7
	Mission string               `json:"mission"`
	Agent   string               `json:"agent"`
	Title   string               `json:"title"`
	Status  centurion.TaskStatus `json:"status"`
	Reason  string               `json:"reason,omitempty"`
	Attempt int                  `json:"attempt"`
	Session string               `json:"session"`
	Item    string               `json:"item,omitempty"`
	Resumes string               `json:"resumes,omitempty"` // the task whose conversation it goes on with
	Prompt  string               `json:"prompt,omitempty"`
	Result  string               `json:"result,omitempty"`
	Error   *centurion.TaskError `json:"error,omitempty"`
	Files   []string             `json:"files,omitempty"`
	Created centurion.Time       `json:"created"`
	Started centurion.Time       `json:"started,omitzero"`
	Ended   centurion.Time       `json:"ended,omitzero"`
	centurion.Usage

	Budget    centurion.TaskBudget `json:"budget,omitzero"`
	Rounds    int                  `json:"rounds"`
	ToolCalls int                  `json:"tool_calls"`
	ElapsedMS int64                `json:"elapsed_ms,omitempty"` // at work until its newest answer or its end

	Returns  int                 `json:"returns,omitempty"`  // times a failed check sent it back
	Checkout *centurion.Checkout `json:"checkout,omitempty"` // where it works
	Landed   []centurion.Landed  `json:"landed,omitempty"`   // its commits on the mission's branch, oldest first
	Claims   []string            `json:"claims,omitempty"`
	Outside  []string            `json:"outside,omitempty"` // files that it has changed and its item's `files:` did not name
	Undone   centurion.Time      `json:"undone,omitzero"`   // when a person took its work back
	Aside    []centurion.Aside   `json:"aside,omitempty"`   // what its tools have written and git ignores
}

// Message is a message with its parts, each in OpenCode's shape.
type Message struct {
	Info   centurion.Message `json:"info"`
	Origin centurion.Origin  `json:"origin,omitempty"`
	Parts  []centurion.Part  `json:"parts"`
	Prev   string            `json:"prev,omitempty"` // the message before it on its line
}

// Interrupted is the reason that is told of what was being worked on by a host that is gone.
const Interrupted = "interrupted: its host is gone"

// now returns a mission and its tasks as they are at this moment, which the store may not know.
func (l *Local) now(m centurion.Mission, tasks []centurion.Task) (centurion.Mission, []centurion.Task) {
	if l.Host == nil {
		tasks = slices.Clone(tasks)
		for i := range tasks {
			tasks[i] = l.taskNow(tasks[i])
		}
	}
	switch {
	case !m.Status.Alive():
	case l.Host == nil:
		m.Status, m.Reason, m.Reserved = centurion.MissionPaused, Interrupted, centurion.Reserved{}
	case l.Host.Space.Reason(m.ID) != "":
		m.Status, m.Reason = centurion.MissionPaused, l.Host.Space.Reason(m.ID)
	}
	return m, tasks
}

func (l *Local) taskNow(t centurion.Task) centurion.Task {
	if l.Host == nil && !t.Status.Ended() && t.Status != centurion.TaskQueued {
		t.Status, t.Reason = centurion.TaskQueued, Interrupted
	}
	return t
}

func missionView(m centurion.Mission, tasks []centurion.Task) Mission {
	counts := map[string]int{}
	for _, s := range centurion.TaskStatuses {
		counts[string(s)] = 0
	}
	for _, t := range tasks {
		counts[string(t.Status)]++
	}
	v := Mission{HasPlan: m.HasPlan(), Model: m.Options.Model, MaxCost: m.Options.MaxCost, Tasks: counts, DurationMS: m.ElapsedMS}
	copyFields(&v, m)
	return v
}

func taskView(t centurion.Task) Task {
	v := Task{Name: t.Name()}
	copyFields(&v, t)
	return v
}

// copyFields sets the fields of a struct that another one has under the same name and of the same type.
func copyFields(to, from any) {
	t, f := reflect.ValueOf(to).Elem(), reflect.ValueOf(from)
	for i := range t.NumField() {
		if v := f.FieldByName(t.Type().Field(i).Name); v.IsValid() && v.Type() == t.Field(i).Type() {
			t.Field(i).Set(v)
		}
	}
}

// Local serves the API in the process that has the store. Without a Host nothing runs in this project: then reading
// works, and what is recorded as running is told as interrupted. Without Work nothing can be started.
type Local struct {
	Store  *store.Store
	Host   *orchestrator.Host
	Person *takeover.Person // what a person takes over; nil without a Host
	Work   Work
	Hub    *event.Hub // token deltas; nil means none
	// Archive is the project in whose archive tasks are looked for that were removed; nil means nowhere.
	Archive *workspace.Workspace
}

// Work is the hosting process's part of driving missions.
type Work interface {
	// Launch begins to work on a recorded mission and returns at once. It does nothing if that is under way already.
	Launch(mission string) error
	// Keep says that somebody will take the mission over when this process ends, until done is called.
	Keep(mission string) (done func())
}

var _ API = (*Local)(nil)

// Noun returns the mission as the rest of the program speaks of it.
func (m Mission) Noun() centurion.Mission {
	n := centurion.Mission{OwnsTodo: m.HasPlan, ElapsedMS: m.DurationMS}
	copyFields(&n, m)
	return n
}

// Noun returns the task as the rest of the program speaks of it.
func (t Task) Noun() centurion.Task {
	var n centurion.Task
	copyFields(&n, t)
	return n
}
