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
	tasks []centurion.Task // to be recorded; then as recorded: one, or the tries of a race
	fresh bool             // this delegation made the tasks, not an earlier try of the same call
	err   error
	done  bool
}

// Record writes a task and launches it. It calls begun, which may be nil, as soon as the task has its place in the order. A repeated call
// returns its first task. An error has [centurion.KindConflict] if the item or the session has a living task, [centurion.KindBudget] if the
// budget can never cover the task.
func (ts *Tasks) Record(t centurion.Task, begun func()) (centurion.Task, error) {
	return ts.record(&delegation{tasks: []centurion.Task{t}}, begun)
}

// RecordRace is [Tasks.Record] for an item that several agents try: one task for each, written and launched together. It returns the first.
func (ts *Tasks) RecordRace(t centurion.Task, agents []string, begun func()) (centurion.Task, error) {
	d := &delegation{}
	for i, agent := range agents {
		try := t
		if i > 0 {
			try.ID = centurion.NewID(centurion.PrefixTask)
		}
		try.Agent, try.Race = agent, &centurion.Race{ID: t.ID, Try: i + 1, Agents: agents}
		d.tasks = append(d.tasks, try)
	}
	return ts.record(d, begun)
}

func (ts *Tasks) record(d *delegation, begun func()) (centurion.Task, error) {
	ds := &ts.recorder
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
	return d.tasks[0], d.err
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
	recorded := make([][]centurion.Task, len(next))
	portions := make([][]budget.Amount, len(next))
	for i, d := range next {
		for _, t := range d.tasks {
			portions[i] = append(portions[i], ds.Sessions.Portion(t))
		}
	}
	ending := map[string]string{} // items whose task has a goroutine: even if the task has ended, its mark is not set yet
	for _, r := range ds.Mission.Runs() {
		if r.Item != "" {
			ending[r.Item] = r.ID
		}
	}
	p, _ := ds.Plan.Read() // without a plan there is nothing to freeze
	for _, d := range next {
		ds.Plan.File.Had.Add(d.tasks[0].Item)
		for i, t := range d.tasks {
			d.tasks[i].Frozen = ds.Frozen.Freeze(p, t.Item)
		}
	}
	items := slices.ContainsFunc(next, func(d *delegation) bool { return d.tasks[0].Item != "" })
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
			recorded[i], d.fresh, d.err = ds.putDelegation(tx, d.tasks, portions[i], atWork)
		}
		return nil
	})
	ds.Keeper.Poke()
	for i, d := range next {
		d.done = true
		if err != nil {
			d.err = err
			continue
		}
		if d.tasks = recorded[i]; d.err == nil && d.fresh {
			ds.Frozen.Know(d.tasks[0])
			failpoint.Hit(failpoint.TaskRecorded)
			for _, t := range d.tasks {
				ds.Launch(t)
			}
		}
	}
}

// putDelegation records the tasks of one delegation as queued, for [Tasks.Record]. The keys of atWork are the items that have a living task.
func (ds *recorder) putDelegation(tx *store.Tx, tasks []centurion.Task, portions []budget.Amount, atWork map[string]string) ([]centurion.Task, bool, error) {
	first := tasks[0]
	before, known, err := tx.TaskByCall(first.Parent, first.Call)
	if err != nil || known {
		return []centurion.Task{before}, false, err
	}
	if by := atWork[first.Item]; by != "" {
		return tasks, false, &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("item %s is already being worked on", first.Item),
			Hint: "you will be told when it ends; cancel it first if you want another to do it"}
	}
	if err := sessionFree(tx, first); err != nil {
		return tasks, false, err
	}
	for _, p := range portions { // before anything is written: all of them are recorded, or none
		if err := ds.Reserves.Fits(first.Budget, p); err != nil {
			return tasks, false, err
		}
	}
	out := slices.Clone(tasks)
	for i := range out {
		n, err := tx.NextSerial(ds.Mission.ID, "task")
		if err != nil {
			return tasks, false, err
		}
		out[i].Number = n + 1
		if err := tx.PutTask(&out[i]); err != nil {
			return tasks, false, err
		}
		if out[i], err = state.MoveTask(tx, out[i].ID, centurion.TaskQueued, nil); err != nil {
			return tasks, false, err
		}
	}
	if first.Item != "" {
		atWork[first.Item] = first.ID
	}
	return out, true, nil
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
