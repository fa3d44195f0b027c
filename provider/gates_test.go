package provider

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// ORCH-82, TRIAL R6: fifty sessions that a gate held back, and those that come meanwhile, go so that in no second more than a
// tenth of them goes, also when the gate was closed again while they waited; then they go faster and at last freely.
func TestGateLetsNoHerdGo(t *testing.T) {
	for name, again := range map[string]time.Duration{"closed once": 0, "closed again while they go": 25 * time.Second, "closed longer before it opens": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const sessions = 50
				var g Gate
				start := time.Now()
				open := start.Add(20 * time.Second)
				g.Close(open)
				if again > 0 {
					time.AfterFunc(again, func() { open = start.Add(40 * time.Second); g.Close(open) })
				}
				var mu sync.Mutex
				var gone []time.Time
				var wg sync.WaitGroup
				for i := range sessions {
					wg.Go(func() {
						time.Sleep(time.Duration(i) * 100 * time.Millisecond)
						for range 2 { // it asks, and asks again at once
							if err := g.Wait(t.Context()); err != nil {
								t.Error(err)
							}
							mu.Lock()
							gone = append(gone, time.Now())
							mu.Unlock()
						}
					})
				}
				wg.Wait()
				slices.SortFunc(gone, time.Time.Compare)
				for i, at := range gone {
					n := 0
					for _, other := range gone[i:] {
						if other.Before(at.Add(time.Second)) {
							n++
						}
					}
					if at.Before(open.Add(steady)) && n > sessions/10 && !at.Before(open) {
						t.Errorf("%d go within a second of %s", n, at.Sub(start))
					}
					closed := again > 0 && at.After(start.Add(again)) && at.Before(open)
					if at.Before(start.Add(20*time.Second)) || closed {
						t.Errorf("one goes after %s, while the gate is closed", at.Sub(start))
					}
				}
				if took := gone[len(gone)-1].Sub(open); took > 30*time.Second || len(gone) != 2*sessions {
					t.Errorf("%d of %d have gone after %s", len(gone), 2*sessions, took)
				}
				if g.Closed() != 0 {
					t.Error("the open gate is told as closed")
				}
				time.Sleep(2 * time.Minute)
				for range 100 { // long after nobody is held back
					if was := time.Now(); g.Wait(t.Context()) != nil || time.Since(was) > 0 {
						t.Fatal("the gate still counts")
					}
				}
			})
		})
	}
}
