package orchestrator

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/provider/scripted"
	"centurion/store"
)

func goesOn(agent, prompt, task string, more args) scripted.Call {
	a := args{"agent": agent, "description": "go on", "prompt": prompt, "resume": task}
	maps.Copy(a, more)
	return call("delegate_task", a)
}

// ORCH-10, ORCH-118: a task that has ended is resumed by its id or its session's: the same agent goes on in the same
// conversation with the new prompt, as a task of its own, waited for or in the background, with an item or without.
func TestTaskIsResumed(t *testing.T) {
	var at *rig
	bubble(t, map[string]script{
		"commander": func(r scripted.Request) scripted.Answer {
			id, session := firstTask(r), ""
			if all := at.tasks(at.mission1()); len(all) > 0 {
				session = all[0].Session
			}
			return steps(do(plans("- [ ] T1 One", "  - verify: `exists made`"), work("", "look at a.go")), say("I wait"),
				do(goesOn("worker", "which line?", id, args{"background": false})),
				do(goesOn("worker", "mend it", session, args{"item": "T1"})), say("I wait"))(r)
		},
		"worker": func(r scripted.Request) scripted.Answer {
			switch {
			case strings.Contains(r.Last(), "mend it"):
				return do(call("write", args{"filePath": "made", "content": "x"}))
			case strings.Contains(r.Last(), "which line?"):
				return after(time.Minute, say("line 7"))
			}
			return say("seen")
		},
	}, func(r *rig) {
		at = r
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		tasks := r.tasks(m.ID)
		equal(t, "tasks", len(tasks), 3)
		for i, want := range []string{"seen", "line 7", "seen"} {
			equal(t, "session", tasks[i].Session, tasks[0].Session)
			equal(t, "status", tasks[i].Status, centurion.TaskCompleted)
			equal(t, "attempt", tasks[i].Attempt, 1)
			equal(t, "result", tasks[i].Result, want)
			equal(t, "resumes", tasks[i].Resumes, []string{"", tasks[0].ID, tasks[1].ID}[i]) // a session's id stands for its newest task
			if tasks[i].Started.Before(tasks[i].Created.Time) || tasks[i].Usage.USD <= 0 {
				t.Errorf("task %d: started %v, %+v", i, tasks[i].Started, tasks[i].Usage)
			}
		}
		has(t, r.results(m.ID, "delegate_task")[1], "completed", "<result>\nline 7")
		for i, said := range r.results(m.ID, "delegate_task")[1:] {
			has(t, said, "It continues the earlier conversation; its name is "+tasks[i+1].Name()+" from now on.")
		}
		equal(t, "items done with a check", m.Verified, 1)
		asked := r.requests("worker") // all that was said before stands before what is asked now
		has(t, texts(asked[len(asked)-1]), "# Your task", "look at a.go", "seen", "which line?", "line 7", "mend it", "# Item T1 of the plan")
		sessions, _ := r.store.Sessions(r.ctx, m.ID)
		equal(t, "sessions", len(sessions), 2)
		equal(t, "the session's task", sessions[1].Metadata.Task, tasks[2].ID)
	})
}

// ORCH-10: what cannot be resumed is refused with the reason and what would work; nothing is started.
func TestResumeRefused(t *testing.T) {
	var at *rig
	bubble(t, map[string]script{
		"commander": func(r scripted.Request) scripted.Answer {
			id := firstTask(r)
			switch r.Step() {
			case 1:
				return do(work("", "quick"), work("", "slow"), onward)
			case 2:
				return do(call("bash", args{"command": "build 10s"})) // the quick one ends meanwhile
			case 3:
				tasks := at.tasks(at.mission1())
				return do(goesOn("worker", "x", tasks[1].ID, nil), goesOn("reviewer", "x", id, nil), goesOn("worker", "x", tasks[0].ID[:len(tasks[0].ID)-1], nil),
					goesOn("worker", "x", "nonsense", nil), goesOn("worker", "first", id, nil), goesOn("worker", "second", id, nil))
			case 4:
				return say("I wait")
			case 5:
				at.dropsSession(at.tasks(at.mission1())[1].Session)
				return do(goesOn("worker", "x", at.tasks(at.mission1())[1].ID, nil))
			case 6: // as one whose session was removed
				at.edit(at.tasks(at.mission1())[1].ID, func(t *centurion.Task) { t.Session = "ses_gone" })
				at.edit(at.tasks(at.mission1())[0].ID, func(t *centurion.Task) { t.Session = "" })
				return do(goesOn("worker", "x", at.tasks(at.mission1())[1].ID, nil), goesOn("worker", "x", id, nil))
			}
			return say("done")
		},
		"worker": func(r scripted.Request) scripted.Answer {
			if strings.Contains(r.Last(), "quick") {
				return say("made")
			}
			return after(time.Minute, say("made"))
		},
	}, func(r *rig) {
		at = r
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		tasks := r.tasks(m.ID)
		said := r.results(m.ID, "delegate_task")
		for i, want := range []string{"You will be told", "You will be told", "task " + tasks[1].Name() + " has not ended: it is running",
			"task " + tasks[0].Name() + " is the worker's. resume it as worker", "there is no task", `there is no task "nonsense" to resume`,
			"You will be told", "task " + tasks[2].Name() + " has not ended",
			"is not kept any more", "is not kept any more", "ended before it began"} {
			has(t, said[i], want)
		}
		equal(t, "tasks", len(tasks), 3)
	})
}

// dropsSession drops a session, as the cleaning of ended tasks does.
func (r *rig) dropsSession(session string) {
	r.t.Helper()
	r.update(func(tx *store.Tx) error {
		rec, err := tx.Session(session)
		if err != nil {
			return err
		}
		rec.Time.Archived = 1
		return tx.PutSession(&rec)
	})
}

// mission1 is the only mission.
func (r *rig) mission1() string {
	r.t.Helper()
	m, err := r.store.LatestMission(r.ctx)
	if err != nil {
		r.t.Error(err)
	}
	return m.ID
}

func (r *rig) edit(task string, f func(*centurion.Task)) {
	r.t.Helper()
	err := r.store.Update(r.ctx, func(tx *store.Tx) error {
		t, err := tx.Task(task)
		if err != nil {
			return err
		}
		f(&t)
		return tx.PutTask(&t)
	})
	if err != nil {
		r.t.Error(err)
	}
}

// ORCH-10, ORCH-144: a host that goes away while a resumed task works goes on with it where it was: the prompt is not said
// again, and the conversation of the task before is not taken for a stale one.
func TestResumedTaskSurvivesRestart(t *testing.T) {
	bubble(t, map[string]script{
		"commander": func(r scripted.Request) scripted.Answer {
			return steps(do(work("", "look")), say("I wait"), do(goesOn("worker", "again", firstTask(r), nil)), say("I wait"))(r)
		},
		"worker": func(r scripted.Request) scripted.Answer {
			if strings.Contains(r.Last(), "again") {
				return after(time.Minute, say("made again"))
			}
			return say("made")
		},
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if err := r.host.Control.Pause(r.ctx, m.ID, "a while"); err != nil {
			t.Fatal(err)
		}
		r.is(<-done, centurion.MissionPaused, "")
		g.Wait()
		r.runs++
		r.restart()
		m = r.run(m.ID)
		r.is(m, centurion.MissionCompleted, "")
		tasks := r.tasks(m.ID)
		equal(t, "tasks", len(tasks), 2)
		equal(t, "result", tasks[1].Result, "made again")
		equal(t, "attempt", tasks[1].Attempt, 2)
		asked := r.requests("worker")
		equal(t, "times the prompt was said", strings.Count(texts(asked[len(asked)-1]), "again\n"), 1)
	})
}

// What the task before was waiting for when it ended is not waited for by the one that goes on with its conversation.
func TestResumedTaskWaitsForNothing(t *testing.T) {
	var at *rig
	bubble(t, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			if q.Step() == 2 {
				err := at.store.Update(at.ctx, func(tx *store.Tx) error {
					rec, err := tx.Session(at.tasks(at.mission1())[0].Session)
					if err != nil {
						return err
					}
					rec.Metadata.Retry = &centurion.Retry{At: centurion.Time{Time: time.Now().Add(time.Hour)}, WaitMS: 3_600_000, Attempts: 3}
					return tx.PutSession(&rec)
				})
				if err != nil {
					t.Error(err)
				}
			}
			return steps(do(work("", "look")), say("I wait"), do(goesOn("worker", "again", firstTask(q), nil)), say("I wait"))(q)
		},
		"worker": steps(say("seen")),
	}, func(r *rig) {
		at = r
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		tasks := r.tasks(m.ID)
		if took := tasks[1].Ended.Sub(tasks[1].Started.Time); tasks[1].Status != centurion.TaskCompleted || took > time.Minute {
			t.Errorf("%s after %v", tasks[1].Status, took)
		}
	})
}

// ORCH-10, ORCH-87: a task that failed is resumed with a clean slate: what it waited for and how often it had failed do not
// count any more.
func TestFailedTaskIsResumed(t *testing.T) {
	fails := scripted.Answer{Error: &scripted.Error{Status: 500, Message: "oops"}}
	bubble(t, map[string]script{
		"commander": func(r scripted.Request) scripted.Answer {
			return steps(do(work("", "look")), say("I wait"), do(goesOn("worker", "again", firstTask(r), nil)), say("I wait"))(r)
		},
		"worker": func(r scripted.Request) scripted.Answer {
			if r.Turn < 7 { // four times to its failure, twice more after it
				return fails
			}
			return say("made")
		},
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		tasks := r.tasks(m.ID)
		equal(t, "first", tasks[0].Status, centurion.TaskFailed)
		equal(t, "second", tasks[1].Status, centurion.TaskCompleted)
		equal(t, "from its start to its end", tasks[1].Ended.Sub(tasks[1].Started.Time).Round(time.Second), 15*time.Second)
	})
}
