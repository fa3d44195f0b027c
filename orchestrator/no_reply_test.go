package orchestrator

import (
	"testing"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/guard"
	"centurion/orchestrator/mail"
	"centurion/orchestrator/roots"
	"centurion/provider/scripted"
)

// Issue "Real OpenCode clients": a message that wants no answer gets none and begins nothing, before the first message, during work and
// after it. The next request has it.
func TestMessageWithoutAnswer(t *testing.T) {
	cast := map[string]script{"assistant": func(req scripted.Request) scripted.Answer { return scripted.Answer{Delay: time.Minute, Say: "done"} }}
	bubble(t, cast, func(r *rig) {
		s, err := r.host.Roots.Open(r.ctx, roots.Opening{Profile: agents.ProfileAssistant})
		if err != nil {
			r.t.Fatal(err)
		}
		note := func(id, text string, kind centurion.Kind) {
			r.t.Helper()
			if _, err := r.host.Mail.Send(r.ctx, mail.Post{ID: id, To: s.ID, Text: text, NoReply: true}); centurion.KindOf(err) != kind {
				r.t.Errorf("%s: %v", text, err)
			}
		}
		note("msg_1", "it is Monday", "")
		note("msg_1", "it is Tuesday", centurion.KindUsage)
		m, err := r.host.Start(r.ctx, "Do it", centurion.MissionOptions{Session: s.ID, Profile: agents.ProfileAssistant})
		if err != nil {
			r.t.Fatal(err)
		}
		var g guard.Group
		ended := r.inBackground(&g, m.ID)
		time.Sleep(time.Second)
		note("msg_2", "it rains", "") // it waits for the next request, which the run does not make
		r.is(<-ended, centurion.MissionCompleted, "")
		equal(r.t, "requests", len(r.requests("assistant")), 1)
		has(r.t, texts(r.requests("assistant")[0]), "user: it is Monday\n\nDo it\n")
		equal(r.t, "told after work", r.heard(s.ID), "it is Monday|Do it|it rains")
		note("msg_3", "it snows", "")
		if now, err := r.store.Mission(r.ctx, m.ID); err != nil || now.Status != centurion.MissionCompleted {
			r.t.Errorf("afterwards it is %s: %v", now.Status, err)
		}
		r.send(m.ID, "0/", "And now?", false)
		if m, err = r.host.Run(r.ctx, m.ID); err != nil || m.Status != centurion.MissionCompleted {
			r.t.Errorf("it ends %s: %v", m.Status, err)
		}
		equal(r.t, "requests", len(r.requests("assistant")), 2)
		equal(r.t, "all", r.heard(s.ID), "it is Monday|Do it|it rains|it snows|And now?")
		has(r.t, texts(r.requests("assistant")[1]), "user: it rains\n\nit snows\n\nAnd now?\n")
		if err := g.Wait(); err != nil {
			r.t.Error(err)
		}
	})
}
