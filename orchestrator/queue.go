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
	there  string            // the commit that has it already
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
		if uerr := m.unland(ctx, chain); uerr != nil {
			return uerr
		}
		if centurion.KindOf(err) == centurion.KindConflict { // somebody has moved the branch: the next round begins there
			return nil
		}
		return err
	}
	failpoint.Hit(failpoint.MergeAfter)
	if err := m.recordMerged(ctx, chain); err != nil {
		return err
	}
	for _, l := range chain {
		l.end(nil, nil)
	}
	if err := m.iso.ViewTo(ctx, last); err != nil {
		return err
	}
	m.st.Notify()
	return nil
}

// recordMerging records, before it happens, what each task of a chain brings to the branch.
func (m *mission) recordMerging(ctx context.Context, chain []*landing) error {
	return m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		for _, l := range chain {
			if l.task == nil {
				continue
			}
			if _, err := state.MoveTask(tx, l.task.ID, centurion.TaskMerging, func(t *centurion.Task) { t.Landed = append(t.Landed, *l.landed) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// recordMerged tells of every landing of a chain that the branch has it.
func (m *mission) recordMerged(ctx context.Context, chain []*landing) error {
	return m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		for _, l := range chain {
			task, session := "", ""
			if l.task != nil {
				t, err := tx.Task(l.task.ID)
				if err != nil {
					return err
				}
				task, session = t.ID, t.Session
			}
			if _, err := tx.Append(mergeDone(m.st.ID, session, task, m.iso.Branch(), *l.landed)); err != nil {
				return err
			}
		}
		return nil
	})
}

func mergeDone(mission, session, task, branch string, l centurion.Landed) centurion.Event {
	return centurion.Event{Type: centurion.EventMergeDone, Mission: mission, Session: session, Task: task,
		Data: event.Data(event.MergeData{Branch: branch, Commit: l.Commit}.WithFiles(l.Files))}
}

// unland takes back what was recorded before a merge that has not happened.
func (m *mission) unland(ctx context.Context, chain []*landing) error {
	return m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		for _, l := range chain {
			if l.task == nil {
				continue
			}
			t, err := tx.Task(l.task.ID)
			if err != nil {
				return err
			}
			t.Landed = slices.DeleteFunc(t.Landed, func(x centurion.Landed) bool { return x.Commit == l.next })
			if err := tx.PutTask(&t); err != nil {
				return err
			}
			l.landed = nil
		}
		return nil
	})
}

// mendLandings puts right what a host that died has recorded of merges: the branch says which of them have happened.
func (m *mission) mendLandings(ctx context.Context) error {
	if !m.iso.Isolated() {
		return nil
	}
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.st.ID)
	if err != nil || !slices.ContainsFunc(tasks, func(t centurion.Task) bool { return len(t.Landed) > 0 }) {
		return err
	}
	told, err := m.toldMerges(ctx)
	if err != nil {
		return err
	}
	tip, err := m.iso.Tip(ctx)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		for _, l := range t.Landed {
			if told[l.Commit] {
				continue
			}
			there, err := m.iso.Ground.Repo.IsAncestor(ctx, l.Commit, tip)
			if err != nil {
				return err
			}
			err = m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
				if there {
					_, err := tx.Append(mergeDone(m.st.ID, t.Session, t.ID, m.iso.Branch(), l))
					return err
				}
				t, err := tx.Task(t.ID)
				if err != nil {
					return err
				}
				t.Landed = slices.DeleteFunc(t.Landed, func(x centurion.Landed) bool { return x.Commit == l.Commit })
				return tx.PutTask(&t)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// toldMerges lists the commits whose merge was told.
func (m *mission) toldMerges(ctx context.Context) (map[string]bool, error) {
	events, err := m.merges(ctx)
	out := map[string]bool{}
	for _, e := range events {
		if d, err := event.Decode[event.MergeData](e); err == nil {
			out[d.Commit] = true
		}
	}
	return out, err
}

func (m *mission) merges(ctx context.Context) ([]centurion.Event, error) {
	return m.h.cfg.Store.Events(ctx, store.EventQuery{Mission: m.st.ID, Types: []centurion.EventType{centurion.EventMergeDone}, Limit: 1 << 20})
}
