package state

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/budget"
	"centurion/orchestrator/slots"
	"centurion/store"
	"centurion/text"
)

// Fences knows the newest attempt of each task. A new attempt raises the fence before it writes anything; what an older
// one still wants to write, in its session, its task, the plan or the project, is refused and recorded. It is kept in
// memory: a host that has lost its project is kept out by the store.
type Fences struct {
	sync.Mutex // protects newest
	newest     map[string]int
}

// Raise lets nothing below attempt pass any more.
func (f *Fences) Raise(task string, attempt int) {
	f.Lock()
	defer f.Unlock()
	if f.newest == nil {
		f.newest = map[string]int{}
	}
	f.newest[task] = max(f.newest[task], attempt)
}

// Forget lets go of a task that has ended long ago. What its attempts still want to write is refused because they are
// over: see current.
func (f *Fences) Forget(task string) {
	f.Lock()
	defer f.Unlock()
	delete(f.newest, task)
}

// Check returns an error that wraps errSuperseded if a newer attempt of the task has begun.
func (f *Fences) Check(task string, attempt int) error {
	f.Lock()
	defer f.Unlock()
	if newest := f.newest[task]; attempt < newest {
		return &centurion.Error{Kind: centurion.KindConflict, Err: ErrSuperseded,
			Msg: fmt.Sprintf("attempt %d of task %s writes no more: attempt %d has begun", attempt, task, newest)}
	}
	return nil
}

// ErrSuperseded is the cause of everything that a stale attempt is refused.
var ErrSuperseded = errors.New("superseded")

// RecordRefusal tells that a stale attempt was kept from writing.
func (m *Mission) RecordRefusal(ctx context.Context, task, session string, attempt int, what string) error {
	return m.Store.Update(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		_, err := tx.Append(centurion.Event{Type: centurion.EventTaskFenced, Mission: m.ID, Session: session, Task: task,
			Data: event.Data(event.FenceData{Attempt: attempt, Refused: what})})
		return err
	})
}

// MoveRun moves the task of a running attempt. A stale attempt moves nothing.
func (m *Mission) MoveRun(ctx context.Context, r *Run, to centurion.TaskStatus, change func(*centurion.Task)) error {
	return m.Store.Update(ctx, func(tx *store.Tx) error {
		if err := m.Fences.Check(r.ID, r.Attempt); err != nil {
			return err
		}
		_, err := MoveTask(tx, r.ID, to, change)
		return err
	})
}

// Run is one living task. Its goroutine owns everything but cancel and done.
type Run struct {
	ID      string
	Item    string
	Name    string // what people and agents call it
	Agent   string
	Attempt int             // the fencing number of the attempt that runs; the goroutine's own
	Ctx     context.Context // ends with the task
	Cancel  context.CancelCauseFunc
	Place   *slots.Place  // among the launches that wait; nil while the task waits for something else
	Done    chan struct{} // closed when the task has ended and its end is recorded

	Own     centurion.ModelRef // what its session is given, and why it begins with another one; known once it has a slot
	Instead string

	Now     atomic.Pointer[centurion.Task] // as it was recorded after the newest answer
	Awaited atomic.Int32                   // tool calls of its parent that wait for its end
	Working atomic.Bool                    // an attempt of this run has begun
	Refused atomic.Bool                    // it wanted more tool calls than its own budget has
	Account string                         // its name among the reserves
	Covered bool                           // what it needs at its start is reserved
	Before  int64                          // milliseconds at work before the attempt that runs
	begun   time.Time                      // the attempt that runs
}

// OwnBudgetError makes the error of a task that has used up its own budget. It ends the task and nothing else.
func OwnBudgetError(format string, args ...any) error {
	return &centurion.Error{Kind: centurion.KindBudget, Msg: "the task's own budget of " + fmt.Sprintf(format, args...) + " is used up",
		Hint: "what it has done so far is kept; delegate the rest with a higher budget, or do it another way"}
}

// Timed ends a task when the time of its own budget is over. The returned function stops that.
func (r *Run) Timed() (stop func()) {
	t := r.Now.Load()
	r.begun = time.Now()
	if t.Budget.Minutes <= 0 {
		return func() {}
	}
	most := time.Duration(t.Budget.Minutes * float64(time.Minute))
	timer := time.AfterFunc(most-time.Duration(t.ElapsedMS)*time.Millisecond, func() { r.Cancel(OwnBudgetError("%s", text.Took(most))) })
	return func() { timer.Stop() }
}

// Left says what a task has left of its own budget: of money, tokens and requests always, of tool calls and time when it
// is less than a fifth.
func (r *Run) Left() string {
	t := r.Now.Load()
	b := t.Budget
	all := budget.OwnLeft(*t)
	if n := b.ToolCalls - t.ToolCalls; b.ToolCalls > 0 && n*5 < b.ToolCalls {
		all = append(all, centurion.Count(max(0, n), "tool call"))
	}
	if m := b.Minutes - float64(t.ElapsedMS+r.since())/60_000; b.Minutes > 0 && m*5 < b.Minutes {
		all = append(all, text.Took(time.Duration(max(0, m)*float64(time.Minute)).Round(time.Minute)))
	}
	if len(all) == 0 {
		return ""
	}
	return "Left of this task's budget: " + strings.Join(all, ", ") + ". When it is used up the task fails: end with your result before.\n"
}

// since is how long the task has been at work beyond what is recorded, in milliseconds.
func (r *Run) since() int64 {
	t := r.Now.Load()
	return max(0, time.Since(r.begun).Milliseconds()-(t.ElapsedMS-r.Before))
}

// Worked is how long a task has been at work until now, in milliseconds; what is recorded of one that has not begun.
func (r *Run) Worked(t centurion.Task) int64 {
	if r.begun.IsZero() {
		return t.ElapsedMS
	}
	return r.Before + time.Since(r.begun).Milliseconds()
}

// Spend adds what an answer has cost to the task's record.
func (r *Run) Spend(t centurion.Task, u centurion.Usage) centurion.Task {
	t.Usage = t.Usage.Plus(u)
	t.Rounds++
	t.ElapsedMS = r.Worked(t)
	r.Now.Store(&t)
	return t
}
