package orchestrator

import (
	"strings"
	"testing"

	"centurion"
	"centurion/provider/scripted"
)

// LOOP-65, LOOP-67, LOOP-68, LOOP-69: a session has an id of its own whatever the provider calls a call: the root's has no parent,
// a child's names its parent and, in its task, the message and the call that it came of. Titles come without a request: there are
// no more than the turns took. What a session has used is what its answers used.
func TestSessionsOfAMission(t *testing.T) {
	handOut := func(prompt string) scripted.Answer {
		c := work("", prompt)
		c.ID = "call_0"
		return do(c)
	}
	bubble(t, map[string]script{"commander": steps(handOut("one"), handOut("two"), say("I wait"))}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		sessions, err := r.store.Sessions(r.ctx, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		seen, calls, titles := map[string]centurion.Session{}, map[string]bool{}, map[string]bool{}
		var root string
		answers := 0
		for _, s := range sessions {
			if _, twice := seen[s.ID]; twice || !strings.HasPrefix(s.ID, "ses_") {
				t.Errorf("a session has the id %q", s.ID)
			}
			seen[s.ID] = s
			if s.ParentID == "" {
				root = s.ID
			}
			if s.Title == "" {
				t.Errorf("session %s has no title", s.Metadata.Address)
			}
			titles[s.Title] = true
			msgs, err := r.store.Messages(r.ctx, s.ID)
			if err != nil {
				t.Fatal(err)
			}
			var used centurion.Tokens
			for _, msg := range msgs {
				used = used.Plus(msg.Usage.Tokens)
				if msg.Role == centurion.RoleAssistant {
					answers++
				}
			}
			if s.Tokens != used || used.Total() == 0 {
				t.Errorf("session %s counts %+v, its answers %+v", s.Metadata.Address, s.Tokens, used)
			}
		}
		if len(sessions) != 3 || root != m.Session {
			t.Errorf("%d sessions, the root is %q of %q", len(sessions), root, m.Session)
		}
		for _, task := range r.tasks(m.ID) {
			child := seen[task.Session]
			message, call, _ := strings.Cut(task.Call, "/")
			if child.ParentID != root || task.Parent != root || call != "call_0" || !strings.HasPrefix(message, "msg_") || calls[task.Call] {
				t.Errorf("the task %q came of call %q in %q, its session's parent is %q", task.Prompt, task.Call, task.Parent, child.ParentID)
			}
			calls[task.Call] = true
		}
		if requests := r.model.Requests(); len(requests) != answers {
			t.Errorf("%d requests for %d answers: something else was asked", len(requests), answers)
		}
		for _, q := range r.model.Requests() {
			if len(q.Tools()) == 0 {
				t.Errorf("request %d, which offers no tool, belongs to no turn: %s", q.Number, q.Last())
			}
		}
	})
}
