package demo

import (
	"time"

	"centurion"
	"centurion/event"
)

// aim decides when a host is killed. The kills are spread over the mission, and none of them waits for a quiet moment.
type aim struct {
	from  int // the score from which on it is time; below zero: never
	last  int // the score from which on nothing else is waited for
	how   int
	wait  time.Duration
	armed bool
	due   time.Duration // from the moment that it was armed
	fired bool          // the host is being killed
	timer *time.Timer
}

// How a moment is chosen once it is time.
const (
	afterWhile  = iota // after a random time
	atOnce             // with the next line
	intoCommand        // into the next shell command
	whileBack          // while the host is still coming back
	ways
)

// late is the part of the mission, in percent, at which the kills that are left come at once: what is still to be done
// then is the last review.
const late = 88

// The times of an aim. A command of this demonstration takes some 50 ms.
const (
	maxWhile   = 700 * time.Millisecond
	maxInto    = 20 * time.Millisecond
	maxCommand = 1500 * time.Millisecond // how long a kill waits for a shell command to hit
)

// aim aims at the next kill. The same random numbers are used up whatever the way, so that a seed means the same moments.
func (k *killing) aim() *aim {
	a := &aim{from: -1, last: Whole * late / 100}
	a.arm()
	jitter, how, wait := k.random.Float64(), k.random.IntN(2*ways-1)/2, k.random.Float64()
	if k.done == k.Kills {
		return a
	}
	a.from = int((float64(k.done) + jitter) * float64(a.last) / float64(k.Kills))
	a.how = how // whileBack, which leaves no time to get on, is the rarest
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
		a.from = min(max(a.from, k.score+1), a.last) // something gets done between two kills
	}
	return a
}

// see looks at what happens, and sets the moment when the time has come.
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
		a.how = afterWhile // it is hit
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

// arm makes the timer, which is not running.
func (a *aim) arm() {
	a.timer = time.NewTimer(time.Hour)
	a.timer.Stop()
}

func (a *aim) fire() <-chan time.Time { return a.timer.C }

func (a *aim) stop() { a.timer.Stop() }
