package orchestrator

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/budget"
	"centurion/provider/scripted"
	"centurion/session"
)

// honest lets a model count as its endpoint bills: four bytes a token, and the answer as long as it is.
func honest(s script) script {
	return func(r scripted.Request) scripted.Answer {
		a := s(r)
		n := 0
		for _, m := range r.Messages() {
			n += len(m.Text)
		}
		a.Usage = &scripted.Usage{Input: 2000 + n/4, Output: 900}
		return a
	}
}

// O2: however many workers there are, what they spend is never more than the limit; then the mission is paused once, and
// goes on to its end when the limit is raised.
func TestSpendStaysWithinBudget(t *testing.T) {
	for name, opts := range map[string]centurion.MissionOptions{
		"money": {MaxCost: 0.5}, "tokens": {MaxTokens: 250_000}, "requests": {MaxRounds: 45}, "little money": {MaxCost: 0.06},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": honest(steps(many(30), say("I wait"))),
				"worker":    honest(minutes(3, "made")),
			}, func(r *rig) {
				m := r.mission(opts)
				r.is(m, centurion.MissionPaused, "limit")
				if opts.MaxCost > 0 && m.Usage.USD > opts.MaxCost || opts.MaxTokens > 0 && m.Usage.Tokens.Total() > opts.MaxTokens ||
					opts.MaxRounds > 0 && m.Rounds > opts.MaxRounds {
					t.Errorf("spent %+v in %d requests", m.Usage, m.Rounds)
				}
				equal(t, "told", r.count(m.ID, centurion.EventBudgetExceeded), 1)
				equal(t, "reserved", m.Reserved, centurion.Reserved{})
				if err := r.host.Control.Raise(r.ctx, m.ID, centurion.MissionOptions{MaxCost: 100, MaxTokens: 1e8, MaxRounds: 1e6}); err != nil {
					t.Fatal(err)
				}
				m = r.run(m.ID)
				r.is(m, centurion.MissionCompleted, "")
				for _, task := range r.tasks(m.ID) {
					equal(t, task.Title, task.Status, centurion.TaskCompleted)
				}
			})
		})
	}
}

// budgeted hands a task with a budget of its own to a worker.
func budgeted(prompt string, budget args) scripted.Call {
	return call("delegate_task", args{"agent": "worker", "description": prompt, "prompt": prompt, "budget": budget})
}

// O2: a task that reaches its own budget fails with the reason, its parent is told, and the mission goes on.
func TestOwnBudget(t *testing.T) {
	for name, test := range map[string]struct {
		budget args
		says   string
		rounds int
	}{
		"cost":       {args{"cost": 0.04}, "own budget of $0.04", 3},
		"tokens":     {args{"tokens": 9000}, "own budget of 9000 tokens", 2},
		"rounds":     {args{"rounds": 2}, "own budget of 2 requests", 2},
		"tool calls": {args{"tool_calls": 2}, "own budget of 2 tool calls", 3},
		"minutes":    {args{"minutes": 2.5}, "own budget of 2m30s", 3},
	} {
		t.Run(name, func(t *testing.T) {
			fixed := func(s script) script {
				return func(r scripted.Request) scripted.Answer {
					a := s(r)
					a.Usage = &scripted.Usage{Input: 2500, Output: 900}
					return a
				}
			}
			bubble(t, map[string]script{
				"commander": fixed(steps(do(budgeted("small", test.budget), work("", "another")), say("I wait"), say("Both have ended."))),
				"worker":    fixed(minutes(6, "made")),
			}, func(r *rig) {
				m := r.mission(centurion.MissionOptions{MaxCost: 10, MaxTokens: 1e6, MaxRounds: 100})
				r.is(m, centurion.MissionCompleted, "")
				all := r.tasks(m.ID)
				small, another := all[0], all[1]
				equal(t, "the other task", another.Status, centurion.TaskCompleted)
				equal(t, "status", small.Status, centurion.TaskFailed)
				if small.Error == nil || small.Error.Kind != centurion.KindBudget {
					t.Fatalf("it failed with %+v", small.Error)
				}
				has(t, small.Error.Message, test.says)
				equal(t, "requests", small.Rounds, test.rounds)
				if name == "minutes" { // also those after its newest answer
					equal(t, "at work", small.ElapsedMS, 150_000)
				}
				if calls := small.Budget.ToolCalls; calls > 0 && small.ToolCalls != calls {
					t.Errorf("%d tool calls", small.ToolCalls)
				}
				equal(t, "exceeded", r.count(m.ID, centurion.EventBudgetExceeded), 0)
				var told strings.Builder
				for _, q := range r.requests("commander") {
					told.WriteString(q.Last())
				}
				has(t, told.String(), test.says)
			})
		})
	}
}

// O2: a task whose budget does not fit beside those of others waits, says for what, and begins when something is given
// back; one that can never fit is refused with what is left.
func TestSpawnWaits(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(budgeted("first", args{"rounds": 6}), budgeted("second", args{"rounds": 6}), budgeted("third", args{"rounds": 60})), say("I wait")),
		"worker":    minutes(3, "made"),
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{MaxRounds: 12})
		var g guard.Group
		done := r.inBackground(&g, m.ID)
		time.Sleep(90 * time.Second)
		synctest.Wait()
		all := r.tasks(m.ID)
		equal(t, "tasks", len(all), 2)
		equal(t, "the second", all[1].Status, centurion.TaskWaiting)
		// The Commander may still have been at the request that ended its turn.
		if why := all[1].Reason; why != "budget: 6 requests of 12 requests reserved by 1 agent" && why != "budget: 7 requests of 12 requests reserved by 2 agents" {
			t.Errorf("it waits for %q", why)
		}
		now, err := r.store.Mission(r.ctx, m.ID)
		if err != nil || now.Reserved.Rounds < 4 || now.Reserved.Tasks != 1 {
			t.Errorf("told as reserved: %+v, %v", now.Reserved, err)
		}
		has(t, strings.Join(r.results(m.ID, "delegate_task"), "\n"), "a budget of 60 requests does not fit", "left of 12 requests", "give it a smaller one")
		m = <-done
		r.runs++
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		r.is(m, centurion.MissionCompleted, "")
		all = r.tasks(m.ID)
		if !all[1].Started.After(all[0].Ended.Add(-time.Second)) {
			t.Errorf("the second started at %s, the first ended at %s", all[1].Started, all[0].Ended)
		}
	})
}

// O2: with nothing left that anybody could give back, a task is refused instead of waiting for ever.
func TestSpawnRefused(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(work("", "x")), say("So I end"))}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{MaxRounds: 1})
		r.is(m, centurion.MissionPaused, "request limit (1) is reached")
		has(t, r.results(m.ID, "delegate_task")[0], "budget is used up: 0 requests left of 1 request", "do what is left yourself")
		equal(t, "tasks", len(r.tasks(m.ID)), 0)
	})
}

// O2: tool calls are counted before they run: those beyond the limit do not, the mission pauses, and they are made when the limit
// is raised.
func TestToolCallLimit(t *testing.T) {
	bubble(t, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			if q.Step() > 2 {
				return say("done")
			}
			var calls []scripted.Call
			for range 6 {
				calls = append(calls, call("ls", args{}))
			}
			return do(calls...)
		},
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{MaxToolCalls: 4})
		r.is(m, centurion.MissionPaused, "the limit of 4 tool calls is reached")
		equal(t, "tool calls", m.ToolCalls, 4)
		has(t, string(r.events(m.ID, centurion.EventBudgetExceeded)[0].Data), `"limit":"max_tool_calls"`)
		for i, result := range r.results(m.ID, "ls") {
			if refused := strings.Contains(result, "Not run: the mission's limit of 4 tool calls"); refused != (i >= 4) {
				t.Errorf("call %d: %s", i, result)
			}
		}
		if err := r.host.Control.Raise(r.ctx, m.ID, centurion.MissionOptions{MaxToolCalls: 40}); err != nil {
			t.Fatal(err)
		}
		m = r.run(m.ID)
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "tool calls in all", m.ToolCalls, 10)
	})
}

// O2: models are told what is left: those who plan of the mission, a worker of its own budget.
func TestBudgetStatus(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One")), do(call("delegate_task", args{"agent": "worker", "description": "x", "prompt": "x", "item": "T1",
			"budget": args{"rounds": 9, "tool_calls": 6, "minutes": 6.2}}), onward), say("I wait")),
		"worker": minutes(6, "made"),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{MaxRounds: 50, MaxToolCalls: 90})
		r.is(m, centurion.MissionCompleted, "")
		has(t, r.requests("commander")[2].Last(), "2 of 50 requests (9 requests reserved by 1 task), 3 of 90 tool calls")
		equal(t, "mentions of the requests that are reserved", strings.Count(r.requests("commander")[2].Last(), "9 requests"), 1)
		asked := r.requests("worker")
		has(t, asked[0].Last(), "Left of this task's budget: 9 requests. ")
		has(t, asked[5].Last(), "Left of this task's budget: 4 requests, 1 tool call, 1m. ")
	})
}

// O2: fifty workers find room in the default of 10 USD also where a request is dear, and a task has the configured budget
// where it is given none.
func TestPortion(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		have := r.host.cfg().Model
		r.cfg.Model = func(s string) (Model, error) {
			m, err := have(s)
			m.Price = &centurion.Price{Input: 150, Output: 600}
			return m, err
		}
		r.restart()
		m := newMission(r.ctx, r.host, r.start(centurion.MissionOptions{MaxCost: 10}))
		defer m.drop(nil)
		for i := range 50 {
			task := centurion.Task{ID: fmt.Sprint(i), Agent: "worker", Prompt: strings.Repeat("x", 9000)}
			if _, covered := m.loop.Reserves.Spawn(task, m.sessions.Portion(task)); !covered {
				t.Fatalf("no room for task %d", i)
			}
		}
	})
	equal(t, "budget", centurion.TaskBudget{Cost: 2}.Or(centurion.TaskBudget{Cost: 1, Rounds: 3}), centurion.TaskBudget{Cost: 2, Rounds: 3})
	all := func(n int) centurion.TaskBudget {
		return centurion.TaskBudget{Cost: float64(n), Tokens: int64(n), Rounds: n, ToolCalls: n, Minutes: float64(n)}
	}
	equal(t, "budget of its own", all(2).Or(all(1)), all(2))
}

// A task that has waited for another one is at work like any other once it begins: others may wait for what it will release.
func TestWaitedTaskIsAtWork(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two\n  - after: T1")), do(work("T1", "first"), work("T2", "second"))),
		"worker":    func(scripted.Request) scripted.Answer { return after(time.Minute, say("made")) },
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		for _, want := range []string{"3 accounts, 2 at rest", "2 accounts, 1 at rest"} { // T1 at work, then T2; the Commander is parked
			time.Sleep(45 * time.Second)
			now := r.host.running(m.ID).loop.Reserves.State()
			equal(t, "budget", fmt.Sprintf("%d accounts, %d at rest", now.Accounts, now.Resting), want)
		}
		r.is(l.settled(), centurion.MissionCompleted, "")
	})
}

// O2: a request that is over gives back what was reserved for it, also when nothing could be recorded of it.
func TestRequestGivesBack(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		rec := r.start(centurion.MissionOptions{MaxTokens: 1_000_000})
		m := newMission(r.ctx, r.host, rec)
		defer m.st.End(nil)
		c, err := m.opener.Open(r.ctx, rec.Session, nil)
		if err != nil {
			t.Fatal(err)
		}
		cover, err := c.Config().Reserve(r.ctx, session.Need{Input: 1000})
		if held := m.loop.Reserves.State().Held[budget.Tokens]; err != nil || held < 1000 {
			t.Fatalf("%d tokens are held for a request of 1000, %v", held, err)
		}
		cover.Done()
		equal(t, "held", m.loop.Reserves.State().Held, budget.Amount{})
	})
}
