// Package task is the life of a task: how it is recorded and launched, what it waits for, the attempts of its work, and its end. It starts
// lost tasks again. Package agent drives their sessions.
package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/approval"
	"centurion/orchestrator/background"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/budget"
	"centurion/orchestrator/frozen"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/merge"
	"centurion/orchestrator/ownership"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/pulse"
	"centurion/orchestrator/race"
	"centurion/orchestrator/slots"
	"centurion/orchestrator/state"
	"centurion/session"
	"centurion/store"
	"centurion/workspace"
)

// Tasks are the tasks of one mission.
type Tasks struct {
	Deps
	group    guard.Group // runs one goroutine for each living task
	recorder recorder
	lost     lost
}

// Deps are what the tasks of a mission work with.
type Deps struct {
	Mission   *state.Mission
	Checkouts *isolation.Checkouts
	Plan      *plan.Plan
	Frozen    *frozen.Desk
	Approvals *approval.Approvals
	Brief     *brief.Writer
	Briefs    *brief.Desk
	Queue     *merge.Queue
	Sessions  *agent.Sessions
	Commands  *background.Commands
	Reserves  *budget.Reserves
	Slots     *slots.Pool
	Claims    *ownership.Files
	Auditor   *pulse.Auditor
	Workspace *workspace.Workspace
	Version   string // of the program, for new sessions
	Returns   int    // how often work may be rejected before its parent or a person decides

	// Open loads the session of a task to be driven, with its tools.
	Open   func(ctx context.Context, session string, r *state.Run) (*agent.Conversation, error)
	Keeper Keeper
}

// Keeper is told when tasks begin and end.
type Keeper interface {
	Poke()           // there are more tasks
	Ended(id string) // a task has ended
}

// New returns the tasks of a mission, none of which is recorded or launched. The owner calls Wait.
func New(d Deps) *Tasks {
	ts := &Tasks{Deps: d}
	ts.recorder.Tasks = ts
	return ts
}

// Wait returns when every task has ended and the search for lost ones is over. Call it when the mission's context has ended. The error says
// why the end of a task could not be recorded.
func (ts *Tasks) Wait() error {
	ts.lost.wait()
	return ts.group.Wait()
}

// Launch starts the goroutine of a recorded task. [Tasks.Wait] awaits it.
func (ts *Tasks) Launch(t centurion.Task) {
	ctx, cancel := context.WithCancelCause(ts.Mission.Ctx)
	r := &state.Run{ID: t.ID, Item: t.Item, Name: t.Name(), Agent: t.Agent, Ctx: ctx, Cancel: cancel, Done: make(chan struct{})}
	r.Place = ts.Slots.Join(r.Agent) // now, to keep the order of the delegations
	r.Now.Store(&t)
	r.Before = t.ElapsedMS
	r.Account, r.Covered = ts.Reserves.Spawn(t, ts.Sessions.Portion(t))
	ts.Mission.Add(r)
	ts.Auditor.Watch()
	ts.group.Go("task "+t.ID, func() (err error) {
		defer func() {
			cancel(nil)
			ts.Mission.Drop(r)
			if len(ts.rivals(r)) == 0 { // the other tries of a race hold the same files
				ts.Claims.Drop(t.Holder())
			}
			ts.Reserves.Close(r.Account)
			close(r.Done)
			ts.Mission.Notify()
			err = errors.Join(err, ts.Auditor.Unwatch())
		}()
		err = guard.Call("task "+r.Name, func() error { return ts.run(ctx, r) })
		if err != nil {
			ts.Mission.End(err) // without a recorded end, the parent would wait for ever
		}
		return err
	})
}

// run works on a task until it ends or the mission stops. An error means that the end could not be recorded.
func (ts *Tasks) run(ctx context.Context, r *state.Run) error {
	defer func() { r.Place.Leave() }()
	var out session.Outcome
	err := guard.Call("task "+r.Name, func() (err error) {
		if err = ts.Sessions.Cover(ctx, r); err == nil {
			err = ts.ready(ctx, r)
		}
		if err == nil {
			out, err = ts.attempt(ctx, r)
		}
		return err
	})
	return ts.endTask(ctx, r, out, err)
}

// Cancel ends one living task. It returns when the end is recorded.
func (ts *Tasks) Cancel(ctx context.Context, id, reason string) error {
	r := ts.Mission.Run(id)
	if r == nil {
		defer ts.Keeper.Ended(id)
		return CancelIdle(ctx, ts.Mission.Store, id, reason)
	}
	r.Cancel(&centurion.Error{Kind: centurion.KindCancelled, Msg: reason})
	select {
	case <-r.Done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// CancelIdle cancels a task of a mission that is not running. A task that cannot be cancelled any more stays as it is, without an error.
func CancelIdle(ctx context.Context, st *store.Store, id, reason string) error {
	return st.Update(ctx, func(tx *store.Tx) error {
		t, err := tx.Task(id)
		if err != nil || !t.Status.CanBecome(centurion.TaskCancelled) {
			return err
		}
		told := t.Status.Ended()
		t, err = state.MoveTask(tx, id, centurion.TaskCancelled, func(t *centurion.Task) {
			t.Error = &centurion.TaskError{Kind: centurion.KindCancelled, Message: reason}
		})
		if err != nil || told {
			return err
		}
		if told, err = reports(tx, t); err != nil || !told {
			return cmp.Or(err, state.Redirect(tx, t))
		}
		return state.Deliver(tx, t, true)
	})
}

// Restart launches the tasks that had not ended when the mission last stopped; they hold their files again. It corrects the marks of ended
// tasks. An interruption counts neither as a failure nor as a rejection. It returns the items whose marks it corrected and the names of the
// interrupted tasks.
func (ts *Tasks) Restart(ctx context.Context) (marked, again []string, err error) {
	tasks, err := ts.Mission.Store.Tasks(ctx, ts.Mission.ID)
	if err != nil {
		return nil, nil, err
	}
	if marked, err = ts.Plan.Reconcile(ctx, tasks); err != nil {
		return nil, nil, err
	}
	ts.Claims.HoldAgain(tasks...)
	for _, t := range tasks {
		if t.Status.Ended() {
			continue
		}
		if t.Status != centurion.TaskQueued {
			if t, err = ts.requeue(ctx, t.ID, "after a restart"); err != nil {
				return nil, nil, err
			}
			again = append(again, t.Name())
		}
		ts.Launch(t)
	}
	return marked, again, nil
}

// requeue records that a task begins again, and why.
func (ts *Tasks) requeue(ctx context.Context, id, why string) (t centurion.Task, err error) {
	err = ts.Mission.Store.Update(ctx, func(tx *store.Tx) (err error) {
		t, err = state.MoveTask(tx, id, centurion.TaskQueued, func(t *centurion.Task) { t.Reason = why })
		return err
	})
	return t, err
}

// leasePolls is the number of polls from one search for lost tasks to the next.
const leasePolls = 10

// lost is the state of the search for tasks without a goroutine.
type lost struct {
	mu       sync.Mutex // held during a search; protects the fields below
	unlooked int        // polls since the last search
	found    []string   // tasks that the last search has found
}

// FindLost launches, on every tenth call, the tasks that are recorded as alive but have no goroutine. A task is launched a moment after it
// was recorded, so only a task that two searches in a row have found is lost.
func (ts *Tasks) FindLost() {
	l, m := &ts.lost, ts.Mission
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unlooked++; l.unlooked < leasePolls || m.Ctx.Err() != nil {
		return
	}
	l.unlooked = 0
	tasks, err := m.Store.Tasks(m.Ctx, m.ID)
	if err != nil {
		return // the work itself meets this error, too
	}
	var found []string
	for _, t := range tasks {
		switch {
		case t.Status.Ended() || m.Run(t.ID) != nil:
		case slices.Contains(l.found, t.ID):
			ts.relaunch(t.ID)
		default:
			found = append(found, t.ID)
		}
	}
	l.found = found
}

// wait returns when no search is under way.
func (l *lost) wait() {
	l.mu.Lock()
	defer l.mu.Unlock()
}

// relaunch starts a lost task again.
func (ts *Tasks) relaunch(id string) {
	if t, err := ts.requeue(ts.Mission.Ctx, id, "nobody worked on it any more"); err == nil && ts.Mission.Ctx.Err() == nil {
		ts.Claims.HoldAgain(t)
		ts.Launch(t)
	}
}

// ready waits until the task may begin: its plan is accepted, the items before it are done, and no other task holds its files. The task's
// reason says why it waits.
func (ts *Tasks) ready(ctx context.Context, r *state.Run) error {
	if err := ts.lostRace(ctx, r); err != nil {
		return err
	}
	told := ""
	for {
		changed := ts.Mission.Change()
		why, err := ts.obstacle(ctx, r)
		if err != nil || why == "" {
			return err
		}
		r.Place.Leave()
		r.Place = nil
		if why != told {
			if err := ts.Mission.MoveRun(ctx, r, centurion.TaskWaiting, func(t *centurion.Task) { t.Reason = why }); err != nil {
				return err
			}
			told = why
		}
		ts.Reserves.Rest(r.Account)
		err = ts.Mission.Await(ctx, changed, 0)
		ts.Reserves.Wake(r.Account)
		if err != nil {
			return err
		}
	}
}

// obstacle says why a task cannot begin yet. If it is "", the task has claimed its files.
func (ts *Tasks) obstacle(ctx context.Context, r *state.Run) (string, error) {
	rec, err := ts.Mission.Store.Mission(ctx, ts.Mission.ID)
	if err != nil {
		return "", err
	}
	if r.Item == "" && !rec.Options.ShowPlan {
		return "", nil
	}
	p, err := ts.Plan.Read()
	if err != nil {
		return "the plan cannot be read", nil
	}
	if p.Held(rec, r.Agent) {
		return "the plan waits to be accepted", ts.Approvals.AskPlan(ctx, rec, p)
	}
	if r.Item == "" {
		return "", nil
	}
	if p.Doc == nil {
		return "the plan has vanished", nil
	}
	t := r.Now.Load()
	if t.Reviews { // its subject exists, and it changes no file
		return "", nil
	}
	it, ok := p.Doc.Item(r.Item)
	switch {
	case ok:
	case p.IsGone(r.Item):
		return "", plan.Removed(r.Item)
	case t.Attempt > 0: // a mistake in the plan does not end a task that has begun
		return "", nil
	default:
		return fmt.Sprintf("line %d of the plan, which is not read as item %s", p.Doc.Misread(r.Item), r.Item), nil
	}
	for _, other := range ts.Mission.Runs() {
		if other.Item == r.Item && other.ID != r.ID && !race.Of(*t, *other.Now.Load()) {
			return "after its earlier task", nil // that one has ended, but its mark is not set yet
		}
	}
	if unmet := p.Doc.Unmet(r.Item); len(unmet) > 0 {
		return "after " + strings.Join(unmet, ", "), nil
	}
	holder, ok := ts.Claims.Take(r.Item, it.Files)
	if !ok {
		above, err := ts.Checkouts.Ancestors(ctx, r.ID)
		if err != nil {
			return "", err
		}
		holder, ok = ts.Claims.Take(r.Item, it.Files, above...)
	}
	if !ok {
		return "files of " + holder, nil
	}
	return "", nil
}
