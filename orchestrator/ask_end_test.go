package orchestrator

import (
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/state"
	"centurion/provider/scripted"
	"centurion/sandbox"
	"centurion/store"
)

// SUB-35, O5: each of the endings returns: the answer, the end of who asks, the deadline, and that nobody is there; and after
// each of them everything that was held is free again.
func TestQuestionEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		policy  string
		choices []string
		timeout time.Duration
		do      func(r *rig, ask store.Ask)
		want    string // of the call's result
		by      string
		took    time.Duration
	}{
		"answered":           {policy: "ask", do: func(r *rig, a store.Ask) { r.answer(a.ID, "my own words") }, want: "my own words", by: "person"},
		"answered in time":   {policy: "ask", timeout: time.Hour, do: func(r *rig, a store.Ask) { r.answer(a.ID, "1") }, choices: []string{"x"}, want: "x", by: "person"},
		"late":               {policy: "ask", timeout: time.Hour, do: func(*rig, store.Ask) {}, want: event.TooLate, by: "timeout", took: time.Hour},
		"cancelled":          {policy: "ask", timeout: time.Hour, do: func(r *rig, a store.Ask) { _ = r.host.Control.Cancel(r.ctx, a.Task, "no") }, want: "Cancelled", by: "abort"},
		"nobody there":       {policy: "deny", want: event.NobodyThere, by: "policy"},
		"nobody, by default": {policy: "", choices: []string{"x"}, want: event.NobodyThere, by: "policy"},
		"the first choice":   {policy: "allow", choices: []string{"x", "y"}, want: "There is no one to ask; the first choice applies, as the person's settings say:\nx", by: "policy"},
		"no choice":          {policy: "allow", want: event.NobodyThere, by: "policy"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, clerks(1, tc.choices...), func(r *rig) {
				r.cfg.AskTimeout = tc.timeout
				r.asksPerson()
				m := r.start(centurion.MissionOptions{Ask: tc.policy})
				began := time.Now()
				l := r.live(m.ID)
				if tc.do != nil {
					tc.do(r, r.waitFor(m.ID, 1)[0])
				}
				r.is(l.settled(), centurion.MissionCompleted, "")
				if d := time.Since(began); d < tc.took || d > tc.took+time.Minute {
					t.Errorf("it took %s, not %s", d, tc.took)
				}
				equal(t, "result", r.results(m.ID, "ask_user")[0], tc.want)
				all, err := r.store.Asks(r.ctx, m.ID, false)
				if err != nil || len(all) != 1 || all[0].By != tc.by || all[0].Answered.IsZero() {
					t.Errorf("asks: %+v, %v", all, err)
				}
				equal(t, "asked", r.count(m.ID, centurion.EventQuestionAsked), 1)
				equal(t, "answered", r.count(m.ID, centurion.EventQuestionAnswered), 1)
			})
		})
	}
}

// SUB-25, SUB-35: a question outlives its host, however that goes away: the call that asked waits for the same question again, or
// finds the answer that came while nobody ran.
func TestQuestionAtRestart(t *testing.T) {
	for _, way := range ways {
		for _, when := range []string{"while nobody runs", "after"} {
			t.Run(way+" "+when, func(t *testing.T) {
				bubble(t, clerks(2), func(r *rig) {
					r.asksPerson()
					m := r.start(asking)
					l := r.live(m.ID)
					old := r.waitFor(m.ID, 2)
					l.goAway(way)
					time.Sleep(time.Hour)
					answerThem := func() {
						for _, a := range old {
							r.answer(a.ID, "for "+a.Text)
						}
					}
					if equal(t, "asks of a mission that nobody runs", len(r.open(m.ID)), 2); when == "while nobody runs" {
						answerThem()
						for _, a := range old { // the first answer counts
							if err := r.host.Answer(r.ctx, a.ID, "no, this", sandbox.Peer{}); centurion.KindOf(err) != centurion.KindNotFound {
								t.Errorf("a second answer: %v", err)
							}
						}
					}
					l = r.live(m.ID)
					if when == "after" {
						time.Sleep(time.Hour)
						open := r.waitFor(m.ID, 2)
						equal(t, "the same questions", open[0].ID+open[1].ID, old[0].ID+old[1].ID)
						answerThem()
					}
					r.is(l.settled(), centurion.MissionCompleted, "")
					equal(t, "asked", r.count(m.ID, centurion.EventQuestionAsked), 2)
					equal(t, "answered", r.count(m.ID, centurion.EventQuestionAnswered), 2)
					for _, k := range r.tasks(m.ID) {
						has(t, k.Result, "heard: for Which one for "+k.Prompt)
					}
				})
			})
		}
	}
}

// SUB-25, SUB-35: a host that dies between the end of a question and that of its call leaves a question that nobody has answered:
// the call, which runs again, asks anew instead of taking that for the person's word.
func TestQuestionEndedUnanswered(t *testing.T) {
	for _, by := range []string{state.ByAbort, state.ByEnd} {
		t.Run(by, func(t *testing.T) {
			bubble(t, clerks(1), func(r *rig) {
				r.asksPerson()
				m := r.start(asking)
				l := r.live(m.ID)
				old := r.waitFor(m.ID, 1)[0]
				l.goAway(byKill)
				if err := r.store.Update(r.ctx, func(tx *store.Tx) error { return state.PutAnswer(tx, old, event.NoAnswer, by) }); err != nil {
					t.Fatal(err)
				}
				l = r.live(m.ID)
				now := r.waitFor(m.ID, 1)[0]
				equal(t, "question", now.Text, old.Text)
				if now.ID == old.ID {
					t.Error("it is the question that had ended")
				}
				r.answer(now.ID, "this one")
				r.is(l.settled(), centurion.MissionCompleted, "")
				equal(t, "result", r.tasks(m.ID)[0].Result, "heard: this one")
			})
		})
	}
}

// A question whose mission is resumed where nobody is there is answered by the policy of that run.
func TestQuestionResumedHeadless(t *testing.T) {
	bubble(t, clerks(1), func(r *rig) {
		r.asksPerson()
		m := r.start(asking)
		l := r.live(m.ID)
		r.waitFor(m.ID, 1)
		l.goAway(byShutdown)
		if err := r.host.Control.Raise(r.ctx, m.ID, centurion.MissionOptions{Ask: "deny"}); err != nil {
			t.Fatal(err)
		}
		r.is(r.run(m.ID), centurion.MissionCompleted, "")
		equal(t, "result", r.results(m.ID, "ask_user")[0], event.NobodyThere)
		equal(t, "asked", r.count(m.ID, centurion.EventQuestionAsked), 1)
	})
}

// C-18: where nobody watches, a mission that only waits for answers stops as blocked with the question, not before everything
// else is done; answered, it goes on.
func TestUnattendedMissionBlocks(t *testing.T) {
	cast := clerks(2)
	cast["commander"] = func(q scripted.Request) scripted.Answer {
		switch q.Step() {
		case 1:
			return do(plans("- [ ] T1 One", "- [ ] T2 Two", "  - after: T1"))
		case 2:
			return do(handTo("clerk", "T1", "piece 0"), handTo("clerk", "T2", "piece 1"), work("", "x"))
		}
		return say("I wait")
	}
	cast["worker"] = minutes(30, "made")
	bubble(t, cast, func(r *rig) {
		r.asksPerson()
		began := time.Now()
		m := r.mission(centurion.MissionOptions{Ask: "ask", Unattended: true})
		r.is(m, centurion.MissionBlocked, "clerk asks: Which one for piece 0? (centurion answer que_")
		equal(t, "it blocked after", time.Since(began).Round(time.Minute), 30*time.Minute)
		for i, text := range []string{"piece 0", "piece 1"} {
			ask := r.waitFor(m.ID, 1)[0]
			has(t, ask.Text, text)
			r.answer(ask.ID, "take it")
			if i == 0 {
				r.is(r.run(m.ID), centurion.MissionBlocked, "piece 1")
			}
		}
		r.is(r.run(m.ID), centurion.MissionCompleted, "")
		equal(t, "asked", r.count(m.ID, centurion.EventQuestionAsked), 2)
	})
}

// The same where the mission's own agent is busy when the question comes, or waits for the task that asks.
func TestUnattendedParent(t *testing.T) {
	for name, root := range map[string]script{
		"thinks": steps(do(handTo("clerk", "", "piece 0"), onward), after(time.Minute, say("I think"))),
		"waits":  steps(do(call("delegate_task", args{"agent": "clerk", "description": "x", "prompt": "piece 0", "background": false})), say("done")),
	} {
		t.Run(name, func(t *testing.T) {
			cast := clerks(1)
			cast["commander"] = root
			bubble(t, cast, func(r *rig) {
				r.cfg.Await = time.Hour
				r.asksPerson()
				began := time.Now()
				m := r.mission(centurion.MissionOptions{Ask: "ask", Unattended: true})
				r.is(m, centurion.MissionBlocked, "clerk asks")
				if d := time.Since(began); d > 2*time.Minute || name == "thinks" && d < time.Minute {
					t.Errorf("it blocked after %s", d)
				}
				r.answer(r.waitFor(m.ID, 1)[0].ID, "this one")
				r.is(r.run(m.ID), centurion.MissionCompleted, "")
				equal(t, "result", r.tasks(m.ID)[0].Result, "heard: this one")
			})
		})
	}
}

// A question that nobody waits for any more, because its task was cancelled while the mission stood, is not left open.
func TestQuestionOfACancelledTask(t *testing.T) {
	bubble(t, clerks(1), func(r *rig) {
		r.asksPerson()
		m := r.start(asking)
		l := r.live(m.ID)
		ask := r.waitFor(m.ID, 1)[0]
		l.goAway(byShutdown)
		if err := r.host.Control.Cancel(r.ctx, ask.Task, "not needed"); err != nil {
			t.Fatal(err)
		}
		equal(t, "asks left", len(r.open(m.ID)), 0)
		r.is(r.run(m.ID), centurion.MissionCompleted, "")
	})
}
