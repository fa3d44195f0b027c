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

	"centurion"
	"centurion/event"
	"centurion/orchestrator"
	"centurion/store"
)

// API is what can be read and done from outside. *Local does it in the hosting process, *Client through its socket.
// Ids may be given by a unique prefix. Errors are those of the store and the orchestrator, with their kinds.
type API interface {
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
}

// EventQuery selects events.
type EventQuery struct {
	After   int64
	Mission string
	Session string
	Task    string
	Deltas  bool
	Follow  bool
}

// Mission is a mission as it is told to the outside.
type Mission struct {
	ID         string                  `json:"id"`
	Goal       string                  `json:"goal"`
	Status     centurion.MissionStatus `json:"status"`
	Directory  string                  `json:"directory"`
	Branch     string                  `json:"branch,omitempty"`
	Level      int                     `json:"level,omitempty"`
	Session    string                  `json:"session,omitempty"`
	Todo       string                  `json:"todo,omitempty"` // its plan, relative to the directory
	Model      string                  `json:"model,omitempty"`
	Tasks      map[string]int          `json:"tasks"`
	Tokens     centurion.Tokens        `json:"tokens"`
	Cost       float64                 `json:"cost"`
	Unpriced   bool                    `json:"unpriced,omitempty"`
	MaxCost    float64                 `json:"max_cost,omitempty"`
	Rounds     int                     `json:"rounds"`
	DurationMS int64                   `json:"duration_ms"`
	Verified   int                     `json:"verified"`
	Unverified int                     `json:"unverified"`
	Reason     string                  `json:"reason,omitempty"`
	Summary    string                  `json:"summary,omitempty"`
	Started    centurion.Time          `json:"started"`
	Updated    centurion.Time          `json:"updated"`
}

// Task is a task as it is told to the outside.
type Task struct {
	ID       string               `json:"id"`
	Mission  string               `json:"mission"`
	Agent    string               `json:"agent"`
	Title    string               `json:"title"`
	Status   centurion.TaskStatus `json:"status"`
	Reason   string               `json:"reason,omitempty"`
	Attempt  int                  `json:"attempt"`
	Session  string               `json:"session"`
	Item     string               `json:"item,omitempty"`
	Prompt   string               `json:"prompt,omitempty"`
	Result   string               `json:"result,omitempty"`
	Error    *centurion.TaskError `json:"error,omitempty"`
	Files    []string             `json:"files,omitempty"`
	Created  centurion.Time       `json:"created"`
	Started  centurion.Time       `json:"started,omitzero"`
	Ended    centurion.Time       `json:"ended,omitzero"`
	Tokens   centurion.Tokens     `json:"tokens"`
	Cost     float64              `json:"cost"`
	Unpriced bool                 `json:"unpriced,omitempty"`
}

// Message is a message with its parts, each in OpenCode's shape.
type Message struct {
	Info   centurion.Message `json:"info"`
	Origin centurion.Origin  `json:"origin,omitempty"`
	Parts  []centurion.Part  `json:"parts"`
}

func missionView(m centurion.Mission, tasks []centurion.Task) Mission {
	counts := map[string]int{}
	for _, s := range centurion.TaskStatuses {
		counts[string(s)] = 0
	}
	for _, t := range tasks {
		counts[string(t.Status)]++
	}
	return Mission{ID: m.ID, Goal: m.Goal, Status: m.Status, Directory: m.Directory, Branch: m.Branch, Level: m.Level,
		Session: m.Session, Todo: m.Todo, Model: m.Options.Model, Tasks: counts, Tokens: m.Usage.Tokens, Cost: m.Usage.USD,
		Unpriced: m.Usage.Unpriced, MaxCost: m.Options.MaxCost, Rounds: m.Rounds, DurationMS: m.ElapsedMS,
		Verified: m.Verified, Unverified: m.Unverified, Reason: m.Reason, Summary: m.Summary, Started: m.Started, Updated: m.Updated}
}

func taskView(t centurion.Task) Task {
	return Task{ID: t.ID, Mission: t.Mission, Agent: t.Agent, Title: t.Title, Status: t.Status, Reason: t.Reason, Attempt: t.Attempt,
		Session: t.Session, Item: t.Item, Prompt: t.Prompt, Result: t.Result, Error: t.Error, Files: t.Files, Created: t.Created,
		Started: t.Started, Ended: t.Ended, Tokens: t.Usage.Tokens, Cost: t.Usage.USD, Unpriced: t.Usage.Unpriced}
}

// Local serves the API in the process that has the store. Host may be nil when nothing runs: then only reading and the
// cancelling of what is recorded work.
type Local struct {
	Store *store.Store
	Host  *orchestrator.Host
	Hub   *event.Hub // token deltas; nil means none
}

var _ API = (*Local)(nil)

// Noun returns the mission as the rest of the program speaks of it.
func (m Mission) Noun() centurion.Mission {
	return centurion.Mission{ID: m.ID, Goal: m.Goal, Status: m.Status, Directory: m.Directory, Branch: m.Branch, Level: m.Level,
		Session: m.Session, Todo: m.Todo, Options: centurion.MissionOptions{Model: m.Model, MaxCost: m.MaxCost}, Rounds: m.Rounds,
		Usage: centurion.Usage{Tokens: m.Tokens, USD: m.Cost, Unpriced: m.Unpriced}, ElapsedMS: m.DurationMS, Verified: m.Verified,
		Unverified: m.Unverified, Reason: m.Reason, Summary: m.Summary, Started: m.Started, Updated: m.Updated}
}

// Noun returns the task as the rest of the program speaks of it.
func (t Task) Noun() centurion.Task {
	return centurion.Task{ID: t.ID, Mission: t.Mission, Agent: t.Agent, Title: t.Title, Status: t.Status, Reason: t.Reason,
		Attempt: t.Attempt, Session: t.Session, Item: t.Item, Prompt: t.Prompt, Result: t.Result, Error: t.Error, Files: t.Files,
		Created: t.Created, Started: t.Started, Ended: t.Ended,
		Usage: centurion.Usage{Tokens: t.Tokens, USD: t.Cost, Unpriced: t.Unpriced}}
}
