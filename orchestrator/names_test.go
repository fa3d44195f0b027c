package orchestrator

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/provider/scripted"
)

// longID is a task's id as text tells it. In a branch's name it stands for the branch, and an agent that uses it reads it back in quotes.
var longID = regexp.MustCompile(`(?:^|[^/"\w])tsk_[0-9A-Za-z]{20,}`)

// shortNames fails if an agent was told of a task by its long id.
func (r *rig) shortNames() {
	r.t.Helper()
	for _, q := range r.model.Requests() {
		for _, text := range append(q.Results(), q.Last(), q.System(), string(q.Field("tools"))) {
			if id := longID.FindString(text); id != "" {
				r.t.Errorf("the %s was told of %s in:\n%s", q.Agent(), id, text)
			}
		}
	}
}

// ORCH-10, ORCH-44, ORCH-45, ORCH-46, ORCH-47: a task has one name for agents, the one that people see: its item's, else its number. Every answer, notice and
// refusal uses it, and every tool takes it; an item that has had several tasks means its newest. Long ids are still taken.
func TestTasksGoByTheirNames(t *testing.T) {
	var at *rig
	bubble(t, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			return steps(
				do(plans("- [ ] T1 One", "- [ ] T2 Two")),
				do(work("T1", "quick"), work("", "slow"), work("", "slower"), work("T2", "slow too"), work("T2", "again"), call("list_tasks", args{})),
				do(call("bash", args{"command": "build 5s"})),
				do(call("get_task_result", args{"task_id": "T1"}), goesOn("worker", "x", "w2", nil), goesOn("worker", "x", "w9", nil), call("mission_complete", args{"summary": "x"}),
					call("get_task_result", args{"task_id": "w9"}), call("cancel_task", args{"task_id": "w2"}),
					call("update_todo", args{"items": []args{{"id": "T2", "status": "done"}}}), plans("- [x] T1 One")),
				do(goesOn("worker", "quick again", "T1", nil), handTo("reviewer", "T1", "review")),
				do(call("bash", args{"command": "build 5s"})),
				do(call("get_task_result", args{"task_id": "T1"}), call("get_task_result", args{"task_id": "w1"}), call("get_task_result", args{"task_id": at.firstID()})),
				say("I wait"))(q)
		},
		"worker": func(q scripted.Request) scripted.Answer {
			switch {
			case strings.Contains(q.Last(), "quick again"):
				return say("made anew")
			case strings.Contains(q.First(), "quick"):
				return say("made once")
			}
			return after(time.Minute, say("made slowly"))
		},
		"reviewer": steps(say("PASS: seen")),
	}, func(r *rig) {
		at = r
		m := r.mission(centurion.MissionOptions{})
		handed := r.results(m.ID, "delegate_task")
		for i, want := range []string{`T1 "do T1" (worker`, `w2 "do" (worker) is queued.`, `w3 "do" (worker)`, `T2 "do T2" (worker`, "item T2 is already being worked on",
			"task w2 has not ended", `there is no task "w9" to resume`, `w5 "go on" (worker) is queued. It continues the earlier conversation; its name is w5 from now on.`, `T1 "do T1" (reviewer`} {
			has(t, handed[i], want)
		}
		has(t, r.results(m.ID, "list_tasks")[0], `T1 "do T1" (worker): `, `w2 "do" (worker): `)
		got := r.results(m.ID, "get_task_result")
		for i, want := range []string{"made once", `there is no task "w9"`, "PASS: seen", "made once", "made once"} {
			has(t, got[i], want)
		}
		has(t, got[1], "did you mean w")
		has(t, r.results(m.ID, "cancel_task")[0], `w2 "do" (worker) is`, "cancelled")
		has(t, r.results(m.ID, "mission_complete")[0], "w2 (worker, do) is still running")
		has(t, r.results(m.ID, "update_todo")[1], "item T2 is being worked on")
		has(t, r.userText(m.Session), "Task w2 (worker: do) was cancelled", "Task T2 (worker: do T2) is completed")
		at.shortNames()
	})
}

// firstID is the id of the first task of the only mission, or "".
func (r *rig) firstID() string {
	if all := r.tasks(r.mission1()); len(all) > 0 {
		return all[0].ID
	}
	return ""
}

// schemaOf returns the schema that a request offered a tool with, or nil.
func schemaOf(t *testing.T, q scripted.Request, tool string) map[string]any {
	t.Helper()
	var offered []struct {
		Function struct {
			Name       string         `json:"name"`
			Parameters map[string]any `json:"parameters"`
		} `json:"function"`
	}
	if err := json.Unmarshal(q.Field("tools"), &offered); err != nil {
		t.Fatal(err)
	}
	for _, o := range offered {
		if o.Function.Name == tool {
			props, _ := o.Function.Parameters["properties"].(map[string]any)
			return props
		}
	}
	return nil
}

// ORCH-44, ORCH-57: delegate_task offers the agents that may be called, and no other; older and misspelt names are taken, or refused, as ever.
func TestAgentsAreOffered(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(handTo("planner", "", "look"), handTo("Builder", "", "build"), handTo("wroker", "", "x"),
			call("delegate_task", args{"agent": "worker", "description": "d", "prompt": "p", "budget": args{"rounds": 3}})), say("I wait")),
	}, func(r *rig) {
		r.cfg.Cast = ownCast(t, testerAgent())
		r.restart()
		m := r.mission(centurion.MissionOptions{})
		for agent, want := range map[string][]any{"commander": {"planner", "worker", "reviewer", "tester"}, "planner": {"planner"}} {
			props := schemaOf(t, r.requests(agent)[0], "delegate_task")
			offered, _ := props["agent"].(map[string]any)
			if got, _ := offered["enum"].([]any); !slices.Equal(got, want) {
				t.Errorf("the %s is offered %v, want %v", agent, got, want)
			}
			if props["budget"] != nil || props["prompt"] == nil {
				t.Errorf("the %s is offered %v", agent, props)
			}
		}
		has(t, r.results(m.ID, "delegate_task")[2], `there is no agent "wroker"`, `did you mean "worker"?`)
		tasks := r.tasks(m.ID)
		equal(t, "tasks", len(tasks), 3)
		equal(t, "an older name", tasks[1].Agent, agents.Worker)
		equal(t, "a budget", tasks[2].Budget.Rounds, 3)
	})
}

// ORCH-57: who may not delegate, or start a background command, is not offered what only serves those who do.
func TestToolsWithoutTheirPartner(t *testing.T) {
	for name, test := range map[string]struct {
		agent      string
		definition agents.Definition
		more       []agents.Definition
		gone       string
	}{
		"no delegating":      {"commander", agents.Definition{Name: agents.Commander, Tools: map[string]bool{"delegate_task": false}}, nil, "delegate_task get_task_result list_tasks cancel_task"},
		"nobody to call":     {"commander", agents.Definition{Name: agents.Worker, Disable: true}, []agents.Definition{{Name: agents.Planner, Disable: true}, {Name: agents.Reviewer, Disable: true}}, "delegate_task get_task_result list_tasks cancel_task"},
		"no background":      {"worker", agents.Definition{Name: agents.Worker, Tools: map[string]bool{"run_background": false}}, nil, "run_background check_background"},
		"no page is fetched": {"planner", agents.Definition{Name: agents.Planner, Tools: map[string]bool{"delegate_task": false}}, nil, "delegate_task"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{"commander": steps(do(work("", "x"), handTo("planner", "", "x")), say("I wait"))}, func(r *rig) {
				r.cfg.Cast = ownCast(t, append(test.more, test.definition)...)
				r.restart()
				r.mission(centurion.MissionOptions{})
				offered := r.requests(test.agent)[0].Tools()
				for tool := range strings.FieldsSeq(test.gone) {
					if slices.Contains(offered, tool) {
						t.Errorf("the %s is offered %s", test.agent, tool)
					}
				}
				equal(t, "the rest is there", slices.Contains(offered, "read") && slices.Contains(offered, "update_context"), true)
			})
		})
	}
}

// What stands before every request of a session stays small: the tools of each role, in bytes.
func TestToolsAreShort(t *testing.T) {
	most := map[string]int{"commander": 16500, "planner": 12600, "worker": 12800, "reviewer": 12400}
	t.Parallel()
	r := inRepo(t, map[string]string{"a.txt": "a\n"}, map[string]script{"commander": steps(do(handTo("planner", "", "x"), work("", "x"), handTo("reviewer", "", "x")), say("I wait"))})
	r.mission(centurion.MissionOptions{})
	for agent, limit := range most {
		if n := len(r.requests(agent)[0].Field("tools")); n > limit {
			t.Errorf("the tools of the %s take %d bytes, more than %d", agent, n, limit)
		}
	}
}
