package orchestrator

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/permission"
	"centurion/provider/scripted"
)

func inBack(command string) scripted.Call {
	return call("run_background", args{"command": command})
}

func checkBack(id string) scripted.Call { return call("check_background", args{"id": id}) }

func killBack(id string) scripted.Call {
	return call("check_background", args{"id": id, "action": "kill"})
}

// ORCH-52, ORCH-53: it is started at once, looked at while it runs, and its session is told of its end once, at its next
// step.
func TestBackground(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker": steps(
			do(inBack("build 1m"), inBack("false alarm"), inBack("build 2h"), checkBack("bg_1")),
			after(90*time.Second, do(checkBack(""))),
			do(checkBack("BG_1"), checkBack("bg_2"), killBack("bg_3"), killBack("bg_3"), checkBack("bg_2"), checkBack("bg_4"), call("check_background", args{"action": "kill"})),
		),
	}, func(r *rig) {
		began := time.Now()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("somebody has waited: %s", took)
		}
		for i, out := range r.results(m.ID, "run_background") {
			has(t, out, fmt.Sprintf("bg_%d is running, for 5m at most", i+1))
		}
		got := r.results(m.ID, "check_background")
		has(t, got[0], "bg_1 has been running for", "(build 1m)", "no output")
		has(t, got[1], "bg_1 has ended with exit code 0 after 1m (build 1m)", "bg_2 has ended with exit code 1", "(false alarm)", "bg_3 has been running for 1m30s (build 2h)")
		has(t, got[2], "bg_1 has ended with exit code 0 after 1m", "no output")
		has(t, got[3], "bg_2 has ended with exit code 1", "new output, of 11 bytes in all:\nit is false")
		has(t, got[4], "bg_3 was killed after 1m30s (build 2h)")
		has(t, got[5], "bg_3 was killed after 1m30s (build 2h)")
		has(t, got[6], "no new output, 11 bytes in all")
		has(t, got[7], "you have no background command bg_4", "yours are bg_1, bg_2, bg_3")
		has(t, got[8], "kill which command?")
		asked := r.requests("worker")
		equal(t, "first request", strings.Contains(asked[0].Last(), "bg_"), false)
		has(t, asked[1].Last(), "<status>", "bg_2 has ended with exit code 1")
		has(t, asked[2].Last(), "<status>", "bg_1 has ended with exit code 0 after 1m")
		equal(t, "bg_2 is told twice", strings.Contains(asked[2].Last()[strings.Index(asked[2].Last(), "<status>"):], "bg_2"), false)
		equal(t, "its end is told to who has seen it", strings.Contains(asked[3].Last(), "<status>"), false)
		if left, err := os.ReadDir(r.cfg.Scratch); err != nil || len(left) > 0 {
			t.Errorf("what they printed is left behind: %v, %v", left, err)
		}
	})
}

// What confinement has kept a command from, and the limit for which it was killed, is told at its end and shown by a look.
func TestBackgroundTellsOfConfinement(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker":    steps(do(inBack("held it had no network"), inBack("bomb 512 processes")), do(checkBack("bg_1"), checkBack("bg_2"))),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		held, killed := "(it had no network)", "bg_2 was killed after 0s: it used more than 512 processes, the limit for all commands of a workspace. Use less at a time."
		has(t, r.requests("worker")[1].Last(), "bg_1 has ended with exit code 1 after 0s "+held, killed)
		got := r.results(m.ID, "check_background")
		has(t, got[0], "no output\n"+held)
		has(t, got[1], killed)
	})
}

// What was told in a request that failed is told again.
func TestBackgroundNewsOfAFailedRequest(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			switch q.Turn {
			case 1:
				return do(inBack("false"), call("bash", args{"command": "build 1s"}))
			case 2:
				return scripted.Answer{Error: &scripted.Error{Status: 500, Message: "no"}}
			case 3:
				return do(call("ls", args{}))
			}
			return say("done")
		},
	}, func(r *rig) {
		r.is(r.mission(centurion.MissionOptions{}), centurion.MissionCompleted, "")
		asked := r.requests("worker")
		equal(t, "requests", len(asked), 4)
		for i, q := range asked {
			equal(t, fmt.Sprintf("told in request %d", i), strings.Contains(q.Last(), "bg_1 has ended with exit code 1"), i == 1 || i == 2)
		}
	})
}

// ORCH-52: the permission is that of bash, found with the same analysis. A refused command does not run.
func TestBackgroundPermission(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker":    steps(do(inBack("build 1m && rm a.txt"), inBack("build 1s"), call("bash", args{"command": "build 2s"}))),
	}, func(r *rig) {
		r.cfg.Rules = func(string) []permission.Level {
			return append(rules(permission.Allow), permission.Level{Name: "deny", Rules: []permission.Rule{{Permission: "bash", Pattern: "rm *", Action: permission.Deny}}})
		}
		r.restart()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		got := r.results(m.ID, "run_background")
		has(t, got[0], "not allowed: bash", "rm")
		has(t, got[1], "bg_1 is running")
		equal(t, "commands", strings.Join(r.shell.ran, "; "), "build 1s; build 2s")
	})
}

// ORCH-52: of one mission 8 run at the same time; who may not start one is told which run, and may when one has ended. A
// session sees its own only.
func TestBackgroundCap(t *testing.T) {
	var calls []scripted.Call
	for range 9 {
		calls = append(calls, inBack("build 4m"))
	}
	bubble(t, map[string]script{
		"commander": steps(do(work("", "first"), work("", "other")), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "other") {
				return steps(after(10*time.Second, do(inBack("build 1m"), checkBack("bg_1"), checkBack(""), killBack("bg_1"))),
					after(time.Minute, do(inBack("build 1m"))))(q)
			}
			return steps(do(calls...), after(30*time.Second, do(killBack("bg_2"))), after(time.Minute, say("done")))(q)
		},
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		ran := 0
		var refused []string
		for _, out := range r.results(m.ID, "run_background") {
			if strings.Contains(out, "is running") {
				ran++
			} else {
				refused = append(refused, out)
			}
		}
		equal(t, "ran", ran, 9)
		equal(t, "refused", len(refused), 2)
		for _, out := range refused {
			has(t, out, "8 background commands of this mission run already (bg_1, bg_2, bg_3, bg_4, bg_5, bg_6, bg_7, bg_8)", "kill")
		}
		got := strings.Join(r.results(m.ID, "check_background"), "\n")
		equal(t, "what is not his", strings.Count(got, "you have no background command bg_1. you have started none"), 2)
		has(t, got, "you have no background commands;")
	})
}

// ORCH-52: they end with the work of their task, before it is checked; who is sent back hears of it.
func TestBackgroundEndsBeforeTheCheck(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "  - verify: `exists a.txt`"), work("T1", "x")), say("I wait")),
		"worker": steps(do(inBack("build 50m")), say("done already"),
			do(checkBack("bg_1"), inBack("build 50m"), call("write", args{"filePath": "a.txt", "content": "x"}))),
	}, func(r *rig) {
		began := time.Now()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it took %s", took)
		}
		has(t, r.results(m.ID, "check_background")[0], "bg_1 was killed after", "the work of its task had ended")
		has(t, r.requests("worker")[2].Last(), "<status>", "bg_1 was killed after", "the work of its task had ended")
		has(t, r.results(m.ID, "run_background")[1], "bg_2 is running")
	})
}

// ORCH-52, TRIAL R1: after a restart they are gone, a look says so, and no id is given a second time.
func TestBackgroundAfterRestart(t *testing.T) {
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(work("", "x")), say("I wait")),
				"worker": steps(do(inBack("build 50m")), after(time.Minute, do(checkBack("bg_1"), killBack("bg_1"), inBack("build 50m"), checkBack(""), checkBack("bg_3"))),
					say("done")),
			}, func(r *rig) {
				m := r.start(centurion.MissionOptions{})
				l := r.live(m.ID)
				time.Sleep(30 * time.Second)
				l.goAway(way)
				m = r.run(m.ID)
				r.is(m, centurion.MissionCompleted, "")
				got := r.results(m.ID, "check_background")
				for i := range 2 {
					has(t, got[i], "bg_1 does not run any more: it ended with the host that started it", "(build 50m)", "what it printed is lost")
				}
				has(t, r.results(m.ID, "run_background")[1], "bg_2 is running")
				has(t, got[2], "bg_2 has been running")
				has(t, got[3], "you have no background command bg_3", "yours are bg_2")
			})
		})
	}
}

// runsOnly hides that a runner runs commands in the background.
type runsOnly struct{ centurion.Runner }

func TestBackgroundNeedsARunner(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker":    steps(do(inBack("build 1s"))),
	}, func(r *rig) {
		r.cfg.Runner = runsOnly{r.shell}
		r.restart()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		has(t, r.results(m.ID, "run_background")[0], "nothing here runs commands in the background", "use bash")
	})
}

// A command that crashes the runner is no crash of the mission.
func TestBackgroundCrash(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker":    steps(do(inBack("panic")), do(checkBack("bg_1"))),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		has(t, r.results(m.ID, "check_background")[0], "bg_1 failed: ", "the shell has crashed")
	})
}

// A background command that its agent has forgotten ends with the work: who has handed it out reads that with the result, and the journal has it. One
// that had ended is not told of.
func TestForgottenBackground(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker":    steps(do(inBack("false alarm"), inBack("build 2h")), after(time.Minute, say("The whole test run goes on in the background."))),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		const note = "he host ended its background command bg_2 \"build 2h\", which was still running when its turn ended; it had printed nothing"
		task := r.tasks(m.ID)[0]
		equal(t, "result", task.Result, "(T"+note+")\n\nThe whole test run goes on in the background.")
		equal(t, "told", r.told(m.Session, note), 1)
		var notes strings.Builder
		for _, e := range r.events(m.ID, centurion.EventMissionUpdated) {
			if d, err := event.Decode[event.MissionData](e); err == nil && d.Note != "" {
				notes.WriteString(d.Note + "\n")
			}
		}
		equal(t, "notes", notes.String(), "worker 0/0: t"+note+"\n")
	})
}

// The next worker reads first that the forgotten command was ended, then its agent's words.
func TestForgottenBackgroundIsToldFirst(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two", "  - after: T1")), do(work("T1", "x"), work("T2", "y")), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "\n\nx\n") && q.Step() == 1 {
				return do(inBack("build 2h"))
			}
			return say("A watcher is still running.")
		},
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		has(t, toldTo(r, r.task(m.ID, "T2").Session), "- T1 do T1: (The host ended its background command bg_1 \"build 2h\"", "it had printed nothing)\n\nA watcher is still running.")
	})
}
