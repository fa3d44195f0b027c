package orchestrator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/plan"
	"centurion/provider/scripted"
)

// ORCH-89: an item that a person adds gets an id that no task of the mission has had, also where the item of that task was deleted in the same
// save: the task is cancelled, and is no task of the new item. A later host keeps to it. Nor does it get that of an item which nobody has worked on
// yet: the Commander may be about to hand that one out.
func TestNewItemGetsNoIDOfATask(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two")), do(work("T1", "first"), work("T2", "second")), say("I wait"), do(call("ask_user", args{"question": "And now?"})), say("well")),
		"worker":    func(scripted.Request) scripted.Answer { return after(time.Minute, say("one")) },
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(30 * time.Second)
		r.write(todoMD, "# Plan\n- [~] T1 One\n"+passes+"\n- [ ] Something else\n  - verify: `false`\n")
		time.Sleep(10 * time.Second) // a text that is much shorter may have a writer who has not come to its end
		has(t, r.read(todoMD), "- [ ] T3 Something else")
		equal(t, "the task of the deleted item", r.task(m.ID, "T2").Status, centurion.TaskCancelled)
		r.write(todoMD, "# Plan\n- [~] T1 One\n"+passes+"\n- [ ] Something else again\n  - verify: `false`\n")
		time.Sleep(10 * time.Second)
		has(t, r.read(todoMD), "- [ ] T4 Something else again")
		m = <-done
		g.Wait()
		r.runs++
		equal(t, "checks of the new item", r.shell.times("false"), 0)

		r.restart()
		r.write(todoMD, checked("# Plan\n- [x] T1 One\n- [ ] Another\n"))
		done = r.inBackground(&g, m.ID)
		time.Sleep(2 * time.Minute)
		has(t, r.read(todoMD), "- [ ] T3 Another") // T3 had no task
		r.write(todoMD, checked("# Plan\n- [ ] Yet another\n"))
		time.Sleep(time.Minute)
		if text := r.read(todoMD); strings.Contains(text, " T1 ") || strings.Contains(text, " T2 ") {
			t.Errorf("an id was given again:\n%s", text)
		}
		<-done
		g.Wait()
	})
}

// A slip in the line of an item is told the person once, and not the Commander, which reads nothing until it is corrected; it ends nobody's work: it is measured by the checks that it
// was given, nobody else is by them, and the mark is set when the line can be read again.
func TestSlipInThePlanEndsNoWork(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two", "  - verify: `check two`", "- [ ] T3 Three")), do(work("T1", "first"), work("T2", "second"), work("T3", "third")),
			say("I wait"), say("well"), say("well")),
		"worker": func(req scripted.Request) scripted.Answer {
			if strings.Contains(fmt.Sprint(req.Messages()), "third") {
				return after(110*time.Second, say("three"))
			}
			return after(time.Minute, say("one"))
		},
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(30 * time.Second)
		slipped := "# Plan\n- [~] T1 One\n" + passes + "\n* T2 Two\n  - verify: `check two`\n- [~] T3 Three\n" + passes + "\n"
		r.write(todoMD, slipped)
		time.Sleep(10 * time.Second)
		r.write(todoMD, "\n"+r.read(todoMD)) // everything is one line further down
		time.Sleep(10 * time.Second)
		equal(t, "T2", r.task(m.ID, "T2").Status, centurion.TaskRunning)
		time.Sleep(20 * time.Second)
		equal(t, "T1", r.task(m.ID, "T1").Status, centurion.TaskCompleted)
		equal(t, "T2", r.task(m.ID, "T2").Status, centurion.TaskCompleted)
		equal(t, "its check ran", r.shell.times("check two"), 1)
		notes := r.notes(m.ID)
		if len(notes) != 1 {
			t.Fatalf("notes: %q", notes)
		}
		has(t, notes[0], ".opencode/todo.md: line 4 (* T2 Two): it is not read as item T2")

		r.write(todoMD, strings.Replace(r.read(todoMD), "* T2", "- [~] T2", 1))
		r.is(<-done, centurion.MissionCompleted, "")
		g.Wait()
		if text := r.read(todoMD); strings.Count(text, "T2 Two") != 1 || !strings.Contains(text, "- [x] T2 Two") {
			t.Errorf("the plan that was put right became\n%s", text)
		}
		var told int
		for _, msg := range r.requests("commander")[len(r.requests("commander"))-1].Messages() {
			told += strings.Count(msg.Text, "has mistakes")
		}
		equal(t, "times that the Commander was told", told, 0)
	})
}

// A plan that cannot be read at all is told when it is saved, and not only when the mission has nothing else to do.
func TestUnreadablePlanIsToldAtOnce(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One")), do(work("T1", "x")), say("I wait"), say("well")),
		"worker":    func(scripted.Request) scripted.Answer { return after(time.Minute, say("one")) },
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(30 * time.Second)
		r.write(todoMD, "# Plan\n- [~] T1 One\n```\nno end\n")
		time.Sleep(10 * time.Second) // a text that is much shorter may have a writer who has not come to its end
		notes := strings.Join(r.notes(m.ID), "\n")
		has(t, notes, ".opencode/todo.md: it cannot be read", "line 3")
		r.write(todoMD, checked("# Plan\n- [~] T1 One\n"))
		r.is(<-done, centurion.MissionCompleted, "")
		g.Wait()
	})
}

// A task that has not begun waits for its item's line, and the mission asks for it when there is nothing else to do.
func TestSlipHoldsWhoHasNotBegun(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two", "  - after: T1")), do(work("T1", "first"), work("T2", "second")), say("I wait"), say("well")),
		"worker":    func(scripted.Request) scripted.Answer { return after(time.Minute, say("one")) },
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(30 * time.Second)
		r.write(todoMD, "# Plan\n- [~] T1 One\n"+passes+"\n- [ ]T2 Two\n")
		time.Sleep(10 * time.Second) // a text that is much shorter may have a writer who has not come to its end
		two := r.task(m.ID, "T2")
		equal(t, "T2", two.Status, centurion.TaskWaiting)
		equal(t, "why", two.Reason, "line 4 of the plan, which is not read as item T2")
		m = <-done
		g.Wait()
		r.runs++
		r.is(m, centurion.MissionBlocked, "T2")
		var told int
		for _, msg := range r.requests("commander")[len(r.requests("commander"))-1].Messages() {
			told += strings.Count(msg.Text, "has mistakes")
		}
		equal(t, "times that the Commander was told", told, 1)
	})
}

// A mistake that is corrected before the Commander reads of it is not told; of one that it has read of it hears that it is corrected.
func TestMistakeThatIsPutRight(t *testing.T) {
	slip := func(line int, key string) plan.Mistake {
		return plan.Mistake{Key: key, Place: fmt.Sprintf("line %d", line), Text: fmt.Sprintf("line %d (%s)", line, key)}
	}
	a, b := slip(1, "a"), slip(2, "b")
	type step struct {
		found  []plan.Mistake
		unread bool     // the word of before
		has    []string // what is to be read; nothing if it is empty
		hasNot string
	}
	for name, steps := range map[string][]step{
		"not read":            {{[]plan.Mistake{a}, false, []string{"has mistakes", "line 1 (a)"}, "In the plan"}, {nil, true, nil, ""}},
		"read":                {{[]plan.Mistake{a}, false, []string{"line 1 (a)"}, ""}, {nil, false, []string{"In the plan line 1 is correct now."}, "mistakes"}},
		"one of two":          {{[]plan.Mistake{a, b}, false, []string{"(a)", "(b)"}, ""}, {[]plan.Mistake{b}, true, []string{"(b)"}, "line 1"}},
		"one read, one not":   {{[]plan.Mistake{a}, false, []string{"(a)"}, ""}, {[]plan.Mistake{a, b}, false, []string{"(b)"}, "(a)"}, {[]plan.Mistake{b}, true, []string{"(b)", "line 1 is correct now"}, ""}},
		"back before it read": {{[]plan.Mistake{a}, false, []string{"(a)"}, ""}, {nil, false, []string{"correct now"}, ""}, {[]plan.Mistake{slip(3, "a")}, true, nil, ""}, {nil, false, []string{"line 1 is correct now"}, ""}},
		"told, then again":    {{[]plan.Mistake{a}, false, []string{"(a)"}, ""}, {nil, false, []string{"correct now"}, ""}, {[]plan.Mistake{a}, false, []string{"(a)"}, "line 1 is correct now"}},
	} {
		var told plan.ToldMistakes
		for i, s := range steps {
			var text string
			told, text = told.Meet(s.found, s.unread)
			what := fmt.Sprintf("%s, step %d: %q", name, i+1, text)
			for _, part := range s.has {
				if !strings.Contains(text, part) {
					t.Errorf("%s: no %q", what, part)
				}
			}
			if len(s.has) == 0 && text != "" || s.hasNot != "" && strings.Contains(text, s.hasNot) {
				t.Errorf("%s: %q is there", what, s.hasNot)
			}
		}
	}
}

// The delivery of a mistake that is corrected before it is read is taken back.
func TestWordOfMistakeIsTakenBack(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One")), do(work("T1", "first")), say("I wait"), say("well")),
		"worker":    func(scripted.Request) scripted.Answer { return after(time.Minute, say("one")) },
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(20 * time.Second)
		now := r.read(todoMD)
		r.write(todoMD, strings.Replace(now, "- [~] T1", "* T1", 1))
		time.Sleep(10 * time.Second)
		waiting, err := r.store.PendingDeliveries(r.ctx, m.Session)
		if err != nil || len(waiting) != 1 {
			t.Fatalf("%d words wait, error %v", len(waiting), err)
		}
		has(t, waiting[0].Text, "has mistakes")
		r.write(todoMD, now)
		r.is(<-done, centurion.MissionCompleted, "")
		g.Wait()
		for _, msg := range r.requests("commander")[len(r.requests("commander"))-1].Messages() {
			if strings.Contains(msg.Text, "has mistakes") || strings.Contains(msg.Text, "correct now") {
				t.Errorf("the Commander was told: %s", msg.Text)
			}
		}
	})
}
