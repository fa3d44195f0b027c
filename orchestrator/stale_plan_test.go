package orchestrator

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/provider/scripted"
)

// ORCH-58: a plan that a reviewer sends whole may be older than what the Commander has changed meanwhile. That stays, item by item and line by
// line, and is said; what the reviewer itself has changed counts, a check as well.
func TestStalePlanOfAReviewer(t *testing.T) {
	const (
		old    = "- [x] T1 One\n- [ ] T2 Two\n  - verify: `old`\n- [ ] T3 Three\n  - verify: `three`"
		better = "- [x] T1 One\n- [ ] T2 Two, and better\n  - verify: `better`\n- [ ] T3 Three\n  - verify: `three`\n- [ ] T5 Five"
	)
	for name, test := range map[string]struct {
		sends string
		plan  string
		told  bool
	}{
		"as it was":            {old, better, true},
		"with an item":         {old + "\n- [ ] T4 Four", better + "\n- [ ] T4 Four", true},
		"with a check":         {strings.ReplaceAll(old, "`three`", "`four`"), strings.ReplaceAll(better, "`three`", "`four`"), true},
		"with the same check":  {strings.ReplaceAll(old, "`old`", "`mine`"), strings.ReplaceAll(better, "`better`", "`mine`"), true},
		"with what it is now":  {strings.ReplaceAll(better, "`better`", "`mine`"), strings.ReplaceAll(better, "`better`", "`mine`"), false},
		"of another one whole": {"- [x] T1 One\n- [ ] T7 Seven", "- [x] T1 One\n- [ ] T7 Seven", false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(barePlan(old)), do(handTo("reviewer", "", "look"), onward), do(barePlan(better)), say("I wait"), say("Well.")),
				"reviewer":  steps(do(barePlan(test.sends)), say("PASS")),
			}, func(r *rig) {
				m := r.mission(centurion.MissionOptions{})
				said := r.results(m.ID, "update_todo")
				equal(t, "plans", len(said), 3)
				for line := range strings.SplitSeq(test.plan, "\n") {
					if !strings.Contains(r.read(todoMD), line+"\n") {
						t.Errorf("%q is not in\n%s", line, r.read(todoMD))
					}
				}
				equal(t, "lines", strings.Count(r.read(todoMD), "\n"), strings.Count(test.plan, "\n")+2)
				equal(t, "told: "+said[2], strings.Contains(said[2], "T2 was changed while you worked, and stays so: Two, and better, verify `"), test.told)
			})
		})
	}
}

// A plan that the Commander sends whole may be an old copy. What is open in it keeps the mark that it has, and that is said: what is done is not
// done again. An item with another title is new work.
func TestOldCopyKeepsMarks(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(barePlan("- [x] T1 One\n- [-] T2 Two\n- [ ] T3 Three\n- [x] T4 Four")), do(work("T3", "slow"), onward),
			after(time.Second, do(barePlan("- [ ] T1 One\n- [ ] T2 Two\n- [ ] T3 Three, and better\n- [ ] T4 Another four\n- [ ] T5 Five"))), say("I wait")),
		"worker": steps(after(time.Minute, say("made"))),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{MaxRounds: 8})
		said := r.results(m.ID, "update_todo")
		if len(said) < 2 {
			r.dump(m.ID)
			t.Fatal(said)
		}
		has(t, said[1], "T1 stays done, although you sent it as open; to reopen it, set its status to open with items.", "T2 stays cancelled, although you sent it as open",
			"T3 stays running, although you sent it as open.", "[x] T1", "[-] T2", "[~] T3", "[ ] T4", "[ ] T5")
		if strings.Contains(said[1], "T4 stays") || strings.Contains(said[1], "T5 stays") {
			t.Error(said[1])
		}
	})
}

// The line of an item may change just before its task ends. One that cannot be read is checked as it was when the work began, and one that is
// gone ends the task. A review runs no check of its item in either case.
func TestItemChangesAsItsTaskEnds(t *testing.T) {
	const slip, gone = "# Plan\n- [~]T1 One\n  - verify: `exists a.txt`\n- [ ] T2 Two\n", "# Plan\n- [ ] T2 Two\n"
	for name, test := range map[string]struct {
		agent, plan, message string
		checks               int
	}{
		"a worker's cannot be read":   {"worker", slip, "", 1},
		"a worker's is gone":          {"worker", gone, "T1 was removed from the plan", 0},
		"a reviewer's stays":          {"reviewer", "# Plan\n- [x] T1 One\n  - verify: `exists a.txt`\n- [ ] T2 Two\n", "", 0},
		"a reviewer's cannot be read": {"reviewer", slip, "", 0},
	} {
		for place, isolated := range map[string]bool{"in worktrees": true, "in one place": false} {
			t.Run(name+" "+place, faked(func(t *testing.T) {
				var r *rig
				last := func(agent, text string) scripted.Answer {
					if agent == test.agent { // no watch tells of it
						if err := os.WriteFile(filepath.Join(r.dir, todoMD), []byte(test.plan), 0o644); err != nil {
							t.Error(err)
						}
					}
					return say(text)
				}
				cast := map[string]script{
					"commander": steps(do(barePlan("- [ ] T1 One", "  - verify: `exists a.txt`", "- [ ] T2 Two")), do(work("T1", "write it")), say("I wait"),
						do(call("write", args{"filePath": "own.txt", "content": "x\n"})), do(handTo("reviewer", "T1", "look")), say("I wait")),
					"worker": func(q scripted.Request) scripted.Answer {
						if q.Step() == 1 {
							return do(sh("put a.txt a"))
						}
						return last("worker", "made it")
					},
					"reviewer": func(scripted.Request) scripted.Answer { return last("reviewer", "PASS") },
				}
				if r = newRig(t, cast); isolated {
					r = inRepo(t, nil, cast)
				}
				m := r.mission(centurion.MissionOptions{MaxRounds: 9})
				receipts, err := r.store.Receipts(r.ctx, m.ID)
				if err != nil {
					t.Error(err)
				}
				tasks := slices.DeleteFunc(r.tasks(m.ID), func(one centurion.Task) bool { return one.Agent != test.agent })
				if len(tasks) == 0 {
					t.Fatal("no task")
				}
				one := tasks[0]
				equal(t, "checks", len(slices.DeleteFunc(receipts, func(got centurion.Receipt) bool { return got.Task != one.ID })), test.checks)
				if test.message == "" {
					equal(t, "status", one.Status, centurion.TaskCompleted)
				} else if one.Error == nil || one.Status != centurion.TaskCancelled || !strings.Contains(one.Error.Message, test.message) {
					t.Errorf("%s: %+v", one.Status, one.Error)
				}
			}))
		}
	}
}
