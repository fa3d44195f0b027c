// Package task is what happens to a task beside its work: how it is recorded and launched, and how one that was lost is found
// again. Its session is driven above.
package task

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"centurion"
	"centurion/failpoint"
	"centurion/orchestrator/budget"
	"centurion/orchestrator/state"
	"centurion/store"
)

// Recorder records tasks in the order in which they were delegated. What comes while others are being written is
// written together after them: fifty tasks of one answer cost a few commits instead of fifty.
type Recorder struct {
	Mission  *state.Mission
	Reserves *budget.Reserves
	Portion  func(centurion.Task) budget.Amount // what a task needs at its start
	Known    func(items ...string)              // the plan has had this item
	Grown    func()                             // there are more tasks now
	Launch   func(centurion.Task)

	writing sync.Mutex // held by whoever writes what waits

	mu      sync.Mutex // protects waiting
	waiting []*delegation
}

type delegation struct {
	task  centurion.Task // as it is to be recorded, then as it was
	fresh bool           // this delegation made the task; otherwise an earlier try of the same call did
	err   error
	done  bool
}

// Record writes a task and launches it. It calls begun, which may be nil, as soon as the task has its place in the order.
func (ds *Recorder) Record(t centurion.Task, begun func()) (centurion.Task, error) {
	d := &delegation{task: t}
	ds.mu.Lock()
	ds.waiting = append(ds.waiting, d)
	ds.mu.Unlock()
	if begun != nil {
		begun()
	}
	ds.writing.Lock()
	defer ds.writing.Unlock()
	for !d.done {
		ds.recordBatch(ds.next())
	}
	return d.task, d.err
}

// batch is how many delegations are written together at most: few enough that the first of them are at work while the
// last are being written.
const batch = 4

func (ds *Recorder) next() []*delegation {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	n := min(len(ds.waiting), batch)
	next := ds.waiting[:n:n]
	ds.waiting = ds.waiting[n:]
	return next
}

// recordBatch writes tasks in one transaction and launches them.
func (ds *Recorder) recordBatch(next []*delegation) {
	recorded := make([]centurion.Task, len(next))
	portions := make([]budget.Amount, len(next))
	for i, d := range next {
		portions[i] = ds.Portion(d.task)
	}
	ending := map[string]string{} // items whose task has ended, maybe, and whose mark is not set yet
	for _, r := range ds.Mission.Runs() {
		if r.Item != "" {
			ending[r.Item] = r.ID
		}
	}
	for _, d := range next {
		ds.Known(d.task.Item)
	}
	items := slices.ContainsFunc(next, func(d *delegation) bool { return d.task.Item != "" })
	err := ds.Mission.Store.Update(ds.Mission.Ctx, func(tx *store.Tx) error {
		atWork := map[string]string{}
		if items {
			all, err := tx.Tasks(ds.Mission.ID)
			if err != nil {
				return err
			}
			for _, t := range all {
				if t.Item != "" && !t.Status.Ended() {
					atWork[t.Item] = t.ID
				}
			}
			maps.Copy(atWork, ending)
		}
		for i, d := range next {
			recorded[i], d.fresh, d.err = ds.putDelegation(tx, d.task, portions[i], atWork)
		}
		return nil
	})
	ds.Grown() // there are more tasks now
	for i, d := range next {
		d.task, d.done = recorded[i], true
		switch {
		case err != nil:
			d.err = err
		case d.err == nil && d.fresh:
			failpoint.Hit(failpoint.TaskRecorded)
			ds.Launch(d.task)
		}
	}
}

// putDelegation records one task as queued, unless the same call has made it before, its item, in atWork, has a task, or
// the budget will never have room for it.
func (ds *Recorder) putDelegation(tx *store.Tx, t centurion.Task, portion budget.Amount, atWork map[string]string) (centurion.Task, bool, error) {
	before, known, err := tx.TaskByCall(t.Parent, t.Call)
	if err != nil || known {
		return before, false, err
	}
	if by := atWork[t.Item]; by != "" {
		return t, false, atWorkError(t.Item)
	}
	if err := sessionFree(tx, t); err != nil {
		return t, false, err
	}
	if err := ds.Reserves.Fits(t.Budget, portion); err != nil {
		return t, false, err
	}
	n, err := tx.NextSerial(ds.Mission.ID, "task")
	if err != nil {
		return t, false, err
	}
	t.Number = n + 1
	if err := tx.PutTask(&t); err != nil {
		return t, false, err
	}
	if t, err = state.MoveTask(tx, t.ID, centurion.TaskQueued, nil); err != nil {
		return t, false, err
	}
	if t.Item != "" {
		atWork[t.Item] = t.ID
	}
	return t, true, nil
}

func atWorkError(item string) error {
	return &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("item %s is already being worked on", item),
		Hint: "you will be told when it ends; cancel it first if you want another to do it"}
}

// Waiting is how many tasks are on their way into the store.
func (ds *Recorder) Waiting() int {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return len(ds.waiting)
}

// Requeue records that a task is begun anew, and why.
func (ds *Recorder) Requeue(ctx context.Context, id, why string) (t centurion.Task, err error) {
	err = ds.Mission.Store.Update(ctx, func(tx *store.Tx) (err error) {
		t, err = state.MoveTask(tx, id, centurion.TaskQueued, func(t *centurion.Task) { t.Reason = why })
		return err
	})
	return t, err
}

// StillAtWork refuses to resume the session of a task that has not ended.
func StillAtWork(t centurion.Task) error {
	return &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("task %s has not ended: it is %s", t.Name(), t.Status),
		Hint: "you will be told when it ends; cancel it first if it is to do something else"}
}

// sessionFree checks, in the transaction that records a resuming task, that no other task has its session.
func sessionFree(tx *store.Tx, t centurion.Task) error {
	if t.Session == "" {
		return nil
	}
	tasks, err := tx.Tasks(t.Mission)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(tasks, func(o centurion.Task) bool { return o.Session == t.Session && !o.Status.Ended() }); i >= 0 {
		return StillAtWork(tasks[i])
	}
	return nil
}
