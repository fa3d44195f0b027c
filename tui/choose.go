package tui

import (
	"context"
	"errors"
	"io"
	"strings"

	tea "charm.land/bubbletea/v2"

	"centurion"
	"centurion/guard"
	"centurion/text"
)

// Choice is a question answered by one key.
type Choice struct {
	Text    string // the question, one line
	Keys    string // the letters that answer it
	Default string // the answer for enter, esc and ctrl-c, and if ctx ends
	In      io.Reader
	Out     io.Writer // must be a terminal, as In
	Env     []string
}

// Choose asks and returns the pressed letter.
func Choose(ctx context.Context, c Choice) (string, error) {
	m := &choosing{Choice: c, answer: c.Default}
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(c.In), tea.WithOutput(c.Out), tea.WithEnvironment(c.Env), tea.WithoutSignalHandler())
	err := guard.Call("ask", func() error {
		_, err := p.Run()
		return err
	})
	if err != nil && ctx.Err() == nil && !errors.Is(err, tea.ErrProgramKilled) {
		return c.Default, &centurion.Error{Op: "ask on the terminal", Kind: centurion.KindInternal, Err: err}
	}
	return m.answer, nil
}

type choosing struct {
	Choice
	answer string
	done   bool
}

// Init does nothing.
func (m *choosing) Init() tea.Cmd { return nil }

// View shows the question, and then the answer.
func (m *choosing) View() tea.View {
	s := text.Clean(m.Text) + " "
	if m.done {
		s += m.answer
	}
	return tea.NewView(s)
}

// Update handles a key.
func (m *choosing) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	k, ok := msg.(tea.KeyPressMsg)
	if !ok {
		return m, nil
	}
	switch k.String() {
	case "enter", "esc", "ctrl+c":
	default:
		if len(k.Text) != 1 || !strings.Contains(strings.ToLower(m.Keys), strings.ToLower(k.Text)) {
			return m, nil
		}
		m.answer = strings.ToLower(k.Text)
	}
	m.done = true
	return m, tea.Quit
}
