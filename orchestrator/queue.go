package orchestrator

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"

	"centurion"
	"centurion/event"
	"centurion/failpoint"
	"centurion/guard"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/worktree"
)

// crowd is how many landings are merged together at most.
const crowd = 5

// mergeQueue puts finished work on the mission's branch: one round at a time, first come, first served. Whoever has the
// turn does the work, also for those who wait behind it if they are many.
type mergeQueue struct {
	turn *semaphore.Weighted // of one; held by who merges or checks. It protects bench and known
	// bench is the checkout in which checks run. It is kept, so that what a check builds or fetches is there for the next.
	bench *worktree.Checkout
	known map[string]centurion.Receipt // what the mission's own checks said, by command and tree

	mu      sync.Mutex // protects waiting, and taken of those in it
	waiting []*landing
}

func newMergeQueue() *mergeQueue {
	return &mergeQueue{turn: semaphore.NewWeighted(1), known: map[string]centurion.Receipt{}}
}

// landing is the work of one turn on its way to the mission's branch. It belongs to whoever has the queue's turn.
type landing struct {
	task   *state.Run      // nil for the mission's own agent
	agent  string          // whose rules say what a check may do
	item   string          // "" without one
	verify []string        // the item's acceptance commands
	given  []string        // what they were when work on it began
	keeps  bool            // its checks have to be green before and after, no more is asked for
	more   bool            // it may go back once more without calling a person
	mends  bool            // its session may be asked once to mend tests that prove nothing
	stuck  bool            // its agent says that it is stuck: only a proof shows otherwise
	idle   bool            // its task has changed nothing, neither now nor before
	commit worktree.Commit // the work; no ID if nothing was changed

	taken bool   // somebody merges it together with their own work
	next  string // its commit on top of what comes before it in this round
	tree  string // the tree of that
	onto  string // what it was put on

	done   bool
	back   *rejection        // why it was sent back
	landed *centurion.Landed // where it is now; nil if there was nothing to merge
	there  string            // the commit that has it
	err    error
}

func (l *landing) end(back *rejection, err error) { l.done, l.back, l.err = true, back, err }

// land brings work onto the mission's branch, or says in l.back why that cannot be. It returns when that is decided.
func (m *mission) land(ctx context.Context, l *landing) error {
	q := m.queue
	q.mu.Lock()
	q.waiting = append(q.waiting, l)
	q.mu.Unlock()
	err := q.turn.Acquire(ctx, 1)
	if err != nil {
		err = context.Cause(ctx)
		if !q.quit(l) { // whoever merges it is not to be disturbed
			return err
		}
		if q.turn.Acquire(context.WithoutCancel(ctx), 1) == nil {
			q.turn.Release(1)
		}
		if l.done && l.back == nil && l.err == nil {
			return nil
		}
		return err
	}
	defer q.turn.Release(1)
	defer q.quit(l)
	for !l.done {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		batch, work := q.batch(l), ctx
		if len(batch) > 1 {
			work = m.st.Ctx
		}
		if err := guard.Call("merge", func() error { return m.round(work, batch) }); err != nil {
			return err
		}
	}
	return l.err
}

// quit takes a landing out of the line and reports whether somebody else is merging it.
func (q *mergeQueue) quit(l *landing) (taken bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.DeleteFunc(q.waiting, func(o *landing) bool { return o == l })
	return l.taken
}

// batch takes what is merged next: those who wait longest, l among them if they are few. What arrives while their checks run is
// merged together after them.
func (q *mergeQueue) batch(l *landing) []*landing {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.DeleteFunc(q.waiting, func(o *landing) bool { return o.done })
	if len(q.waiting) < 2 {
		return []*landing{l}
	}
	out := slices.Clone(q.waiting[:min(len(q.waiting), crowd)])
	for _, o := range out {
		o.taken = true
	}
	return out
}

// round merges a batch: each on top of the one before it, the mission's own checks once on the last. What is not decided
// then stays in the line. The first of a batch is always decided, so that the line moves.
func (m *mission) round(ctx context.Context, batch []*landing) error {
	tip, err := m.iso.Tip(ctx)
	if err != nil {
		return err
	}
	at := tip
	var chain []*landing
	for _, l := range batch {
		onTop, err := m.put(ctx, l, at, at == tip)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			l.end(nil, err)
			continue
		}
		if onTop {
			at, chain = l.next, append(chain, l)
		}
	}
	chain, err = m.guarded(ctx, tip, chain)
	if err == nil && len(chain) > 0 {
		err = m.advance(ctx, tip, chain)
	}
	return err
}

// put lays work on top of a commit and runs its item's checks there. It reports whether there is something to merge then.
// At first, work that does not fit is sent back; on top of other work that has not landed itself, it stays in the line.
func (m *mission) put(ctx context.Context, l *landing, at string, first bool) (bool, error) {
	if l.commit.ID == "" {
		back, err := m.proveLanding(ctx, l, at, at)
		if err == nil {
			l.end(back, nil)
		}
		return false, err
	}
	laid, err := m.iso.Ground.Repo.Rebase(ctx, l.commit.ID, at)
	if err != nil {
		return false, err
	}
	if len(laid.Conflicts) > 0 {
		if !first {
			return false, nil
		}
		back, err := m.conflict(ctx, l, laid, at)
		if err == nil {
			l.end(back, nil)
		}
		return false, err
	}
	l.next, l.tree, l.onto = laid.Commit, laid.Tree, at
	same, err := m.iso.SameTree(ctx, at, laid.Commit)
	if err != nil {
		return false, err
	}
	if same { // it is there already: a host has died right after it had merged it
		l.next = at
	}
	back, err := m.proveLanding(ctx, l, at, l.next)
	switch {
	case err != nil:
		return false, err
	case back != nil && !first:
		return false, nil
	case back != nil || same:
		if back == nil {
			l.there = at
		}
		l.end(back, nil)
		return false, nil
	}
	return true, nil
}

// guarded runs the mission's own checks on the last of a chain and cuts the chain before the work that turns a green one
// red, which is sent back; what comes after it stays in the line.
func (m *mission) guarded(ctx context.Context, tip string, chain []*landing) ([]*landing, error) {
	for len(chain) > 0 {
		red, err := m.brokenBy(ctx, tip, chain[len(chain)-1])
		if err != nil || red == nil {
			return chain, err
		}
		guilty := len(chain) - 1
		for low := 0; low < guilty; {
			mid := (low + guilty) / 2
			r, err := m.ownCheck(ctx, red.Command, chain[mid].next, true)
			if err != nil {
				return nil, err
			}
			if r.Passed {
				low = mid + 1
			} else {
				guilty, red = mid, &r
			}
		}
		l := chain[guilty]
		l.end(&rejection{text: "Your work breaks a check of the mission that was green before it.\n" + account(*red) +
			"\nMend the cause, then end your turn; the host tries it again.", short: "it breaks a check of the mission: " + account(*red),
			cause: event.ReturnedGuard, command: red.Command, tree: l.tree, onto: l.onto}, nil)
		chain = chain[:guilty]
	}
	return nil, nil
}

// brokenBy returns the receipt of a check of the mission that is green on the tip and red with the work, or nil.
func (m *mission) brokenBy(ctx context.Context, tip string, l *landing) (*centurion.Receipt, error) {
	commands, err := m.ownChecks(ctx)
	if err != nil {
		return nil, err
	}
	for _, command := range commands {
		if err := m.mayCheck(ctx, command, l.agent, ""); err != nil {
			if centurion.KindOf(err) == centurion.KindPermission {
				continue // it guards nothing; the end of the mission asks for it
			}
			return nil, err
		}
		was, err := m.ownCheck(ctx, command, tip, false)
		if err != nil {
			return nil, err
		}
		now, err := m.ownCheck(ctx, command, l.next, was.Passed)
		if err != nil {
			return nil, err
		}
		if was.Passed && !now.Passed {
			return &now, nil
		}
	}
	return nil, nil
}

// advance moves the mission's branch to the end of a chain. What is going to happen is recorded first: if the host dies in
// between, the branch says whether it has happened.
func (m *mission) advance(ctx context.Context, tip string, chain []*landing) error {
	for _, l := range chain {
		files, err := m.iso.Ground.Repo.Stat(ctx, l.onto, l.next)
		if err != nil {
			return err
		}
		l.landed = &centurion.Landed{Commit: l.next, Before: l.onto, Files: files, Time: centurion.Now()}
	}
	ctx = context.WithoutCancel(ctx) // from here on it is done
	if err := m.recordMerging(ctx, chain); err != nil {
		return err
	}
	failpoint.Hit(failpoint.MergeBefore)
	last := chain[len(chain)-1].next
	if err := m.iso.Ground.Repo.Advance(ctx, m.iso.Branch(), tip, last); err != nil {
		if uerr := m.recordMerged(ctx, chain, false); uerr != nil {
			return uerr
		}
		for _, l := range chain {
			l.landed = nil
		}
		if centurion.KindOf(err) == centurion.KindConflict { // somebody has moved the branch: the next round begins there
			return nil
		}
		return err
	}
	failpoint.Hit(failpoint.MergeAfter)
	if err := m.recordMerged(ctx, chain, true); err != nil {
		return err
	}
	for _, l := range chain {
		l.there = l.next
		l.end(nil, nil)
	}
	if err := m.iso.ViewTo(ctx, last); err != nil {
		return err
	}
	m.st.Notify()
	return nil
}

// recordMerging records, before it happens, what a chain brings to the branch.
func (m *mission) recordMerging(ctx context.Context, chain []*landing) error {
	return m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		for _, l := range chain {
			if l.task == nil {
				if _, err := m.st.RecordIn(tx, func(rec *centurion.Mission) {
					own := *l.landed
					own.Files = nil // the row is written at each answer; its event has them
					rec.Landed, rec.Merging = append(rec.Landed, own), own.Commit
				}); err != nil {
					return err
				}
				continue
			}
			if _, err := state.MoveTask(tx, l.task.ID, centurion.TaskMerging, func(t *centurion.Task) {
				t.Landed, t.Merging = append(t.Landed, *l.landed), l.landed.Commit
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// decided records, and tells, whether the branch has a commit that was on its way there. task is empty for the mission's own agent.
func (m *mission) decided(tx *store.Tx, task string, l centurion.Landed, there bool) error {
	lost := func(x centurion.Landed) bool { return !there && x.Commit == l.Commit }
	session := ""
	if task == "" {
		if _, err := m.st.RecordIn(tx, func(rec *centurion.Mission) { rec.Landed, rec.Merging = slices.DeleteFunc(rec.Landed, lost), "" }); err != nil {
			return err
		}
	} else {
		t, err := tx.Task(task)
		if err != nil {
			return err
		}
		t.Landed, t.Merging, session = slices.DeleteFunc(t.Landed, lost), "", t.Session
		if err := tx.PutTask(&t); err != nil {
			return err
		}
	}
	if !there {
		return nil
	}
	_, err := tx.Append(centurion.Event{Type: centurion.EventMergeDone, Mission: m.st.ID, Session: session, Task: task,
		Data: event.Data(event.MergeData{Branch: m.iso.Branch(), Commit: l.Commit}.WithFiles(l.Files))})
	return err
}

// recordMerged records of every landing of a chain whether the branch has it.
func (m *mission) recordMerged(ctx context.Context, chain []*landing, there bool) error {
	return m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		for _, l := range chain {
			task := ""
			if l.task != nil {
				task = l.task.ID
			}
			if err := m.decided(tx, task, *l.landed, there); err != nil {
				return err
			}
		}
		return nil
	})
}

// mendLandings puts right what a host that died has recorded of merges: the branch says which of them have happened.
func (m *mission) mendLandings(ctx context.Context) error {
	if !m.iso.Isolated() {
		return nil
	}
	rec, err := m.h.cfg.Store.Mission(ctx, m.st.ID)
	if err != nil {
		return err
	}
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.st.ID)
	if err != nil {
		return err
	}
	for _, t := range append(tasks, centurion.Task{Landed: rec.Landed, Merging: rec.Merging}) {
		i := slices.IndexFunc(t.Landed, func(l centurion.Landed) bool { return l.Commit == t.Merging })
		if i < 0 {
			continue
		}
		tip, err := m.iso.Tip(ctx)
		if err != nil {
			return err
		}
		there, err := m.iso.Ground.Repo.IsAncestor(ctx, t.Merging, tip)
		if err != nil {
			return err
		}
		if there && t.ID == "" {
			if t.Landed[i].Files, err = m.iso.Ground.Repo.Stat(ctx, t.Landed[i].Before, t.Merging); err != nil {
				return err
			}
		}
		if err := m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error { return m.decided(tx, t.ID, t.Landed[i], there) }); err != nil {
			return err
		}
	}
	return nil
}
