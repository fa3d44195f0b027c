package demo

import (
	"time"

	"centurion"
	"centurion/event"
)

// aim decides when a host is killed. The kills are spread over the mission, and none waits for a quiet moment.
type aim struct {
	from  int // the score at which it may fire; negative: never
	last  int // the score at which it waits for nothing else
	how   int
	wait  time.Duration
	armed bool
	due   time.Duration // since it was armed
	fired bool          // the host is being killed
	timer *time.Timer
}

// How a moment is chosen once it may fire.
const (
	afterWhile  = iota // after a random time
	atOnce             // with the next line
	intoCommand        // into the next shell command
	whileBack          // while the host is still coming back
	ways
)

// late is the part of the mission, in percent, after which the remaining kills come at once: only the last review is left then.
const late = 88

// The times of an aim. A command of this demonstration takes about 50 ms.
const (
	maxWhile   = 700 * time.Millisecond
	maxInto    = 20 * time.Millisecond
	maxCommand = 1500 * time.Millisecond // how long a kill waits for a shell command to hit
)

// aim aims the next kill. Every way uses the same number of random values, so that a seed means the same moments.
func (k *killing) aim() *aim {
	a := &aim{from: -1, last: Whole * late / 100}
	a.arm()
	jitter, how, wait := k.random.Float64(), k.random.IntN(2*ways-1)/2, k.random.Float64()
	if k.done == k.Kills {
		return a
	}
	a.from = int((float64(k.done) + jitter) * float64(a.last) / float64(k.Kills))
	a.how = how // whileBack, which leaves no time for progress, is the rarest
	if a.how == whileBack && k.done == 0 {
		a.how = atOnce
	}
	span := maxWhile
	if a.how == intoCommand {
		span = maxInto
	}
	a.wait = time.Duration(wait * float64(span))
	if k.Fast {
		a.wait /= 10
	}
	if a.how != whileBack {
		a.from = min(max(a.from, k.score+1), a.last) // some progress between two kills
	}
	return a
}

// see processes an event, and sets the moment once it may fire.
func (a *aim) see(e centurion.Event, score int) {
	if a.from < 0 || a.fired || score < a.from && a.how != whileBack {
		return
	}
	command := false
	if e.Type == centurion.EventToolStarted {
		d, err := event.Decode[event.ToolData](e)
		command = err == nil && d.Tool == "bash"
	}
	switch {
	case score >= a.last:
		a.set(0)
	case a.how == intoCommand && command:
		a.set(a.wait)
		a.how = afterWhile // it hit
	case a.armed:
	case a.how == intoCommand:
		a.set(maxCommand)
	case a.how == afterWhile:
		a.set(a.wait)
	default:
		a.set(0)
	}
}

// set sets the moment.
func (a *aim) set(d time.Duration) {
	a.armed, a.due = true, d
	a.timer.Reset(d)
}

// arm creates the timer, stopped.
func (a *aim) arm() {
	a.timer = time.NewTimer(time.Hour)
	a.timer.Stop()
}

func (a *aim) fire() <-chan time.Time { return a.timer.C }

func (a *aim) stop() { a.timer.Stop() }
