package trial

import (
	"context"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"centurion/workspace/todotest"
)

const (
	planGoal   = 10_000 // interleavings
	planRound  = 250    // edits of one plan, which grows with each
	planAtOnce = 6      // plans: most of the time the agents wait for a person's editor to finish
)

// r17 lets an editor and fifty agents edit one plan, in this process: an attacked program would call the same package. Every other
// round the agents share two openings of the project, like two processes. A save that the machine stalls for longer than edits wait
// cannot be distinguished from a finished one: a round that loses an edit because of that is reported, does not count, and is repeated.
func r17(ctx context.Context, t *T) {
	var mu sync.Mutex
	var sum todotest.Report
	lost, lostInStalled, rounds := 0, 0, 0
	enough := func() (n int, seed uint64, enough bool) {
		mu.Lock()
		defer mu.Unlock()
		rounds++
		return rounds, t.Rand.Uint64(), sum.Interleavings >= planGoal
	}
	t.InParallel(planAtOnce, planAtOnce, func(int) {
		for ctx.Err() == nil {
			n, seed, over := enough()
			if over {
				return
			}
			r, err := todotest.Attack(ctx, todotest.Options{Dir: filepath.Join(t.Dir, strconv.Itoa(n)), Edits: planRound, Round: planRound,
				Openings: 1 + n%2, Think: 10 * time.Millisecond, Pause: 2 * time.Millisecond, Seed: seed})
			if len(r.Lost) > 0 && r.Stalled > 0 { // a stalled save cannot be distinguished from a finished one
				mu.Lock()
				sum.Stalled, lostInStalled = sum.Stalled+r.Stalled, lostInStalled+len(r.Lost)
				mu.Unlock()
				continue
			}
			for _, what := range r.Lost {
				t.Failf("round %d with seed %d: lost: %s", n, seed, what)
			}
			if r.Torn > 0 {
				t.Failf("round %d with seed %d: %d reads saw a torn plan while nobody was saving it", n, seed, r.Torn)
			}
			if err != nil {
				t.Fatalf("round %d with seed %d: %v", n, seed, err)
			}
			mu.Lock()
			lost += len(r.Lost)
			sum.AgentEdits, sum.PersonEdits, sum.Interleavings = sum.AgentEdits+r.AgentEdits, sum.PersonEdits+r.PersonEdits, sum.Interleavings+r.Interleavings
			sum.Stale, sum.Stalled, sum.Reads, sum.Torn = sum.Stale+r.Stale, sum.Stalled+r.Stalled, sum.Reads+r.Reads, sum.Torn+r.Torn
			mu.Unlock()
		}
	})
	t.Figure("interleavings", sum.Interleavings)
	t.Figure("edits of agents", sum.AgentEdits)
	t.Figure("saves of a person", sum.PersonEdits)
	t.Figure("of them stale", sum.Stale)
	t.Figure("of them stalled", sum.Stalled)
	t.Figure("lost", lost)
	t.Figure("lost in rounds with such a save, which do not count", lostInStalled)
	t.Figure("reads", sum.Reads)
	t.Figure("torn", sum.Torn)
	if ctx.Err() == nil && (sum.Interleavings < planGoal || sum.Stale == 0) {
		t.Failf("too little came in between, so that this proves nothing")
	}
}
