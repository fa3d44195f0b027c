package toast

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/event/view"
	"centurion/text"
)

const (
	// NewFor is how long a task counts as newly added in a list.
	NewFor = 5 * time.Second
	// MaxLines is how many tasks a list names in each group; the others are counted.
	MaxLines = 10
	// DefaultSlots and DefaultPerAgent are the seed's limits for simultaneous workers, in total and per agent.
	DefaultSlots    = 50
	DefaultPerAgent = 10
)

// List is the consolidated list of a mission's tasks.
type List struct {
	Tasks    []centurion.Task // in the order they were recorded
	Slots    int              // simultaneous workers; 0 means DefaultSlots
	PerAgent int              // simultaneous workers of one agent; 0 means DefaultPerAgent
	Asking   map[string]bool  // tasks with an open question to the person, by ID: they count as waiting, whatever their recorded state
}

// Of returns the list of a mission from its board.
func Of(b *view.Board) List {
	l := List{Slots: b.Slots, PerAgent: b.PerAgent, Asking: map[string]bool{}}
	for _, a := range b.Asks {
		l.Asking[a.Task] = b.NeedsYou() // no one waits for the answer once the mission has stopped
	}
	for _, t := range b.Tasks {
		l.Tasks = append(l.Tasks, t.Task)
	}
	return l
}

// Group is the tasks of a list in similar states.
type Group struct {
	Name  string // Running, Queued, Waiting, Completed, Reverted, Failed, Blocked, Continued or Cancelled
	Head  string // its first line
	Mark  string // before each of its tasks
	Tasks []centurion.Task
}

// running are the states of a task that holds a slot, pending those of one that will run.
var (
	running = [...]centurion.TaskStatus{centurion.TaskRunning, centurion.TaskVerifying, centurion.TaskMerging}
	pending = [...]centurion.TaskStatus{centurion.TaskQueued, centurion.TaskWaiting}
)

// In returns the tasks in any of the states, in order. A task continued by another is in [centurion.StatusContinued], one whose work
// was reverted in [centurion.StatusReverted], and one that holds a slot but waits for the person is waiting.
func (l List) In(states ...centurion.TaskStatus) []centurion.Task {
	var in []centurion.Task
	gone := centurion.Continued(l.Tasks)
	for _, t := range l.Tasks {
		status := t.Status
		switch {
		case gone[t.ID] != "":
			status = centurion.StatusContinued
		case t.Reverted():
			status = centurion.StatusReverted
		case l.Asking[t.ID] && slices.Contains(running[:], status):
			status = centurion.TaskWaiting
		}
		if slices.Contains(states, status) {
			in = append(in, t)
		}
	}
	return in
}

// Head returns the first line of the list: how many run, and how many of all are completed. Cancelled tasks and those continued by
// others are not counted: an item whose work was resumed counts once.
//
//	Running (3): [2/5]
func (l List) Head() string {
	completed, again := l.In(centurion.TaskCompleted), 0
	for _, t := range completed {
		if slices.ContainsFunc(l.Tasks, func(later centurion.Task) bool {
			return later.Resumes != "" && later.Resumes == t.ID && later.Item == t.Item && later.Status != centurion.TaskCancelled
		}) {
			again++
		}
	}
	return fmt.Sprintf("Running (%d): [%d/%d]", len(l.In(running[:]...)), len(completed)-again,
		len(l.Tasks)-len(l.In(centurion.TaskCancelled, centurion.StatusContinued))-again)
}

// Live returns the group of running tasks, even if it is empty, and those of queued and waiting ones.
func (l List) Live() []Group {
	all := []Group{{Name: "Running", Head: l.Head(), Mark: "⚡", Tasks: l.In(running[:]...)}}
	all = l.group(all, "Queued", centurion.TaskQueued)
	return l.group(all, "Waiting", centurion.TaskWaiting)
}

// Ended returns the groups of ended tasks.
func (l List) Ended() []Group {
	all := l.group(nil, "Completed", centurion.TaskCompleted)
	all = l.group(all, "Reverted", centurion.StatusReverted)
	all = l.group(all, "Failed", centurion.TaskFailed)
	all = l.group(all, "Blocked", centurion.TaskBlocked)
	all = l.group(all, "Continued", centurion.StatusContinued)
	return l.group(all, "Cancelled", centurion.TaskCancelled)
}

// group appends the group of a state unless it is empty.
func (l List) group(all []Group, name string, status centurion.TaskStatus) []Group {
	in := l.In(status)
	if len(in) == 0 {
		return all
	}
	return append(all, Group{name, fmt.Sprintf("%s (%d):", name, len(in)), mark(status), in})
}

// mark returns the symbol of a state, which is never the only thing that shows it.
func mark(s centurion.TaskStatus) string {
	return cmp.Or(map[centurion.TaskStatus]string{centurion.TaskCompleted: "✓", centurion.TaskFailed: "✗", centurion.TaskCancelled: "−",
		centurion.TaskBlocked: "!", centurion.StatusReverted: "↶", centurion.StatusContinued: "›", centurion.TaskWaiting: "◦"}[s], "·")
}

// SlotLine says how many slots are taken, in total and per agent, most first. It is empty if no task runs or will run.
//
//	Slots: 3/50 · worker 2/10 · reviewer 1/10
func (l List) SlotLine() string {
	active := l.In(running[:]...)
	if len(active)+len(l.In(pending[:]...)) == 0 {
		return ""
	}
	of := map[string]int{}
	var names []string
	for _, t := range active {
		if of[t.Agent]++; of[t.Agent] == 1 {
			names = append(names, t.Agent)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(of[b]-of[a], cmp.Compare(a, b)) })
	each := text.Each(names, func(n string) string {
		return fmt.Sprintf("%s %d/%d", clean(n), of[n], cmp.Or(l.PerAgent, DefaultPerAgent))
	})
	return text.Dots(append([]string{fmt.Sprintf("Slots: %d/%d", len(active), cmp.Or(l.Slots, DefaultSlots))}, each...)...)
}

// Remaining says how many tasks still run and how many will run; it is empty if there are none.
//
//	Still running: 2 | Queued: 1
func (l List) Remaining() string {
	active, queued := len(l.In(running[:]...)), len(l.In(pending[:]...))
	return text.When(active+queued > 0, fmt.Sprintf("Still running: %d | Queued: %d", active, queued))
}

// Text returns the list as plain lines: the running, queued and waiting tasks, and the slots. Each group names at most [MaxLines]
// tasks.
//
//	Running (1): [2/4]
//	⚡ Write the parser (worker) - 12s ← NEW
//	Queued (1):
//	· Check the whole (reviewer) - 3s
//	Slots: 1/50 · worker 1/10
func (l List) Text(now time.Time) string {
	var lines []string
	for _, g := range l.Live() {
		lines = append(lines, g.Head)
		lines = append(lines, atMost(MaxLines, g.Tasks, func(t centurion.Task) string {
			return fmt.Sprintf("%s %s (%s) - %s", g.Mark, clean(t.Title), clean(t.Agent), text.Span(Age(t, now))) + text.When(IsNew(t, now), " ← NEW")
		})...)
	}
	return strings.Join(append(lines, text.Filled(l.SlotLine())...), "\n")
}

// atMost makes a line of each of the first n elements, and one that counts the others.
func atMost[T any](n int, all []T, line func(T) string) []string {
	lines := text.Each(all[:min(n, len(all))], line)
	if len(all) > n {
		lines = append(lines, More(len(all)-n))
	}
	return lines
}

// More returns the line that counts the unnamed rest of a list.
func More(n int) string { return fmt.Sprintf("… and %d more", n) }

// IsNew reports whether a task that has not ended was added less than [NewFor] ago.
func IsNew(t centurion.Task, now time.Time) bool {
	return !t.Status.Ended() && !t.Created.IsZero() && now.Sub(t.Created.Time) < NewFor
}

// Age returns how long a task has been running, has waited for its start, or took.
func Age(t centurion.Task, now time.Time) time.Duration {
	from := t.Started
	if from.IsZero() {
		from = t.Created
	}
	if !t.Ended.IsZero() {
		now = t.Ended.Time
	}
	if from.IsZero() {
		return 0
	}
	return max(0, now.Sub(from.Time))
}
