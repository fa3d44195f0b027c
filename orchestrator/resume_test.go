package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/guard"
	"centurion/provider/scripted"
	"centurion/sandbox"
	"centurion/store"
)

var ways = []string{byShutdown, byHandover, byKill}

// waysOf returns all the ways of going away, or the hardest alone where the others add nothing but time.
func waysOf(all bool) []string {
	if all {
		return ways
	}
	return []string{byKill}
}

// waits counts the requests that a role repeated, by the number that each repetition was told with.
func (r *rig) waits(mission string, typ centurion.EventType) string {
	r.t.Helper()
	var told []string
	for _, e := range r.events(mission, typ) {
		var d event.RetryData
		if err := json.Unmarshal(e.Data, &d); err != nil {
			r.t.Error(err)
		}
		if d.WaitMS > 0 { // a task that begins its next attempt is told with the same type
			told = append(told, fmt.Sprintf("%d: %ds", d.Attempt, d.WaitMS/1000))
		}
	}
	return strings.Join(told, ", ")
}

// ORCH-84, ORCH-85, TRIAL R1: a wait before a repetition, and how often the request has failed, outlive the host: a restart in the
// middle neither begins the wait anew nor gives the request more tries.
func TestWaitSurvivesRestart(t *testing.T) {
	fails := scripted.Answer{Error: &scripted.Error{Status: 500, Message: "no"}}
	slow := scripted.Answer{Error: &scripted.Error{Status: 429, RetryAfter: 30 * time.Second, Message: "slow down"}}
	for name, test := range map[string]struct {
		role   string
		answer func(turn int) scripted.Answer
		at     time.Duration // when the host goes away
		away   time.Duration
		took   time.Duration // until the mission's end
		asked  int
		waits  string
	}{
		"in the first of three waits":   {"worker", first(99, fails), 2 * time.Second, time.Second, 35 * time.Second, 4, "1: 5s, 2: 10s, 3: 20s"},
		"in the second":                 {"worker", first(99, fails), 7 * time.Second, 3 * time.Second, 35 * time.Second, 4, "1: 5s, 2: 10s, 3: 20s"},
		"in the third":                  {"worker", first(99, fails), 16 * time.Second, 10 * time.Second, 35 * time.Second, 4, "1: 5s, 2: 10s, 3: 20s"},
		"away longer than the wait":     {"worker", first(99, fails), 7 * time.Second, time.Hour, time.Hour + 27*time.Second, 4, "1: 5s, 2: 10s, 3: 20s"},
		"it works after the wait":       {"worker", first(2, fails), 7 * time.Second, time.Second, 15 * time.Second, 3, "1: 5s, 2: 10s"},
		"the Commander":                 {"commander", first(2, fails), 7 * time.Second, time.Second, 15 * time.Second, 3, "1: 5s, 2: 10s"},
		"the provider asks for 30 s":    {"worker", first(1, slow), 10 * time.Second, 5 * time.Second, 30 * time.Second, 2, ""},
		"the Commander is asked for it": {"commander", first(1, slow), 10 * time.Second, 5 * time.Second, 30 * time.Second, 2, "0: 30s"},
	} {
		for _, way := range waysOf(name == "in the second") {
			t.Run(name+" by "+way, func(t *testing.T) {
				cast := map[string]script{"commander": steps(do(work("", "x")), say("I wait"))}
				cast[test.role] = func(q scripted.Request) scripted.Answer { return test.answer(q.Turn) }
				bubble(t, cast, func(r *rig) {
					began := time.Now()
					m := r.start(centurion.MissionOptions{})
					l := r.live(m.ID)
					time.Sleep(test.at)
					l.goAway(way)
					time.Sleep(test.away)
					m = r.run(m.ID)
					r.is(m, centurion.MissionCompleted, "")
					equal(t, "took", time.Since(began).Round(time.Second), test.took)
					equal(t, "requests", len(r.requests(test.role)), test.asked)
					typ := centurion.EventProviderRetry
					if test.role == "worker" {
						typ = centurion.EventTaskRetrying
					}
					if test.waits != "" {
						equal(t, "waits", strings.TrimPrefix(r.waits(m.ID, typ), "1: 30s"), strings.Replace(test.waits, "0: 30s", "", 1))
					}
					sessions, err := r.store.Sessions(r.ctx, m.ID)
					if err != nil {
						t.Fatal(err)
					}
					for _, s := range sessions {
						if test.asked < 4 && s.Metadata.Retry != nil {
							t.Errorf("after a good answer %s still waits: %+v", s.Agent, s.Metadata.Retry)
						}
					}
				})
			})
		}
	}
}

// ORCH-140: the limit on a mission's time counts what was worked before the host went away and nothing of the time in between.
func TestTimeLimitAcrossRestart(t *testing.T) {
	const limit = 10 * time.Minute
	for way, left := range map[string]time.Duration{
		byShutdown: limit - 390*time.Second, byHandover: limit - 390*time.Second,
		byKill: limit - 6*time.Minute, // what came after the last answer is not known
	} {
		t.Run(way, func(t *testing.T) {
			bubble(t, map[string]script{"commander": steps(do(work("", "x")), say("I wait")), "worker": minutes(100, "made")}, func(r *rig) {
				m := r.start(centurion.MissionOptions{MaxDuration: limit.Milliseconds()})
				l := r.live(m.ID)
				time.Sleep(390 * time.Second)
				l.goAway(way)
				time.Sleep(24 * time.Minute)
				began := time.Now()
				m = r.run(m.ID)
				r.is(m, centurion.MissionPaused, "")
				equal(t, "kind of end", r.count(m.ID, centurion.EventBudgetExceeded), 1)
				equal(t, "worked after the restart", time.Since(began).Round(time.Second), left)
				equal(t, "elapsed", (time.Duration(m.ElapsedMS) * time.Millisecond).Round(time.Second), limit)
			})
		})
	}
}

// A host that goes in order records the time worked until then, also where no request was under way that would have.
func TestTimeOfACommandIsKept(t *testing.T) {
	for _, way := range []string{byShutdown, byHandover} {
		t.Run(way, func(t *testing.T) {
			long := call("bash", args{"command": "build 9m", "timeout": 600_000})
			bubble(t, map[string]script{"commander": steps(do(work("", "x")), say("I wait")), "worker": steps(do(long))}, func(r *rig) {
				m := r.start(centurion.MissionOptions{})
				l := r.live(m.ID)
				time.Sleep(5 * time.Minute)
				l.goAway(way)
				m, err := r.store.Mission(r.ctx, m.ID)
				if err != nil {
					t.Fatal(err)
				}
				equal(t, "elapsed", (time.Duration(m.ElapsedMS) * time.Millisecond).Round(10*time.Second), 5*time.Minute)
			})
		})
	}
}

// O2: the time that a task may take goes on after a restart where it stood; it does not start anew.
func TestTaskTimeAcrossRestart(t *testing.T) {
	for _, way := range []string{byShutdown, byHandover} {
		t.Run(way, func(t *testing.T) {
			hand := call("delegate_task", args{"agent": "worker", "description": "x", "prompt": "x", "budget": args{"minutes": 10}})
			bubble(t, map[string]script{"commander": steps(do(hand), say("I wait")), "worker": minutes(100, "made")}, func(r *rig) {
				m := r.start(centurion.MissionOptions{})
				l := r.live(m.ID)
				time.Sleep(390 * time.Second)
				l.goAway(way)
				time.Sleep(24 * time.Minute)
				began := time.Now()
				m = r.run(m.ID)
				task := r.task(m.ID, "")
				if task.Error == nil || !strings.Contains(task.Error.Message, "own budget of 10m") {
					t.Fatalf("it is %s (%v)", task.Status, task.Error)
				}
				equal(t, "worked after the restart", task.Ended.Sub(began).Round(time.Second), 210*time.Second)
				equal(t, "worked in all", (time.Duration(task.ElapsedMS) * time.Millisecond).Round(time.Second), 10*time.Minute)
			})
		})
	}
}

// O3, ORCH-144: a host that hands a mission over tells nobody that it has stopped, and the next one goes on with all of it.
func TestHandover(t *testing.T) {
	t.Parallel()
	rows := journal(t)
	for n := int64(5); n < rows; n += stride(17) {
		t.Run(fmt.Sprint("at row ", n), func(t *testing.T) {
			bubble(t, enduring(), func(r *rig) {
				ctx, cancel := context.WithCancelCause(r.ctx)
				m := r.start(centurion.MissionOptions{})
				var g guard.Group
				g.Go("hand over", func() error { return r.at(ctx, n, func() { cancel(centurion.ErrHandover) }) })
				m, err := r.host.Run(ctx, m.ID)
				cancel(nil)
				g.Wait()
				if err == nil && m.Status == centurion.MissionCompleted && n > rows-30 {
					return // it was over before it heard of it: nothing takes any time at its end
				}
				if err != nil || !m.Status.Alive() {
					t.Fatalf("the mission that was handed over is %s: %v", m.Status, err)
				}
				for _, e := range r.events(m.ID) {
					if e.Type.EndsMission() {
						t.Errorf("told: %s", e.Type)
					}
				}
				equal(t, "runs", len(r.host.Running()), 0)
				for _, task := range r.tasks(m.ID) {
					if !task.Status.Ended() && task.Status != centurion.TaskQueued {
						t.Errorf("task %s was left %s", task.Item, task.Status)
					}
				}
				r.restart()
				m = r.run(m.ID)
				r.endured(m)
				resumed := r.events(m.ID, centurion.EventMissionResumed)
				if len(resumed) != 1 || !strings.Contains(string(resumed[0].Data), "its host went away") {
					t.Errorf("told at the resume: %+v", resumed)
				}
				equal(t, "runs of hosts", m.Runs, 2)
			})
		})
	}
}

// ORCH-144: a pause is somebody's decision: it ends everything, its reason is kept, and what has stopped cannot be paused.
func TestPause(t *testing.T) {
	for name, test := range map[string]struct{ reason, want string }{
		"with a reason":    {"the disk is needed", "the disk is needed"},
		"without a reason": {"", "paused by a person"},
		"as at a shutdown": {centurion.ErrShutdown.Msg, "interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{"commander": steps(do(work("", "x")), say("I wait")), "worker": minutes(3, "made")}, func(r *rig) {
				m := r.start(centurion.MissionOptions{})
				l := r.live(m.ID)
				time.Sleep(90 * time.Second)
				if err := r.host.Control.Pause(r.ctx, m.ID, test.reason); err != nil {
					t.Error(err)
				}
				paused, err := r.store.Mission(r.ctx, m.ID) // it has stopped when Pause returns
				if err != nil || paused.Status != centurion.MissionPaused {
					t.Errorf("after the pause it is %s: %v", paused.Status, err)
				}
				m = l.settled()
				r.is(m, centurion.MissionPaused, test.want)
				equal(t, "reason", m.Reason, test.want)
				if err := r.host.Control.Pause(r.ctx, m.ID, "again"); centurion.KindOf(err) != centurion.KindConflict {
					t.Errorf("paused again: %v", err)
				}
				stored, err := r.store.Mission(r.ctx, m.ID)
				if err != nil || stored.Reason != test.want {
					t.Errorf("after the second pause the reason is %q, %v", stored.Reason, err)
				}
				r.restart()
				m = r.run(m.ID)
				r.is(m, centurion.MissionCompleted, "")
				equal(t, "requests of the worker", len(r.requests("worker")), 4) // one was cut off
				if err := r.host.Control.Pause(r.ctx, m.ID, ""); centurion.KindOf(err) != centurion.KindConflict {
					t.Errorf("a completed mission is paused: %v", err)
				}
			})
		})
	}
}

// A mission whose host has died can be paused before anybody goes on with it.
func TestPauseOfAnAbandonedMission(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(work("", "x")), say("I wait")), "worker": minutes(3, "made")}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(90 * time.Second)
		l.goAway(byKill)
		if err := r.host.Control.Pause(r.ctx, m.ID, "not now"); err != nil {
			t.Fatal(err)
		}
		m, err := r.store.Mission(r.ctx, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		r.is(m, centurion.MissionPaused, "not now")
		if err := r.host.Control.Pause(r.ctx, m.ID, "again"); centurion.KindOf(err) != centurion.KindConflict {
			t.Errorf("paused again: %v", err)
		}
		if err := r.host.Control.Pause(r.ctx, "msn_none", ""); centurion.KindOf(err) != centurion.KindNotFound {
			t.Errorf("a mission that there is not: %v", err)
		}
		r.runs++
		r.is(r.run(m.ID), centurion.MissionCompleted, "")
	})
}

// O5, TRIAL R1: an ask that was open when the host went away is closed at the resume, and whoever asked asks again.
func TestOpenAskAtRestart(t *testing.T) {
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(work("", "x")), say("I wait")),
				"worker": func(q scripted.Request) scripted.Answer {
					if strings.HasPrefix(q.Last(), "(no output)") { // the command has run
						return say("made")
					}
					return bash("build 1s")
				},
			}, func(r *rig) {
				r.asksForShell()
				m := r.start(centurion.MissionOptions{Ask: "ask"})
				l := r.live(m.ID)
				old := r.oneAsk(m.ID)
				l.goAway(way)
				if err := r.host.Answer(r.ctx, old.ID, "once", sandbox.Peer{}); centurion.KindOf(err) != centurion.KindNotFound && err == nil {
					t.Errorf("an ask of a dead host was answered: %v", err)
				}
				l = r.live(m.ID)
				again := r.oneAsk(m.ID) // and no other is open
				if again.ID == old.ID {
					t.Error("the old ask is still open")
				}
				all, err := r.store.Asks(r.ctx, m.ID, false)
				if err != nil || len(all) != 2 {
					t.Fatalf("asks: %+v, %v", all, err)
				}
				for _, a := range all {
					if a.ID == old.ID && (a.Answer != "reject" || a.By != "shutdown") {
						t.Errorf("the old ask was answered %q by %q", a.Answer, a.By)
					}
				}
				equal(t, "commands before the answer", r.shell.times("build 1s"), 0)
				r.answer(again.ID, "once")
				m = l.settled()
				r.is(m, centurion.MissionCompleted, "")
				equal(t, "commands", r.shell.times("build 1s"), 1)
				equal(t, "result", r.task(m.ID, "").Result, "made")
				equal(t, "answers that were told", r.count(m.ID, centurion.EventPermissionReplied), 2)
				for i, result := range r.results(m.ID, "bash") {
					if strings.Contains(result, "effects are unknown") {
						t.Errorf("of call %d, which only waited, it is said: %s", i, result)
					}
				}
			})
		})
	}
}

// A plan that waits to be accepted waits again after a restart; the call that asked is finished by it.
func TestOpenPlanAtRestart(t *testing.T) {
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two")), do(work("T1", "x"), work("T2", "y")), say("I wait")),
				"worker":    steps(say("made")),
			}, func(r *rig) {
				m := r.start(centurion.MissionOptions{Ask: "ask", ShowPlan: true})
				l := r.live(m.ID)
				old := r.oneAsk(m.ID)
				equal(t, "asks for", old.Type, store.AskPlan)
				l.goAway(way)
				l = r.live(m.ID)
				again := r.oneAsk(m.ID)
				if again.ID == old.ID || again.Type != store.AskPlan {
					t.Errorf("asked again: %+v", again)
				}
				equal(t, "requests of workers", len(r.requests("worker")), 0)
				r.answer(again.ID, "run")
				m = l.settled()
				r.is(m, centurion.MissionCompleted, "")
				equal(t, "tasks", len(r.tasks(m.ID)), 2)
				equal(t, "requests of workers", len(r.requests("worker")), 2)
			})
		})
	}
}

// I2, TRIAL R3: calls that a killed host had recorded and not finished. What only looks or is done once for each call
// gets its real result; what may have done something says so, and is not done again.
func TestCallsOfADeadHost(t *testing.T) {
	task := func(q scripted.Request, n int) string {
		var all []string
		for _, m := range q.Messages() {
			if m.Role == "tool" {
				all = append(all, names(m.Text)...)
			}
		}
		if n >= len(all) {
			return "tsk_none"
		}
		return all[n]
	}
	bubble(t, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			return steps(do(work("", "quick"), work("", "endless"), onward),
				after(10*time.Second, do(
					call("delegate_task", args{"agent": "worker", "description": "wait", "prompt": "wait", "background": false}),
					call("cancel_task", args{"task_id": task(q, 1), "reason": "too long"}),
					call("get_task_result", args{"task_id": task(q, 0)}),
					call("read", args{"filePath": "a.txt"}),
					call("write", args{"filePath": "b.txt", "content": "x"}),
					call("bash", args{"command": "build 1s"}))),
				say("I wait"))(q)
		},
		"worker": func(q scripted.Request) scripted.Answer {
			switch {
			case strings.Contains(q.First(), "quick"):
				return say("quick result")
			case strings.Contains(q.First(), "endless"):
				return after(time.Minute, do(call("ls", args{})))
			}
			return after(100*time.Second, say("awaited result"))
		},
	}, func(r *rig) {
		r.write("a.txt", "what stands in a\n")
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(30 * time.Second)
		equal(t, "tasks before the crash", len(r.tasks(m.ID)), 3)
		l.goAway(byKill)
		time.Sleep(time.Minute)
		m = r.run(m.ID)
		r.is(m, centurion.MissionCompleted, "")
		tasks := r.tasks(m.ID)
		equal(t, "tasks", len(tasks), 3) // the repeated delegation finds the one it made
		for i, want := range []centurion.TaskStatus{centurion.TaskCompleted, centurion.TaskCancelled, centurion.TaskCompleted} {
			equal(t, "task "+tasks[i].Title, tasks[i].Status, want)
		}
		delegated := r.results(m.ID, "delegate_task")
		has(t, delegated[2], "awaited result")
		equal(t, "the awaited result stands in messages", r.told(m.Session, "awaited result"), 0)
		has(t, r.results(m.ID, "cancel_task")[0], tasks[1].Name())
		has(t, r.results(m.ID, "get_task_result")[0], "quick result")
		has(t, r.results(m.ID, "read")[0], "what stands in a")
		const lost = "interrupted by a restart; its effects are unknown"
		has(t, r.results(m.ID, "write")[0], lost)
		has(t, r.results(m.ID, "bash")[0], lost)
		equal(t, "commands", r.shell.times("build 1s"), 0)
		has(t, tasks[1].Error.Message, "too long")
	})
}

// jump makes everything that the store holds older by d, as a wall clock does that goes forward by d while no host runs;
// a clock that went back makes it younger.
func (r *rig) jump(mission string, d time.Duration) {
	r.t.Helper()
	shift := func(times ...*centurion.Time) {
		for _, t := range times {
			if !t.IsZero() {
				t.Time = t.Add(-d)
			}
		}
	}
	sessions, err := r.store.Sessions(r.ctx, mission)
	if err != nil {
		r.t.Fatal(err)
	}
	deliveries, err := r.store.Deliveries(r.ctx, mission)
	if err != nil {
		r.t.Fatal(err)
	}
	r.update(func(tx *store.Tx) error {
		m, err := tx.Mission(mission)
		if err != nil {
			return err
		}
		shift(&m.Started, &m.Updated)
		if err := tx.PutMission(&m); err != nil {
			return err
		}
		tasks, err := tx.Tasks(mission)
		if err != nil {
			return err
		}
		for _, t := range tasks {
			shift(&t.Created, &t.Started, &t.Ended)
			if err := tx.PutTask(&t); err != nil {
				return err
			}
		}
		for _, s := range sessions {
			if w := s.Metadata.Retry; w != nil {
				shift(&w.At)
			}
			if err := tx.PutSession(&s); err != nil {
				return err
			}
		}
		for _, v := range deliveries {
			shift(&v.Created, &v.Taken)
			if err := tx.PutDelivery(&v); err != nil {
				return err
			}
		}
		return nil
	})
}

// TRIAL R15: the wall clock has jumped while no host ran. No wait becomes longer than it was, the time that was worked stays
// what it was, its limit neither strikes early nor never, and nothing runs in circles.
func TestClockJumps(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for name, d := range map[string]time.Duration{"not": 0, "forward an hour": time.Hour, "back an hour": -time.Hour, "forward a year": year, "back a year": -year} {
		for _, way := range waysOf(d == -time.Hour) {
			t.Run(name+" by "+way, func(t *testing.T) {
				bubble(t, map[string]script{
					"commander": steps(do(work("", "fails"), work("", "asks"), work("", "works")), say("I wait")),
					"worker": func(q scripted.Request) scripted.Answer {
						switch {
						case strings.Contains(q.First(), "fails"):
							return first(2, scripted.Answer{Error: &scripted.Error{Status: 500, Message: "no"}})(q.Turn)
						case strings.Contains(q.First(), "works"):
							return minutes(3, "made")(q)
						}
						return bash("build 1s")
					},
				}, func(r *rig) {
					r.asksForShell()
					const limit = 100 * time.Minute
					m := r.start(centurion.MissionOptions{Ask: "ask", MaxDuration: limit.Milliseconds()})
					l := r.live(m.ID)
					time.Sleep(7 * time.Second) // two of the ten seconds of the second wait are over
					l.goAway(way)
					r.jump(m.ID, d)
					began := time.Now()
					l = r.live(m.ID)
					time.Sleep(11 * time.Second)
					if one := r.tasks(m.ID)[0]; one.Status != centurion.TaskCompleted {
						t.Errorf("after the whole of the wait the task is %s (%s)", one.Status, one.Reason)
					}
					time.Sleep(10 * time.Minute) // until nobody is left but who waits for a person
					if third := r.tasks(m.ID)[2]; third.Status != centurion.TaskCompleted {
						t.Errorf("the task that works is %s (%s)", third.Status, third.Reason)
					}
					r.oneAsk(m.ID)
					asked, rows := len(r.model.Requests()), r.store.LastSeq()
					time.Sleep(time.Hour)
					if n := len(r.model.Requests()) - asked; n > 0 {
						t.Errorf("%d requests in an hour in which a person is waited for", n)
					}
					if n := r.store.LastSeq() - rows; n > 0 {
						t.Errorf("%d rows of the journal in an hour in which a person is waited for", n)
					}
					m = l.settled()
					r.is(m, centurion.MissionPaused, "") // by its limit
					equal(t, "the limit was told", r.count(m.ID, centurion.EventBudgetExceeded), 1)
					worked := time.Since(began)
					if worked < limit-8*time.Second || worked > limit+time.Second {
						t.Errorf("the limit of %s struck after %s", limit, worked)
					}
					equal(t, "elapsed", (time.Duration(m.ElapsedMS) * time.Millisecond).Round(10*time.Second), limit)
					if m.Usage.Tokens.Total() <= 0 {
						t.Error("the usage is lost")
					}
				})
			})
		}
	}
}
