package session_test

import (
	"strings"
	"testing"

	"centurion"
	"centurion/session"
)

// C-19: whose words a message has is recorded, and a model is told it where words of the host stand among them: the
// person's are marked as soon as somebody else has spoken in the same role, and the goal never is.
func TestWhoSpeaks(t *testing.T) {
	said := func(origin centurion.Origin, text string) centurion.Message {
		return centurion.Message{Role: centurion.RoleUser, Origin: origin, Parts: []centurion.Part{{Type: centurion.PartText, Text: text}}}
	}
	answer := centurion.Message{Role: centurion.RoleAssistant, Finish: centurion.FinishStop, Parts: []centurion.Part{{Type: centurion.PartText, Text: "yes"}}}
	var got []string
	for _, m := range session.History([]centurion.Message{said(centurion.OriginPerson, "the goal"), answer, said(centurion.OriginPerson, "and more"), answer,
		said(centurion.OriginHost, "a notice"), answer, said(centurion.OriginPerson, "once more")}) {
		if m.Text != "yes" {
			got = append(got, m.Text)
		}
	}
	if want := "the goal|and more|a notice|From the person:\nonce more"; strings.Join(got, "|") != want {
		t.Errorf("got %q", got)
	}
}
