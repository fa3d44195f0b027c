package orchestrator

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/control"
	"centurion/orchestrator/mail"
	"centurion/orchestrator/state"
	"centurion/provider/scripted"
)

// finishes returns how the answers of a session ended, in order.
func (r *rig) finishes(session string) string {
	r.t.Helper()
	messages, err := r.store.Messages(r.ctx, session)
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, m := range messages {
		if m.Role == centurion.RoleAssistant {
			out = append(out, m.Finish)
		}
	}
	return strings.Join(out, " ")
}

// state returns how a session stands, which takes no time.
func (r *rig) state(id string) control.State {
	r.t.Helper()
	began := time.Now()
	s, err := r.host.Control.State(r.ctx, id)
	if err != nil {
		r.t.Error(err)
	}
	equal(r.t, "asking for the state takes", time.Since(began), 0)
	return s
}

// OPAL-41, LOOP-10, LOOP-42, LOOP-43, LOOP-44, LOOP-45, LOOP-46, C-20: an abort ends the tool that runs and the turn, not
// the session: what was left is answered with «Cancelled», all is stored, and nothing goes on by itself. Without a person
// the mission pauses.
func TestAbortDuringTools(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(call("bash", args{"command": "build 9m"}), call("bash", args{"command": "build 8m"})), say("again"))}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(time.Second)
		began := time.Now()
		if err := r.host.Control.Abort(r.ctx, m.Session, "enough"); err != nil {
			t.Error(err)
		}
		equal(t, "aborting takes", time.Since(began), 0)
		if got := r.results(m.ID, "bash"); len(got) != 2 || got[0] != "Cancelled" || got[1] != "Cancelled" {
			t.Errorf("results %q", got)
		}
		equal(t, "the second ran", r.shell.times("build 8m"), 0)
		equal(t, "finish", r.finishes(m.Session), centurion.FinishCancelled)
		stopped := l.settled()
		r.is(stopped, centurion.MissionPaused, "stopped by a person: enough")
		equal(t, "told", r.count(m.ID, centurion.EventSessionAborted), 1)
		equal(t, "requests", len(r.requests("commander")), 1)
		r.is(r.run(m.ID), centurion.MissionCompleted, "")
		equal(t, "finish", r.finishes(m.Session), centurion.FinishCancelled+" "+centurion.FinishStop)
		if s := r.state(m.Session); s.Activity != agent.Ended {
			t.Errorf("state %+v", s)
		}
	})
}

// OPAL-41, SUB-26: an abort ends the request that streams, a wait before a retry, and the wait for a person's permission.
func TestAbortElsewhere(t *testing.T) {
	for name, test := range map[string]struct {
		answer scripted.Answer
		waits  agent.Wait
		ask    string
	}{
		"a request": {after(100*time.Second, say("late")), agent.WaitModel, ""},
		"a retry":   {scripted.Answer{Error: &scripted.Error{Status: 400, Message: "messages.1: tool_use ids were found without tool_result blocks"}}, agent.WaitRetry, ""},
		"a person":  {bash("rm x"), agent.WaitPerson, "ask"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{"commander": func(scripted.Request) scripted.Answer { return test.answer }}, func(r *rig) {
				if test.ask != "" {
					r.cfg.Rules = nil
					r.restart()
				}
				m := r.start(centurion.MissionOptions{Ask: test.ask})
				l := r.live(m.ID)
				time.Sleep(2 * time.Second)
				s := r.state(m.ID)
				equal(t, "activity", s.Activity, agent.Busy)
				equal(t, "waits for", s.Waits, test.waits)
				if err := r.host.Control.Abort(r.ctx, m.ID, ""); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if test.ask != "" {
					s := r.state(m.ID)
					equal(t, "then", fmt.Sprint(s.Activity, " ", s.Waits), "idle person")
					l.cancel(centurion.ErrShutdown)
				}
				r.is(l.settled(), centurion.MissionPaused, "")
				if f := r.finishes(m.Session); strings.Contains(f, centurion.FinishStop) {
					t.Errorf("finishes %q", f)
				}
			})
		})
	}
}

// LOOP-86: what was queued survives an abort and is answered next, by turns of its own.
func TestAbortKeepsQueue(t *testing.T) {
	bubble(t, map[string]script{"commander": counts}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(time.Second)
		one := r.prompt(&g, mail.Post{To: m.ID, Text: "one", Queue: true})
		synctest.Wait()
		two := r.prompt(&g, mail.Post{To: m.ID, Text: "two", Queue: true})
		synctest.Wait()
		if err := r.host.Control.Abort(r.ctx, m.ID, ""); err != nil {
			t.Error(err)
		}
		equal(t, "one", (<-one).reply.Text, "answer to one")
		equal(t, "two", (<-two).reply.Text, "answer to two")
		r.is(l.settled(), centurion.MissionCompleted, "")
		g.Wait()
		equal(t, "finishes", r.finishes(m.Session), "cancelled stop stop")
	})
}

// Where a person is there, an aborted Commander waits for its word: neither a countdown nor a result nor a new host wakes it.
func TestAbortWaitsForPerson(t *testing.T) {
	for _, way := range []string{"", byHandover, byKill} {
		t.Run("host "+way, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(plans("- [ ] T1 One"), work("T1", "x"), call("bash", args{"command": "build 9m"})), do(mark("T1", "done")), do(call("mission_complete", args{"summary": "s"}))),
				"worker":    minutes(2, "made"),
			}, func(r *rig) {
				m := r.start(centurion.MissionOptions{Ask: "ask"})
				l := r.live(m.ID)
				time.Sleep(time.Minute)
				if err := r.host.Control.Abort(r.ctx, m.ID, ""); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Minute)
				if way != "" {
					l.goAway(way)
					l = r.live(m.ID)
				}
				time.Sleep(10 * time.Minute)
				equal(t, "requests", len(r.requests("commander")), 1)
				equal(t, "task", r.task(m.ID, "T1").Status, centurion.TaskCompleted)
				s := r.state(m.ID)
				equal(t, "state", fmt.Sprint(s.Activity, " ", s.Waits), "idle person")
				if way == byHandover {
					r.host.Control.Proceed(m.ID)
				} else {
					r.send(m.ID, "0/", "go on", false)
				}
				r.is(l.wait(), centurion.MissionCompleted, "")
			})
		})
	}
}

// C-20: aborting a task's turn cancels the task, which its parent is told of; what was written to it is answered instead.
func TestAbortTask(t *testing.T) {
	for _, spoken := range []bool{false, true} {
		t.Run(fmt.Sprint("spoken to ", spoken), func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(work("", "x")), say("I wait")),
				"worker": func(q scripted.Request) scripted.Answer {
					if strings.Contains(texts(q), "rather this") {
						return say("did that")
					}
					return bash("build 9m")
				},
			}, func(r *rig) {
				m := r.start(centurion.MissionOptions{})
				l := r.live(m.ID)
				time.Sleep(time.Second)
				if spoken {
					r.send(m.ID, "0/0", "rather this", true)
				}
				task := r.tasks(m.ID)[0]
				if err := r.host.Control.Abort(r.ctx, task.ID, "wrong file"); err != nil {
					t.Error(err)
				}
				r.is(l.settled(), centurion.MissionCompleted, "")
				task = r.tasks(m.ID)[0]
				if spoken {
					equal(t, "result", task.Result, "did that")
					return
				}
				equal(t, "status", task.Status, centurion.TaskCancelled)
				has(t, task.Error.Message, "wrong file")
				asked := r.requests("commander")
				has(t, asked[len(asked)-1].Last(), "wrong file")
			})
		})
	}
}

// What cannot be aborted is refused with what it is.
func TestAbortNothing(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		for id, kind := range map[string]centurion.Kind{m.ID: centurion.KindConflict, m.Session: centurion.KindConflict, "ses_x": centurion.KindNotFound, "tsk_x": centurion.KindNotFound} {
			if err := r.host.Control.Abort(r.ctx, id, ""); centurion.KindOf(err) != kind || centurion.HintOf(err) == "" {
				t.Errorf("%s: %v (%s)", id, err, centurion.HintOf(err))
			}
		}
		if err := r.host.Control.Stop(r.ctx, m.ID, ""); err != nil {
			t.Errorf("stopping what has ended: %v", err)
		}
	})
}

// OPAL-33, OPAL-63, LOOP-9, IKI-33: a session that has asked its model waits for that; of several calls the one that runs longest comes
// first.
func TestStateOfWaits(t *testing.T) {
	bubble(t, map[string]script{
		"lead": func(q scripted.Request) scripted.Answer {
			if q.Step() == 1 {
				return do(call("bash", args{"command": "build 1m"}), call("bash", args{"command": "build 5m"}), call("ask_user", args{"question": "Which?"}))
			}
			return after(time.Minute, say("made"))
		}}, func(r *rig) {
		r.asksPerson()
		m := r.start(centurion.MissionOptions{Agent: "lead", Ask: "ask"})
		l := r.live(m.ID)
		time.Sleep(2 * time.Minute)
		s := r.state(m.ID)
		if len(s.Calls) != 2 || s.Calls[0].Tool != "ask_user" || s.Calls[1].Tool != "bash" {
			t.Errorf("calls %+v", s.Calls)
		}
		equal(t, "with a question", fmt.Sprint(s.Activity, " ", s.Waits), "busy person")
		r.answer(r.waitFor(m.ID, 1)[0].ID, "this")
		time.Sleep(4*time.Minute + 30*time.Second)
		s = r.state(m.ID)
		equal(t, "then", fmt.Sprint(s.Activity, " ", s.Waits, " ", len(s.Calls)), "busy model 0")
		r.is(l.settled(), centurion.MissionCompleted, "")
	})
}

// OPAL-11, OPAL-33, OPAL-36, OPAL-63, SUB-26, LOOP-9, IKI-33, IKI-37: the state is told at once while tools run: what runs where, also in the
// session's children, what waits, and what has ended.
func TestState(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x"), onward), bash("build 5m"), say("I wait")),
		"worker":    steps(do(call("bash", args{"command": "build 9m", "timeout": 600000}))),
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		equal(t, "before", r.state(m.ID).Activity, agent.Stopped)
		l := r.live(m.ID)
		time.Sleep(time.Minute)
		r.send(m.ID, "0/", "later", true)
		s := r.state(m.Session)
		equal(t, "state", fmt.Sprint(s.Activity, " ", s.Waits, " ", s.Queued, " ", s.Agent, " ", s.Model, " ", s.Address), "busy tool 1 commander scripted/scripted 0/")
		if len(s.Calls) != 1 || s.Calls[0].Tool != "bash" || s.Calls[0].ID == "" || s.Calls[0].Message != s.Newest || time.Since(s.Calls[0].Since.Time) < 50*time.Second {
			t.Errorf("calls %+v, newest %s", s.Calls, s.Newest)
		}
		if len(s.Children) != 1 || s.Children[0].Agent != "worker" || len(s.Children[0].Calls) != 1 || s.Children[0].Calls[0].Tool != "bash" {
			t.Errorf("children %+v", s.Children)
		}
		if s.Messages != 3 || s.Tokens.Output == 0 || s.Cost == 0 || len(s.Tools) < 5 {
			t.Errorf("%+v", s)
		}
		task := r.tasks(m.ID)[0]
		w := r.state(task.ID)
		equal(t, "worker", fmt.Sprint(w.Session == task.Session, " ", w.Activity, " ", w.Waits, " ", len(w.Calls), " ", len(w.Children)), "true busy tool 1 0")
		time.Sleep(5 * time.Minute)
		s = r.state(m.ID)
		equal(t, "then", fmt.Sprint(s.Activity, " ", s.Waits, " ", len(s.Calls), " ", s.Queued), "idle child 0 0")
		l.settled()
		equal(t, "at the end", r.state(m.ID).Activity, agent.Ended)
		equal(t, "of the task", r.state(task.ID).Activity, agent.Ended)
	})
}

// OPAL-18, OPAL-66, OPAL-70, OPAL-85, C-20, IKI-76: stopping a task ends it with all below it, in one call; what is beside
// it goes on, and stopping the Commander ends everything.
func TestStopFamily(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(handTo("planner", "", "plan"), work("", "beside")), say("I wait")),
		"planner": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "below") {
				return minutes(8, "seen")(q)
			}
			return steps(do(handTo("planner", "", "below"), handTo("planner", "", "below too")), say("I wait"))(q)
		},
		"worker": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "beside") {
				return minutes(3, "made")(q)
			}
			return bash("build 8m")
		},
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(time.Minute)
		began := time.Now()
		if err := r.host.Control.Stop(r.ctx, "0/0", ""); centurion.KindOf(err) != centurion.KindNotFound {
			t.Errorf("an address without its mission: %v", err)
		}
		if err := r.host.Control.Stop(r.ctx, r.tasks(m.ID)[0].Session, "not wanted"); err != nil {
			t.Error(err)
		}
		equal(t, "stopping takes", time.Since(began), 0)
		for _, task := range r.tasks(m.ID) {
			want := centurion.TaskCancelled
			if strings.Contains(task.Prompt, "beside") {
				want = centurion.TaskRunning
			}
			equal(t, task.Agent+" "+task.Prompt, task.Status, want)
		}
		if n := len(r.host.running(m.ID).st.Runs()); n != 1 {
			t.Errorf("%d tasks live", n)
		}
		if err := r.host.Control.Stop(r.ctx, m.Session, "for today"); err != nil {
			t.Error(err)
		}
		r.is(l.settled(), centurion.MissionPaused, "for today")
		r.is(r.run(m.ID), centurion.MissionCompleted, "")
	})
}

// OPAL-18: a task whose end is recorded, but which is still at work on what comes after, is waited for by who stops it.
func TestStopAwaitsTheEnd(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(work("", "x")), bash("build 20m")), "worker": minutes(1, "made")}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(2 * time.Minute)
		task := r.tasks(m.ID)[0]
		equal(t, "task", task.Status, centurion.TaskCompleted)
		at := r.host.running(m.ID)
		ctx, cancel := context.WithCancelCause(r.ctx)
		run := &state.Run{ID: task.ID, Ctx: ctx, Cancel: cancel, Done: make(chan struct{})}
		at.st.Add(run)
		var g guard.Group
		g.Go("rest of the task", func() error {
			<-ctx.Done()
			time.Sleep(time.Minute)
			at.st.Drop(run)
			close(run.Done)
			return nil
		})
		began := time.Now()
		if err := r.host.Control.Stop(r.ctx, task.Session, "not wanted"); err != nil {
			t.Error(err)
		}
		equal(t, "stopping takes", time.Since(began), time.Minute)
		cancel(nil)
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		equal(t, "task", r.tasks(m.ID)[0].Status, centurion.TaskCompleted)
		r.is(l.settled(), centurion.MissionCompleted, "")
	})
}

var (
	anyID   = regexp.MustCompile(`\b(msn|ses|msg|prt|tsk|dlv|per|que|rcp)_\w+|\bcall_\d+_\d+`)
	anyCost = regexp.MustCompile(`"(tokens|usage)":\{.*?\}\}?|"cost":[\d.e-]+,?|Cost: .*? tokens`) // they depend on how long the path of the project is
)

// stories returns the events of a mission by the sessions that they belong to, without what differs between two runs. What
// two of its sessions do at the same moment has no order.
func (r *rig) stories(mission string) string {
	r.t.Helper()
	type one struct {
		text strings.Builder
		seen map[string]string
	}
	var order []string
	of := map[string]*one{}
	for _, e := range r.events(mission) {
		name, _, _ := strings.Cut(string(e.Type), ".")
		if name != "mission" {
			name = e.Session
		}
		s := of[name]
		if s == nil {
			s = &one{seen: map[string]string{}}
			of[name], order = s, append(order, name)
		}
		line := fmt.Sprint(e.Time.UnixNano(), " ", e.Type, " ", e.Session, " ", e.Task, " ", string(e.Data), "\n")
		line = strings.ReplaceAll(anyCost.ReplaceAllString(line, "-"), r.dir, "DIR")
		s.text.WriteString(anyID.ReplaceAllStringFunc(line, func(id string) string {
			if s.seen[id] == "" {
				s.seen[id] = fmt.Sprint("#", len(s.seen))
			}
			return s.seen[id]
		}))
	}
	var all strings.Builder
	for _, name := range order {
		all.WriteString(of[name].text.String() + "\n")
	}
	return all.String()
}

// OPAL-1, OPAL-2, OPAL-4, OPAL-61, OPAL-77, OPAL-84: whatever becomes of another mission of the same host, the events of a
// mission are those of a run in which it is alone, to the nanosecond.
func TestMissionsAreIsolated(t *testing.T) {
	quiet := func(q scripted.Request) scripted.Answer {
		return steps(do(work("", "x")), bash("build 3m"), say("I wait"))(q)
	}
	var mu sync.Mutex
	stories := map[string]string{}
	run := func(name string, other scripted.Answer, worker scripted.Answer, do func(r *rig, id string)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				noisy := func(q scripted.Request) bool { return strings.Contains(texts(q), "make noise") }
				r := newRig(t, map[string]script{
					"commander": func(q scripted.Request) scripted.Answer {
						if noisy(q) {
							return other
						}
						return quiet(q)
					},
					"worker": func(q scripted.Request) scripted.Answer {
						if noisy(q) {
							return worker
						}
						return steps(bash("build 1m"), say("made"))(q)
					},
				})
				r.cfg.Model = crashingModel(r)
				r.restart()
				var g guard.Group
				if do != nil {
					m, err := r.host.Start(r.ctx, "make noise", centurion.MissionOptions{})
					if err != nil {
						t.Fatal(err)
					}
					g.Go("noise", func() error { _, err := r.host.Run(r.ctx, m.ID); return err })
					g.Go("trouble", func() error { time.Sleep(time.Minute); do(r, m.ID); return nil })
				}
				synctest.Wait()
				m := r.start(centurion.MissionOptions{})
				rec, err := r.host.Run(r.ctx, m.ID)
				if err != nil || rec.Status != centurion.MissionCompleted {
					t.Errorf("%s, %v", rec.Status, err)
				}
				mu.Lock()
				stories[name] = r.stories(m.ID)
				mu.Unlock()
				for _, id := range r.host.Running() {
					if err := r.host.Control.Stop(r.ctx, id, ""); err != nil {
						t.Error(err)
					}
				}
				if err := g.Wait(); err != nil {
					t.Error(err)
				}
			})
		})
	}
	hog := do(work("", "make noise"), call("bash", args{"command": "sleep 20m"}))
	run("alone", say(""), say(""), nil)
	run("hogs its tools", hog, bash("build 20m"), func(*rig, string) {})
	run("crashes", say("crash now"), say(""), func(*rig, string) {})
	run("is stopped", hog, bash("build 20m"), func(r *rig, id string) { _ = r.host.Control.Stop(r.ctx, id, "") })
	run("is aborted", hog, bash("build 20m"), func(r *rig, id string) { _ = r.host.Control.Abort(r.ctx, id, "") })
	for name, got := range stories {
		if got != stories["alone"] {
			t.Errorf("%s:\n%s\nalone:\n%s", name, got, stories["alone"])
		}
	}
	if len(stories["alone"]) < 1000 {
		t.Error("nothing was compared")
	}
}
