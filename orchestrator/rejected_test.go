package orchestrator

import (
	"fmt"
	"testing"
	"time"

	"centurion"
	"centurion/provider/scripted"
	"centurion/store"
)

// ORCH-80, ORCH-81: a history that the provider rejects is met with the prompt that belongs to what it dislikes, as a message
// of the host, once for each rejection and five seconds after it; then the conversation goes on.
func TestRejectedHistoryIsPrompted(t *testing.T) {
	for name, test := range map[string]struct{ said, prompt string }{
		"a result is missing": {"messages.4: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
			"A tool call of yours broke off before its result was recorded; the history has been repaired and shows what is known. " +
				"Check what the call did before you repeat it, then continue your task."},
		"thinking out of order": {"messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`.",
			"The previous turn could not be continued and was closed. Continue your task from the last recorded result."},
	} {
		for _, times := range []int{1, 3} {
			t.Run(fmt.Sprint(name, " ", times), func(t *testing.T) {
				bubble(t, nil, func(r *rig) {
					model := &breaks{}
					for range times {
						model.errs = append(model.errs, &centurion.Error{Op: "call model", Kind: centurion.KindInvalidRequest, Status: 400, Msg: test.said})
					}
					r.cfg.Model = func(string) (Model, error) { return Model{Client: model, Ref: ref}, nil }
					r.restart()
					began := time.Now()
					m := r.mission(centurion.MissionOptions{})
					r.is(m, centurion.MissionCompleted, "")
					equal(t, "requests", model.n, times+1)
					equal(t, "took", time.Since(began).Round(time.Second), time.Duration(times)*5*time.Second)
					messages, err := r.store.Messages(r.ctx, m.Session)
					if err != nil {
						t.Fatal(err)
					}
					prompts := 0
					for _, msg := range messages {
						if msg.Role == centurion.RoleUser && msg.Origin == centurion.OriginHost {
							equal(t, "prompt", msg.Text(), test.prompt)
							prompts++
						}
					}
					equal(t, "prompts", prompts, times)
				})
			})
		}
	}
}

// ORCH-87, ORCH-110: a turn that ends well ends the row of failures, too: the next turn of the same session has all its
// attempts, and waits as after a first failure.
func TestGoodTurnResets(t *testing.T) {
	n := 0
	bubble(t, map[string]script{"commander": func(scripted.Request) scripted.Answer {
		n++
		switch n {
		case 1:
			return do(plans("- [ ] T1 One"))
		case 5:
			return say("I stop here")
		case 9:
			return do(mark("T1", "done"))
		case 10:
			return say("done")
		}
		return status(500)(n)
	}}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "requests", n, 10)
		equal(t, "waits", r.waits(m.ID, centurion.EventProviderRetry), "1: 5s, 2: 10s, 3: 20s, 1: 5s, 2: 10s, 3: 20s")
	})
}

// ORCH-87: a mission that has failed and is resumed begins with a clean slate, too: all attempts are there again.
func TestResumedMissionHasItsAttempts(t *testing.T) {
	n := 0
	bubble(t, map[string]script{"commander": func(scripted.Request) scripted.Answer {
		if n++; n < 8 {
			return status(500)(n)
		}
		return say("done")
	}}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionFailed, "")
		r.is(r.run(m.ID), centurion.MissionCompleted, "")
		equal(t, "waits", r.waits(m.ID, centurion.EventProviderRetry), "1: 5s, 2: 10s, 3: 20s, 1: 5s, 2: 10s, 3: 20s")
	})
}

// ORCH-93: while a person is asked and nothing else goes on, nothing is counted down; when it is answered, it is.
func TestNoCountdownDuringAnAsk(t *testing.T) {
	bubble(t, map[string]script{"commander": idleAt()}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(time.Second)
		ask := store.Ask{ID: centurion.NewID("ask"), Type: "question", Mission: m.ID, Session: m.Session, Text: "which?", Created: centurion.Now()}
		put := func() {
			r.update(func(tx *store.Tx) error { a := ask; return tx.PutAsk(&a) })
			r.host.running(m.ID).st.Notify()
		}
		put()
		time.Sleep(time.Hour)
		equal(t, "requests while a person is asked", len(r.requests("commander")), 2)
		ask.Answered, ask.Answer = centurion.Now(), "this one"
		answered := time.Now()
		put()
		r.is(l.settled(), centurion.MissionCompleted, "")
		told := r.countdowns(m.ID)
		if len(told) != 2 || !told[1].Equal(answered) || time.Since(answered) != DefaultCountdown {
			t.Errorf("countdowns told at %v, the answer came at %v", told, answered)
		}
	})
}

// ORCH-136: a mission may run more at once than the host's 50 if it was given more; the host is as wide as its widest mission
// while that is being worked on.
func TestHostIsAsWideAsItsMissions(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(many(56), say("I wait")), "worker": minutes(1, "made")}, func(r *rig) {
		m := r.start(centurion.MissionOptions{MaxWorkers: 55, MaxPerAgent: 60})
		l := r.live(m.ID)
		time.Sleep(30 * time.Second)
		r.hostHasRoom(0)
		r.is(l.settled(), centurion.MissionCompleted, "")
		equal(t, "at once", atOnce(r.tasks(m.ID)), 55)
		r.hostHasRoom(DefaultWorkers)
	})
}
