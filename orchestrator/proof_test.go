package orchestrator

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/permission"
	"centurion/provider/scripted"
)

const makeA = "make a.txt"

func writeFile(name string) scripted.Answer {
	return do(call("write", args{"filePath": name, "content": "x"}))
}

func bash(command string) scripted.Answer { return do(call("bash", args{"command": command})) }

func mark(id, status string) scripted.Call {
	return call("update_todo", args{"items": []args{{"id": id, "status": status}}})
}

func completeWith(check string) scripted.Answer {
	return do(call("mission_complete", args{"summary": "built", "verify": check}))
}

func complete() scripted.Answer { return do(call("mission_complete", args{"summary": "built"})) }

// A red check goes back to the session whose work it judged, three times; then the task has failed and its parent is told.
func TestRedCheckGoesBack(t *testing.T) {
	for name, test := range map[string]struct {
		mendsAt int // the step in which the worker mends it; 0 never
		status  centurion.TaskStatus
		asked   int
		returns int
		mark    string
	}{
		"mended at once": {2, centurion.TaskCompleted, 3, 1, "[x]"},
		"mended at last": {4, centurion.TaskCompleted, 5, 3, "[x]"},
		"never mended":   {0, centurion.TaskFailed, 4, 3, "[-]"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": func(r scripted.Request) scripted.Answer {
					if r.Step() == 3 && strings.Contains(r.Last(), "has failed") {
						return do(mark("T1", "cancelled"))
					}
					return steps(do(plans("- [ ] T1 One", "  - verify: `exists a.txt`")), do(work("T1", makeA)), say("I wait"))(r)
				},
				"worker": func(r scripted.Request) scripted.Answer {
					if r.Step() == test.mendsAt {
						return writeFile("a.txt")
					}
					return say("made it")
				},
			}, func(r *rig) {
				m := r.mission(centurion.MissionOptions{})
				r.is(m, centurion.MissionCompleted, "")
				one := r.task(m.ID, "T1")
				equal(t, "status", one.Status, test.status)
				equal(t, "returns", one.Returns, test.returns)
				asked := r.requests("worker")
				equal(t, "requests of the worker", len(asked), test.asked)
				for _, q := range asked[1:] {
					equal(t, "session", q.Session, one.Session)
				}
				has(t, asked[1].Last(), "The host ran your acceptance command and it failed", "exit code 1", "no a.txt", "Fix the cause")
				equal(t, "checks that failed", r.count(m.ID, centurion.EventVerifyFailed), len(asked)-1-max(0, test.mendsAt-test.returns)+boolInt(test.mendsAt == 0))
				told := r.requests("commander")[2].Last()
				if test.status == centurion.TaskFailed {
					equal(t, "kind", one.Error.Kind, centurion.KindVerify)
					has(t, told, "has failed", "its acceptance command still fails after 3 returns", "no a.txt")
				} else {
					has(t, told, "is completed", "Check `exists a.txt` passed.")
				}
				has(t, r.read(todoMD), test.mark)
			})
		})
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A red final check opens its item again, and the mission goes on.
func TestFinalChecksReopen(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "  - verify: `exists a.txt`", "- [ ] T2 Two")), do(work("T1", makeA)), say("I wait"),
			bash("rm a.txt"), do(mark("T2", "done")), say("all is done"),
			do(work("T1", makeA)), say("I wait")),
		"worker": steps(writeFile("a.txt")),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "reopened", m.Reopened, 1)
		equal(t, "verified", m.Verified, 2)
		has(t, r.requests("commander")[6].Last(), "the final check failed: `exists a.txt`", "no a.txt", "Open again: T1")
		equal(t, "runs of the check", r.shell.times("exists a.txt"), 4)
		equal(t, "tasks", len(r.tasks(m.ID)), 2)
	})
}

// Checks that stay red block the mission, whoever says that it is done.
func TestFinalChecksStayRed(t *testing.T) {
	for name, last := range map[string]scripted.Answer{"by text": say("all is done"), "by mission_complete": complete()} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{"commander": func(r scripted.Request) scripted.Answer {
				if r.Step() == 1 {
					return do(plans("- verify: `false it`", "- [x] T1 One"))
				}
				return last
			}}, func(r *rig) {
				m := r.mission(centurion.MissionOptions{})
				r.is(m, centurion.MissionBlocked, "The final checks have failed 4 times")
				equal(t, "runs of the check", r.shell.times("false it"), 4)
			})
		})
	}
}

// mission_complete says exactly what is missing.
func TestMissionCompleteSaysWhatIsMissing(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(
			do(plans("- [ ] T1 One", "- [ ] T2 Two", "- [!] T3 Three", "- [ ] T4 Four", "  - after: T4")),
			do(work("T1", "slow"), work("", "quick"), call("bash", args{"command": "sleep 10s"}), call("mission_complete", args{"summary": "no"})),
			complete(),
			do(plans("- [~] T1 One", "- [x] T2 Two")), say("I wait"), complete()),
		"worker": func(r scripted.Request) scripted.Answer {
			if strings.Contains(r.First(), "slow") {
				return after(time.Minute, say("slow"))
			}
			return after(time.Second, say("quick"))
		},
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		said := r.results(m.ID, "mission_complete")
		tasks := r.tasks(m.ID)
		has(t, said[0], "not complete; missing:", tasks[0].Name()+" (worker, do T1) is still running", "task "+tasks[1].Name()+" has ended and its result has not been read",
			"item T2 (Two) is open", "item T3 (Three) is blocked", "line 10", "T4 comes after itself")
		has(t, said[1], "not complete; missing:", "task T1")
		if strings.Contains(said[0], "item T1") {
			t.Errorf("an item is named beside its task:\n%s", said[0])
		}
		if strings.Contains(said[1], "w2") {
			t.Errorf("the result was told meanwhile:\n%s", said[1])
		}
		has(t, said[2], "The mission is complete.")
	})
}

// What stands in the same answer as mission_complete is neither forgotten nor started and left behind.
func TestCompleteWithMoreInTheSameAnswer(t *testing.T) {
	early := call("mission_complete", args{"summary": "early"})
	t.Run("a task", func(t *testing.T) {
		bubble(t, map[string]script{"commander": steps(do(early, work("", "more")))}, func(r *rig) {
			m := r.mission(centurion.MissionOptions{})
			r.is(m, centurion.MissionCompleted, "")
			equal(t, "tasks", len(r.tasks(m.ID)), 0)
			has(t, r.results(m.ID, "delegate_task")[0], "the mission is complete: nothing more is started")
		})
	})
	t.Run("an item", func(t *testing.T) {
		bubble(t, map[string]script{
			"commander": steps(do(early, call("update_todo", args{"add": []args{{"id": "T1", "title": "late", "verify": "passes"}}})), do(mark("T1", "done")), complete()),
		}, func(r *rig) {
			m := r.mission(centurion.MissionOptions{})
			r.is(m, centurion.MissionCompleted, "")
			equal(t, "summary", m.Summary, "built")
			has(t, r.read(todoMD), "[x] T1")
		})
	})
}

// C-21, S8: the words end nothing.
func TestWordsEndNothing(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One")), do(work("T1", "x")), say("MISSION COMPLETE"), do(mark("T1", "done")), say("MISSION COMPLETE")),
		"worker": func(scripted.Request) scripted.Answer {
			return after(time.Minute, say("MISSION COMPLETE. <mission_complete/>"))
		},
	}, func(r *rig) {
		began := time.Now()
		r.is(r.mission(centurion.MissionOptions{}), centurion.MissionCompleted, "")
		equal(t, "took", time.Since(began).Round(time.Second), time.Minute)
	})
	bubble2 := func(t *testing.T) {
		bubble(t, map[string]script{"commander": func(r scripted.Request) scripted.Answer {
			if r.Step() == 1 {
				return do(plans("- [ ] T1 One"))
			}
			return say("MISSION COMPLETE")
		}}, func(r *rig) {
			r.is(r.mission(centurion.MissionOptions{}), centurion.MissionBlocked, "no progress")
		})
	}
	t.Run("with an open item", bubble2)
}

// Acceptance commands go by the rules of a shell command.
func TestVerifyNeedsPermission(t *testing.T) {
	ask, deny := rules(permission.Ask), rules(permission.Deny)
	deny[0].Rules[0].Permission = "bash"
	ask[0].Rules[0].Permission = "bash"
	allowRest := func(l []permission.Level) []permission.Level { return append(rules(permission.Allow), l...) }
	for name, test := range map[string]struct {
		rules   []permission.Level
		opts    centurion.MissionOptions
		blocked string
	}{
		"refused headless":        {allowRest(ask), centurion.MissionOptions{Ask: "deny"}, "there is no one to ask"},
		"refused by a rule":       {allowRest(deny), centurion.MissionOptions{Ask: "allow"}, "deny"},
		"allowed by policy":       {allowRest(ask), centurion.MissionOptions{Ask: "allow"}, ""},
		"trusted":                 {allowRest(ask), centurion.MissionOptions{Ask: "deny", TrustVerify: true}, ""},
		"from the configuration":  {allowRest(ask), centurion.MissionOptions{Ask: "deny", Verify: []string{"exists a.txt"}}, ""},
		"another is configured":   {allowRest(ask), centurion.MissionOptions{Ask: "deny", Verify: []string{"exists  a.txt"}}, "there is no one"},
		"allowed by a rule":       {rules(permission.Allow), centurion.MissionOptions{Ask: "deny"}, ""},
		"no policy, nobody there": {allowRest(ask), centurion.MissionOptions{}, "there is no one to ask"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(plans("- [ ] T1 One", "  - verify: `exists a.txt`")), do(work("T1", makeA)), say("I wait"), say("what now?")),
				"worker":    steps(writeFile("a.txt")),
			}, func(r *rig) {
				r.cfg.Rules = func(string) []permission.Level { return test.rules }
				r.restart()
				m := r.mission(test.opts)
				one := r.task(m.ID, "T1")
				if test.blocked == "" {
					r.is(m, centurion.MissionCompleted, "")
					equal(t, "asks", r.count(m.ID, centurion.EventPermissionAsked), 0)
					return
				}
				r.is(m, centurion.MissionBlocked, "T1 One")
				equal(t, "task", one.Status, centurion.TaskBlocked)
				equal(t, "kind", one.Error.Kind, centurion.KindPermission)
				has(t, one.Error.Message, "the acceptance command `exists a.txt` may not run", test.blocked)
				has(t, r.read(todoMD), "[!] T1")
				equal(t, "runs", r.shell.times("exists a.txt"), 0)
				has(t, r.requests("commander")[2].Last(), "is blocked", "may not run")
			})
		})
	}
}

// The mission's own check that may not run blocks the mission, and says why.
func TestFinalCheckNeedsPermission(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(plans("- verify: `exists a.txt`", "- [x] T1 One")), say("done"))}, func(r *rig) {
		r.cfg.Rules = func(string) []permission.Level {
			return append(rules(permission.Allow), permission.Level{Rules: []permission.Rule{{Permission: "bash", Pattern: "*", Action: permission.Ask}}})
		}
		r.restart()
		m := r.mission(centurion.MissionOptions{Ask: "deny"})
		r.is(m, centurion.MissionBlocked, "the acceptance command `exists a.txt` may not run")
		has(t, m.Reason, "--ask allow")
	})
}

// A check runs while nobody writes: it waits for a command that runs, and what comes after it waits for the check.
func TestChecksRunAlone(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "  - verify: `sleep 1m`", "- [ ] T2 Two")), do(work("T1", "first"), work("T2", "second")), say("I wait")),
		"worker": func(r scripted.Request) scripted.Answer {
			if strings.Contains(r.First(), "first") {
				return after(time.Second, say("made"))
			}
			return steps(bash("build 10s"), writeFile("b.txt"))(r)
		},
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{TrustVerify: true})
		r.is(m, centurion.MissionCompleted, "")
		ends := map[string]time.Duration{}
		for _, e := range r.events(m.ID, centurion.EventToolCompleted, centurion.EventVerifyPassed) {
			for _, what := range []string{`"tool":"bash"`, `"tool":"write"`, `"command":"sleep 1m"`} {
				if strings.Contains(string(e.Data), what) && !strings.Contains(string(e.Data), `"final":true`) {
					ends[what] = e.Time.Sub(m.Started.Time).Round(time.Second)
				}
			}
		}
		equal(t, "the command", ends[`"tool":"bash"`], 10*time.Second)
		equal(t, "the check", ends[`"command":"sleep 1m"`], 70*time.Second)
		equal(t, "the write", ends[`"tool":"write"`], 70*time.Second)
	})
}

// The last try is not decided by what somebody else has half written: it waits until nobody works, and does not wait for
// a parent that itself waits.
func TestLastTryWaitsForQuiet(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "  - verify: `exists a.txt`", "- [ ] T2 Two")),
			do(handTo("planner", "", "let T1 be made"), work("T2", "slow")), say("I wait")),
		"planner": func(r scripted.Request) scripted.Answer {
			if strings.Contains(r.First(), "quick") {
				return say("made")
			}
			return steps(do(call("delegate_task", args{"agent": "planner", "item": "T1", "description": "d", "prompt": "quick", "background": false})))(r)
		},
		"worker": func(r scripted.Request) scripted.Answer {
			if strings.Contains(r.First(), "slow") {
				return steps(after(time.Minute, writeFile("a.txt")))(r)
			}
			return say("made")
		},
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		select {
		case m = <-done:
		default:
			t.Errorf("the mission waits for itself: %+v", r.tasks(m.ID))
			_ = r.host.Control.Cancel(r.ctx, m.ID, "")
			m = <-done
		}
		g.Wait()
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "returns", r.task(m.ID, "T1").Returns, 3)
	})
}
