package pulse

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/provider"
	"centurion/tools"
)

// want compares the signs that say how long.
func want(t *testing.T, when string, p *Pulse, silent, worked, late time.Duration) {
	t.Helper()
	s := p.Signs(true)
	equal(t, when+": silent", s.Silent, silent)
	equal(t, when+": worked", s.Worked, worked)
	equal(t, when+": late", s.Late, late)
}

// never is how late no call is, and none that has no limit.
const never, without = time.Hour, -time.Hour

// ORCH-117, ORCH-140: what an attempt has worked is that of its turns without its waits, also of several at a time; every
// beginning and end is a sign of life.
func TestSignsOfTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		time.Sleep(time.Minute)
		equal(t, "before a turn", p.Signs(false), Signs{Silent: time.Minute, Late: never})
		p.Begin(func(error) {})
		equal(t, "at its beginning", p.Signs(true), Signs{Turn: true, Task: true, Late: never, Did: "the beginning of a turn"})
		time.Sleep(2 * time.Minute)
		want(t, "after two minutes", p, 2*time.Minute, 2*time.Minute, never)
		p.Leave()
		time.Sleep(time.Minute)
		p.Leave()
		time.Sleep(time.Minute)
		p.Enter()
		equal(t, "waits, one of two", p.Signs(true).Waits, true)
		time.Sleep(time.Minute)
		want(t, "one of two waits over", p, time.Minute, 2*time.Minute, never)
		p.Enter()
		equal(t, "waits", p.Signs(true).Waits, false)
		want(t, "both over", p, 0, 2*time.Minute, never)
		time.Sleep(time.Minute)
		p.Forgive(30 * time.Second)
		want(t, "the process stood still", p, 0, 2*time.Minute+30*time.Second, never)
		p.Leave()
		time.Sleep(time.Minute)
		p.Forgive(time.Minute)
		p.Enter()
		want(t, "it stood still while this waited", p, 0, 2*time.Minute+30*time.Second, never)
		p.call("bash", time.Minute)
		p.Leave()
		p.Over()
		equal(t, "when the turn is over", p.Signs(true), Signs{Task: true, Late: never, Worked: 2*time.Minute + 30*time.Second, Did: "a call of bash"})
		time.Sleep(time.Minute)
		p.Begin(func(error) {})
		time.Sleep(30 * time.Second)
		want(t, "in the next turn", p, 30*time.Second, 3*time.Minute, never)
	})
}

// ORCH-117: a call may run for its limit, of which neither a wait nor a stop of the process is a part; one without a limit is
// late never, and with it nothing beside it.
func TestSignsOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		p.Begin(func(error) {})
		time.Sleep(time.Minute)
		slow, done := p.call("bash", 10*time.Minute)
		equal(t, "one call", p.Signs(true), Signs{Turn: true, Task: true, Calls: 1, Late: -10 * time.Minute, Worked: time.Minute, Did: "a call of bash"})
		time.Sleep(time.Minute)
		_, ended := p.call("read", 2*time.Minute)
		time.Sleep(3 * time.Minute)
		want(t, "the last of two decides", p, 3*time.Minute, 5*time.Minute, -6*time.Minute)
		ended()
		want(t, "one has ended", p, 0, 5*time.Minute, -6*time.Minute)
		equal(t, "calls", p.Signs(true).Calls, 1)
		p.Leave()
		time.Sleep(time.Minute)
		p.Leave()
		time.Sleep(time.Minute)
		p.Enter()
		time.Sleep(time.Minute)
		p.Enter()
		want(t, "after waits of three minutes together", p, 0, 5*time.Minute, -6*time.Minute)
		p.Forgive(time.Minute)
		want(t, "the process stood still", p, 0, 4*time.Minute, -7*time.Minute)
		time.Sleep(time.Minute)
		p.limit(slow, 0)
		time.Sleep(3 * time.Hour)
		p.Forgive(time.Minute)
		want(t, "without a limit", p, 0, 3*time.Hour+4*time.Minute, without)
		p.limit(slow, time.Minute)
		time.Sleep(time.Hour)
		_, hosted := p.call("delegate_task", 0)
		want(t, "beside one without a limit", p, 0, 4*time.Hour+4*time.Minute, without)
		hosted()
		want(t, "beyond its limit", p, 0, 4*time.Hour+4*time.Minute, 59*time.Minute)
		done()
		want(t, "no call", p, 0, 4*time.Hour+4*time.Minute, never)
	})
}

// A turn that no poll looks at is looked at once, later, unless it is over by then; what ends a turn is handed out once.
func TestTurnIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		looked := ""
		look := func(name string) func() { return func() { looked += name } }
		if p.Take() != nil {
			t.Error("something ends a turn that has not begun")
		}
		p.After(time.Second, look("none "))
		time.Sleep(2 * time.Second)
		p.Begin(func(error) { looked += "ended " })
		p.After(time.Second, look("first "))
		time.Sleep(time.Second / 2)
		p.After(time.Second, look("second "))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		equal(t, "looked at", looked, "second ")
		p.After(time.Second, look("third "))
		p.Over()
		time.Sleep(time.Minute)
		p.Begin(func(error) { looked += "ended " })
		time.Sleep(2 * time.Second)
		synctest.Wait()
		equal(t, "looked at after another turn", looked, "second ")
		end := p.Take()
		time.Sleep(time.Minute)
		if end == nil || p.Take() != nil || p.Signs(true).Turn {
			t.Error("what ends a turn is not handed out once")
		}
		equal(t, "worked", p.Signs(true).Worked, 4*time.Second+time.Second/2)
		equal(t, "resting", p.Resting(0, nil), true)
		equal(t, "expired for the first time", p.Expire(), true)
		equal(t, "expired for the second time", p.Expire(), false)
	})
}

// A turn begins without the calls of the one before, also where that was cut off.
func TestTurnBeginsWithoutCalls(t *testing.T) {
	p := New()
	p.Begin(func(error) {})
	p.Running(1)
	p.Take()
	p.Begin(func(error) {})
	p.Leave()
	equal(t, "resting, for a call that it has not begun", p.Resting(1, nil), false)
}

// What ends in a turn but began in the one before counts for neither.
func TestWaitsOfTheTurnBefore(t *testing.T) {
	p := New()
	p.Begin(func(error) {})
	p.Running(1)
	first, second := p.Queue(), p.Queue()
	first()
	equal(t, "resting, with one of two checks over", p.Resting(9, nil), false)
	p.Over()
	p.Running(-1)
	p.Begin(func(error) {})
	second()
	p.Running(1)
	equal(t, "resting, while a call begins", p.Resting(9, nil), false)
	p.Leave()
	equal(t, "resting, when it waits for an answer", p.Resting(1, nil), true)
	p.Enter()
	equal(t, "waits in the end", p.Signs(true).Waits, false)
}

// A task is attended for as long as a call of it waits.
func TestAttended(t *testing.T) {
	p := New()
	p.Begin(func(error) {})
	lives := func(task string) bool { return task == "alive" }
	var over []func()
	for _, task := range []string{"alive", "alive", "ended"} {
		p.Running(1)
		over = append(over, p.Attend(task))
		p.Leave()
	}
	equal(t, "beside a task that has ended", p.Resting(0, lives), false)
	for _, i := range []int{2, 0} {
		p.Enter()
		over[i]()
		p.Running(-1)
	}
	equal(t, "one is left that waits", p.Resting(0, lives), true)
}

// model answers with what it is given, each piece a minute after the one before.
type model []provider.Delta

func (m model) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		time.Sleep(time.Minute)
		req.Alive()
		for _, d := range m {
			time.Sleep(time.Minute)
			if !yield(d, nil) {
				return
			}
		}
		time.Sleep(time.Minute)
		yield(provider.Delta{}, errors.New("broken"))
	}
}

// ORCH-117: each piece of an answer is a sign of life, and a wait that the provider announces is no silence.
func TestModelIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		p.Begin(func(error) {})
		time.Sleep(time.Minute)
		pieces := 0
		answer := model{{Type: provider.Text}, {Type: provider.Waiting}, {Type: provider.Waiting, Wait: &provider.Wait{For: time.Hour}}, {Type: provider.Text}}
		for _, err := range p.Heard(answer).Stream(t.Context(), provider.Request{}) {
			s := p.Signs(true)
			equal(t, "silent", s.Silent, []time.Duration{0, 0, -time.Hour, 0, 0}[pieces])
			equal(t, "asking", s.Asking, true)
			equal(t, "last at", s.Did, "a request to the model")
			if pieces++; (err != nil) != (pieces == 5) {
				t.Errorf("piece %d: %v", pieces, err)
			}
		}
		equal(t, "pieces", pieces, 5)
		equal(t, "asking in the end", p.Signs(true).Asking, false)
		for range p.Heard(answer).Stream(t.Context(), provider.Request{}) {
			break
		}
		next, stop := iter.Pull2(p.Heard(model{}).Stream(t.Context(), provider.Request{}))
		time.Sleep(time.Hour)
		next()
		stop()
		want(t, "an error is one as well", p, 0, p.Signs(true).Worked, never)
	})
}

// tool runs a function.
type tool struct {
	tools.Tool
	run func(c *tools.Call)
}

func (tool) Name() string { return "bash" }

func (x tool) Run(ctx context.Context, c *tools.Call, input json.RawMessage) (tools.Result, error) {
	x.run(c)
	return tools.Result{Output: string(input)}, nil
}

// runner begins each command after a minute, unless it is told not to, and runs it for another.
type runner struct{ refuse bool }

func (r runner) Run(ctx context.Context, c centurion.Command) (centurion.CommandResult, error) {
	time.Sleep(time.Minute)
	if r.refuse {
		return centurion.CommandResult{}, errors.New("refused")
	}
	c.Begun()
	time.Sleep(time.Minute)
	return centurion.CommandResult{Output: c.Script}, nil
}

// ORCH-117: a command's limit begins when it runs, what stands in line for it waits; a tool that says nothing may run for ten
// minutes, one that only changes what the host keeps for ever.
func TestToolIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		p.Begin(func(error) {})
		p.Running(1)
		run := func(c *tools.Call, hosted bool, f func(c *tools.Call)) {
			t.Helper()
			time.Sleep(time.Minute)
			r, err := p.Run(t.Context(), tool{run: f}, c, json.RawMessage(`{}`), hosted)
			if err != nil || r.Output != "{}" {
				t.Errorf("%+v, %v", r, err)
			}
			s := p.Signs(true)
			if s.Calls != 0 || s.Silent != 0 || s.Waits {
				t.Errorf("when it has ended: %+v", s)
			}
		}
		late := func(when string, waits bool, want time.Duration) {
			t.Helper()
			s := p.Signs(true)
			equal(t, when+": late", s.Late, want)
			equal(t, when+": waits", s.Waits, waits)
			equal(t, when+": resting", p.Resting(0, nil), false)
		}
		run(&tools.Call{}, false, func(c *tools.Call) {
			late("a tool", false, -callLimit)
			if c.Progress != nil || c.Runner != nil {
				t.Error("a tool was given what its call has not")
			}
		})
		run(&tools.Call{}, true, func(c *tools.Call) { late("a hosted one", false, without) })
		said := ""
		run(&tools.Call{Progress: func(line string) { said += line }}, false, func(c *tools.Call) {
			time.Sleep(time.Minute)
			c.Progress("half")
			equal(t, "silent when it says something", p.Signs(true).Silent, 0)
		})
		equal(t, "said", said, "half")
		for _, r := range []runner{{}, {refuse: true}} {
			run(&tools.Call{Runner: r}, false, func(c *tools.Call) {
				time.AfterFunc(30*time.Second, func() { late("in line", true, without) })
				time.AfterFunc(90*time.Second, func() {
					if !r.refuse {
						late("while it runs", false, -150*time.Second)
					}
				})
				got, err := c.Runner.Run(t.Context(), centurion.Command{Script: "true", Timeout: 3 * time.Minute})
				if r.refuse != (err != nil) || !r.refuse && got.Output != "true" {
					t.Errorf("%+v, %v", got, err)
				}
				equal(t, "waits when it has run", p.Signs(true).Waits, false)
			})
		}
	})
}
