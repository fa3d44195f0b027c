package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/event/agent"
	"centurion/server"
	"centurion/store"
)

// facts writes what a session and its child do.
func (p *project) facts(t *testing.T) {
	t.Helper()
	add := func(typ centurion.EventType, session, task string, data map[string]any) {
		if err := p.store.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Append(centurion.Event{Type: typ, Mission: p.mission.ID, Session: session, Task: task, Data: event.Data(data)})
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	root, child := p.session.ID, centurion.NewID(centurion.PrefixSession)
	add(centurion.EventMessageCreated, root, "", map[string]any{"message": "m1", "role": "user", "text": "go"})
	add(centurion.EventTaskQueued, "", "tsk_1", map[string]any{"parent": root, "call": "m2/call_1"})
	add(centurion.EventMessageCreated, child, "tsk_1", map[string]any{"message": "m3", "role": "user", "text": "do it"})
	add(centurion.EventToolCompleted, child, "tsk_1", map[string]any{"tool": "nonsense", "call": "x"}) // two events
	add(centurion.EventSessionIdle, child, "tsk_1", nil)
	add(centurion.EventSessionIdle, root, "", nil)
	add(centurion.EventMissionCompleted, root, "", nil)
}

// OPAL-14, OPAL-16, SUB-14, C-6: both ends tell what agents do; who was away reads on from its cursor and gets what it has
// not seen, nested as before, and nothing twice; who comes late gets the facts and no old deltas.
func TestAgentView(t *testing.T) {
	p := newProject(t)
	p.facts(t)
	p.hub.Publish(centurion.Event{Type: centurion.EventDelta, Session: p.session.ID, Mission: p.mission.ID, Data: event.Data(event.DeltaData{Field: "text", Delta: "old"})})
	c := connect(t, p.local)
	line := func(e centurion.Event) string {
		s := fmt.Sprintf("%d %s", e.Seq, e.Type)
		if e.Type == agent.SubAgentEvent {
			v, err := event.Decode[agent.SubAgentData](e)
			if err != nil || v.ParentCall != "call_1" || e.Session != p.session.ID {
				t.Errorf("%s in %s, %v", e.Data, e.Session, err)
			}
			s += " " + string(v.Event.Type)
		}
		return s
	}
	want := []string{"3 agent_start", "5 sub_agent_event agent_start", "0 sub_agent_event tool_execution_start", "6 sub_agent_event tool_execution_end",
		"7 sub_agent_event agent_end", "8 agent_end", "9 mission.completed"}
	for _, api := range []server.API{p.local, c} {
		for after := range int64(10) {
			ctx, cancel := context.WithCancel(t.Context())
			var got []string
			for e, err := range api.Events(ctx, server.EventQuery{View: server.ViewAgent, Session: p.session.ID, After: after, Deltas: true, Follow: after < 9}) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, line(e))
				if e.Type.EndsMission() {
					break
				}
			}
			cancel()
			rest := slices.DeleteFunc(slices.Clone(want), func(s string) bool {
				var n int64
				_, _ = fmt.Sscan(s, &n)
				if n == 0 {
					n = 6
				}
				return n <= after
			})
			if !slices.Equal(got, rest) {
				t.Errorf("%T after %d: %v, want %v", api, after, got, rest)
			}
		}
	}
	for _, q := range []server.EventQuery{{View: "agents"}, {View: server.ViewAgent, Toasts: true}, {View: server.ViewAgent, Session: "ses_none"}} {
		if all, err := collect(c.Events(t.Context(), q)); err == nil || len(all) > 0 || strings.Contains(err.Error(), "JSON") {
			t.Errorf("%+v: %v, %v", q, all, err)
		}
	}
}
