package orchestrator

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/slots"
	"centurion/provider/scripted"
)

// ORCH-12, ORCH-32, ORCH-136, ORCH-137, O2, S9, IKI-63, IKI-86: as many at once as there are slots, the rest waits its turn and fails by
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
			var asked atomic.Int64
			bubble(t, map[string]script{
				"commander": steps(many(test.tasks), say("I wait")),
				"worker": func(scripted.Request) scripted.Answer {
					asked.Add(1)
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
				equal(t, "answered", asked.Load(), int64(test.tasks))
			})
		})
	}
}

// A task whose work is being checked holds no slot: the next one begins meanwhile.
func TestCheckHoldsNoSlot(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "  - verify: `build 9m`", "- [ ] T2 Two")), do(work("T1", "x"), work("T2", "y")), say("I wait")),
		"worker":    func(scripted.Request) scripted.Answer { return after(time.Minute, say("made")) },
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{MaxWorkers: 1})
		r.is(m, centurion.MissionCompleted, "")
		if d := r.task(m.ID, "T2").Started.Sub(r.task(m.ID, "T1").Started.Time); d < time.Minute || d > 2*time.Minute {
			t.Errorf("the second began %s after the first", d)
		}
	})
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
		r.is(m, centurion.MissionPaused, "the request limit (10) is reached")
		if m.Rounds < 10 || m.Rounds > 10+DefaultWorkers {
			t.Errorf("%d requests", m.Rounds)
		}
		if p := r.model.Peak(); p > DefaultWorkers+1 {
			t.Errorf("%d at once", p)
		}
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
		r.cfg.Concurrency = slots.Caps{Providers: map[string]int{"b": 2}, Models: map[string]int{"a/2": 3}}
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
		all := r.host.slots.Pool(9, 9)
		r.room("the provider", all, "probe", centurion.ModelRef{Provider: "b", ID: "x"}, 2)
		r.room("the model", all, "probe", centurion.ModelRef{Provider: "a", ID: "2"}, 3)
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
		if err := r.host.Control.Resize(r.ctx, m.ID, 2, 0); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Second)
		now("those that run go on", 6)
		time.Sleep(time.Minute)
		now("lowered", 2)
		if err := r.host.Control.Resize(r.ctx, m.ID, 0, 3); err != nil {
			t.Error(err)
		}
		if err := r.host.Control.Resize(r.ctx, m.ID, 20, 0); err != nil {
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
		if err := r.host.Control.Resize(r.ctx, m.ID, 1, 0); centurion.KindOf(err) != centurion.KindConflict {
			t.Errorf("of a mission that has ended: %v", err)
		}
		r.hostHasRoom(DefaultWorkers)
	})
}

// ORCH-31, ORCH-112, ORCH-116, ORCH-131: a task that ends before it may start gives its place in the line up: whoever stands
// behind it is let in. Here its item was taken out of the plan while no host was there.
func TestPlaceIsGivenUp(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two")), do(work("T1", "first"), work("T2", "second")), say("I wait")),
		"worker":    minutes(3, "made"),
	}, func(r *rig) {
		r.cfg.PerAgent = 1
		r.restart()
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(90 * time.Second)
		l.goAway(byShutdown)
		r.write(todoMD, strings.Replace(r.read(todoMD), "- [ ] T1 One\n", "", 1))
		l = r.live(m.ID)
		time.Sleep(time.Minute)
		equal(t, "the first", r.task(m.ID, "T1").Status, centurion.TaskCancelled)
		equal(t, "the second", r.task(m.ID, "T2").Status, centurion.TaskRunning)
		pool := r.host.running(m.ID).slots
		r.is(l.settled(), centurion.MissionCompleted, "")
		r.room("the mission", pool, "worker", centurion.ModelRef{}, 1)
	})
}
