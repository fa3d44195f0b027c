package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"centurion/guard"
)

// Aborter ends the turn of the mission's first session, but not the mission. Abort is called in its own goroutine and returns when the
// turn has ended.
type Aborter interface {
	Abort(ctx context.Context) error
}

// esc is the state of the key esc: the first press asks, a second one soon after stops the answer.
type esc struct {
	armed time.Time // time of the first press; zero before
	sent  bool      // the turn is being ended
}

// escSpan is how long a second press counts: long enough to read the question, short enough not to be accidental.
const escSpan = 3 * time.Second

// abortedMsg reports that the turn has ended, or why not.
type abortedMsg struct{ err error }

// escKey stops the answer of the mission's first session on its second press.
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

// escHint describes the current effect of esc, "" if there is none.
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
