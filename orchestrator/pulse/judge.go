package pulse

import "time"

// Signs are the facts that the judgement of a conversation rests on.
type Signs struct {
	Turn   bool          // a turn is under way
	Task   bool          // it works on a task; otherwise it is a mission's own
	Waits  bool          // it waits for somebody else
	Silent time.Duration // since it last did anything; below zero while the provider has said how long it makes it wait
	Asking bool          // the model is being asked
	Calls  int           // tool calls that run
	Late   time.Duration // since the last of them should have ended; below zero while one may still run
	Worked time.Duration // by the attempt, without its waits
	Did    string        // what it was last at
}

// Finding is what a judgement has come to.
type Finding int

// The findings.
const (
	Healthy Finding = iota
	Stalled         // it hangs: its turn is to be cut off and tried again
	TooOld          // its task has worked for as long as it may
)

// Limits are how long a conversation may be silent, and how long an attempt at a task may work without its waits.
type Limits struct{ Silent, Worked time.Duration }

// callGrace is what a tool call may take beyond its limit, to end its processes.
const callGrace = time.Minute

// Judge decides about a conversation. It is pure.
func (l Limits) Judge(s Signs) Finding {
	switch {
	case !s.Turn || s.Waits:
		return Healthy
	case s.Task && s.Worked >= l.Worked:
		return TooOld
	case s.Calls > 0 && s.Late >= callGrace:
		return Stalled
	case s.Calls == 0 && s.Silent >= l.Silent:
		return Stalled
	}
	return Healthy
}
