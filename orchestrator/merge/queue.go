package merge

import (
	"context"
	"errors"
	"slices"

	"centurion"
	"centurion/event"
	"centurion/failpoint"
	"centurion/guard"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/speculation"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/verify"
	"centurion/worktree"
)

// Work is the work of one turn on its way to the mission's branch. It belongs to the holder of the queue's turn.
type Work struct {
	Task   *state.Run      // nil for the mission's own agent
	Agent  string          // whose rules apply to checks
	Item   string          // "" without one
	Race   string          // of which its task is a try; "" for none
	Checks string          // the name of its receipts: its item, or its try until that is merged
	Verify []string        // the item's acceptance commands
	Given  []string        // those at the start of the work
	Keeps  bool            // its checks must be green before and after, nothing more
	More   bool            // it may be returned once more without calling a person
	Mends  bool            // its session may be asked once to fix tests that prove nothing
	Stuck  bool            // its agent says it is stuck: only a proof can refute that
	Idle   bool            // its task has changed nothing, now or before
	Commit worktree.Commit // the work; no ID if nothing was changed

	taken bool                        // another landing merges it too
	Next  string                      // its commit on top of the previous ones of this round
	tree  string                      // of Next
	Onto  string                      // what it was rebased onto
	laid  map[string]worktree.Rebased // it on top of commits; protected by the queue's turn
	ahead *speculation.Landing        // set while it is in the line

	proven bool // every check of its item proves it
	lines  int  // that a try adds and removes
	Done   bool
	Back   *Rejection        // why it was returned
	Landed *centurion.Landed // where it is now; nil if there was nothing to merge
	There  string            // the commit that contains it
	err    error
}

func (l *Work) end(back *Rejection, err error) { l.Done, l.Back, l.err = true, back, err }

// Land brings work onto the mission's branch, or sets l.Back to the reason against it. It returns when that is decided.
func (m *Queue) Land(ctx context.Context, l *Work) error {
	free := m.turn.TryAcquire(1)
	if !free && l.Task != nil { // else its check begins at once and says so
		if err := m.st.MoveRun(ctx, l.Task, centurion.TaskVerifying, nil); err != nil {
			return err
		}
	}
	m.enter(ctx, l)
	defer m.bench.Leave(l.ahead) // after the turn is free for others
	if !free && m.turn.Acquire(ctx, 1) != nil {
		err := context.Cause(ctx)
		if !m.quit(l) { // do not disturb another landing that is merging it
			return err
		}
		if m.turn.Acquire(context.WithoutCancel(ctx), 1) == nil {
			m.turn.Release(1)
		}
		if l.Done && l.Back == nil && l.err == nil {
			return nil
		}
		return err
	}
	defer m.turn.Release(1)
	defer m.quit(l)
	for !l.Done {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		batch, work := m.batch(l), ctx
		if len(batch) > 1 {
			work = m.st.Ctx
		}
		if err := guard.Call("merge", func() error { return m.round(work, batch) }); err != nil {
			return err
		}
	}
	return l.err
}

// quit removes a landing from the line and reports whether another one is merging it.
func (m *Queue) quit(l *Work) (taken bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = slices.DeleteFunc(m.waiting, func(o *Work) bool { return o == l })
	return l.taken
}

// batch returns the next landings to merge: the longest waiting, including l if there are few. Those that arrive while checks run are
// merged together afterwards.
func (m *Queue) batch(l *Work) []*Work {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = slices.DeleteFunc(m.waiting, func(o *Work) bool { return o.Done })
	if len(m.waiting) < 2 {
		return []*Work{l}
	}
	out := slices.Clone(m.waiting[:min(len(m.waiting), speculation.Crowd)])
	for _, o := range out {
		o.taken = true
	}
	return out
}

// round merges a batch: each on top of the previous one, with the mission's own checks once on the last. Undecided ones stay in the
// line. The first of a batch is always decided, so that the line moves.
func (m *Queue) round(ctx context.Context, batch []*Work) (err error) {
	defer func() { err = errors.Join(err, m.keepUnkept(context.WithoutCancel(ctx))) }()
	defer func() { m.now = speculation.Course{} }()
	tip, err := m.iso.Tip(ctx)
	if err != nil {
		return err
	}
	at := tip
	var chain []*Work
	raced := map[string]bool{}
	for i, l := range batch {
		if raced[l.Race] { // with the first try in this batch
			continue
		}
		m.stands(tip, at, chain, batch[i:])
		onTop := false
		if l.Race == "" {
			onTop, err = m.tryPut(ctx, l, at, at == tip)
		} else {
			raced[l.Race] = true
			l, onTop, err = m.contest(ctx, batch[i:], at, at == tip)
		}
		if err != nil {
			return err
		}
		if onTop {
			at, chain = l.Next, append(chain, l)
		}
	}
	m.stands(tip, at, chain, nil)
	chain, err = m.Guard(ctx, tip, chain)
	if err == nil && len(chain) > 0 {
		err = m.Advance(ctx, tip, chain)
	}
	return err
}

// tryPut is put, but an error ends the landing, unless the round itself was stopped.
func (m *Queue) tryPut(ctx context.Context, l *Work, at string, first bool) (bool, error) {
	onTop, err := m.put(ctx, l, at, first)
	if err != nil && ctx.Err() == nil {
		l.end(nil, err)
		return false, nil
	}
	return onTop, err
}

// put rebases work onto a commit and runs its item's checks there. It reports whether there is something to merge. For the first,
// conflicting work is returned; on top of other work that has not landed itself, it stays in the line.
func (m *Queue) put(ctx context.Context, l *Work, at string, first bool) (bool, error) {
	if l.Commit.ID == "" {
		back, err := m.proveLanding(ctx, l, at, at)
		if err == nil {
			l.end(back, nil)
		}
		return false, err
	}
	laid, err := m.lay(ctx, l, at)
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
	l.Next, l.tree, l.Onto = laid.Commit, laid.Tree, at
	same := l.Next == at
	back, err := m.proveLanding(ctx, l, at, l.Next)
	switch {
	case err != nil:
		return false, err
	case back != nil && !first:
		return false, nil
	case back != nil || same:
		if back == nil {
			l.There = at
		}
		l.end(back, nil)
		return false, nil
	}
	return true, nil
}

// Guard runs the mission's own checks on the last of a chain and cuts the chain before the work that turns a green one red, which is
// returned; the work after it stays in the line.
func (m *Queue) Guard(ctx context.Context, tip string, chain []*Work) ([]*Work, error) {
	for len(chain) > 0 {
		red, err := m.BrokenBy(ctx, tip, chain[len(chain)-1])
		if err != nil || red == nil {
			return chain, err
		}
		guilty := len(chain) - 1
		for low := 0; low < guilty; {
			mid := (low + guilty) / 2
			r, err := m.ownCheck(ctx, chain[mid], red.Command, chain[mid].Next, true)
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
		l.end(&Rejection{Text: "Your work breaks a check of the mission that was green before it.\n" + brief.Account(*red) +
			"\nFix the cause, then end your turn; the host tries it again.", Short: "it breaks a check of the mission: " + brief.Account(*red),
			Cause: event.ReturnedGuard, Command: red.Command, Tree: l.tree, Onto: l.Onto}, nil)
		chain = chain[:guilty]
	}
	return nil, nil
}

// BrokenBy returns the receipt of a mission's check that is green on the tip and red with the work, or nil.
func (m *Queue) BrokenBy(ctx context.Context, tip string, l *Work) (*centurion.Receipt, error) {
	commands, err := m.ownChecks(ctx)
	if err != nil {
		return nil, err
	}
	for _, command := range commands {
		if err := m.keepUnkept(ctx); err != nil { // before a person may be asked
			return nil, err
		}
		if err := m.may.MayCheck(ctx, command, l.Agent, ""); err != nil {
			if centurion.KindOf(err) == centurion.KindPermission {
				continue // it guards nothing; the end of the mission requires it
			}
			return nil, err
		}
		was, err := m.ownCheck(ctx, l, command, tip, false)
		if err != nil {
			return nil, err
		}
		now, err := m.ownCheck(ctx, l, command, l.Next, was.Passed)
		if err != nil {
			return nil, err
		}
		if was.Passed && !now.Passed {
			return &now, nil
		}
	}
	return nil, nil
}

// Advance moves the mission's branch to the end of a chain. It records the intention first: if the host dies in between, the branch
// shows whether it happened.
func (m *Queue) Advance(ctx context.Context, tip string, chain []*Work) error {
	for _, l := range chain {
		files, err := m.iso.Ground.Repo.Stat(ctx, l.Onto, l.Next)
		if err != nil {
			return err
		}
		l.Landed = &centurion.Landed{Commit: l.Next, Before: l.Onto, Files: files, Time: centurion.Now()}
	}
	ctx = context.WithoutCancel(ctx) // from here on it is final
	if err := m.recordMerging(ctx, chain); err != nil {
		return err
	}
	failpoint.Hit(failpoint.MergeBefore)
	last := chain[len(chain)-1].Next
	if err := m.iso.Ground.Repo.Advance(ctx, m.iso.Branch(), tip, last); err != nil {
		if uerr := m.recordMerged(ctx, chain, false); uerr != nil {
			return uerr
		}
		for _, l := range chain {
			l.Landed = nil
		}
		if centurion.KindOf(err) == centurion.KindConflict { // the branch was moved meanwhile: the next round starts there
			return nil
		}
		return err
	}
	failpoint.Hit(failpoint.MergeAfter)
	if err := m.recordMerged(ctx, chain, true); err != nil {
		return err
	}
	for _, l := range chain {
		l.There = l.Next
		l.end(nil, nil)
	}
	if err := m.iso.ViewTo(ctx, last); err != nil {
		return err
	}
	m.st.Notify()
	return nil
}

// recordMerging records, in advance, what a chain brings to the branch.
func (m *Queue) recordMerging(ctx context.Context, chain []*Work) error {
	return m.update(ctx, func(tx *store.Tx) error {
		for _, l := range chain {
			if l.Task == nil {
				tasks, err := tx.Tasks(m.st.ID)
				if err != nil {
					return err
				}
				if _, err := m.st.RecordIn(tx, func(rec *centurion.Mission) {
					own := *l.Landed
					own.Files = alsoOf(tasks, own.Files) // the row is written at each answer; all files are in its event
					rec.Landed, rec.Merging = append(rec.Landed, own), own.Commit
				}); err != nil {
					return err
				}
				continue
			}
			if _, err := state.MoveTask(tx, l.Task.ID, centurion.TaskMerging, func(t *centurion.Task) {
				t.Landed, t.Merging = append(t.Landed, *l.Landed), l.Landed.Commit
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// alsoOf returns the files that tasks have changed, too: reviews of them do not count any more.
func alsoOf(tasks []centurion.Task, files []centurion.FileChange) (out []centurion.FileChange) {
	theirs := map[string]bool{}
	for _, t := range tasks {
		for _, l := range t.Landed {
			for _, f := range centurion.Paths(l.Files) {
				theirs[f] = true
			}
		}
	}
	for _, f := range files {
		if theirs[f.Path] || f.Old != "" && theirs[f.Old] {
			out = append(out, f)
		}
	}
	return out
}

// decided records, and tells, whether the branch has a commit that was on its way there, to which its checkout is moved then. task is empty
// for the mission's own agent.
func (m *Queue) decided(tx *store.Tx, task string, l centurion.Landed, there bool) error {
	lost := func(x centurion.Landed) bool { return !there && x.Commit == l.Commit }
	moved := func(at *centurion.Checkout) *centurion.Checkout {
		if at == nil || !there {
			return at
		}
		return &centurion.Checkout{Dir: at.Dir, Branch: at.Branch, Start: l.Commit}
	}
	session := ""
	if task == "" {
		if _, err := m.st.RecordIn(tx, func(rec *centurion.Mission) {
			rec.Landed, rec.Merging, rec.Checkout = slices.DeleteFunc(rec.Landed, lost), "", moved(rec.Checkout)
		}); err != nil {
			return err
		}
	} else {
		t, err := tx.Task(task)
		if err != nil {
			return err
		}
		t.Landed, t.Merging, t.Checkout, session = slices.DeleteFunc(t.Landed, lost), "", moved(t.Checkout), t.Session
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

// recordMerged records for every landing of a chain whether the branch has it.
func (m *Queue) recordMerged(ctx context.Context, chain []*Work, there bool) error {
	return m.st.Store.Update(ctx, func(tx *store.Tx) error {
		for _, l := range chain {
			task := ""
			if l.Task != nil {
				task = l.Task.ID
			}
			if err := m.decided(tx, task, *l.Landed, there); err != nil {
				return err
			}
		}
		return nil
	})
}

// Repair fixes the merge records of a host that died: the branch shows which merges have happened.
func (m *Queue) Repair(ctx context.Context) error {
	if !m.iso.Isolated() {
		return nil
	}
	rec, err := m.st.Store.Mission(ctx, m.st.ID)
	if err != nil {
		return err
	}
	tasks, err := m.st.Store.Tasks(ctx, m.st.ID)
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
		if err := m.st.Store.Update(ctx, func(tx *store.Tx) error { return m.decided(tx, t.ID, t.Landed[i], there) }); err != nil {
			return err
		}
	}
	return nil
}

// proveLanding runs the acceptance commands of the work's item: before it, with it, and with it removed. It returns why the work is
// returned, or nil: a check is red, the work's own tests say nothing about it, or its agent says it is stuck and no green check refutes
// that.
func (m *Queue) proveLanding(ctx context.Context, l *Work, before, after string) (*Rejection, error) {
	var back *Rejection
	told, err := m.st.Store.Receipts(ctx, m.st.ID)
	if err != nil {
		return nil, err
	}
	l.proven = len(l.Verify) > 0 && l.Commit.ID != ""
	for _, command := range verify.Distinct(l.Verify) {
		r, err := m.proveWork(ctx, l, command, before, after)
		if err != nil {
			return nil, err
		}
		l.proven = l.proven && r.Proof.Solid()
		if !r.Passed {
			on := "on your work, put on top of the newest state of the mission"
			if l.Commit.ID == "" {
				on = "on the newest state of the mission as it is, since you have changed no file that is not merged"
			}
			shown := func(output string) bool { return l.Task != nil && m.st.Shown(ctx, l.Task.ID, output) }
			return &Rejection{Text: "The host ran your acceptance command " + on + ", and it failed.\n" + brief.AccountAgain(r, told, shown) +
				"\nFix the cause, then end your turn; the host runs it again.", Short: "its acceptance command fails: " + brief.Account(r),
				Cause: event.ReturnedCheck, Command: r.Command, Tree: l.tree, Onto: before}, nil
		}
		if back == nil && l.Stuck {
			if back = stuckOn(l, r); back != nil {
				back.Command, back.Tree, back.Onto = r.Command, l.tree, before
			}
		}
		if back == nil && l.More && !l.Stuck && r.Proof == centurion.ProofUnproven && verify.RanNoTest(r) && !slices.ContainsFunc(told, func(t centurion.Receipt) bool { return t.ID == r.ID }) {
			back = hollow(r, "its check ran no test", brief.Testless(r))
			back.Tree, back.Onto = l.tree, before
		}
		if back == nil && l.Mends && r.TestsMissWork && r.Proof == centurion.ProofUnproven {
			back = hollow(r, "its tests tell nothing of its work", brief.Hollow(r))
			back.Tree, back.Onto = l.tree, before
		}
	}
	return back, nil
}
