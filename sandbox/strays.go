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

// endStrays ends the processes of a command that have left its group: all get SIGTERM, what is left after strayGrace gets
// SIGKILL, until two scans find none. Where processes cannot be listed it finds none.
func endStrays(id string) {
	mark, start := commandVariable+"="+id, time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), strayLimit)
	defer cancel()
	poll := time.NewTicker(sweepPoll)
	defer poll.Stop()
	asked := map[int]bool{}
	for none := 0; none < scansForNone && ctx.Err() == nil; none++ {
		left, err := scan(ctx, mark)
		if err != nil {
			return // another scan would fail as well
		}
		for _, p := range left {
			none = -1
			switch {
			case time.Since(start) > strayGrace:
				_ = signalMarked(p.PID, mark, os.Kill) // one that has ended meanwhile is no error
			case !asked[p.PID]:
				asked[p.PID] = true
				_ = signalMarked(p.PID, mark, terminateSignal)
			}
		}
		if none < 0 || len(left) == 0 {
			select {
			case <-poll.C:
			case <-ctx.Done():
			}
		}
	}
}
