package sandbox

import (
	"context"
	"os"
	"time"
)

// commandVariable is the environment variable that identifies a command, inherited by its descendants. It finds processes that left the
// command's process group.
const commandVariable = "CENTURION_COMMAND"

// The times of endStrays. Together with [DefaultGrace] they keep a command from outliving its time limit by 2 s, unless the machine is
// too busy to scan its processes in that time. scanLimit is for machines where they cannot be listed at all.
const (
	strayGrace = 200 * time.Millisecond
	strayLimit = 600 * time.Millisecond
	scanLimit  = 10 * time.Second
)

// endStrays ends the processes that have left the groups of these commands: all get SIGTERM, the rest after grace SIGKILL, until two
// consecutive scans find none, for at most strayLimit or, if longer, three rounds of SIGKILL. A grace of 0 skips SIGTERM. Where
// processes cannot be listed it finds none.
func endStrays(grace time.Duration, ids ...string) {
	marks := make([]string, len(ids))
	for i, id := range ids {
		marks[i] = commandVariable + "=" + id
	}
	endMarked(grace, marks...)
}

// endMarked ends the processes that have one of these entries in their environment, like [endStrays].
func endMarked(grace time.Duration, marks ...string) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), scanLimit)
	defer cancel()
	poll := time.NewTicker(sweepPoll)
	defer poll.Stop()
	c := chase{grace: grace, limit: strayLimit}
	asked := map[int]bool{}
	for {
		sig, found := c.signal(time.Since(start)), 0
		for _, mark := range marks {
			left, err := scan(ctx, mark)
			if err != nil {
				return // another scan would fail, too
			}
			found += len(left)
			for _, p := range left {
				if sig == os.Kill || !asked[p.PID] {
					asked[p.PID] = true
					_ = signalMarked(p.PID, mark, sig) // a process that has ended meanwhile is no error
				}
			}
		}
		if ctx.Err() != nil || !c.again(time.Since(start), sig, found) {
			return
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
		}
	}
}
