package merge

import (
	"testing"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/state"
)

// A check of the mission that may not run guards nothing, and those behind it guard as before.
func TestChecksBehindOneThatMayNotRun(t *testing.T) {
	t.Parallel()
	g := grounded(t, "# P\n- verify: `lacks z`\n- verify: `lacks bad`\n", centurion.Mission{Approved: []string{"lacks bad"}, Options: centurion.MissionOptions{Ask: "deny"}})
	l := g.work("tsk_1", "", g.base, map[string]string{"bad": "1\n"})
	g.land(l)
	if l.Back == nil || l.Back.Cause != event.ReturnedGuard || l.Back.Command != "lacks bad" || g.runs.runs["lacks z"] > 0 {
		t.Errorf("%+v, ran %v", l.Back, g.runs.runs)
	}
}

// Work counts as proven if all its checks prove it, whatever their order.
func TestAllChecksProve(t *testing.T) {
	t.Parallel()
	g := grounded(t, "# P\n", centurion.Mission{Options: centurion.MissionOptions{TrustVerify: true}})
	for name, c := range map[string]struct {
		verify []string
		proven bool
	}{
		"a": {[]string{"has a"}, true}, "b": {[]string{"has b", "lacks go.md"}, false}, "c": {[]string{"has go.txt", "has c"}, false},
		"d": {[]string{"has d", "has d.md"}, true}, "e": {nil, false},
	} {
		l := g.work("tsk_"+name, "T_"+name, g.base, map[string]string{name: "x\n", name + ".md": "x\n"})
		l.Verify, l.Given = c.verify, c.verify
		g.land(l)
		if l.Back != nil || l.proven != c.proven {
			t.Errorf("%s: proven %v, %+v", name, l.proven, l.Back)
		}
	}
}

// All that tasks have merged for an item is removed, the newest first: also of a task that landed twice.
func TestWithoutItem(t *testing.T) {
	t.Parallel()
	g := grounded(t, "# P\n", centurion.Mission{Options: centurion.MissionOptions{TrustVerify: true}})
	one := g.work("tsk_1", "T1", g.base, map[string]string{"a": "1\n"})
	g.land(one)
	again := g.work("tsk_other", "T9", g.tip(), map[string]string{"a": "2\n", "b": "2\n"})
	again.Task, again.Item = one.Task, "T1"
	g.land(again)
	third := g.work("tsk_3", "T1", g.tip(), map[string]string{"b": "3\n"})
	g.land(third)
	if task, err := g.st.Store.Task(t.Context(), "tsk_1"); err != nil || len(task.Landed) != 2 {
		t.Fatalf("%+v, %v", task.Landed, err)
	}
	without, ok, err := g.withoutItem(t.Context(), "T1", g.tip())
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if left, err := g.repo.Stat(t.Context(), g.base, without); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
	if _, ok, err := g.withoutItem(t.Context(), "T2", g.tip()); ok || err != nil {
		t.Errorf("an item without work: %v, %v", ok, err)
	}
}

// A try that has changed nothing is done at once, unless another one of its race can be merged: then it stays in the line.
func TestContestWithNothing(t *testing.T) {
	t.Parallel()
	g := grounded(t, "# P\n", centurion.Mission{Options: centurion.MissionOptions{TrustVerify: true}})
	put := func(id string, n int, l *Work) {
		g.put(centurion.Task{ID: id, Item: "T1", Agent: "worker", Status: centurion.TaskRunning, Race: &centurion.Race{ID: "r", Try: n}})
		l.Task, l.Agent, l.Item, l.Race, l.Checks = &state.Run{ID: id, Item: "T1", Agent: "worker"}, "worker", "T1", "r", id
	}
	nothing, made := &Work{}, g.work("tsk_2", "T1", g.base, map[string]string{"a": "x\n"})
	put("tsk_1", 1, nothing)
	put("tsk_2", 2, made)
	made.Verify, made.Given = []string{"has a"}, []string{"has a"}
	best, ok, err := g.contest(t.Context(), []*Work{nothing, made}, g.base, true)
	if err != nil || !ok || best != made || made.Done || nothing.Done || nothing.Back != nil {
		t.Errorf("%+v, %v, %v; the empty one %+v", best, ok, err, nothing)
	}
	g.put(centurion.Task{ID: "tsk_2", Item: "T1", Agent: "worker", Status: centurion.TaskFailed, Race: &centurion.Race{ID: "r", Try: 2}})
	best, ok, err = g.contest(t.Context(), []*Work{nothing}, g.base, true)
	if err != nil || ok || best != nil || !nothing.Done || nothing.Back != nil {
		t.Errorf("alone: %+v, %v, %v; %+v", best, ok, err, nothing)
	}
}
