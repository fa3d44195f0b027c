package orchestrator

import (
	"strings"
	"testing"

	"centurion"
	"centurion/orchestrator/mail"
	"centurion/orchestrator/state"
	"centurion/store"
)

// LOOP-13: the text of a file that comes with the goal is a part of its own in the first message: the goal, the title and the
// events are the person's words, which begin that message as they are.
func TestAttachedTextStandsBesideTheGoal(t *testing.T) {
	const secret = "<file path=\".env\">\nSECRET=1\n</file>"
	bubble(t, map[string]script{"commander": steps(say("done"))}, func(r *rig) {
		m := r.start(centurion.MissionOptions{Attached: secret})
		r.is(r.run(m.ID), centurion.MissionCompleted, "")
		stored, err := r.store.Mission(r.ctx, m.ID)
		if err != nil {
			r.t.Fatal(err)
		}
		equal(r.t, "goal", stored.Goal, "build it")
		equal(r.t, "kept with the options", stored.Options.Attached, "")
		messages, err := r.store.Messages(r.ctx, m.Session)
		if err != nil || len(messages[0].Parts) != 2 {
			r.t.Fatalf("the first message has the parts %+v (%v)", messages[0].Parts, err)
		}
		equal(r.t, "first part", messages[0].Parts[0].Text, "build it")
		equal(r.t, "second part", strings.TrimSpace(messages[0].Parts[1].Text), secret)
		if first := r.requests("commander")[0].First(); !strings.HasPrefix(first, "build it\n\n"+secret) {
			r.t.Errorf("the model is told\n%s", first)
		}
		for _, e := range r.events(m.ID) {
			if strings.Contains(string(e.Data), "SECRET") {
				r.t.Errorf("%s has the file's text", e.Type)
			}
		}
	})
}

// LOOP-13: a reviewer, who is told the goal, is told what came with it.
func TestReviewerIsToldWhatCameWithTheGoal(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(handTo("reviewer", "", "r")), say("I wait")), "reviewer": steps(say("PASS"))}, func(r *rig) {
		r.run(r.start(centurion.MissionOptions{Attached: "<file path=\"notes.txt\">\nkeep it small\n</file>"}).ID)
		has(r.t, r.requests("reviewer")[0].First(), "build it\n\n\n<file path=\"notes.txt\">\nkeep it small\n</file>\n")
	})
}

// A reviewer whose project has no shared context yet is told so, and does not look for the file; one with it is given it.
func TestReviewerIsToldThatThereIsNoContext(t *testing.T) {
	const none = "There is no " + contextMD + " yet"
	for name, text := range map[string]string{"none": "", "some": "# Known\n"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{"commander": steps(do(handTo("reviewer", "", "r")), say("I wait")), "reviewer": steps(say("PASS"))}, func(r *rig) {
				if text != "" {
					r.write(contextMD, text)
				}
				r.mission(centurion.MissionOptions{})
				first := func(agent string) string { return r.requests(agent)[0].First() }
				equal(r.t, "told to the reviewer", strings.Contains(first("reviewer"), none), text == "")
				equal(r.t, "told to the Commander", strings.Contains(first("commander"), none), false)
			})
		})
	}
}

// The reason of a blocked mission names the question, or how many there are and from whom.
func TestOpenQuestions(t *testing.T) {
	q := func(id, agent, text string) store.Ask {
		return store.Ask{ID: id, Type: store.AskQuestion, Agent: agent, Text: text}
	}
	a, b, c := q("que_1", "clerk", "why?\nsay"), q("que_2", "clerk", "when?"), q("que_3", "planner", "who?")
	equal(t, "one", state.OpenQuestions(a, []store.Ask{a}), "clerk asks: why?\nsay (centurion answer que_1 TEXT)")
	equal(t, "two", state.OpenQuestions(b, []store.Ask{a, b}), "clerk asks 2 questions: why? say · when? (centurion asks)")
	equal(t, "of two agents", state.OpenQuestions(b, []store.Ask{a, c}), "clerk, planner ask 2 questions: why? say · who? (centurion asks)")
}

// What cannot be shortened is an error of compact, whatever carries the wish.
func TestCompactErrorIsItsOwn(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(say("done"))}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		for text, want := range map[string]string{mail.CompactWord: "compact: mission ", "hello": "send: mission "} {
			if _, err := r.host.Mail.Send(r.ctx, mail.Post{Mission: m.ID, To: "0/7", Text: text}); err == nil || !strings.HasPrefix(err.Error(), want) {
				r.t.Errorf("%s: %v", text, err)
			}
		}
	})
}
