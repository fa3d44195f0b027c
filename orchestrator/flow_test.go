package orchestrator

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/plan"
	"centurion/provider/scripted"
	"centurion/workspace/todo"
)

// ORCH-9, ORCH-10, ORCH-13, ORCH-14
func TestMission(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(
			do(handTo("planner", "", "write the plan")),
			do(work("T1", "make a.txt"), work("T2", "make b.txt")),
			do(call("mission_complete", args{"summary": "all is built"})),
		),
		"planner": steps(do(call("update_todo", args{"level": 3, "content": "# Plan\n- verify: `exists a.txt`\n- [ ] T1 One @worker\n  - verify: `exists a.txt`\n- [ ] T2 Two @worker\n" + passes + "\n"}))),
		"worker": func(r scripted.Request) scripted.Answer {
			name := "b.txt"
			if strings.Contains(r.First(), "a.txt") {
				name = "a.txt"
			}
			return steps(do(call("write", args{"filePath": name, "content": "x"})), say("made "+name))(r)
		},
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "summary", m.Summary, "all is built")
		equal(t, "level", m.Level, 3)
		equal(t, "verified", m.Verified, 2)
		equal(t, "unverified", m.Unverified, 0)
		equal(t, "rounds", m.Rounds, 3+2+2+2)
		if m.Usage.USD <= 0 || m.Usage.Tokens.Total() <= 0 {
			t.Errorf("usage %+v", m.Usage)
		}
		has(t, r.read(todoMD), "- [x] T1", "- [x] T2")
		equal(t, "final and first run of the check", r.shell.times("exists a.txt"), 2)

		one := r.task(m.ID, "T1")
		equal(t, "task", one.Status, centurion.TaskCompleted)
		equal(t, "result", one.Result, "made a.txt")
		equal(t, "files", strings.Join(one.Files, ","), "a.txt")
		equal(t, "attempt", one.Attempt, 1)
		if one.Usage.USD <= 0 {
			t.Error("the task has cost nothing")
		}

		// The goal and each prompt stand verbatim where they belong, and each worker knows the goal and nothing of the others.
		equal(t, "goal", r.requests("commander")[0].First(), "build it")
		for _, q := range r.requests("worker") {
			if strings.Contains(q.First(), "a.txt") {
				has(t, q.First(), "# Your task", "make a.txt", "# The goal of the mission", "build it", "# Item T1 of the plan: One", "exists a.txt")
				if strings.Contains(q.First(), "make b.txt") {
					t.Errorf("a worker sees more than its task:\n%s", q.First())
				}
			}
		}
		sessions, err := r.store.Sessions(r.ctx, m.ID)
		if err != nil || len(sessions) != 4 {
			t.Fatalf("%d sessions, %v", len(sessions), err)
		}
		for i, want := range []string{"0/", "0/0", "0/1", "0/2"} {
			equal(t, "address", sessions[i].Metadata.Address, want)
		}
	})
}

// ORCH-125, C-25, IKI-81: a batch wakes its parent once, with every result.
func TestOneWakeForABatch(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(many(5)),
		"worker": func(r scripted.Request) scripted.Answer {
			var n int
			fmt.Sscanf(r.First()[strings.Index(r.First(), "piece"):], "piece %d", &n)
			return after(time.Duration(n+1)*time.Second, say(fmt.Sprintf("result %d", n)))
		},
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "nothing to verify")
		asked := r.requests("commander")
		equal(t, "requests of the commander", len(asked), 2)
		has(t, asked[1].Last(), "result 0", "result 1", "result 2", "result 3", "result 4")
		equal(t, "delivered", r.count(m.ID, centurion.EventTaskDelivered), 5)
		// ORCH-36, ORCH-37: completion is no matter of asking again: the wake comes at the moment of the last end.
		tasks := r.tasks(m.ID)
		end := tasks[len(tasks)-1].Ended
		for _, e := range r.events(m.ID, centurion.EventTaskDelivered) {
			if e.Task == tasks[0].ID && !e.Time.Equal(tasks[0].Ended.Time) {
				t.Errorf("the first result was told %s after its task had ended", e.Time.Sub(tasks[0].Ended.Time))
			}
		}
		msgs, _ := r.store.Messages(r.ctx, m.Session)
		if last := msgs[len(msgs)-1]; last.Time.Created != end.Millis() {
			t.Errorf("the commander was woken %d ms after the last end", last.Time.Created-end.Millis())
		}
	})
}

// ORCH-124, C-25: while others run, a failure wakes at once, and a completion only if it frees an item.
func TestEarlyWakes(t *testing.T) {
	slow := after(time.Minute, say("slow"))
	for _, test := range []struct {
		name   string
		plan   []string
		worker script
		told   string
		early  bool
	}{
		{"a completion", []string{"- [ ] T1 One", "- [ ] T2 Two"}, func(r scripted.Request) scripted.Answer { return say("quick") }, "quick", false},
		{"a failure", []string{"- [ ] T1 One", "- [ ] T2 Two"}, func(r scripted.Request) scripted.Answer {
			return scripted.Answer{Error: &scripted.Error{Status: 401, Message: "bad key"}}
		}, "has failed", true},
		{"a completion that frees an item", []string{"- [ ] T1 One", "- [ ] T2 Two", "- [ ] T3 Three", "  - after: T1"},
			func(r scripted.Request) scripted.Answer { return say("quick") }, "quick", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(plans(test.plan...)), do(work("T1", "first"), work("T2", "second")), say("waiting"),
					do(call("update_todo", args{"items": []args{{"id": "T1", "status": "cancelled"}}})), say("more waiting")),
				"worker": func(r scripted.Request) scripted.Answer {
					if strings.Contains(r.First(), "second") {
						return slow
					}
					return test.worker(r)
				},
			}, func(r *rig) {
				r.cfg.Countdown = time.Hour // nothing but results wakes
				r.restart()
				var g guard.Group
				m := r.start(centurion.MissionOptions{})
				done := r.inBackground(&g, m.ID)
				time.Sleep(30 * time.Second)
				synctest.Wait()
				asked := r.requests("commander")
				last := asked[len(asked)-1]
				if woken := len(asked) > 2; woken != test.early {
					t.Errorf("woken early: %v", woken)
				}
				if test.early {
					has(t, asked[2].Last(), test.told)
				} else {
					has(t, last.Last(), "")
				}
				if err := r.host.Control.Cancel(r.ctx, m.ID, ""); err != nil {
					t.Error(err)
				}
				<-done
				g.Wait()
			})
		})
	}
}

// ORCH-76, ORCH-88, ORCH-91, ORCH-93, ORCH-111: an idle mission with open items goes on by itself, after a countdown.
func TestContinuation(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(
			do(plans("- [ ] T1 One", "- [ ] T2 Two")), do(work("T1", "x")), say("I wait"), // told the result
			say("I stop here"), // with T2 open
			do(call("update_todo", args{"items": []args{{"id": "T2", "status": "done"}}})), say("now it is done"),
		),
		"worker": func(scripted.Request) scripted.Answer { return after(time.Minute, say("one")) },
	}, func(r *rig) {
		began := time.Now()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		// No countdown while a task ran, and one of two seconds after it.
		equal(t, "took", time.Since(began).Round(time.Second), time.Minute+DefaultCountdown)
		asked := r.requests("commander")
		equal(t, "requests", len(asked), 6)
		has(t, asked[4].Last(), "The mission is not finished: 1 item open", "T2 Two")
		n := 0
		for _, e := range r.events(m.ID, centurion.EventMissionUpdated) {
			if strings.Contains(string(e.Data), `"countdown_ms":2000`) {
				n++
			}
		}
		equal(t, "countdowns told", n, 1)
	})
}

// ORCH-11: what a person changes in the plan is told, and it counts.
func TestPersonEditsThePlan(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One")), do(work("T1", "x")), say("I wait"), say("done?"),
			do(work("T9", "the person's")), say("I wait again")),
		"worker": func(scripted.Request) scripted.Answer { return after(time.Minute, say("one")) },
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(30 * time.Second)
		told := r.count(m.ID, centurion.EventTodoUpdated)
		r.write(todoMD, checked("# Plan, by me\n\nMy own words.\n\n- [~] T1 One\n- [ ] T9 Mine too\n"))
		time.Sleep(10 * time.Second) // the file's time is not of the faked clock, so it seems to be new for some seconds
		if r.count(m.ID, centurion.EventTodoUpdated) != told+1 {
			t.Error("the change was not told")
		}
		r.runs++
		m = <-done
		g.Wait()
		r.check(m)
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "plan", r.read(todoMD), checked("# Plan, by me\n\nMy own words.\n\n- [x] T1 One\n- [x] T9 Mine too\n"))
		equal(t, "tasks", len(r.tasks(m.ID)), 2)
	})
}

// A person's mark on an item at work is not written over by what its task ends with.
func TestPersonsMarkStays(t *testing.T) {
	for _, mark := range []string{"[-]", "[!]"} {
		t.Run(mark, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(plans("- [ ] T1 One")), do(work("T1", "x")), say("I wait"), say("well")),
				"worker":    func(scripted.Request) scripted.Answer { return after(time.Minute, say("one")) },
			}, func(r *rig) {
				var g guard.Group
				done := r.inBackground(&g, r.start(centurion.MissionOptions{}).ID)
				time.Sleep(30 * time.Second)
				r.write(todoMD, "# Plan\n- "+mark+" T1 One\n")
				<-done
				g.Wait()
				has(t, r.read(todoMD), mark+" T1")
			})
		})
	}
}

// A line that a person has copied gives two items one id. No mark is written then, and the mission goes on when it is mended.
func TestCopiedLineEndsNothing(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One")), do(work("T1", "x")), say("I wait"), say("well")),
		"worker":    func(scripted.Request) scripted.Answer { return after(time.Minute, say("one")) },
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(30 * time.Second)
		r.write(todoMD, checked("# Plan\n- [~] T1 One\n- [~] T1 One\n"))
		r.runs++
		m = <-done
		g.Wait()
		r.check(m)
		r.is(m, centurion.MissionBlocked, "")
		equal(t, "the worker's task", r.task(m.ID, "T1").Status, centurion.TaskCompleted)
		has(t, r.read(todoMD), "- [~] T1 One\n")
	})
}

func TestRemovedItemCancelsItsTask(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two")), do(work("T1", "first"), work("T2", "second")), say("I wait"), say("well")),
		"worker":    func(scripted.Request) scripted.Answer { return after(time.Minute, say("one")) },
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(30 * time.Second)
		r.write(todoMD, "# Plan\n- [~] T1 One\n"+passes+"\n")
		time.Sleep(10 * time.Second) // a text that is much shorter may have a writer who has not come to its end
		two := r.task(m.ID, "T2")
		equal(t, "status", two.Status, centurion.TaskCancelled)
		has(t, two.Error.Message, "T2 was removed from the plan")
		equal(t, "the other one", r.task(m.ID, "T1").Status, centurion.TaskRunning)
		r.is(<-done, centurion.MissionCompleted, "")
		g.Wait()
	})
}

func TestPlanThatCannotBeRead(t *testing.T) {
	for name, test := range map[string]struct{ text, reason string }{
		"vanished":  {"", "has vanished"},
		"emptied":   {"# Nothing\n", "has no items any more"},
		"malformed": {"# Plan\n- [~] T1 One\n```\nno end\n", "cannot be read"},
		"no text":   {"# Plan \xff\xfe\n- [~] T1 One\n", "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two", "  - after: T1", "- [ ] T3 Three", "  - after: T2")),
					do(work("T1", "x"), work("T3", "third")), say("I wait")),
				"worker": func(scripted.Request) scripted.Answer { return after(time.Minute, say("one")) },
			}, func(r *rig) {
				var g guard.Group
				m := r.start(centurion.MissionOptions{})
				done := r.inBackground(&g, m.ID)
				time.Sleep(30 * time.Second)
				if test.text == "" {
					removeFile(t, r, todoMD)
				} else {
					r.write(todoMD, test.text)
				}
				r.runs++
				m = <-done
				g.Wait()
				r.check(m)
				r.is(m, centurion.MissionBlocked, test.reason)
				equal(t, "who waits", r.task(m.ID, "T3").Status, map[bool]centurion.TaskStatus{true: centurion.TaskCancelled, false: centurion.TaskQueued}[name == "emptied"])
				if name == "vanished" || name == "emptied" {
					return
				}
				// What blocked it is mended: it goes on.
				r.write(todoMD, checked("# Plan\n- [x] T1 One\n- [x] T2 Two\n- [ ] T3 Three\n"))
				r.is(r.run(m.ID), centurion.MissionCompleted, "")
				equal(t, "T3", r.task(m.ID, "T3").Status, centurion.TaskCompleted)
			})
		})
	}
}

// An editor that takes the plan away and puts it back at once blocks nothing.
func TestPlanIsAwayForAMoment(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One")), say("I stop"), do(call("update_todo", args{"items": []args{{"id": "T1", "status": "done"}}}))),
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(time.Second) // in the countdown
		text := r.read(todoMD)
		removeFile(t, r, todoMD)
		time.Sleep(500 * time.Millisecond)
		r.write(todoMD, text)
		r.is(<-done, centurion.MissionCompleted, "")
		g.Wait()
	})
}

// Items wait for what stands before them, and keep off each other's files.
func TestOrderOfItems(t *testing.T) {
	type span struct{ from, to time.Duration }
	run := func(t *testing.T, plan ...string) map[string]span {
		spans := map[string]span{}
		bubble(t, map[string]script{
			"commander": steps(do(plans(plan...)), do(work("T1", "x"), work("T2", "x")), say("I wait")),
			"worker":    func(scripted.Request) scripted.Answer { return after(time.Minute, say("made")) },
		}, func(r *rig) {
			began := time.Now()
			m := r.mission(centurion.MissionOptions{})
			r.is(m, centurion.MissionCompleted, "")
			for _, id := range []string{"T1", "T2"} {
				task := r.task(m.ID, id)
				spans[id] = span{task.Started.Sub(began).Round(time.Second), task.Ended.Sub(began).Round(time.Second)}
			}
			if spans["T2"].from > 0 && spans["T1"].from == 0 {
				two := r.requests("worker")[1]
				has(t, two.First(), "x") // the brief
				if strings.Contains(strings.Join(plan, ""), "after") {
					has(t, two.First(), "# Handed over by what came before", "T1", "made")
				}
				equal(t, "told that it waits", r.count(m.ID, centurion.EventTaskWaiting), 1)
			}
		})
		return spans
	}
	minute := span{0, time.Minute}
	for name, test := range map[string]struct {
		plan []string
		two  span
	}{
		"free":             {[]string{"- [ ] T1 One", "- [ ] T2 Two"}, minute},
		"after":            {[]string{"- [ ] T1 One", "- [ ] T2 Two", "  - after: T1"}, span{time.Minute, 2 * time.Minute}},
		"the same files":   {[]string{"- [ ] T1 One", "  - files: src/**", "- [ ] T2 Two", "  - files: src/a.go"}, span{time.Minute, 2 * time.Minute}},
		"files apart":      {[]string{"- [ ] T1 One", "  - files: src/**", "- [ ] T2 Two", "  - files: doc/**"}, minute},
		"no files claimed": {[]string{"- [ ] T1 One", "  - files: src/**", "- [ ] T2 Two"}, minute},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, test.plan...)
			if name == "the same files" && got["T2"] == minute { // whoever came first
				got["T1"], got["T2"] = got["T2"], got["T1"]
			}
			equal(t, "T1", got["T1"], minute)
			equal(t, "T2", got["T2"], test.two)
		})
	}
}

// Tasks that wait for items nobody works on do not keep the mission waiting for ever, also over several steps.
func TestHeldForNobody(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(
			do(plans("- [ ] T1 One", "- [ ] T2 Two", "  - after: T1", "- [ ] T3 Three", "  - after: T2")),
			do(work("T2", "x"), work("T3", "x")), say("I wait for nobody"),
			do(work("T1", "x")), say("I wait")),
	}, func(r *rig) {
		began := time.Now()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "took", time.Since(began).Round(time.Second), DefaultCountdown)
		has(t, r.requests("commander")[3].Last(), "Next: T1", "2 tasks wait for items that no task works on")
		for _, id := range []string{"T1", "T2", "T3"} {
			equal(t, id, r.task(m.ID, id).Status, centurion.TaskCompleted)
		}
	})
}

func TestHeldForNobodyIsCounted(t *testing.T) {
	doc, err := todo.Parse([]byte("- [ ] T1 a\n- [ ] T2 b\n  - after: T1\n- [ ] T3 c\n  - after: T2\n- [ ] T4 d\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		waiting string
		others  string
		want    int
	}{
		{"T2", "", 1}, {"T2", "T1", 0}, {"T2 T3", "", 2}, {"T3 T2", "", 2}, {"T3 T2", "T1", 0}, {"T3", "T1", 1}, {"T4", "", 0}, {"T3 T4", "T2", 0},
	} {
		var waiting []centurion.Task
		alive := map[string]bool{}
		for id := range strings.FieldsSeq(test.waiting) {
			waiting = append(waiting, centurion.Task{Item: id})
			alive[id] = true
		}
		for id := range strings.FieldsSeq(test.others) {
			alive[id] = true
		}
		equal(t, test.waiting+" with "+test.others, plan.View{Doc: doc}.HeldForNobody(waiting, alive), test.want)
		equal(t, test.waiting+" without a plan", plan.View{}.HeldForNobody(waiting, alive), len(waiting))
	}
}

// ORCH-11, with the system's own watch and clock.
func TestRealWatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One")), do(work("T1", "x")), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			if q.Step() == 1 { // until the person's edit has been seen
				return do(call("bash", args{"command": "sleep 1h"}))
			}
			return say("one")
		},
	})
	r.cfg.Watch = nil
	r.restart()
	ctx, cancel := context.WithTimeout(r.ctx, time.Minute)
	defer cancel()
	until := func(what string, holds func() bool) {
		for !holds() {
			changed := r.store.Changed()
			if holds() {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				t.Fatal("never came: " + what)
			}
		}
	}
	var g guard.Group
	m := r.start(centurion.MissionOptions{})
	done := r.inBackground(&g, m.ID)
	until("the task's command", func() bool { return r.count(m.ID, centurion.EventToolStarted) == 3 })
	r.write(todoMD, checked("# Plan\n- [~] T1 One\n- [x] T2 Mine\n"))
	until("the person's edit", func() bool {
		for _, e := range r.events(m.ID, centurion.EventTodoUpdated) {
			if strings.Contains(string(e.Data), "T2") {
				return true
			}
		}
		return false
	})
	r.write(todoMD, checked("# Plan\n- [x] T2 Mine\n"))
	r.is(<-done, centurion.MissionCompleted, "")
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	for _, task := range r.tasks(m.ID) {
		equal(t, "status", task.Status, centurion.TaskCancelled)
	}
}
