package orchestrator

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/guard"
	"centurion/permission"
	"centurion/provider/scripted"
)

// runner is an agent that takes part in races.
func runner(name string) agents.Definition {
	return agents.Definition{Name: name, Mode: "subagent", Description: "tries", Prompt: "You are " + name + ".", Source: name + ".md"}
}

// racing is a project whose plan has one item that alice, bob and carol try; they work as cast says.
func racing(t *testing.T, race, check string, cast map[string]script) *rig {
	t.Helper()
	if cast["commander"] == nil {
		cast["commander"] = steps(do(plans("- [ ] T1 One", "  - race: "+race, "  - verify: `"+check+"`")), do(work("T1", "make it")), say("I wait"), complete(), say("it ends"))
	}
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, cast)
	r.cfg.Cast = ownCast(t, runner("alice"), runner("bob"), runner("carol"))
	r.restart()
	return r
}

// ends says how the tries of a mission ended, in their order.
func (r *rig) ends(mission string) string {
	var out []string
	for _, t := range r.tasks(mission) {
		how := t.Name() + " " + t.Agent + " " + string(t.Status)
		if t.Lost() {
			how += " lost"
		}
		if len(t.Landed) > 0 {
			how += " merged"
		}
		out = append(out, how)
	}
	return strings.Join(out, ", ")
}

// The first work that its check proves is merged; the others end, which is no failure, and their work is kept.
func TestFirstProvenTryWins(t *testing.T) {
	t.Parallel()
	r := racing(t, "alice, bob", "exists a.txt", map[string]script{
		"alice": steps(do(writes("wrong.txt", "a\n")), do(sh("sleep 20s")), say("too late")),
		"bob":   steps(do(writes("a.txt", "a\n")), say("made it")),
	})
	m := r.mission(centurion.MissionOptions{})
	r.is(m, centurion.MissionCompleted, "")
	equal(t, "ends", r.ends(m.ID), "T1/1 alice cancelled lost, T1/2 bob completed merged")
	equal(t, "notices", r.count(m.ID, centurion.EventTaskDelivered), 1)
	equal(t, "merges", r.count(m.ID, centurion.EventMergeDone), 1)
	has(t, r.read(".opencode/todo.md"), "[x] T1 One")
	lost := r.tasks(m.ID)[0]
	has(t, lost.Reason, "the race was won by T1/2 (bob)")
	has(t, lost.Result, "stands on the branch")
	has(t, strings.Join(r.results(m.ID, "delegate_task"), ""), "T1/1 (alice), T1/2 (bob)", "about 2 times the cost of one")
	said := ""
	for _, q := range r.requests("commander") {
		said = texts(q)
	}
	has(t, said, "Task T1/2 (bob: do T1) is completed", "It decided the race for T1. The others: T1/1 (alice) was overtaken")
	for _, q := range r.requests("bob") {
		has(t, q.First(), "2 agents try this item")
	}
	receipts, err := r.store.Receipts(r.ctx, m.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range receipts {
		if x.Item == "T1" && x.Task == lost.ID {
			t.Errorf("a receipt of the lost try counts: %+v", x)
		}
	}
}

// Without a proof all are waited for, then the smaller change is merged, and a review decides as for any work.
func TestUnprovenTriesWaitForAll(t *testing.T) {
	t.Parallel()
	r := racing(t, "alice, bob, carol", "passes", map[string]script{
		"alice": steps(do(writes("a.txt", "1\n2\n3\n")), say("made it")),
		"bob":   steps(do(writes("b.txt", "1\n")), say("made it")),
		"carol": steps(do(sh("sleep 1s")), do(writes("c.txt", "1\n2\n")), say("made it")),
	})
	m := r.mission(centurion.MissionOptions{})
	equal(t, "ends", r.ends(m.ID), "T1/1 alice cancelled lost, T1/2 bob completed merged, T1/3 carol cancelled lost")
	equal(t, "notices", r.count(m.ID, centurion.EventTaskDelivered), 1)
	equal(t, "b.txt", r.branchHas(m.ID, "b.txt"), "1")
	has(t, texts(r.last("commander")), "passes` passed: unproven", "Have it reviewed")
	waited := false
	for _, e := range r.events(m.ID, centurion.EventTaskWaiting) {
		waited = waited || strings.Contains(string(e.Data), "the other tries of its race")
	}
	if !waited {
		t.Error("nobody is told why a try waits")
	}
}

// last returns the newest request of an agent.
func (r *rig) last(agent string) scripted.Request {
	all := r.requests(agent)
	return all[len(all)-1]
}

// Of several that are proven when the queue comes to them, the smaller change is merged, although it came later.
func TestSmallerOfTwoProofsWins(t *testing.T) {
	t.Parallel()
	var r *rig
	told := func(typ centurion.EventType, text string, times int) func([]centurion.Event) bool {
		return func(all []centurion.Event) bool {
			n := 0
			for _, e := range all {
				if e.Type == typ && strings.Contains(string(e.Data), text) {
					n++
				}
			}
			return n >= times
		}
	}
	ends := func(until func([]centurion.Event) bool, before ...scripted.Answer) script {
		return func(q scripted.Request) scripted.Answer {
			if q.Step() <= len(before) {
				return before[q.Step()-1]
			}
			r.when(until)
			return say("made it")
		}
	}
	made := told(centurion.EventToolStarted, `"filePath":"a.txt"`, 2) // by both
	builds := told(centurion.EventVerifyStarted, `"build 3s"`, 1)     // which the queue waits for
	r = inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": steps(do(plans("- verify: `build 3s`", "- [ ] T1 One", "  - race: alice, bob", "  - verify: `exists a.txt`", "- [ ] T2 Two", "  - verify: `exists b.txt`")),
			do(work("T2", "make b.txt")), do(onward), do(work("T1", makeA)), say("I wait"), complete(), say("it ends")),
		"worker": ends(made, do(writes("b.txt", "b\n"))),
		"alice":  ends(builds, do(writes("a.txt", "1\n2\n3\n"))),
		"bob":    ends(builds, do(writes("x.txt", "x\n")), do(writes("a.txt", "1\n"))),
	})
	r.cfg.Cast = ownCast(t, runner("alice"), runner("bob"))
	r.restart()
	m := r.mission(centurion.MissionOptions{})
	equal(t, "ends", r.ends(m.ID), "T2 worker completed merged, T1/1 alice cancelled lost, T1/2 bob completed merged")
}

// A try that fails is told with the others, when the last one has ended; then the item is as after any such end.
func TestNoTrySucceeds(t *testing.T) {
	t.Parallel()
	r := racing(t, "alice, bob", "exists a.txt", map[string]script{
		"alice": steps(do(writes("x.txt", "x\n")), say("STUCK: no idea")),
		"bob":   steps(do(sh("sleep 1s")), say("STUCK: cannot do it")),
	})
	m := r.mission(centurion.MissionOptions{})
	equal(t, "ends", r.ends(m.ID), "T1/1 alice blocked, T1/2 bob blocked")
	equal(t, "notices", r.count(m.ID, centurion.EventTaskDelivered), 1)
	has(t, texts(r.last("commander")), "Task T1/2 (bob: do T1) is blocked", "No try of T1 has succeeded. The others: T1/1 (alice) is blocked")
	has(t, r.read(".opencode/todo.md"), "[!] T1 One")
}

// One that fails ends nothing for the others, and the item stays as it is until they end.
func TestATryFailsAlone(t *testing.T) {
	t.Parallel()
	r := racing(t, "alice, bob", "exists a.txt", map[string]script{
		"alice": steps(say("STUCK: no idea")),
		"bob":   steps(do(sh("sleep 1s")), do(writes("a.txt", "a\n")), say("made it")),
	})
	m := r.mission(centurion.MissionOptions{})
	r.is(m, centurion.MissionCompleted, "")
	equal(t, "ends", r.ends(m.ID), "T1/1 alice blocked, T1/2 bob completed merged")
	equal(t, "notices", r.count(m.ID, centurion.EventTaskDelivered), 1)
	has(t, r.read(".opencode/todo.md"), "[x] T1 One")
}

// What cannot be run is no plan: its writer is told why. In a plan that a person edits it is refused when it is handed out.
func TestRaceThatCannotBeRun(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ race, told string }{
		"an unknown agent":          {"alice, bobb", `race: of T1: there is no agent "bobb"; agents that can take part: worker, alice, bob, carol`},
		"one that changes no files": {"alice, reviewer", `race: of T1: "reviewer" changes no files; agents that can take part: worker`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := racing(t, test.race, "exists a.txt", map[string]script{})
			m := r.mission(centurion.MissionOptions{})
			has(t, strings.Join(r.results(m.ID, "update_todo"), ""), test.told)
			equal(t, "tasks", len(r.tasks(m.ID)), 0)
			has(t, strings.Join(r.results(m.ID, "delegate_task"), ""), "there is no todo list yet")

			edited := "- [ ] T1 One\n  - race: " + test.race + "\n  - verify: `exists a.txt`\n"
			r = racing(t, "", "", map[string]script{"commander": func(q scripted.Request) scripted.Answer {
				switch q.Step() {
				case 1:
					return do(plans("- [ ] T1 One", "  - race: alice, bob", "  - verify: `exists a.txt`"))
				case 2:
					r.write(todoMD, edited)
					return do(work("T1", "make it"))
				}
				return say("it ends")
			}})
			m = r.mission(centurion.MissionOptions{})
			has(t, strings.Join(r.results(m.ID, "delegate_task"), ""), test.told)
			equal(t, "tasks", len(r.tasks(m.ID)), 0)
		})
	}
}

// Each agent of a race needs the permission to be handed work, whichever agent the call names.
func TestRaceNeedsPermissionForEachAgent(t *testing.T) {
	t.Parallel()
	r := racing(t, "alice, bob", "exists a.txt", map[string]script{})
	r.cfg.Rules = permit("task", "bob", permission.Deny)
	r.restart()
	m := r.mission(centurion.MissionOptions{})
	has(t, r.results(m.ID, "delegate_task")[0], "not allowed: task bob")
	equal(t, "tasks", len(r.tasks(m.ID)), 0)
}

// Where all sessions share one directory there are no races.
func TestNoRaceInOneDirectory(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "  - race: worker, worker", "  - verify: `exists a.txt`")), do(work("T1", makeA)), say("it ends")),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		has(t, strings.Join(r.results(m.ID, "update_todo"), ""), "each try needs a worktree of its own")
		equal(t, "tasks", len(r.tasks(m.ID)), 0)
	})
}

// The item's name cancels all tries, the name of a try only that one; one notice tells it.
func TestCancelRace(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ cancel, ends string }{
		"all": {"T1", "T1/1 alice cancelled, T1/2 bob cancelled"},
		"one": {"T1/1", "T1/1 alice cancelled, T1/2 bob completed merged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
				"commander": steps(do(plans("- [ ] T1 One", "  - race: alice, bob", "  - verify: `exists a.txt`")), do(work("T1", makeA), onward),
					do(call("cancel_task", args{"task_id": test.cancel})), say("I wait"), say("it ends")),
				"alice": steps(do(sh("sleep 60s"))),
				"bob":   steps(do(sh("sleep 1s")), do(writes("a.txt", "a\n")), say("made it")),
			})
			r.cfg.Cast = ownCast(t, runner("alice"), runner("bob"))
			r.restart()
			m := r.mission(centurion.MissionOptions{})
			equal(t, "ends", r.ends(m.ID), test.ends)
			equal(t, "notices", r.count(m.ID, centurion.EventTaskDelivered), 1)
		})
	}
}

// A race whose host goes away at any row of its journal goes on to the same end: one work is merged, once, and told once.
func TestRaceSurvivesStops(t *testing.T) {
	t.Parallel()
	cast := func() map[string]script {
		return map[string]script{
			"alice": steps(do(writes("wrong.txt", "a\n")), do(sh("sleep 20s")), say("too late")),
			"bob": func(q scripted.Request) scripted.Answer { // a call that was interrupted has to be made again
				if strings.Contains(strings.Join(q.Results(), "\n"), "a.txt") {
					return say("made it")
				}
				return do(writes("a.txt", "a\n"))
			},
		}
	}
	whole := racing(t, "alice, bob", "exists a.txt", cast())
	whole.is(whole.mission(centurion.MissionOptions{}), centurion.MissionCompleted, "")
	rows := whole.store.LastSeq()
	for n := rows / 4; n < rows; n += stride(rows / 6) {
		t.Run(fmt.Sprint("at row ", n), func(t *testing.T) {
			t.Parallel()
			r := racing(t, "alice, bob", "exists a.txt", cast())
			m := r.start(centurion.MissionOptions{})
			ctx, cancel := context.WithCancelCause(r.ctx)
			var g guard.Group
			g.Go("stop", func() error { return r.at(ctx, n, func() { cancel(centurion.ErrShutdown) }) })
			m = r.runIn(ctx, m.ID)
			cancel(nil)
			if err := g.Wait(); err != nil {
				t.Error(err)
			}
			r.model.AllowRewinds()
			r.restart()
			if m.Status != centurion.MissionCompleted {
				m = r.run(m.ID)
			}
			r.is(m, centurion.MissionCompleted, "")
			equal(t, "ends", r.ends(m.ID), "T1/1 alice cancelled lost, T1/2 bob completed merged")
			equal(t, "merges", r.count(m.ID, centurion.EventMergeDone), 1)
			equal(t, "notices", r.count(m.ID, centurion.EventTaskDelivered), 1)
			has(t, r.read(".opencode/todo.md"), "[x] T1 One")
		})
	}
}

// The files of an item are held until all its tries have ended: another item with the same files waits.
func TestTriesHoldTheirFiles(t *testing.T) {
	t.Parallel()
	r := racing(t, "", "", map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "  - race: alice, bob", "  - files: a.txt", "  - verify: `exists a.txt`", "- [ ] T2 Two", "  - files: a.txt, b.txt", "  - verify: `exists b.txt`")),
			do(work("T1", makeA), work("T2", "make b.txt")), say("I wait"), complete(), say("it ends")),
		"alice":  steps(say("STUCK: no idea")),
		"bob":    steps(do(sh("sleep 2s")), do(writes("a.txt", "a\n")), say("made it")),
		"worker": steps(do(writes("b.txt", "b\n")), say("made it")),
	})
	m := r.mission(centurion.MissionOptions{})
	r.is(m, centurion.MissionCompleted, "")
	equal(t, "ends", r.ends(m.ID), "T1/1 alice blocked, T1/2 bob completed merged, T2 worker completed merged")
	names := map[string]string{}
	for _, task := range r.tasks(m.ID) {
		names[task.ID] = task.Name()
	}
	var order []string
	for _, e := range r.events(m.ID, centurion.EventTaskStarted, centurion.EventTaskBlocked, centurion.EventTaskCompleted) {
		order = append(order, strings.TrimPrefix(string(e.Type), "task.")+" "+names[e.Task])
	}
	told := strings.Join(order, ", ")
	if !strings.HasPrefix(told, "started T2, completed T2, ") { // whichever item is first, the other waits
		has(t, told, "blocked T1/1, completed T1/2, started T2")
	}
}
