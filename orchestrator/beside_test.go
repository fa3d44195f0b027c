package orchestrator

import (
	"testing"
	"time"

	"centurion"
	"centurion/provider/scripted"
)

// SUB-26, SUB-28, C-18: a question of an answer with other calls stands in the queue while these still run, and where nobody watches
// the mission stops with it only when they have ended: a command is not cut off for a question beside it.
func TestQuestionBesideOthers(t *testing.T) {
	root := func(q scripted.Request) scripted.Answer {
		if q.Step() > 1 {
			return say("done")
		}
		return do(sub("a", nil), call("bash", args{"command": "build 5m", "description": "x"}), asks("Which one?"))
	}
	bubble(t, family(root, steps(after(time.Minute, say("looked")))), func(r *rig) {
		r.asksPerson()
		began := time.Now()
		m := r.start(centurion.MissionOptions{Profile: assistant().Profile, Ask: "ask", Unattended: true})
		l := r.live(m.ID)
		ask := r.waitFor(m.ID, 1)[0]
		if d := time.Since(began); d > 5*time.Minute {
			t.Errorf("the question is put after %s", d)
		}
		r.is(l.settled(), centurion.MissionBlocked, "Which one?")
		if d := time.Since(began); d < 6*time.Minute {
			t.Errorf("the mission stopped after %s, while others worked", d)
		}
		equal(t, "sub-agent", r.part(m.Session, "sub_agent", 0).State.Status, centurion.ToolCompleted)
		equal(t, "command", r.part(m.Session, "bash", 0).State.Status, centurion.ToolCompleted)
		r.answer(ask.ID, "that one")
		r.is(r.run(m.ID), centurion.MissionCompleted, "")
		equal(t, "answer", r.results(m.ID, "ask_user")[0], "that one")
		equal(t, "command ran", r.shell.times("build 5m"), 1)
	})
}
