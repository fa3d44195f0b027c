package tui

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/event/view"
)

func TestRunPlain(t *testing.T) {
	s := newStage().checked().
		at(centurion.EventPermissionAsked, "ses_T4", "tsk_T4", event.AskData{ID: "per_1", Permission: "bash", Patterns: []string{"npm install\n\x1b[2Jleft-pad"}}).
		at(centurion.EventPermissionReplied, "ses_T4", "tsk_T4", event.AskData{ID: "per_1", Answer: AnswerReject, By: "policy"}).
		at(centurion.EventQuestionAsked, "ses_0", "", event.AskData{ID: "que_1", Text: "Which database?", Options: []string{"SQLite", "Postgres"}}).
		at(centurion.EventSessionError, "ses_0", "", event.SessionData{Kind: centurion.KindAuth, Error: "the key was refused"}).
		at(centurion.EventBudgetExceeded, "", "", event.BudgetData{Limit: "max_cost", Spent: 10.01, Max: 10}).
		at(centurion.EventTaskCancelled, "ses_T3", "tsk_T3", data{"status": "cancelled", "reason": "not needed"}).
		at(centurion.EventTaskFailed, "ses_T1", "tsk_T1", data{"status": "failed", "error": data{"kind": "stall", "message": "nothing was heard for 5 min"}}).
		end()
	var out bytes.Buffer
	if err := RunPlain(t.Context(), &out, s.seqOf()); err != nil {
		t.Fatal(err)
	}
	golden(t, "run-plain", out.String())
	if strings.Contains(out.String(), "\x1b") {
		t.Error("an escape sequence in plain lines")
	}
}

func TestSummaries(t *testing.T) {
	var all strings.Builder
	for _, e := range []struct {
		typ  centurion.EventType
		data event.MissionEnd
	}{
		{centurion.EventMissionCompleted, event.MissionEnd{DurationMS: 1500}},
		{centurion.EventMissionPaused, event.MissionEnd{Reason: "interrupted", Cost: 0.5, DurationMS: 61_000}},
		{centurion.EventMissionBlocked, event.MissionEnd{Reason: "no progress over 5 rounds", Unpriced: true, Tokens: centurion.Tokens{Input: 5}}},
		{centurion.EventMissionFailed, event.MissionEnd{Reason: "the provider refused the key"}},
		{centurion.EventMissionCancelled, event.MissionEnd{Reason: "cancelled"}},
	} {
		s := newStage().start().at(centurion.EventTodoUpdated, "", "", event.TodoCounts{Open: 1, Done: 2, Cancelled: 1})
		if e.typ == centurion.EventMissionBlocked {
			s.at(centurion.EventQuestionAsked, "ses_0", "", event.AskData{ID: "que_1", Text: "Which database?"})
		}
		all.WriteString(strings.Join(summary(s.at(e.typ, "ses_0", "", e.data).board(), theme{}), "\n") + "\n")
	}
	golden(t, "summaries", all.String())
}

func TestRunJSON(t *testing.T) {
	s := newStage().start().
		at(centurion.EventMessageUpdated, "ses_0", "", data{"text": "<b>&\u009b31m\u202e\U000e0041\x1b"})
	s.events = append(s.events, centurion.Event{After: 2, Type: centurion.EventDelta, Mission: "msn_1"})
	var out bytes.Buffer
	if err := RunJSON(t.Context(), &out, s.seqOf()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines for 3 events:\n%s", len(lines), out.String())
	}
	for i, l := range lines {
		var e centurion.Event
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			t.Fatalf("line %d: %v: %s", i+1, err, l)
		}
		if e.Type != s.events[i].Type || e.Seq != s.events[i].Seq || e.After != s.events[i].After {
			t.Errorf("line %d came back as %+v", i+1, e)
		}
	}
	if p := view.Read(s.events[1]); !strings.Contains(lines[1], `\u009b31m\u202e\udb40\udc41\u001b`) || p.Text == "" {
		t.Errorf("a terminal might obey %q", lines[1])
	}
	var back centurion.Event
	_ = json.Unmarshal([]byte(lines[1]), &back)
	if got := view.Read(back).Text; got != "<b>&\u009b31m\u202e\U000e0041\x1b" {
		t.Errorf("the text came back as %q", got)
	}
	if !strings.HasSuffix(lines[2], `"data":{}}`) {
		t.Errorf("an event without data is %s", lines[2])
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestOutputErrors(t *testing.T) {
	if err := RunPlain(t.Context(), brokenPipe{}, newStage().start().seqOf()); centurion.HintOf(err) == "" {
		t.Errorf("plain: %v", err)
	}
	if err := RunJSON(t.Context(), brokenPipe{}, newStage().start().seqOf()); centurion.HintOf(err) == "" {
		t.Errorf("json: %v", err)
	}
}

func TestUntilEnd(t *testing.T) {
	s := newStage().start().at(centurion.EventMissionPaused, "", "", data{}).at(centurion.EventMissionResumed, "", "", data{})
	n := 0
	for range UntilEnd(s.seqOf()) {
		n++
	}
	if n != 2 {
		t.Errorf("%d events, want 2", n)
	}
}
