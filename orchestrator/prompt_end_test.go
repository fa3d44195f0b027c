package orchestrator

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/mail"
	"centurion/provider/scripted"
)

// What happens to a prompt in the moment in which a run ends. Each test stops the two where they meet.

// promptAnd asks in the background, with a way to begin.
func (r *rig) promptAnd(g *guard.Group, p mail.Post, launch func(string) error) <-chan prompted {
	done := make(chan prompted, 1)
	g.Go("prompt", func() error {
		reply, err := r.host.Mail.Prompt(r.ctx, p, launch)
		done <- prompted{reply, err, time.Now()}
		return nil
	})
	return done
}

func answers(q scripted.Request) scripted.Answer {
	return after(time.Minute, say("answer to "+q.Last()))
}

// OPAL-36: a run ends while a message to it is still on its way into the store, and somebody else begins another one: the
// message is answered by that, and its sender is not told how the run before it had ended.
func TestPromptIsStoredAfterTheRun(t *testing.T) {
	bubble(t, family(answers, nil), func(r *rig) {
		r.seeing()
		var slow atomic.Bool
		way := make(chan struct{})
		find := r.cfg.Model
		r.cfg.Model = func(name string) (Model, error) {
			if slow.CompareAndSwap(true, false) {
				<-way
			}
			return find(name)
		}
		r.restart()
		var g guard.Group
		m := r.start(assistant())
		first := r.live(m.ID)
		time.Sleep(time.Second)
		slow.Store(true)
		asked := r.prompt(&g, mail.Post{To: m.Session, Text: "one", Files: []centurion.File{pictureOf(t, "a.png", 1, 1)}})
		synctest.Wait()
		equal(t, "the first run", first.settled().Status, centurion.MissionCompleted)
		r.host.Mail.Expect(m.ID)
		close(way)
		synctest.Wait()
		second := r.live(m.ID)
		got := <-asked
		if got.err != nil || !strings.HasPrefix(got.reply.Text, "answer to one") {
			t.Errorf("%q, %v", got.reply.Text, got.err)
		}
		second.wait()
		g.Wait()
	})
}

// OPAL-36: who asks after a mission was paused, and before its run is cleared away, begins it anew if that was wanted: it is
// not told of the pause. Without a way to begin it is told.
func TestPromptComesAfterTheVerdict(t *testing.T) {
	for name, resume := range map[string]bool{"resumes": true, "waits": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, family(answers, nil), func(r *rig) {
				var g guard.Group
				m := r.start(assistant())
				first := r.live(m.ID)
				time.Sleep(time.Second)
				if err := r.host.Control.Pause(r.ctx, m.ID, "later"); err != nil {
					t.Fatal(err)
				}
				paused := first.settled()
				r.host.Mail.Expect(m.ID) // what Run does next is done below
				var second *life
				launch := func(id string) error { second = r.live(id); return nil }
				if !resume {
					launch = nil
				}
				asked := r.promptAnd(&g, mail.Post{To: m.Session, Text: "one"}, launch)
				synctest.Wait()
				equal(t, "the run goes on", r.host.Mail.Closed(r.ctx, paused, m.ID, nil), false)
				got := <-asked
				if resume {
					if got.err != nil || !strings.Contains(got.reply.Text, "one") {
						t.Errorf("%q, %v", got.reply.Text, got.err)
					}
					second.wait()
				} else if centurion.KindOf(got.err) != centurion.KindInterrupted || !strings.Contains(got.err.Error(), "later") {
					t.Errorf("got %v", got.err)
				}
				g.Wait()
			})
		})
	}
}

// OPAL-36: what was stored before a run had its verdict is not sent again by itself: a pause stops the mission also for who
// would begin it.
func TestPromptDoesNotUndoAPause(t *testing.T) {
	bubble(t, family(answers, nil), func(r *rig) {
		var g guard.Group
		m := r.start(assistant())
		l := r.live(m.ID)
		time.Sleep(time.Second)
		asked := r.promptAnd(&g, mail.Post{To: m.Session, Text: "one"}, func(string) error { return errors.New("it was begun") })
		synctest.Wait()
		if err := r.host.Control.Pause(r.ctx, m.ID, "later"); err != nil {
			t.Fatal(err)
		}
		got := <-asked
		if centurion.KindOf(got.err) != centurion.KindInterrupted || !strings.Contains(got.err.Error(), "later") {
			t.Errorf("got %v", got.err)
		}
		l.settled()
		g.Wait()
	})
}

// Who waits until the session rests gets the answer to the last message that came before that, and who waits for a turn that of the turn. An
// abort answers all of them; what was not read has no answer, and is part of the next request.
func TestPromptsWaitForRest(t *testing.T) {
	for name, aborted := range map[string]bool{"it ends": false, "it is aborted": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{"assistant": answers}, func(r *rig) {
				var g guard.Group
				m := r.mission(assistant())
				launch := func(string) error { return nil }
				first := r.promptAnd(&g, mail.Post{To: m.Session, Text: "one", Rest: true}, launch)
				synctest.Wait()
				turn := r.promptAnd(&g, mail.Post{To: m.Session, Text: "one more"}, launch)
				synctest.Wait()
				l := r.live(m.ID)
				time.Sleep(time.Second)
				second := r.promptAnd(&g, mail.Post{To: m.Session, Text: "two", Rest: true}, launch)
				synctest.Wait()
				if aborted {
					if err := r.host.Control.Abort(r.ctx, m.Session, ""); err != nil {
						t.Fatal(err)
					}
				}
				one, two, own := <-first, <-second, <-turn
				equal(t, "the answer to all", one.reply.Message, two.reply.Message)
				if aborted {
					if centurion.KindOf(one.err) != centurion.KindCancelled || centurion.KindOf(two.err) != centurion.KindCancelled || two.reply.Message == "" {
						t.Errorf("%v, %v, %q", one.err, two.err, two.reply.Message)
					}
					equal(t, "requests", len(r.requests("assistant")), 2)
					l.wait()
					third := r.promptAnd(&g, mail.Post{To: m.Session, Text: "three", Rest: true}, launch)
					synctest.Wait()
					l = r.live(m.ID)
					has(t, (<-third).reply.Text, "answer to ", "two\n\nthree")
				} else {
					equal(t, "the last answer", two.reply.Text, "answer to two")
					has(t, own.reply.Text, "answer to one")
				}
				l.wait()
				g.Wait()
			})
		})
	}
}
