package isolation

import (
	"context"

	"centurion"
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
		above = append(above, up.Name())
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
	s := Seat{HoldsFor: task.ID, Holder: task.Name()}
	var err error
	if s.Above, err = m.Ancestors(ctx, task.ID); err != nil || !m.Isolated() {
		return s, err
	}
	s.Where, s.ownPlace = m.PlaceOf(session, task.ID), own
	return s, s.Where.reopen(ctx)
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
