package sandbox

import (
	"context"
	"os"
	"time"
)

// commandVariable names in the environment of a command, and of all that it starts, the command itself. By it is found what
// has left the command's process group.
const commandVariable = "CENTURION_COMMAND"

// The times of endStrays. Together with [DefaultGrace] they keep a command from outliving its time limit by 2 s, on a machine
// that is not too busy to look at its processes in that time. scanLimit is for one on which they cannot be listed at all.
const (
	strayGrace = 200 * time.Millisecond
	strayLimit = 600 * time.Millisecond
	scanLimit  = 10 * time.Second
)

// endStrays ends the processes that have left the groups of these commands: all get SIGTERM, what is left after grace gets
// SIGKILL, until two scans in a row find none, for at most strayLimit or, where that takes longer, three rounds of SIGKILL. A
// grace of 0 asks nobody. Where processes cannot be listed it finds none.
func endStrays(grace time.Duration, ids ...string) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), scanLimit)
	defer cancel()
	poll := time.NewTicker(sweepPoll)
	defer poll.Stop()
	c := chase{grace: grace, limit: strayLimit}
	asked := map[int]bool{}
	for {
		sig, found := c.signal(time.Since(start)), 0
		for _, id := range ids {
			mark := commandVariable + "=" + id
			left, err := scan(ctx, mark)
			if err != nil {
				return // another scan would fail as well
			}
			found += len(left)
			for _, p := range left {
				if sig == os.Kill || !asked[p.PID] {
					asked[p.PID] = true
					_ = signalMarked(p.PID, mark, sig) // one that has ended meanwhile is no error
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
