package tui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/text"
)

// Board is a mission as it can be told from its events. The zero Board is ready; it is not safe for concurrent use.
// All text in it is clean (see [Clean]) except that of asks, which is shown through [Escape].
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
	Todo      Todo
	Tasks     []*Task // in the order they were recorded
	Asks      []*Ask  // open ones, oldest first
	Commander Worker  // the root session
	Countdown time.Time
	End       *End

	reported centurion.Usage // as the mission's own events say
	counted  centurion.Usage // as its messages add up
	tasks    map[string]*Task
	sessions map[string]*Worker
	agents   map[string]string // by session
	last     time.Time         // of the newest event
}

// Todo counts the items of the list by state.
type Todo struct{ Open, Running, Done, Cancelled, Blocked int }

// Total returns the number of items that count: cancelled ones do not.
func (t Todo) Total() int { return t.Open + t.Running + t.Done + t.Blocked }

// Worker is what a session is doing.
type Worker struct {
	Session string
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

// Task is a delegated piece of work.
type Task struct {
	Worker

	ID      string
	name    string
	Agent   string
	Title   string
	Item    string
	Status  centurion.TaskStatus
	Reason  string // what it waits for, or why it ended as it did
	Attempt int
	Files   []string
	Usage   centurion.Usage
	Queued  time.Time
	Started time.Time // of the newest attempt
	Ended   time.Time
}

// Age returns how long the task has run, waited, or took.
func (t *Task) Age(now time.Time) time.Duration {
	from := t.Started
	if from.IsZero() {
		from = t.Queued
	}
	if !t.Ended.IsZero() {
		now = t.Ended
	}
	return max(0, now.Sub(from))
}

// Name is what people call the task, from its first event to its end: T2, w7. What an earlier version recorded has its item, or the
// end of its id.
func (t *Task) Name() string {
	id := text.Clean(t.ID)
	return cmp.Or(t.name, t.Item, "#"+id[max(0, len(id)-4):])
}

// needsYou reports whether the mission waits for a person's answer.
func (b *Board) needsYou() bool { return len(b.Asks) > 0 && (b.Status == "" || b.Status.Alive()) }

// Ask is a question that waits for a person.
type Ask struct {
	ID         string
	Type       string // permission, question or plan
	Session    string
	Task       string
	Agent      string
	Address    string // of who asks, in the mission
	Line       string // those above it
	Permission string
	Patterns   []string
	Always     []string
	Title      string
	Text       string
	Options    []string
	Items      []Item // of a plan
	CostLow    float64
	CostHigh   float64
	Metadata   map[string]any
	Created    time.Time
	Deadline   time.Time
}

// End is how a run of the mission ended.
type End struct {
	Usage      centurion.Usage
	Duration   time.Duration
	Tasks      map[string]int
	Verified   int
	Unverified int
	Unproven   []string // ids of items
	Flaky      []string
	Reviewed   map[string]centurion.PassedBy // items that a review has passed: that review, by item
	Evidence   centurion.Evidence
	Profile    string
	Reason     string
	Summary    string // the Commander's, several lines
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
	case b.End != nil && b.End.Duration > 0:
		return b.End.Duration
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

// isGoal reports whether a message of the person is the goal that was told already; the host may have added to it what
// a command such as /plan means.
func (b *Board) isGoal(text string) bool { return b.Goal != "" && strings.HasPrefix(text, b.Goal) }

// Task returns a task by id, or nil.
func (b *Board) Task(id string) *Task { return b.tasks[id] }

// agentOf names who a session or task belongs to.
func (b *Board) agentOf(session, task string) string {
	if t := b.tasks[task]; t != nil && t.Agent != "" {
		return t.Agent
	}
	return b.agents[session]
}

// owner is in words whom the person writes to: the Commander, or the agent that a mission has in its place.
func (b *Board) owner() string {
	if agent := b.agentOf(b.Commander.Session, ""); agent != "" && agent != "commander" {
		return "the " + text.Clean(agent)
	}
	return "the Commander"
}
