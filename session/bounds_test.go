package session

import (
	"strings"
	"testing"

	"centurion"
	"centurion/provider"
)

// LOOP-77: a request has no more bytes of files than a provider takes, however few files they are in.
func TestShownBytes(t *testing.T) {
	t.Parallel()
	var history []provider.Message
	for range 3 {
		history = append(history, provider.Message{Role: provider.User, Text: "look",
			Files: []centurion.File{{Name: "a.png", Mime: "image/png", Data: make([]byte, centurion.MaxFilesBytes/5*2)}}})
	}
	got := shown(history, centurion.Media{Image: true})
	left := 0
	for _, m := range got {
		_, n := measure(m.Files)
		left += n
	}
	if left > centurion.MaxFilesBytes || len(got[2].Files) != 1 || !strings.Contains(got[0].Text, "is not shown any more") {
		t.Errorf("%d bytes are sent; the oldest message says %q, the newest has %d files", left, got[0].Text, len(got[2].Files))
	}
}

// LOOP-20: of what the host has said a compaction quotes only what the running turn answers to.
func TestQuotesOfTheHost(t *testing.T) {
	t.Parallel()
	said := func(role centurion.Role, origin centurion.Origin, text string) centurion.Message {
		return centurion.Message{Role: role, Origin: origin, Parts: []centurion.Part{{Type: centurion.PartText, Text: text}}}
	}
	gone := []centurion.Message{said(centurion.RoleUser, centurion.OriginPerson, "Use tabs."), said(centurion.RoleAssistant, "", "Yes."),
		said(centurion.RoleUser, centurion.OriginHost, "T1 is done."), said(centurion.RoleUser, centurion.OriginHost, "T2 is done."), said(centurion.RoleAssistant, "", "Good.")}
	for midTurn, want := range map[bool]string{true: "Use tabs.\n\nT2 is done.", false: "Use tabs."} {
		if got := quotes(gone, midTurn, 1000); got != quoteHead+"\n\n"+want {
			t.Errorf("in the middle of a turn %v: %q", midTurn, got)
		}
	}
}
