package orchestrator

import (
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/provider/scripted"
)

// ORCH-73: a planner that tells its plan and has not written it is taken at its word: the list is in todo.md when the
// Commander is told, with ids, and what the host did is told. A list that is there stays, and so do other agents' words.
func TestPlanIsTakenFromAnswer(t *testing.T) {
	const answer = "I looked around.\n\n```markdown\n# Plan\n- [ ] Make it @worker\n  - verify: `exists made`\n- [ ] T2 Look @reviewer\n```\n\nTwo items."
	for name, tt := range map[string]struct {
		agent string
		first []scripted.Call // of the commander, before it delegates
		own   string          // what the planner writes itself
		says  string
		taken bool
	}{
		"told":             {agent: "planner", says: answer, taken: true},
		"nothing to take":  {agent: "planner", says: "There is nothing to plan. I read:\n- one\n- two"},
		"only what it did": {agent: "planner", says: "- [x] read the code"},
		"another agent":    {agent: "worker", says: answer},
		"there is a plan":  {agent: "planner", first: []scripted.Call{plans("- [-] T9 Other")}, says: answer},
		"written itself":   {agent: "planner", own: "- [-] T8 Own", says: answer},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(append(tt.first, handTo(tt.agent, "", "look"))...), say("I wait"),
					do(call("update_todo", args{"items": []args{{"id": "T2", "status": "cancelled"}}})),
					do(call("write", args{"filePath": "made", "content": "x"}))),
				tt.agent: func(r scripted.Request) scripted.Answer {
					if tt.own != "" && r.Step() == 1 {
						return do(plans(tt.own))
					}
					return say(tt.says)
				},
			}, func(r *rig) {
				r.cfg.GiveUp = 1 // a plan that stays open ends the mission soon
				r.restart()
				m := r.mission(centurion.MissionOptions{})
				task := r.tasks(m.ID)[0]
				has(t, task.Result, tt.says)
				var notes []string
				for _, e := range r.events(m.ID, centurion.EventMissionUpdated) {
					if d, err := event.Decode[event.MissionData](e); err == nil && d.Note != "" {
						notes = append(notes, d.Note)
					}
				}
				if !tt.taken {
					equal(t, "result", task.Result, tt.says)
					equal(t, "notes", len(notes), 0)
					if plan, _, err := r.ws.TodoAt(todoMD).Load(); strings.Contains(name, "nothing") && err == nil && plan != nil {
						t.Errorf("a plan was written: %s", plan.Bytes())
					}
					return
				}
				has(t, r.read(todoMD), "# Plan\n- [", "] T3 Make it @worker\n  - verify: `exists made`\n", "T2 Look @reviewer")
				has(t, task.Result, "the host has taken it over", "2 items: 2 open", "[ ] T3 Make it @worker", "[ ] T2 Look")
				equal(t, "notes", strings.Join(notes, ","), "2 items taken from the planner's answer into the todo list")
				told := r.events(m.ID, centurion.EventTodoUpdated, centurion.EventTaskCompleted)
				equal(t, "told before the task's end", told[0].Type, centurion.EventTodoUpdated)
				has(t, r.requests("commander")[1].Last(), "the host has taken it over")
				equal(t, "level", m.LevelFrom, centurion.LevelInferred)
			})
		})
	}
}
