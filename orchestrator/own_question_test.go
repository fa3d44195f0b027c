package orchestrator

import (
	"testing"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/brief"
	"centurion/provider/scripted"
)

const licence = "Which licence shall the package have, MIT or Apache-2.0?"

// asksAtEnd is a Commander whose item waits for the person, and which does it with their answer.
func asksAtEnd(q scripted.Request) scripted.Answer {
	switch q.Step() {
	case 1:
		return do(plans("- [!] T1 Add a LICENSE file"))
	case 2:
		return say(licence)
	case 3:
		return do(call("update_todo", args{"items": []args{{"id": "T1", "status": "done"}}}))
	case 4:
		return complete()
	}
	return say("MIT it is")
}

// ORCH-26, C-18: the question with which the Commander ends its turn, its item blocked, is what the person is asked; the answer
// reaches it with a resume.
func TestOwnQuestionIsAsked(t *testing.T) {
	bubble(t, map[string]script{"commander": asksAtEnd}, func(r *rig) {
		r.asksPerson()
		m := r.mission(centurion.MissionOptions{Ask: "ask"})
		open := r.open(m.ID)
		if len(open) != 1 {
			t.Fatalf("asked: %+v", open)
		}
		r.is(m, centurion.MissionBlocked, "commander asks: "+licence+" (Left: T1 Add a LICENSE file) (centurion answer "+open[0].ID+" TEXT)")
		equal(t, "question", open[0].Text, licence+" (Left: T1 Add a LICENSE file)")
		equal(t, "asked", r.count(m.ID, centurion.EventQuestionAsked), 1)
		r.answer(open[0].ID, "MIT")
		equal(t, "answered", r.count(m.ID, centurion.EventQuestionAnswered), 1)
		r.is(r.run(m.ID), centurion.MissionCompleted, "")
		has(t, r.requests("commander")[2].Last(), "You asked: "+licence, "The person answers: MIT")
	})
}

// A question that the person did not answer is closed when the mission is resumed: nothing waits for it.
func TestOwnQuestionLeftOpen(t *testing.T) {
	bubble(t, map[string]script{"commander": asksAtEnd}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{Ask: "ask"})
		r.is(m, centurion.MissionBlocked, licence)
		r.send(m.ID, "0/", "take MIT", false)
		r.is(r.run(m.ID), centurion.MissionCompleted, "")
		has(t, texts(r.requests("commander")[2]), "user: take MIT")
		equal(t, "open", len(r.open(m.ID)), 0)
		all, err := r.store.Asks(r.ctx, m.ID, false)
		if err != nil || len(all) != 1 || all[0].Answer != event.NoAnswer {
			t.Errorf("asks: %+v, %v", all, err)
		}
	})
}

// ORCH-26: a turn that ends with a question ends no mission, whether there was a plan or not: the agent is asked once whether it
// means it, and then the person is.
func TestQuestionEndsNoMission(t *testing.T) {
	for name, first := range map[string][]scripted.Answer{
		"all done": {do(plans("- [ ] T1 One")), do(call("update_todo", args{"items": []args{{"id": "T1", "status": "done"}}}))},
		"no plan":  nil,
	} {
		for _, again := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", asks again"}[again], func(t *testing.T) {
				last := []scripted.Answer{say(licence), complete(), say("built")}
				if again {
					last = []scripted.Answer{say(licence), say(licence), complete(), say("built")}
				}
				bubble(t, map[string]script{"commander": steps(append(first[:len(first):len(first)], last...)...)}, func(r *rig) {
					m := r.mission(centurion.MissionOptions{})
					if again {
						r.is(m, centurion.MissionBlocked, "commander asks: "+licence)
						r.answer(r.open(m.ID)[0].ID, "MIT")
						m = r.run(m.ID)
					}
					r.is(m, centurion.MissionCompleted, "")
					equal(t, "summary", m.Summary, "built")
					has(t, r.requests("commander")[len(first)+1].Last(), "Your turn ended with a question", "call mission_complete")
				})
			})
		}
	}
}

// One call of update_todo adds an item and marks it.
func TestAddedItemIsMarked(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(plans("- [x] T1 One")),
		do(call("update_todo", args{"add": []args{{"id": "T2", "title": "Two"}}, "items": []args{{"id": "T2", "status": "blocked", "note": "which?", "after": []string{"T1"}}}})),
		do(call("update_todo", args{"add": []args{{"id": "T3", "title": "Three"}}, "items": []args{{"id": "T9", "status": "blocked"}}})),
		say("I wait"))}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionBlocked, "T2 Two. What should happen with them? Its agent said last: I wait")
		got := r.results(m.ID, "update_todo")
		has(t, got[1], "[!] T2 Two")
		has(t, got[2], `there is no item "T9"`, "none of the 2 changes of items was made")
	})
}

// A message that comes between mission_complete and the end of its turn is answered in a turn whose status says that the mission ends
// with it.
func TestStatusAfterCompletion(t *testing.T) {
	var r *rig
	bubble(t, map[string]script{"commander": func(q scripted.Request) scripted.Answer {
		if q.Step() == 3 {
			r.send("", q.Session, "thank you", false)
		}
		return steps(do(plans("- [ ] T1 One")), do(call("update_todo", args{"items": []args{{"id": "T1", "status": "done"}}})), complete(), say("you are welcome"))(q)
	}}, func(got *rig) {
		r = got
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		asked := r.requests("commander")
		has(t, asked[2].Last(), brief.AllDone)
		has(t, texts(asked[3]), "user: thank you", brief.ClaimedDone)
	})
}
