package sandbox

import (
	"os"
	"time"
)

// scansForNone is how many scans in a row must find nothing: a process that is just becoming another program shows an
// empty environment for a moment.
const scansForNone = 2

// killRounds is how often what is found gets SIGKILL before time is up: the first round, one for what was just being
// forked, and one for what could not be seen then.
const killRounds = 3

// chase decides how processes that scans find are ended: by SIGTERM until grace is over, then by SIGKILL, until limit or until
// scansForNone scans have found none. Both count from the beginning. Time alone does not end it: where the machine is so busy
// that one scan takes as long as limit, what is left would never have got a SIGKILL, and would stay for ever.
type chase struct {
	grace, limit time.Duration
	none, kills  int // scans in a row that found nothing; rounds of SIGKILL
}

// signal returns what a round that begins so long after the beginning sends.
func (c *chase) signal(since time.Duration) os.Signal {
	if since >= c.grace {
		return os.Kill
	}
	return terminateSignal
}

// again says whether to look once more after a round that has found left processes and sent them sig.
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
