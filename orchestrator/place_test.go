package orchestrator

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
)

// ORCH-131: whoever came first is first in every lane, also where the narrow one comes after a wide one and everybody stands
// there at the same moment.
func TestFirstComeThroughAllLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		s := newSlots(1, n, newLane(maxLane), newKeyed(Concurrency{Providers: map[string]int{"p": n}}), nil)
		var places []*place
		for range n {
			places = append(places, s.join("worker"))
		}
		var g guard.Group
		var mu sync.Mutex
		var order []int
		for i := n - 1; i >= 0; i-- {
			g.Go(fmt.Sprint(i), func() error {
				x, err := s.launch(t.Context(), "worker", places[i], on("p", "m"))
				if err != nil {
					return err
				}
				defer x.release()
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
		living := r.host.running(m.ID)
		equal(t, "those that wait for a worker's slot", len(living.slots.agent("worker").line.places), 0)
		r.is(l.settled(), centurion.MissionCompleted, "")
	})
}
