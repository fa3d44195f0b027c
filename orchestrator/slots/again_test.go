package slots

import (
	"context"
	"testing"
	"testing/synctest"

	"centurion"
	"centurion/guard"
)

// launched is the slot of a session of an agent for which there is room.
func launched(t *testing.T, s *Pool, agent string) *Slot {
	t.Helper()
	x, err := s.Launch(t.Context(), s.Join(agent), noModel)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Of several calls that take a slot again in a full lane one waits for the lane and the others for that, or for their own end.
func TestSlotIsTakenOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(maxLane, Caps{}).Pool(1, 1)
		x := launched(t, s, "worker")
		x.Release()
		other := launched(t, s, "worker")
		var g guard.Group
		early := 0
		for range 3 {
			g.Go("call", func() error {
				err := x.Acquire(t.Context())
				if !x.holds() {
					early++
				}
				return err
			})
		}
		synctest.Wait()
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(centurion.ErrShutdown)
		if err := x.Acquire(ended); err != error(centurion.ErrShutdown) {
			t.Errorf("behind others, when its context has ended: %v", err)
		}
		other.Release()
		if err := g.Wait(); err != nil || early != 0 {
			t.Errorf("%v; %d did not wait", err, early)
		}
		x.Release()
		x = launched(t, s, "worker") // nothing is lost
		x.Release()
	})
}

// A launch whose lanes shrank while it waited comes back as a session does: it keeps no place before others, and its own end is an error.
func TestLaunchIntoWhatShrank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := New(2, Caps{})
		s, beside := shared.Pool(3, 3), shared.Pool(1, 1)
		first, second := launched(t, s, "worker"), launched(t, s, "worker")
		ctx, cancel := context.WithCancelCause(t.Context())
		var g guard.Group
		var late *Slot
		var refused error
		g.Go("late", func() error {
			late, refused = s.Launch(ctx, s.Join("worker"), noModel)
			return nil
		})
		synctest.Wait() // it waits for the host
		s.Resize(1, 1)
		first.Release()
		synctest.Wait()
		launched(t, beside, "worker").Release() // its place is not in the way
		cancel(centurion.ErrShutdown)
		if err := g.Wait(); err != nil || late != nil || refused != error(centurion.ErrShutdown) {
			t.Errorf("%v, %v", late, refused)
		}
		second.Release()
		launched(t, s, "worker").Release()
		equal(t, "full in the end", s.Full("worker"), false)
	})
}

// ORCH-136: a lane made smaller takes what is free at once, and what is in use when it comes back, one by one.
func TestLaneTakesWhatIsFree(t *testing.T) {
	l := newLane(3)
	if err := l.acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.resize(1)
	if !l.full() || shrunk([]*lane{l}) {
		t.Errorf("with one in use of one, full is %v, and shrunk %v", l.full(), shrunk([]*lane{l}))
	}
	l.resize(2)
	if err := l.acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.resize(0)
	for _, left := range []bool{true, false} {
		l.free()
		if !l.full() || shrunk([]*lane{l}) != left {
			t.Errorf("full is %v, and shrunk %v, want %v", l.full(), shrunk([]*lane{l}), left)
		}
	}
}

// A process without missions lets nobody in, and a host without a process is as it was.
func TestProcessOfNobody(t *testing.T) {
	process := NewProcess()
	s := New(2, Caps{}).Within(process)
	p := s.Pool(1, 1)
	equal(t, "full before a mission", p.Full("worker"), true)
	s.Enter(p)
	equal(t, "full with one", p.Full("worker"), false)
	s.Leave(p)
	equal(t, "width in the end", process.all.width(), 0)
	equal(t, "full without a process", New(2, Caps{}).Within(nil).Pool(1, 1).Full("worker"), false)
}
