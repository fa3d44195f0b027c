package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"centurion/guard"
)

// Aborter ends the turn of the mission's first session, not the mission. Abort is called from a goroutine of its own and
// returns when the turn has ended.
type Aborter interface {
	Abort(ctx context.Context) error
}

// esc is what the key esc does: pressed once it asks, pressed again soon it stops the answer.
type esc struct {
	armed time.Time // when it was pressed first; zero before
	sent  bool      // the turn is being ended
}

// escSpan is how long the second press counts: long enough to read the question, too short to be another matter.
const escSpan = 3 * time.Second

// abortedMsg says that the turn has ended, or why not.
type abortedMsg struct{ err error }

// escKey stops the answer of the mission's first session at its second press.
func (m *live) escKey() tea.Cmd {
	now := m.o.Now()
	switch {
	case m.o.Aborter == nil || m.ending || m.esc.sent:
		return nil
	case m.esc.armed.IsZero() || now.Sub(m.esc.armed) > escSpan:
		m.esc.armed = now
		return nil
	}
	m.esc = esc{sent: true}
	return func() tea.Msg {
		return abortedMsg{guard.Call("stop the answer", func() error { return m.o.Aborter.Abort(m.ctx) })}
	}
}

func (m *live) aborted(err error) {
	m.esc = esc{}
	m.notice = ""
	if err != nil {
		m.notice = errText(err)
	}
}

// escHint says what esc would do now, "" if nothing.
func (m *live) escHint() string {
	switch {
	case m.o.Aborter == nil || m.ending:
		return ""
	case m.esc.sent:
		return "stopping the answer…"
	case !m.esc.armed.IsZero() && m.o.Now().Sub(m.esc.armed) <= escSpan:
		return "esc again to stop the answer"
	}
	return "[esc] stop the answer"
}
