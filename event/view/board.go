package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/event"
	"centurion/text"
)

// Board is a mission as it can be told from its events. The zero Board is ready; it is not safe for concurrent use.
// All text in it is clean (see [text.Clean]) except that of asks, which is shown through [text.Escape].
type Board struct {
	ID        string
	Goal      string
	Directory string
	Branch    string
	Unmerged  bool // its branch has work that is not on the person's
	Level     int
	Status    centurion.MissionStatus
	Reason    string
	Started   time.Time
	Ended     time.Time
	MaxCost   float64 // USD; 0 without a cap
	MaxTokens int64
	Slots     int // workers at once; 0 means 50
	PerAgent  int // workers of one agent at once; 0 means 10
	Todo      event.TodoCounts
	Tasks     []*Task // in the order they were recorded
	Asks      []*Ask  // open ones, oldest first
	Session   string  // the root session
	Commander Worker  // who works in it
	Countdown time.Time
	Last      time.Time // of the newest event
	End       *Fact     // how its newest run ended, clean; nil while it goes on

	reported centurion.Usage // as the mission's own events say
	counted  centurion.Usage // as its messages add up
	tasks    map[string]*Task
	sessions map[string]*Worker
	agents   map[string]string // by session
}

// Worker is what a session is doing.
type Worker struct {
	Address string
	Doing   string // the newest tool call or line of text
	Said    string // the newest whole answer, several lines
	Retry   *Retry // it waits for the provider

	partial string // the line of text that streams
}

// Retry is a wait that the provider asked for.
type Retry struct {
	Attempt int
	Reason  string
	Until   time.Time
}

// Task is a delegated piece of work, as far as events tell of it.
type Task struct {
	centurion.Task
	Worker

	Short string // what people call it, of what this version recorded
}

// Name is what people call the task, from its first event to its end: T2, w7. What an earlier version recorded has its item, or the
// end of its id.
func (t *Task) Name() string {
	id := text.Clean(t.ID)
	return cmp.Or(t.Short, t.Item, "#"+id[max(0, len(id)-4):])
}

// NeedsYou reports whether the mission waits for a person's answer.
func (b *Board) NeedsYou() bool { return len(b.Asks) > 0 && (b.Status == "" || b.Status.Alive()) }

// Ask is a question that waits for a person: what its event tells, as it was written, but for who asks.
type Ask struct {
	Fact
	Task string
}

// Usage returns what the mission has cost so far: what its events say or what its messages add up to, whichever is more.
func (b *Board) Usage() centurion.Usage {
	if b.End != nil {
		return b.End.Usage
	}
	u := b.reported
	if b.counted.Tokens.Total() > u.Tokens.Total() {
		u = b.counted
	}
	u.Unpriced = b.reported.Unpriced || b.counted.Unpriced
	return u
}

// Elapsed returns how long the mission has run.
func (b *Board) Elapsed(now time.Time) time.Duration {
	switch {
	case b.End != nil && b.End.DurationMS > 0:
		return b.End.Duration()
	case b.Started.IsZero():
		return 0
	case !b.Ended.IsZero():
		now = b.Ended
	}
	return max(0, now.Sub(b.Started))
}

// In returns the tasks in one of the states, in order.
func (b *Board) In(states ...centurion.TaskStatus) []*Task {
	var out []*Task
	for _, t := range b.Tasks {
		if slices.Contains(states, t.Status) {
			out = append(out, t)
		}
	}
	return out
}

// Active returns the tasks that hold a worker.
func (b *Board) Active() []*Task {
	return b.In(centurion.TaskRunning, centurion.TaskVerifying, centurion.TaskMerging)
}

// IsGoal reports whether a message of the person is the goal that was told already; the host may have added to it what
// a command such as /plan means.
func (b *Board) IsGoal(text string) bool { return b.Goal != "" && strings.HasPrefix(text, b.Goal) }

// Task returns a task by id, or nil.
func (b *Board) Task(id string) *Task { return b.tasks[id] }

// AgentOf names who a session or task belongs to.
func (b *Board) AgentOf(session, task string) string {
	if t := b.tasks[task]; t != nil && t.Agent != "" {
		return t.Agent
	}
	return b.agents[session]
}

// Owner is in words whom the person writes to: the Commander, or the agent that a mission has in its place.
func (b *Board) Owner() string {
	if agent := b.AgentOf(b.Session, ""); agent != "" && agent != "commander" {
		return "the " + text.Clean(agent)
	}
	return "the Commander"
}
