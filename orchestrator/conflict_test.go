package orchestrator

import (
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/merge"
	"centurion/provider/scripted"
	"centurion/sandbox"
	"centurion/store"
)

// when holds an answer of the model back until something has happened.
func (r *rig) when(holds func(all []centurion.Event) bool) {
	for {
		changed := r.store.Changed()
		if all, err := r.store.Events(r.ctx, store.EventQuery{Limit: 1 << 20}); err != nil || holds(all) {
			return // an error ends the test elsewhere
		}
		select {
		case <-changed:
		case <-r.ctx.Done():
			return
		}
	}
}

// whenClaimed holds an answer of the model back until a task has claimed a file that it has written.
func (r *rig) whenClaimed(path string) {
	r.when(func([]centurion.Event) bool {
		tasks, err := r.store.Tasks(r.ctx, r.missionOf())
		return err != nil || slices.ContainsFunc(tasks, func(t centurion.Task) bool { return slices.Contains(t.Claims, path) || t.Status.Ended() })
	})
}

func count(all []centurion.Event, t centurion.EventType) (n int) {
	for _, e := range all {
		if e.Type == t {
			n++
		}
	}
	return n
}

// twoWriters is a mission in which two workers change the same line, side by side; the second one merges both when it is told.
func twoWriters(r **rig, second func(scripted.Request) scripted.Answer) map[string]script {
	return map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			switch q.Step() {
			case 1:
				return do(plans("- verify: `lacks x.txt <<<<<<<`", "- [ ] T1 One", "  - verify: `holds x.txt one`", "- [ ] T2 Two", "  - verify: `holds x.txt two`"))
			case 2:
				return do(work("T1", "write one"), work("T2", "write two"))
			}
			if strings.Contains(q.Last(), "call mission_complete") {
				return complete()
			}
			return say("I wait")
		},
		"worker": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "write one") {
				if q.Step() == 1 {
					return do(sh("put x.txt one"))
				}
				return say("it says one")
			}
			if q.Step() == 1 { // the other one has the file
				(*r).whenClaimed("x.txt")
				return do(sh("put x.txt two"))
			}
			if q.Step() == 2 { // the other one lands first
				(*r).when(func(all []centurion.Event) bool { return count(all, centurion.EventMergeDone) > 0 })
				return say("it says two")
			}
			return second(q)
		},
	}
}

// O4: a conflict comes back to the session that caused it, with both sides and what the other one wanted; what it makes of both is
// merged.
func TestConflictComesBack(t *testing.T) {
	t.Parallel()
	var r *rig
	r = inRepo(t, map[string]string{"x.txt": "nothing\n"}, twoWriters(&r, func(q scripted.Request) scripted.Answer {
		if q.Step() == 3 {
			return do(sh("put x.txt one and two"))
		}
		return say("both")
	}))
	m := r.mission(centurion.MissionOptions{})
	if m.Status != centurion.MissionCompleted {
		r.dump(m.ID)
	}
	r.is(m, centurion.MissionCompleted, "")
	equal(t, "merged", r.branchHas(m.ID, "x.txt"), "one and two")
	two := r.task(m.ID, "T2")
	equal(t, "returns", two.Returns, 1)
	told := r.events(m.ID, centurion.EventMergeConflict)
	equal(t, "conflicts told", len(told), 1)
	equal(t, "whose conflict", told[0].Task+" "+told[0].Session, two.ID+" "+two.Session)
	equal(t, "returns told", strings.Join(r.returns(m.ID, two.ID), "; "), "conflict x.txt 1")
	for _, q := range r.requests("worker") {
		if q.Session == two.Session && q.Step() == 3 {
			has(t, q.Last(), "does not fit", "- x.txt (", "What the others wanted", "T1 do T1", "it says one", "What you were to do: T2", "<<<<<<<", "Your checkout holds your work on top of the newest state")
		}
	}
	equal(t, "commits", r.git("rev-list", "--count", "main.."+isolation.BranchOf(m.ID)), "2")
}

// Markers that are left standing are never merged; after three returns the item is blocked and a person is asked.
func TestMarkersAreNeverMerged(t *testing.T) {
	faked(func(t *testing.T) {
		var r *rig
		r = inRepo(t, map[string]string{"x.txt": "nothing\n"}, twoWriters(&r, func(scripted.Request) scripted.Answer { return say("done with it") }))
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionBlocked, "T2")
		equal(t, "merged", r.branchHas(m.ID, "x.txt"), "one")
		two := r.task(m.ID, "T2")
		equal(t, "task", two.Status, centurion.TaskBlocked)
		equal(t, "returns", two.Returns, 3)
		has(t, two.Error.Message, "conflict markers", "x.txt")
		equal(t, "returns told", strings.Join(r.returns(m.ID, two.ID), "; "), "conflict x.txt 1; markers x.txt 2; markers x.txt 3")
		equal(t, "countdowns", r.told(two.Session, "(Returned 2 of 3; after that your work is not merged and your task is blocked.)"), 1)
		equal(t, "notices that name the branch", r.told(m.Session, "what was not merged stands on the branch centurion/"), 1)
		has(t, two.Result, "stands on the branch centurion/")
		has(t, r.read(todoMD), "[!] T2")
	})(t)
}

// firstAsk waits, outside of a bubble, until a mission asks something.
func (r *rig) firstAsk(mission string, l *life) store.Ask {
	r.t.Helper()
	for {
		changed := r.store.Changed()
		open, err := r.store.Asks(r.ctx, mission, true)
		if err != nil {
			r.t.Fatal(err)
		}
		if len(open) > 0 {
			return open[0]
		}
		select {
		case <-changed:
		case m := <-l.done:
			r.t.Fatalf("the mission is %s (%s), and nobody was asked", m.Status, m.Reason)
		}
	}
}

// A person who is asked can have it tried on, with a word of their own.
func TestStuckWorkIsAskedAbout(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.Last(), "call mission_complete") {
				return complete()
			}
			return steps(do(plans("- [ ] T1 One", "  - verify: `exists a.txt`")), do(work("T1", makeA)), say("I wait"), say("I wait"))(q)
		},
		"worker": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.Last(), "just write it") {
				return do(writes("a.txt", "a\n"))
			}
			return say("made it")
		},
	})
	m := r.start(centurion.MissionOptions{Ask: "ask"})
	l := r.live(m.ID)
	ask := r.firstAsk(m.ID, l)
	has(t, ask.Text, "T1", "the worker says: made it", "came back 3 times", "no a.txt", "How should it go on?")
	has(t, r.read(todoMD), "[!] T1")
	if err := r.host.Answer(r.ctx, ask.ID, "just write it", sandbox.Peer{}); err != nil {
		t.Fatal(err)
	}
	r.is(l.settled(), centurion.MissionCompleted, "")
	equal(t, "on the branch", r.branchHas(m.ID, "a.txt"), "a")
	// Who handed it out is told of it, with the result.
	equal(t, "returns told", r.told(m.Session, "It came back 4 times before that: the check `exists a.txt` failed.\n"), 1)
	equal(t, "answers told", r.told(m.Session, "How should it go on?\" and answered: \"just write it\"\n"), 1)
	equal(t, "countdowns", r.told(r.task(m.ID, "T1").Session, "(Returned 2 of 3; after that your work is not merged and a person is asked.)"), 1)
}

// again resumes the task of T1 that the newest message tells of as blocked.
func again(q scripted.Request) (scripted.Answer, bool) {
	id := nameIn(q.Last())
	return do(call("delegate_task", args{"agent": "worker", "description": "do T1", "prompt": "look once more", "item": "T1", "resume": id})),
		id != "" && strings.Contains(q.Last(), ") is blocked") && !strings.Contains(q.Last(), "look once more")
}

// A worker that says that it is stuck is believed at once: its work does not come back to it, and whoever has handed it out reads its reason.
// A person is asked where that one has tried already, and is there.
func TestWorkerSaysItIsStuck(t *testing.T) {
	const why = "STUCK: is there to be a header line or not?"
	for _, policy := range []string{"deny", "allow", "ask"} {
		t.Run(policy, faked(func(t *testing.T) {
			r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
				"commander": func(q scripted.Request) scripted.Answer {
					if strings.Contains(q.Last(), "call mission_complete") {
						return complete()
					}
					if a, yes := again(q); yes && policy == "ask" && q.Step() == 3 {
						return a
					}
					return steps(do(plans("- [ ] T1 One", "  - verify: `exists a.txt`")), do(work("T1", makeA)), say("I wait"), say("I wait"))(q)
				},
				"worker": func(q scripted.Request) scripted.Answer {
					if strings.Contains(q.Last(), "no header") {
						return do(writes("a.txt", "a\n"))
					}
					return say(map[bool]string{true: why, false: "made it"}[q.Step() <= 2])
				},
			})
			m := r.start(centurion.MissionOptions{Ask: policy, TrustVerify: true})
			l := r.live(m.ID)
			if policy == "ask" {
				ask := r.firstAsk(m.ID, l)
				has(t, ask.Text, "T1 do T1: the worker says: "+why, "no a.txt", "How should it go on?")
				equal(t, "returns", r.count(m.ID, centurion.EventTaskReturned), 0)
				tasks := r.tasks(m.ID)
				equal(t, "tasks", len(tasks), 2)
				equal(t, "asked for", ask.Task, tasks[1].ID)
				equal(t, "the first", tasks[0].Status, centurion.TaskBlocked)
				equal(t, "told", r.told(m.Session, "Why: its agent says that it is stuck"), 1)
				r.answer(ask.ID, "no header")
				r.is(l.settled(), centurion.MissionCompleted, "")
				return
			}
			r.is(l.settled(), centurion.MissionBlocked, "T1 One")
			equal(t, "returns", r.count(m.ID, centurion.EventTaskReturned), 0)
			equal(t, "asked", r.count(m.ID, centurion.EventQuestionAsked), 0)
			has(t, r.task(m.ID, "T1").Error.Message, "its agent says that it is stuck", "no a.txt")
			equal(t, "told", r.told(m.Session, why), 1)
		}))
	}
	for said, want := range map[string]bool{"STUCK": true, "**STUCK**: no": true, "STUCK\nno": true, "Stuck": false, "STUCKED": false, "I was STUCK": false, "": false} {
		if merge.GivesUp(said) != want {
			t.Errorf("%q gives up: %v", said, !want)
		}
	}
}

// Without a check nothing shows that the work of an agent which says that it is stuck is done: it is not merged, its item is not done, and no
// review makes it so. Who decides is told why, and a word of theirs has it tried on.
func TestStuckWithoutACheck(t *testing.T) {
	const why = "STUCK: is there to be a header line or not?"
	for _, c := range []struct {
		name, ask string
		shared    bool
	}{{"nobody", "deny", false}, {"nobody, shared", "deny", true}, {"a person", "ask", false}, {"a person, shared", "ask", true}} {
		t.Run(c.name, faked(func(t *testing.T) {
			r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
				"commander": func(q scripted.Request) scripted.Answer {
					if strings.Contains(q.Last(), "call mission_complete") {
						return complete()
					}
					if c.ask == "ask" && q.Step() == 3 {
						if a, yes := again(q); yes {
							return a
						}
						return say("I wait")
					}
					look := do(call("delegate_task", args{"agent": "reviewer", "item": "T2", "description": "look", "prompt": "look"}))
					return steps(do(barePlan("- [ ] T1 One", "- [ ] T2 Look @reviewer", "  - after: T1")), do(work("T1", makeA)),
						say("I wait"), look, say("I wait"), look, say("I wait"))(q)
				},
				"worker": func(q scripted.Request) scripted.Answer {
					switch {
					case strings.Contains(q.Last(), "no header"):
						return do(writes("b.txt", "b\n"))
					case q.Step() == 1:
						return do(writes("a.txt", "half\n"))
					case strings.Contains(q.Last(), "b.txt"):
						return say("made it")
					}
					return say(why)
				},
				"reviewer": steps(do(look), say("PASS: it is there")),
			})
			isolation := map[bool]string{true: "shared", false: "worktree"}[c.shared]
			m := r.start(centurion.MissionOptions{Ask: c.ask, Isolation: isolation})
			l := r.live(m.ID)
			if c.ask == "ask" {
				ask := r.firstAsk(m.ID, l)
				has(t, ask.Text, "T1 do T1: the worker says: "+why, "no check that could show otherwise", "How should it go on?")
				has(t, r.read(todoMD), "[!] T1")
				r.answer(ask.ID, "no header")
				r.is(l.settled(), centurion.MissionCompleted, "")
				equal(t, "returns", r.count(m.ID, centurion.EventTaskReturned), 1)
				equal(t, "tasks of T1", len(r.tasks(m.ID)), 3)
				return
			}
			r.is(l.settled(), centurion.MissionBlocked, "T1 One")
			task := r.task(m.ID, "T1")
			equal(t, "status", task.Status, centurion.TaskBlocked)
			equal(t, "merges", len(task.Landed), map[bool]int{true: len(task.Landed), false: 0}[c.shared])
			has(t, task.Error.Message, "its agent says that it is stuck", "no check")
			has(t, r.read(todoMD), "[!] T1", "[ ] T2")
			equal(t, "told", r.told(m.Session, why), 1)
			equal(t, "returns", r.count(m.ID, centurion.EventTaskReturned), 0)
			if !c.shared {
				equal(t, "on the branch", r.branchHas(m.ID, "a.txt"), "")
			}
		}))
	}
}

// The answer to the question about an item that is blocked, given while nobody works on the mission: the Commander reads it as it goes on, and
// its status counts the item once.
func TestAnswerToBlockedWork(t *testing.T) {
	t.Parallel()
	mend, held := "", make(chan struct{})
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.Last(), "call mission_complete") {
				return complete()
			}
			if strings.Contains(q.Last(), "has resumed the mission") {
				mend = q.Last()
				close(held)
			}
			return steps(do(plans("- [ ] T1 One", "  - verify: `exists a.txt`")), do(work("T1", makeA)), say("I wait"), say("I wait"))(q)
		},
		"worker": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.Last(), "just write it") {
				<-held
				return do(writes("a.txt", "a\n"))
			}
			return say("made it")
		},
	})
	m := r.start(centurion.MissionOptions{Ask: "ask", Unattended: true})
	r.is(r.run(m.ID), centurion.MissionBlocked, "asks:")
	open, err := r.store.Asks(r.ctx, m.ID, true)
	if err != nil || len(open) != 1 {
		t.Fatalf("%v open: %+v", err, open)
	}
	r.answer(open[0].ID, "just write it")
	r.is(r.run(m.ID), centurion.MissionCompleted, "")
	has(t, mend, "Todo: 0 open, ", "0 blocked.", "(the person has answered its question: \"just write it\")")
	if strings.Contains(mend, " 1 blocked") || !strings.Contains(mend, "1 running") && !strings.Contains(mend, "1 waiting") {
		t.Errorf("status: %s", mend)
	}
}

// toldTo is what a session was told by messages that are no answers of its model.
func toldTo(r *rig, session string) string {
	r.t.Helper()
	all, err := r.store.Messages(r.ctx, session)
	var b strings.Builder
	for _, m := range all {
		if m.Role == centurion.RoleUser {
			b.WriteString(m.Text() + "\n")
		}
	}
	if err != nil {
		r.t.Error(err)
	}
	return b.String()
}

// A worker that has changed nothing and ends with a question is told once that nobody reads it, which is no return; if it asks again its
// task is blocked, with the question for whoever has handed it out.
func TestWorkerAsksInPlainText(t *testing.T) {
	const why = "I have looked around.\n\nShall I use tabs or spaces?"
	for _, c := range []struct {
		name   string
		then   scripted.Answer // what it does when it is told
		shared bool
		check  string
		status centurion.TaskStatus
		asked  bool
	}{
		{"asks again", say(why), false, "", centurion.TaskBlocked, true},
		{"asks again with a check", say(why), false, "  - verify: `exists go.txt`", centurion.TaskBlocked, true},
		{"asks again, shared", say(why), true, "", centurion.TaskBlocked, true},
		{"does it", do(writes("a.txt", "a\n")), false, "", centurion.TaskCompleted, true},
		{"needs nothing", say("Spaces, as everywhere: nothing is to be changed."), true, "", centurion.TaskCompleted, true},
		{"says STUCK", say("STUCK: tabs or spaces?"), false, "", centurion.TaskBlocked, true},
	} {
		t.Run(c.name, faked(func(t *testing.T) {
			r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
				"commander": steps(do(barePlan("- [ ] T1 One", c.check)), do(work("T1", "indent it")), say("I wait"), say("I see")),
				"worker": func(q scripted.Request) scripted.Answer {
					switch q.Step() {
					case 1:
						return say(why)
					case 2:
						return c.then
					}
					return say("Done. Is that all right?") // it has changed a file by then
				},
			})
			isolation := map[bool]string{true: "shared", false: "worktree"}[c.shared]
			m := r.mission(centurion.MissionOptions{Ask: "deny", Isolation: isolation, TrustVerify: true})
			task := r.task(m.ID, "T1")
			equal(t, "status", task.Status, c.status)
			equal(t, "returns", task.Returns, 0)
			equal(t, "returns told", strings.Join(r.returns(m.ID, task.ID), "; "), "question  0")
			equal(t, "told", r.told(task.Session, "You have changed no file, and your last text ends with a question. No one reads a question there. Answer it yourself"), 1)
			if c.status == centurion.TaskBlocked {
				has(t, r.read(todoMD), "[!] T1")
				has(t, toldTo(r, m.Session), "Task T1 (worker: do T1) is blocked", "tabs or spaces?")
			}
			if strings.HasPrefix(c.name, "asks again") {
				has(t, task.Error.Message, "it has changed no file and ended twice with a question: Shall I use tabs or spaces?")
			}
		}))
	}
}
