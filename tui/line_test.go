package tui

import (
	"context"
	"errors"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"centurion"
	"centurion/event"
)

// letters records what was written.
type letters struct {
	got []string
	err error
}

func (l *letters) Write(_ context.Context, text string) error {
	l.got = append(l.got, text)
	return l.err
}

// typed presses the keys of a text.
func typed(m *live, text string) {
	for _, r := range text {
		keys(m, string(r))
	}
}

// more applies events that come while the view is open.
func more(m *live, s *stage, from int) {
	m.feed.events = s.events[from:]
	_, cmd := m.Update(tickMsg(s.now))
	_ = cmd
}

func (s *stage) personSays(text string) *stage {
	return s.at(centurion.EventMessageCreated, "ses_0", "", data{"message": "msg_1", "role": "user", "origin": "person", "text": text})
}

// ORCH-26: on a terminal a person writes to the Commander while the mission runs: m opens a line, enter sends it, esc drops
// it. Until it is read the frame says so, and then it stands above the frame.
func TestLineToTheCommander(t *testing.T) {
	s := newStage().workers()
	w := &letters{}
	m := s.view(t, 100, 40, Options{Writer: w})
	shots := []string{m.content}
	shot := func() { m.refresh(); shots = append(shots, m.content) }
	typed(m, "x") // nothing opens by accident
	keys(m, "m")
	typed(m, "mind the tabs, ")
	m.Update(tea.PasteMsg{Content: "and\nthe\t\x1b[31mrest"})
	shot()
	keys(m, "enter")
	shot()
	from := len(s.events)
	s.personSays("mind the tabs, and the [31mrest")
	more(m, s, from)
	shot()
	if got := strings.Join(w.got, "|"); got != "mind the tabs, and the [31mrest" {
		t.Errorf("written %q", got)
	}
	keys(m, "m")
	typed(m, "never mind")
	keys(m, "esc", "m", "enter") // dropped, and an empty line is none
	if m.line != nil || len(w.got) != 1 {
		t.Errorf("the line is open or %q was written", w.got)
	}
	golden(t, "line", strings.Join(shots, "\n~~~\n")+"\n"+strings.Join(m.pending[len(m.pending)-1:], "\n")+"\n")
}

// Where another agent stands in the Commander's place, it is named.
func TestLineToAnother(t *testing.T) {
	s := newStage().at(centurion.EventMissionStarted, "ses_0", "", data{"goal": "look", "status": "running"}).
		at(centurion.EventSessionCreated, "ses_0", "", data{"agent": "assistant", "address": "0/"})
	m := s.view(t, 80, 20, Options{Writer: &letters{}})
	shows := func(want string) {
		t.Helper()
		m.refresh()
		if !strings.Contains(m.content, want) || strings.Contains(m.content, "the Commander") {
			t.Errorf("it shows no %q:\n%s", want, m.content)
		}
	}
	shows("[m] write to the assistant")
	keys(m, "m")
	shows("enter sends it to the assistant")
}

// A line that could not be stored stays, with the reason, and can be sent again.
func TestLineThatFails(t *testing.T) {
	s := newStage().workers()
	w := &letters{err: &centurion.Error{Msg: "it is over", Err: errors.New("no host"), Hint: "see: centurion ps"}}
	m := s.view(t, 60, 20, Options{Writer: w})
	keys(m, "m")
	typed(m, "hello")
	keys(m, "enter")
	golden(t, "line-failed", m.content+"\n")
	w.err = nil
	keys(m, "enter")
	if m.line != nil || len(w.got) != 2 || w.got[1] != "hello" {
		t.Errorf("written %q", w.got)
	}
}

// While a line is open an ask takes no keys: what was meant for the Commander answers nothing. It comes up when the line is
// closed, and ignores keys for a moment then as well.
func TestLineBeforeAnAsk(t *testing.T) {
	s := newStage().workers()
	a := &answers{}
	m := s.view(t, 80, 30, Options{Writer: &letters{}, Answerer: a})
	keys(m, "m")
	from := len(s.events)
	s.at(centurion.EventPermissionAsked, "ses_T1", "tsk_T1", event.AskData{ID: "per_1", Type: "permission", Permission: "bash",
		Patterns: []string{"rm -rf build"}, Always: []string{"rm *"}})
	more(m, s, from)
	s.wait(2 * settle)
	typed(m, "also a word")
	if m.dialog != nil || len(a.got) > 0 {
		t.Errorf("the dialog is open or %q was answered", a.got)
	}
	golden(t, "line-asked", m.content+"\n")
	keys(m, "esc")
	if m.dialog == nil {
		t.Fatal("the ask did not come up")
	}
	typed(m, "oar")
	s.wait(2 * settle)
	if typed(m, "m"); len(a.got) > 0 || m.line != nil {
		t.Errorf("%q was answered, or m opened a line over a dialog", a.got)
	}
	keys(m, "o")
	if got := strings.Join(a.got, " "); got != "per_1=once" {
		t.Errorf("answered %q", got)
	}
}

// Without anybody to write to there is no line.
func TestNoLine(t *testing.T) {
	s := newStage().workers()
	m := s.view(t, 80, 30, Options{})
	keys(m, "m")
	if m.line != nil || strings.Contains(m.content, "[m]") {
		t.Errorf("a line came up:\n%s", m.content)
	}
}

// The plain view tells whom a person has written to; the goal is told once, as what the mission is.
func TestPlainMessages(t *testing.T) {
	s := newStage().start().personSays("Rate limits for the API").personSays("Rate limits for the API, and tests").
		task("T1", "worker", "Parse", true).
		at(centurion.EventMessageQueued, "ses_T1", "tsk_T1", event.QueuedData{ID: "dlv_1", Origin: centurion.OriginPerson, Text: "use tabs"}).
		at(centurion.EventMessageCreated, "ses_T1", "tsk_T1", data{"message": "msg_2", "role": "user", "origin": "person", "text": "use tabs"})
	var b strings.Builder
	if err := RunPlain(t.Context(), &b, s.seqOf()); err != nil {
		t.Fatal(err)
	}
	var said []string
	for l := range strings.Lines(b.String()) {
		if _, text, ok := strings.Cut(l, " › "); ok {
			said = append(said, strings.TrimSpace(text))
		}
	}
	if got := strings.Join(said, "|"); got != "you: Rate limits for the API, and tests|you to worker T1: use tabs" {
		t.Errorf("told %q", got)
	}
}

// A sentence in a dialog is broken between its words; what would run is broken where it must.
func TestWhyIsWrappedByWords(t *testing.T) {
	s := newStage().workers()
	m := s.view(t, 40, 30, Options{Answerer: &answers{}})
	from := len(s.events)
	s.at(centurion.EventPermissionAsked, "ses_T1", "tsk_T1", event.AskData{ID: "per_1", Type: "permission", Permission: "bash",
		Patterns: []string{"rm -rf build"}, Text: "a rule for bash that asks about every deletion there"})
	more(m, s, from)
	for _, word := range []string{"why: a rule for bash that asks about", "every deletion there"} {
		if !strings.Contains(m.content, word) {
			t.Errorf("%q stands on no line:\n%s", word, m.content)
		}
	}
}
