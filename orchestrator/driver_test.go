package orchestrator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/mail"
	"centurion/orchestrator/state"
	"centurion/provider/scripted"
	"centurion/store"
)

// LOOP-1, LOOP-12, C-3: a session has one conversation: while it has, nobody gets a second one, for the root as for a task, and
// what the first is at is not touched; whoever writes to it, and by whatever way, is read in that one.
func TestOneConversation(t *testing.T) {
	bubble(t, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			return steps(do(work("", "x"), onward), after(100*time.Second, say("I think")), say("done"))(q)
		},
		"worker": minutes(5, "made"),
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(time.Minute)
		synctest.Wait()
		running, one := r.host.running(m.ID), r.tasks(m.ID)[0]
		run := running.st.Run(one.ID)
		before, seq := r.stored(m.ID), r.store.LastSeq()
		for session, task := range map[string]*state.Run{m.Session: nil, one.Session: run} {
			if c, err := running.opener.Open(r.ctx, session, task); c != nil || centurion.KindOf(err) != centurion.KindConflict || centurion.HintOf(err) == "" {
				t.Errorf("a second conversation for %s: %v", session, err)
			}
		}
		if _, err := r.host.Run(r.ctx, m.ID); centurion.KindOf(err) != centurion.KindConflict {
			t.Errorf("a second run: %v", err)
		}
		equal(t, "stored", r.stored(m.ID), before)
		equal(t, "facts", r.store.LastSeq(), seq)

		var g guard.Group
		asked := r.prompt(&g, mail.Post{To: m.ID, Text: "by a call", Queue: true})
		synctest.Wait()
		r.send(m.ID, "0/", "by a message", true)
		equal(t, "read in the middle of a turn", r.heard(m.Session), "")
		if p := <-asked; p.err != nil {
			t.Error(p.err)
		}
		r.is(l.settled(), centurion.MissionCompleted, "")
		g.Wait()
		equal(t, "read", r.heard(m.Session), "by a call|by a message")
		sessions, err := r.store.Sessions(r.ctx, m.ID)
		if err != nil || len(sessions) != 2 {
			t.Errorf("%d sessions, %v", len(sessions), err)
		}
	})
}

// LOOP-1, IKI-26: of those who open one session at the same time, one gets it; who could not load it has not kept it.
func TestOneConversationOfMany(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		rec := r.start(centurion.MissionOptions{})
		m := newMission(r.ctx, r.host, rec)
		defer m.st.End(nil)
		for range 2 {
			if _, err := m.opener.Open(r.ctx, "ses_x", nil); centurion.KindOf(err) != centurion.KindNotFound {
				t.Error(err)
			}
		}
		errs := make([]error, 8)
		var g guard.Group
		for i := range errs {
			g.Go("open", func() error {
				_, errs[i] = m.opener.Open(r.ctx, rec.Session, nil)
				return nil
			})
		}
		g.Wait()
		got := 0
		for _, err := range errs {
			switch {
			case err == nil:
				got++
			case centurion.KindOf(err) != centurion.KindConflict:
				t.Error(err)
			}
		}
		equal(t, "conversations", got, 1)
	})
}

// LOOP-1: a session whose conversation could not be loaded can be opened again.
func TestOpenAfterFailure(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		rec := r.start(centurion.MissionOptions{})
		ctx, cancel := context.WithCancel(r.ctx)
		defer cancel()
		model := r.host.cfg().Model
		r.host.cfg().Model = func(name string) (Model, error) {
			cancel() // what is read after it fails
			return model(name)
		}
		m := newMission(r.ctx, r.host, rec)
		defer m.st.End(nil)
		if _, err := m.opener.Open(ctx, rec.Session, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("it did not fail: %v", err)
		}
		if _, err := m.opener.Open(r.ctx, rec.Session, nil); err != nil {
			t.Errorf("a session that could not be loaded is kept: %v", err)
		}
	})
}

// LOOP-1: a conversation that was superseded takes nothing with it from the newer one of its session when it ends.
func TestStaleConversationEnds(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		rec := r.start(centurion.MissionOptions{})
		m := newMission(r.ctx, r.host, rec)
		defer m.st.End(nil)
		if err := r.store.Update(r.ctx, func(tx *store.Tx) error {
			return tx.PutTask(&centurion.Task{ID: "tsk_1", Mission: rec.ID, Agent: "worker", Status: centurion.TaskRunning})
		}); err != nil {
			t.Fatal(err)
		}
		open := func(task *state.Run) *conversation {
			c, err := m.opener.Open(r.ctx, rec.Session, task)
			if err != nil {
				r.t.Fatal(err)
			}
			return c
		}
		stale := open(&state.Run{ID: "tsk_1", Done: make(chan struct{})})
		m.st.Fences.Raise("tsk_1", 1)
		newer := open(nil)
		m.sessions.Forget(stale)
		if _, err := m.opener.Open(r.ctx, rec.Session, nil); centurion.KindOf(err) != centurion.KindConflict {
			t.Errorf("the newer one has lost its session: %v", err)
		}
		equal(t, "the newer one is found by its session", m.sessions.Of(rec.Session) == newer, true)
		m.sessions.Forget(newer)
		equal(t, "conversations", len(m.sessions.All()), 0)
		open(nil)
	})
}

// What a conversation takes in is what waits in the transaction that marks it as taken: what somebody else has taken a moment
// before is not told again.
func TestInboxIsReadInItsTransaction(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		rec := r.start(centurion.MissionOptions{})
		r.send(rec.ID, "0/", "once", false)
		m := newMission(r.ctx, r.host, rec)
		defer m.st.End(nil)
		c, err := m.opener.Open(r.ctx, rec.Session, nil)
		if err != nil {
			t.Fatal(err)
		}
		taken := make(chan struct{})
		var g guard.Group
		g.Go("somebody else", func() error {
			return r.store.Update(r.ctx, func(tx *store.Tx) error {
				<-taken
				waiting, err := tx.PendingDeliveries(rec.Session)
				for _, d := range waiting {
					d.Taken = centurion.Now()
					err = errors.Join(err, tx.PutDelivery(&d))
				}
				return err
			})
		})
		synctest.Wait()
		var arrived []centurion.Message
		g.Go("collect", func() (err error) {
			arrived, err = c.Config().Host.Before(r.ctx)
			return err
		})
		synctest.Wait() // it has seen that something waits, and stands behind the other
		close(taken)
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		if len(arrived) > 0 {
			t.Errorf("told again: %q", arrived[0].Text())
		}
	})
}
