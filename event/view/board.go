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

// Board is the state of a mission as derived from its events. The zero Board is ready to use; it is not safe for concurrent use. All
// its text is clean (see [text.Clean]) except that of asks, which is shown through [text.Escape].
type Board struct {
	ID        string
	Goal      string
	Directory string
	Branch    string
	Unmerged  bool // its branch has work missing from the person's
	Level     int
	Status    centurion.MissionStatus
	Reason    string
	Started   time.Time
	Ended     time.Time
	MaxCost   float64 // USD; 0 without a limit
	MaxTokens int64
	Slots     int // simultaneous workers; 0 means 50
	PerAgent  int // simultaneous workers of one agent; 0 means 10
	Todo      event.TodoCounts
	Tasks     []*Task // in the order they were recorded
	Asks      []*Ask  // open ones, oldest first
	Session   string  // the root session
	Commander Worker  // who works in it
	Countdown time.Time
	Last      time.Time // of the newest event
	End       *Fact     // how its newest run ended, clean; nil while it runs

	reported centurion.Usage // according to the mission's own events
	counted  centurion.Usage // sum of its messages
	tasks    map[string]*Task
	sessions map[string]*Worker
	agents   map[string]string // by session
}

// Worker is the current activity of a session.
type Worker struct {
	Address string
	Doing   string // the newest tool call or line of text
	Said    string // the newest complete answer, several lines
	Retry   *Retry // it waits for the provider

	partial string // the streaming line of text
}

// Retry is a wait requested by the provider.
type Retry struct {
	Attempt int
	Reason  string
	Until   time.Time
}

// Task is a delegated piece of work, as known from events.
type Task struct {
	centurion.Task
	Worker

	Short string // its name for people, if recorded by this version
}

// Name returns the task's permanent name for people: T2, w7. A task recorded by an earlier version has its item, or the end of its ID.
func (t *Task) Name() string {
	id := text.Clean(t.ID)
	return cmp.Or(t.Short, t.Item, "#"+id[max(0, len(id)-4):])
}

// NeedsYou reports whether the mission waits for a person's answer.
func (b *Board) NeedsYou() bool { return len(b.Asks) > 0 && (b.Status == "" || b.Status.Alive()) }

// Ask is a question that waits for a person: its event as written, and who asks.
type Ask struct {
	Fact
	Task string
}

// Usage returns the mission's cost so far: that of its events or the sum of its messages, whichever is more.
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

// Elapsed returns how long the mission has been running.
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

// In returns the tasks in any of the states, in order.
func (b *Board) In(states ...centurion.TaskStatus) []*Task {
	return slices.DeleteFunc(slices.Clone(b.Tasks), func(t *Task) bool { return !slices.Contains(states, t.Status) })
}

// Active returns the tasks that occupy a worker.
func (b *Board) Active() []*Task {
	return b.In(centurion.TaskRunning, centurion.TaskVerifying, centurion.TaskMerging)
}

// IsGoal reports whether a person's message is the known goal; the host may have appended the meaning of a command such as /plan.
func (b *Board) IsGoal(text string) bool { return b.Goal != "" && strings.HasPrefix(text, b.Goal) }

// Task returns a task by id, or nil.
func (b *Board) Task(id string) *Task { return b.tasks[id] }

// AgentOf returns the agent of a session or task.
func (b *Board) AgentOf(session, task string) string {
	if t := b.tasks[task]; t != nil && t.Agent != "" {
		return t.Agent
	}
	return b.agents[session]
}

// Owner describes the recipient of the person's messages: the Commander, or the agent that replaces it in a mission.
func (b *Board) Owner() string {
	agent := b.AgentOf(b.Session, "")
	return text.If(agent != "" && agent != "commander", "the "+text.Clean(agent), "the Commander")
}
