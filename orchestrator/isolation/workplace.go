package isolation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"centurion"
	"centurion/failpoint"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/workspace"
	"centurion/worktree"
)

// Footing is where the files of a session stand that goes on.
type Footing struct {
	At     string   // the commit
	Left   []string // files that lie there and were never merged
	Marked []string // those of them that conflict with what was merged since
	Kept   string   // the branch with what was not merged and does not lie there
}

// TakeUp finds where a session goes on. Whoever goes on with an item finds there at once what was never merged, not only after its
// first write: it reads what it wrote. Others are not given it, since at their end it would be merged with what they do.
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
		if _, err := w.Write(ctx); err != nil && ctx.Err() != nil {
			return s, err
		} // another error was told, and the first write says it to the session
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

// Workplace is where the tools of a session work: in the mission's view until the first call that writes, in a checkout
// of its own from then on, reads included. A sub-agent works where its parent does. The zero workplace is that of a mission
// that is not isolated.
type Workplace struct {
	m    *Checkouts
	task string // whose checkout it is; "" for the Commander's

	// turn is held while the checkout is made or given back, and protects what follows.
	turn     chan struct{}
	checkout *worktree.Checkout
	ws       *workspace.Workspace
	laid     []string        // files of unmerged work of before that was laid into the checkout when it was made
	marked   []string        // those of them that conflict with what was merged since
	asked    map[string]bool // written files of which it is known whether git ignores them
}

// PlaceOf returns the workplace of a session that works on a task, "" for the Commander.
func (m *Checkouts) PlaceOf(session, task string) *Workplace {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.places[session]
	if w == nil || w.task != task { // a session that was resumed has another task
		w = &Workplace{m: m, task: task, turn: make(chan struct{}, 1)}
		m.places[session] = w
	}
	return w
}

func (w *Workplace) lock(ctx context.Context) error {
	select {
	case w.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *Workplace) unlock() { <-w.turn }

// reopen finds the checkout that a host which died has left, with everything that was written in it.
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
		return w.leftAs(ctx, at.Branch) // somebody has deleted it; what was committed is found on its branch
	}
	if err != nil {
		return err
	}
	return w.enter(checkout)
}

// enter makes a checkout the session's place. The turn is held.
func (w *Workplace) enter(checkout *worktree.Checkout) error {
	ws, err := w.m.project.ws.Copy(checkout.Where().Dir)
	if err != nil {
		return err
	}
	w.checkout, w.ws = checkout, ws
	return nil
}

// recorded returns the checkout that stands in the store, or nil.
func (w *Workplace) recorded(ctx context.Context) (*centurion.Checkout, error) {
	if w.task == "" {
		rec, err := w.m.st.Store.Mission(ctx, w.m.st.ID)
		return rec.Checkout, err
	}
	rec, err := w.m.st.Store.Task(ctx, w.task)
	return rec.Checkout, err
}

// Record keeps where the session works, so that the next host finds it.
func (w *Workplace) Record(ctx context.Context, at *centurion.Checkout) error {
	return w.m.st.Store.Update(ctx, func(tx *store.Tx) error {
		if w.task == "" {
			rec, err := tx.Mission(w.m.st.ID)
			if err != nil {
				return err
			}
			rec.Checkout = at
			return tx.PutMission(&rec)
		}
		rec, err := tx.Task(w.task)
		if err != nil {
			return err
		}
		rec.Checkout = at
		return tx.PutTask(&rec)
	})
}

// Read returns the files that a call which only reads looks at. They stay as they are, but for what the session itself
// writes, until leave is called.
func (w *Workplace) Read(ctx context.Context) (ws *workspace.Workspace, leave func(), err error) {
	if err := w.lock(ctx); err != nil {
		return nil, nil, err
	}
	own := w.ws
	w.unlock()
	if own != nil {
		return own, func() {}, nil
	}
	return w.m.enterView(ctx)
}

// Write returns the session's own files. The first call makes the checkout, at the tip of the mission's branch, and records it
// before anything can be written there.
func (w *Workplace) Write(ctx context.Context) (*workspace.Workspace, error) {
	if err := w.lock(ctx); err != nil {
		return nil, err
	}
	defer w.unlock()
	if w.ws != nil {
		return w.ws, nil
	}
	tip, err := w.m.Tip(ctx)
	if err != nil {
		return nil, err
	}
	branch, kept, err := w.freeBranch(ctx, tip)
	if err != nil {
		return nil, err
	}
	if err := w.m.MayPrepare(ctx); err != nil {
		return nil, errors.Join(err, w.m.TellNoCheckout(ctx, err))
	}
	checkout, err := w.m.Ground.Repo.Take(ctx, worktree.Want{Branch: branch, Commit: tip, Setup: w.m.Ground.Setup})
	if err != nil {
		return nil, errors.Join(err, w.m.TellNoCheckout(ctx, err))
	}
	w.m.hasCheckout()
	failpoint.Hit(failpoint.CheckoutTaken)
	at := checkout.Where()
	if err := w.Record(ctx, &at); err != nil {
		_, rerr := checkout.Release(context.WithoutCancel(ctx), tip)
		return nil, errors.Join(err, rerr)
	}
	if err := w.carry(ctx, checkout, kept, tip); err != nil {
		return nil, errors.Join(err, w.leave(context.WithoutCancel(ctx), checkout, tip))
	}
	if err := w.enter(checkout); err != nil {
		return nil, errors.Join(err, w.leave(context.WithoutCancel(ctx), checkout, tip))
	}
	return w.ws, nil
}

// OutsideSubmodules refuses a file of a submodule before it is written: what changes there cannot be merged.
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

// leave gives back a checkout that could not be entered.
func (w *Workplace) leave(ctx context.Context, checkout *worktree.Checkout, into string) error {
	if _, err := checkout.Release(ctx, into); err != nil { // it stays recorded, and who looks for it finds it
		w.m.project.park(checkout)
		return err
	}
	return w.Record(ctx, nil)
}

// freeBranch names a branch for the work of the session that there is not yet, and the newest one before it with work that
// never came onto the mission's branch, "" if there is none.
func (w *Workplace) freeBranch(ctx context.Context, tip string) (free, kept string, err error) {
	names, landed, err := w.names(ctx)
	if err != nil {
		return "", "", err
	}
	for _, name := range names {
		if landed[name] { // what was kept before lay in its checkout, and is merged with it
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

// names lists under which names the session has worked, its present one last, and of which work was merged.
func (w *Workplace) names(ctx context.Context) (names []string, landed map[string]bool, err error) {
	if w.task == "" {
		return []string{"commander"}, nil, nil
	}
	own, err := w.m.st.Store.Task(ctx, w.task)
	if err != nil {
		return nil, nil, err
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

// branchFor is the n-th branch of a session, from 1.
func (m *Checkouts) branchFor(name string, n int) string {
	if n > 1 {
		name = fmt.Sprintf("%s-%d", name, n)
	}
	return BranchPrefix(m.st.ID) + name
}

// carry lays what the session did before, and what never came onto the mission's branch, into its new checkout: its history
// says that it is there.
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
	return checkout.Lay(ctx, r.Tree, tip) // with markers where it conflicts: whoever reads the file sees them
}

// Uncommitted lists what was changed since the last commit, relative to the repository's top.
func (w *Workplace) Uncommitted(ctx context.Context) ([]string, error) {
	if err := w.lock(ctx); err != nil {
		return nil, err
	}
	defer w.unlock()
	if w.checkout == nil {
		return nil, nil
	}
	return w.checkout.Uncommitted(ctx)
}

// close gives the checkout back, if there is one.
func (w *Workplace) close(ctx context.Context, into string) (kept string, err error) {
	if err := w.lock(ctx); err != nil {
		return "", err
	}
	defer w.unlock()
	if w.checkout == nil {
		return "", nil
	}
	branch := w.checkout.Where().Branch
	if kept, err = w.checkout.Release(ctx, into); err != nil {
		return kept, err
	}
	failpoint.Hit(failpoint.CheckoutLeft)
	err = w.ws.Close()
	w.checkout, w.ws = nil, nil
	return kept, errors.Join(err, w.leftAs(ctx, branch))
}

// Vacate gives back the checkout of a task that has ended, and says where its work is that did not come onto the mission's
// branch, "" if there is none.
func (m *Checkouts) Vacate(ctx context.Context, t centurion.Task) string {
	if t.Sub != nil || t.Session == "" {
		return ""
	}
	if !m.Isolated() {
		if err := m.sealTrees(ctx, t.ID, t.Landed, t.Files); err != nil {
			return "what it changed cannot be taken back: " + err.Error()
		}
		return ""
	}
	w := m.PlaceOf(t.Session, t.ID)
	kept, err := w.end(ctx)
	if err != nil {
		w.shut() // who looks for it finds it
	}
	m.mu.Lock()
	if m.places[t.Session] == w {
		delete(m.places, t.Session)
	}
	m.mu.Unlock()
	if err != nil { // it stays recorded, and nothing of it is lost
		return "its checkout could not be given back: " + err.Error()
	}
	return m.leftover(ctx, t.ID, kept)
}

// leftover says what of a task's work was not merged, and where it is; "" if there is nothing.
func (m *Checkouts) leftover(ctx context.Context, task, kept string) string {
	var notes []string
	if kept != "" {
		notes = append(notes, "what it changed and what was not merged stands on the branch "+kept)
	}
	if t, err := m.st.Store.Task(ctx, task); err == nil { // it could be read when its checkout was given back
		for _, a := range t.Aside {
			notes = append(notes, a.String())
		}
	}
	return strings.Join(notes, "; ")
}

// end gives the checkout back into the mission's branch, also one that nobody has opened since a restart.
func (w *Workplace) end(ctx context.Context) (kept string, err error) {
	at, err := w.recorded(ctx)
	if err != nil || at == nil {
		return "", err
	}
	if err := w.reopen(ctx); err != nil {
		return "", err
	}
	tip, err := w.m.Tip(ctx)
	if err != nil {
		return "", err
	}
	return w.close(ctx, tip)
}

// Leave gives back what a mission that stops has of the repository. What its tasks and its Commander have written
// stays where it is, unless the mission is over.
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
			_, _ = w.end(ctx) // what could not be given back stays recorded
		}
		w.shut()
	}
	_ = m.closeView(ctx) // likewise; a view holds nobody's work
	m.SweepBranches(ctx)
}

// shut closes the files of a checkout that stays. Nothing works in it any more.
func (w *Workplace) shut() {
	w.turn <- struct{}{}
	defer w.unlock()
	if w.ws != nil {
		_ = w.ws.Close() // it was only read through
		w.m.project.park(w.checkout)
		w.checkout, w.ws = nil, nil
	}
}

// CatchUp brings the conversation's checkout to the tip of the mission's branch, if all of its work is there: what others have
// done meanwhile is seen.
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
		return err // it has work that is not merged yet
	}
	err = checkout.Move(ctx, tip)
	if centurion.KindOf(err) == centurion.KindConflict {
		return nil // it has work that is not committed yet
	}
	if err != nil {
		return err
	}
	return s.KeepPlace(ctx)
}
