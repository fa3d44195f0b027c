package slots

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"centurion"
	"centurion/guard"
)

// ORCH-132, ORCH-136: a lane that is made smaller ends nothing, lets nobody in until fewer are left, and loses nobody; made
// wider it wakes who waits.
func TestLaneIsResized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane(3)
		var g guard.Group
		var mu sync.Mutex
		running := 0
		leave := make(chan struct{})
		for i := range 6 {
			g.Go(fmt.Sprint(i), func() error {
				p := l.join()
				if err := p.admit(t.Context()); err != nil {
					return err
				}
				p.Leave()
				mu.Lock()
				running++
				mu.Unlock()
				<-leave
				mu.Lock()
				running--
				mu.Unlock()
				l.free()
				return nil
			})
		}
		now := func(what string, want int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			equal(t, what, running, want)
		}
		now("at first", 3)
		l.resize(1)
		now("smaller", 3)
		leave <- struct{}{}
		now("one has left", 2)
		leave <- struct{}{}
		now("two have left", 1)
		leave <- struct{}{}
		now("three have left, the fourth has come", 1)
		l.resize(2)
		now("wider", 2)
		l.resize(0)
		l.resize(1)
		leave <- struct{}{}
		now("smaller and wider again", 1)
		close(leave)
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		if !l.right.TryAcquire(1) || l.right.TryAcquire(1) || l.owed != 0 {
			t.Errorf("in the end not exactly one is free; %d are owed", l.owed)
		}
	})
}

// ORCH-136: who is let in at the moment in which the lane is made smaller waits again, and what comes back to a lane that has too many
// in use is nobody's.
func TestLaneIsMadeSmallerMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane(2)
		for range 2 {
			if err := l.acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		in := false
		var g guard.Group
		g.Go("waiter", func() error {
			defer func() { in = true }()
			return l.acquire(t.Context())
		})
		synctest.Wait()
		l.free() // it is let in, and has not noticed
		l.resize(1)
		synctest.Wait()
		equal(t, "let in", in, false)
		l.resize(0)
		l.free()
		equal(t, "full", l.full(), true)
		synctest.Wait()
		equal(t, "let in when one has come back", in, false)
		l.resize(1)
		if err := g.Wait(); err != nil || !l.full() || l.owed != 0 {
			t.Errorf("%v; %d owed", err, l.owed)
		}
	})
}

// ORCH-131, ORCH-132, ORCH-136: whatever is launched, given back, given up, taken to another model, raised and lowered: never
// more run than allowed once a lowering has settled, nobody is lost, and nothing waits for ever.
func TestLanesUnderEverything(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.SliceOfN(rapid.IntRange(0, 1<<20), 30, 60).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			shared := New(6, Caps{Providers: map[string]int{"p": 3, "q": 2}, Models: map[string]int{"p/m": 2}})
			s := shared.Pool(4, 3)
			lanes := map[*lane]string{shared.host.lane: "host", s.all: "all", s.agent("worker"): "worker", s.agent("planner"): "planner",
				shared.providers["p"]: "p", shared.providers["q"]: "q", shared.models["p/m"]: "p/m"}
			var mu sync.Mutex
			in := map[*lane]int{}
			var g guard.Group
			ended := 0
			move := func(x *Slot, by int) {
				x.mu.Lock()
				held := x.held
				x.mu.Unlock()
				mu.Lock()
				defer mu.Unlock()
				for _, l := range held {
					in[l] += by
				}
			}
			work := func(n int) error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+n%7)*time.Second)
				defer cancel()
				defer func() {
					mu.Lock()
					ended++
					mu.Unlock()
				}()
				agent := []string{"worker", "planner"}[n%2]
				model := func(n int) (centurion.ModelRef, error) {
					return centurion.ModelRef{Provider: []string{"p", "q", "r"}[n%3], ID: []string{"m", "n"}[n/3%2]}, nil
				}
				x, err := s.Launch(ctx, s.Join(agent), func(context.Context) (centurion.ModelRef, error) { return model(n / 7) })
				if err != nil {
					return nil // given up, and that is all
				}
				defer x.Release()
				for i := range n % 4 {
					move(x, 1)
					time.Sleep(time.Duration(1+n%5) * 100 * time.Millisecond)
					move(x, -1)
					if i%2 == 0 {
						x.Release()
						x.Release()
					}
					to, _ := model(n / (i + 2))
					x.Move(to)
					if x.Acquire(ctx) != nil {
						return nil
					}
				}
				return nil
			}
			settled := map[*lane]bool{}
			for i, n := range seed {
				g.Go(fmt.Sprint(i), func() error { return work(n) })
				if n%3 == 0 {
					for l := range lanes {
						if lanes[l][0]%5 == byte(n%5) {
							l.resize(1 + n/5%5)
							settled[l] = false
						}
					}
				}
				time.Sleep(50 * time.Millisecond)
				synctest.Wait()
				mu.Lock()
				for l, name := range lanes {
					if in[l] < 0 {
						t.Errorf("%s: %d run", name, in[l])
					}
					if in[l] <= l.size {
						settled[l] = true
					} else if settled[l] {
						t.Errorf("%s: %d run of %d", name, in[l], l.size)
					}
				}
				mu.Unlock()
			}
			if err := g.Wait(); err != nil { // a deadlock ends the bubble
				t.Error(err)
			}
			equal(t, "ended", ended, len(seed))
			for l, name := range lanes {
				if !l.right.TryAcquire(int64(l.size)) || l.right.TryAcquire(1) || l.owed != 0 || len(l.line.places) != 0 {
					t.Errorf("%s: in the end not exactly %d are free, or %d are owed, or %d wait", name, l.size, l.owed, len(l.line.places))
				}
			}
		})
	})
}

// A lane that is raised again before anybody has given back what it took away is as full as before: nothing is due, and nothing free.
func TestLaneIsRaisedAgain(t *testing.T) {
	l := newLane(2)
	for range 2 {
		if err := l.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	l.resize(1)
	if !l.full() || !shrunk([]*lane{l}) {
		t.Error("a lane that was made smaller owes nothing")
	}
	l.resize(2)
	if !l.full() || shrunk([]*lane{l}) {
		t.Errorf("raised again it is full: %v, and owes: %v", l.full(), shrunk([]*lane{l}))
	}
	if l.free(); l.full() {
		t.Error("what was given back is not free")
	}
}
