package revert

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"centurion"
	"centurion/orchestrator/isolation"
	"centurion/workspace"
)

// A verdict counts again when everything that made it void is back, and only then.
func TestVoided(t *testing.T) {
	t.Parallel()
	undo := func(back bool, reviews ...string) centurion.Reverted {
		return centurion.Reverted{Reviews: reviews, Back: back}
	}
	for name, test := range map[string]struct {
		all       []centurion.Reverted
		void, was bool
	}{
		"nothing was reverted": {nil, false, false},
		"of another review":    {[]centurion.Reverted{undo(false, "r2")}, false, false},
		"reverted":             {[]centurion.Reverted{undo(false, "r2", "r1")}, true, true},
		"brought back":         {[]centurion.Reverted{undo(true, "r1")}, false, true},
		"one of two is back":   {[]centurion.Reverted{undo(true, "r1"), undo(false, "r1")}, true, true},
		"and the other order":  {[]centurion.Reverted{undo(false, "r1"), undo(true, "r1")}, true, true},
	} {
		if void, was := voided(test.all, "r1"); void != test.void || was != test.was {
			t.Errorf("%s: void %v, was %v", name, void, was)
		}
	}
}

// What a session has written into the shared texts is known by its calls that went through, and notes by who they are from.
func TestJottings(t *testing.T) {
	t.Parallel()
	call := func(tool string, status centurion.ToolStatus, input map[string]string) centurion.Part {
		b, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		return centurion.Part{Type: centurion.PartTool, Tool: tool, State: &centurion.ToolState{Status: status, Input: b}}
	}
	j := jottings{texts: map[string][]string{}}
	j.take([]centurion.Message{{Parts: []centurion.Part{
		call("update_context", centurion.ToolCompleted, map[string]string{"note": "use tabs", "summary": "All is built.\n"}),
		call("update_context", centurion.ToolError, map[string]string{"note": "refused", "context": "refused"}),
		call("write", centurion.ToolCompleted, map[string]string{"note": "another tool's"}),
		{Type: centurion.PartText, Text: "no call"},
	}}}, "worker", "T1")
	j.take([]centurion.Message{{Parts: []centurion.Part{call("update_context", centurion.ToolCompleted, map[string]string{"note": "no item"})}}}, "commander", "")
	if want := []string{"use tabs (worker, T1)", "no item (commander)"}; !slices.Equal(j.notes, want) {
		t.Errorf("notes %q, want %q", j.notes, want)
	}
	for text, want := range map[string]bool{"All is built.": true, "All is built.\n\n## Notes\n- x": true, "All is": false, "another text": false} {
		if got := j.wrote(workspace.SummaryPath, text); got != want {
			t.Errorf("%q is its own: %v", text, got)
		}
	}
	if j.wrote(workspace.ContextPath, "All is built.") || j.wrote(workspace.ContextPath, "refused") {
		t.Error("a text that it has not written counts as its own")
	}
}

// What is told of an undo names the work, where it still stands, and what is open again.
func TestToldReverted(t *testing.T) {
	t.Parallel()
	const rest = " What was reported about it before no longer holds. Unless the user says otherwise, carry out the open items again, reviews included."
	for want, r := range map[string]centurion.Reverted{
		"The user has reverted T1's work: that work is no longer on the mission's branch or in the files.": {What: "T1's work"},
		"The user has reverted the merge of T1: that work is still on the mission's branch, but no longer on the user's. Open again in the plan: T1, T2.": {
			What: "the merge of T1", Merge: centurion.Now(), Items: []string{"T1", "T2"}},
	} {
		if got := toldReverted(r); got != want+rest {
			t.Errorf("%q, want %q", got, want+rest)
		}
	}
	if got := whatReverted([]centurion.Reverted{{What: "a"}, {What: "b"}}); got != "a, b were reverted" {
		t.Error(got)
	}
}

// What changed no file has none to go back, and where no history is kept that is said.
func TestFilesOfNothing(t *testing.T) {
	t.Parallel()
	f := &Files{Project: isolation.NewProject(nil, nil, nil, nil)}
	r, err := f.Plan(t.Context(), []centurion.Message{{ID: "msg_1"}, {ID: "msg_2"}})
	if want := (centurion.Revert{Message: "msg_1", Moving: true}); err != nil || !reflect.DeepEqual(r, want) {
		t.Errorf("%+v, %v", r, err)
	}
	left, err := f.Move(t.Context(), nil, false, true)
	diffs, derr := f.Written(t.Context(), nil)
	if err != nil || derr != nil || len(left)+len(diffs) > 0 {
		t.Errorf("moved %q, %v; written %+v, %v", left, err, diffs, derr)
	}
	_, err = f.Written(t.Context(), []centurion.Landed{{Before: "a", Commit: "b"}})
	if centurion.KindOf(err) != centurion.KindConflict || err.Error() != "revert: this host keeps no history of the project's files" || centurion.HintOf(err) != "install git" {
		t.Errorf("without a history: %v (%s)", err, centurion.HintOf(err))
	}
}
