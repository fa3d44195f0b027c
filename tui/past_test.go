package tui

import (
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"centurion"
	"centurion/text"
)

// past is what happened on the stage so far, for a view that begins with the newest of it if tell is set.
func (s *stage) past(tell bool) *Past {
	p := NewPast(0, 0, tell)
	for _, e := range s.events {
		p.Add(e)
	}
	return p
}

// A view that begins in the middle of a mission begins with the last screenful of what happened, and names what came before.
func TestViewBeginsWithThePast(t *testing.T) {
	for name, tell := range map[string]bool{"attach": true, "resume": false} {
		t.Run(name, func(t *testing.T) {
			s := newStage().checked()
			past := s.past(tell)
			s.events = nil
			s.at(centurion.EventTaskCompleted, "ses_T1", "tsk_T1", data{"status": "completed"})
			var plain strings.Builder
			if err := s.past(false).RunPlain(t.Context(), &plain, s.seqOf()); err != nil {
				t.Fatal(err)
			}
			m := s.view(t, 100, 24, Options{Past: past})
			told := strings.Join(m.pending, "\n")
			if strings.Contains(told, "check passed") != tell || !strings.Contains(told, "T1") {
				t.Errorf("it begins with\n%s", told)
			}
			if n := len(m.pending); tell && (n > 24 || n < 8) {
				t.Errorf("it begins with %d lines", n)
			}
			past = newStage().checked().past(tell)
			plain.Reset()
			if err := past.RunPlain(t.Context(), &plain, s.seqOf()); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(plain.String()), "\n")
			if strings.Contains(plain.String(), "check passed") != tell || !strings.Contains(lines[len(lines)-1], "worker T1") || len(lines) > plainPast+1 {
				t.Errorf("without a terminal it begins with\n%s", plain.String())
			}
		})
	}
}

// Old facts go, new ones stay.
func TestPastIsBounded(t *testing.T) {
	p := &Past{}
	for i := range 5 * maxPast {
		p.keep([]fact{{text: strings.Repeat("x", i%7)}})
	}
	if n := len(p.facts); n < maxPast || n > 2*maxPast {
		t.Errorf("%d facts are kept", n)
	}
}

// A resized terminal is cleared and told anew, because it has broken the frame's lines.
func TestResize(t *testing.T) {
	s := newStage().checked()
	m := s.view(t, 100, 30, Options{})
	m.pending = nil // all was printed
	for range settleFrames {
		m.Update(tickMsg(s.now))
	}
	if _, cmd := newLive(t.Context(), Options{}).Update(tea.WindowSizeMsg{Width: 100, Height: 30}); clears(cmd) {
		t.Error("the first size clears the screen before a frame stands on it")
	}
	_, cmd := m.Update(tea.WindowSizeMsg{Width: 100, Height: 30})
	if m.retell || cmd != nil {
		t.Error("the same size clears the screen")
	}
	if _, cmd = m.Update(tea.WindowSizeMsg{Width: 60, Height: 20}); !clears(cmd) {
		t.Error("the screen is not cleared")
	}
	m.Update(tickMsg(s.now))
	told := strings.Join(m.pending, "\n")
	if !strings.Contains(told, "check passed") || len(m.pending) >= 20 {
		t.Errorf("%d lines are told again:\n%s", len(m.pending), told)
	}
	for _, l := range append(m.pending, strings.Split(m.content, "\n")...) {
		if text.Width(l) > 60 {
			t.Errorf("%q is wider than the terminal", l)
		}
	}
	m.pending = nil
	if m.Update(tickMsg(s.now)); len(m.pending) > 0 {
		t.Errorf("told once more: %q", m.pending)
	}
}

// clears reports whether a command clears the screen.
func clears(cmd tea.Cmd) bool {
	if cmd == nil {
		return false
	}
	switch msg := cmd().(type) {
	case tea.BatchMsg:
		if slices.ContainsFunc(msg, clears) {
			return true
		}
	default:
		return msg == tea.ClearScreen()
	}
	return false
}

// One name for a task from its first event to its end, and "needs you" where somebody has to answer.
func TestTaskHasOneName(t *testing.T) {
	s := newStage().start()
	s.at(centurion.EventTaskQueued, "", "tsk_9", data{"agent": "worker", "title": "Look", "name": "w7", "status": "queued"}).
		at(centurion.EventSessionCreated, "ses_9", "tsk_9", data{"agent": "worker", "address": "0/3"}).
		at(centurion.EventTaskStarted, "ses_9", "tsk_9", data{"status": "running", "name": "w7"}).
		at(centurion.EventTaskFailed, "ses_9", "tsk_9", data{"status": "failed", "name": "w7", "reason": "no luck"})
	var plain strings.Builder
	if err := RunPlain(t.Context(), &plain, s.seqOf()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(plain.String(), "worker w7"); got < 2 || strings.Contains(plain.String(), "0/3") {
		t.Errorf("told as\n%s", plain.String())
	}
	var list strings.Builder
	missions := []centurion.Mission{{ID: "msn_1", Goal: "one", Status: centurion.MissionRunning}, {ID: "msn_2", Goal: "two", Status: centurion.MissionRunning}}
	if err := Missions(&list, missions, ShowOptions{NeedsYou: map[string]bool{"msn_1": true}}); err != nil {
		t.Fatal(err)
	}
	if first, second, _ := strings.Cut(list.String(), "\n"); !strings.Contains(first, "needs you") || !strings.Contains(second, "running  ") {
		t.Errorf("listed as\n%s", list.String())
	}
}
