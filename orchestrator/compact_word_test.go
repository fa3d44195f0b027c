package orchestrator

import (
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/guard"
	"centurion/orchestrator/mail"
	"centurion/provider/scripted"
	"centurion/store"
)

// LOOP-20: a person's /compact is for the host and told to no model; one that came in the middle of a request and was
// overtaken by a pause is kept, and done before the first request after the resume.
func TestCompactWord(t *testing.T) {
	ask := reads(12)
	bubble(t, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer { return after(time.Minute, ask(q)) },
		"":          func(scripted.Request) scripted.Answer { return say("All was read so far.") },
	}, func(r *rig) {
		r.longFile()
		m := r.start(centurion.MissionOptions{})
		var g guard.Group
		done := r.inBackground(&g, m.ID)
		time.Sleep(6*time.Minute + 30*time.Second)
		got := r.send(m.ID, "0/", " /compact\n", false)
		if !got.Compact || !got.Working || got.Session != m.Session || got.Address != "0/" || got.Agent != "commander" {
			t.Errorf("answered %+v", got)
		}
		time.Sleep(time.Second)
		if err := r.host.Control.Pause(r.ctx, m.ID, ""); err != nil {
			t.Fatal(err)
		}
		<-done
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		equal(t, "compactions before the resume", len(r.compacted(m.ID, "commander")), 0)
		r.runs++
		r.restart()
		from := len(r.requests("commander"))
		m = r.run(m.ID)
		r.is(m, centurion.MissionCompleted, "")
		if d := r.compacted(m.ID, "commander"); len(d) != 1 || d[0].Reason != event.CompactedAsked {
			t.Errorf("after the resume: %+v", d)
		}
		has(t, r.requests("commander")[from].First()+r.requests("commander")[from].Last(), "All was read so far.")
		for _, q := range r.requests("commander") {
			for _, msg := range q.Messages() {
				if strings.Contains(msg.Text, mail.CompactWord) {
					t.Errorf("the model was told %q", msg.Text)
				}
			}
		}
		equal(t, "messages that wait or were told", r.count(m.ID, centurion.EventMessageQueued), 0)
	})
}

// LOOP-20: who asks for a shorter history is told what stands in the way.
func TestCompactWordRefused(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(say("Done."))}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		for _, test := range []struct {
			post mail.Post
			kind centurion.Kind
		}{
			{mail.Post{To: "0/", Text: "/compact the first half"}, centurion.KindUsage},
			{mail.Post{To: "0/7", Text: "/compact"}, centurion.KindNotFound},
			{mail.Post{To: "tsk_none", Text: "/compact"}, centurion.KindNotFound},
		} {
			test.post.Mission = m.ID
			if got, err := r.host.Mail.Send(r.ctx, test.post); centurion.KindOf(err) != test.kind || centurion.HintOf(err) == "" {
				t.Errorf("%q to %s: %+v, %v", test.post.Text, test.post.To, got, err)
			}
		}
		if got := r.send(m.ID, "0/", "/compactor is what the class is called", false); got.Compact {
			t.Error("a word that only begins like it is a message")
		}
		m = r.run(m.ID)
		task := centurion.Task{ID: "tsk_1", Mission: m.ID, Number: 1, Status: centurion.TaskCompleted, Session: m.Session}
		if err := r.store.Update(r.ctx, func(tx *store.Tx) error { return tx.PutTask(&task) }); err != nil {
			t.Fatal(err)
		}
		if _, err := r.host.Mail.Send(r.ctx, mail.Post{To: task.ID, Text: "/compact"}); centurion.KindOf(err) != centurion.KindConflict || centurion.HintOf(err) == "" {
			t.Errorf("of a task that is over: %v", err)
		}
	})
}
