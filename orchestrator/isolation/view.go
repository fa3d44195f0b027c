package isolation

import (
	"context"
	"errors"
	"sync"
	"time"

	"centurion/workspace"
	"centurion/worktree"
)

// viewPatience is how long a reader waits for others to be done, so that the view can be moved, before it reads what
// stands there.
const viewPatience = 2 * time.Second

// view is the checkout of the mission's branch that all share who only read. It is made when somebody first reads, and is
// moved while nobody reads.
type view struct {
	mu       sync.Mutex // protects what follows
	want     string     // the commit that should be seen; "" until it is known
	at       string     // the commit that is seen
	readers  int
	moving   bool
	checkout *worktree.Checkout
	ws       *workspace.Workspace
	changed  chan struct{} // closed at the next change; nil while nobody waits
}

// to says which commit is to be seen from now on.
func (v *view) to(commit string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.want = commit
}

// tell wakes those who wait. v.mu is held.
func (v *view) tell() {
	if v.changed != nil {
		close(v.changed)
		v.changed = nil
	}
}

// enterView returns the mission's files as they stand on its branch. They stay as they are until leave is called.
func (m *Checkouts) enterView(ctx context.Context) (ws *workspace.Workspace, leave func(), err error) {
	v := &m.Ground.view
	tip, err := m.Tip(ctx)
	if err != nil {
		return nil, nil, err
	}
	patience := time.NewTimer(viewPatience)
	defer patience.Stop()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.want = tip
	for late := false; v.checkout == nil || v.at != v.want && !late; {
		if !v.moving && v.readers == 0 {
			if err := m.moveView(ctx, v); err != nil {
				return nil, nil, err
			}
			continue
		}
		if v.changed == nil {
			v.changed = make(chan struct{})
		}
		changed := v.changed
		v.mu.Unlock()
		select {
		case <-changed:
		case <-patience.C:
			late = true
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		v.mu.Lock()
		if err != nil {
			return nil, nil, err
		}
		late = late && !v.moving
	}
	v.readers++
	return v.ws, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.readers--
		v.tell()
	}, nil
}

// moveView brings the view to the commit that is wanted. v.mu is held, and given back meanwhile.
func (m *Checkouts) moveView(ctx context.Context, v *view) error {
	want, checkout, ws := v.want, v.checkout, v.ws
	v.moving = true
	v.mu.Unlock()
	err := func() (err error) {
		if checkout != nil {
			return checkout.Clean(ctx, want)
		}
		if checkout, err = m.Ground.Repo.Take(ctx, worktree.Want{Commit: want}); err != nil {
			return err
		}
		if ws, err = m.project.ws.Copy(checkout.Where().Dir); err != nil {
			_, rerr := checkout.Release(ctx, want)
			checkout = nil
			return errors.Join(err, rerr)
		}
		return nil
	}()
	v.mu.Lock()
	v.moving = false
	if err == nil {
		v.at = want
	} else {
		v.at = "" // it may be half moved
	}
	v.checkout, v.ws = checkout, ws
	v.tell()
	return err
}

// closeView gives the view back, when nothing of the mission runs any more.
func (m *Checkouts) closeView(ctx context.Context) error {
	if m.Ground == nil {
		return nil
	}
	v := &m.Ground.view
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.checkout == nil {
		return nil
	}
	err := v.ws.Close()
	_, rerr := v.checkout.Release(ctx, v.want)
	v.checkout, v.ws = nil, nil
	return errors.Join(err, rerr)
}
