package orchestrator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/guard"
	"centurion/provider"
	"centurion/provider/scripted"
)

// window gives the model a window of so many tokens; 0 is unknown.
func (r *rig) window(tokens int) {
	client := provider.New(provider.Endpoint{Model: ref, BaseURL: scripted.URL, HTTP: r.http})
	r.cfg.Model = func(string) (Model, error) {
		return Model{Client: client, Ref: ref, Price: &centurion.Price{Input: 1, Output: 10}, Context: tokens}, nil
	}
	r.restart()
}

// reads looks at a long file in every one of n requests and then says «done».
func reads(n int) script {
	return func(q scripted.Request) scripted.Answer {
		if q.Turn > n {
			return say("done")
		}
		return do(call("read", args{"filePath": "long.txt", "limit": 5000 + q.Turn})) // never twice the same call
	}
}

func (r *rig) longFile() { r.write("long.txt", strings.Repeat("a line of a long file\n", 150)) }

// compacted returns what was told of a role's compactions.
func (r *rig) compacted(mission, agent string) []event.CompactedData {
	r.t.Helper()
	sessions, err := r.store.Sessions(r.ctx, mission)
	if err != nil {
		r.t.Fatal(err)
	}
	var all []event.CompactedData
	for _, e := range r.events(mission, centurion.EventCompacted) {
		for _, s := range sessions {
			if s.ID != e.Session || s.Agent != agent {
				continue
			}
			d, err := event.Decode[event.CompactedData](e)
			if err != nil {
				r.t.Error(err)
			}
			all = append(all, d)
		}
	}
	return all
}

// LOOP-20, OPAL-80: a mission of 60 rounds in a window of 16,000 tokens ends complete, and so does its worker of 40: both
// are shortened before the window is full. Nothing of the goal, the brief or a result is lost, a summary is asked for
// without tools, and what it costs counts.
func TestMissionInASmallWindow(t *testing.T) {
	ask := reads(60)
	bubble(t, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			if q.Turn == 1 {
				return do(plans("- [ ] T1 Read it @worker"), work("T1", "read the long file with care"))
			}
			return ask(q)
		},
		"worker": reads(40),
		"":       func(scripted.Request) scripted.Answer { return say("All was read so far.") },
	}, func(r *rig) {
		const window = 16_000
		r.window(window)
		r.longFile()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		for _, role := range []string{"commander", "worker"} {
			if d := r.compacted(m.ID, role); len(d) < 2 || d[0].Reason != event.CompactedAuto || d[0].ByHost {
				t.Errorf("%s: %+v", role, d)
			}
			for _, q := range r.requests(role) {
				if q.Bytes/4 > window {
					t.Errorf("request %d of %s has %d bytes", q.Turn, role, q.Bytes)
				}
			}
		}
		for _, q := range r.requests("worker") {
			has(t, q.First(), "read the long file with care")
		}
		told := false
		for _, q := range r.requests("commander") {
			has(t, q.First(), "build it")
			for _, msg := range q.Messages() {
				told = told || msg.Role == "user" && strings.Contains(msg.Text, "T1")
			}
		}
		if !told {
			t.Error("the commander was never told of T1")
		}
		for _, q := range r.requests("") {
			if len(q.Tools()) > 0 || q.Parent == "" {
				t.Errorf("a summary is asked for with the tools %q, by %s of %q", q.Tools(), q.Session, q.Parent)
			}
		}
		sessions, err := r.store.Sessions(r.ctx, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		var sum centurion.Tokens
		for _, s := range sessions {
			sum = sum.Plus(s.Tokens)
		}
		equal(t, "tokens of the mission", m.Usage.Tokens, sum)
		equal(t, "tokens of the task", r.task(m.ID, "T1").Usage.Tokens, sessions[1].Tokens)
		equal(t, "requests", m.Rounds, len(r.model.Requests()))
	})
}

// ORCH-83: when a provider says that a request is too long, the conversation is shortened and asked again, for every agent
// and also where the window is unknown. It takes no new attempt, and what is never short enough ends with a hint.
func TestOverflowIsShortened(t *testing.T) {
	strict := func(limit int, s script) script {
		return func(q scripted.Request) scripted.Answer {
			if q.Bytes > limit {
				return scripted.Answer{Error: &scripted.Error{Status: 400, Code: "context_length_exceeded", Message: "maximum context length"}}
			}
			return s(q)
		}
	}
	for name, test := range map[string]struct {
		commander, worker int // bytes that the provider takes
		window            int
		status            centurion.MissionStatus
	}{
		"the worker":               {1 << 30, 40_000, 0, centurion.MissionCompleted},
		"the commander":            {60_000, 1 << 30, 0, centurion.MissionCompleted},
		"with a window told":       {60_000, 40_000, 1_000_000, centurion.MissionCompleted},
		"the worker, in no way":    {1 << 30, 100, 0, centurion.MissionBlocked},
		"the commander, in no way": {100, 1 << 30, 0, centurion.MissionBlocked},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": strict(test.commander, func(q scripted.Request) scripted.Answer {
					if q.Turn == 1 {
						return do(plans("- [ ] T1 Read it @worker"), work("T1", "read the long file with care"))
					}
					return reads(30)(q)
				}),
				"worker": strict(test.worker, reads(30)),
				"":       func(scripted.Request) scripted.Answer { return say("All was read so far.") },
			}, func(r *rig) {
				r.window(test.window)
				r.longFile()
				m := r.mission(centurion.MissionOptions{})
				if test.status == centurion.MissionCompleted {
					r.is(m, test.status, "")
					for role, limit := range map[string]int{"commander": test.commander, "worker": test.worker} {
						if d := r.compacted(m.ID, role); limit < 1<<30 && (len(d) == 0 || d[0].Reason != event.CompactedOverflow) {
							t.Errorf("%s: %+v", role, d)
						}
					}
					equal(t, "attempts", r.task(m.ID, "T1").Attempt, 1)
					return
				}
				if m.Status == centurion.MissionCompleted && test.worker > 100 {
					t.Errorf("the mission is %s: %s", m.Status, m.Reason)
				}
				if n := len(r.model.Requests()); n > 60 {
					t.Errorf("%d requests for what can never be answered", n)
				}
				if test.worker == 100 {
					if e := r.task(m.ID, "T1").Error; e == nil || e.Kind != centurion.KindOverflow {
						t.Errorf("the task ended with %+v", e)
					}
				}
			})
		})
	}
}

// A person asks for it: of a session at work, of one that will go on later; not of what is over.
func TestCompactOnDemand(t *testing.T) {
	ask := reads(12)
	bubble(t, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer { return after(time.Minute, ask(q)) },
		"":          func(scripted.Request) scripted.Answer { return say("All was read so far.") },
	}, func(r *rig) {
		r.longFile()
		m := r.start(centurion.MissionOptions{})
		if err := r.host.Mail.Compact(r.ctx, m.Session); err != nil { // it is done when there is something to shorten
			t.Fatal(err)
		}
		var g guard.Group
		done := r.inBackground(&g, m.ID)
		time.Sleep(6*time.Minute + 30*time.Second)
		if err := r.host.Mail.Compact(r.ctx, m.Session); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if d := r.compacted(m.ID, "commander"); len(d) != 2 || d[1].Reason != event.CompactedAsked || d[1].After >= d[1].Before {
			t.Errorf("at work: %+v", d)
		}
		if err := r.host.Control.Pause(r.ctx, m.ID, ""); err != nil {
			t.Fatal(err)
		}
		<-done
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		r.runs++
		if err := r.host.Mail.Compact(r.ctx, m.Session); err != nil {
			t.Fatal(err)
		}
		r.restart()
		m = r.run(m.ID)
		r.is(m, centurion.MissionCompleted, "")
		if d := r.compacted(m.ID, "commander"); len(d) != 3 {
			t.Errorf("resumed: %+v", d)
		}
		if err := r.host.Mail.Compact(r.ctx, m.Session); centurion.KindOf(err) != centurion.KindConflict || centurion.HintOf(err) == "" {
			t.Errorf("of a mission that is over: %v", err)
		}
		if err := r.host.Mail.Compact(r.ctx, "ses_none"); centurion.KindOf(err) != centurion.KindNotFound {
			t.Errorf("of a session that is not there: %v", err)
		}
	})
}

// ORCH-52: what is to be told in the next request is not taken for told because a summary was asked for in between.
func TestNewsOutlivesACompaction(t *testing.T) {
	look := call("read", args{"filePath": "long.txt"})
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			switch q.Turn {
			case 1:
				return do(look, inBack("build 3m"))
			case 2, 3:
				return after(time.Minute, do(look))
			case 4:
				return after(2*time.Minute, do(look))
			}
			return say("done")
		},
		"": func(scripted.Request) scripted.Answer { return say("All was read so far.") },
	}, func(r *rig) {
		r.longFile()
		m := r.start(centurion.MissionOptions{})
		var g guard.Group
		done := r.inBackground(&g, m.ID)
		time.Sleep(150 * time.Second)
		if err := r.host.Mail.Compact(r.ctx, r.tasks(m.ID)[0].Session); err != nil {
			t.Fatal(err)
		}
		<-done
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		equal(t, "compactions", len(r.compacted(m.ID, "worker")), 1)
		asked := r.requests("worker")
		has(t, asked[4].Last(), "<status>", "bg_1 has ended with exit code 0")
		for _, q := range r.requests("") {
			equal(t, "told in the request for a summary", strings.Contains(q.Last(), "<status>"), false)
		}
	})
}

// What a request told that was refused as too long is told again after the summary, which no model has answered with.
func TestNewsOutlivesAnOverflow(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			switch q.Turn {
			case 1, 2, 3:
				return reads(3)(q)
			case 4:
				return do(inBack("false"), call("bash", args{"command": "build 1s"}))
			case 5:
				return scripted.Answer{Error: &scripted.Error{Status: 400, Code: "context_length_exceeded", Message: "maximum context length"}}
			}
			return say("done")
		},
		"": func(scripted.Request) scripted.Answer { return say("All was read so far.") },
	}, func(r *rig) {
		r.longFile()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "summaries", len(r.requests("")), 1)
		for i, q := range r.requests("worker") {
			equal(t, fmt.Sprintf("told in request %d", i), strings.Contains(q.Last(), "bg_1 has ended with exit code 1"), i > 3)
		}
	})
}

// A summary is nothing that an agent has said: it is not taken for its result.
func TestSummaryIsNoAnswer(t *testing.T) {
	bubble(t, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			if q.Turn > 6 {
				return scripted.Answer{Error: &scripted.Error{Status: 401, Message: "the key is refused"}}
			}
			a := do(call("read", args{"filePath": "long.txt"}))
			a.Say = "I look once more."
			return after(time.Minute, a)
		},
		"": func(scripted.Request) scripted.Answer { return say("All was read so far.") },
	}, func(r *rig) {
		r.longFile()
		m := r.start(centurion.MissionOptions{})
		var g guard.Group
		done := r.inBackground(&g, m.ID)
		time.Sleep(330 * time.Second)
		if err := r.host.Mail.Compact(r.ctx, m.Session); err != nil {
			t.Fatal(err)
		}
		<-done
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		equal(t, "compactions", len(r.compacted(m.ID, "commander")), 1)
		text, err := r.unbegun(m.ID).st.LastText(r.ctx, m.Session)
		if err != nil || text != "I look once more." {
			t.Errorf("the last words are %q, %v", text, err)
		}
	})
}
