package orchestrator

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/orchestrator/slots"
	"centurion/orchestrator/state"
	"centurion/provider/scripted"
)

// Of many at work, the status of a session that has files names the ones beside them only; one without files is told of eight with theirs,
// and of the others by name.
func TestWhoElse(t *testing.T) {
	t.Parallel()
	m := unbegun(t)
	for i := range 30 {
		m.claims.Take(fmt.Sprintf("T%02d", i), []string{fmt.Sprintf("d%02d/f.go", i)})
	}
	got := m.whoElse("", "ses_1")
	has(t, got, "T00 is being worked on", "22 more are being worked on, on other files: T08, T09")
	if lines := strings.Count(got, "\n"); lines != othersTold+1 {
		t.Errorf("%d lines:\n%s", lines, got)
	}
	m.claims.Take("near", []string{"d07/g.go"})
	equal(t, "beside its files", m.whoElse("near", "ses_1"), "T07 is being worked on by another agent: d07/f.go\n")
}

// Who has not begun yet is not said to be at work.
func TestWhoElseHasNotBegun(t *testing.T) {
	t.Parallel()
	m := unbegun(t)
	for i, attempt := range []int{0, 0, 1} { // the last one goes on after a restart
		task := centurion.Task{ID: fmt.Sprintf("tsk_%d", i), Item: fmt.Sprintf("T%d", i), Parent: "ses_2", Status: centurion.TaskQueued, Attempt: attempt}
		r := &state.Run{ID: task.ID, Item: task.Item, Name: task.Name()}
		r.Now.Store(&task)
		r.Working.Store(i == 1) // its record is that of its newest answer, and there is none yet
		m.st.Add(r)
		m.claims.Take(task.Item, []string{fmt.Sprintf("d%d/**", i)})
	}
	has(t, m.whoElse("", "ses_1"), "T0 is taken by another agent that has not begun yet: d0/**\n", "T1 is being worked on by another agent: d1/**\n", "T2 is being worked on by another agent: d2/**\n")
}

// What the Commander has handed out is its own, and no conflict: its status names the task, and what it waits for.
func TestWhoElseIsOwn(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "  - files: a/**", "- [ ] T2 Two", "  - files: b/**")), do(work("T1", "x"), work("T2", "y"), onward),
			do(call("bash", args{"command": "build 10s"})), say("I wait"), complete()),
		"worker": func(scripted.Request) scripted.Answer { return after(time.Minute, say("made")) },
	}, func(r *rig) {
		r.mission(centurion.MissionOptions{MaxWorkers: 1})
		asked := r.requests("commander")
		has(t, asked[3].Last(), "T1 (do T1) is being worked on by your own task: a/**\n",
			"T2 (do T2) is your own task, which has not begun and waits for a free slot; its files: b/**")
		for _, q := range asked {
			if strings.Contains(texts(q), "somebody else") {
				t.Errorf("its own task is said to be somebody else's:\n%s", texts(q))
			}
		}
	})
}

// Who works on an item without files is seen by the others, before it has written anything.
func TestWhoElseWithoutFiles(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two", "  - files: b/**", "- [ ] T3 Review @reviewer", "  - after: T2")), do(work("T1", "x"), work("T2", "y")), say("I wait"), complete()),
		"worker": func(q scripted.Request) scripted.Answer {
			if q.Step() == 1 {
				return do(call("bash", args{"command": "build 10s"}))
			}
			return after(time.Minute, say("made"))
		},
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		told := ""
		for _, q := range r.requests("worker") {
			if strings.Contains(q.First(), "# Item T2") && q.Step() == 2 {
				told = q.Last()
			}
			if strings.Contains(q.Last(), "T1 (do T1)") && strings.Contains(q.First(), "# Item T1") {
				t.Errorf("it is told of itself:\n%s", q.Last())
			}
		}
		has(t, told, anyFile+" T1 (do T1)\n")
		has(t, r.results(m.ID, "update_todo")[0], "No files are named for T1: ")
	})
}

// A task that has not begun is said to wait for a slot only where there is none.
func TestWaitsForNothing(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		m := r.unbegun("msn_1")
		m.slots = slots.New(1, slots.Caps{}).Pool(1, 1)
		task := centurion.Task{ID: "tsk_1", Agent: "worker"}
		equal(t, "with a slot", m.waitsFor(&task), "")
		sl, err := m.slots.Launch(r.ctx, m.slots.Join("worker"), func(context.Context) (centurion.ModelRef, error) { return ref, nil })
		if err != nil {
			t.Fatal(err)
		}
		defer sl.Release()
		equal(t, "without", m.waitsFor(&task), " and waits for a free slot")
	})
}
