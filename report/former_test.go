package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"centurion"
	"centurion/event"
)

// A check that its item does not ask for any more is told with the item, and by whom it was changed; it counts for nothing.
func TestFormerChecks(t *testing.T) {
	t.Parallel()
	plan := func(sec int, verify string) centurion.Event {
		return fact(sec, centurion.EventTodoUpdated, "", "ses_root", event.TodoData{Items: []event.PlanItem{{ID: "T1", Verify: []string{verify}}}})
	}
	marks := fact(6, centurion.EventTodoUpdated, "", "ses_root", event.TodoData{})
	writes := func(sec int, task, refused string) centurion.Event {
		return fact(sec, centurion.EventToolCompleted, task, "ses_"+task, map[string]any{"tool": "update_todo", "error": refused})
	}
	for name, x := range map[string]struct {
		events []centurion.Event
		want   string
	}{
		"by the reviewer":     {[]centurion.Event{plan(1, "true"), writes(5, "tsk_r", ""), marks, plan(9, "go test")}, "former check of T1, changed by the reviewer (now: go test)"},
		"refused":             {[]centurion.Event{plan(1, "true"), writes(5, "tsk_r", "no"), plan(9, "go test")}, "former check of T1, changed (now: go test)"},
		"the reviewer before": {[]centurion.Event{writes(0, "tsk_r", ""), plan(1, "true"), writes(2, "tsk_r", ""), plan(3, "true"), plan(9, "go test")}, "former check of T1, changed (now: go test)"},
		"the reviewer later":  {[]centurion.Event{plan(1, "true"), plan(9, "go test"), writes(10, "tsk_r", ""), plan(11, "go test")}, "former check of T1, changed (now: go test)"},
		"by a person":         {[]centurion.Event{plan(1, "true"), writes(5, "", ""), writes(6, "tsk_w", ""), plan(9, "go test")}, "former check of T1, changed (now: go test)"},
		"nothing tells":       {nil, "former check of T1, changed (now: go test)"},
	} {
		d := Data{Mission: centurion.Mission{ID: "m", Session: "ses_root"}, Now: at(99), Events: x.events, Checks: []string{"make"},
			Items: []PlanItem{{ID: "T1", Title: "one", Verify: []string{"go test"}, Status: "done"}},
			Tasks: []centurion.Task{{ID: "tsk_r", Agent: "reviewer"}, {ID: "tsk_w", Agent: "worker"}},
			Receipts: []centurion.Receipt{
				{Item: "T1", Command: "true", Passed: true, Proof: centurion.ProofUnproven, Time: at(2)},
				{Item: "T1", Command: "go test", Passed: true, Proof: centurion.ProofProven, Time: at(3)},
				{Item: "T9", Command: "npm test", Passed: true, Time: at(4)}, {Command: "make", Passed: true, Time: at(5)}}}
		r := New(d)
		var got []string
		for _, x := range r.Doubts {
			got = append(got, x.Kind+" "+x.Item+" "+x.Command+": "+strings.Join(x.Why, "; "))
		}
		if d := cmp.Diff([]string{"changed T1 true: " + x.want, "changed  npm test: former check of T9, which is not in the plan any more"}, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if it := r.Items[0]; it.Standing != Proven || len(it.Checks) != 2 || it.Checks[1].Command != "true" || len(r.Checks) != 2 || r.Checks[0].Former != nil {
			t.Errorf("%s: %+v, %+v", name, it, r.Checks)
		}
		var b bytes.Buffer
		if err := r.Markdown(&b); err != nil {
			t.Fatal(err)
		}
		if told := "F" + x.want[1:] + ". Passes, but"; !strings.Contains(b.String(), told) || !strings.Contains(pageOf(t, d), told) {
			t.Errorf("%s: it is not told: %s", name, b.String())
		}
	}
	// A plan that cannot be read any more has changed nothing.
	if r := New(Data{Receipts: []centurion.Receipt{{Item: "T1", Command: "true", Passed: true}}}); r.Checks[0].Former != nil {
		t.Errorf("without a plan: %+v", r.Checks)
	}
}
