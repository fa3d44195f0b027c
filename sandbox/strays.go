package sandbox

import (
	"context"
	"os"
	"time"
)

// commandVariable names in the environment of a command, and of all that it starts, the command itself. By it is found what
// has left the command's process group.
const commandVariable = "CENTURION_COMMAND"

// The times of endStrays. Together with [DefaultGrace] they keep a command from outliving its time limit by 2 s.
const (
	strayGrace = 200 * time.Millisecond
	strayLimit = 600 * time.Millisecond
)

// endStrays ends the processes that have left the groups of these commands: all get SIGTERM, what is left after grace gets
// SIGKILL, until two scans in a row find none, for at most strayLimit. A grace of 0 asks nobody. Where processes cannot be
// listed it finds none.
func endStrays(grace time.Duration, ids ...string) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), strayLimit)
	defer cancel()
	poll := time.NewTicker(sweepPoll)
	defer poll.Stop()
	asked := map[int]bool{}
	for none := 0; none < scansForNone && ctx.Err() == nil; {
		sig := terminateSignal
		if time.Since(start) >= grace {
			sig = os.Kill
		}
		found := false
		for _, id := range ids {
			mark := commandVariable + "=" + id
			left, err := scan(ctx, mark)
			if err != nil {
				return // another scan would fail as well
			}
			for _, p := range left {
				found = true
				if sig == os.Kill || !asked[p.PID] {
					asked[p.PID] = true
					_ = signalMarked(p.PID, mark, sig) // one that has ended meanwhile is no error
				}
			}
		}
		if none++; found {
			none = 0
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
		}
	}
}
