package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/provider"
	"centurion/provider/scripted"
	"centurion/store"
)

// SUB-9, SUB-12, C-5: a sub-agent from which nothing comes for the idle time is stopped with its commands, and the error
// says what it had done; one that is slow but alive is not, however long it takes, and neither is one that waits for a
// person.
func TestSubAgentIdle(t *testing.T) {
	slow := func(q scripted.Request) scripted.Answer {
		switch {
		case strings.Contains(q.First(), "asks") && q.Step() == 1:
			return do(call("bash", args{"command": "build 1s"}))
		case strings.Contains(q.First(), "slow") && q.Step() < 8:
			return after(100*time.Second, do(call("ls", args{})))
		case strings.Contains(q.First(), "hangs"):
			return do(call("ls", args{}), call("read", args{"filePath": "none.txt"}), call("bash", args{"command": "build 9m", "timeout": 600000}))
		}
		return say("fine")
	}
	for _, test := range []struct {
		prompt string
		idle   time.Duration
		took   time.Duration
		want   []string
	}{
		{"it hangs", 0, 120 * time.Second, []string{"the sub-agent failed (timeout): nothing has come from it for 2m, since a call of bash. give it a smaller task, or raise sub_agent_idle", "What it had done: 3 tool calls: ls ×1, read ×1, bash ×1; ",
			"- ls {", `- read {"filePath":"none.txt"}: `, `- bash {`}},
		{"it hangs", 30 * time.Second, 30 * time.Second, []string{"nothing has come from it for 30s"}},
		{"it is slow", 0, 700 * time.Second, []string{"fine"}},
		{"it asks", 0, 600 * time.Second, []string{"fine"}},
	} {
		t.Run(test.prompt+test.idle.String(), func(t *testing.T) {
			bubble(t, family(steps(do(sub(test.prompt, nil)), say("done")), slow), func(r *rig) {
				if test.prompt == "it asks" {
					r.cfg.Rules = askForShell
				}
				r.cfg.SubAgentIdle = test.idle
				r.restart()
				o := assistant()
				o.Ask = "ask"
				began := time.Now()
				l := r.live(r.start(o).ID)
				if test.prompt == "it asks" {
					ask := r.oneAsk(l.id)
					time.Sleep(600 * time.Second)
					r.answer(ask.ID, "once")
				}
				m := l.settled()
				r.is(m, centurion.MissionCompleted, "")
				has(t, r.results(m.ID, "sub_agent")[0], test.want...)
				if d := time.Since(began); d < test.took || d > test.took+5*time.Second {
					t.Errorf("it took %v", d)
				}
				if strings.Contains(test.prompt, "hangs") {
					k := r.tasks(m.ID)[0]
					equal(t, "attempts", k.Attempt, 1)
					equal(t, "its end is told", r.told(m.Session, k.ID), 0)
				}
				r.adds(m.ID)
			})
		})
	}
}

// panicking is a model whose answers to sub-agents crash.
type panicking struct{ *provider.Client }

func (p panicking) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	if req.Parent != "" {
		panic("the sub-agent broke")
	}
	return p.Client.Stream(ctx, req)
}

// OPAL-74, SUB-10, C-22: a sub-agent that crashes is its parent's tool error at once and is not started again; one that fails
// for good says with what. The parent goes on.
func TestSubAgentFails(t *testing.T) {
	root := steps(do(sub("break", nil)), say("I go on"))
	t.Run("crash", func(t *testing.T) {
		bubble(t, family(root, nil), func(r *rig) {
			client := provider.New(provider.Endpoint{Model: ref, BaseURL: scripted.URL, HTTP: r.http})
			r.cfg.Model = func(string) (Model, error) { return Model{Client: panicking{client}, Ref: ref}, nil }
			r.restart()
			began := time.Now()
			m := r.mission(assistant())
			r.is(m, centurion.MissionCompleted, "")
			equal(t, "summary", m.Summary, "I go on")
			has(t, r.results(m.ID, "sub_agent")[0], "the sub-agent failed (crashed): ", "crashed: the sub-agent broke", "What it had done: 0 tool calls")
			equal(t, "attempts", r.tasks(m.ID)[0].Attempt, 1)
			equal(t, "repetitions", r.count(m.ID, centurion.EventTaskRetrying), 0)
			if d := time.Since(began); d > time.Second {
				t.Errorf("it took %v", d)
			}
		})
	})
	t.Run("failure", func(t *testing.T) {
		bubble(t, family(root, func(q scripted.Request) scripted.Answer {
			if q.Step() == 1 {
				a := do(call("ls", args{}))
				a.Say = "I look around."
				return a
			}
			return scripted.Answer{Error: &scripted.Error{Status: 401, Message: "no such key"}}
		}), func(r *rig) {
			m := r.mission(assistant())
			r.is(m, centurion.MissionCompleted, "")
			has(t, r.results(m.ID, "sub_agent")[0], "(auth): ", "What it had done: 1 tool call: ls ×1", "\nIts last words:\nI look around.")
			meta := r.part(m.Session, "sub_agent", 0).State.Metadata
			if meta["sessionId"] != r.tasks(m.ID)[0].Session || meta["parentSessionId"] != m.Session {
				t.Errorf("metadata %v", meta)
			}
			r.adds(m.ID)
		})
	})
}

// What was recorded of a sub-agent that failed is its result; its last text stands in only where nothing was.
func TestSubAgentKeepsItsResult(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		rec, tasks := r.past(centurion.MissionRunning, 2, func(t *centurion.Task) { t.Status, t.Sub = centurion.TaskFailed, &centurion.SubAgent{} })
		r.edit(tasks[0].ID, func(t *centurion.Task) { t.Result = "recorded" })
		r.edit(tasks[1].ID, func(t *centurion.Task) { t.Result = "" })
		r.update(func(tx *store.Tx) error {
			for i := range tasks {
				msg := centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: tasks[i].Session, Role: centurion.RoleAssistant}
				part := centurion.Part{ID: centurion.NewID(centurion.PrefixPart), SessionID: tasks[i].Session, MessageID: msg.ID, Type: centurion.PartText, Text: "said last"}
				if err := errors.Join(tx.PutMessage(&msg), tx.PutPart(&part)); err != nil {
					return err
				}
			}
			return nil
		})
		m := newMission(r.ctx, r.host, rec)
		defer m.drop(nil)
		for i, want := range []string{"recorded", "said last"} {
			rep, err := m.opener.Tools.SubAgents(nil).Join(r.ctx, nil, tasks[i].ID)
			if err != nil || rep.Task.Result != want {
				t.Errorf("%q, want %q, %v", rep.Task.Result, want, err)
			}
		}
	})
}

// OPAL-66, OPAL-70, LOOP-61: when the parent's turn is stopped its sub-agents stop with it, at once, and nothing of
// them is told later; what they spent stays counted.
func TestSubAgentTurnStopped(t *testing.T) {
	root := func(q scripted.Request) scripted.Answer {
		if len(q.Results()) > 0 {
			return say("I was stopped")
		}
		return do(sub("one", nil), sub("two", nil))
	}
	bubble(t, family(root, steps(do(call("ls", args{})), do(call("bash", args{"command": "build 9m", "timeout": 600000})))), func(r *rig) {
		l := r.live(r.start(assistant()).ID)
		time.Sleep(30 * time.Second)
		stopped := time.Now()
		end := r.host.running(l.id).loop.Root.Pulse.Take()
		end(&centurion.Error{Kind: centurion.KindStall, Msg: "the test stops the turn"}) // which is tried again after 5 seconds
		m := l.settled()
		r.is(m, centurion.MissionCompleted, "")
		for _, k := range r.tasks(m.ID) {
			if k.Status != centurion.TaskCancelled || k.Ended.Sub(stopped) > time.Second {
				t.Errorf("%s is %s, %v after", k.Title, k.Status, k.Ended.Sub(stopped))
			}
			equal(t, "its end is told", r.told(m.Session, k.ID), 0)
		}
		equal(t, "results", strings.Join(r.results(m.ID, "sub_agent"), ", "), "Cancelled, Cancelled")
		r.adds(m.ID)
	})
}

// SUB-12, LOOP-61: a mission that is cancelled ends its sub-agents; what they spent stands in their parent's total.
func TestSubAgentMissionCancelled(t *testing.T) {
	bubble(t, family(steps(do(sub("one", nil))), steps(do(call("ls", args{})), do(call("bash", args{"command": "build 9m", "timeout": 600000})))), func(r *rig) {
		l := r.live(r.start(assistant()).ID)
		time.Sleep(30 * time.Second)
		if err := r.host.Control.Cancel(r.ctx, l.id, "enough"); err != nil {
			t.Error(err)
		}
		m := l.settled()
		r.is(m, centurion.MissionCancelled, "enough")
		equal(t, "task", r.tasks(m.ID)[0].Status, centurion.TaskCancelled)
		r.adds(m.ID)
	})
}

// SUB-7, OPAL-71, C-22: a sub-agent outlives its host. After a kill the call finds by its id the child that it started
// and waits for it; where the host said good-bye, the child goes on and its result follows. Either way it works once and
// its result is told once.
func TestSubAgentRestart(t *testing.T) {
	for _, way := range []string{byKill, byShutdown, byHandover} {
		for _, at := range []time.Duration{5 * time.Second, 40 * time.Second} {
			t.Run(fmt.Sprint(way, at), func(t *testing.T) {
				root := func(q scripted.Request) scripted.Answer {
					if q.Step() == 1 {
						return do(sub("one", nil), sub("two", nil))
					}
					return say("I know")
				}
				bubble(t, family(root, func(q scripted.Request) scripted.Answer {
					if q.Step() == 1 {
						return after(20*time.Second, do(call("write", args{"filePath": strings.Fields(q.First())[3] + ".txt", "content": "x"})))
					}
					return after(40*time.Second, say("result of "+strings.Fields(q.First())[3]))
				}), func(r *rig) {
					l := r.live(r.start(assistant()).ID)
					time.Sleep(at)
					l.goAway(way)
					m := r.run(l.id)
					r.is(m, centurion.MissionCompleted, "nothing to verify")
					equal(t, "tasks", len(r.tasks(m.ID)), 2)
					for _, k := range r.tasks(m.ID) {
						equal(t, "status", k.Status, centurion.TaskCompleted)
						inCall := strings.Count(strings.Join(r.results(m.ID, "sub_agent"), "\n"), k.Result)
						equal(t, "times "+k.Result+" is told", inCall+r.told(m.Session, k.Result), 1)
						if way == byKill {
							equal(t, "times it stands in the call", inCall, 1)
						}
					}
					r.adds(m.ID)
				})
			})
		}
	}
}
