package orchestrator

import (
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/provider/scripted"
)

// ownCast is the four and what defs say.
func ownCast(t *testing.T, defs ...agents.Definition) *agents.Cast {
	t.Helper()
	c, notes, err := agents.Default().With(defs...)
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	return c
}

func testerAgent() agents.Definition {
	return agents.Definition{Name: "tester", Mode: "subagent", Description: "runs the tests", Prompt: "You are the tester. Test.",
		Tools: map[string]bool{"edit": false}, Temperature: new(0.25), Steps: 3, Source: ".opencode/agents/tester.md"}
}

// ORCH-57: an agent of the project's own is told to who may delegate to it, works with its own prompt, tools, temperature
// and limit, and hands nothing on. Old names still mean who has their work now.
func TestOwnAgents(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(handTo("Tester", "", "test it"), handTo("tester", "", "go on for ever"), handTo("architect", "", "plan it"),
			handTo("librarian", "", "read it"), handTo("testr", "", "x")), say("I wait")),
		"tester": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "for ever") {
				return do(call("ls", args{"path": "."}))
			}
			return say("tested")
		},
		"worker": steps(do(handTo("tester", "", "x")), say("read")),
	}, func(r *rig) {
		r.cfg.Cast = ownCast(t, testerAgent(), agents.Definition{Name: agents.Worker, Steps: 5, Temperature: new(0.5), Source: "w.md"})
		r.restart()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")

		var who []string
		for _, k := range r.tasks(m.ID) {
			who = append(who, k.Agent+" "+string(k.Status))
			if strings.Contains(k.Prompt, "for ever") {
				has(t, k.Error.Message, "3 requests in one turn")
			}
		}
		equal(t, "tasks", strings.Join(who, ", "), "tester completed, tester failed, planner completed, worker completed")
		said := r.results(m.ID, "delegate_task")
		has(t, strings.Join(said, "\n"), `there is no agent "testr"; the agents are commander, planner, worker, reviewer, tester`, `did you mean "tester"?`)

		for _, q := range r.requests("tester") {
			equal(t, "tools", strings.Join(q.Tools(), " "), "read ls glob grep bash update_context webfetch websearch codesearch run_background check_background")
			equal(t, "temperature", string(q.Field("temperature")), "0.25")
			has(t, q.System(), "You are the tester. Test.\n\nYou were handed one task", "Surroundings")
		}
		equal(t, "requests", len(r.requests("tester")), 1+3)
		equal(t, "temperature of the worker", string(r.requests("worker")[0].Field("temperature")), "0.5")
		equal(t, "temperature of the planner", string(r.requests("planner")[0].Field("temperature")), "")
		const roster = "tester: runs the tests"
		for agent, told := range map[string]bool{"commander": true, "planner": false} {
			for _, q := range r.requests(agent) {
				if got := strings.Contains(string(q.Field("tools")), roster); got != told {
					t.Errorf("the %s is told of the tester: %t", agent, got)
				}
			}
		}
	})
}

// A mission may be owned by an agent of the person's own; as a task the same agent does not hold what that takes.
func TestOwnAgentOwnsTheMission(t *testing.T) {
	bubble(t, map[string]script{
		"lead":      steps(do(handTo("worker", "", "x"), handTo("lead", "", "x")), say("I wait")),
		"commander": steps(do(handTo("lead", "", "x")), say("I wait")),
	}, func(r *rig) {
		r.cfg.Cast = ownCast(t, agents.Definition{Name: "lead", Prompt: "You are the lead.", Source: "lead.md"})
		r.restart()
		m := r.mission(centurion.MissionOptions{Agent: "lead"})
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "tasks", len(r.tasks(m.ID)), 1)
		has(t, r.results(m.ID, "delegate_task")[1], "the lead may not delegate to the lead")
		has(t, strings.Join(r.requests("lead")[0].Tools(), " "), "delegate_task", "mission_complete")
		before := len(r.requests("lead"))
		r.runs = 0 // of another mission

		m = r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "tools of the task", strings.Join(r.requests("lead")[before].Tools(), " "), "read ls glob grep write edit bash update_context webfetch websearch codesearch run_background check_background")
	})
}

// A session wakes as its own agent or not at all: without the file that defined it, its task fails and says which file is
// missing, and an old name is not taken for it. With the file it goes on where it was.
func TestSessionWakesAsItsOwnAgent(t *testing.T) {
	for name, def := range map[string]agents.Definition{
		"tester":    testerAgent(),
		"librarian": {Name: "librarian", Mode: "subagent", Prompt: "You are the librarian.", Source: ".opencode/agents/librarian.md"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(handTo(name, "", "x")), say("I wait")),
				name:        func(scripted.Request) scripted.Answer { return after(90*time.Second, say("done")) },
			}, func(r *rig) {
				own := ownCast(t, def)
				r.cfg.Cast = own
				r.restart()
				m := r.mission(centurion.MissionOptions{MaxDuration: 60_000})
				r.is(m, centurion.MissionPaused, "")

				r.cfg.Cast = nil
				r.restart()
				if err := r.host.Control.Raise(r.ctx, m.ID, centurion.MissionOptions{MaxDuration: 36_000_000}); err != nil {
					t.Fatal(err)
				}
				gone := r.run(m.ID)
				r.is(gone, centurion.MissionCompleted, "")
				k := r.tasks(m.ID)[0]
				equal(t, "task", k.Status, centurion.TaskFailed)
				has(t, k.Error.Message, "it belongs to the agent", name, def.Source, "there no more")
				equal(t, "asked as another agent", len(r.requests("worker")), 0)
				equal(t, "asked", len(r.requests(name)), 1)
			})
		})
	}
}

// A mission whose own agent is gone stops and says which file is missing; with the file it goes on.
func TestMissionWakesAsItsOwnAgent(t *testing.T) {
	bubble(t, map[string]script{
		"lead": func(scripted.Request) scripted.Answer { return after(90*time.Second, say("done")) },
	}, func(r *rig) {
		own := ownCast(t, agents.Definition{Name: "lead", Prompt: "You are the lead.", Source: "lead.md"})
		r.cfg.Cast = own
		r.restart()
		m := r.mission(centurion.MissionOptions{Agent: "lead", MaxDuration: 60_000})
		r.is(m, centurion.MissionPaused, "")
		if err := r.host.Control.Raise(r.ctx, m.ID, centurion.MissionOptions{MaxDuration: 36_000_000}); err != nil {
			t.Fatal(err)
		}
		r.cfg.Cast = nil
		r.restart()
		gone, err := r.host.Run(r.ctx, m.ID)
		if err != nil {
			t.Error(err)
		}
		r.runs++
		r.is(gone, centurion.MissionFailed, `it belongs to the agent "lead" of lead.md, which is there no more (put lead.md back, then `+"`centurion resume`)")
		r.cfg.Cast = own
		r.restart()
		r.is(r.run(m.ID), centurion.MissionCompleted, "")
		for _, q := range r.requests("lead") {
			has(t, q.System(), "You are the lead.")
		}
		equal(t, "asked as another agent", len(r.requests("commander")), 0)
	})
}
