package sandbox

import (
	"os"
	"time"
)

// scansForNone is the number of consecutive scans that must find nothing: a process in the middle of an exec briefly has an empty
// environment.
const scansForNone = 2

// killRounds is the minimum number of SIGKILL rounds at the time limit: the first, one for processes forked meanwhile, and one for
// those not visible then.
const killRounds = 3

// chase decides how to end found processes: by SIGTERM during grace, then by SIGKILL, until limit has passed or scansForNone scans have
// found none. Both times count from the beginning. Time alone does not end it: on a machine so busy that one scan takes as long as
// limit, the remaining processes would never get a SIGKILL, and would stay forever.
type chase struct {
	grace, limit time.Duration
	none, kills  int // consecutive empty scans; SIGKILL rounds
}

// signal returns the signal of a round that begins after that time.
func (c *chase) signal(since time.Duration) os.Signal {
	if since >= c.grace {
		return os.Kill
	}
	return terminateSignal
}

// again reports whether to scan again after a round that found left processes and sent them sig.
func (c *chase) again(since time.Duration, sig os.Signal, left int) bool {
	if left == 0 {
		c.none++
		return c.none < scansForNone
	}
	c.none = 0
	if sig == os.Kill {
		c.kills++
	}
	return c.kills < killRounds || since < c.limit
}
