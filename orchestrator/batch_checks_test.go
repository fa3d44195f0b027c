package orchestrator

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/merge"
)

// counted counts the runs of one command by the files that it sees, and holds the first until it is let go.
type counted struct {
	*shell
	command     string
	begun, goOn chan struct{}

	mu   sync.Mutex
	on   bool     // it counts and holds
	seen []string // names of files, a string for each run
}

func (c *counted) Run(ctx context.Context, cmd centurion.Command) (centurion.CommandResult, error) {
	if cmd.Script == c.command {
		entries, err := os.ReadDir(cmd.Dir)
		if err != nil {
			return centurion.CommandResult{}, err
		}
		var names []string
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") {
				names = append(names, e.Name())
			}
		}
		c.mu.Lock()
		if c.on {
			c.seen = append(c.seen, strings.Join(names, " "))
		}
		first := c.on && len(c.seen) == 1
		c.mu.Unlock()
		if first {
			close(c.begun)
			<-c.goOn
		}
	}
	return c.shell.Run(ctx, cmd)
}

// The mission's own check runs once for all landings that arrive while one check runs, and never twice on the same files.
func TestOwnCheckRunsOnceForABatch(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"base.txt": "base\n"}, nobody())
	const whole = "lacks base.txt broken"
	runner := &counted{shell: r.shell, command: whole, begun: make(chan struct{}), goOn: make(chan struct{})}
	r.cfg.Runner, r.cfg.Checks = runner, 1
	r.restart()
	m := r.queued(t, centurion.MissionOptions{Verify: []string{whole}})
	runner.mu.Lock()
	runner.on = true // the mission that nobody works on has run it, too
	runner.mu.Unlock()
	var g guard.Group
	var all []*merge.Work
	land := func() {
		n := len(all)
		l := &merge.Work{Agent: "worker", Item: fmt.Sprint("T", n), Commit: r.work(m, map[string]string{fmt.Sprint(n, ".txt"): "x"})}
		all = append(all, l)
		g.Go(l.Item, func() error { return m.queue.Land(r.ctx, l) })
	}
	land()
	<-runner.begun
	for range 4 {
		land()
	}
	for n := 0; n < 4; time.Sleep(time.Millisecond) {
		n = m.queue.Waiting()
	}
	close(runner.goOn)
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		if l.Landed == nil || l.Back != nil {
			t.Errorf("%s: %+v", l.Item, l.Back)
		}
	}
	times := map[string]int{}
	for _, files := range runner.seen {
		if times[files]++; times[files] > 1 {
			t.Errorf("run again on %s", files)
		}
	}
	const end = "0.txt 1.txt 2.txt 3.txt 4.txt base.txt"
	if times[end] != 1 || len(runner.seen) != 2 { // the first, and the batch
		t.Errorf("runs: %q", runner.seen)
	}
}
