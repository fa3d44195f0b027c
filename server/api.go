// Package server has both ends of the connection between the process that hosts a project's missions and its clients: the HTTP handler
// under /centurion/v1, the typed client, and the data types of both. It makes no decisions: the store and the orchestrator carry out
// requests.
//
// Delivery: events come from the journal in order and without loss, from any sequence number on; after an interruption a reader
// continues from the last one it saw. Token deltas come in between, and are lost for slow readers.
package server

import (
	"context"
	"iter"
	"reflect"
	"slices"
	"time"

	"centurion"
	"centurion/event"
	"centurion/orchestrator"
	"centurion/orchestrator/branches"
	"centurion/orchestrator/mail"
	"centurion/orchestrator/retention"
	"centurion/store"
	"centurion/takeover"
	"centurion/workspace"
)

// API is the interface for clients. *Local implements it in the hosting process, *Client through its socket. Ids may be unique
// prefixes. Errors are those of the store and the orchestrator, with their kinds.
type API interface {
	Live
	Person
	Roots
	Shell
	ToolServers
	Missions(ctx context.Context) ([]Mission, error) // newest first
	Mission(ctx context.Context, id string) (Mission, error)
	Tasks(ctx context.Context, mission string) ([]Task, error) // "" means the latest mission; oldest first
	Task(ctx context.Context, id string) (Task, error)
	Sessions(ctx context.Context, mission string) ([]centurion.Session, error)
	Session(ctx context.Context, id string) (centurion.Session, error)
	Messages(ctx context.Context, session string) ([]Message, error)
	// Message returns one message with those of its parts that are named, or with all if none is.
	Message(ctx context.Context, session, id string, parts ...string) (Message, error)
	// Todo is the plan as of its newest change; it has no items if the mission has none.
	Todo(ctx context.Context, mission string) (event.TodoData, error)
	Receipts(ctx context.Context, mission string) ([]centurion.Receipt, error)
	Asks(ctx context.Context) ([]store.Ask, error) // open asks
	// Events yields events after a sequence number, and with q.Follow new ones until ctx ends.
	Events(ctx context.Context, q EventQuery) iter.Seq2[centurion.Event, error]
	Answer(ctx context.Context, ask, answer string) error
	Cancel(ctx context.Context, id, reason string) error
	// Start records a new mission, and Resume raises the limits of a stopped one; then the hosting process works on it. For a running
	// mission, Resume only changes the number of parallel sessions.
	Start(ctx context.Context, goal string, opts centurion.MissionOptions) (Mission, error)
	Resume(ctx context.Context, id string, opts centurion.MissionOptions) (Mission, error)
	// Send stores a message for an agent of a mission; see mail.Desk.Send. An empty Mission means the latest. A message to the
	// Commander of a blocked mission resumes the mission.
	Send(ctx context.Context, p mail.Post) (mail.Posted, error)
	// LastSeq is the sequence number of the newest event.
	LastSeq(ctx context.Context) (int64, error)
	// Pause stops a mission so that it can be resumed, and returns when it has stopped.
	Pause(ctx context.Context, id, reason string) error
	// Expand gives a task, or the agent of a mission, a checkout with all files where it is said to work; see control.Desk.Expand.
	Expand(ctx context.Context, id, reason string) error
	// Tidy drops, archives and removes data of ended missions.
	Tidy(ctx context.Context, o retention.TidyOptions) (retention.TidyReport, error)
	// Compact replaces a session's history by a summary, and returns when that is there: at once if a mission's own conversation rests; then
	// the model with that name writes it, "" for the session's own. A session that works is shortened before its next request.
	Compact(ctx context.Context, session, model string) error
	// Tree returns all messages of a session, Messages those of its current line.
	Tree(ctx context.Context, session string) (Tree, error)
	// Rewind moves a conversation to an older message; see orchestrator.Host.Rewind.
	Rewind(ctx context.Context, session string, r Rewind) (branches.Rewound, error)
	// Revert reverts a root conversation from a message on until its next message; see branches.Branches.Revert.
	Revert(ctx context.Context, session, message string) (branches.Reverted, error)
	// Written lists what the turn of a user message has changed in the project's own directory, or with "" what is reverted in files now.
	Written(ctx context.Context, session, message string) ([]centurion.FileDiff, error)
	// Fork copies a conversation into a new, paused mission; see orchestrator.Host.Fork.
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
	Toasts  bool // include toasts derived from these events, as events without a sequence number; some may be missed
	// View is empty for plain events, or ViewAgent for the view of agents (see package event/agent): the events of Session or of Task's
	// session with those of its children nested, or of all of Mission. With Deltas the text comes as it is written.
	View string
	// Keep announces that the reader will take over the mission when its host ends, while it reads.
	Keep bool
}

// Mission is a mission in the API.
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
	HasPlan   bool                    `json:"has_plan,omitempty"`  // the file belongs to it
	PutAside  string                  `json:"put_aside,omitempty"` // where an ownerless plan was moved
	Model     string                  `json:"model,omitempty"`
	Tasks     map[string]int          `json:"tasks"`
	centurion.Usage
	MaxCost    float64 `json:"max_cost,omitempty"`
	Rounds     int     `json:"rounds"`
	DurationMS int64   `json:"duration_ms"`
	centurion.Tally
	Evidence centurion.Evidence `json:"evidence,omitempty"` // its proof at its last stop
	Asks     int                `json:"asks,omitempty"`     // open asks
	Reason   string             `json:"reason,omitempty"`
	Summary  string             `json:"summary,omitempty"`
	Started  centurion.Time     `json:"started"`
	Updated  centurion.Time     `json:"updated"`
	Title    string             `json:"title,omitempty"`   // of its root session, if a person has given one
	Archived centurion.Time     `json:"archived,omitzero"` // when a person archived its root session, or
	Below    string             `json:"below,omitempty"`   // the session below which its root session was opened
	Removed  centurion.Time     `json:"removed,omitzero"`  // removed it from lists

	ToolCalls int                `json:"tool_calls"`
	Reserved  centurion.Reserved `json:"reserved,omitzero"` // the reservations as of the newest answer

	Options centurion.MissionOptions `json:"options"` // initial options with changes by resumes

	Isolation   string                 `json:"isolation,omitempty"`   // worktree or shared
	Confinement *centurion.Confinement `json:"confinement,omitempty"` // of its commands in its newest run
	Base        *centurion.Base        `json:"base,omitempty"`        // the base of its work
	Checkout    *centurion.Checkout    `json:"checkout,omitempty"`    // of its own agent
	Merged      *centurion.Merged      `json:"merged,omitempty"`      // the last merge of its work
	Aside       []centurion.Aside      `json:"aside,omitempty"`       // git-ignored files written by its own agent
}

// Task is a task in the API.
type Task struct {
	ID      string               `json:"id"`
	Number  int                  `json:"number,omitempty"`
	Name    string               `json:"name"` // its name for people, in any command: T2, w7
	Mission string               `json:"mission"`
	Agent   string               `json:"agent"`
	Title   string               `json:"title"`
	Status  centurion.TaskStatus `json:"status"`
	Reason  string               `json:"reason,omitempty"`
	Attempt int                  `json:"attempt"`
	Session string               `json:"session"`
	Parent  string               `json:"parent,omitempty"` // the session that delegated it
	Call    string               `json:"call,omitempty"`   // message/call: the parent's call that made it
	Item    string               `json:"item,omitempty"`
	Race    *centurion.Race      `json:"race,omitempty"`    // its part in a race of several tasks for the item
	Resumes string               `json:"resumes,omitempty"` // the task whose conversation it continues
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
	ElapsedMS int64                `json:"elapsed_ms,omitempty"` // working time until its newest answer or its end

	Returns  int                 `json:"returns,omitempty"`  // how often its work was returned
	Checkout *centurion.Checkout `json:"checkout,omitempty"` // its checkout
	Landed   []centurion.Landed  `json:"landed,omitempty"`   // its commits on the mission's branch, oldest first
	Claims   []string            `json:"claims,omitempty"`
	Outside  []string            `json:"outside,omitempty"` // changed files that are not in its item's `files:`
	Undone   centurion.Time      `json:"undone,omitzero"`   // when a person undid its work
	Aside    []centurion.Aside   `json:"aside,omitempty"`   // git-ignored files written by its tools
}

// Message is a message with its parts, each in OpenCode's format.
type Message struct {
	Info   centurion.Message `json:"info"`
	Origin centurion.Origin  `json:"origin,omitempty"`
	Parts  []centurion.Part  `json:"parts"`
	Prev   string            `json:"prev,omitempty"` // the previous message on its line
}

// Interrupted is the reason reported for missions and tasks of a lost host.
const Interrupted = "interrupted: its host is gone"

// now returns a mission and its tasks in their current state, which may not be in the store.
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
	default: // the time is recorded with each answer
		m.ElapsedMS += max(0, time.Since(m.Updated.Time).Milliseconds())
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

// copyFields copies the fields with the same name and type from another struct.
func copyFields(to, from any) {
	t, f := reflect.ValueOf(to).Elem(), reflect.ValueOf(from)
	for i := range t.NumField() {
		if v := f.FieldByName(t.Type().Field(i).Name); v.IsValid() && v.Type() == t.Field(i).Type() {
			t.Field(i).Set(v)
		}
	}
}

// Local implements the API in the process with the store. Without a Host nothing runs in this project: then it can be read, and work
// recorded as running is reported as interrupted. Without Work nothing can be started.
type Local struct {
	Store  *store.Store
	Host   *orchestrator.Host
	Person *takeover.Person // for takeovers by a person; nil without a Host
	Work   Work
	Hub    *event.Hub // token deltas; nil means none
	// External are the project's MCP servers; nil means none.
	External ToolServers
	// Archive is the project whose archive is searched for removed tasks; nil means none.
	Archive *workspace.Workspace
}

// Work is the hosting process's interface for running missions.
type Work interface {
	// Launch starts to work on a recorded mission and returns at once. It does nothing if the mission is running.
	Launch(mission string) error
	// Keep announces that a client will take over the mission when this process ends, until done is called.
	Keep(mission string) (done func())
}

var _ API = (*Local)(nil)

// Noun converts the mission to the program's internal type.
func (m Mission) Noun() centurion.Mission {
	n := centurion.Mission{OwnsTodo: m.HasPlan, ElapsedMS: m.DurationMS}
	copyFields(&n, m)
	return n
}

// Noun converts the task to the program's internal type.
func (t Task) Noun() centurion.Task {
	var n centurion.Task
	copyFields(&n, t)
	return n
}
