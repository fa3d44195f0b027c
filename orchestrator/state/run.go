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

// Fences knows the newest attempt of each task. A new attempt raises the fence before it writes anything; later writes of older
// attempts to their session, task, plan or project are refused and recorded. It is kept in memory: the store locks out a host that has
// lost its project.
type Fences struct {
	sync.Mutex // protects newest
	newest     map[string]int
}

// Raise refuses all attempts below attempt from now on.
func (f *Fences) Raise(task string, attempt int) {
	f.Lock()
	defer f.Unlock()
	if f.newest == nil {
		f.newest = map[string]int{}
	}
	f.newest[task] = max(f.newest[task], attempt)
}

// Forget drops a task that ended long ago. Late writes of its attempts are still refused, because those have ended: see current.
func (f *Fences) Forget(task string) {
	f.Lock()
	defer f.Unlock()
	delete(f.newest, task)
}

// Check returns an error that wraps ErrSuperseded if a newer attempt of the task has begun.
func (f *Fences) Check(task string, attempt int) error {
	f.Lock()
	defer f.Unlock()
	if newest := f.newest[task]; attempt < newest {
		return &centurion.Error{Kind: centurion.KindConflict, Err: ErrSuperseded,
			Msg: fmt.Sprintf("attempt %d of task %s writes no more: attempt %d has begun", attempt, task, newest)}
	}
	return nil
}

// ErrSuperseded is the cause of every refusal of a stale attempt.
var ErrSuperseded = errors.New("superseded")

// RecordRefusal records that a write of a stale attempt was refused.
func (m *Mission) RecordRefusal(ctx context.Context, task, session string, attempt int, what string) error {
	return m.Store.Update(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		_, err := tx.Append(centurion.Event{Type: centurion.EventTaskFenced, Mission: m.ID, Session: session, Task: task,
			Data: event.Data(event.FenceData{Attempt: attempt, Refused: what})})
		return err
	})
}

// MoveRun moves the task of a running attempt. It fails for a stale attempt.
func (m *Mission) MoveRun(ctx context.Context, r *Run, to centurion.TaskStatus, change func(*centurion.Task)) error {
	return m.Store.Update(ctx, func(tx *store.Tx) error { return m.MoveRunIn(tx, r, to, change) })
}

// MoveRunIn is [Mission.MoveRun] in a transaction.
func (m *Mission) MoveRunIn(tx *store.Tx, r *Run, to centurion.TaskStatus, change func(*centurion.Task)) error {
	if err := m.Fences.Check(r.ID, r.Attempt); err != nil {
		return err
	}
	_, err := MoveTask(tx, r.ID, to, change)
	return err
}

// Run is one living task. Its goroutine owns all fields but Cancel and Done.
type Run struct {
	ID      string
	Item    string
	Name    string // its name for people and agents
	Agent   string
	Attempt int             // the fencing number of the running attempt; owned by the goroutine
	Ctx     context.Context // ends with the task
	Cancel  context.CancelCauseFunc
	Place   *slots.Place  // in the queue of launches; nil while the task waits for anything else
	Done    chan struct{} // closed when the end of the task is recorded

	Own     centurion.ModelRef // its session's model, and why it begins with another one; known once it has a slot
	Instead string

	Now     atomic.Pointer[centurion.Task] // as recorded after the last answer
	Awaited atomic.Int32                   // parent tool calls waiting for its end
	Working atomic.Bool                    // an attempt of this run has begun
	Refused atomic.Bool                    // it asked for more tool calls than its own budget has
	Account string                         // its account in the budget's reserves
	Covered bool                           // its initial portion is reserved
	Blind   bool                           // it passes a review without having looked at anything; owned by the goroutine
	Before  int64                          // milliseconds of work before the running attempt
	begun   time.Time                      // start of the running attempt
}

// OwnBudgetError makes the error of a task that has used up its own budget. It ends only the task.
func OwnBudgetError(format string, args ...any) error {
	return &centurion.Error{Kind: centurion.KindBudget, Msg: "the task's own budget of " + fmt.Sprintf(format, args...) + " is used up",
		Hint: "what it has done so far is kept; delegate the rest with a higher budget, or do it another way"}
}

// Timed ends the task when the time of its own budget is over. stop cancels that.
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

// Left describes what remains of a task's own budget: always for money, tokens and requests; for tool calls and time only when less
// than a fifth is left.
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

// since is the working time of the task that is not recorded yet, in milliseconds.
func (r *Run) since() int64 {
	t := r.Now.Load()
	return max(0, time.Since(r.begun).Milliseconds()-(t.ElapsedMS-r.Before))
}

// Worked is the working time of a task until now, in milliseconds; before its begin, the recorded time.
func (r *Run) Worked(t centurion.Task) int64 {
	if r.begun.IsZero() {
		return t.ElapsedMS
	}
	return r.Before + time.Since(r.begun).Milliseconds()
}

// Spend adds the cost of an answer to the task's record.
func (r *Run) Spend(t centurion.Task, u centurion.Usage) centurion.Task {
	t.Usage = t.Usage.Plus(u)
	t.Rounds++
	t.ElapsedMS = r.Worked(t)
	r.Now.Store(&t)
	return t
}
