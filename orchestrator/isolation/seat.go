package isolation

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"

	"centurion"
	"centurion/sandbox"
	"centurion/tools"
	"centurion/workspace"
	"centurion/worktree"
)

// Ancestors returns the holder names of the tasks above one, from its delegator upwards. The task may write their files, since it does
// a part of their work.
func (m *Checkouts) Ancestors(ctx context.Context, task string) (above []string, err error) {
	for task != "" {
		t, err := m.st.Store.Task(ctx, task)
		if err != nil || t.Parent == "" {
			return above, err
		}
		parent, err := m.st.Store.Session(ctx, t.Parent)
		if err != nil {
			return nil, err
		}
		if task = parent.Metadata.Task; task == "" {
			break
		}
		up, err := m.st.Store.Task(ctx, task)
		if err != nil {
			return nil, err
		}
		above = append(above, up.Holder())
	}
	return above, nil
}

// Seat is where a conversation works, and under which name it holds files.
type Seat struct {
	Where    *Workplace // nil unless the mission is isolated
	ownPlace bool       // the place is its own, not its parent's
	Holder   string     // the name that holds its written files
	HoldsFor string     // the task that records them, "" for the Commander
	Above    []string   // holder names of the tasks waiting for this one
}

// Seat finds the seat of a session; a sub-agent works for its parent, in the parent's place.
func (m *Checkouts) Seat(ctx context.Context, session, id string) (Seat, error) {
	task := centurion.Task{ID: id}
	own := true
	for task.ID != "" {
		rec, err := m.st.Store.Task(ctx, task.ID)
		if err != nil {
			return Seat{}, err
		}
		if task = rec; rec.Sub == nil {
			break
		}
		parent, err := m.st.Store.Session(ctx, rec.Parent)
		if err != nil {
			return Seat{}, err
		}
		session, own = parent.ID, false
		task = centurion.Task{ID: parent.Metadata.Task}
	}
	s := Seat{HoldsFor: task.ID, Holder: task.Holder()}
	var err error
	if s.Above, err = m.Ancestors(ctx, task.ID); err != nil || !m.Isolated() {
		return s, err
	}
	s.Where, s.ownPlace = m.PlaceOf(session, task.ID), own
	return s, s.Where.restore(ctx)
}

// Checkout returns the conversation's own checkout. It is nil before the first write, for a sub-agent (it uses its parent's), and
// without isolation.
func (s *Seat) Checkout() *worktree.Checkout {
	if s.Where == nil || !s.ownPlace {
		return nil
	}
	s.Where.turn <- struct{}{}
	defer s.Where.unlock()
	return s.Where.checkout
}

// KeepPlace records the position of the conversation's checkout after a move.
func (s *Seat) KeepPlace(ctx context.Context) error {
	checkout := s.Checkout()
	if checkout == nil {
		return nil
	}
	at := checkout.Where()
	return s.Where.Record(ctx, &at)
}

// Read returns the files for a read-only call. Until leave is called, only the session's own writes change them.
func (w *Workplace) Read(ctx context.Context) (ws *workspace.Workspace, leave func(), err error) {
	own, leave, err := w.use(ctx, false)
	if own != nil || err != nil {
		return own, leave, err
	}
	return w.m.enterView(ctx)
}

// Write returns the session's own files, until leave is called. The first call makes the checkout at the tip of the mission's branch, and records it before
// anything can be written there.
func (w *Workplace) Write(ctx context.Context) (ws *workspace.Workspace, leave func(), err error) {
	return w.use(ctx, true)
}

// WriteOutside is [Workplace.Write] for a process that was started elsewhere: the files are where every program finds them. moved says that
// they were moved there.
func (w *Workplace) WriteOutside(ctx context.Context) (ws *workspace.Workspace, moved bool, leave func(), err error) {
	for {
		if ws, leave, err = w.Write(ctx); err != nil || !ws.Elsewhere() {
			return ws, moved, leave, err
		}
		leave()
		if err := w.Expand(ctx); err != nil {
			return nil, false, nil, err
		}
		moved = true
	}
}

// use returns the session's own files for a call; nil if it has none, unless it shall write.
func (w *Workplace) use(ctx context.Context, write bool) (own *workspace.Workspace, leave func(), err error) {
	if w.uses.Acquire(ctx, 1) != nil {
		return nil, nil, context.Cause(ctx)
	}
	release := sync.OnceFunc(func() { w.uses.Release(1) })
	defer func() {
		if own == nil || err != nil {
			release()
		}
	}()
	if err := w.lock(ctx); err != nil {
		return nil, nil, err
	}
	defer w.unlock()
	if w.ws == nil && write {
		if err := w.begin(ctx); err != nil {
			return nil, nil, err
		}
	}
	own, err = w.own(ctx)
	return own, release, err
}

// Expand gives the session a checkout with all files, at the place that is recorded. It waits for the calls that are under way, and those that
// come meanwhile wait for it.
func (w *Workplace) Expand(ctx context.Context) error {
	if w.uses.Acquire(ctx, manyUses) != nil {
		return context.Cause(ctx)
	}
	defer w.uses.Release(manyUses)
	if err := w.lock(ctx); err != nil {
		return err
	}
	defer w.unlock()
	if w.checkout == nil || !w.checkout.Layered() {
		return nil
	}
	if err := w.checkout.Expand(ctx); err != nil {
		return err
	}
	at := w.checkout.Where()
	return errors.Join(w.ws.Close(), w.enter(ctx, w.checkout), w.Record(ctx, &at))
}

// Crossed looks whether a call could not rename something because the checkout is made of layers. At the second time the session gets one with
// all files, of which its result tells. No call may be under way.
func (w *Workplace) Crossed(ctx context.Context, res tools.Result) (tools.Result, error) {
	if !sandbox.CrossesDevices(res.Output) {
		return res, nil
	}
	if err := w.lock(ctx); err != nil {
		return res, err
	}
	layered := w.checkout != nil && w.checkout.Layered()
	if layered {
		w.crossed++
	}
	again := layered && w.crossed > 1
	w.unlock()
	if !again {
		return res, nil
	}
	if err := w.Expand(ctx); err != nil {
		return res, err
	}
	return Moved(res, w.checkout.Where().Dir), nil
}

// Moved tells with a result that the session's files are in another directory now, with all of them.
func Moved(res tools.Result, dir string) tools.Result {
	res.Output = strings.TrimRight(res.Output, "\n") + "\n\n(Your files are now in " + dir +
		", where programs can rename directories; commands start there. What they ran in the background has ended. Git's index is the host's there: " +
		"use mv instead of git mv, and leave commits to the host.)"
	return res
}

// Expand gives a task a checkout with all files, or the mission's own agent for "".
func (m *Checkouts) Expand(ctx context.Context, task string) error {
	m.mu.Lock()
	var found []*Workplace
	for _, w := range m.places {
		if w.task == task {
			found = append(found, w)
		}
	}
	m.mu.Unlock()
	for _, w := range found {
		if err := w.Expand(ctx); err != nil {
			return err
		}
	}
	return nil
}

// files opens the files of a checkout. They have to be opened again when at changes.
func (p *Project) files(ctx context.Context, c *worktree.Checkout) (ws *workspace.Workspace, at string, err error) {
	at, place, err := c.Files(ctx)
	if err != nil {
		return nil, "", err
	}
	if !c.Layered() {
		ws, err = p.ws.Copy(at)
		return ws, at, err
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		return nil, "", &centurion.Error{Op: "open a workspace", Kind: centurion.KindDisk, Err: err}
	}
	return p.ws.CopyIn(root, place), at, nil
}

// own returns the files of the session's checkout, nil if it has none. turn is held.
func (w *Workplace) own(ctx context.Context) (*workspace.Workspace, error) {
	if w.ws == nil {
		return nil, nil
	}
	at, _, err := w.checkout.Files(ctx)
	if err != nil || at == w.at {
		return w.ws, err
	}
	return w.ws, w.enter(ctx, w.checkout) // its helper has ended; a call may still use the old files, so that these are not closed
}
