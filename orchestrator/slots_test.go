package orchestrator

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"centurion"
	"centurion/guard"
	"centurion/provider/scripted"
)

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

// ORCH-131, ORCH-132: first come, first served; a freed slot goes to who waits longest.
func TestSlotsAreFirstInFirstOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(3, 2, newLane(maxLane), newKeyed(Concurrency{}), nil)
		var g guard.Group
		var count gauge
		for i := range 12 {
			name := string(rune('a' + i))
			p := s.join("worker")
			if i == 5 { // who does not want it any more is passed over
				s.leave("worker", p)
				s.leave("worker", p)
				continue
			}
			g.Go(name, func() error {
				x, err := s.launch(t.Context(), "worker", p, noModel)
				if err != nil {
					return err
				}
				defer x.release()
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
		s := newSlots(1, 1, newLane(maxLane), newKeyed(Concurrency{}), nil)
		var g guard.Group
		var count gauge
		old, err := s.launch(t.Context(), "worker", s.join("worker"), noModel)
		if err != nil {
			t.Fatal(err)
		}
		old.release()
		holder, err := s.launch(t.Context(), "worker", s.join("worker"), noModel)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"1", "2", "3"} {
			g.Go(name, func() error {
				x, err := s.launch(t.Context(), "worker", s.join("worker"), noModel)
				if err != nil {
					return err
				}
				count.in(name)
				time.Sleep(time.Second)
				x.release()
				return nil
			})
			synctest.Wait()
		}
		g.Go("old", func() error {
			if err := old.back(t.Context()); err != nil {
				return err
			}
			count.in("old")
			time.Sleep(time.Second)
			old.release()
			return nil
		})
		synctest.Wait()
		holder.release()
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		equal(t, "order", strings.Join(count.order, " "), "1 old 2 3")
	})
}

// A call that comes back while another of the same session leaves takes nothing for it.
func TestSlotsOfCallsThatCross(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, 1, newLane(maxLane), newKeyed(Concurrency{}), nil)
		x, err := s.launch(t.Context(), "worker", s.join("worker"), noModel)
		if err != nil {
			t.Fatal(err)
		}
		x.leave()
		other, err := s.launch(t.Context(), "worker", s.join("worker"), noModel)
		if err != nil {
			t.Fatal(err)
		}
		var g guard.Group
		g.Go("the first call", func() error {
			_, err := x.enter(t.Context())
			return err
		})
		synctest.Wait()
		x.leave() // the second call
		other.release()
		synctest.Wait()
		if x.holds() {
			t.Error("the slot is held while a call waits")
		}
		if last, err := x.enter(t.Context()); !last || err != nil || !x.holds() {
			t.Errorf("after the second call: %v, %v", last, err)
		}
		x.release()
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// ORCH-40, ORCH-132: given back once however often it is said, never more than there are, also when waits are given up.
func TestSlotsNeverLeakOrDouble(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const all, per = 4, 3
		s := newSlots(all, per, newLane(maxLane), newKeyed(Concurrency{}), nil)
		held := map[*slot]string{}
		var known []*slot
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
				x, err := s.launch(ctx, agent, s.join(agent), noModel)
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
					x.release()
					x.release()
					delete(held, x)
				}
			case 2:
				if i := slices.IndexFunc(known, func(x *slot) bool { return x.agent == s.agent(agent) && held[x] == "" }); i >= 0 {
					if err := known[i].back(ctx); room != (err == nil) {
						rt.Fatalf("back with room %v: %v", room, err)
					}
					if room {
						held[known[i]] = agent
					}
				}
			case 3: // two calls leave and enter again
				for x := range held {
					x.leave()
					x.leave()
					if last, err := x.enter(ctx); last || err != nil {
						rt.Fatalf("the first of two: %v, %v", last, err)
					}
					if x.holds() {
						rt.Fatal("held while a call waits")
					}
					if last, err := x.enter(t.Context()); !last || err != nil || !x.holds() {
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

// ORCH-12, ORCH-32, ORCH-136, ORCH-137, O2: as many at once as there are slots, the rest waits its turn and fails by
// nothing; the parent is told every result.
func TestManyTasks(t *testing.T) {
	for name, test := range map[string]struct {
		tasks, perAgent, peak int
		took                  time.Duration
	}{
		"60 with 50 slots":      {60, 50, 50, 2 * time.Minute},
		"one after the other":   {12, 1, 1, 12 * time.Minute},
		"25 with 10 an agent":   {25, 0, 10, 3 * time.Minute},
		"more an agent than 50": {52, 60, 50, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			var count gauge
			bubble(t, map[string]script{
				"commander": steps(many(test.tasks), say("I wait")),
				"worker": func(r scripted.Request) scripted.Answer {
					count.in(strings.TrimSpace(r.First()[strings.Index(r.First(), "piece")+5:]))
					return after(time.Minute, say("made"))
				},
			}, func(r *rig) {
				r.cfg.PerAgent = test.perAgent
				r.restart()
				began := time.Now()
				m := r.mission(centurion.MissionOptions{})
				r.is(m, centurion.MissionCompleted, "")
				equal(t, "took", time.Since(began).Round(time.Second), test.took)
				if p := r.model.Peak(); p != test.peak && p != test.peak+1 { // and the commander, who holds no slot
					t.Errorf("%d requests at once", p)
				}
				equal(t, "peak", atOnce(r.tasks(m.ID)), test.peak)
				for _, task := range r.tasks(m.ID) {
					equal(t, "status", task.Status, centurion.TaskCompleted)
				}
				// In the order of their launch, wave by wave.
				var started []string
				for _, e := range r.events(m.ID, centurion.EventTaskStarted) {
					started = append(started, e.Task)
				}
				for i, task := range r.tasks(m.ID) {
					if at := slices.Index(started, task.ID); at/test.peak != i/test.peak {
						t.Errorf("task %d was started as number %d", i, at)
					}
				}
				equal(t, "answered", len(count.order), test.tasks)
			})
		})
	}
}

// atOnce returns how many of the tasks ran at the same time at most.
func atOnce(tasks []centurion.Task) int {
	peak := 0
	for _, at := range tasks {
		n := 0
		for _, task := range tasks {
			if !task.Started.After(at.Started.Time) && task.Ended.After(at.Started.Time) {
				n++
			}
		}
		peak = max(peak, n)
	}
	return peak
}

// O2: a model that asks for more and more is stopped by its budget, with at most 50 at once.
func TestFanOutBomb(t *testing.T) {
	bubble(t, map[string]script{
		"commander": func(scripted.Request) scripted.Answer { return many(20) },
		"worker":    func(scripted.Request) scripted.Answer { return after(time.Second, say("made")) },
	}, func(r *rig) {
		r.cfg.PerAgent = 50
		r.restart()
		m := r.mission(centurion.MissionOptions{MaxRounds: 10})
		r.is(m, centurion.MissionPaused, "the limit of 10 requests is reached")
		if m.Rounds < 10 || m.Rounds > 10+DefaultWorkers {
			t.Errorf("%d requests", m.Rounds)
		}
		if p := r.model.Peak(); p > DefaultWorkers+1 {
			t.Errorf("%d at once", p)
		}
	})
}
