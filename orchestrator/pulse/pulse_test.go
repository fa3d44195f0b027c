package pulse

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"centurion/guard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ORCH-117, ORCH-140: what is busy or waits is left alone, however silent; a hang is found after 5 minutes, a tool that
// outlives its own limit after that, and an attempt may work for an hour.
func TestJudge(t *testing.T) {
	l := Limits{Silent: 5 * time.Minute, Worked: time.Hour}
	for name, test := range map[string]struct {
		s    Signs
		want Finding
	}{
		"between turns":             {Signs{Task: true, Silent: time.Hour, Worked: 2 * time.Hour}, Healthy},
		"silent for a while":        {Signs{Turn: true, Silent: 5*time.Minute - 1}, Healthy},
		"between calls":             {Signs{Turn: true, Silent: time.Minute, Late: never}, Healthy},
		"silent for 5 minutes":      {Signs{Turn: true, Silent: 5 * time.Minute}, Stalled},
		"waits":                     {Signs{Turn: true, Task: true, Waits: true, Silent: time.Hour, Worked: 2 * time.Hour}, Healthy},
		"a silent tool":             {Signs{Turn: true, Calls: 1, Silent: time.Hour, Late: -1}, Healthy},
		"a tool at its limit":       {Signs{Turn: true, Calls: 1, Silent: time.Hour, Late: callGrace - 1}, Healthy},
		"a tool beyond its limit":   {Signs{Turn: true, Calls: 1, Silent: time.Hour, Late: callGrace}, Stalled},
		"it says when it goes on":   {Signs{Turn: true, Silent: -time.Minute}, Healthy},
		"nearly an hour of work":    {Signs{Turn: true, Task: true, Worked: time.Hour - 1}, Healthy},
		"an hour of work":           {Signs{Turn: true, Task: true, Worked: time.Hour}, TooOld},
		"the Commander for an hour": {Signs{Turn: true, Worked: time.Hour}, Healthy},
	} {
		if got := l.Judge(test.s); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// C-5, SUB-28: where nobody watches, a conversation rests when each of its calls waits for an answer that is due or a task that
// lives. A call that is about to begin, that waits for a check or the commands of others, whose answer has come or whose task
// has ended goes on by itself, however many others wait.
func TestResting(t *testing.T) {
	lives := func(task string) bool { return task == "alive" }
	for name, tt := range map[string]struct {
		calls, asked, queued int
		tasks                []string
		answers              int
		want                 bool
	}{
		"between its calls":                    {answers: 1},
		"a question":                           {calls: 1, asked: 1, answers: 1, want: true},
		"the answer has come":                  {calls: 1, asked: 1},
		"one of two answers has come":          {calls: 2, asked: 2, answers: 1},
		"a call beside it that runs":           {calls: 2, asked: 1, answers: 1},
		"beside it, a check before the call":   {calls: 2, asked: 1, queued: 1, answers: 1},
		"beside it, a task that lives":         {calls: 2, asked: 1, tasks: []string{"alive"}, answers: 1, want: true},
		"beside it, a task that has ended":     {calls: 2, asked: 1, tasks: []string{"ended"}, answers: 1},
		"beside it, two tasks, one has ended":  {calls: 3, asked: 1, tasks: []string{"alive", "ended"}, answers: 1},
		"beside it, two calls for one task":    {calls: 3, asked: 1, tasks: []string{"alive", "alive"}, answers: 1, want: true},
		"a call that begins, beside one of it": {calls: 3, asked: 1, tasks: []string{"alive"}, answers: 1},
		"a check, and more answers than calls": {calls: 2, asked: 1, queued: 1, answers: 3},
		"only a task":                          {calls: 1, tasks: []string{"alive"}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := New()
			if !p.Resting(0, lives) {
				t.Error("it does not rest without a turn")
			}
			p.Begin(func(error) {})
			p.Running(tt.calls)
			for range tt.asked {
				p.Leave()
			}
			for range tt.queued {
				p.Queue()
			}
			var over []func()
			for _, task := range tt.tasks {
				over = append(over, p.Attend(task))
				p.Leave()
			}
			equal(t, "resting", p.Resting(tt.answers, lives), tt.want)
			if len(over) > 0 && tt.want {
				p.Enter()
				equal(t, "on its way back", p.Resting(tt.answers, lives), false)
				over[0]()
				equal(t, "back", p.Resting(tt.answers, lives), false)
			}
		})
	}
}

// ORCH-117: the time that a call waits for somebody is no part of its limit.
func TestWaitIsNoPartOfALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		p.Begin(func(error) {})
		_, done := p.call("bash", 10*time.Minute)
		defer done()
		p.Leave()
		time.Sleep(time.Hour)
		p.Enter()
		equal(t, "beyond its limit by", p.Signs(true).Late, -10*time.Minute)
	})
}

// C-5: a wait that goes on by itself never looks like one for a person, not even while it begins or ends.
func TestQueueIsNoRest(t *testing.T) {
	p := New()
	p.Begin(func(error) {})
	p.Running(2)
	p.Leave() // a question
	lives := func(string) bool { return false }
	var g guard.Group
	done := make(chan struct{})
	g.Go("queue", func() error {
		defer close(done)
		for range 20_000 {
			over := p.Queue()
			over()
			over() // also when it has run and ended
		}
		return nil
	})
	for ended := false; !ended; {
		if p.Resting(2, lives) {
			t.Error("in the line it rests")
			break
		}
		select {
		case <-done:
			ended = true
		default:
		}
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	s := p.Signs(true)
	equal(t, "waits", s.Waits, true)
	p.Running(-1)
	equal(t, "resting, with the question alone", p.Resting(1, lives), true)
	p.Enter()
	equal(t, "waits at last", p.Signs(true).Waits, false)
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
