package ownership

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/slots"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/store/storetest"
)

// filesOf returns the files of a mission of which one session may run at once.
func filesOf(t *testing.T, st *store.Store) *Files {
	t.Helper()
	ctx, end := context.WithCancelCause(t.Context())
	t.Cleanup(func() { end(nil) })
	return New(state.New(ctx, end, st, centurion.Mission{ID: "msn_1"}, nil), nil, nil, slots.New(1, slots.Caps{}).Pool(1, 1))
}

// Of many at work, the status of a session that has files names the ones beside them only; one without files is told of eight with theirs,
// and of the others by name.
func TestWhoElse(t *testing.T) {
	t.Parallel()
	m := filesOf(t, nil)
	for i := range 30 {
		m.Take(fmt.Sprintf("T%02d", i), []string{fmt.Sprintf("d%02d/f.go", i)})
	}
	got := m.WhoElse("", "ses_1")
	has(t, got, "T00 is being worked on", "22 more are being worked on, on other files: T08, T09")
	if lines := strings.Count(got, "\n"); lines != othersTold+1 {
		t.Errorf("%d lines:\n%s", lines, got)
	}
	m.Take("near", []string{"d07/g.go"})
	equal(t, "beside its files", m.WhoElse("near", "ses_1"), "T07 is being worked on by another agent: d07/f.go\n")
}

// Who has not begun yet is not said to be at work.
func TestWhoElseHasNotBegun(t *testing.T) {
	t.Parallel()
	m := filesOf(t, nil)
	for i, attempt := range []int{0, 0, 1} { // the last one goes on after a restart
		task := centurion.Task{ID: fmt.Sprintf("tsk_%d", i), Item: fmt.Sprintf("T%d", i), Parent: "ses_2", Status: centurion.TaskQueued, Attempt: attempt}
		r := &state.Run{ID: task.ID, Item: task.Item, Name: task.Name()}
		r.Now.Store(&task)
		r.Working.Store(i == 1) // its record is that of its newest answer, and there is none yet
		m.st.Add(r)
		m.Take(task.Item, []string{fmt.Sprintf("d%d/**", i)})
	}
	has(t, m.WhoElse("", "ses_1"), "T0 is taken by another agent that has not begun yet: d0/**\n", "T1 is being worked on by another agent: d1/**\n", "T2 is being worked on by another agent: d2/**\n")
}

// Of those at work without files, a session is told of others' only: not of its own, nor of what it has delegated itself.
func TestWorkWithoutFilesOfOthers(t *testing.T) {
	t.Parallel()
	m := filesOf(t, nil)
	m.st.Cast = agents.Default()
	for i, parent := range []string{"ses_1", "ses_2"} {
		task := centurion.Task{ID: fmt.Sprintf("tsk_%d", i), Item: fmt.Sprintf("T%d", i), Agent: "worker", Parent: parent, Status: centurion.TaskRunning, Attempt: 1}
		r := &state.Run{ID: task.ID, Item: task.Item, Name: task.Name()}
		r.Now.Store(&task)
		m.st.Add(r)
	}
	equal(t, "told to the first", strings.Join(m.unnamed("", "ses_1", nil), " "), "T1")
	equal(t, "told to a third", len(m.unnamed("", "ses_3", nil)), 2)
	equal(t, "told to who works on one", strings.Join(m.unnamed("T1", "ses_3", nil), " "), "T0")
}

// A task that has not begun is said to wait for a slot only where there is none.
func TestWaitsForNothing(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t)
	m := filesOf(t, st)
	task := centurion.Task{ID: "tsk_1", Agent: "worker"}
	equal(t, "with a slot", m.waitsFor(&task), "")
	sl, err := m.slots.Launch(t.Context(), m.slots.Join("worker"), func(context.Context) (centurion.ModelRef, error) { return centurion.ModelRef{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	defer sl.Release()
	equal(t, "without", m.waitsFor(&task), " and waits for a free slot")
}

// Others are told which files a session holds by the plan, and which beyond it.
func TestHeldBeyondThePlan(t *testing.T) {
	for _, test := range []struct{ files, wider, want string }{
		{"a b", "", "a, b"}, {"a b", "b", "a; outside its files: b"}, {"a b", "a b", "a, b"},
	} {
		equal(t, test.files+" with "+test.wider, inWords(strings.Fields(test.files), strings.Fields(test.wider)), test.want)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is not in:\n%s", p, text)
		}
	}
}
