package orchestrator

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/state"
	"centurion/permission"
	"centurion/provider/scripted"
	"centurion/sandbox"
	"centurion/store"
)

// askForShell are rules that allow everything but shell commands, which they ask for.
func askForShell(string) []permission.Level {
	return append(rules(permission.Allow), permission.Level{Name: "asks", Rules: []permission.Rule{{Permission: "bash", Pattern: "*", Action: permission.Ask}}})
}

func (r *rig) asksForShell() {
	r.cfg.Rules = askForShell
	r.restart()
}

// open returns the asks that wait.
func (r *rig) open(mission string) []store.Ask {
	r.t.Helper()
	synctest.Wait()
	asks, err := r.store.Asks(r.ctx, mission, true)
	if err != nil {
		r.t.Fatal(err)
	}
	return asks
}

// oneAsk waits until something asks, and returns it.
func (r *rig) oneAsk(mission string) store.Ask {
	r.t.Helper()
	for range 100 {
		if asks := r.open(mission); len(asks) == 1 {
			return asks[0]
		}
		time.Sleep(time.Second)
	}
	r.t.Fatalf("nothing asks, or too much does: %+v", r.open(mission))
	return store.Ask{}
}

func (r *rig) answer(id, answer string) {
	r.t.Helper()
	if err := r.host.Answer(r.ctx, id, answer, sandbox.Peer{}); err != nil {
		r.t.Error(err)
	}
}

// O5: in a headless run a child's ask is answered by policy, at once.
func TestHeadlessAsk(t *testing.T) {
	for _, policy := range []string{"deny", ""} {
		t.Run("policy "+policy, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(work("", "x")), say("I wait")),
				"worker":    steps(bash("build 10s"), say("refused")),
			}, func(r *rig) {
				r.asksForShell()
				began := time.Now()
				m := r.mission(centurion.MissionOptions{Ask: policy})
				r.is(m, centurion.MissionCompleted, "")
				equal(t, "took", time.Since(began).Round(time.Second), 0)
				has(t, r.results(m.ID, "bash")[0], "not allowed: bash build 10s", "there is no one to ask", "another approach")
				equal(t, "runs", r.shell.times("build 10s"), 0)
				equal(t, "asked", r.count(m.ID, centurion.EventPermissionAsked), 1)
				asks, err := r.store.Asks(r.ctx, m.ID, false)
				if err != nil || len(asks) != 1 || asks[0].By != "policy" || asks[0].Answer != "reject" || asks[0].Answered.IsZero() {
					t.Errorf("asks %+v, %v", asks, err)
				}
				replied := r.events(m.ID, centurion.EventPermissionReplied)
				if len(replied) != 1 || replied[0].Task != r.tasks(m.ID)[0].ID {
					t.Fatalf("replied %+v", replied)
				}
				has(t, string(replied[0].Data), `"answer":"reject"`, `"by":"policy"`)
			})
		})
	}
}

// A person is asked: the task waits, names what for, and gives its slot to others meanwhile.
func TestPersonIsAsked(t *testing.T) {
	for _, test := range []struct {
		answer string
		asks   int // for the same command twice
		runs   int
		says   string
	}{{"once", 2, 2, ""}, {"always", 1, 2, ""}, {"reject", 2, 0, "a person refused it"}, {"use make", 2, 0, "a person refused it: use make"}} {
		t.Run(test.answer, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(work("", "first"), work("", "second")), say("I wait")),
				"worker": func(r scripted.Request) scripted.Answer {
					if strings.Contains(r.First(), "second") {
						return after(time.Minute, say("two"))
					}
					return steps(bash("build 1s"), bash("build 1s"))(r)
				},
			}, func(r *rig) {
				r.cfg.PerAgent = 1
				r.asksForShell()
				var g guard.Group
				m := r.start(centurion.MissionOptions{Ask: "ask"})
				done := r.inBackground(&g, m.ID)
				for i := range test.asks {
					ask := r.oneAsk(m.ID)
					first := r.tasks(m.ID)[0]
					equal(t, "status", first.Status, centurion.TaskWaiting)
					has(t, first.Reason, "permission: build 1s")
					equal(t, "ask of", ask.Task, first.ID)
					if i == 0 {
						equal(t, "the other task", r.tasks(m.ID)[1].Status, centurion.TaskRunning)
						time.Sleep(time.Hour) // waiting for a person is no failure
					}
					r.answer(ask.ID, test.answer)
					if err := r.host.Answer(r.ctx, ask.ID, "once", sandbox.Peer{}); centurion.KindOf(err) != centurion.KindNotFound {
						t.Errorf("a second answer: %v", err)
					}
				}
				r.is(<-done, centurion.MissionCompleted, "")
				g.Wait()
				equal(t, "asked", r.count(m.ID, centurion.EventPermissionAsked), test.asks)
				equal(t, "runs", r.shell.times("build 1s"), test.runs)
				for _, got := range r.results(m.ID, "bash") {
					has(t, got, test.says)
				}
			})
		})
	}
}

// Several calls of one answer may wait for a person at the same time; the slot is given back once and taken once.
func TestSeveralAsksAtOnce(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker":    steps(do(call("bash", args{"command": "cat a"}), call("bash", args{"command": "cat b"}), call("bash", args{"command": "cat c"}))),
	}, func(r *rig) {
		r.asksForShell()
		var g guard.Group
		m := r.start(centurion.MissionOptions{Ask: "ask"})
		done := r.inBackground(&g, m.ID)
		time.Sleep(time.Second)
		asks := r.open(m.ID)
		equal(t, "asks", len(asks), 3)
		for i, a := range asks {
			equal(t, "status", r.tasks(m.ID)[0].Status, centurion.TaskWaiting)
			r.room(fmt.Sprintf("the host, while %d asks wait,", 3-i), r.host.slots.Pool(99, 99), "probe", centurion.ModelRef{}, DefaultWorkers)
			r.answer(a.ID, "once")
			synctest.Wait()
		}
		r.runs++
		m = <-done
		g.Wait()
		r.check(m)
		r.is(m, centurion.MissionCompleted, "")
	})
}

// Of several who answer at the same time one is heard.
func TestAnswersAtTheSameTime(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker":    steps(bash("build 1s")),
	}, func(r *rig) {
		r.asksForShell()
		var g, answers guard.Group
		m := r.start(centurion.MissionOptions{Ask: "ask"})
		done := r.inBackground(&g, m.ID)
		ask := r.oneAsk(m.ID)
		var heard atomic.Int32
		for range 8 {
			answers.Go("answer", func() error {
				if r.host.Answer(r.ctx, ask.ID, "once", sandbox.Peer{}) == nil {
					heard.Add(1)
				}
				return nil
			})
		}
		if err := answers.Wait(); err != nil {
			t.Error(err)
		}
		equal(t, "heard", heard.Load(), 1)
		r.is(<-done, centurion.MissionCompleted, "")
		g.Wait()
		equal(t, "replies", r.count(m.ID, centurion.EventPermissionReplied), 1)
	})
}

// Who is cancelled while it asks takes its ask along: nothing waits for an answer that nobody needs.
func TestCancelledWhileItAsks(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker":    steps(bash("build 1s")),
	}, func(r *rig) {
		r.asksForShell()
		var g guard.Group
		m := r.start(centurion.MissionOptions{Ask: "ask"})
		done := r.inBackground(&g, m.ID)
		ask := r.oneAsk(m.ID)
		if err := r.host.Control.Cancel(r.ctx, ask.Task, "not needed"); err != nil {
			t.Error(err)
		}
		r.runs++
		m = <-done
		g.Wait()
		r.check(m)
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "asks", len(r.open(m.ID)), 0)
		has(t, r.requests("commander")[1].Last(), "was cancelled", "not needed")
	})
}

// The plan is shown before it runs. Accepted, it runs, and its acceptance commands need no ask of their own.
func TestPlanIsShown(t *testing.T) {
	cast := map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "  - verify: `exists a.txt`", "- [ ] T2 Two")), do(work("T1", makeA), work("T2", "x")), say("I wait")),
		"worker":    steps(writeFile("a.txt")),
	}
	opts := centurion.MissionOptions{ShowPlan: true, Ask: "deny"}
	t.Run("accepted", func(t *testing.T) {
		bubble(t, cast, func(r *rig) {
			r.asksForShell()
			var g guard.Group
			m := r.start(opts)
			done := r.inBackground(&g, m.ID)
			ask := r.oneAsk(m.ID)
			equal(t, "type", ask.Type, store.AskPlan)
			has(t, ask.Text, "T1 One", "exists a.txt", "T2 Two")
			time.Sleep(time.Hour)
			synctest.Wait()
			equal(t, "worker's requests", len(r.requests("worker")), 0)
			for _, task := range r.tasks(m.ID) {
				equal(t, "status", task.Status, centurion.TaskWaiting)
				has(t, task.Reason, "the plan waits to be accepted")
			}
			r.answer(ask.ID, "run")
			r.runs++
			m = <-done
			g.Wait()
			r.check(m)
			r.is(m, centurion.MissionCompleted, "")
			equal(t, "asked", r.count(m.ID, centurion.EventPlanAsked), 1)
			equal(t, "answered", r.count(m.ID, centurion.EventPlanAnswered), 1)
			equal(t, "the check's asks", r.count(m.ID, centurion.EventPermissionAsked), 0)
			equal(t, "verified", m.Verified, 2)
		})
	})
	t.Run("accepted, and then changed", func(t *testing.T) { // also a check of an item that nobody was given yet
		to := call("update_todo", args{"content": "# Plan\n- [x] T1 One\n  - verify: `exists a.txt`\n- [ ] T2 Two\n  - verify: `exists ./a.txt`\n"})
		bubble(t, map[string]script{
			"commander": steps(do(plans("- [ ] T1 One", "  - verify: `exists a.txt`", "- [ ] T2 Two", "  - verify: `exists a.txt`")), do(work("T1", makeA)), say("I wait"), do(to), do(work("T2", "x")), say("I wait")),
			"worker":    steps(writeFile("a.txt")),
		}, func(r *rig) {
			var g guard.Group
			m := r.start(opts)
			done := r.inBackground(&g, m.ID)
			r.answer(r.oneAsk(m.ID).ID, "run")
			r.runs++
			<-done
			g.Wait()
			said := r.results(m.ID, "update_todo")
			has(t, said[1], "acceptance commands are not changed once work on them has begun", "T2")
			equal(t, "its check stays", strings.Count(r.read(todoMD), "verify: `exists a.txt`"), 2)
		})
	})
	t.Run("left, and accepted at the second time", func(t *testing.T) {
		bubble(t, cast, func(r *rig) {
			var g guard.Group
			m := r.start(opts)
			done := r.inBackground(&g, m.ID)
			r.answer(r.oneAsk(m.ID).ID, "quit")
			r.runs++
			m = <-done
			r.check(m)
			r.is(m, centurion.MissionPaused, "the plan was not accepted")
			equal(t, "worker's requests", len(r.requests("worker")), 0)
			done = r.inBackground(&g, m.ID)
			r.answer(r.oneAsk(m.ID).ID, "run")
			r.runs++
			m = <-done
			g.Wait()
			r.check(m)
			r.is(m, centurion.MissionCompleted, "")
			equal(t, "tasks", len(r.tasks(m.ID)), 2)
		})
	})
}

// Who writes the plan is not held up by its not being accepted; and what is not shown is not accepted.
func TestPlanOfAPlannerIsShown(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(handTo("planner", "", "plan it"), work("", "look around")), say("I wait"), do(work("T1", "x")), say("I wait")),
		"planner":   steps(after(time.Second, do(plans("- [ ] T1 One", "  - verify: `exists a.txt`")))),
		"worker":    steps(writeFile("a.txt")),
	}, func(r *rig) {
		r.asksForShell()
		var g guard.Group
		m := r.start(centurion.MissionOptions{ShowPlan: true, Ask: "deny"})
		done := r.inBackground(&g, m.ID)
		ask := r.oneAsk(m.ID)
		has(t, ask.Text, "T1 One")
		for i, want := range []centurion.TaskStatus{centurion.TaskCompleted, centurion.TaskCompleted, centurion.TaskWaiting} {
			equal(t, fmt.Sprint("task ", i), r.tasks(m.ID)[i].Status, want)
		}
		r.answer(ask.ID, "run")
		r.is(<-done, centurion.MissionCompleted, "")
		g.Wait()
	})
}

// A mission of one step shows nothing. That is no acceptance: a model cannot approve its own commands by calling them small.
func TestOneStepIsNotShown(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(call("update_todo", args{"level": 1, "content": "- [ ] T1 One\n  - verify: `exists a.txt`\n"})), do(work("T1", "x")), say("I wait")),
		"worker":    steps(writeFile("a.txt")),
	}, func(r *rig) {
		r.asksForShell()
		m := r.mission(centurion.MissionOptions{ShowPlan: true, Ask: "deny"})
		r.is(m, centurion.MissionBlocked, "T1")
		equal(t, "plans shown", r.count(m.ID, centurion.EventPlanAsked), 0)
		equal(t, "runs", r.shell.times("exists a.txt"), 0)
		if m.Accepted || len(m.Approved) > 0 {
			t.Errorf("accepted %v, approved %v", m.Accepted, m.Approved)
		}
	})
}

// Only a plan is wanted: it is written and shown, and a resume carries it out.
func TestPlanOnly(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "too early"), handTo("planner", "", "plan it")), say("I wait"), say("planned"),
			do(work("T1", "x")), say("I wait")),
		"planner": steps(do(plans("- [ ] T1 One", "  - verify: `exists a.txt`"))),
		"worker":  steps(writeFile("a.txt")),
	}, func(r *rig) {
		r.asksForShell()
		m := r.mission(centurion.MissionOptions{PlanOnly: true, Ask: "deny"})
		r.is(m, centurion.MissionPaused, "planned")
		equal(t, "worker's requests", len(r.requests("worker")), 0)
		has(t, r.results(m.ID, "delegate_task")[0], "only a plan is wanted")
		if err := r.host.Control.Raise(r.ctx, m.ID, centurion.MissionOptions{}); err != nil {
			t.Fatal(err)
		}
		m = r.run(m.ID)
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "verified", m.Verified, 1)
		has(t, r.requests("commander")[3].Last(), "accepted the plan")
	})
}

// A plan that is never written blocks instead of asking for ever.
func TestPlanOnlyWithoutAPlan(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		m := r.mission(centurion.MissionOptions{PlanOnly: true})
		r.is(m, centurion.MissionBlocked, "asked for twice")
		equal(t, "requests", len(r.requests("commander")), 2)
	})
}

// Issue «What works» 1, 2: an approval is acknowledged, so it outlives the host: what a person has allowed for always is
// not asked again, and what they have allowed once is.
func TestApprovalSurvivesRestart(t *testing.T) {
	for answer, asks := range map[string]int{"always": 1, "once": 2} {
		for _, way := range []string{byShutdown, byHandover, byKill} {
			t.Run(answer+" "+way, func(t *testing.T) {
				bubble(t, map[string]script{
					"commander": steps(do(work("", "x")), say("I wait")),
					"worker":    steps(bash("build 1s"), after(time.Minute, bash("build 1s")), say("done")),
				}, func(r *rig) {
					r.asksForShell()
					m := r.start(centurion.MissionOptions{Ask: "ask"})
					l := r.live(m.ID)
					r.answer(r.oneAsk(m.ID).ID, answer)
					time.Sleep(30 * time.Second) // the first command has run, the second is being thought of
					l.goAway(way)
					l = r.live(m.ID)
					if asks == 2 {
						r.answer(r.oneAsk(m.ID).ID, "once")
					}
					r.is(l.settled(), centurion.MissionCompleted, "")
					equal(t, "asked", r.count(m.ID, centurion.EventPermissionAsked), asks)
				})
			})
		}
	}
}

// "always" to an acceptance command holds for that very line, whatever stands in it: for what asks for it at that moment, for later items
// and agents, for the end of the mission, and under the next host. A line that only begins like it is asked for.
func TestAlwaysForAcceptanceCommands(t *testing.T) {
	const line = "passes a* && passes b"
	for _, way := range []string{"", byShutdown, byKill} {
		t.Run(way, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": func(q scripted.Request) scripted.Answer {
					switch {
					case strings.Contains(q.Last(), "Every item is done"), strings.Contains(q.Last(), "call mission_complete"):
						return complete()
					case q.Step() == 1:
						return do(barePlan("- [ ] T1 One", "  - verify: `"+line+"`", "- [ ] T2 Two", "  - verify: `"+line+"`",
							"- [ ] T3 Three", "  - after: T1, T2", "  - verify: `"+line+"`", "- [ ] T4 Four", "  - after: T3", "  - verify: `passes aa && passes b`"))
					case q.Step() == 2:
						return do(work("T1", "x"), work("T2", "x"), work("T3", "wait"), work("T4", "x"))
					}
					return say("I wait")
				},
				"worker": func(q scripted.Request) scripted.Answer {
					switch {
					case !strings.Contains(q.First(), "wait"):
					case q.Step() == 1:
						return after(time.Minute, say("made it"))
					}
					return say("made it")
				},
			}, func(r *rig) {
				r.asksForShell()
				m := r.start(centurion.MissionOptions{Ask: "ask"})
				l := r.live(m.ID)
				var asks []store.Ask
				for range 100 {
					if asks = r.open(m.ID); len(asks) == 2 {
						break
					}
					time.Sleep(time.Second)
				}
				equal(t, "open at once", len(asks), 2)
				equal(t, "always", strings.Join(asks[0].Always, "; "), line)
				r.answer(asks[0].ID, "always")
				synctest.Wait()
				equal(t, "open after it", len(r.open(m.ID)), 0)
				if way != "" {
					time.Sleep(10 * time.Second)
					l.goAway(way)
					l = r.live(m.ID)
				}
				last := r.oneAsk(m.ID)
				equal(t, "asked for another line", last.Title, "passes aa && passes b")
				r.answer(last.ID, "once")
				for range 100 { // the final check of that line
					if open := r.open(m.ID); len(open) == 1 {
						equal(t, "asked once more", open[0].Title, last.Title)
						r.answer(open[0].ID, "once")
						break
					}
					time.Sleep(time.Second)
				}
				r.is(l.settled(), centurion.MissionCompleted, "")
				equal(t, "asked", r.count(m.ID, centurion.EventPermissionAsked), 4)
				all, err := r.store.Asks(r.ctx, m.ID, false)
				if err != nil {
					t.Fatal(err)
				}
				equal(t, "who answered the one that was open", all[1].By+" "+all[1].Answer, "always once")
			})
		})
	}
}

// "always" to a command whose output goes outside of the project holds for the next such command, and the ask names where it goes.
func TestAlwaysOutside(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(bash("echo x > /beyond/it/a.txt").Calls...), do(bash("echo y > /beyond/it/b.txt").Calls...), say("done")),
	}, func(r *rig) {
		r.cfg.Rules = func(string) []permission.Level {
			return []permission.Level{{Name: permission.DefaultLevel, Rules: permission.Defaults(false)}}
		}
		r.restart()
		m := r.start(centurion.MissionOptions{Ask: "ask"})
		l := r.live(m.ID)
		ask := r.oneAsk(m.ID)
		equal(t, "asked for", strings.Join(ask.Patterns, "; "), "echo x; external_directory /beyond/it/a.txt")
		equal(t, "always", strings.Join(ask.Always, "; "), "echo *; external_directory /beyond/it/*")
		r.answer(ask.ID, "always")
		l.settled()
		equal(t, "asked", r.count(m.ID, centurion.EventPermissionAsked), 1)
	})
}

// A call is known to have only asked by an ask of its own: one with the same id in an earlier answer says nothing of it.
func TestOnlyAsked(t *testing.T) {
	bubble(t, map[string]script{}, func(r *rig) {
		rec := r.start(centurion.MissionOptions{})
		now := centurion.Now()
		if err := r.store.Update(r.ctx, func(tx *store.Tx) error {
			return tx.PutAsk(&store.Ask{ID: centurion.NewID(centurion.PrefixPermission), Type: store.AskPermission, Mission: rec.ID, Session: rec.Session,
				Call: "call_1", Created: now, Answer: "reject", By: state.ByEnd, Answered: now})
		}); err != nil {
			t.Fatal(err)
		}
		m := r.unbegun(rec.ID)
		for begun, want := range map[time.Duration]bool{-time.Second: true, time.Second: false} {
			call := centurion.Part{SessionID: rec.Session, CallID: "call_1", State: &centurion.ToolState{Time: centurion.PartTime{Start: now.Add(begun).UnixMilli()}}}
			equal(t, "a call that began "+begun.String()+" after the ask has only asked", m.approvals.OnlyAsked(r.ctx, call), want)
		}
	})
}
