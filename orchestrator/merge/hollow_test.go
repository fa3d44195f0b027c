package merge

import (
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/race"
	"centurion/session"
)

// A check that passes without running a test sends the work back, as long as that calls no person and its agent does not say that it is stuck; on the
// same files it is told once.
func TestTestlessGoesBack(t *testing.T) {
	t.Parallel()
	g := grounded(t, "# P\n", centurion.Mission{Options: centurion.MissionOptions{TrustVerify: true}})
	for _, c := range []struct {
		name, task string
		change     func(*Work)
		back       bool
	}{
		{"the last time", "tsk_1", func(l *Work) { l.More = false }, false},
		{"first", "tsk_2", func(*Work) {}, true},
		{"again, on the same files", "tsk_2", func(*Work) {}, false},
	} {
		l := g.work(c.task, "T"+c.task[4:], g.base, map[string]string{c.task: "x\n"})
		l.Verify, l.Given = []string{"empty"}, []string{"empty"}
		c.change(l)
		tip := g.tip()
		g.land(l)
		r := g.newest()
		var want *Rejection
		if c.back {
			want = &Rejection{Text: brief.Testless(r), Short: "its check ran no test: " + r.Why, Cause: event.ReturnedHollow, Command: "empty", Tree: l.tree, Onto: tip}
		}
		if g.like(c.name, l.Back, want); (g.tip() == tip) != c.back {
			t.Errorf("%s: the branch is at %s, it was at %s", c.name, g.tip(), tip)
		}
	}
}

// Work whose item is gone from the plan is not merged; where its line cannot be read, the checks count with which it was handed out, and those of a
// reviewed item do not judge its review. A try is checked under its own name.
func TestLandTask(t *testing.T) {
	t.Parallel()
	g := judging(t, "# P\n- [~] T1 One\n  - verify: `has go.txt`\n  - proof: regression\n- [~] T5 Five\n  - verify: `lacks none`\n- [!?] T4 Four\n", centurion.Mission{Options: centurion.MissionOptions{TrustVerify: true}})
	for name, c := range map[string]struct {
		task centurion.Task
		ran  []string
		item string // of the receipt
		err  error
	}{
		"an item":        {centurion.Task{Item: "T1", Verify: []string{"has go.txt"}}, []string{"has go.txt"}, "T1", nil},
		"its review":     {centurion.Task{Item: "T1", Verify: []string{"has old.txt"}, Reviews: true}, nil, "", nil},
		"cannot be read": {centurion.Task{Item: "T4", Verify: []string{"has old.txt"}}, []string{"has old.txt"}, "T4", nil},
		"it is gone":     {centurion.Task{Item: "T9", Verify: []string{"has old.txt"}}, nil, "", plan.Removed("T9")},
		"a try":          {centurion.Task{Item: "T5", Verify: []string{"lacks none"}, Race: &centurion.Race{ID: "r", Try: 2}}, []string{"lacks none"}, "T5/2", nil},
		"gone, a review": {centurion.Task{Item: "T9", Verify: []string{"has old.txt"}, Reviews: true}, nil, "", nil},
	} {
		g.runs.runs = map[string]int{}
		c.task.ID, c.task.Status, c.task.Session, c.task.Files = "tsk_"+strings.ReplaceAll(name, " ", "_"), centurion.TaskRunning, "ses_1", []string{"x"}
		g.put(c.task)
		by := author(c.task.ID, c.task.Item, "worker", "write")
		_, err := g.landTask(t.Context(), by, &session.Outcome{Text: "Done."}, false)
		if (err == nil) != (c.err == nil) || err != nil && err.Error() != c.err.Error() {
			t.Errorf("%s: %v", name, err)
		}
		var ran []string
		for command := range g.runs.runs {
			ran = append(ran, command)
		}
		if !slices.Equal(ran, c.ran) || c.item != "" && g.newest().Item != c.item {
			t.Errorf("%s: ran %q", name, ran)
		}
	}
}

// Of the tries in a batch those of its first one's race are put on the same commit. The proven one is merged and the others stay in the line; without
// a proof all are held while another one works, and when one has won the others end.
func TestContest(t *testing.T) {
	t.Parallel()
	g := grounded(t, "# P\n", centurion.Mission{Options: centurion.MissionOptions{TrustVerify: true}})
	try := func(id, race string, n int, check string) *Work {
		l := g.work(id, "T1", g.base, map[string]string{id: strings.Repeat("x\n", n)})
		g.put(centurion.Task{ID: id, Item: "T1", Agent: "worker", Status: centurion.TaskRunning, Race: &centurion.Race{ID: race, Try: n}})
		l.Race, l.Checks, l.Verify, l.Given = race, id, []string{check}, []string{check}
		return l
	}
	small, other, big := try("tsk_1", "r", 1, "has go.txt"), try("tsk_2", "s", 2, "has go.txt"), try("tsk_3", "r", 3, "has tsk_3")
	best, ok, err := g.contest(t.Context(), []*Work{small, other, big}, g.base, true)
	if err != nil || !ok || best != big || big.lines != 3 || big.Next == "" || small.Next == "" || small.lines != 1 || small.Done || big.Done || other.Next != "" {
		t.Errorf("one is proven: %+v, %v, %v", best, ok, err)
	}
	working := try("tsk_4", "r", 4, "has go.txt")
	big.Verify, big.Given, big.Next, small.Next = small.Verify, small.Given, "", ""
	best, ok, err = g.contest(t.Context(), []*Work{small, big}, g.base, true)
	if err != nil || ok || best != nil || !small.Done || !big.Done {
		t.Errorf("none is proven: %+v, %v, %v", best, ok, err)
	}
	g.like("held", big.Back, &Rejection{Held: true, Lines: 3})
	g.like("held", small.Back, &Rejection{Held: true, Lines: 1})
	for _, l := range []*Work{small, big} {
		l.Done, l.Back = false, nil
	}
	red := try("tsk_5", "q", 1, "has none")
	if best, ok, err = g.contest(t.Context(), []*Work{red}, g.base, true); err != nil || ok || best != nil || !red.Done || red.Back == nil || red.Back.Held {
		t.Errorf("it fails: %+v, %v, %v, %+v", best, ok, err, red.Back)
	}
	won := centurion.Task{ID: "tsk_3", Item: "T1", Agent: "worker", Status: centurion.TaskMerging, Landed: []centurion.Landed{{Commit: "c"}}, Race: &centurion.Race{ID: "r", Try: 3}}
	g.put(won)
	best, ok, err = g.contest(t.Context(), []*Work{small, working}, g.base, true)
	if err != nil || ok || best != nil || !small.Done || !working.Done || small.err == nil || small.err.Error() != race.Lost(won).Error() || small.Back != nil {
		t.Errorf("one has won: %+v, %v, %v, %v", best, ok, err, small.err)
	}
}
