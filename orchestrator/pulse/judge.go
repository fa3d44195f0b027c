package pulse

import "time"

// Signs are the facts by which a conversation is judged.
type Signs struct {
	Turn   bool          // a turn is running
	Task   bool          // it works on a task; otherwise it is the mission's own
	Waits  bool          // it waits for other agents or a person
	Silent time.Duration // since its last activity; negative while a delay announced by the provider lasts
	Asking bool          // a request to the model is running
	Calls  int           // running tool calls
	Late   time.Duration // since the last of the running calls should have ended; negative while one is within its limit
	Worked time.Duration // by this attempt, without waits
	Did    string        // its last activity
}

// Finding is the result of a judgement.
type Finding int

// The findings.
const (
	Healthy Finding = iota
	Stalled         // it hangs: its turn is to be aborted and retried
	TooOld          // its task has reached its time limit
)

// Limits are the longest silence of a conversation, and the longest time an attempt at a task may work, without waits.
type Limits struct{ Silent, Worked time.Duration }

// callGrace is the time beyond its limit that a tool call has to end its processes.
const callGrace = time.Minute

// Judge decides about a conversation. It has no side effects.
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
