package tui

import (
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"centurion"
	"centurion/event/view"
	"centurion/guard"
	"centurion/orchestrator/mail"
	"centurion/text"
)

// Writer sends the person's messages to the Commander. Write is called in its own goroutine and may block until the message is stored;
// an error is shown, and the person can retry or discard the message.
type Writer interface {
	Write(ctx context.Context, text string) error
}

// line is the input line for messages to the Commander. While it is open dialogs take no keys, so that a message does not answer an ask
// that has just appeared.
type line struct {
	input input
	sent  bool // it is being sent
	err   string
}

// wroteMsg reports that a line was stored, or why not.
type wroteMsg struct{ err error }

// lineKey handles a key while the line is open.
func (m *live) lineKey(name, text string) tea.Cmd {
	l := m.line
	if l.sent {
		return nil
	}
	switch name {
	case "esc":
		return m.closeLine()
	case "enter":
		typed := strings.TrimSpace(string(l.input.text))
		if typed == "" {
			return m.closeLine()
		}
		l.sent, l.err = true, ""
		return func() tea.Msg {
			return wroteMsg{guard.Call("write to the commander", func() error { return m.o.Writer.Write(m.ctx, typed) })}
		}
	}
	l.input.key(name, text)
	return nil
}

// closeLine returns the keys to the dialogs.
func (m *live) closeLine() tea.Cmd {
	m.line = nil
	return m.nextDialog()
}

func (m *live) wrote(err error) tea.Cmd {
	if m.line == nil {
		return nil
	}
	if err != nil {
		m.line.sent, m.line.err = false, errText(err)
		return nil
	}
	if strings.TrimSpace(string(m.line.input.text)) != mail.CompactWord { // which is not a message for the Commander
		m.unread = true
	}
	return m.closeLine()
}

// hears notices when a message has reached the Commander's history: from then on it is shown above the frame.
func (m *live) hears(e centurion.Event) {
	if e.Type == centurion.EventMessageCreated && e.Session == m.story.board.Session && view.Read(e).Origin == string(centurion.OriginPerson) {
		m.unread = false
	}
}

// prompt is the last lines of the frame: the open input line, or how to open it.
func (m *live) prompt(w int) []string {
	l, t := m.line, m.theme
	switch {
	case m.dialog != nil:
		return nil
	case l == nil && (m.esc.sent || !m.esc.armed.IsZero() && strings.HasPrefix(m.escHint(), "esc")):
		return []string{t.paint(warn, text.Fit("  "+m.escHint(), w))}
	case m.o.Writer == nil:
		return nil
	case l == nil && m.unread:
		return []string{t.paint(dim, text.Fit("  sent; "+m.story.board.Owner()+" reads it after what it is at", w))}
	case l == nil:
		return []string{t.paint(dim, text.Fit("  "+text.Dots("[m] write to "+m.story.board.Owner(), m.escHint()), w))}
	}
	hint := t.paint(dim, text.Fit("  enter sends it to "+m.story.board.Owner()+" · esc drops it", w))
	switch {
	case l.sent:
		hint = t.paint(dim, "  sending…")
	case l.err != "":
		hint = t.paint(bad, text.Fit("  "+l.err, w))
	case len(m.story.board.Asks) > 0:
		hint = t.paint(warn, text.Fit("  an agent needs you: send this, or drop it with esc first", w))
	}
	return []string{"› " + l.input.line(w-3), hint}
}
