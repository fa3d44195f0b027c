package orchestrator

import (
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/permission"
	"centurion/provider/scripted"
)

// permit are rules that allow everything, and over them one of a person's.
func permit(name, pattern string, a permission.Action) func(string) []permission.Level {
	return func(string) []permission.Level {
		return append(rules(permission.Allow), permission.Level{Name: "opencode.json", Rules: []permission.Rule{{Permission: name, Pattern: pattern, Action: a}}})
	}
}

func commanderDoes(c scripted.Call) map[string]script {
	return map[string]script{"commander": steps(do(c))}
}

// Contract "Configuration": permission.task decides by the agent's name whether work is handed to it, whatever the model calls
// it by; permission.todowrite decides about the plan and permission.question about asking the person.
func TestPermissionOfHostedTools(t *testing.T) {
	for name, test := range map[string]struct {
		cast    map[string]script
		options centurion.MissionOptions
		rule    func(string) []permission.Level
		tool    string
		refused bool
		tasks   int
	}{
		"task denied":            {cast: commanderDoes(work("", "x")), rule: permit("task", "worker", permission.Deny), tool: "delegate_task", refused: true},
		"task denied, old name":  {cast: commanderDoes(handTo("Builder", "", "x")), rule: permit("task", "worker", permission.Deny), tool: "delegate_task", refused: true},
		"another's task denied":  {cast: commanderDoes(work("", "x")), rule: permit("task", "reviewer", permission.Deny), tool: "delegate_task", tasks: 1},
		"every task denied":      {cast: commanderDoes(work("", "x")), rule: permit("task", "*", permission.Deny), tool: "delegate_task", refused: true},
		"task asks, nobody here": {cast: commanderDoes(work("", "x")), rule: permit("task", "*", permission.Ask), tool: "delegate_task", refused: true},
		"sub-agent denied": {cast: family(steps(do(sub("x", nil))), steps()), options: assistant(),
			rule: permit("task", "assistant", permission.Deny), tool: "sub_agent", refused: true},
		"plan denied":     {cast: commanderDoes(barePlan("- [ ] T1: x")), rule: permit("todowrite", "*", permission.Deny), tool: "update_todo", refused: true},
		"question denied": {cast: family(steps(do(call("ask_user", args{"question": "Which?"}))), steps()), options: assistant(), rule: permit("question", "*", permission.Deny), tool: "ask_user", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, test.cast, func(r *rig) {
				r.cfg.Rules = test.rule
				r.restart()
				m := r.mission(test.options)
				got := r.results(m.ID, test.tool)
				if len(got) == 0 {
					t.Fatalf("%s was not called", test.tool)
				}
				equal(t, "refused: "+got[0], strings.Contains(got[0], "not allowed: "), test.refused)
				equal(t, "tasks", len(r.tasks(m.ID)), test.tasks)
			})
		})
	}
}

// Issue "Trust" 9: a child's rules are its parent's, narrowed by its own. What only the defaults ask about, its own may allow.
func TestChildrenAreNarrowed(t *testing.T) {
	on := func(a permission.Action) permission.Level {
		return permission.Level{Name: "opencode.json", Rules: []permission.Rule{{Permission: "bash", Pattern: "rm *", Action: a}}}
	}
	all, defaults := rules(permission.Allow)[0], permission.Level{Name: permission.DefaultLevel, Rules: permission.Defaults(false)}
	for name, test := range map[string]struct {
		commander, worker []permission.Level
		refused           string
	}{
		"denied above":           {[]permission.Level{all, on(permission.Deny)}, []permission.Level{all}, "for the commander, which handed this work on"},
		"asked above":            {[]permission.Level{all, on(permission.Ask)}, []permission.Level{all}, "for the commander, which handed this work on"},
		"denied below":           {[]permission.Level{all}, []permission.Level{all, on(permission.Deny)}, "opencode.json"},
		"asked above by default": {[]permission.Level{defaults}, []permission.Level{defaults, on(permission.Allow)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(work("", "x")), say("I wait")), "worker": steps(do(call("bash", args{"command": "rm x", "description": "x"})), say("done")),
			}, func(r *rig) {
				r.cfg.Rules = func(agent string) []permission.Level {
					if agent == "worker" {
						return test.worker
					}
					return test.commander
				}
				r.restart()
				got := strings.Join(r.results(r.mission(centurion.MissionOptions{Ask: "deny"}).ID, "bash"), "; ")
				equal(t, "refused: "+got, strings.Contains(got, "not allowed: "), test.refused != "")
				has(t, got, test.refused)
			})
		})
	}
}

// A person who is asked whether work may be handed on sees to whom, and "always" holds for that agent.
func TestTaskAsksAPerson(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(work("", "one")), do(work("", "two")), say("I wait"))}, func(r *rig) {
		r.cfg.Rules = permit("task", "*", permission.Ask)
		r.restart()
		var g guard.Group
		m := r.start(centurion.MissionOptions{Ask: "ask"})
		done := r.inBackground(&g, m.ID)
		ask := r.oneAsk(m.ID)
		equal(t, "permission", ask.Permission, "task")
		equal(t, "title", ask.Title, "worker")
		equal(t, "tasks", len(r.tasks(m.ID)), 0)
		time.Sleep(time.Hour)
		r.answer(ask.ID, "always")
		r.is(<-done, centurion.MissionCompleted, "")
		g.Wait()
		equal(t, "tasks", len(r.tasks(m.ID)), 2)
		equal(t, "asked", r.count(m.ID, centurion.EventPermissionAsked), 1)
	})
}
