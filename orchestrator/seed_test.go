package orchestrator

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/guard"
	"centurion/orchestrator/brief"
	"centurion/provider/scripted"
	"centurion/store"
)

// ORCH-56, ORCH-57, ORCH-118: call_agent is the Commander's name for a delegation that is waited for: served by
// delegate_task, kept under that name, and refused to every other role. It stands in no schema.
func TestCallAgent(t *testing.T) {
	invents := func(r scripted.Request) scripted.Answer {
		if r.Step() == 1 {
			return do(call("call_agent", args{"agent": "worker", "prompt": "do my work"}))
		}
		return after(time.Minute, say("seen by the "+r.Agent()))
	}
	bubble(t, map[string]script{
		"commander": steps(do(call("call_agent", args{"agent": "worker", "prompt": "Look at it.\nThen say."})),
			do(call("call_agent", args{"agent": "planner", "prompt": "Look."}), call("call_agent", args{"agent": "reviewer", "prompt": "Look."}))),
		"planner": invents, "worker": invents, "reviewer": invents,
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		tasks := r.tasks(m.ID)
		equal(t, "tasks", len(tasks), 3)
		equal(t, "title", tasks[0].Title, "Look at it.")
		for i, said := range r.results(m.ID, "delegate_task") {
			took := map[bool]string{true: "it does not count (", false: " after "}[tasks[i].Agent == "reviewer"] // no verdict
			has(t, said, "Task "+tasks[i].Name()+" ("+tasks[i].Agent+": ", took, "<result>\nseen by the "+tasks[i].Agent)
		}
		asked := r.requests("commander")
		equal(t, "requests of the commander", len(asked), 3) // nobody had to wake it
		refused := r.results(m.ID, "call_agent")
		equal(t, "refused", len(refused), 3)
		for _, said := range refused {
			equal(t, "refused with", said, "Tool not found: call_agent")
		}
		for _, q := range r.model.Requests() {
			if slices.Contains(q.Tools(), "call_agent") {
				t.Errorf("the %s is offered call_agent", q.Agent())
			}
		}
	})
}

// ORCH-6, ORCH-10, ORCH-13: what is delegated in one answer works at the same time, each in a session of its own with its
// own agent's prompt and tools and nothing of another's task.
func TestAgentsSideBySide(t *testing.T) {
	who := map[string]string{"w1": "worker", "w2": "worker", "w3": "worker", "rev": "reviewer", "plan": "planner"}
	var calls []scripted.Call
	for prompt, agent := range who {
		calls = append(calls, handTo(agent, "", "prompt "+prompt))
	}
	slow := func(r scripted.Request) scripted.Answer { return after(time.Minute, say("seen")) }
	bubble(t, map[string]script{"commander": steps(do(calls...), say("I wait")), "worker": slow, "reviewer": steps(do(look), after(time.Minute, say("PASS: seen"))), "planner": slow}, func(r *rig) {
		began := time.Now()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "took", time.Since(began).Round(time.Second), time.Minute)
		sessions := map[string]bool{}
		for _, task := range r.tasks(m.ID) {
			sessions[task.Session] = true
			if wait := task.Started.Sub(task.Created.Time); wait > 0 {
				t.Errorf("%s began %s after it was delegated", task.Prompt, wait)
			}
		}
		equal(t, "sessions", len(sessions), len(who))
		for prompt, agent := range who {
			persona, _ := agents.Default().Get(agent)
			i := slices.IndexFunc(r.model.Requests(), func(q scripted.Request) bool {
				return strings.Contains(q.First(), "prompt "+prompt) && q.Agent() != "commander"
			})
			if i < 0 {
				t.Fatalf("%s was never asked", prompt)
			}
			q := r.model.Requests()[i]
			equal(t, prompt, q.Agent(), agent)
			has(t, q.System(), persona.Prompt)
			equal(t, prompt, strings.Join(q.Tools(), " "), strings.Join(r.host.cfg().briefs.Held(persona, centurion.Session{}), " "))
			for other := range who {
				if other != prompt && strings.Contains(texts(q), "prompt "+other) {
					t.Errorf("%s is told of %s", prompt, other)
				}
			}
			for _, x := range agents.Default().All() {
				if x.Name != agent && strings.Contains(q.System(), x.Prompt) {
					t.Errorf("%s has the prompt of the %s", prompt, x.Name)
				}
			}
		}
	})
}

// ORCH-115, C-24: that the mission is not finished is said once, at the end of what the Commander reads, while an item is
// open; no tool's output holds it, nothing of it is stored, and nobody else is told.
func TestGoOnIsSaidOnce(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two")), do(call("ls", args{}), call("ls", args{}), call("ls", args{})), do(work("T1", "x"), work("T2", "x"), onward), say("I wait")),
		"worker":    steps(do(call("ls", args{})), say("made")),
		"planner":   steps(do(call("ls", args{})), say("seen")),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		for i, q := range r.requests("commander") {
			want := i > 0 && i < 4 // once there is a plan, until all is done
			equal(t, "times it is said", strings.Count(texts(q), brief.NotFinished), map[bool]int{true: 1}[want])
			switch {
			case i == 3: // both are delegated, whether their tasks have begun or not
				has(t, q.Last(), "<status>", " 0 done, 0 cancelled, 0 blocked.\n"+brief.AllTaken, "</status>")
				if !regexp.MustCompile(`Todo: 0 open, (2 running|1 running, 1 waiting|0 running, 2 waiting), `).MatchString(q.Last()) {
					t.Errorf("both are handed out: %s", q.Last())
				}
			case want:
				has(t, q.Last(), "<status>", "Todo: 2 open, 0 running, 0 done, 0 cancelled, 0 blocked. Can be started: T1, T2.\n"+brief.GoOn, "</status>")
			}
			for _, said := range q.Results() {
				if strings.Contains(said, brief.NotFinished) {
					t.Errorf("request %d has it in a tool's output: %s", i, said)
				}
			}
		}
		for _, q := range r.requests("worker") {
			equal(t, "times a worker is told", strings.Count(texts(q), brief.NotFinished), 0)
		}
		sessions, _ := r.store.Sessions(r.ctx, m.ID)
		for _, s := range sessions {
			messages, _ := r.store.Messages(r.ctx, s.ID)
			for _, msg := range messages {
				for _, p := range msg.Parts {
					out := ""
					if p.State != nil {
						out, _ = p.State.Result()
					}
					if strings.Contains(p.Text+out, brief.NotFinished) {
						t.Errorf("stored with %s", s.Agent)
					}
				}
			}
		}
	})
}

// ORCH-120, ORCH-122: a task's result is the final text and nothing said before it. Without one it is not completed: an
// empty answer is asked for again, and in the end the task fails with the reason.
func TestResultIsTheFinalText(t *testing.T) {
	for name, test := range map[string]struct {
		worker script
		result string
		kind   centurion.Kind
		asked  int
		status centurion.TaskStatus // "" is failed, where there is a kind
	}{
		"the last text":        {steps(scripted.Answer{Reasoning: "hm", Say: "first I look", Calls: []scripted.Call{call("ls", args{})}}, scripted.Answer{Reasoning: "so", Say: "made it"}), "made it", "", 2, ""},
		"blanks at first":      {func(r scripted.Request) scripted.Answer { return first(2, say(" \n\t"))(r.Turn) }, "made", "", 3, ""},
		"blanks for ever":      {func(scripted.Request) scripted.Answer { return say("\n") }, "", centurion.KindNoAnswer, 4, ""},
		"nothing for ever":     {func(scripted.Request) scripted.Answer { return scripted.Answer{} }, "", centurion.KindNoAnswer, 4, ""},
		"only thoughts":        {func(scripted.Request) scripted.Answer { return scripted.Answer{Reasoning: "hm"} }, "", centurion.KindNoAnswer, 4, ""},
		"held back":            {func(scripted.Request) scripted.Answer { return scripted.Answer{Say: "I", Finish: "content_filter"} }, "", centurion.KindRefusal, 1, ""},
		"cut before it begins": {func(scripted.Request) scripted.Answer { return scripted.Answer{Finish: "length"} }, "", centurion.KindTimeout, 4, centurion.TaskBlocked},
		"cut again and again":  {func(scripted.Request) scripted.Answer { return scripted.Answer{Say: "I have", Finish: "length"} }, "I have", centurion.KindTimeout, 4, centurion.TaskBlocked},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{"commander": steps(do(work("", "x")), say("I wait")), "worker": test.worker}, func(r *rig) {
				m := r.mission(centurion.MissionOptions{})
				r.is(m, centurion.MissionCompleted, "")
				task := r.tasks(m.ID)[0]
				equal(t, "result", strings.TrimSpace(task.Result), test.result)
				equal(t, "requests", len(r.requests("worker")), test.asked)
				if test.kind == "" {
					equal(t, "status", task.Status, centurion.TaskCompleted)
					return
				}
				equal(t, "status", task.Status, cmp.Or(test.status, centurion.TaskFailed))
				if task.Error == nil || task.Error.Kind != test.kind {
					t.Errorf("error %+v", task.Error)
				}
				has(t, r.requests("commander")[1].Last(), "Why: ")
			})
		})
	}
}

// ORCH-15, C-2, OPAL-90, S9: a worker that calls a delegating tool which it was never offered starts nothing, and that it tried is
// recorded. At the call itself the depth holds as well, whatever a cast says: work is handed on twice at most.
func TestWorkersSpawnNothing(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker":    steps(do(work("", "do my work"), call("call_agent", args{"agent": "worker", "prompt": "x"}), call("sub_agent", args{"prompt": "x"})), say("done")),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "tasks", len(r.tasks(m.ID)), 1)
		equal(t, "results", strings.Join(r.requests("worker")[1].Results(), ", "), "Tool not found: delegate_task, Tool not found: call_agent, Tool not found: sub_agent")
		session, refused := r.tasks(m.ID)[0].Session, 0
		for _, e := range r.events(m.ID, centurion.EventToolCompleted) {
			if e.Session == session && strings.Contains(string(e.Data), "Tool not found") {
				refused++
			}
		}
		equal(t, "refusals recorded", refused, 3)
	})
	for address, allowed := range map[string]bool{"0/": true, "0/3": true, "0/3/1": false, "0/12/0": false, "0/1/1/3": false} {
		err := brief.DepthAllows(address)
		if (err == nil) != allowed || err != nil && (centurion.KindOf(err) != centurion.KindPermission || centurion.HintOf(err) == "") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// ORCH-2, ORCH-101, ORCH-102: what begins a mission, in order: it is recorded, its session is there with the person's words,
// and the Commander, and nobody before it, is asked.
func TestFirstFacts(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(plans("- [ ] T1 One")), do(work("T1", "x")), say("I wait"))}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		equal(t, "asked before it runs", len(r.model.Requests()), 0)
		m = r.run(m.ID)
		var got []string
		for _, e := range r.events(m.ID) {
			got = append(got, string(e.Type))
		}
		has(t, strings.Join(got, " "), "mission.started session.created message.created ", "tool.started ", "todo.updated ", "task.queued ", "task.started ",
			"session.created ", "task.completed ", "task.delivered ", "mission.completed")
		equal(t, "first", got[0], "mission.started")
		q := r.model.Requests()[0]
		equal(t, "who is asked first", q.Agent(), "commander")
		equal(t, "with", q.First(), "build it")
	})
}

// ORCH-31, ORCH-112, ORCH-116, ORCH-123: whatever a launch fails at, and however a task ends, while its mission lives nothing of
// it is held: no slot, no place in the line, no files, no conversation; its row has an end and its parent is told once.
func TestNothingIsHeldAfterTheEnd(t *testing.T) {
	key := scripted.Answer{Error: &scripted.Error{Status: 401, Message: "bad key"}}
	for name, test := range map[string]struct {
		breaks func(r *rig)
		during func(r *rig, m centurion.Mission) // after it was launched
		worker script
		status centurion.TaskStatus
	}{
		"it waits for a slot": {during: func(r *rig, m centurion.Mission) { r.cancelFirst(m) },
			breaks: func(r *rig) { r.cfg.Workers = 1; r.cfg.PerAgent = 1 }, status: centurion.TaskCancelled},
		"no session can be made": {breaks: func(r *rig) {
			r.cfg.Cast = ownCast(r.t.(*testing.T), agents.Definition{Name: agents.Worker, Model: "no/model"})
			have := r.host.cfg().Model
			r.cfg.Model = func(s string) (Model, error) {
				if s == "no/model" {
					return Model{}, &centurion.Error{Kind: centurion.KindConfig, Msg: "no such model"}
				}
				return have(s)
			}
		}, status: centurion.TaskFailed},
		"making it crashes": {breaks: func(r *rig) {
			r.cfg.Cast = ownCast(r.t.(*testing.T), agents.Definition{Name: agents.Worker, Model: "no/model"})
			have := r.host.cfg().Model
			r.cfg.Model = func(s string) (Model, error) {
				if s == "no/model" {
					panic("in the middle of a launch")
				}
				return have(s)
			}
		}, status: centurion.TaskFailed},
		"the first prompt fails": {worker: func(scripted.Request) scripted.Answer { return key }, status: centurion.TaskFailed},
		"its session is deleted": {worker: minutes(3, "made"), during: func(r *rig, m centurion.Mission) { r.cancelFirst(m) }, status: centurion.TaskCancelled},
		"it is done":             {worker: minutes(1, "made"), status: centurion.TaskCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": func(req scripted.Request) scripted.Answer {
					if req.Step() == 1 {
						return do(plans("- [ ] T1 One", "  - files: a/**", "- [ ] T2 Hold @reviewer"))
					}
					if req.Step() == 2 {
						return do(handTo("reviewer", "T2", "hold"))
					}
					if req.Step() == 3 { // in an answer of its own: two agents' lines meet at the common slot in any order
						return after(time.Second, do(work("T1", "x")))
					}
					return after(time.Hour, say("I wait"))
				},
				"reviewer": minutes(20, "held"),
				"worker":   test.worker,
			}, func(r *rig) {
				if test.breaks != nil {
					test.breaks(r)
					r.restart()
				}
				var g guard.Group
				m := r.start(centurion.MissionOptions{})
				done := r.inBackground(&g, m.ID)
				time.Sleep(30 * time.Second)
				synctest.Wait()
				if test.during != nil {
					test.during(r, m)
				}
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				one := r.task(m.ID, "T1")
				equal(t, "status", one.Status, test.status)
				if one.Ended.IsZero() || (one.Error == nil) != (test.status == centurion.TaskCompleted) {
					t.Errorf("ended %v, error %+v", one.Ended, one.Error)
				}
				r.host.mu.Lock()
				living := r.host.missions[m.ID]
				r.host.mu.Unlock()
				equal(t, "tasks that live", len(living.st.Runs()), 1) // the reviewer
				equal(t, "conversations", len(living.sessions.All()), 2)
				if files, held := living.claims.Others("")["T1"]; held {
					t.Errorf("files are held: %v", files)
				}
				free := r.host.cfg().Workers - 1 // the reviewer holds one
				r.hostHasRoom(free)
				r.room("the mission", living.slots, "worker", centurion.ModelRef{}, min(free, r.host.cfg().PerAgent))
				if err := r.host.Control.Cancel(r.ctx, m.ID, ""); err != nil {
					t.Error(err)
				}
				r.runs++
				r.check(<-done)
				if err := errors.Join(g.Wait()); err != nil {
					t.Error(err)
				}
				deliveries, _ := r.store.Deliveries(r.ctx, m.ID)
				equal(t, "deliveries", len(slices.DeleteFunc(deliveries, func(d store.Delivery) bool { return d.Task != one.ID })), 1)
			})
		})
	}
}

// cancelFirst cancels the task of the first item.
func (r *rig) cancelFirst(m centurion.Mission) {
	r.t.Helper()
	if err := r.host.Control.Cancel(r.ctx, r.task(m.ID, "T1").ID, "not needed"); err != nil {
		r.t.Error(err)
	}
}
