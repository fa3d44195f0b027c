package orchestrator

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/event"
	"centurion/guard"
	"centurion/orchestrator/mail"
	"centurion/permission"
	"centurion/provider/scripted"
	"centurion/sandbox"
)

// countdowns returns when a mission's countdowns were told, and checks how long they are.
func (r *rig) countdowns(mission string) []time.Time {
	r.t.Helper()
	var out []time.Time
	for _, e := range r.events(mission, centurion.EventMissionUpdated) {
		d, err := event.Decode[event.MissionData](e)
		if err != nil {
			r.t.Fatal(err)
		}
		if d.Countdown > 0 {
			equal(r.t, "countdown told", d.Countdown, int64(2000))
			out = append(out, e.Time.Time)
		}
	}
	return out
}

// idleAt is a commander that leaves its only item open, and takes it up in its third step.
func idleAt(then ...scripted.Answer) script {
	if len(then) == 0 {
		then = []scripted.Answer{do(call("update_todo", args{"items": []args{{"id": "T1", "status": "done"}}})), say("done")}
	}
	return steps(append([]scripted.Answer{do(plans("- [ ] T1 One")), say("I stop here")}, then...)...)
}

const continued = "The mission is not finished"

// ORCH-91, ORCH-88, ORCH-25, ORCH-111: an idle mission with open items counts down visibly, for exactly two seconds, and
// then gets one more turn; however often it is poked meanwhile, it is decided once.
func TestCountdown(t *testing.T) {
	for _, poked := range []bool{false, true} {
		t.Run(fmt.Sprint("poked ", poked), func(t *testing.T) {
			bubble(t, map[string]script{"commander": idleAt()}, func(r *rig) {
				var g guard.Group
				began := time.Now()
				m := r.start(centurion.MissionOptions{})
				done := r.inBackground(&g, m.ID)
				if poked {
					for range 19 {
						time.Sleep(100 * time.Millisecond)
						r.host.running(m.ID).st.Notify()
					}
				} else {
					time.Sleep(DefaultCountdown - time.Millisecond)
				}
				synctest.Wait()
				equal(t, "requests before its end", len(r.requests("commander")), 2)
				r.is(<-done, centurion.MissionCompleted, "")
				g.Wait()
				equal(t, "took", time.Since(began), DefaultCountdown)
				asked := r.requests("commander")
				equal(t, "requests", len(asked), 4)
				has(t, asked[2].Last(), continued)
				if told := r.countdowns(m.ID); len(told) != 1 || !told[0].Equal(began) {
					t.Errorf("countdowns told at %v", told)
				}
			})
		})
	}
}

// ORCH-26, ORCH-92, ORCH-104, C-19: a person's message ends the countdown and is the next turn. A peer stops for ever when one
// comes shortly after the session has gone idle: here it goes on from there.
func TestMessageCancelsCountdown(t *testing.T) {
	for _, at := range []time.Duration{0, time.Millisecond, 200 * time.Millisecond, time.Second, DefaultCountdown - time.Millisecond} {
		t.Run(at.String(), func(t *testing.T) {
			bubble(t, map[string]script{"commander": idleAt(say("I have heard it"),
				do(call("update_todo", args{"items": []args{{"id": "T1", "status": "done"}}})), say("done"))}, func(r *rig) {
				var g guard.Group
				began := time.Now()
				m := r.start(centurion.MissionOptions{})
				done := r.inBackground(&g, m.ID)
				synctest.Wait()
				time.Sleep(at)
				r.send(m.ID, "0/", "do it another way", false)
				synctest.Wait()
				asked := r.requests("commander")
				equal(t, "requests", len(asked), 3)
				has(t, texts(asked[2]), "user: do it another way")
				if strings.Contains(texts(asked[2]), continued) {
					t.Error("it was continued as well")
				}
				r.is(<-done, centurion.MissionCompleted, "")
				g.Wait()
				equal(t, "took", time.Since(began), at+DefaultCountdown)
				told := r.countdowns(m.ID)
				if len(told) != 2 || told[1].Sub(began) != at {
					t.Errorf("countdowns told at %v", told)
				}
				asked = r.requests("commander")
				has(t, asked[3].Last(), continued)
			})
		})
	}
}

// ORCH-26, ORCH-92, C-19: what the host or a parent injects ends no countdown. It is read in the turn that follows.
func TestInjectedMessageCancelsNoCountdown(t *testing.T) {
	for _, origin := range []centurion.Origin{centurion.OriginHost, centurion.OriginParent} {
		t.Run(string(origin), func(t *testing.T) {
			bubble(t, map[string]script{"commander": idleAt()}, func(r *rig) {
				var g guard.Group
				began := time.Now()
				m := r.start(centurion.MissionOptions{})
				done := r.inBackground(&g, m.ID)
				time.Sleep(time.Second)
				if _, err := r.host.Mail.Send(r.ctx, mail.Post{Mission: m.ID, To: "0/", Text: "by the way", Origin: origin}); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				equal(t, "requests", len(r.requests("commander")), 2)
				r.is(<-done, centurion.MissionCompleted, "")
				g.Wait()
				equal(t, "took", time.Since(began), DefaultCountdown)
				equal(t, "countdowns", len(r.countdowns(m.ID)), 1)
				asked := r.requests("commander")
				has(t, texts(asked[2]), "by the way", continued)
			})
		})
	}
}

// ORCH-93: no countdown while a task runs or waits, a failure is being recovered, or a person is asked.
func TestNoCountdownWhile(t *testing.T) {
	t.Run("a task runs", func(t *testing.T) {
		bubble(t, map[string]script{
			"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two")), do(work("T1", "x")), say("I wait"), say("told"),
				do(call("update_todo", args{"items": []args{{"id": "T2", "status": "done"}}})), say("done")),
			"worker": minutes(10, "made"),
		}, func(r *rig) {
			m := r.mission(centurion.MissionOptions{})
			r.is(m, centurion.MissionCompleted, "")
			end := r.task(m.ID, "T1").Ended
			if told := r.countdowns(m.ID); len(told) != 1 || told[0].Before(end.Time) {
				t.Errorf("countdowns told at %v, the task ended at %v", told, end)
			}
		})
	})
	t.Run("a failure is recovered", func(t *testing.T) {
		failed := 0
		bubble(t, map[string]script{"commander": func(q scripted.Request) scripted.Answer {
			if q.Step() == 2 && failed < 2 {
				failed++
				return scripted.Answer{Error: &scripted.Error{Status: 500, Message: "no"}}
			}
			return idleAt()(q)
		}}, func(r *rig) {
			m := r.mission(centurion.MissionOptions{})
			r.is(m, centurion.MissionCompleted, "")
			retries := append(r.events(m.ID, centurion.EventProviderRetry), r.events(m.ID, centurion.EventTaskRetrying)...)
			told := r.countdowns(m.ID)
			if len(retries) == 0 || len(told) != 1 || !told[0].After(retries[len(retries)-1].Time.Time) {
				t.Errorf("%d retries, countdowns told at %v", len(retries), told)
			}
		})
	})
	t.Run("a person is asked", func(t *testing.T) {
		bubble(t, map[string]script{
			"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two")), do(work("T1", "x")), say("I wait"), say("told"),
				do(call("update_todo", args{"items": []args{{"id": "T2", "status": "done"}}})), say("done")),
			"worker": steps(do(call("bash", args{"command": "build 1s", "description": "x"})), say("made")),
		}, func(r *rig) {
			r.cfg.Rules = func(agent string) []permission.Level {
				if agent == "worker" {
					return []permission.Level{{Name: "test", Rules: []permission.Rule{{Permission: "*", Pattern: "*", Action: permission.Allow},
						{Permission: "bash", Pattern: "build*", Action: permission.Ask}}}}
				}
				return rules(permission.Allow)
			}
			r.restart()
			var g guard.Group
			m := r.start(centurion.MissionOptions{Ask: "ask"})
			done := r.inBackground(&g, m.ID)
			time.Sleep(time.Hour)
			synctest.Wait()
			equal(t, "countdowns while it waits", len(r.countdowns(m.ID)), 0)
			asks, err := r.store.Asks(r.ctx, m.ID, true)
			if err != nil || len(asks) != 1 {
				t.Fatalf("asks %v, %v", asks, err)
			}
			if err := r.host.Answer(r.ctx, asks[0].ID, "once", sandbox.Peer{}); err != nil {
				t.Error(err)
			}
			r.is(<-done, centurion.MissionCompleted, "")
			g.Wait()
			equal(t, "countdowns", len(r.countdowns(m.ID)), 1)
		})
	})
}

// ORCH-111: the todo list is read again when the countdown ends: what a person has ticked meanwhile is not asked for.
func TestTodoIsReadAgainAfterCountdown(t *testing.T) {
	for _, test := range []struct {
		name, plan string
		requests   int
	}{
		{"done", "# Plan\n- [x] T1 One\n" + passes + "\n", 2},
		{"another item", "# Plan\n" + checked("- [x] T1 One\n- [ ] T9 Nine\n"), 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, map[string]script{"commander": idleAt(do(call("update_todo", args{"items": []args{{"id": "T9", "status": "done"}}})), say("done"))}, func(r *rig) {
				var g guard.Group
				m := r.start(centurion.MissionOptions{})
				done := r.inBackground(&g, m.ID)
				time.Sleep(DefaultCountdown - 10*time.Millisecond) // the watch of the file comes too late for it
				r.write(todoMD, test.plan)
				r.is(<-done, centurion.MissionCompleted, "")
				g.Wait()
				asked := r.requests("commander")
				equal(t, "requests", len(asked), test.requests)
				if test.requests > 2 {
					has(t, asked[2].Last(), "1 item open", "T9 Nine")
				}
			})
		})
	}
}

// ORCH-27: a mission that is stopped while it counts down leaves nothing behind that would go on.
func TestStopEndsCountdown(t *testing.T) {
	bubble(t, map[string]script{"commander": idleAt()}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(time.Second)
		began := time.Now()
		if err := r.host.Control.Cancel(r.ctx, m.ID, ""); err != nil {
			t.Error(err)
		}
		r.is(<-done, centurion.MissionCancelled, "")
		equal(t, "the stop took", time.Since(began), 0) // and not the rest of the countdown
		g.Wait()
		time.Sleep(time.Hour)
		equal(t, "requests", len(r.requests("commander")), 2)
		if _, err := r.host.Mail.Send(r.ctx, mail.Post{Mission: m.ID, To: "0/", Text: "go on"}); centurion.KindOf(err) != centurion.KindConflict {
			t.Errorf("a cancelled mission took a message: %v", err)
		}
	})
}

// ORCH-25, ORCH-88, ORCH-125: the same mission ends the same way whatever the model's thinking time is: with it, batches
// end, messages come and countdowns run at other moments of the host.
func TestThinkingTime(t *testing.T) {
	for _, think := range []time.Duration{0, 500 * time.Millisecond, 2 * time.Second} {
		t.Run(think.String(), func(t *testing.T) {
			slow := func(s script) script {
				return func(q scripted.Request) scripted.Answer { return after(think, s(q)) }
			}
			bubble(t, map[string]script{
				"commander": slow(steps(do(plans("- [ ] T1 One", "- [ ] T2 Two", "- [ ] T3 Three", "  - after: T1, T2")),
					do(work("T1", "x"), work("T2", "y")), say("I wait"), say("both have ended"),
					do(work("T3", "z")), say("I wait again"), do(call("mission_complete", args{"summary": "built"})))),
				"worker": slow(steps(do(call("ls", args{})), say("made"))),
			}, func(r *rig) {
				ctx, cancel := context.WithTimeout(r.ctx, time.Hour)
				defer cancel()
				m := r.runIn(ctx, r.start(centurion.MissionOptions{}).ID)
				r.is(m, centurion.MissionCompleted, "")
				equal(t, "requests", len(r.requests("commander")), 5)
				equal(t, "countdowns", len(r.countdowns(m.ID)), 1)
				equal(t, "tasks", len(r.tasks(m.ID)), 3)
				equal(t, "told", r.count(m.ID, centurion.EventTaskDelivered), 3)
			})
		})
	}
}

// ORCH-102, ORCH-105, ORCH-106, ORCH-107, IKI-5, IKI-69: a mission that is started is told first, its session is tracked under the address
// 0/, and the Commander gets the goal as it was typed and begins without a further word.
func TestFirstMessage(t *testing.T) {
	const goal = "  add a \"rate limit\"\n\tto the API, `fast`\n"
	bubble(t, map[string]script{"commander": steps(say("done"))}, func(r *rig) {
		m, err := r.host.Start(r.ctx, goal, centurion.MissionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r.hasWritten(m.ID)
		r.is(r.run(m.ID), centurion.MissionCompleted, "")
		all := r.events(m.ID)
		equal(t, "first event", all[0].Type, centurion.EventMissionStarted)
		d, err := event.Decode[event.MissionData](all[0])
		if err != nil || d.Goal != goal || all[0].Session != m.Session {
			t.Errorf("told %+v of session %s, %v", d, all[0].Session, err)
		}
		equal(t, "second event", all[1].Type, centurion.EventSessionCreated)
		sessions, err := r.store.Sessions(r.ctx, m.ID)
		if err != nil || len(sessions) != 1 || sessions[0].ID != m.Session {
			t.Fatalf("sessions %+v, %v", sessions, err)
		}
		equal(t, "agent", sessions[0].Agent, "commander")
		equal(t, "address", sessions[0].Metadata.Address, "0/")
		asked := r.requests("commander")
		equal(t, "requests", len(asked), 1)
		equal(t, "what it got", asked[0].First(), goal)
		messages, err := r.store.Messages(r.ctx, m.Session)
		if err != nil || messages[0].Text() != goal || messages[0].Origin != centurion.OriginPerson {
			t.Errorf("messages %+v, %v", messages, err)
		}
	})
}
