package orchestrator

import (
	"fmt"
	"strings"
	"testing"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/mail"
	"centurion/provider/scripted"
)

// A run of the profile assistant that is complete goes on with the same history when somebody writes to it. One that was
// cancelled does not, and a mission that is complete does not either.
func TestContinues(t *testing.T) {
	bubble(t, family(func(q scripted.Request) scripted.Answer { return say("answer to " + q.Last()) }, nil), func(r *rig) {
		m := r.mission(assistant())
		r.is(m, centurion.MissionCompleted, "nothing to verify")
		equal(t, "between two turns", r.state(m.ID).Activity, agent.Stopped)
		for range 2 { // sent again, it is stored once
			got, err := r.host.Mail.Send(r.ctx, mail.Post{ID: "dlv_1", To: m.Session, Text: "more"})
			if err != nil || got.Working || got.Status != centurion.MissionPaused {
				t.Fatalf("send: %+v, %v", got, err)
			}
			equal(t, "paused", r.count(m.ID, centurion.EventMissionPaused), 1)
		}
		r.runs++ // the word has an end of its own
		m = r.run(m.ID)
		r.is(m, centurion.MissionCompleted, "nothing to verify")
		equal(t, "summary", m.Summary, "answer to more")
		all := r.requests("assistant")
		equal(t, "requests", len(all), 2)
		var history []string
		for _, x := range all[1].Messages()[1:] {
			history = append(history, x.Text)
		}
		equal(t, "history", strings.Join(history, "|"), "build it|answer to build it|more")
	})
	bubbleEnded(t, assistant(), centurion.MissionCancelled)
	bubbleEnded(t, centurion.MissionOptions{}, centurion.MissionCompleted)
}

func bubbleEnded(t *testing.T, o centurion.MissionOptions, status centurion.MissionStatus) {
	t.Run(string(status), func(t *testing.T) {
		bubble(t, nil, func(r *rig) {
			m := r.start(o)
			if status == centurion.MissionCancelled {
				if err := r.host.Control.Cancel(r.ctx, m.ID, ""); err != nil {
					t.Fatal(err)
				}
			} else {
				m = r.run(m.ID)
			}
			_, err := r.host.Mail.Send(r.ctx, mail.Post{To: m.Session, Text: "more"})
			equal(t, "kind", centurion.KindOf(err), centurion.KindConflict)
			m, err = r.store.Mission(r.ctx, m.ID)
			if err != nil || m.Status != status || mail.Continues(m) {
				t.Errorf("it is %s, %v", m.Status, err)
			}
		})
	})
}

// Each prompt is answered, also one that comes in the moment in which the run before it ends.
func TestContinuesAtOnce(t *testing.T) {
	bubble(t, family(func(q scripted.Request) scripted.Answer { return say("answer to " + q.Last()) }, nil), func(r *rig) {
		m := r.start(assistant())
		var g guard.Group
		var last chan struct{}
		launch := func(id string) error { // as cmd's host does
			if r.host.Mail.Attended(id) {
				return nil
			}
			before, done := last, make(chan struct{})
			last = done
			r.host.Mail.Expect(id)
			g.Go("mission", func() error {
				defer close(done)
				if before != nil {
					<-before
				}
				_, err := r.host.Run(r.ctx, id)
				return err
			})
			return nil
		}
		if err := launch(m.ID); err != nil {
			t.Fatal(err)
		}
		for n := range 50 {
			text := fmt.Sprintf("question %d", n)
			got, err := r.host.Mail.Prompt(r.ctx, mail.Post{To: m.Session, Text: text}, launch)
			if err != nil || !strings.Contains(got.Text, text) {
				t.Fatalf("answer %d: %+v, %v", n, got, err)
			}
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		m, err := r.store.Mission(r.ctx, m.ID)
		if err != nil || m.Status != centurion.MissionCompleted {
			t.Errorf("at last it is %s, %v", m.Status, err)
		}
	})
}
