package tui

import (
	"context"
	"errors"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
)

// stops counts how often the answer was stopped.
type stops struct {
	n   int
	err error
}

func (s *stops) Abort(context.Context) error {
	s.n++
	return s.err
}

// Esc stops the answer at its second press, if that comes soon and no other key between; what was meant for a line or a
// dialog stops nothing.
func TestEscStopsTheAnswer(t *testing.T) {
	s := newStage().workers()
	a := &stops{}
	m := s.view(t, 100, 40, Options{Writer: &letters{}, Aborter: a})
	frames := []string{m.content}
	keys(m, "esc")
	m.refresh()
	frames = append(frames, m.content)
	s.wait(2 * escSpan)
	keys(m, "esc", "x", "esc", "m", "esc")
	if a.n != 0 {
		t.Errorf("stopped %d times", a.n)
	}
	keys(m, "esc", "esc")
	if a.n != 1 {
		t.Errorf("stopped %d times, not once", a.n)
	}
	a.err = &centurion.Error{Msg: "nothing to abort", Err: errors.New("idle"), Hint: "see: centurion ps"}
	keys(m, "esc", "esc")
	m.refresh()
	if a.n != 2 || !strings.Contains(m.content, "nothing to abort") {
		t.Errorf("stopped %d times:\n%s", a.n, m.content)
	}
	golden(t, "esc", strings.Join(frames, "\n~~~\n")+"\n")

	m = s.view(t, 100, 40, Options{})
	keys(m, "esc", "esc")
	if strings.Contains(m.content, "[esc]") || strings.Contains(m.content, "esc again") {
		t.Errorf("it offers what it cannot do:\n%s", m.content)
	}
}

// The plain view tells that a conversation was taken back, copied or stopped, and what was asked and answered.
func TestPlainTellsOfBranchesAndQuestions(t *testing.T) {
	s := newStage().start().
		at(centurion.EventForked, "ses_0", "", event.ForkedData{Mission: "msn_0", Session: "ses_9", Message: "msg_4", Messages: 4}).
		at(centurion.EventRewound, "ses_0", "", event.RewoundData{From: "msg_9", To: "msg_2", Mark: "before-rewind-1", Undone: 7}).
		at(centurion.EventSessionAborted, "ses_0", "", event.AbortData{Reason: "stopped with esc"}).
		at(centurion.EventQuestionAsked, "ses_0", "", event.AskData{ID: "que_1", Type: "question", Text: "Which database?"}).
		at(centurion.EventQuestionAnswered, "ses_0", "", event.AskData{ID: "que_1", Type: "question", Answer: "Postgres"})
	var b strings.Builder
	if err := RunPlain(t.Context(), &b, s.seqOf()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"is a copy of ses_9 up to msg_4: 4 messages", "rewound to msg_2, 7 messages left as a branch, under before-rewind-1",
		"stopped", "stopped with esc", "Which database?", "Postgres"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no %q in\n%s", want, b.String())
		}
	}
}
