package orchestrator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/provider/scripted"
)

// poller asks for a task's result again and again, ten times at most, as long as it is told that the task runs.
func poller(first ...scripted.Answer) script {
	return func(q scripted.Request) scripted.Answer {
		n := q.Step()
		if n <= len(first) {
			return first[n-1]
		}
		if n > len(first)+10 || n > len(first)+1 && !strings.Contains(strings.Join(q.Results(), ""), "has not ended") {
			return say("seen")
		}
		return do(call("get_task_result", args{"task_id": "T1"}))
	}
}

// busy works for so many minutes and ends with a result.
func busy(minutes int, result string) script {
	return func(q scripted.Request) scripted.Answer {
		if q.Step() <= minutes {
			return do(call("bash", args{"command": "build 1m"}))
		}
		return say(result)
	}
}

// One who asks for the result of a task that runs, while nothing else can be started, waits until it ends and gets it then, once.
func TestPollingCostsNothing(t *testing.T) {
	bubble(t, map[string]script{
		"commander": poller(do(plans("- [ ] T1 One")), do(work("T1", "first"), call("ls", args{}))),
		"worker":    busy(3, "the whole result"),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		asked := r.requests("commander")
		polls := r.results(m.ID, "get_task_result")
		equal(t, "polls", len(polls), 1)
		equal(t, "requests of the Commander", len(asked), 4)
		has(t, polls[0], "is completed after 3m", "the whole result")
		equal(t, "times that it was told", strings.Count(texts(asked[len(asked)-1]), "the whole result"), 1)
		equal(t, "deliveries that are left", fmt.Sprint(r.store.PendingDeliveries(r.ctx, m.Session)), "[] <nil>")
	})
}

// Where something can be started the answer comes at once and says what.
func TestPollNamesWhatCanStart(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two")), do(work("T1", "first")), do(call("get_task_result", args{"task_id": "T1"})), do(work("T2", "second"))),
		"worker":    func(scripted.Request) scripted.Answer { return after(time.Minute, say("made")) },
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(time.Second)
		equal(t, "tasks after a second", len(r.tasks(m.ID)), 2)
		r.is(l.settled(), centurion.MissionCompleted, "")
		has(t, r.results(m.ID, "get_task_result")[0], "has not ended: ", "Can be started: T2.")
	})
}

// The wait ends after five minutes, and at once when a person writes or edits the plan. Nothing in the answer changes by itself.
func TestPollEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(*rig, string)
		ends time.Duration
	}{
		"by itself":            {func(*rig, string) {}, 5 * time.Minute},
		"by a message":         {func(r *rig, m string) { r.send(m, "0/", "And the news?", false) }, time.Minute},
		"by an item to start":  {func(r *rig, _ string) { r.write(todoMD, r.read(todoMD)+"- [ ] T2 Two\n") }, time.Minute},
		"by an abort":          {func(r *rig, m string) { _ = r.host.Control.Abort(r.ctx, m, "no") }, time.Minute},
		"by a task that ended": {func(r *rig, m string) { _ = r.host.Control.Cancel(r.ctx, r.tasks(m)[1].ID, "") }, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": poller(do(plans("- [ ] T1 One")), do(work("T1", "first"), work("", "beside"), call("ls", args{}))),
				"worker":    busy(20, "made"),
			}, func(r *rig) {
				var g guard.Group
				m := r.start(centurion.MissionOptions{Ask: "ask"})
				r.inBackground(&g, m.ID)
				time.Sleep(61 * time.Second) // the watch looks every minute
				equal(t, "requests while it waits", len(r.requests("commander")), 3)
				tt.do(r, m.ID)
				time.Sleep(tt.ends - 57*time.Second)
				if got := r.results(m.ID, "get_task_result"); len(got) < 2 && name != "by an abort" || got[0] == "" {
					t.Errorf("the wait goes on: %q", got)
				} else if name == "by itself" {
					has(t, got[0], "has not ended: running.")
				}
				_ = r.host.Control.Pause(r.ctx, m.ID, "")
				_ = g.Wait()
			})
		})
	}
}

// A host that goes away while a result is waited for leaves the call as it was: it waits on with the next one.
func TestPollSurvivesHost(t *testing.T) {
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": poller(do(plans("- [ ] T1 One")), do(work("T1", "first"), call("ls", args{}))),
				"worker":    busy(3, "the whole result"),
			}, func(r *rig) {
				m := r.start(centurion.MissionOptions{})
				l := r.live(m.ID)
				time.Sleep(90 * time.Second)
				l.goAway(way)
				r.is(r.run(m.ID), centurion.MissionCompleted, "")
				polls := r.results(m.ID, "get_task_result")
				equal(t, "polls", len(polls), 1)
				has(t, polls[0], "completed", "the whole result")
				asked := r.requests("commander")
				equal(t, "times that it was told", strings.Count(texts(asked[len(asked)-1]), "the whole result"), 1)
			})
		})
	}
}

// The same list twice is no answer: the second time it is given when something in it has changed.
func TestListIsNotPolled(t *testing.T) {
	list := do(call("list_tasks", args{}))
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One")), do(work("T1", "first"), call("ls", args{})),
			do(call("bash", args{"command": "sleep 1s"})), list, list, say("seen")), // by then it is certainly running
		"worker": busy(3, "made"),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		got := r.results(m.ID, "list_tasks")
		has(t, got[0], `T1 "do T1" (worker): `)
		has(t, got[1], `T1 "do T1" (worker): completed`)
	})
}

// An idle Commander whose tasks work is woken by a person who adds an item to the plan that can be started, or opens one, and not
// by other edits.
func TestEditedItemWakes(t *testing.T) {
	for name, tt := range map[string]struct {
		edit  func(string) string
		wakes bool
		told  string
	}{
		"an item more":      {func(s string) string { return s + "- [ ] T3 Three\n" }, true, "added T3 (Three)"},
		"an item is opened": {func(s string) string { return strings.Replace(s, "[-] T2", "[ ] T2", 1) }, true, "reopened T2 (Two)"},
		"one that waits":    {func(s string) string { return s + "- [ ] T3 Three\n  - after: T1\n" }, false, ""},
		"a title":           {func(s string) string { return strings.Replace(s, "T2 Two", "T2 Second", 1) }, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(plans("- [ ] T1 One", "- [-] T2 Two")), do(work("T1", "first"))),
				"worker":    busy(10, "made"),
			}, func(r *rig) {
				var g guard.Group
				m := r.start(centurion.MissionOptions{})
				r.inBackground(&g, m.ID)
				time.Sleep(61 * time.Second) // the watch looks every minute
				before := len(r.requests("commander"))
				r.write(todoMD, tt.edit(r.read(todoMD)))
				time.Sleep(time.Minute)
				asked := r.requests("commander")
				if equal(t, "woken", len(asked) > before, tt.wakes); tt.wakes && len(asked) > before {
					has(t, asked[len(asked)-1].Last(), tt.told)
				}
				_ = r.host.Control.Pause(r.ctx, m.ID, "")
				_ = g.Wait()
			})
		})
	}
}
