package mail

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"centurion"
	"centurion/agents"
	"centurion/guard"
	"centurion/orchestrator/agent"
	"centurion/store"
	"centurion/store/storetest"
)

type prompted struct {
	reply Reply
	err   error
}

// withDesk runs test with a desk, in a bubble, and a complete run of the profile assistant that nobody works on.
func withDesk(t *testing.T, test func(t *testing.T, d *Desk, m centurion.Mission, prompt func(context.Context) <-chan prompted)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		st := storetest.Open(t)
		m := centurion.Mission{ID: "msn_1", Session: "ses_1", Status: centurion.MissionCompleted, Options: centurion.MissionOptions{Profile: agents.ProfileAssistant}}
		err := st.Update(t.Context(), func(tx *store.Tx) error {
			return errors.Join(tx.PutMission(&m), tx.PutSession(&centurion.Session{ID: m.Session, Metadata: centurion.SessionMeta{Mission: m.ID, Address: "0/"}}))
		})
		if err != nil {
			t.Fatal(err)
		}
		var g guard.Group
		d := New(st, nil, func(string) *agent.Sessions { return nil })
		test(t, d, m, func(ctx context.Context) <-chan prompted {
			done := make(chan prompted, 1)
			g.Go("prompt", func() error {
				reply, err := d.Prompt(ctx, Post{To: m.Session, Text: "one"}, nil)
				done <- prompted{reply, err}
				return nil
			})
			return done
		})
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		if n := len(d.waiting); n > 0 {
			t.Errorf("%d still wait", n)
		}
	})
}

// OPAL-36: a prompt waits while it is decided whether a run continues, and the run that continues answers it.
func TestPromptWaitsForTheDecision(t *testing.T) {
	for name, goesOn := range map[string]bool{"goes on": true, "has ended": false} {
		t.Run(name, func(t *testing.T) {
			withDesk(t, func(t *testing.T, d *Desk, m centurion.Mission, prompt func(context.Context) <-chan prompted) {
				d.Expect(m.ID)
				_, decide := d.close(m.ID)
				asked := prompt(t.Context())
				synctest.Wait()
				if len(asked) > 0 {
					t.Errorf("it has not waited: %v", (<-asked).err)
				}
				decide(goesOn)
				synctest.Wait()
				if d.Attended(m.ID) != goesOn {
					t.Errorf("attended is %t", d.Attended(m.ID))
				}
				if !goesOn {
					if got := <-asked; centurion.KindOf(got.err) != centurion.KindConflict {
						t.Errorf("got %v", got.err)
					}
					return
				}
				for _, w := range d.of(m.ID) {
					d.answer(w, Reply{Text: "answer to one"}, nil)
				}
				if got := <-asked; got.err != nil || got.reply.Text != "answer to one" || got.reply.Session != m.Session {
					t.Errorf("%+v, %v", got.reply, got.err)
				}
			})
		})
	}
}

// A completed run that a message has reopened goes on at once, but not on a host that is leaving.
func TestReopenedRunStaysBehind(t *testing.T) {
	withDesk(t, func(t *testing.T, d *Desk, m centurion.Mission, _ func(context.Context) <-chan prompted) {
		if err := d.store.Update(t.Context(), func(tx *store.Tx) error { _, err := reopen(tx, m); return err }); err != nil {
			t.Fatal(err)
		}
		leaving, leave := context.WithCancel(t.Context())
		leave()
		for ctx, want := range map[context.Context]bool{leaving: false, t.Context(): true} {
			d.Expect(m.ID)
			if got := d.Closed(ctx, m, m.ID, nil); got != want {
				t.Errorf("leaving %v: it goes on %v", ctx.Err() != nil, got)
			}
		}
	})
}

// The history of a mission's own agent may be shortened also when the mission is over, as soon as there is an answer.
func TestCompactOfACancelledMission(t *testing.T) {
	withDesk(t, func(t *testing.T, d *Desk, m centurion.Mission, _ func(context.Context) <-chan prompted) {
		to, asked := Receiver{Mission: m.ID, Session: m.Session}, ""
		d.Shorten = func(_ context.Context, session string) (bool, error) { asked = session; return true, nil }
		if got, err := d.compactReceiver(t.Context(), Post{To: m.Session}, to); err != nil || !got.Short || asked != "" {
			t.Errorf("%+v, %v; asked for %q", got, err, asked)
		}
		m.Status = centurion.MissionCancelled
		said := centurion.Message{ID: "msg_1", SessionID: m.Session, Role: centurion.RoleAssistant, Finish: centurion.FinishStop}
		part := centurion.Part{ID: "prt_1", SessionID: m.Session, MessageID: said.ID, Type: centurion.PartText, Text: "done"}
		goal := centurion.Message{ID: "msg_0", SessionID: m.Session, Role: centurion.RoleUser}
		err := d.store.Update(t.Context(), func(tx *store.Tx) error {
			return errors.Join(tx.PutMission(&m), tx.PutMessage(&goal), tx.PutMessage(&said), tx.PutPart(&part))
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := d.compactReceiver(t.Context(), Post{To: m.Session}, to); err != nil || !got.Done || got.Working || asked != m.Session {
			t.Errorf("of a cancelled one: %+v, %v; asked for %q", got, err, asked)
		}
	})
}

// A prompt ends with its caller's context, or with the run that it waits for. No waiter stays behind.
func TestPromptLeavesNoWaiter(t *testing.T) {
	gone := errors.New("the caller has gone")
	for name, test := range map[string]struct {
		end  func(d *Desk, m centurion.Mission, cancel context.CancelCauseFunc)
		want func(error) bool
	}{
		"the caller has gone": {func(_ *Desk, _ centurion.Mission, cancel context.CancelCauseFunc) { cancel(gone) },
			func(err error) bool { return errors.Is(err, gone) }},
		"the run has ended": {func(d *Desk, m centurion.Mission, _ context.CancelCauseFunc) {
			d.Verdict(m.ID)
			m.Status = centurion.MissionCancelled
			if d.Closed(context.Background(), m, m.ID, nil) {
				panic("a cancelled run goes on")
			}
		}, func(err error) bool { return centurion.KindOf(err) == centurion.KindConflict }},
	} {
		t.Run(name, func(t *testing.T) {
			withDesk(t, func(t *testing.T, d *Desk, m centurion.Mission, prompt func(context.Context) <-chan prompted) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				d.Expect(m.ID)
				asked := prompt(ctx)
				synctest.Wait()
				test.end(d, m, cancel)
				if got := <-asked; !test.want(got.err) {
					t.Errorf("got %v", got.err)
				}
			})
		})
	}
}

// An answer that came before its caller has looked is not lost, although nobody works on the mission any more.
func TestPromptWasAnswered(t *testing.T) {
	withDesk(t, func(t *testing.T, d *Desk, m centurion.Mission, _ func(context.Context) <-chan prompted) {
		w := d.join(m.ID, "dlv_1")
		d.answer(w, Reply{Text: "yes"}, nil)
		got, over, err := d.await(t.Context(), w, false)
		if got.Text != "yes" || over || err != nil {
			t.Errorf("%+v, %v, %v", got, over, err)
		}
		other := d.join(m.ID, "dlv_2")
		defer d.leave(other)
		if _, over, err := d.await(t.Context(), other, false); !over || err != nil {
			t.Errorf("nobody answered: %v, %v", over, err)
		}
	})
}
