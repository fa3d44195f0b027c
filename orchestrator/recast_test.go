package orchestrator

import (
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/mail"
	"centurion/provider/scripted"
)

// looking adds to the assistant's cast an agent that only looks, with a model of its own.
func (r *rig) looking() {
	r.t.Helper()
	cast, notes, err := agents.DefaultAssistant().Beside([]string{"linear"}, false).With(agents.Definition{Name: "looker", Mode: "primary", Description: "looks", Prompt: "You are the looker.",
		Model: "b/1", Tools: map[string]bool{"edit": false, "bash": false, "linear_*": false}, Source: ".opencode/agents/looker.md"})
	if err != nil || len(notes) > 0 {
		r.t.Fatal(err, notes)
	}
	x := &servers{}
	x.offer("linear_find")
	r.cfg.Assistant, r.cfg.External = cast, x
	r.model.AllowRecasts()
	r.providers(nil)
}

// cast lists the agents and models of a session's messages.
func (r *rig) cast(session string) string {
	r.t.Helper()
	messages, err := r.store.Messages(r.ctx, session)
	if err != nil {
		r.t.Fatal(err)
	}
	var all []string
	for _, m := range messages {
		all = append(all, m.Agent+" "+m.Model.ID)
	}
	return strings.Join(all, ", ")
}

// A message names another agent while the session works: the request that has the message is that agent's, with its prompt, its tools and
// its model, also if the host dies before or after the message was taken in. What was said before keeps its agent.
func TestMessageNamesAnotherAgent(t *testing.T) {
	for name, test := range map[string]struct {
		way   string
		taken bool
	}{"it works on": {}, "killed before it is read": {byKill, false}, "killed after it was read": {byKill, true}, "handed over": {byHandover, true}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"assistant": steps(bash("build 1m"), say("built")),
				"looker":    func(scripted.Request) scripted.Answer { return after(time.Minute, say("looked")) },
			}, func(r *rig) {
				r.looking()
				m := r.start(assistant())
				l := r.live(m.ID)
				time.Sleep(time.Second)
				if _, err := r.host.Mail.Send(r.ctx, mail.Post{To: m.Session, Text: "look at it", Agent: "Looker"}); err != nil {
					t.Fatal(err)
				}
				if test.taken {
					time.Sleep(70 * time.Second)
				}
				if test.way != "" {
					l.goAway(test.way)
					l = r.live(m.ID)
				}
				r.is(l.settled(), centurion.MissionCompleted, "")
				asked := r.requests("looker")
				for _, q := range asked {
					has(t, q.System(), "You are the looker.", "Surroundings")
					has(t, texts(q), "tool:", "look at it")
					held := strings.Join(q.Tools(), " ")
					has(t, held, "read")
					lacks(t, held, "edit", "bash", "linear_find")
				}
				if len(asked) == 0 || len(r.requests("assistant")) != 1 {
					t.Errorf("%d requests of the looker, %d of the assistant", len(asked), len(r.requests("assistant")))
				}
				has(t, strings.Join(r.requests("assistant")[0].Tools(), " "), "linear_find")
				has(t, r.cast(m.Session), "assistant 1, assistant 1, looker 1, ")
				rec, err := r.store.Session(r.ctx, m.Session)
				equal(t, "agent", rec.Agent, "looker")
				equal(t, "its file", rec.Metadata.AgentFile, ".opencode/agents/looker.md")
				equal(t, "model", rec.Own().String(), "b/1")
				equal(t, "told", r.count(m.ID, centurion.EventSessionAgent), 1)
				equal(t, "models told", r.changes(m.ID), "a/1>b/1")
				if err != nil || r.told(m.Session, "look at it") != 1 {
					t.Errorf("the message was read %d times: %v", r.told(m.Session, "look at it"), err)
				}
			})
		})
	}
}

// A message that names the agent and model of before changes nothing, the next one takes the session back, and what a mission, a task or a
// message without an answer names is refused.
func TestAgentChangesAtRest(t *testing.T) {
	bubble(t, map[string]script{"looker": func(q scripted.Request) scripted.Answer { return say("looked at " + q.Last()) }}, func(r *rig) {
		r.looking()
		m := r.mission(assistant())
		for _, p := range []mail.Post{{Agent: "looker", Model: "a/2"}, {Agent: "looker", Model: "a/2"}, {}, {Agent: "assistant", Model: "a/1"}} {
			p.To, p.Text = m.Session, "go on"
			if _, err := r.host.Mail.Send(r.ctx, p); err != nil {
				t.Fatal(err)
			}
			r.is(r.live(m.ID).wait(), centurion.MissionCompleted, "")
		}
		equal(t, "cast", r.cast(m.Session), "assistant 1, assistant 1, looker 2, looker 2, looker 2, looker 2, looker 2, looker 2, assistant 1, assistant 1")
		equal(t, "told", r.count(m.ID, centurion.EventSessionAgent), 2)
		equal(t, "models told", r.changes(m.ID), "a/1>a/2 a/2>a/1")
		other := r.start(centurion.MissionOptions{})
		r.is(r.live(other.ID).wait(), centurion.MissionCompleted, "")
		for _, test := range []struct {
			post mail.Post
			kind centurion.Kind
		}{
			{mail.Post{To: m.Session, Agent: "commander"}, centurion.KindUsage},
			{mail.Post{To: m.Session, Agent: "looker", NoReply: true}, centurion.KindConflict},
			{mail.Post{To: other.Session, Agent: "looker"}, centurion.KindConflict},
			{mail.Post{To: other.Session, Agent: "worker"}, centurion.KindConflict},
		} {
			test.post.Text = "x"
			if _, err := r.host.Mail.Send(r.ctx, test.post); centurion.KindOf(err) != test.kind {
				t.Errorf("%+v: %v", test.post, err)
			}
		}
	})
}

// A message names another model while the Commander works: its next request is made to that, and it is recorded. A task keeps its own, and
// its messages that come too late take none to the Commander.
func TestModelChangesWhileItWorks(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(handTo("worker", "", "x")), say("done")), "worker": steps(bash("build 1m"), say("built"))}, func(r *rig) {
		r.providers(nil)
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(10 * time.Second)
		child := r.tasks(m.ID)[0].Session
		for model, kind := range map[string]centurion.Kind{"b/1": centurion.KindConflict, "a/1": ""} {
			if _, err := r.host.Mail.Send(r.ctx, mail.Post{To: child, Text: "x", Model: model}); centurion.KindOf(err) != kind {
				t.Errorf("%s: %v", model, err)
			}
		}
		if _, err := r.host.Mail.Send(r.ctx, mail.Post{To: m.Session, Text: "use that", Model: "a/2"}); err != nil {
			t.Fatal(err)
		}
		r.is(l.settled(), centurion.MissionCompleted, "")
		equal(t, "models told", r.changes(m.ID), "a/1>a/2")
		has(t, r.cast(m.Session), "commander 1, commander 1, commander 2, ")
		for _, q := range r.requests("commander")[1:] {
			equal(t, "asked", strings.Trim(string(q.Field("model")), `"`), "2")
		}
	})
}
