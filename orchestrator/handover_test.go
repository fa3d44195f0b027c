package orchestrator

import (
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/state"
	"centurion/provider/scripted"
	"centurion/store"
)

// An item is handed over what came before it, also by way of others, the nearest first and within the room of the direct ones. Who delegates is
// told what the task waits for.
func TestHandedOverByWayOfOthers(t *testing.T) {
	long := strings.Repeat("two ", 200) // 800 of 1500 bytes
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two", "  - after: T1", "- [ ] T3 Three", "  - after: T2")), do(work("T1", "do one"), work("T2", "do two"), work("T3", "do three")), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "do two") {
				return say(long)
			}
			return say("one " + strings.Repeat("1", 1200))
		},
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		said := r.results(m.ID, "delegate_task")
		has(t, said[0], "is queued.")
		has(t, said[1], "is waiting for T1.")
		has(t, said[2], "is waiting for T2.")
		last := r.requests("worker")[2].First()
		two, one := strings.Index(last, "- T2 do T2: two"), strings.Index(last, "- T1 do T1: one")
		equal(t, "both, the nearest first: "+last, two > 0 && one > two, true)
		equal(t, "of the first", strings.Count(last, "1111111111")*10 < 800, true)
	})
}

// The event of a mission's end names its branch, and whether work of it is on the user's.
func TestMissionEndNamesBranch(t *testing.T) {
	r := gitRig(t, map[string]string{"go.txt": "go\n"}, map[string]script{"commander": steps(do(writes("a.txt", "a\n")), say("done"), say("done"))})
	m := r.mission(centurion.MissionOptions{})
	end, err := event.Decode[event.MissionEnd](r.events(m.ID, centurion.EventMissionCompleted)[0])
	if err != nil || end.Branch == "" || end.Branch != m.Branch || end.Merged {
		t.Errorf("%+v, %v; the branch is %s", end, err, m.Branch)
	}
	m.Merged = &centurion.Merged{}
	err = r.store.Update(r.ctx, func(tx *store.Tx) error {
		data, err := state.MissionData(tx, m)
		equal(t, "merged", data.(event.MissionEnd).Merged, true)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The status says of an item that is marked as running what it is and what to do, where no task has ever worked on it.
func TestStatusOfRunningWithoutTask(t *testing.T) {
	const word = "Marked as running, but no task works on it: T2. Delegate it, or do it and set it to done with update_todo."
	bubble(t, map[string]script{"commander": steps(do(plans("- [ ] T1 One", "- [~] T2 Two")), say("I wait"), do(work("T2", "do it")), say("I wait")),
		"worker": steps(say("done"))}, func(r *rig) {
		r.mission(centurion.MissionOptions{MaxRounds: 5})
		asked := r.requests("commander")
		has(t, asked[1].Last(), word)
		if last := asked[3].Last(); strings.Contains(last, word) {
			t.Errorf("told of an item that has a task:\n%s", last)
		}
	})
}
