package orchestrator

import (
	"fmt"
	"strings"
	"testing"

	"centurion"
)

// Of many who are at work, a status names the ones beside the own files with theirs, and the others only by name.
func TestWhoElse(t *testing.T) {
	t.Parallel()
	m := &mission{}
	for i := range 30 {
		m.claims.Take(fmt.Sprintf("T%02d", i), []string{fmt.Sprintf("d%02d/f.go", i)})
	}
	m.claims.Take("near", []string{"d07/g.go"})
	got := m.whoElse("near")
	has(t, got, "T07 is being worked on by somebody else: d07/f.go\n", "T00 is being worked on", "22 more are being worked on, on other files: T08, T09")
	if lines := strings.Count(got, "\n"); lines != othersTold+1 || !strings.HasPrefix(got, "T07 ") || strings.Contains(got, "near") {
		t.Errorf("%d lines:\n%s", lines, got)
	}
}

// Who has not begun yet is not said to be at work.
func TestWhoElseHasNotBegun(t *testing.T) {
	t.Parallel()
	m := &mission{runs: map[string]*taskRun{}}
	for i, attempt := range []int{0, 0, 1} { // the last one goes on after a restart
		task := centurion.Task{ID: fmt.Sprintf("tsk_%d", i), Item: fmt.Sprintf("T%d", i), Status: centurion.TaskQueued, Attempt: attempt}
		r := &taskRun{id: task.ID, item: task.Item}
		r.now.Store(&task)
		r.working.Store(i == 1) // its record is that of its newest answer, and there is none yet
		m.runs[task.ID] = r
		m.claims.Take(task.Item, []string{fmt.Sprintf("d%d/**", i)})
	}
	has(t, m.whoElse(""), "T0 is taken by somebody else, who has not begun yet: d0/**\n", "T1 is being worked on by somebody else: d1/**\n", "T2 is being worked on by somebody else: d2/**\n")
}
