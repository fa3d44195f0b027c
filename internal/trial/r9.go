package trial

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"centurion/provider/scripted"
)

const (
	r9Idle  = 2 * time.Second // idle_timeout instead of the usual 120 s
	r9Delay = 300 * time.Millisecond
	r9Pause = 10 * time.Second // between two bytes of a slow answer
	r9Off   = time.Second      // how late or early a request may end

	r9AtOnce = 3 // missions; they wait
)

// r9 lets an answer stall after its first piece, and sends another with one byte in ten seconds, over each wire.
func r9(ctx context.Context, t *T) {
	cases := []struct {
		name   string
		answer scripted.Answer
	}{
		{"silence after the first piece", scripted.Answer{Say: "This never comes whole.", Stall: time.Hour}},
		{"a byte in ten seconds", scripted.Answer{Say: "This comes too slowly to be waited for.", Chunk: 1, Pace: r9Pause}},
	}
	all := make([]time.Duration, len(kinds)*len(cases))
	t.Binary()
	t.InParallel(len(all), r9AtOnce, func(i int) {
		one := cases[i%len(cases)]
		all[i] = stalls(t, kinds[i/len(cases)], one.name, one.answer)
	})
	if ctx.Err() != nil {
		return
	}
	t.Figure("stalls", len(all))
	t.Figure("idle timeout", r9Idle)
	t.Figure("tried again after", fmt.Sprintf("%s to %s", slices.Min(all).Round(10*time.Millisecond), slices.Max(all).Round(10*time.Millisecond)))
}

// stalls runs a mission whose first answer stalls, and returns when it retried.
func stalls(t *T, api, name string, first scripted.Answer) time.Duration {
	p := t.Project(map[string]string{
		".opencode/centurion.jsonc": fmt.Sprintf(`{"idle_timeout": %q, "retry_delay": %q}`, r9Idle, r9Delay),
		"opencode.json":             fmt.Sprintf(`{"provider": {"custom": {"options": {"api": %q}}}}`, api),
	})
	var mu sync.Mutex
	var asked []time.Time
	p.Serve(scripted.Config{Chunk: 4, Func: func(scripted.Request) scripted.Answer {
		mu.Lock()
		defer mu.Unlock()
		if asked = append(asked, time.Now()); len(asked) == 1 {
			return first
		}
		return scripted.Answer{Say: "Here it is."}
	}})
	c := p.Start("run", "--format", "json", "--model", "custom/m", "--ask", "allow", "--profile", "assistant", "Say something.") // who is not asked for proof
	code := c.Wait(t, waitLimit)
	check(t, p, p.Told(c))
	mu.Lock()
	defer mu.Unlock()
	if code != 0 || len(asked) != 2 {
		t.Failf("%s over %s: the mission ended with %d after %d requests: %s", name, api, code, len(asked), lastLines(c.Stdout(), 2))
		return 0
	}
	took := asked[1].Sub(asked[0])
	if off := took - r9Idle - r9Delay; off < -r9Off || off > r9Off {
		t.Failf("%s over %s: asked again after %s, with an idle timeout of %s and %s before another try", name, api, took, r9Idle, r9Delay)
	}
	return took
}
