package orchestrator

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

// delegations records tasks in the order in which they were delegated. What comes while others are being written is
// written together after them: fifty tasks of one answer cost a few commits instead of fifty.
type delegations struct {
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

// record writes a task and launches it. It calls begun as soon as the task has its place in the order.
func (m *mission) record(t centurion.Task, begun func()) (centurion.Task, error) {
	ds := &m.delegations
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
		m.recordBatch(ds.next())
	}
	return d.task, d.err
}

// batch is how many delegations are written together at most: few enough that the first of them are at work while the
// last are being written.
const batch = 4

func (ds *delegations) next() []*delegation {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	n := min(len(ds.waiting), batch)
	next := ds.waiting[:n:n]
	ds.waiting = ds.waiting[n:]
	return next
}

// recordBatch writes tasks in one transaction and launches them.
func (m *mission) recordBatch(next []*delegation) {
	recorded := make([]centurion.Task, len(next))
	portions := make([]budget.Amount, len(next))
	for i, d := range next {
		portions[i] = m.sessions.Portion(d.task)
	}
	ending := map[string]string{} // items whose task has ended, maybe, and whose mark is not set yet
	for _, r := range m.st.Runs() {
		if r.Item != "" {
			ending[r.Item] = r.ID
		}
	}
	for _, d := range next {
		m.plan.File.Had.Add(d.task.Item)
	}
	items := slices.ContainsFunc(next, func(d *delegation) bool { return d.task.Item != "" })
	err := m.h.cfg.Store.Update(m.st.Ctx, func(tx *store.Tx) error {
		atWork := map[string]string{}
		if items {
			all, err := tx.Tasks(m.st.ID)
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
			recorded[i], d.fresh, d.err = m.putDelegation(tx, d.task, portions[i], atWork)
		}
		return nil
	})
	m.h.Keeper.Poke() // there are more tasks now
	for i, d := range next {
		d.task, d.done = recorded[i], true
		switch {
		case err != nil:
			d.err = err
		case d.err == nil && d.fresh:
			failpoint.Hit(failpoint.TaskRecorded)
			m.launch(d.task)
		}
	}
}

// putDelegation records one task as queued, unless the same call has made it before, its item, in atWork, has a task, or
// the budget will never have room for it.
func (m *mission) putDelegation(tx *store.Tx, t centurion.Task, portion budget.Amount, atWork map[string]string) (centurion.Task, bool, error) {
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
	if err := m.reserves.Fits(t.Budget, portion); err != nil {
		return t, false, err
	}
	n, err := tx.NextSerial(m.st.ID, "task")
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
