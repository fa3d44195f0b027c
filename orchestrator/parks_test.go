package orchestrator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/mail"
	"centurion/provider/scripted"
)

// A turn whose last answer only delegated ends without another request when nothing else can be started; the Commander is
// woken when the batch has ended. Who could start more is asked on.
func TestDelegatingEndsTheTurn(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two\n  - after: T1", "- [ ] T3 Three")), do(work("T3", "third")), do(work("T1", "first"), work("T2", "second"))),
		"worker":    func(scripted.Request) scripted.Answer { return after(time.Minute, say("made")) },
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(90 * time.Second)
		equal(t, "requests of the Commander while its tasks work", len(r.requests("commander")), 3)
		idle := slices.DeleteFunc(r.events(m.ID, centurion.EventSessionIdle), func(e centurion.Event) bool { return e.Session != m.Session })
		equal(t, "ends of turns told", len(idle), 1)
		has(t, string(idle[0].Data), `"finish":"tool-calls"`)
		s := r.state(m.Session)
		equal(t, "state", fmt.Sprint(s.Activity, " ", s.Waits), "idle child")
		r.is(l.settled(), centurion.MissionCompleted, "")
		asked := r.requests("commander")
		equal(t, "requests of the Commander", len(asked), 4)
		has(t, asked[3].Last(), "T1", "is completed", "T2", "is completed")
	})
}

// A refused delegation is something to answer, and so is whatever else stood beside it.
func TestDelegatingAmongOthersGoesOn(t *testing.T) {
	for name, second := range map[string]scripted.Answer{
		"beside another call": do(work("T1", "first"), call("ls", args{})),
		"one refused":         do(work("T1", "first"), work("T9", "no such item")),
		"one waited for":      do(call("delegate_task", args{"agent": "worker", "description": "x", "prompt": "y", "item": "T1", "background": false})),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(plans("- [ ] T1 One")), second, say("I wait")),
				"worker":    func(scripted.Request) scripted.Answer { return after(time.Minute, say("made")) },
			}, func(r *rig) {
				m := r.mission(centurion.MissionOptions{})
				r.is(m, centurion.MissionCompleted, "")
				if n := len(r.requests("commander")); n < 3 {
					t.Errorf("%d requests", n)
				}
				equal(t, "the third is the same turn's", len(r.requests("commander")[2].Results()) > 0, true)
			})
		})
	}
}

// A plan without a remark may stand beside the delegations; one with a remark is read first.
func TestPlanningAndDelegatingEndsTheTurn(t *testing.T) {
	for name, test := range map[string]struct {
		files string
		asked int
	}{"no remark": {"b/**", 2}, "items that share files": {"a/**", 3}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(plans("- [ ] T1 One", "  - files: a/**", "- [ ] T2 Two", "  - files: "+test.files), work("T1", "first"), work("T2", "second")), say("I wait")),
				"worker":    func(scripted.Request) scripted.Answer { return after(time.Minute, say("made")) },
			}, func(r *rig) {
				r.is(r.mission(centurion.MissionOptions{}), centurion.MissionCompleted, "")
				equal(t, "requests of the Commander", len(r.requests("commander")), test.asked)
			})
		})
	}
}

// A host that dies while the Commander is parked, or between its results and the end of its turn: the next one asks nothing, and
// the end of the task still wakes it.
func TestParkedAcrossARestart(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x"))),
		"worker":    minutes(5, "made"),
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(time.Minute)
		l.goAway(byKill)
		l = r.live(m.ID)
		time.Sleep(30 * time.Second)
		equal(t, "requests until the task ends", len(r.requests("commander")), 1)
		r.is(l.settled(), centurion.MissionCompleted, "")
		asked := r.requests("commander")
		equal(t, "requests", len(asked), 2)
		has(t, asked[1].Last(), "is completed", "made")
	})
}

// A person who resumes a mission whose Commander was parked wakes it: it is told, and asked once before its task ends.
func TestParkedIsWokenByAResume(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker":    minutes(5, "made"),
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(time.Minute)
		if err := r.host.Control.Pause(r.ctx, m.ID, ""); err != nil {
			t.Error(err)
		}
		r.is(l.settled(), centurion.MissionPaused, "")
		r.restart()
		l = r.live(m.ID)
		time.Sleep(30 * time.Second)
		asked := r.requests("commander")
		equal(t, "requests until the task ends", len(asked), 2)
		has(t, asked[len(asked)-1].Last(), "The person has resumed the mission.")
		r.is(l.settled(), centurion.MissionCompleted, "")
	})
}

// Who writes to the Commander is answered in words, also when it hands out work for that.
func TestDelegatingAnswersAPerson(t *testing.T) {
	bubble(t, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			switch {
			case q.Step() == 1:
				return do(work("", "x"))
			case q.Step() == 2:
				return do(work("", "what the person wants"))
			case strings.Contains(texts(q), "made"):
				return say("done")
			}
			return say("A worker looks at it.")
		},
		"worker": minutes(5, "made"),
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(time.Minute)
		p := <-r.prompt(&g, mail.Post{To: m.ID, Text: "look at y, too"})
		if p.err != nil {
			t.Error(p.err)
		}
		equal(t, "answer", p.reply.Text, "A worker looks at it.")
		r.is(l.settled(), centurion.MissionCompleted, "")
		g.Wait()
	})
}
