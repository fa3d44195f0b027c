package pulse

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// ORCH-117: one poll an interval however many tasks live, none before the first and after the last; each is told how late it is.
func TestAuditorPollsWhileTasksLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gaps []time.Duration
		a := &Auditor{Interval: time.Minute}
		a.Audit = func(gap time.Duration) {
			equal(t, "polls, in one", a.Polls(), int64(len(gaps)+1))
			if gaps = append(gaps, gap); len(gaps) == 2 {
				time.Sleep(3 * time.Minute) // the next poll is late
			}
		}
		unwatch := func() {
			t.Helper()
			if err := a.Unwatch(); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Hour)
		equal(t, "polls without a task", a.Polls(), 0)
		a.Watch()
		time.Sleep(30 * time.Second)
		a.Watch()
		equal(t, "living", a.Living(), 2)
		time.Sleep(time.Minute)
		unwatch()
		equal(t, "living, one of two", a.Living(), 1)
		time.Sleep(5 * time.Minute)
		unwatch()
		if want := []time.Duration{0, 0, 2 * time.Minute, 0}; !slices.Equal(gaps, want) {
			t.Errorf("late by %v, want %v", gaps, want)
		}
		time.Sleep(time.Hour)
		equal(t, "polls after the last", a.Polls(), 4)
		equal(t, "living in the end", a.Living(), 0)
		a.Watch()
		time.Sleep(90 * time.Second)
		unwatch()
		equal(t, "polls with another task", a.Polls(), 5)
	})
}

// ORCH-117: the last task ends when the poll has, whose error is that of a panic in it.
func TestAuditorIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended time.Time
		a := &Auditor{Interval: time.Minute, Audit: func(time.Duration) { time.Sleep(time.Minute); ended = time.Now() }}
		a.Watch()
		time.Sleep(90 * time.Second)
		if err := a.Unwatch(); err != nil || !time.Now().Equal(ended) {
			t.Errorf("%v; the poll ended at %v, the wait at %v", err, ended, time.Now())
		}
		a.Audit = func(time.Duration) { panic("broken") }
		a.Watch()
		time.Sleep(time.Minute)
		synctest.Wait()
		if err := a.Unwatch(); err == nil {
			t.Error("the panic of a poll is lost")
		}
	})
}

// ORCH-117: what an agent from outside does is a call whose limit each more begins again; between its calls, silence counts.
func TestOutsideIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		p.Begin(func(error) {})
		over := p.Prompted()
		time.Sleep(time.Minute)
		equal(t, "prompted", p.Signs(true), Signs{Turn: true, Task: true, Asking: true, Silent: time.Minute, Late: never, Worked: time.Minute, Did: "a turn of the agent"})
		more, done := p.Start("edit")
		time.Sleep(4 * time.Minute)
		equal(t, "in a call", p.Signs(true), Signs{Turn: true, Task: true, Asking: true, Silent: 4 * time.Minute, Calls: 1, Late: -6 * time.Minute,
			Worked: 5 * time.Minute, Did: "a call of edit"})
		more()
		want(t, "when it says more", p, 0, 5*time.Minute, -10*time.Minute)
		done()
		time.Sleep(time.Minute)
		want(t, "when it has ended", p, time.Minute, 6*time.Minute, never)
		over()
		equal(t, "asking when the turn is over", p.Signs(true).Asking, false)
	})
}
