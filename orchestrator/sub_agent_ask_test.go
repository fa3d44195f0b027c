package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/event"
	"centurion/provider/scripted"
	"centurion/sandbox"
	"centurion/store"
)

// inquirers is an assistant that starts two sub-agents, each of which asks the person one question and ends with what it
// heard; spoken to, it says that it hears.
func inquirers() map[string]script {
	return family(func(q scripted.Request) scripted.Answer {
		if q.Step() == 1 {
			return do(sub("piece 0", nil), sub("piece 1", nil))
		}
		return say("I know: " + strings.Join(q.Results(), "; "))
	}, func(q scripted.Request) scripted.Answer {
		if q.Step() > 1 {
			return after(time.Minute, say("heard: "+q.Last()))
		}
		i := strings.Index(q.First(), "piece ")
		return do(asks("Which one for " + q.First()[i:i+7] + "?"))
	})
}

// askedByChildren waits until two tasks have asked and returns their questions in the order of the tasks.
func (r *rig) askedByChildren(mission string) []store.Ask {
	r.t.Helper()
	open := r.waitFor(mission, 2)
	if open[0].Task != r.tasks(mission)[0].ID {
		slices.Reverse(open)
	}
	return open
}

// SUB-20, SUB-21, SUB-27, SUB-30, SUB-31, SUB-32, SUB-34, C-10, O5: with a person to ask, two sub-agents that ask at the same time
// each get their own answer, in their own call, whichever is given first; their parent's calls wait for them meanwhile, and
// the parent itself is reached at once. Nobody else's turn comes into it, and no clock of theirs runs.
func TestSubAgentsAsk(t *testing.T) {
	bubble(t, inquirers(), func(r *rig) {
		o := assistant()
		o.Ask = "ask"
		m := r.start(o)
		l := r.live(m.ID)
		open := r.askedByChildren(m.ID)
		requests := len(r.model.Requests())
		for i, a := range open {
			has(t, a.Agent+" "+a.Address+" below "+a.Line, "assistant 0/", "below assistant 0/")
			equal(t, "asked in the session of", a.Session, r.tasks(m.ID)[i].Session)
			s := r.state(a.Session)
			equal(t, "child", fmt.Sprint(s.Activity, " ", s.Waits), "busy person")
		}
		s := r.state(m.Session) // which takes no time, or it is an error
		equal(t, "parent", fmt.Sprint(s.Activity, " ", s.Waits, " ", len(s.Calls)), "busy child 2")
		time.Sleep(5 * time.Hour)
		r.answer(open[1].ID, "the second")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		equal(t, "who waits still", r.tasks(m.ID)[0].Status, centurion.TaskWaiting)
		equal(t, "who was answered", r.tasks(m.ID)[1].Result, "heard: the second")
		equal(t, "requests for one answer", len(r.model.Requests()), requests+1) // of the child that got it
		r.answer(open[0].ID, "the first")
		end := l.settled()
		r.is(end, centurion.MissionCompleted, "nothing to verify")
		for i, k := range r.tasks(m.ID) {
			equal(t, "answer", r.part(k.Session, "ask_user", 0).State.Output, []string{"the first", "the second"}[i])
			has(t, r.part(m.Session, "sub_agent", i).State.Output, "heard: "+[]string{"the first", "the second"}[i]+"\n")
			equal(t, "told beside the call", r.told(m.Session, "heard: "), 0)
		}
		if a, b := strings.Index(end.Summary, "the first"), strings.Index(end.Summary, "the second"); a < 0 || b < a {
			t.Errorf("the parent says %q", end.Summary)
		}
	})
}

// SUB-33, SUB-35, O5: with nobody to ask, each sub-agent is told so in its call, at once, and works on.
func TestSubAgentsAskNobody(t *testing.T) {
	bubble(t, inquirers(), func(r *rig) {
		began := time.Now()
		m := r.mission(assistant())
		r.is(m, centurion.MissionCompleted, "nothing to verify")
		if d := time.Since(began); d > 2*time.Minute {
			t.Errorf("it took %s", d)
		}
		for i, k := range r.tasks(m.ID) {
			equal(t, "answer", r.part(k.Session, "ask_user", 0).State.Output, event.NobodyThere)
			has(t, r.part(m.Session, "sub_agent", i).State.Output, "heard: "+event.NobodyThere)
		}
	})
}

// SUB-26, SUB-35, OPAL-41: a turn is aborted while a question waits: of the child that asks, of the parent of both, and the
// whole work is cancelled. Each comes back at once, the questions are closed, and who is left goes on.
func TestAbortWhileAsking(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(r *rig, mission centurion.Mission, child string) error
		left   int // questions that stay open
		status centurion.MissionStatus
	}{
		"the child": {func(r *rig, _ centurion.Mission, child string) error {
			return r.host.Control.Abort(r.ctx, child, "not now")
		}, 1, centurion.MissionCompleted},
		"the parent": {func(r *rig, m centurion.Mission, _ string) error {
			return r.host.Control.Abort(r.ctx, m.Session, "not now")
		}, 0, centurion.MissionPaused},
		"everything": {func(r *rig, m centurion.Mission, _ string) error {
			return r.host.Control.Cancel(r.ctx, m.ID, "not now")
		}, 0, centurion.MissionCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, inquirers(), func(r *rig) {
				o := assistant()
				o.Ask = "ask"
				m := r.start(o)
				l := r.live(m.ID)
				open := r.askedByChildren(m.ID)
				time.Sleep(time.Hour)
				began := time.Now()
				if err := c.do(r, m, open[0].Session); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if d := time.Since(began); d > 50*time.Millisecond {
					t.Errorf("it took %s", d)
				}
				left := r.open(m.ID)
				equal(t, "open", len(left), c.left)
				k := r.tasks(m.ID)[0]
				equal(t, "who was stopped", k.Status, centurion.TaskCancelled)
				equal(t, "its call", r.part(k.Session, "ask_user", 0).State.Error, "Cancelled")
				switch c.status {
				case centurion.MissionCompleted:
					equal(t, "open", left[0].ID, open[1].ID)
					r.answer(left[0].ID, "the second")
				case centurion.MissionPaused:
					time.Sleep(time.Hour)
					equal(t, "an aborted parent waits for the person", fmt.Sprint(r.state(m.Session).Waits), "person")
					l.cancel(centurion.ErrShutdown)
				}
				r.is(l.settled(), c.status, "")
				if c.status == centurion.MissionCompleted {
					has(t, r.part(m.Session, "sub_agent", 0).State.Error, "not now")
					has(t, r.part(m.Session, "sub_agent", 1).State.Output, "heard: the second")
				}
				for _, a := range open {
					if err := r.host.Answer(r.ctx, a.ID, "late", sandbox.Peer{}); centurion.KindOf(err) != centurion.KindNotFound {
						t.Errorf("a late answer: %v", err)
					}
				}
			})
		})
	}
}

// SUB-26, SUB-35: the agent of the person itself asks, beside a sub-agent that works: aborted, it comes back at once, its
// question is closed, and what it had started ends with its turn.
func TestAbortOwnQuestion(t *testing.T) {
	bubble(t, family(steps(do(asks("Which?"), sub("one", nil)), say("again")), steps(bash("build 9m"))), func(r *rig) {
		o := assistant()
		o.Ask = "ask"
		m := r.start(o)
		l := r.live(m.ID)
		ask := r.waitFor(m.ID, 1)[0]
		time.Sleep(time.Minute)
		began := time.Now()
		if err := r.host.Control.Abort(r.ctx, m.Session, "not now"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		equal(t, "aborting takes", time.Since(began), 0)
		equal(t, "open", len(r.open(m.ID)), 0)
		equal(t, "its call", r.part(m.Session, "ask_user", 0).State.Error, "Cancelled")
		equal(t, "answered", r.count(m.ID, centurion.EventQuestionAnswered), 1)
		for _, k := range r.tasks(m.ID) {
			equal(t, "what it had started", k.Status, centurion.TaskCancelled)
		}
		l.cancel(centurion.ErrShutdown)
		r.is(l.settled(), centurion.MissionPaused, "")
		if err := r.host.Answer(r.ctx, ask.ID, "late", sandbox.Peer{}); centurion.KindOf(err) != centurion.KindNotFound {
			t.Errorf("a late answer: %v", err)
		}
	})
}

// C-4, OPAL-11, OPAL-18: three limits that have nothing to do with each other: any number of sub-agents lives under one
// parent, so many of them run as there are slots, and so many of their commands as the shell takes. Their life is bound to
// their parent's, whatever they wait for: cancelled, all of them end with it.
func TestThreeLimits(t *testing.T) {
	var calls []scripted.Call
	for range 6 {
		calls = append(calls, sub("piece", nil))
	}
	bubble(t, family(steps(do(calls...), say("done")), steps(bash("build 100s"))), func(r *rig) {
		r.cfg.Runner = oneCommand{r.shell, make(chan struct{}, 1)}
		r.restart()
		o := assistant()
		o.MaxWorkers = 2
		m := r.start(o)
		l := r.live(m.ID)
		time.Sleep(150 * time.Second)
		states := map[centurion.TaskStatus]int{}
		for _, k := range r.tasks(m.ID) {
			states[k.Status]++
		}
		equal(t, "tasks", fmt.Sprint(states), "map[completed:1 queued:3 running:2]")
		equal(t, "commands", r.shell.times("build 100s"), 2)
		calls := 0
		for _, c := range r.state(m.Session).Children { // what runs below a session is told with it
			calls += len(c.Calls)
		}
		equal(t, "calls of the children", calls, 2)
		began := time.Now()
		if err := r.host.Control.Cancel(r.ctx, m.ID, "enough"); err != nil {
			t.Error(err)
		}
		r.is(l.settled(), centurion.MissionCancelled, "enough")
		equal(t, "stopping takes", time.Since(began).Round(time.Second), 0)
		for _, k := range r.tasks(m.ID) {
			if !k.Status.Ended() {
				t.Errorf("%s is %s", k.ID, k.Status)
			}
		}
		equal(t, "commands", r.shell.times("build 100s"), 2)
	})
}

// SUB-7, SUB-10: a pause, or another host that takes over, while sub-agents work: each of their calls is answered with a note,
// the result of each follows as a notice, once, and the parent has it before it ends.
func TestSubAgentPaused(t *testing.T) {
	for _, way := range []string{"pause", byShutdown, byHandover} {
		t.Run(way, func(t *testing.T) {
			var ends []string
			root := func(q scripted.Request) scripted.Answer {
				if q.Step() == 1 {
					return do(sub("one", nil), sub("two", nil))
				}
				ends = append(ends, texts(q))
				return say("I know")
			}
			bubble(t, family(root, func(q scripted.Request) scripted.Answer {
				return after(time.Minute, say("result of "+strings.Fields(q.First())[3]))
			}), func(r *rig) {
				m := r.start(assistant())
				l := r.live(m.ID)
				time.Sleep(30 * time.Second)
				if way == "pause" {
					if err := r.host.Control.Pause(r.ctx, m.ID, "lunch"); err != nil {
						t.Error(err)
					}
					r.is(l.settled(), centurion.MissionPaused, "lunch")
				} else {
					l.goAway(way)
				}
				r.is(r.run(m.ID), centurion.MissionCompleted, "nothing to verify")
				equal(t, "tasks", len(r.tasks(m.ID)), 2)
				for i, word := range []string{"one", "two"} {
					has(t, r.part(m.Session, "sub_agent", i).State.Output, "was stopped while sub-agent "+r.tasks(m.ID)[i].Name(), "do not start it again")
					equal(t, "notices of "+word, r.told(m.Session, "result of "+word), 1)
					equal(t, "deliveries of "+word, len(slices.DeleteFunc(r.events(m.ID, centurion.EventTaskDelivered), func(e centurion.Event) bool {
						return e.Task != r.tasks(m.ID)[i].ID
					})), 1)
					has(t, ends[len(ends)-1], "result of "+word)
				}
			})
		})
	}
}

// SUB-10: a result that a call has brought is not told once more, neither in this turn nor in the next one, and is recorded
// as told.
func TestSubAgentToldOnce(t *testing.T) {
	root := steps(do(sub("one", nil)), after(time.Minute, do(call("ls", args{}))), after(time.Minute, say("I know")))
	bubble(t, family(root, steps(say("result of one"))), func(r *rig) {
		m := r.mission(assistant())
		r.is(m, centurion.MissionCompleted, "nothing to verify")
		has(t, r.part(m.Session, "sub_agent", 0).State.Output, "result of one")
		equal(t, "told beside the call", r.told(m.Session, "result of one"), 0)
		equal(t, "recorded", r.count(m.ID, centurion.EventTaskDelivered), 1)
		equal(t, "requests of the parent", len(slices.DeleteFunc(r.requests("assistant"), child)), 3)
	})
}

// oneCommand is a shell that runs one command at a time.
type oneCommand struct {
	*shell
	free chan struct{}
}

func (o oneCommand) Run(ctx context.Context, c centurion.Command) (centurion.CommandResult, error) {
	select {
	case o.free <- struct{}{}:
	case <-ctx.Done():
		return centurion.CommandResult{ExitCode: -1}, context.Cause(ctx)
	}
	defer func() { <-o.free }()
	if ctx.Err() != nil { // of two things that happen at once a select takes any
		return centurion.CommandResult{ExitCode: -1}, context.Cause(ctx)
	}
	return o.shell.Run(ctx, c)
}

// SUB-9, C-5: a sub-agent whose command waits until the commands of others have ended is not idle, however long that is, and
// that wait is no part of what an attempt may work.
func TestSubAgentWaitsForAShell(t *testing.T) {
	root := steps(do(sub("one", nil), sub("two", nil), sub("three", nil), sub("four", nil)), say("done"))
	bubble(t, family(root, steps(bash("build 100s"), say("fine"))), func(r *rig) {
		r.cfg.Runner, r.cfg.SessionTTL = oneCommand{r.shell, make(chan struct{}, 1)}, 4*time.Minute
		r.restart()
		began := time.Now()
		m := r.mission(assistant())
		r.is(m, centurion.MissionCompleted, "nothing to verify")
		equal(t, "it took", time.Since(began).Round(10*time.Second), 400*time.Second)
		for i := range 4 {
			has(t, r.part(m.Session, "sub_agent", i).State.Output, "fine\n")
		}
	})
}

// C-7, C-5: a provider that falls silent for as long as a sub-agent may be is asked again, and that is a sign of life; only
// where the sub-agent's own limit is shorter does it come first.
func TestSilentProviderIsAskedAgain(t *testing.T) {
	for name, silent := range map[string]scripted.Answer{"before its first word": after(time.Hour, say("late")), "in the middle": {Say: "well, let me see", Stall: time.Hour}} {
		for _, idle := range []time.Duration{0, 30 * time.Second} {
			t.Run(fmt.Sprint(name, " ", idle), func(t *testing.T) {
				asked := 0
				bubble(t, family(steps(do(sub("one", nil)), say("done")), func(scripted.Request) scripted.Answer {
					if asked++; asked < 3 {
						return silent
					}
					return say("fine")
				}), func(r *rig) {
					r.cfg.SubAgentIdle = idle
					r.restart()
					began := time.Now()
					m := r.mission(assistant())
					r.is(m, centurion.MissionCompleted, "nothing to verify")
					p := r.part(m.Session, "sub_agent", 0)
					if idle > 0 {
						has(t, p.State.Error, "nothing has come from it for 30s, since a request to the model")
						equal(t, "it took", time.Since(began).Round(5*time.Second), 35*time.Second)
						return
					}
					has(t, p.State.Output, "fine\n")
					equal(t, "requests", asked, 3)
					if d := time.Since(began); d < 4*time.Minute || d > 5*time.Minute {
						t.Errorf("it took %s", d)
					}
				})
			})
		}
	}
}

// SUB-35: a question of a line of the conversation that was left by a rewind is nobody's any more: whoever goes on closes it.
func TestQuestionIsLeftBehind(t *testing.T) {
	bubble(t, family(steps(do(call("ls", args{})), do(asks("Which?")), say("never mind")), nil), func(r *rig) {
		o := assistant()
		o.Ask = "ask"
		m := r.start(o)
		l := r.live(m.ID)
		ask := r.waitFor(m.ID, 1)[0]
		if err := r.host.Control.Pause(r.ctx, m.ID, "lunch"); err != nil {
			t.Fatal(err)
		}
		r.is(l.settled(), centurion.MissionPaused, "lunch")
		if _, err := r.host.Branches.Rewind(r.ctx, m.Session, "-1", ""); err != nil {
			t.Fatal(err)
		}
		l = r.live(m.ID)
		time.Sleep(time.Minute)
		for _, a := range r.open(m.ID) {
			if a.ID == ask.ID {
				t.Error("the question of the line that was left is open")
			}
			r.answer(a.ID, "x")
		}
		r.is(l.settled(), centurion.MissionCompleted, "")
	})
}
