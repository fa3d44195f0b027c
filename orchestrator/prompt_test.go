package orchestrator

import (
	"context"
	"errors"
	"fmt"
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

// prompted is what a prompt came to.
type prompted struct {
	reply mail.Reply
	err   error
	at    time.Time
}

// prompt asks in the background.
func (r *rig) prompt(g *guard.Group, p mail.Post) <-chan prompted {
	done := make(chan prompted, 1)
	g.Go("prompt", func() error {
		reply, err := r.host.Mail.Prompt(r.ctx, p, nil)
		done <- prompted{reply, err, time.Now()}
		return nil
	})
	return done
}

// counts answers what the newest message of a person in a request was.
func counts(q scripted.Request) scripted.Answer {
	last := ""
	for _, m := range q.Messages() {
		if m.Role == "user" {
			last = m.Text
		}
	}
	if q.Step() == 1 {
		return do(call("bash", args{"command": "sleep 1m", "description": "x"}))
	}
	return after(time.Second, say("answer to "+last))
}

// OPAL-24, OPAL-39, OPAL-42, LOOP-13, LOOP-14, LOOP-86: two who ask a busy session at once, each for a turn of its own, each
// get their own answer, in the order in which they asked. Storing the question takes no time.
func TestPromptsAreQueued(t *testing.T) {
	bubble(t, map[string]script{"commander": counts}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(time.Second)
		first := r.prompt(&g, mail.Post{To: m.ID, Text: "one", Queue: true})
		synctest.Wait()
		second := r.prompt(&g, mail.Post{To: m.Session, Text: "two", Queue: true})
		synctest.Wait()
		began := time.Now()
		r.send(m.ID, "0/", "three", true)
		equal(t, "sending takes", time.Since(began), 0)
		one, two := <-first, <-second
		if one.err != nil || two.err != nil {
			t.Fatalf("%v, %v", one.err, two.err)
		}
		equal(t, "first answer", one.reply.Text, "answer to one")
		equal(t, "second answer", two.reply.Text, "answer to two")
		equal(t, "finish", one.reply.Finish, centurion.FinishStop)
		equal(t, "the second comes later", two.at.After(one.at), true)
		if one.reply.Message == "" || one.reply.Message == two.reply.Message || one.reply.Usage.Tokens.Output == 0 {
			t.Errorf("%+v, %+v", one.reply, two.reply)
		}
		r.is(<-done, centurion.MissionCompleted, "")
		g.Wait()
		asked := r.requests("commander")
		equal(t, "requests", len(asked), 5) // one with the call, one that ends its turn, one for each that was queued
		equal(t, "told", r.heard(m.Session), "one|two|three")
	})
}

// C-23, OPAL-40, OPAL-88: two who steer are read together after the tool calls, in one request, and both get its turn's answer.
func TestPromptsSteer(t *testing.T) {
	bubble(t, map[string]script{"commander": counts}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(time.Second)
		first := r.prompt(&g, mail.Post{To: m.ID, Text: "one"})
		synctest.Wait()
		second := r.prompt(&g, mail.Post{To: m.ID, Text: "two"})
		one, two := <-first, <-second
		equal(t, "first answer", one.reply.Text, "answer to one\n\ntwo")
		equal(t, "second answer", two.reply.Text, "answer to one\n\ntwo")
		equal(t, "the same", one.reply.Message, two.reply.Message)
		r.is(<-done, centurion.MissionCompleted, "")
		g.Wait()
		asked := r.requests("commander")
		equal(t, "requests", len(asked), 2)
		has(t, texts(asked[1]), "tool:", "user: one", "two")
	})
}

// An answer is waited for by its id: the same question again, later or while it is waited for, is stored once and gets the
// same answer, also after the mission has ended.
func TestPromptAgain(t *testing.T) {
	bubble(t, map[string]script{"commander": counts}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(time.Second)
		p := mail.Post{ID: centurion.NewID(centurion.PrefixDelivery), To: m.ID, Text: "one", Queue: true}
		first, again := r.prompt(&g, p), r.prompt(&g, p)
		one, two := <-first, <-again
		r.is(<-done, centurion.MissionCompleted, "")
		g.Wait()
		last, err := r.host.Mail.Prompt(r.ctx, p, nil)
		if err != nil || one.err != nil || two.err != nil {
			t.Fatal(err, one.err, two.err)
		}
		for _, reply := range []mail.Reply{one.reply, two.reply, last} {
			equal(t, "answer", reply.Text, "answer to one")
			equal(t, "message", reply.Message, one.reply.Message)
		}
		equal(t, "told", r.heard(m.Session), "one")
	})
}

// OPAL-36, LOOP-86: a reply is of the turn that read its message, with what all answers of that turn took, also for who asks again
// when others have had their turns.
func TestReplyIsOfItsTurn(t *testing.T) {
	bubble(t, map[string]script{"commander": func(q scripted.Request) scripted.Answer {
		all := q.Messages()
		if newest := all[len(all)-1]; newest.Role == "user" && q.Step() > 2 {
			return do(call("ls", args{}))
		}
		return counts(q)
	}}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(time.Second)
		p := mail.Post{ID: centurion.NewID(centurion.PrefixDelivery), To: m.ID, Text: "one", Queue: true}
		first := r.prompt(&g, p)
		synctest.Wait()
		second := r.prompt(&g, mail.Post{To: m.ID, Text: "two", Queue: true})
		one, two := <-first, <-second
		r.is(<-done, centurion.MissionCompleted, "")
		g.Wait()
		again, err := r.host.Mail.Prompt(r.ctx, p, nil)
		if err != nil || one.err != nil || two.err != nil {
			t.Fatal(err, one.err, two.err)
		}
		for _, got := range []mail.Reply{one.reply, again} {
			equal(t, "answer", got.Text, "answer to one")
			equal(t, "message", got.Message, one.reply.Message)
			equal(t, "finish", got.Finish, centurion.FinishStop)
		}
		equal(t, "the other answer", two.reply.Text, "answer to two")
		var took centurion.Usage
		line := r.tree(m.Session).Messages
		for i, x := range line {
			if x.ID == one.reply.Message {
				took = line[i-1].Usage.Plus(x.Usage)
			}
		}
		equal(t, "tokens", again.Usage.Tokens, took.Tokens)
		equal(t, "tokens at once", one.reply.Usage.Tokens, took.Tokens)
	})
}

// OPAL-40, LOOP-86: who steers does not wait for a message that is queued, though that came first; the queued one has a turn of
// its own after.
func TestSteeringGoesFirst(t *testing.T) {
	bubble(t, map[string]script{"commander": func(q scripted.Request) scripted.Answer { return after(time.Minute, say(q.Last())) }}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(time.Second)
		r.send(m.ID, "0/", "queued", true)
		r.send(m.ID, "0/", "steering", false)
		r.is(l.settled(), centurion.MissionCompleted, "")
		equal(t, "told", r.heard(m.Session), "steering|queued")
		equal(t, "requests", len(r.requests("commander")), 3)
	})
}

// OPAL-36: nobody waits for ever, and everybody is told why no answer comes: the turn is aborted, the mission is paused,
// cancelled, handed over or fails, its task ends, or who asked has gone.
func TestPromptEnds(t *testing.T) {
	type by = func(r *rig, l *life, m centurion.Mission) error
	for name, test := range map[string]struct {
		end  by
		kind centurion.Kind
		says string
	}{
		"aborted": {func(r *rig, _ *life, m centurion.Mission) error {
			return r.host.Control.Abort(r.ctx, m.Session, "enough")
		}, centurion.KindCancelled, "enough"},
		"paused":      {func(r *rig, _ *life, m centurion.Mission) error { return r.host.Control.Pause(r.ctx, m.ID, "later") }, centurion.KindInterrupted, "is paused"},
		"stopped":     {func(r *rig, _ *life, m centurion.Mission) error { return r.host.Control.Stop(r.ctx, m.ID, "") }, centurion.KindInterrupted, "is paused"},
		"cancelled":   {func(r *rig, _ *life, m centurion.Mission) error { return r.host.Control.Cancel(r.ctx, m.ID, "") }, centurion.KindConflict, "is cancelled"},
		"handed over": {func(_ *rig, l *life, _ centurion.Mission) error { l.cancel(centurion.ErrHandover); return nil }, centurion.KindNetwork, "another host"},
		"shut down":   {func(_ *rig, l *life, _ centurion.Mission) error { l.cancel(centurion.ErrShutdown); return nil }, centurion.KindInterrupted, "is paused"},
		"failed":      {nil, centurion.KindAuth, "did not end well"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{"commander": func(q scripted.Request) scripted.Answer {
				switch {
				case q.Step() == 1:
					return do(call("bash", args{"command": "sleep 1m", "description": "x"}))
				case test.end == nil:
					return scripted.Answer{Error: &scripted.Error{Status: 401, Message: "bad key"}}
				}
				return after(100*time.Second, say("made"))
			}}, func(r *rig) {
				var g guard.Group
				m := r.start(centurion.MissionOptions{})
				l := r.live(m.ID)
				time.Sleep(time.Second)
				asked := r.prompt(&g, mail.Post{To: m.ID, Text: "well?"})
				time.Sleep(time.Minute) // it is read
				if test.end != nil {
					if err := test.end(r, l, m); err != nil {
						t.Error(err)
					}
				}
				got := <-asked
				l.wait()
				g.Wait()
				if centurion.KindOf(got.err) != test.kind || !strings.Contains(got.err.Error(), test.says) {
					t.Errorf("%s: %v", centurion.KindOf(got.err), got.err)
				}
				if inTurn := name == "aborted" || name == "failed"; inTurn != (got.reply.Error != nil) || inTurn && got.reply.Error.Kind != test.kind {
					t.Errorf("the reply says %+v", got.reply.Error)
				}
				if centurion.HintOf(got.err) == "" && test.kind != centurion.KindCancelled {
					t.Error("it does not say what to do next")
				}
			})
		})
	}
	t.Run("who asked has gone", func(t *testing.T) {
		bubble(t, map[string]script{"commander": counts}, func(r *rig) {
			m := r.start(centurion.MissionOptions{})
			l := r.live(m.ID)
			time.Sleep(time.Second)
			ctx, cancel := context.WithTimeout(r.ctx, time.Second)
			defer cancel()
			if _, err := r.host.Mail.Prompt(ctx, mail.Post{To: m.ID, Text: "well?"}, nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			equal(t, "it is answered all the same", l.settled().Status, centurion.MissionCompleted)
			equal(t, "told", r.heard(m.Session), "well?")
		})
	})
}

// A mission that nobody works on is refused at once, and nothing is stored; with a way to begin it, it is answered.
func TestPromptStopped(t *testing.T) {
	bubble(t, map[string]script{"commander": func(q scripted.Request) scripted.Answer {
		return after(time.Minute, say("done"))
	}}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(time.Second)
		if err := r.host.Control.Pause(r.ctx, m.ID, ""); err != nil {
			t.Error(err)
		}
		l.settled()
		_, err := r.host.Mail.Prompt(r.ctx, mail.Post{To: m.ID, Text: "well?"}, nil)
		if centurion.KindOf(err) != centurion.KindConflict || !strings.Contains(centurion.HintOf(err), "centurion resume "+m.ID) {
			t.Errorf("got %v, %s", err, centurion.HintOf(err))
		}
		if left, err := r.store.PendingDeliveries(r.ctx, m.Session); err != nil || len(left) > 0 {
			t.Errorf("stored: %v, %v", left, err)
		}
		var second *life
		reply, err := r.host.Mail.Prompt(r.ctx, mail.Post{To: m.ID, Text: "well?"}, func(id string) error {
			equal(t, "launched", id, m.ID)
			second = r.live(id)
			return nil
		})
		if err != nil || reply.Text != "done" {
			t.Errorf("%+v, %v", reply, err)
		}
		equal(t, "status", second.settled().Status, centurion.MissionCompleted)
		for to, kind := range map[string]centurion.Kind{m.ID: centurion.KindConflict, "ses_none": centurion.KindNotFound} {
			if _, err := r.host.Mail.Prompt(r.ctx, mail.Post{To: to, Text: "x"}, nil); centurion.KindOf(err) != kind {
				t.Errorf("to %s: %v", to, err)
			}
		}
	})
}

// A task's agent answers in a turn of its own, and what it has not read when it ends is answered by the Commander.
func TestPromptToTask(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.Last(), "well?") {
				return say("very well")
			}
			return minutes(2, "made")(q)
		},
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(30 * time.Second)
		got := <-r.prompt(&g, mail.Post{Mission: m.ID, To: "0/0", Text: "well?", Queue: true})
		if got.err != nil || got.reply.Text != "very well" || got.reply.Agent != "worker" {
			t.Errorf("%+v, %v", got.reply, got.err)
		}
		r.is(<-done, centurion.MissionCompleted, "")
		g.Wait()
	})
}

// OPAL-37, OPAL-81: a tool call that asks, aborts or stops a session, its own or another, is refused at once; asking how a
// session stands is not, as it waits for nothing.
func TestToolCannotWaitForSession(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(bash("hook"))}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		var errs [4]error
		var took time.Duration
		var ran atomic.Bool
		r.hook(func(ctx context.Context, _ string) {
			began := time.Now()
			_, errs[0] = r.host.Mail.Prompt(ctx, mail.Post{To: m.ID, Text: "am I busy?"}, nil)
			errs[1] = r.host.Control.Abort(ctx, m.ID, "")
			errs[2] = r.host.Control.Stop(ctx, m.ID, "")
			_, errs[3] = r.host.Control.State(ctx, m.ID)
			took = time.Since(began)
			ran.Store(true)
		})
		r.is(r.run(m.ID), centurion.MissionCompleted, "")
		equal(t, "ran", ran.Load(), true)
		equal(t, "took", took, 0)
		for i, err := range errs[:3] {
			if centurion.KindOf(err) != centurion.KindConflict || !strings.Contains(fmt.Sprint(err), "wait for itself") {
				t.Errorf("%d: %v", i, err)
			}
		}
		if errs[3] != nil {
			t.Error(errs[3])
		}
	})
}

// hooked is a shell in which «hook» and «hook WORD» call a function of the test, in the middle of a tool call.
type hooked struct {
	*shell
	f func(ctx context.Context, word string)
}

func (h hooked) Run(ctx context.Context, c centurion.Command) (centurion.CommandResult, error) {
	if word, arg, _ := strings.Cut(c.Script, " "); word == "hook" {
		h.f(ctx, arg)
		return centurion.CommandResult{}, nil
	}
	return h.shell.Run(ctx, c)
}

func (r *rig) hook(f func(ctx context.Context, word string)) {
	r.cfg.Runner = hooked{r.shell, f}
	r.restart()
}
