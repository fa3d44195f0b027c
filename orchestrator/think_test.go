package orchestrator

import (
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/plan"
	"centurion/provider/scripted"
	"centurion/workspace/todo"
)

// ORCH-8: the level that a plan implies.
func TestImpliedLevel(t *testing.T) {
	for _, tt := range []struct {
		name, plan string
		want       int
	}{
		{"no plan", "", 1},
		{"no items", "# Plan\n", 1},
		{"one item", "- [ ] T1 One\n", 2},
		{"five", strings.Repeat("- [ ] Do it\n", 5), 2},
		{"six", strings.Repeat("- [ ] Do it\n", 6), 3},
		{"two that wait for each other", "- [ ] T1 One\n- [ ] T2 Two\n  - after: T1\n", 3},
		{"a group is none of them", "- [ ] G1 Group\n" + strings.Repeat("  - [ ] Do it\n", 5), 2},
		{"a group that waits", "- [ ] T1 One\n- [ ] G1 Group\n  - after: T1\n  - [ ] T2 Two\n", 3},
		{"done counts, too", "- [x] T1 One\n- [-] T2 Two\n", 2},
	} {
		d, err := todo.Parse([]byte(tt.plan))
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.ImpliedLevel(d.Items()); got != tt.want {
			t.Errorf("%s: level %d, want %d", tt.name, got, tt.want)
		}
	}
}

// levels returns what was told of a mission's level, each change once: 2 by inferred.
func (r *rig) levels(mission string) string {
	var told []string
	last := ""
	for _, e := range r.events(mission, centurion.EventMissionStarted, centurion.EventMissionUpdated) {
		d, err := event.Decode[event.MissionData](e)
		if err != nil {
			r.t.Error(err)
		}
		now := string(rune('0'+d.Level)) + " by " + d.LevelFrom
		if d.Level > 0 && now != last {
			last = now
			told = append(told, now)
		}
	}
	return strings.Join(told, ", ")
}

// ORCH-8, ORCH-102: a level is recorded with who said it, and every change is told: the person's stands above the agents',
// and what nobody said is inferred.
func TestLevels(t *testing.T) {
	plan := func(level int, lines ...string) scripted.Answer {
		a := args{"content": "# Plan\n" + strings.Join(lines, "\n") + "\n"}
		if level > 0 {
			a["level"] = level
		}
		return do(call("update_todo", a))
	}
	open := func(n int) []string { return strings.Split(strings.Repeat("- [-] Not needed\n", n), "\n") }
	for name, tt := range map[string]struct {
		person int
		steps  []scripted.Answer
		level  int
		told   string
		said   string // by the last update_todo
	}{
		"nobody says it, no plan":        {0, nil, 1, "1 by inferred", ""},
		"nobody says it, two items":      {0, []scripted.Answer{plan(0, open(2)...)}, 2, "2 by inferred", ""},
		"nobody says it, the plan grows": {0, []scripted.Answer{plan(0, open(2)...), plan(0, open(6)...)}, 3, "2 by inferred, 3 by inferred", ""},
		"the commander says it":          {0, []scripted.Answer{plan(3, open(2)...)}, 3, "3 by commander", ""},
		"it corrects what was inferred":  {0, []scripted.Answer{plan(0, open(2)...), plan(3, open(2)...), plan(0, open(7)...)}, 3, "2 by inferred, 3 by commander", ""},
		"it says the same again":         {0, []scripted.Answer{plan(2, open(2)...), plan(2, open(3)...)}, 2, "2 by commander", ""},
		"it changes its mind":            {0, []scripted.Answer{plan(2, open(2)...), do(call("update_todo", args{"level": 1}))}, 1, "2 by commander, 1 by commander", ""},
		"only the level":                 {0, []scripted.Answer{do(call("update_todo", args{"level": 1}))}, 1, "1 by commander", "Level noted"},
		"the person says it":             {2, []scripted.Answer{plan(3, open(7)...)}, 2, "2 by person", "The level stays 2: the person has set it."},
		"the person says the same":       {3, []scripted.Answer{plan(3, open(1)...)}, 3, "3 by person", ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{"commander": steps(tt.steps...)}, func(r *rig) {
				m := r.mission(centurion.MissionOptions{Level: tt.person})
				r.is(m, centurion.MissionCompleted, "")
				equal(t, "level", m.Level, tt.level)
				equal(t, "told", r.levels(m.ID), tt.told)
				if said := r.results(m.ID, "update_todo"); tt.said != "" {
					has(t, said[len(said)-1], tt.said)
				}
				if tt.person > 0 {
					has(t, r.requests("commander")[0].First(), "The person has set level")
				}
			})
		})
	}
}

// ORCH-8, ORCH-9: at level 3 nothing is handed to workers before there is a plan, and the Commander is told what to do
// first; the planner and a reviewer may look, and workers start when the plan is there. At other levels nobody is held up.
func TestLevelThreeIsPlannedFirst(t *testing.T) {
	for name, opts := range map[string]centurion.MissionOptions{"set by the person": {Level: 3}, "as assessed": {}, "level 2": {Level: 2}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(
					do(call("update_todo", args{"level": 3}), work("", "build it"), handTo("reviewer", "", "look")),
					do(handTo("planner", "", "plan it")), say("I wait"),
					do(work("T1", "build it")), say("I wait")),
				"planner": steps(do(plans("- [ ] T1 One"))),
			}, func(r *rig) {
				m := r.mission(opts)
				r.is(m, centurion.MissionCompleted, "")
				said := r.results(m.ID, "delegate_task")
				refused := strings.Contains(said[0], "there is no todo list yet")
				equal(t, "refused without a plan", refused, name != "level 2")
				if refused {
					has(t, said[0], "this mission is of level 3", "delegate to the planner first")
					equal(t, "who set it is told", strings.Contains(said[0], "set by the person"), name == "set by the person")
				}
				for _, s := range said[1:] {
					has(t, s, "You will be told when it ends")
				}
				equal(t, "T1", r.task(m.ID, "T1").Status, centurion.TaskCompleted)
			})
		})
	}
}

// ORCH-8: a person changes the level when the mission is resumed; the Commander sees it from then on.
func TestLevelIsRaised(t *testing.T) {
	bubble(t, map[string]script{
		"commander": func(r scripted.Request) scripted.Answer {
			return steps(do(plans("- [ ] T1 One")), after(100*time.Second, do(mark("T1", "cancelled"))))(r)
		},
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{MaxDuration: 60_000})
		r.is(m, centurion.MissionPaused, "")
		equal(t, "level", m.Level, 2)
		if err := r.host.Control.Raise(r.ctx, m.ID, centurion.MissionOptions{Level: 3, MaxDuration: 36_000_000}); err != nil {
			t.Fatal(err)
		}
		m = r.run(m.ID)
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "level", m.Level, 3)
		equal(t, "by", m.LevelFrom, centurion.LevelByPerson)
		asked := r.requests("commander")
		has(t, asked[len(asked)-1].Last(), "Level: 3, set by the person.")
	})
}
