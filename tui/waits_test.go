package tui

import (
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
)

// Who reads JSON lines is told once of each ask that waits, with the command that answers it; not of what a policy has answered, nor of
// what was answered before.
func TestWaits(t *testing.T) {
	t.Parallel()
	var said []string
	w := NewWaits(func(line string) { said = append(said, line) })
	before := newStage().workers().
		at(centurion.EventQuestionAsked, "ses_T1", "tsk_T1", event.AskData{ID: "que_1", Type: "question", Text: "Long ago?"}).
		at(centurion.EventQuestionAnswered, "ses_T1", "tsk_T1", event.AskData{ID: "que_1", Type: "question", Answer: "yes", By: "person"}).
		at(centurion.EventQuestionAsked, "ses_T1", "tsk_T1", event.AskData{ID: "que_2", Type: "question", Text: "Still?\nYes."})
	for _, e := range before.events {
		w.Before(e)
	}
	w.Open(false)
	n := len(before.events)
	all := before.at(centurion.EventPermissionAsked, "ses_T2", "tsk_T2", event.AskData{ID: "per_1", Type: "permission", Permission: "bash", Patterns: []string{"rm x", "tail -3"}, Title: "rm x 2>&1 | tail -3"}).
		at(centurion.EventPermissionAsked, "ses_T2", "tsk_T2", event.AskData{ID: "per_2", Type: "permission", Permission: "bash", Answer: "reject", By: "policy"}).
		plan()
	passed := 0
	for range w.Through(all.seqOf()) {
		passed++
	}
	if passed != len(all.events) || passed <= n {
		t.Errorf("%d of %d events came through", passed, len(all.events))
	}
	if len(said) < 3 || !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, "plan waits for you") }) {
		t.Fatalf("said %q", said)
	}
	for i, want := range []string{"worker T1 asks: Still?", "worker T2 needs your permission: bash rm x 2>&1 | tail -3 · "} {
		id := []string{"centurion answer que_2 TEXT", "centurion approve per_1"}[i]
		if !strings.HasPrefix(said[i], want) || !strings.Contains(said[i], id) || strings.Contains(said[i], "\n") {
			t.Errorf("said %q, want %q with %q", said[i], want, id)
		}
	}
	if strings.Contains(strings.Join(said, "\n"), "per_2") || strings.Contains(strings.Join(said, "\n"), "Long ago") {
		t.Errorf("said %q", said)
	}
}
