package orchestrator

import (
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/orchestrator/mail"
	"centurion/provider/scripted"
)

// What a task has changed is told whole, also where a turn of it failed in between or its host died.
func TestChangedFilesAreKept(t *testing.T) {
	for _, way := range []string{"", byKill} {
		t.Run(way, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(work("", "x")), say("I wait")),
				"worker": func(q scripted.Request) scripted.Answer {
					switch {
					case q.Step() == 1:
						return do(call("write", args{"filePath": "a.txt", "content": "a"}))
					case q.Step() == 2 && !strings.Contains(q.Last(), "ended without"):
						return after(time.Minute, say(""))
					}
					return say("made")
				},
			}, func(r *rig) {
				m := r.start(centurion.MissionOptions{})
				l := r.live(m.ID)
				if way != "" {
					time.Sleep(30 * time.Second)
					l.goAway(way)
					l = r.live(m.ID)
				}
				r.is(l.settled(), centurion.MissionCompleted, "")
				if files := r.task(m.ID, "").Files; !slices.Equal(files, []string{"a.txt"}) {
					t.Errorf("files: %q", files)
				}
				equal(t, "notices that name it", r.told(m.Session, "Files changed with write and edit: a.txt"), 1)
			})
		})
	}
}

// Who had a plan written sees it with the notice that it is there; a worker's notice has none.
func TestPlanIsToldWithItsNotice(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(handTo("planner", "", "plan it")), say("I wait"), do(work("T1", "x")), say("I wait")),
		"planner":   steps(do(plans("- [ ] T1 Parse limits @worker")), say("One item.")),
		"worker":    steps(say("made")),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		equal(t, "notices with the plan", r.told(m.Session, "The plan, which stands whole in .opencode/todo.md:\n1 item: 1 open"), 1)
		equal(t, "notices with the item", r.told(m.Session, "[ ] T1 Parse limits @worker"), 1)
	})
}

// A reviewer judges by what the person wants, and that is also what they have said after the goal.
func TestReviewerHearsThePerson(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(call("bash", args{"command": "sleep 1m", "description": "x"})), do(handTo("reviewer", "", "look")), say("I wait")),
		"reviewer":  steps(say("PASS")),
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(10 * time.Second)
		if _, err := r.host.Mail.Send(r.ctx, mail.Post{To: "0/", Mission: m.ID, Text: "and count what is missing"}); err != nil {
			t.Fatal(err)
		}
		l.settled()
		asked := r.requests("reviewer")
		has(t, asked[0].First(), "# The goal of the mission", "The person has added since:\n\n- and count what is missing")
	})
}
