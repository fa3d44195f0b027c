package isolation

import (
	"context"
	"errors"
	"sync"
	"time"

	"centurion/workspace"
	"centurion/worktree"
)

// viewPatience limits how long a reader waits for others to finish, so that the view can be updated, before it reads the old state.
const viewPatience = 2 * time.Second

// view is the checkout of the mission's branch shared by all read-only sessions. It is made on first use, and updated only while there
// are no readers.
type view struct {
	mu       sync.Mutex // protects the fields below
	want     string     // the commit to show; "" until known
	at       string     // the commit shown
	readers  int
	moving   bool
	checkout *worktree.Checkout
	ws       *workspace.Workspace
	changed  chan struct{} // closed at the next change; nil without waiters
}

// to sets the commit to show from now on.
func (v *view) to(commit string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.want = commit
}

// tell wakes the waiters. v.mu is held.
func (v *view) tell() {
	if v.changed != nil {
		close(v.changed)
		v.changed = nil
	}
}

// enterView returns the files of the mission's branch. They do not change until leave is called.
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

// moveView updates the view to the wanted commit. v.mu is held, and released meanwhile.
func (m *Checkouts) moveView(ctx context.Context, v *view) error {
	want, checkout, ws := v.want, v.checkout, v.ws
	v.moving = true
	v.mu.Unlock()
	err := func() (err error) {
		if checkout == nil {
			checkout, err = m.Ground.Repo.Take(ctx, worktree.Want{Commit: want})
		} else {
			err = errors.Join(ws.Close(), checkout.Clean(ctx, want))
		}
		if err == nil {
			ws, _, err = m.project.files(ctx, checkout)
		}
		if err != nil && checkout != nil {
			_, rerr := checkout.Release(context.WithoutCancel(ctx), want)
			checkout, ws = nil, nil
			err = errors.Join(err, rerr)
		}
		return err
	}()
	v.mu.Lock()
	v.moving = false
	if err == nil {
		v.at = want
	} else {
		v.at = "" // the update may be incomplete
	}
	v.checkout, v.ws = checkout, ws
	v.tell()
	return err
}

// closeView releases the view, when nothing of the mission runs any more.
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
