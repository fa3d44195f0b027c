package orchestrator

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/orchestrator/brief"
	"centurion/provider/scripted"
)

// resumes hands T1 out, and again to the same session when its task is blocked: with its item, or without one.
func resumesBlocked(item string) script {
	return func(q scripted.Request) scripted.Answer {
		switch {
		case q.Step() == 1:
			return do(plans("- [ ] T1 One", "  - verify: `exists b.txt`"))
		case q.Step() == 2:
			return do(work("T1", "begin"))
		case q.Step() == 3:
			a := args{"agent": "worker", "description": "d", "prompt": "go on", "resume": nameIn(q.Last())}
			if item != "" {
				a["item"] = item
			}
			return do(call("delegate_task", a))
		case strings.Contains(q.Last(), "call mission_complete"):
			return complete()
		}
		return say("I wait")
	}
}

// Who goes on with an item finds there at once what it wrote and what was never merged: it reads it before it writes anything, and its
// first edit is not refused as if somebody else had been at the file.
func TestResumedSessionFindsItsWork(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": resumesBlocked("T1"),
		"worker": func(q scripted.Request) scripted.Answer {
			switch {
			case !strings.Contains(q.Last(), "go on") && q.Step() == 1:
				return do(writes("a.txt", "one\n"))
			case strings.Contains(q.Last(), "# Your task continues"):
				return do(call("read", args{"filePath": "a.txt"}), call("edit", args{"filePath": "a.txt", "oldString": "one", "newString": "two"}), writes("b.txt", "b\n"))
			}
			return say("ended")
		},
	})
	r.cfg.Returns = 1
	r.restart()
	m := r.mission(centurion.MissionOptions{})
	if m.Status != centurion.MissionCompleted {
		r.dump(m.ID)
	}
	r.is(m, centurion.MissionCompleted, "")
	tasks := r.tasks(m.ID)
	equal(t, "the first task", tasks[0].Status, centurion.TaskBlocked)
	equal(t, "a.txt", r.branchHas(m.ID, "a.txt"), "two")
	has(t, r.results(m.ID, "read")[0], "one")
	equal(t, "brief", r.told(tasks[1].Session, "and what you did before and was not merged is laid on top: a.txt. Read files again"), 1)
}

// Who goes on once more, after its work was merged at the second try, finds what was merged: the text of the first try is not laid on top.
func TestSupersededWorkIsNotLaidAgain(t *testing.T) {
	t.Parallel()
	again := func(prompt string) scripted.Answer {
		return do(call("delegate_task", args{"agent": "worker", "description": "d", "prompt": prompt, "resume": "T1", "item": "T1"}))
	}
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			switch {
			case q.Step() == 1:
				return do(plans("- [ ] T1 One", "  - verify: `exists b.txt`"))
			case q.Step() == 2:
				return do(work("T1", "begin"))
			case q.Step() == 3:
				return again("go on")
			case q.Step() == 4:
				a := again("once more")
				a.Calls = append([]scripted.Call{call("update_todo", args{"items": []args{{"id": "T1", "status": "open"}}})}, a.Calls...)
				return a
			case strings.Contains(q.Last(), "call mission_complete"):
				return complete()
			}
			return say("I wait")
		},
		"worker": func(q scripted.Request) scripted.Answer {
			switch last := q.Last(); {
			case q.Step() == 1:
				return do(writes("a.txt", "first\n"))
			case strings.Contains(last, "# Your task continues") && strings.Contains(last, "go on"):
				return do(call("edit", args{"filePath": "a.txt", "oldString": "first", "newString": "second"}), writes("b.txt", "b\n"))
			case strings.Contains(last, "# Your task continues"):
				return do(writes("c.txt", "c\n"), call("read", args{"filePath": "a.txt"}))
			}
			return say("ended")
		},
	})
	r.cfg.Returns = 1
	r.restart()
	m := r.mission(centurion.MissionOptions{})
	r.is(m, centurion.MissionCompleted, "")
	tasks := r.tasks(m.ID)
	equal(t, "tasks", len(tasks), 3)
	reads := r.results(m.ID, "read")
	if len(reads) == 0 {
		r.dump(m.ID)
		t.Fatal(r.results(m.ID, "delegate_task"))
	}
	if got := reads[len(reads)-1]; !strings.Contains(got, "second") || strings.Contains(got, "first") {
		t.Errorf("once more, a.txt is\n%s", got)
	}
	equal(t, "a.txt", r.branchHas(m.ID, "a.txt"), "second")
	equal(t, "brief", r.told(tasks[2].Session, "was not merged is laid on top"), 1) // of the second try
}

// A question to a session that had to leave its work unmerged does not merge it: that work is not laid where it reads, and it is told where it is.
func TestAskedSessionIsToldOfItsBranch(t *testing.T) {
	faked(func(t *testing.T) {
		r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
			"commander": resumesBlocked(""),
			"worker": func(q scripted.Request) scripted.Answer {
				if q.Step() == 1 {
					return do(writes("a.txt", "one\n"))
				}
				return say("ended")
			},
		})
		r.cfg.Returns = 1
		r.restart()
		m := r.mission(centurion.MissionOptions{})
		tasks := r.tasks(m.ID)
		equal(t, "tasks", len(tasks), 2)
		equal(t, "merged", len(tasks[1].Landed), 0)
		equal(t, "brief", r.told(tasks[1].Session, "What you did before and was not merged is not: see it with git show centurion/"), 1)
	})(t)
}

// Work that is sent back by a check that prints nothing is told so, that no file was changed where none was, and an output that was
// told before is not told again.
func TestRedCheckIsTold(t *testing.T) {
	faked(func(t *testing.T) {
		r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
			"commander": steps(do(plans("- [ ] T1 One", "  - verify: `exists b.txt`")), do(work("T1", "begin")), say("I wait")),
			"worker":    func(scripted.Request) scripted.Answer { return say("it is done") },
		})
		m := r.mission(centurion.MissionOptions{})
		worker := r.tasks(m.ID)[0].Session
		if r.told(worker, "on the newest state of the mission as it is, since you have changed no file that is not merged, and it failed") == 0 {
			r.dump(m.ID)
			t.Error("it is not told that nothing was changed")
		}
		before := []centurion.Receipt{{ID: "1", Command: "c", Output: "FAILED in 12 ms\n"}}
		shown := func(output string) bool { return output == "FAILED in 12 ms" }
		r2 := centurion.Receipt{ID: "2", Command: "c", Output: "FAILED in 7 ms", ExitCode: 1}
		has(t, brief.AccountAgain(r2, before, shown), "ended with exit code 1", "It printed the same as the last time, but for numbers.")
		before[0].Passed = true
		has(t, brief.AccountAgain(r2, before, shown), "<output>\nFAILED in 7 ms\n</output>")
		r2.Output = " "
		has(t, brief.AccountAgain(r2, before, shown), "It printed nothing.")
	})(t)
}

// Who handed a task out is told with its result what a person wrote to its agent meanwhile.
func TestPersonsWordsAreTold(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One")), do(work("T1", "x")), say("I wait")),
		"worker":    steps(after(time.Minute, bash("build 1s")), say("made")),
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		r.send(m.ID, "T1", " use tabs ", false)
		r.is(l.settled(), centurion.MissionCompleted, "")
		equal(t, "told", r.told(m.Session, "The person wrote to it: \"use tabs\"\n"), 1)
		equal(t, "of questions", r.told(m.Session, "The person was asked"), 0)
	})
}

// What was taken out is shown as the difference that the work makes, and said to be that.
func TestRemovedIsExplained(t *testing.T) {
	t.Parallel()
	has(t, brief.Hollow(centurion.Receipt{Command: "c", Removed: "-old\n+new\n"}), "the + lines are what was missing then, the - lines what stood there instead", "<removed>\n-old\n+new\n</removed>")
}
