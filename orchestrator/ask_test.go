package orchestrator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/guard"
	"centurion/orchestrator/mail"
	"centurion/permission"
	"centurion/provider/scripted"
	"centurion/sandbox"
	"centurion/store"
)

// asks calls ask_user.
func asks(question string, choices ...string) scripted.Call {
	a := args{"question": question}
	if len(choices) > 0 {
		a["choices"] = choices
	}
	return call("ask_user", a)
}

// asksPerson gives the cast two agents of the project's own that may ask the person: the clerk carries out tasks, the lead
// owns missions.
func (r *rig) asksPerson() {
	r.t.Helper()
	c, _, err := agents.Default().With(
		agents.Definition{Name: "clerk", Mode: "subagent", Prompt: "You are the clerk.", Tools: map[string]bool{"ask_user": true}, Source: "clerk.md"},
		agents.Definition{Name: "lead", Mode: "primary", Prompt: "You are the lead.", Tools: map[string]bool{"question": true}, Source: "lead.md"})
	if err != nil {
		r.t.Fatal(err)
	}
	r.cfg.Cast = c
	r.restart()
}

// clerks is a mission whose Commander hands tasks to a clerk that asks one question, which says which task's it is.
func clerks(n int, choices ...string) map[string]script {
	return map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			if q.Step() > 1 {
				return say("I wait")
			}
			var calls []scripted.Call
			for i := range n {
				calls = append(calls, handTo("clerk", "", fmt.Sprintf("piece %d", i)))
			}
			return do(calls...)
		},
		"clerk": func(q scripted.Request) scripted.Answer {
			if q.Step() > 1 {
				return say("heard: " + q.Last())
			}
			i := strings.Index(q.First(), "piece ")
			return do(asks("Which one for "+q.First()[i:i+7]+"?", choices...))
		},
	}
}

var asking = centurion.MissionOptions{Ask: "ask"}

// waitFor waits until n asks are open.
func (r *rig) waitFor(mission string, n int) []store.Ask {
	r.t.Helper()
	for range 100 {
		if open := r.open(mission); len(open) == n {
			return open
		}
		time.Sleep(time.Second)
	}
	r.t.Fatalf("%d asks are open, not %d", len(r.open(mission)), n)
	return nil
}

// SUB-17, SUB-18, SUB-22, SUB-25, SUB-28: a child's tool is ask_user like everybody's, and reaches the person: the question
// says whose it is, nothing comes from the child while it waits, and the answer is the result of its call.
func TestQuestionOfAChild(t *testing.T) {
	bubble(t, clerks(1, "keep it", "delete it"), func(r *rig) {
		r.asksPerson()
		m := r.start(asking)
		l := r.live(m.ID)
		ask := r.waitFor(m.ID, 1)[0]
		task := r.tasks(m.ID)[0]
		equal(t, "type", ask.Type, store.AskQuestion)
		equal(t, "question", ask.Text, "Which one for piece 0?")
		equal(t, "from", ask.Agent+" "+ask.Address+" below "+ask.Line, "clerk 0/0 below commander 0/")
		equal(t, "task and session", ask.Task+ask.Session, task.ID+task.Session)
		equal(t, "state", task.Status, centurion.TaskWaiting)
		has(t, task.Reason, "question: Which one")
		before := len(r.events(m.ID))
		time.Sleep(10 * time.Hour) // far beyond every clock of a session that works
		synctest.Wait()
		equal(t, "events while it waits", len(r.events(m.ID)), before)
		equal(t, "requests while it waits", len(r.requests("clerk")), 1)
		r.answer(ask.ID, "2")
		r.is(l.settled(), centurion.MissionCompleted, "")
		equal(t, "result", r.results(m.ID, "ask_user")[0], "delete it")
		equal(t, "task's result", r.tasks(m.ID)[0].Result, "heard: delete it")
		has(t, strings.Join(r.requests("clerk")[0].Tools(), " "), "ask_user")
		for _, agent := range []string{"commander", "worker"} {
			for _, q := range r.requests(agent) {
				if slices.Contains(q.Tools(), "ask_user") {
					t.Errorf("the %s may ask", agent)
				}
			}
		}
	})
}

// The events tell of a question in Centurion's words and in OpenCode's.
func TestQuestionIsTold(t *testing.T) {
	bubble(t, clerks(1, "a", "b"), func(r *rig) {
		r.asksPerson()
		m := r.start(asking)
		l := r.live(m.ID)
		ask := r.waitFor(m.ID, 1)[0]
		r.answer(ask.ID, "  B ")
		r.is(l.settled(), centurion.MissionCompleted, "")
		var told []string
		for _, e := range r.events(m.ID, "question.asked", "question.answered") {
			d, err := event.Decode[event.AskData](e)
			if err != nil {
				t.Fatal(err)
			}
			q := d.Questions[0]
			told = append(told, fmt.Sprintln(e.Type, d.ID == ask.ID, e.Task == ask.Task, d.SessionID == ask.Session, q.Question, q.Header, q.Options,
				d.Tool.CallID == ask.Call, d.Tool.MessageID == ask.Message, d.Agent, d.Address, d.Line, d.RequestID == ask.ID, d.Answers, d.By))
		}
		equal(t, "told", strings.Join(told, ""), `question.asked true true true Which one for piece 0? Which one for piece 0? [{a } {b }] true true clerk 0/0 commander 0/ false [] `+`
question.answered true true true Which one for piece 0? Which one for piece 0? [{a } {b }] true true clerk 0/0 commander 0/ true [[b]] person
`)
	})
}

// SUB-29: after the answer everything goes on in order: the question is answered, the child runs, its call has its result, it
// ends, its parent is told and goes on.
func TestOrderAfterAnAnswer(t *testing.T) {
	bubble(t, clerks(1), func(r *rig) {
		r.asksPerson()
		m := r.start(asking)
		l := r.live(m.ID)
		ask := r.waitFor(m.ID, 1)[0]
		from := len(r.events(m.ID))
		time.Sleep(time.Minute)
		r.answer(ask.ID, "this one")
		r.is(l.settled(), centurion.MissionCompleted, "")
		task := r.tasks(m.ID)[0]
		var told []string
		for _, e := range r.events(m.ID)[from:] {
			who := "mission"
			switch e.Session {
			case task.Session:
				who = "child"
			case m.Session:
				who = "parent"
			}
			if e.Type != centurion.EventMissionUpdated {
				told = append(told, who+" "+string(e.Type))
			}
		}
		has(t, strings.Join(told, "\n"), "child question.answered", "child task.updated", "child tool.completed", "child message.updated",
			"child task.completed", "task.delivered", "parent message.updated", "mission.completed")
		if told[0] != "child question.answered" || told[1] != "child task.updated" || told[2] != "child tool.completed" {
			t.Errorf("after the answer: %q", told)
		}
	})
}

// SUB-19, C-18, O5: several questions at once, of several children and of one, get their own answers, in whatever order they
// are given; all of them stand in one list with the asks for permission.
func TestQuestionsAtOnce(t *testing.T) {
	cast := clerks(3)
	clerk := cast["clerk"]
	cast["clerk"] = func(q scripted.Request) scripted.Answer {
		if strings.Contains(q.First(), "piece 2") && q.Step() == 1 {
			return do(asks("first?", "x", "y"), asks("second?"))
		}
		return clerk(q)
	}
	cast["commander"] = func(q scripted.Request) scripted.Answer {
		if q.Step() > 1 {
			return say("I wait")
		}
		return do(handTo("clerk", "", "piece 0"), handTo("clerk", "", "piece 1"), handTo("clerk", "", "piece 2"), work("", "x"))
	}
	cast["worker"] = steps(bash("build 1s"))
	bubble(t, cast, func(r *rig) {
		r.cfg.Rules = askForShell
		r.asksPerson()
		m := r.start(asking)
		l := r.live(m.ID)
		open := r.waitFor(m.ID, 5)
		for _, a := range slices.Backward(open) {
			switch {
			case a.Type == store.AskPermission:
				has(t, a.Agent+" "+a.Address+" "+a.Line, "worker 0/", " commander 0/")
				r.answer(a.ID, "once")
			default:
				r.answer(a.ID, "answer to "+a.Text)
			}
			time.Sleep(time.Minute)
		}
		r.is(l.settled(), centurion.MissionCompleted, "")
		all, err := r.store.Asks(r.ctx, m.ID, false)
		if err != nil {
			t.Fatal(err)
		}
		got := r.results(m.ID, "ask_user")
		slices.Sort(got)
		equal(t, "answers", strings.Join(got, "; "), "answer to Which one for piece 0?; answer to Which one for piece 1?; answer to first?; answer to second?")
		for _, k := range r.tasks(m.ID)[:2] {
			has(t, k.Result, "answer to Which one for "+k.Prompt)
		}
		var order []string
		for _, a := range all {
			if strings.HasSuffix(a.Text, "st?") || strings.HasSuffix(a.Text, "nd?") {
				order = append(order, a.Text)
			}
		}
		equal(t, "questions of one answer, in the order in which they were asked", strings.Join(order, " "), "first? second?")
	})
}

// SUB-26, OPAL-41: while a child waits for the person it holds no slot, and everybody else is as quick as ever: its parent
// answers a message, another task runs on the only slot, and a cancel ends it at once.
func TestEverybodyElseGoesOn(t *testing.T) {
	cast := clerks(1)
	cast["commander"] = func(q scripted.Request) scripted.Answer {
		switch {
		case q.Step() == 1:
			return do(handTo("clerk", "", "piece 0"), work("", "x"))
		case strings.Contains(q.Last(), "how is it"):
			return say("it is well")
		}
		return say("I wait")
	}
	cast["worker"] = steps(after(time.Minute, say("made")))
	bubble(t, cast, func(r *rig) {
		r.asksPerson()
		m := r.start(centurion.MissionOptions{Ask: "ask", MaxWorkers: 1})
		l := r.live(m.ID)
		ask := r.waitFor(m.ID, 1)[0]
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		equal(t, "the other task", r.tasks(m.ID)[1].Status, centurion.TaskCompleted)

		quick := func(what string, f func() error) {
			began := time.Now()
			if err := f(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			synctest.Wait()
			if d := time.Since(began); d > 50*time.Millisecond {
				t.Errorf("%s took %s", what, d)
			}
		}
		quick("send", func() error {
			_, err := r.host.Mail.Send(r.ctx, mail.Post{To: m.Session, Text: "how is it?"})
			return err
		})
		time.Sleep(time.Second)
		synctest.Wait()
		requests := r.requests("commander")
		has(t, requests[len(requests)-1].Last(), "how is it?")
		quick("cancel", func() error { return r.host.Control.Cancel(r.ctx, ask.Task, "not needed") })
		equal(t, "asks left", len(r.open(m.ID)), 0)
		r.is(l.settled(), centurion.MissionCompleted, "")
		equal(t, "task", r.tasks(m.ID)[0].Status, centurion.TaskCancelled)
		equal(t, "result of the call", r.results(m.ID, "ask_user")[0], "Cancelled")
		if err := r.host.Answer(r.ctx, ask.ID, "too late", sandbox.Peer{}); centurion.KindOf(err) != centurion.KindNotFound || !strings.Contains(err.Error(), "answered already") {
			t.Errorf("an answer to a question that was withdrawn: %v", err)
		}
	})
}

// The agent that owns the mission asks, too; its mission stops and goes on with the question open, and a cancelled one leaves
// none behind.
func TestQuestionOfTheRoot(t *testing.T) {
	cast := map[string]script{"lead": steps(do(asks("Which?", "a", "b")), say("done"))}
	opts := centurion.MissionOptions{Ask: "ask", Agent: "lead"}
	t.Run("answered after a pause", func(t *testing.T) {
		bubble(t, cast, func(r *rig) {
			r.asksPerson()
			m := r.start(opts)
			l := r.live(m.ID)
			ask := r.waitFor(m.ID, 1)[0]
			equal(t, "from", ask.Agent+" "+ask.Address+" "+ask.Line, "lead 0/ ")
			if err := r.host.Control.Pause(r.ctx, m.ID, "lunch"); err != nil {
				t.Fatal(err)
			}
			r.is(l.settled(), centurion.MissionPaused, "lunch")
			r.answer(ask.ID, "b")
			r.is(r.run(m.ID), centurion.MissionCompleted, "")
			equal(t, "result", r.results(m.ID, "ask_user")[0], "b")
		})
	})
	t.Run("cancelled", func(t *testing.T) {
		bubble(t, cast, func(r *rig) {
			r.asksPerson()
			m := r.start(opts)
			l := r.live(m.ID)
			r.waitFor(m.ID, 1)
			if err := r.host.Control.Cancel(r.ctx, m.ID, "no"); err != nil {
				t.Fatal(err)
			}
			r.is(l.settled(), centurion.MissionCancelled, "no")
		})
	})
}

// What a person types is the number of a choice, its text, or their own words; nothing is no answer, and nobody answers twice.
func TestAnswersOfAPerson(t *testing.T) {
	bubble(t, clerks(1), func(r *rig) {
		r.asksPerson()
		m := r.start(asking)
		l := r.live(m.ID)
		ask := r.waitFor(m.ID, 1)[0]
		if err := r.host.Answer(r.ctx, ask.ID, "  ", sandbox.Peer{}); centurion.KindOf(err) != centurion.KindUsage {
			t.Errorf("an empty answer: %v", err)
		}
		if err := r.host.Answer(r.ctx, "que_none", "x", sandbox.Peer{}); centurion.KindOf(err) != centurion.KindNotFound {
			t.Errorf("an unknown ask: %v", err)
		}
		var g guard.Group
		failed := make([]error, 8)
		for i := range failed {
			g.Go("answer", func() error { failed[i] = r.host.Answer(r.ctx, ask.ID, "mine", sandbox.Peer{}); return nil })
		}
		_ = g.Wait()
		good := 0
		for _, err := range failed {
			if err == nil {
				good++
			} else if centurion.KindOf(err) != centurion.KindNotFound {
				t.Error(err)
			}
		}
		equal(t, "answers that counted", good, 1)
		r.is(l.settled(), centurion.MissionCompleted, "")
	})
}

// O5: an ask from two levels down says so, and stands in the same list.
func TestAskFromDepthTwo(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(handTo("planner", "", "plan it")), say("I wait")),
		"planner": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "look") {
				return steps(do(call("update_todo", args{"level": 2})), say("looked"))(q)
			}
			return steps(do(handTo("planner", "", "look")), say("planned"))(q)
		},
	}, func(r *rig) {
		r.cfg.Rules = func(string) []permission.Level {
			return append(rules(permission.Allow), permission.Level{Name: "asks", Rules: []permission.Rule{{Permission: "todowrite", Pattern: "*", Action: permission.Ask}}})
		}
		r.restart()
		m := r.start(asking)
		l := r.live(m.ID)
		ask := r.waitFor(m.ID, 1)[0]
		equal(t, "from", ask.Agent+" "+ask.Address+" below "+ask.Line, "planner 0/0/0 below commander 0/ › planner 0/0")
		r.answer(ask.ID, "once")
		r.is(l.settled(), centurion.MissionCompleted, "")
	})
}
