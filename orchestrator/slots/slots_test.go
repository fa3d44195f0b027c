package slots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"centurion"
	"centurion/guard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gauge counts how many hold something at the same time.
type gauge struct {
	mu        sync.Mutex
	now, peak int
	order     []string
}

func (g *gauge) in(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now++
	g.peak = max(g.peak, g.now)
	g.order = append(g.order, name)
}

func (g *gauge) out() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now--
}

// Who asks whether there is a slot takes none, and hears of each limit.
func TestFull(t *testing.T) {
	shared := New(3, Caps{Agents: map[string]int{"narrow": 1}})
	one, other := shared.Pool(2, 2), shared.Pool(2, 2)
	model := func(context.Context) (centurion.ModelRef, error) { return centurion.ModelRef{}, nil }
	launch := func(s *Pool, agent string) {
		sl, err := s.Launch(t.Context(), s.Join(agent), model)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sl.Release)
	}
	is := func(s *Pool, agent string, want bool) {
		t.Helper()
		for range 3 {
			if got := s.Full(agent); got != want {
				t.Errorf("%s: full %v, want %v", agent, got, want)
			}
		}
	}
	is(one, "narrow", false)
	launch(one, "narrow")
	is(one, "narrow", true) // the agent's cap
	is(one, "worker", false)
	launch(one, "worker")
	is(one, "worker", true) // the mission's
	is(other, "worker", false)
	launch(other, "worker")
	is(other, "worker", true) // the host's
}

// ORCH-131, ORCH-132: first come, first served; a freed slot goes to who waits longest.
func TestSlotsAreFirstInFirstOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(maxLane, Caps{}).Pool(3, 2)
		var g guard.Group
		var count gauge
		for i := range 12 {
			name := string(rune('a' + i))
			p := s.Join("worker")
			if i == 5 { // who does not want it any more is passed over
				p.Leave()
				p.Leave()
				continue
			}
			g.Go(name, func() error {
				x, err := s.Launch(t.Context(), p, noModel)
				if err != nil {
					return err
				}
				defer x.Release()
				count.in(name)
				defer count.out()
				time.Sleep(time.Second)
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		equal(t, "peak", count.peak, 2)
		equal(t, "order", strings.Join(count.order, ""), "abcdeghijkl")
	})
}

// A session that gave its slot back while it waited goes before the launches behind the first.
func TestSlotsOfThoseWhoComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(maxLane, Caps{}).Pool(1, 1)
		var g guard.Group
		var count gauge
		old, err := s.Launch(t.Context(), s.Join("worker"), noModel)
		if err != nil {
			t.Fatal(err)
		}
		old.Release()
		holder, err := s.Launch(t.Context(), s.Join("worker"), noModel)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"1", "2", "3"} {
			g.Go(name, func() error {
				x, err := s.Launch(t.Context(), s.Join("worker"), noModel)
				if err != nil {
					return err
				}
				count.in(name)
				time.Sleep(time.Second)
				x.Release()
				return nil
			})
			synctest.Wait()
		}
		g.Go("old", func() error {
			if err := old.Acquire(t.Context()); err != nil {
				return err
			}
			count.in("old")
			time.Sleep(time.Second)
			old.Release()
			return nil
		})
		synctest.Wait()
		holder.Release()
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		equal(t, "order", strings.Join(count.order, " "), "1 old 2 3")
	})
}

// A call that comes back while another of the same session leaves takes nothing for it.
func TestSlotsOfCallsThatCross(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(maxLane, Caps{}).Pool(1, 1)
		x, err := s.Launch(t.Context(), s.Join("worker"), noModel)
		if err != nil {
			t.Fatal(err)
		}
		x.Leave()
		other, err := s.Launch(t.Context(), s.Join("worker"), noModel)
		if err != nil {
			t.Fatal(err)
		}
		var g guard.Group
		g.Go("the first call", func() error {
			_, err := x.Enter(t.Context())
			return err
		})
		synctest.Wait()
		x.Leave() // the second call
		other.Release()
		synctest.Wait()
		if x.holds() {
			t.Error("the slot is held while a call waits")
		}
		if last, err := x.Enter(t.Context()); !last || err != nil || !x.holds() {
			t.Errorf("after the second call: %v, %v", last, err)
		}
		x.Release()
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// ORCH-40, ORCH-132, C-8: given back once however often it is said, never more than there are, also when waits are given up.
func TestSlotsNeverLeakOrDouble(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const all, per = 4, 3
		s := New(maxLane, Caps{}).Pool(all, per)
		held := map[*Slot]string{}
		var known []*Slot
		expect := func() (total int, by map[string]int) {
			by = map[string]int{}
			for x := range held {
				total++
				by[held[x]]++
			}
			return total, by
		}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			agent := rapid.SampledFrom([]string{"worker", "planner"}).Draw(rt, "agent")
			total, by := expect()
			room := total < all && by[agent] < per
			ctx := t.Context()
			if !room { // the wait would be for ever
				over, cancel := context.WithCancelCause(ctx)
				cancel(centurion.ErrShutdown)
				ctx = over
			}
			switch rapid.IntRange(0, 4).Draw(rt, "what") {
			case 0:
				x, err := s.Launch(ctx, s.Join(agent), noModel)
				if room != (err == nil) || err != nil && err != error(centurion.ErrShutdown) {
					rt.Fatalf("launch with room %v: %v", room, err)
				}
				if err == nil {
					held[x] = agent
					known = append(known, x)
				}
			case 1:
				if len(known) > 0 {
					x := rapid.SampledFrom(known).Draw(rt, "release")
					x.Release()
					x.Release()
					delete(held, x)
				}
			case 2:
				if i := slices.IndexFunc(known, func(x *Slot) bool { return x.agent == s.agent(agent) && held[x] == "" }); i >= 0 {
					if err := known[i].Acquire(ctx); room != (err == nil) {
						rt.Fatalf("back with room %v: %v", room, err)
					}
					if room {
						held[known[i]] = agent
					}
				}
			case 3: // two calls leave and enter again
				for x := range held {
					x.Leave()
					x.Leave()
					if last, err := x.Enter(ctx); last || err != nil {
						rt.Fatalf("the first of two: %v, %v", last, err)
					}
					if x.holds() {
						rt.Fatal("held while a call waits")
					}
					if last, err := x.Enter(t.Context()); !last || err != nil || !x.holds() {
						rt.Fatalf("the last of two: %v, %v", last, err)
					}
					break
				}
			}
			total, by = expect()
			probe(rt, "all", s.all.right, all, total)
			for name, l := range s.agents {
				probe(rt, name, l.right, per, by[name])
			}
		}
	})
}

// probe asserts that exactly held of n rights are taken.
func probe(t *rapid.T, name string, right interface {
	TryAcquire(int64) bool
	Release(int64)
}, n, held int,
) {
	free := int64(n - held)
	if !right.TryAcquire(free) {
		t.Fatalf("%s: fewer than %d of %d are free", name, free, n)
	}
	if right.TryAcquire(1) {
		t.Fatalf("%s: more than %d of %d are free", name, free, n)
	}
	right.Release(free)
}

func noModel(context.Context) (centurion.ModelRef, error) { return centurion.ModelRef{}, nil }

func on(provider, id string) func(context.Context) (centurion.ModelRef, error) {
	return func(context.Context) (centurion.ModelRef, error) {
		return centurion.ModelRef{Provider: provider, ID: id}, nil
	}
}

// A mission that is resized keeps the caps that agents have of their own.
func TestResizeKeepsCaps(t *testing.T) {
	p := New(10, Caps{Agents: map[string]int{"planner": 1}}).Pool(10, 2)
	planner, worker := p.agent("planner"), p.agent("worker")
	p.Resize(10, 5)
	equal(t, "planners", planner.size, 1)
	equal(t, "workers", worker.size, 5)
	equal(t, "who comes later", p.agent("reviewer").size, 5)
	p.Resize(3, 5)
	equal(t, "all", p.all.size, 3)
	(*Place)(nil).Leave()
}

// The host is as wide as its widest mission while that is being worked on.
func TestHostFitsItsWidestPool(t *testing.T) {
	s := New(10, Caps{})
	wide, narrow := s.Pool(12, 5), s.Pool(3, 5)
	equal(t, "before a pool has entered", s.host.size, 10)
	s.Enter(wide)
	s.Enter(narrow)
	equal(t, "with a wider pool", s.host.size, 12)
	narrow.Resize(20, 5)
	equal(t, "with one that was raised", s.host.size, 20)
	narrow.Resize(4, 5)
	equal(t, "with one that was lowered", s.host.size, 12)
	s.Leave(wide)
	equal(t, "without the wide pool", s.host.size, 10)
	wide.Resize(30, 5)
	equal(t, "when a pool that has left is raised", s.host.size, 10)
}

// Hosts of one process run as many sessions at once as the mission with the most may have, whichever they are of.
func TestProcessHasOneLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		process := NewProcess()
		one, other := New(5, Caps{}).Within(process), New(5, Caps{}).Within(process)
		a, b := one.Pool(1, 1), other.Pool(2, 2)
		one.Enter(a)
		launch := func(p *Pool) *Slot {
			x, err := p.Launch(t.Context(), p.Join("worker"), on("p", "m"))
			if err != nil {
				t.Error(err)
			}
			return x
		}
		first := launch(a)
		equal(t, "another host is full", b.Full("worker"), true)
		other.Enter(b)
		second := launch(b)
		var third *Slot
		var g guard.Group
		g.Go("third", func() error { third = launch(b); return nil })
		synctest.Wait()
		equal(t, "a third of two", third == nil, true)
		first.Release()
		if err := g.Wait(); err != nil || third == nil {
			t.Errorf("it does not run when there is room: %v", err)
		}
		second.Release()
		third.Release()
		other.Leave(b)
		equal(t, "with one mission left", process.all.size, 1)
	})
}

// A session without a slot runs as if it had one.
func TestNoSlot(t *testing.T) {
	var x *Slot
	x.Release()
	x.Leave()
	last, err := x.Enter(t.Context())
	if !last || err != nil || x.Acquire(t.Context()) != nil || x.Move(centurion.ModelRef{}) {
		t.Errorf("%v, %v", last, err)
	}
}

// What is held is not taken twice; another model's lanes are taken instead of the old one's, and only where they differ; nothing is
// held where the model or the wait failed.
func TestSlotIsTakenOnce(t *testing.T) {
	shared := New(2, Caps{Providers: map[string]int{"p": 1, "q": 1}})
	s := shared.Pool(2, 2)
	free := func(when string, host, p, q int64) {
		t.Helper()
		for l, want := range map[*lane]int64{shared.host.lane: host, s.all: host, s.agent("worker"): host, shared.providers["p"]: p, shared.providers["q"]: q} {
			if !l.right.TryAcquire(want) || l.right.TryAcquire(1) {
				t.Errorf("%s: not %d free", when, want)
			}
			l.right.Release(want)
		}
	}
	broken := errors.New("no model")
	if _, err := s.Launch(t.Context(), s.Join("worker"), func(context.Context) (centurion.ModelRef, error) { return centurion.ModelRef{}, broken }); err != broken {
		t.Errorf("without a model: %v", err)
	}
	free("without a model", 2, 1, 1)
	x, err := s.Launch(t.Context(), s.Join("worker"), on("p", "m"))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := x.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	free("launched", 1, 0, 1)
	equal(t, "model", x.Model(), centurion.ModelRef{Provider: "p", ID: "m"})
	equal(t, "released for a model of the same provider", x.Move(centurion.ModelRef{Provider: "p", ID: "n"}), false)
	free("another model", 1, 0, 1)
	equal(t, "released for another provider", x.Move(centurion.ModelRef{Provider: "q", ID: "n"}), true)
	equal(t, "model", x.Model(), centurion.ModelRef{Provider: "q", ID: "n"})
	free("another provider", 2, 1, 1)
	var g guard.Group
	for range 20 {
		g.Go("call", func() error { return x.Acquire(t.Context()) })
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	free("by several calls at once", 1, 1, 0)
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(centurion.ErrShutdown)
	y, err := s.Launch(t.Context(), s.Join("worker"), on("p", "m"))
	if err != nil {
		t.Fatal(err)
	}
	x.Leave()
	x.Leave()
	shared.host.resize(1)
	if last, err := x.Enter(ended); last || err != nil {
		t.Errorf("the first of two: %v, %v", last, err)
	}
	if last, err := x.Enter(ended); !last || err != error(centurion.ErrShutdown) {
		t.Errorf("when its context has ended: %v, %v", last, err)
	}
	y.Release()
	shared.host.resize(2)
	free("in the end", 2, 1, 1)
}

// ORCH-131, ORCH-136, ORCH-137: each cap holds by its own key, and whoever came first goes first.
func TestCapsByKey(t *testing.T) {
	caps := Caps{Providers: map[string]int{"p": 3}, Models: map[string]int{"q/m": 2}, Agents: map[string]int{"planner": 1}}
	for name, test := range map[string]struct {
		agent, provider, model string
		peak                   int
	}{
		"the provider's": {"worker", "p", "x", 3},
		"the model's":    {"worker", "q", "m", 2},
		"the agent's":    {"planner", "z", "x", 1},
		"the common one": {"worker", "z", "x", 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(maxLane, caps).Pool(9, 4)
				var g guard.Group
				var count gauge
				var want strings.Builder
				for i := range 12 {
					name := string(rune('a' + i))
					want.WriteString(name)
					p := s.Join(test.agent)
					g.Go(name, func() error {
						x, err := s.Launch(t.Context(), p, on(test.provider, test.model))
						if err != nil {
							return err
						}
						defer x.Release()
						count.in(name)
						defer count.out()
						time.Sleep(time.Second)
						return nil
					})
					synctest.Wait()
				}
				if err := g.Wait(); err != nil {
					t.Error(err)
				}
				equal(t, "peak", count.peak, test.peak)
				for wave := range slices.Chunk(count.order, test.peak) { // who is let in at the same moment may run in any order
					slices.Sort(wave)
				}
				equal(t, "order", strings.Join(count.order, ""), want.String())
			})
		})
	}
}

// ORCH-131: whoever came first is first in every lane, also where the narrow one comes after a wide one and everybody stands
// there at the same moment.
func TestFirstComeThroughAllLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		s := New(maxLane, Caps{Providers: map[string]int{"p": n}}).Pool(1, n)
		var places []*Place
		for range n {
			places = append(places, s.Join("worker"))
		}
		var g guard.Group
		var mu sync.Mutex
		var order []int
		for i := n - 1; i >= 0; i-- {
			g.Go(fmt.Sprint(i), func() error {
				x, err := s.Launch(t.Context(), places[i], on("p", "m"))
				if err != nil {
					return err
				}
				defer x.Release()
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		for at, i := range order {
			if at != i {
				t.Fatalf("number %d was let in as number %d", i, at)
			}
		}
	})
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func (x *Slot) holds() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.held != nil
}
