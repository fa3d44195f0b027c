package main

import (
	"context"
	"path/filepath"
	"strconv"
	"time"

	"centurion/workspace/todotest"
)

const (
	planGoal  = 10_000           // interleavings
	planQuick = 25 * time.Second // after which the quick trial stops short of them
	planRound = 500              // edits in one go
)

// r17 lets an editor and fifty agents edit one plan, in this process: what a program under attack would do is call the
// same package. Every other round the agents share two openings of the project, as two processes would.
func r17(ctx context.Context, t *T) {
	var agents, person, crossed, stale, reads, torn, lost int
	begun := time.Now()
	for n := 0; crossed < planGoal && ctx.Err() == nil; n++ {
		if !t.Full && time.Since(begun) > planQuick {
			break
		}
		seed := t.Rand.Uint64()
		r, err := todotest.Attack(ctx, todotest.Options{Dir: filepath.Join(t.Dir, strconv.Itoa(n)), Edits: planRound, Round: planRound,
			Openings: 1 + n%2, Think: 10 * time.Millisecond, Pause: 2 * time.Millisecond, Seed: seed})
		agents, person, crossed = agents+r.AgentEdits, person+r.PersonEdits, crossed+r.Interleavings
		stale, reads, torn, lost = stale+r.Stale, reads+r.Reads, torn+r.Torn, lost+len(r.Lost)
		for _, what := range r.Lost {
			t.Failf("round %d with seed %d: lost: %s", n, seed, what)
		}
		if r.Torn > 0 {
			t.Failf("round %d with seed %d: %d reads saw a torn plan while nobody was saving it", n, seed, r.Torn)
		}
		if err != nil {
			t.Failf("round %d with seed %d: %v", n, seed, err)
			break
		}
	}
	t.Figure("interleavings", crossed)
	t.Figure("edits of agents", agents)
	t.Figure("saves of a person", person)
	t.Figure("of them stale", stale)
	t.Figure("lost", lost)
	t.Figure("reads", reads)
	t.Figure("torn", torn)
	if crossed == 0 || stale == 0 {
		t.Failf("nothing came in between, so that this proves nothing")
	}
}
