package orchestrator

import (
	"context"
	"fmt"
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

func noModel(context.Context) (centurion.ModelRef, error) { return centurion.ModelRef{}, nil }

func on(provider, id string) func(context.Context) (centurion.ModelRef, error) {
	return func(context.Context) (centurion.ModelRef, error) {
		return centurion.ModelRef{Provider: provider, ID: id}, nil
	}
}

// ORCH-131, ORCH-136, ORCH-137: each cap holds by its own key, and whoever came first goes first.
func TestCapsByKey(t *testing.T) {
	caps := Concurrency{Providers: map[string]int{"p": 3}, Models: map[string]int{"q/m": 2}, Agents: map[string]int{"planner": 1}}
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
				s := newSlots(9, 4, newLane(maxLane), newKeyed(caps), caps.Agents)
				var g guard.Group
				var count gauge
				var want strings.Builder
				for i := range 12 {
					name := string(rune('a' + i))
					want.WriteString(name)
					p := s.join(test.agent)
					g.Go(name, func() error {
						x, err := s.launch(t.Context(), test.agent, p, on(test.provider, test.model))
						if err != nil {
							return err
						}
						defer x.release()
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
				if err := l.launch(t.Context(), l.line.join()); err != nil {
					return err
				}
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

// ORCH-131, ORCH-132, ORCH-136: whatever is launched, given back, given up, taken to another model, raised and lowered: never
// more run than allowed once a lowering has settled, nobody is lost, and nothing waits for ever.
func TestLanesUnderEverything(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.SliceOfN(rapid.IntRange(0, 1<<20), 30, 60).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			host := newLane(6)
			keyed := newKeyed(Concurrency{Providers: map[string]int{"p": 3, "q": 2}, Models: map[string]int{"p/m": 2}})
			s := newSlots(4, 3, host, keyed, nil)
			lanes := map[*lane]string{host: "host", s.all: "all", s.agent("worker"): "worker", s.agent("planner"): "planner",
				keyed.providers["p"]: "p", keyed.providers["q"]: "q", keyed.models["p/m"]: "p/m"}
			var mu sync.Mutex
			in := map[*lane]int{}
			var g guard.Group
			ended := 0
			move := func(x *slot, by int) {
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
				x, err := s.launch(ctx, agent, s.join(agent), func(context.Context) (centurion.ModelRef, error) { return model(n / 7) })
				if err != nil {
					return nil // given up, and that is all
				}
				defer x.release()
				for i := range n % 4 {
					move(x, 1)
					time.Sleep(time.Duration(1+n%5) * 100 * time.Millisecond)
					move(x, -1)
					if i%2 == 0 {
						x.release()
						x.release()
					}
					to, _ := model(n / (i + 2))
					x.onto(to)
					if x.back(ctx) != nil {
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

// ORCH-131, ORCH-137: the caps of providers and models hold for the sessions of a mission, and a fall-back takes the lanes of
// the new model: two that change places do not wait for each other.
func TestFallbackChangesLanes(t *testing.T) {

	bubble(t, map[string]script{
		"commander": steps(many(8), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			if q.Model == "2" {
				return scripted.Answer{Error: &scripted.Error{Status: 404, Message: "no such model"}, Delay: time.Second}
			}
			return after(time.Minute, say("made"))
		},
	}, func(r *rig) {
		r.cfg.Concurrency = Concurrency{Providers: map[string]int{"b": 2}, Models: map[string]int{"a/2": 3}}
		r.providers(always("b/1"))
		r.with("worker", "a/2")
		began := time.Now()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		for _, task := range r.tasks(m.ID) {
			equal(t, "status", task.Status, centurion.TaskCompleted)
		}
		equal(t, "changes", strings.Count(r.changes(m.ID), "a/2>b/1"), 8)
		equal(t, "took", time.Since(began).Round(10*time.Second), 4*time.Minute) // two at once on b
		for _, l := range []*lane{r.host.keyed.providers["b"], r.host.keyed.models["a/2"]} {
			r.full("a key", l.right, l.size)
		}
	})
}

// ORCH-136: a limit that is lowered while a mission is being worked on ends nothing and holds from then on; the mission keeps
// it. Raised, it lets those in who wait.
func TestResizeOfARunningMission(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(many(12), say("I wait")), "worker": minutes(1, "made")}, func(r *rig) {
		m := r.start(centurion.MissionOptions{MaxWorkers: 6})
		var g guard.Group
		done := r.inBackground(&g, m.ID)
		now := func(what string, want int) {
			t.Helper()
			n := 0
			for _, task := range r.tasks(m.ID) {
				if task.Status == centurion.TaskRunning {
					n++
				}
			}
			equal(t, what, n, want)
		}
		time.Sleep(30 * time.Second)
		now("at first", 6)
		if err := r.host.Resize(r.ctx, m.ID, 2, 0); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Second)
		now("those that run go on", 6)
		time.Sleep(time.Minute)
		now("lowered", 2)
		if err := r.host.Resize(r.ctx, m.ID, 0, 3); err != nil {
			t.Error(err)
		}
		if err := r.host.Resize(r.ctx, m.ID, 20, 0); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		now("raised, with three an agent", 3)
		m = <-done
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		r.is(m, centurion.MissionCompleted, "")
		if m.Options.MaxWorkers != 20 || m.Options.MaxPerAgent != 3 {
			t.Errorf("kept: %+v", m.Options)
		}
		if err := r.host.Resize(r.ctx, m.ID, 1, 0); centurion.KindOf(err) != centurion.KindConflict {
			t.Errorf("of a mission that has ended: %v", err)
		}
		equal(t, "the host's own", r.host.slots.width(), DefaultWorkers)
	})
}
