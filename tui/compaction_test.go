package tui

import (
	"bytes"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
)

// LOOP-85: a person sees in one line that a conversation was shortened, how much and why, as it happens and afterwards.
func TestCompactionIsTold(t *testing.T) {
	s := newStage().start().
		at(centurion.EventCompacted, "ses_0", "", event.CompactedData{Reason: event.CompactedOverflow, Before: 171_000, After: 42_000, Messages: 80, ByHost: true})
	var out bytes.Buffer
	if err := RunPlain(t.Context(), &out, s.seqOf()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"shortened its conversation", "171k → 42k tokens", "refused it as too long", "from the record"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not told: %s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "shortened"); n != 1 {
		t.Errorf("it is told in %d lines", n)
	}
	out.Reset()
	messages := []centurion.Message{
		{Role: centurion.RoleUser, Origin: centurion.OriginHost, Parts: []centurion.Part{{Type: centurion.PartCompaction, Compaction: &centurion.Compaction{Auto: true}}}},
		{Role: centurion.RoleAssistant, Agent: "worker", Summary: true, Finish: centurion.FinishStop, Parts: []centurion.Part{{Type: centurion.PartText, Text: "All is well."}}},
	}
	if err := Show(&out, Shown{Session: &centurion.Session{ID: "ses_1"}, Messages: messages}, ShowOptions{Width: 120}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"the model is sent a summary", "summary of the older messages", "All is well."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not shown: %s", want, out.String())
		}
	}
}
