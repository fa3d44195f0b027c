package isolation

import (
	"context"

	"centurion"
	"centurion/worktree"
)

// Ancestors returns under which names those hold files that wait for a task: the one that delegated it, and so on upwards. Their files are
// the task's, too: it does a part of what they do.
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

// Seat is where a conversation works, and under which name.
type Seat struct {
	Where    *Workplace // nil in a mission that is not isolated
	ownPlace bool       // it is the conversation's own, and not its parent's
	Holder   string     // under which name what it writes is held
	HoldsFor string     // with which task that is recorded, "" for the Commander
	Above    []string   // under which names those hold files that wait for it
}

// Seat finds for whom a session works, and where: a sub-agent works for its parent and in its place.
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

// Checkout returns where the conversation writes: nil before its first write, for a sub-agent, whose parent's it is, and
// in a mission that is not isolated.
func (s *Seat) Checkout() *worktree.Checkout {
	if s.Where == nil || !s.ownPlace {
		return nil
	}
	s.Where.turn <- struct{}{}
	defer s.Where.unlock()
	return s.Where.checkout
}

// KeepPlace records where the conversation's checkout stands, after it was moved.
func (s *Seat) KeepPlace(ctx context.Context) error {
	checkout := s.Checkout()
	if checkout == nil {
		return nil
	}
	at := checkout.Where()
	return s.Where.Record(ctx, &at)
}
