package tui

import (
	"strings"
	"testing"

	"centurion"
	"centurion/event"
)

// What a policy answers in the same moment waits for nobody: only the refusal is told. A person's refusal in words is one.
func TestAnsweredByPolicy(t *testing.T) {
	ask := event.AskData{ID: "per_1", Type: "permission", Permission: "bash", Patterns: []string{"rm -r x"}, By: "policy"}
	told := func(s *story, typ centurion.EventType, d event.AskData) string {
		var out []string
		for _, f := range s.apply(centurion.Event{Type: typ, Mission: "msn_1", Session: "ses_1", Data: event.Data(d)}) {
			out = append(out, f.plainLine())
		}
		return strings.Join(out, "\n")
	}
	s := &story{board: &Board{}}
	if got := told(s, centurion.EventPermissionAsked, ask); got != "" || len(s.board.Asks) != 0 {
		t.Errorf("the ask is told: %q; %d wait", got, len(s.board.Asks))
	}
	ask.Answer = AnswerReject
	got := told(s, centurion.EventPermissionReplied, ask)
	if !strings.Contains(got, "rejected") || !strings.Contains(got, "rm -r x") || !strings.Contains(got, "by policy") {
		t.Errorf("the refusal is told as %q", got)
	}
	ask.ID, ask.By, ask.Answer = "per_2", "", ""
	if got := told(s, centurion.EventPermissionAsked, ask); !strings.Contains(got, "needs your permission") || len(s.board.Asks) != 1 {
		t.Errorf("a person's ask is told as %q; %d wait", got, len(s.board.Asks))
	}
	ask.By, ask.Answer = "person", "use the trash"
	if got := told(s, centurion.EventPermissionReplied, ask); !strings.Contains(got, "rejected") || !strings.Contains(got, "use the trash") {
		t.Errorf("a refusal in words is told as %q", got)
	}
	if len(s.board.Asks) != 0 {
		t.Errorf("%d wait after the answer", len(s.board.Asks))
	}
}
