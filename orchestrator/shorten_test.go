package orchestrator

import (
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/guard"
	"centurion/orchestrator/mail"
	"centurion/provider/scripted"
	"centurion/session"
	"centurion/store"
)

// shorten shortens a session, which has to be done at once or not.
func (r *rig) shorten(session string, at bool) {
	r.t.Helper()
	if done, err := r.host.Shorten(r.ctx, session, ""); done != at || err != nil {
		r.t.Errorf("done: %v, %v", done, err)
	}
}

// LOOP-20: a conversation of two messages is shortened at once while nobody works on its mission, however that has stopped. The mission
// stays as it is, pays for the summary, and its agent goes on with that.
func TestShortenAtRest(t *testing.T) {
	for name, test := range map[string]struct {
		profile string
		status  centurion.MissionStatus
		again   bool // a message lets it go on
	}{
		"an answered question": {agents.ProfileAssistant, centurion.MissionCompleted, true},
		"a complete mission":   {"", centurion.MissionCompleted, false},
		"a paused one":         {agents.ProfileAssistant, centurion.MissionPaused, true},
		"a cancelled one":      {agents.ProfileAssistant, centurion.MissionCancelled, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{"": func(scripted.Request) scripted.Answer { return say("All was read so far.") }}, func(r *rig) {
				m := r.mission(centurion.MissionOptions{Profile: test.profile})
				m.Status = test.status
				if err := r.store.Update(r.ctx, func(tx *store.Tx) error { return tx.PutMission(&m) }); err != nil {
					t.Fatal(err)
				}
				before := len(r.events(m.ID))
				r.shorten(m.Session, true)
				if all := r.events(m.ID)[before:]; len(all) != 1 || all[0].Type != centurion.EventCompacted {
					t.Errorf("told: %+v", all)
				}
				now, err := r.store.Mission(r.ctx, m.ID)
				if err != nil || now.Status != test.status || now.Rounds != m.Rounds+1 || now.Usage.Tokens.Total() <= m.Usage.Tokens.Total() {
					t.Errorf("the mission is %+v, %v", now, err)
				}
				if got := r.send(m.ID, "0/", mail.CompactWord, false); !got.Short || got.Done {
					t.Errorf("once more: %+v", got)
				}
				if _, err := r.host.Shorten(r.ctx, m.Session, ""); centurion.KindOf(err) != centurion.KindConflict || centurion.HintOf(err) == "" {
					t.Errorf("once more, with an error: %v", err)
				}
				if !test.again {
					return
				}
				r.send(m.ID, "0/", "go on", false)
				if test.status == centurion.MissionCompleted {
					r.runs++ // a message pauses it first
				}
				r.is(r.run(m.ID), centurion.MissionCompleted, "")
				asked := r.requests("assistant")
				last := asked[len(asked)-1]
				has(t, last.First(), "build it", "All was read so far.", "go on")
				equal(t, "messages of the request", len(last.Messages()), 2) // one is the system prompt
				if got := r.send(m.ID, "0/", mail.CompactWord, false); !got.Done || got.Working {
					t.Errorf("by a message: %+v", got)
				}
			})
		})
	}
}

// LOOP-20: while the mission's own agent waits for a worker, its conversation is shortened at once, and not when the worker has ended. A
// worker's own is, before its next request.
func TestShortenWhileOthersWork(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker":    func(q scripted.Request) scripted.Answer { return after(90*time.Second, reads(2)(q)) },
		"":          func(scripted.Request) scripted.Answer { return say("All was read so far.") },
	}, func(r *rig) {
		r.longFile()
		m := r.start(centurion.MissionOptions{})
		var g guard.Group
		done := r.inBackground(&g, m.ID)
		time.Sleep(30 * time.Second)
		r.shorten(m.Session, false)
		r.shorten(r.tasks(m.ID)[0].Session, false)
		time.Sleep(30 * time.Second)
		equal(t, "compactions of the commander", len(r.compacted(m.ID, "commander")), 1)
		equal(t, "of the worker", len(r.compacted(m.ID, "worker")), 0)
		<-done
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		equal(t, "compactions of the commander in the end", len(r.compacted(m.ID, "commander")), 1)
		equal(t, "of the worker in the end", len(r.compacted(m.ID, "worker")), 1)
	})
}

// A message that comes while a summary is written is answered after it. A person can end the request, and nothing has changed then; one that
// the budget does not cover is not made.
func TestShortenIsAlone(t *testing.T) {
	slow := func(scripted.Request) scripted.Answer { return after(90*time.Second, say("All was read so far.")) }
	bubble(t, map[string]script{"": slow}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{Profile: agents.ProfileAssistant, MaxRounds: 3})
		var g guard.Group
		g.Go("shorten", func() error {
			_, err := r.host.Shorten(r.ctx, m.Session, "")
			if centurion.KindOf(err) != centurion.KindCancelled {
				t.Errorf("ended by a person: %v", err)
			}
			return nil
		})
		time.Sleep(20 * time.Second)
		if _, err := r.host.Shorten(r.ctx, m.Session, ""); centurion.KindOf(err) != centurion.KindConflict {
			t.Errorf("twice at once: %v", err)
		}
		if was, err := r.host.Shell.Abort(r.ctx, m.Session); !was || err != nil {
			t.Errorf("to be ended: %v, %v", was, err)
		}
		synctest.Wait()
		equal(t, "compactions", r.count(m.ID, centurion.EventCompacted), 0)

		g.Go("shorten", func() error { r.shorten(m.Session, true); return nil })
		time.Sleep(20 * time.Second)
		r.send(m.ID, "0/", "go on", false)
		ended := r.inBackground(&g, m.ID)
		time.Sleep(20 * time.Second)
		equal(t, "requests meanwhile", len(r.requests("assistant")), 1)
		<-ended
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		has(t, r.requests("assistant")[1].First(), "All was read so far.", "go on")
		equal(t, "compactions after it", r.count(m.ID, centurion.EventCompacted), 1)

		r.restart()
		n := len(r.model.Requests())
		if _, err := r.host.Shorten(r.ctx, m.Session, ""); centurion.KindOf(err) != centurion.KindBudget || centurion.HintOf(err) == "" {
			t.Errorf("beyond the budget: %v", err)
		}
		equal(t, "requests beyond the budget", len(r.model.Requests()), n)
	})
}

// A person chooses who writes the summary; the conversation keeps its own model.
func TestShortenByAnotherModel(t *testing.T) {
	bubble(t, map[string]script{"": func(scripted.Request) scripted.Answer { return say("All was read so far.") }}, func(r *rig) {
		r.providers(always())
		m := r.mission(centurion.MissionOptions{Profile: agents.ProfileAssistant})
		if _, err := r.host.Shorten(r.ctx, m.Session, "c/1"); centurion.KindOf(err) != centurion.KindConfig {
			t.Errorf("by one that is not there: %v", err)
		}
		if done, err := r.host.Shorten(r.ctx, m.Session, "b/1"); !done || err != nil {
			t.Fatal(done, err)
		}
		all, err := r.store.Messages(r.ctx, m.Session)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "who wrote it", all[len(all)-1].Model.String(), "b/1")
		rec, err := r.store.Session(r.ctx, m.Session)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "who goes on", rec.Own().String(), "a/1")
	})
}

// A conversation that a crash left in the middle of an answer is shortened when it goes on, and a session of a task before its next
// request: nobody repairs what would be left of it.
func TestShortenLater(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		worker := centurion.Session{ID: centurion.NewID(centurion.PrefixSession), ParentID: m.Session, Metadata: centurion.SessionMeta{Mission: m.ID, Task: "tsk_1"}}
		err := r.store.Update(r.ctx, func(tx *store.Tx) error {
			m.Status = centurion.MissionPaused
			if err := tx.PutMission(&m); err != nil {
				return err
			}
			if err := tx.PutSession(&worker); err != nil {
				return err
			}
			rec, err := tx.Session(m.Session)
			if err == nil {
				_, err = session.Say(tx, &rec, centurion.OriginPerson, "go on")
			}
			if err != nil {
				return err
			}
			return tx.PutMessage(&centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: m.Session, Role: centurion.RoleAssistant})
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{m.Session, worker.ID} {
			r.shorten(id, false)
			if rec, err := r.store.Session(r.ctx, id); err != nil || !rec.Metadata.Compact {
				t.Errorf("it is forgotten: %+v, %v", rec.Metadata, err)
			}
		}
		r.is(r.run(m.ID), centurion.MissionCompleted, "")
		if d := r.compacted(m.ID, "commander"); len(d) != 1 || d[0].Reason != event.CompactedAsked {
			t.Errorf("when it goes on: %+v", d)
		}
	})
}
