package task

import (
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

// recorder records tasks in the order of their delegations. Tasks that arrive during a commit share the next one: fifty tasks of one answer
// cost a few commits instead of fifty.
type recorder struct {
	*Tasks

	writing sync.Mutex // held while a batch is written

	mu      sync.Mutex // protects waiting
	waiting []*delegation
}

type delegation struct {
	task  centurion.Task // to be recorded; then as recorded
	fresh bool           // this delegation made the task, not an earlier try of the same call
	err   error
	done  bool
}

// Record writes a task and launches it. It calls begun, which may be nil, as soon as the task has its place in the order. A repeated call
// returns its first task. An error has [centurion.KindConflict] if the item or the session has a living task, [centurion.KindBudget] if the
// budget can never cover the task.
func (ts *Tasks) Record(t centurion.Task, begun func()) (centurion.Task, error) {
	ds := &ts.recorder
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

// batch is the most delegations in one commit. It is small, so that the first tasks work while the last are still being written.
const batch = 4

func (ds *recorder) next() []*delegation {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	n := min(len(ds.waiting), batch)
	next := ds.waiting[:n:n]
	ds.waiting = ds.waiting[n:]
	return next
}

// recordBatch writes tasks in one transaction and launches them.
func (ds *recorder) recordBatch(next []*delegation) {
	recorded := make([]centurion.Task, len(next))
	portions := make([]budget.Amount, len(next))
	for i, d := range next {
		portions[i] = ds.Sessions.Portion(d.task)
	}
	ending := map[string]string{} // items whose task has a goroutine: even if the task has ended, its mark is not set yet
	for _, r := range ds.Mission.Runs() {
		if r.Item != "" {
			ending[r.Item] = r.ID
		}
	}
	p, _ := ds.Plan.Read() // without a plan there is nothing to freeze
	for _, d := range next {
		ds.Plan.File.Had.Add(d.task.Item)
		d.task.Frozen = ds.Frozen.Freeze(p, d.task.Item)
	}
	items := slices.ContainsFunc(next, func(d *delegation) bool { return d.task.Item != "" })
	err := ds.Mission.Store.Update(ds.Mission.Ctx, func(tx *store.Tx) error {
		atWork := maps.Clone(ending)
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
		}
		for i, d := range next {
			recorded[i], d.fresh, d.err = ds.putDelegation(tx, d.task, portions[i], atWork)
		}
		return nil
	})
	ds.Keeper.Poke()
	for i, d := range next {
		d.task, d.done = recorded[i], true
		switch {
		case err != nil:
			d.err = err
		case d.err == nil && d.fresh:
			ds.Frozen.Know(d.task)
			failpoint.Hit(failpoint.TaskRecorded)
			ds.Launch(d.task)
		}
	}
}

// putDelegation records one task as queued, for [Tasks.Record]. The keys of atWork are the items that have a living task.
func (ds *recorder) putDelegation(tx *store.Tx, t centurion.Task, portion budget.Amount, atWork map[string]string) (centurion.Task, bool, error) {
	before, known, err := tx.TaskByCall(t.Parent, t.Call)
	if err != nil || known {
		return before, false, err
	}
	if by := atWork[t.Item]; by != "" {
		return t, false, &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("item %s is already being worked on", t.Item),
			Hint: "you will be told when it ends; cancel it first if you want another to do it"}
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

// Unrecorded is the number of delegations that wait to be written.
func (ts *Tasks) Unrecorded() int {
	ts.recorder.mu.Lock()
	defer ts.recorder.mu.Unlock()
	return len(ts.recorder.waiting)
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
