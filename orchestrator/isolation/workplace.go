package isolation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"golang.org/x/sync/semaphore"

	"centurion"
	"centurion/failpoint"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/workspace"
	"centurion/worktree"
)

// Footing is the state of the files of a resumed session.
type Footing struct {
	At     string   // their commit
	Left   []string // unmerged files in the checkout
	Marked []string // those in conflict with later merges
	Kept   string   // the branch with unmerged work that is not in the checkout
}

// TakeUp finds the files of a resumed session. With lay, a session that continues its own item gets its unmerged work at once, not only
// at its first write, so that it can read it. Other sessions do not get it: it would be merged with theirs.
func (w *Workplace) TakeUp(ctx context.Context, lay bool) (s Footing, err error) {
	if err := w.reopen(ctx); err != nil {
		return s, err
	}
	if s.At, err = w.m.Tip(ctx); err != nil {
		return s, err
	}
	if _, s.Kept, err = w.freeBranch(ctx, s.At); err != nil {
		return s, err
	}
	if s.Kept != "" && lay {
		if _, leave, err := w.Write(ctx); err == nil {
			leave()
		} else if ctx.Err() != nil {
			return s, err
		} // any other error is notified, and the session sees it at its first write
	}
	if err := w.lock(ctx); err != nil {
		return s, err
	}
	defer w.unlock()
	if w.checkout != nil {
		s.At, s.Left, s.Marked = w.checkout.Where().Start, w.laid, w.marked
	}
	return s, nil
}

// Workplace is where the tools of a session work: in the mission's view until the first call that writes, then in a checkout of its
// own, reads included. A sub-agent shares its parent's. The zero workplace is for missions without isolation.
type Workplace struct {
	m    *Checkouts
	task string // the owner of the checkout; "" for the Commander

	uses *semaphore.Weighted // has one unit for each call that uses ws; never waited for with turn held

	// turn is held while the checkout is made or released, and protects the fields below.
	turn     chan struct{}
	checkout *worktree.Checkout
	ws       *workspace.Workspace
	at       string          // where ws reaches its files
	laid     []string        // files of earlier unmerged work, laid into the new checkout
	marked   []string        // those in conflict with later merges
	asked    map[string]bool // written files already checked against git's ignore rules
	lost     bool            // the checkout was deleted by somebody, and there is no other yet
	crossed  int             // commands that could not rename because the checkout is made of layers
}

// PlaceOf returns the workplace of a session that works on a task, "" for the Commander.
func (m *Checkouts) PlaceOf(session, task string) *Workplace {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.places[session]
	if w == nil || w.task != task { // a resumed session has a new task
		w = &Workplace{m: m, task: task, turn: make(chan struct{}, 1), uses: semaphore.NewWeighted(manyUses)}
		m.places[session] = w
	}
	return w
}

// manyUses is more than the calls that a session makes at once.
const manyUses = 1 << 20

func (w *Workplace) lock(ctx context.Context) error {
	select {
	case w.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *Workplace) unlock() { <-w.turn }

// reopen finds the checkout left by a host that died, with all its files.
func (w *Workplace) reopen(ctx context.Context) error {
	if err := w.lock(ctx); err != nil {
		return err
	}
	defer w.unlock()
	if w.checkout != nil {
		return nil
	}
	at, err := w.recorded(ctx)
	if err != nil || at == nil {
		return err
	}
	checkout, err := w.m.project.reopen(ctx, w.m.Ground.Repo, *at)
	if centurion.KindOf(err) == centurion.KindNotFound {
		w.lost = true
		return w.leftAs(ctx, at.Branch) // it was deleted by hand; its work is on its branch
	}
	if err != nil {
		return err
	}
	return w.enter(ctx, checkout)
}

// enter makes a checkout the session's place. turn is held.
func (w *Workplace) enter(ctx context.Context, checkout *worktree.Checkout) error {
	ws, at, err := w.m.project.files(ctx, checkout)
	if err != nil {
		return err
	}
	w.checkout, w.ws, w.at = checkout, ws, at
	return nil
}

// recorded returns the stored checkout, or nil.
func (w *Workplace) recorded(ctx context.Context) (*centurion.Checkout, error) {
	if w.task == "" {
		rec, err := w.m.st.Store.Mission(ctx, w.m.st.ID)
		return rec.Checkout, err
	}
	rec, err := w.m.st.Store.Task(ctx, w.task)
	return rec.Checkout, err
}

// Record stores where the session works, so that the next host finds it.
func (w *Workplace) Record(ctx context.Context, at *centurion.Checkout) error {
	return w.m.st.Store.Update(ctx, func(tx *store.Tx) error { return putCheckout(tx, w.m.st.ID, w.task, at) })
}

// putCheckout records where a task works, or with "" the mission's own agent.
func putCheckout(tx *store.Tx, mission, task string, at *centurion.Checkout) error {
	if task == "" {
		rec, err := tx.Mission(mission)
		if err != nil {
			return err
		}
		rec.Checkout = at
		return tx.PutMission(&rec)
	}
	rec, err := tx.Task(task)
	if err != nil {
		return err
	}
	rec.Checkout = at
	return tx.PutTask(&rec)
}

// begin makes the session's checkout. turn is held.
func (w *Workplace) begin(ctx context.Context) error {
	tip, err := w.m.Tip(ctx)
	if err != nil {
		return err
	}
	branch, kept, err := w.freeBranch(ctx, tip)
	if err != nil {
		return err
	}
	if err := w.m.MayPrepare(ctx); err != nil {
		return errors.Join(err, w.m.TellNoCheckout(ctx, err))
	}
	checkout, err := w.m.Ground.Repo.Take(ctx, worktree.Want{Branch: branch, Commit: tip, Setup: w.m.Ground.Setup})
	if err != nil {
		return errors.Join(err, w.m.TellNoCheckout(ctx, err))
	}
	w.m.hasCheckout()
	failpoint.Hit(failpoint.CheckoutTaken)
	at := checkout.Where()
	if err := w.Record(ctx, &at); err != nil {
		_, rerr := checkout.Release(context.WithoutCancel(ctx), tip)
		return errors.Join(err, rerr)
	}
	if err := w.carry(ctx, checkout, kept, tip); err != nil {
		return errors.Join(err, w.leave(context.WithoutCancel(ctx), checkout, tip))
	}
	if err := w.enter(ctx, checkout); err != nil {
		return errors.Join(err, w.leave(context.WithoutCancel(ctx), checkout, tip))
	}
	return nil
}

// OutsideSubmodules refuses writes to files of a submodule, whose changes cannot be merged.
func (w *Workplace) OutsideSubmodules(files []string) error {
	if w == nil {
		return nil
	}
	w.turn <- struct{}{}
	defer w.unlock()
	for _, f := range files {
		if sub := w.checkout.Submodule(f); sub != "" {
			return &centurion.Error{Kind: centurion.KindConflict, Msg: f + " belongs to the git submodule " + sub + ", a repository of its own; changes in it cannot be merged",
				Hint: "change files outside " + sub + ", or say in your result what has to change in it"}
		}
	}
	return nil
}

// leave releases a checkout that could not be entered.
func (w *Workplace) leave(ctx context.Context, checkout *worktree.Checkout, into string) error {
	if _, err := checkout.Release(ctx, into); err != nil { // it stays recorded, so that it is found again
		w.m.project.park(checkout)
		return err
	}
	return w.Record(ctx, nil)
}

// freeBranch names an unused branch for the session's work, and the newest earlier one with work that is not on the mission's branch,
// "" if there is none.
func (w *Workplace) freeBranch(ctx context.Context, tip string) (free, kept string, err error) {
	names, landed, err := w.names(ctx)
	if err != nil {
		return "", "", err
	}
	for _, name := range names {
		if landed[name] { // earlier kept work was laid into its checkout and merged with it
			kept = ""
		}
		for n := 1; ; n++ {
			free = w.m.branchFor(name, n)
			at, err := w.m.Ground.Repo.Tip(ctx, free)
			if centurion.KindOf(err) == centurion.KindNotFound {
				break
			}
			if err != nil {
				return "", "", err
			}
			kept = ""
			in, err := w.m.Ground.Repo.IsAncestor(ctx, at, tip)
			if err != nil {
				return "", "", err
			}
			if !in {
				kept = free
			}
		}
	}
	return free, kept, nil
}

// names lists the names under which the session has worked, the current one last, and which of them were merged.
func (w *Workplace) names(ctx context.Context) (names []string, landed map[string]bool, err error) {
	if w.task == "" {
		return []string{"commander"}, nil, nil
	}
	own, err := w.m.st.Store.Task(ctx, w.task)
	if err != nil || own.Resumes == "" {
		return []string{own.ID}, nil, err
	}
	all, err := w.m.st.Store.Tasks(ctx, w.m.st.ID)
	landed = map[string]bool{}
	for _, t := range all {
		if t.ID != own.ID && t.Session == own.Session && own.Session != "" {
			names, landed[t.ID] = append(names, t.ID), len(t.Landed) > 0
		}
	}
	return append(names, own.ID), landed, err
}

// branchFor is the n-th branch of a session, counted from 1.
func (m *Checkouts) branchFor(name string, n int) string {
	if n > 1 {
		name = fmt.Sprintf("%s-%d", name, n)
	}
	return BranchPrefix(m.st.ID) + name
}

// carry lays the session's unmerged earlier work into its new checkout, because its history says that the work is there.
func (w *Workplace) carry(ctx context.Context, checkout *worktree.Checkout, kept, tip string) error {
	if kept == "" {
		return nil
	}
	repo := w.m.Ground.Repo
	commit, err := repo.Tip(ctx, kept)
	if err != nil {
		return err
	}
	r, err := repo.Rebase(ctx, commit, tip)
	if err != nil {
		return err
	}
	changed, err := repo.Stat(ctx, tip, r.Tree)
	if err != nil {
		return err
	}
	w.laid, w.marked = centurion.Paths(changed), nil
	for _, x := range r.Conflicts {
		w.marked = append(w.marked, x.Path)
	}
	return checkout.Lay(ctx, r.Tree, tip) // conflicts get markers, visible to readers of the file
}

// close releases the checkout, if there is one, and returns its branch. The caller records that it is gone.
func (w *Workplace) close(ctx context.Context, into string) (branch, kept string, err error) {
	if err := w.lock(ctx); err != nil {
		return "", "", err
	}
	defer w.unlock()
	if w.checkout == nil {
		return "", "", nil
	}
	branch = w.checkout.Where().Branch
	if kept, err = w.checkout.Release(ctx, into); err != nil {
		return "", kept, err
	}
	failpoint.Hit(failpoint.CheckoutLeft)
	err = w.ws.Close()
	w.checkout, w.ws, w.asked = nil, nil, nil
	return branch, kept, err
}

// Vacate releases the checkout of an ended task. The note describes where its unmerged work is, "" if there is none. record, if not nil, has to
// run in the transaction of the task's end: until then the task names a checkout that it has left.
func (m *Checkouts) Vacate(ctx context.Context, t centurion.Task) (note string, record func(*store.Tx) error) {
	if t.Sub != nil || t.Session == "" {
		return "", nil
	}
	if !m.Isolated() {
		if err := m.sealTrees(ctx, t.ID, t.Landed, t.Files); err != nil {
			return "its changes cannot be reverted: " + err.Error(), nil
		}
		return "", nil
	}
	w := m.PlaceOf(t.Session, t.ID)
	branch, kept, err := w.end(ctx)
	var aside []centurion.Aside
	if err == nil && branch != "" {
		aside, err = m.Ground.Repo.Aside(branch)
	}
	if err != nil {
		w.shut() // it stays recorded and is found again
	}
	m.mu.Lock()
	if m.places[t.Session] == w {
		delete(m.places, t.Session)
	}
	m.mu.Unlock()
	if err != nil { // it stays recorded, so nothing is lost
		return "its checkout could not be given back: " + err.Error(), nil
	}
	var notes []string
	if kept != "" {
		notes = append(notes, "what it changed and what was not merged stands on the branch "+kept)
	}
	if now, err := m.st.Store.Task(ctx, t.ID); err == nil { // the task was readable when its checkout was released
		t.Aside = now.Aside
	}
	for _, a := range withAside(t.Aside, aside) {
		notes = append(notes, a.String())
	}
	if branch != "" {
		record = func(tx *store.Tx) error { return putLeft(tx, m.st.ID, t.ID, aside) }
	}
	return strings.Join(notes, "; "), record
}

// end releases the checkout into the mission's branch, even if it was not opened since a restart. The caller records that it is gone.
func (w *Workplace) end(ctx context.Context) (branch, kept string, err error) {
	at, err := w.recorded(ctx)
	if err != nil || at == nil {
		return "", "", err
	}
	if err := w.reopen(ctx); err != nil {
		return "", "", err
	}
	tip, err := w.m.Tip(ctx)
	if err != nil {
		return "", "", err
	}
	return w.close(ctx, tip)
}

// Leave releases the repository's resources of a mission that stops. The work of its tasks and its Commander stays, unless the mission
// is over.
func (m *Checkouts) Leave(status centurion.MissionStatus) {
	ctx := context.WithoutCancel(m.st.Ctx)
	if !m.Isolated() {
		m.sealOwn(ctx)
		return
	}
	over := status.Ended() && !state.HandedOver(m.st.Ctx)
	m.mu.Lock()
	places := maps.Clone(m.places)
	m.mu.Unlock()
	for _, w := range places {
		if over && w.task == "" {
			if branch, _, err := w.end(ctx); err == nil && branch != "" { // a checkout that cannot be released stays recorded
				_ = w.leftAs(ctx, branch)
			}
		}
		w.shut()
	}
	_ = m.closeView(ctx) // likewise; the view contains no work
	m.SweepBranches(ctx)
}

// shut closes the files of a checkout that stays. Nothing may be working in it.
func (w *Workplace) shut() {
	w.turn <- struct{}{}
	defer w.unlock()
	if w.ws != nil {
		_ = w.ws.Close()       // it was only used for reading
		_ = w.checkout.Still() // files that stay are removed by the next host
		w.m.project.park(w.checkout)
		w.checkout, w.ws = nil, nil
	}
}

// CatchUp moves the conversation's checkout to the tip of the mission's branch if all of its work is merged, so that it sees the
// others' work.
func (m *Checkouts) CatchUp(ctx context.Context, s *Seat) error {
	checkout := s.Checkout()
	if checkout == nil {
		return nil
	}
	tip, err := m.Tip(ctx)
	at := checkout.Where()
	if err != nil || at.Start == tip {
		return err
	}
	repo := m.Ground.Repo
	if own, err := repo.Tip(ctx, at.Branch); err != nil || own != at.Start {
		return err // it has unmerged work
	}
	err = checkout.Move(ctx, tip)
	if centurion.KindOf(err) == centurion.KindConflict {
		return nil // it has uncommitted work
	}
	if err != nil {
		return err
	}
	return s.KeepPlace(ctx)
}
