package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"centurion/text"
)

// refresh builds the frame.
func (m *live) refresh() {
	if m.done {
		return
	}
	if m.leaving { // an impatient person is not left with a half-drawn view
		m.done = true
		m.content = "stopped at once; the mission can be resumed\n"
		return
	}
	if m.ending && len(m.pending) == 0 && !m.printing {
		m.done = true
		m.content = m.lastFrame()
		return
	}
	f := frame{board: m.story.board, theme: m.theme, now: m.o.Now(), width: m.w, height: max(m.h-freeLines, min(m.h-1, 8), 1), notice: m.notice}
	if m.o.Now().Before(m.toastEnd) {
		f.toast = m.toast
	}
	if m.dialog != nil {
		f.dialog = m.dialog.lines(m.theme, max(m.w, minWidth), max(4, f.height-1))
	}
	f.prompt = m.prompt(max(m.w, minWidth))
	lines := f.lines()
	m.heights[m.frames%settleFrames] = len(lines)
	m.content = strings.Join(lines, "\n")
}

// lastFrame is the frame that stays on the screen. It ends in an empty line, which bubbletea clears when it leaves.
func (m *live) lastFrame() string {
	b := m.story.board
	if b.End == nil {
		return strings.Join(frame{board: b, theme: m.theme, now: m.o.Now(), width: m.w, height: 4}.lines(), "\n") + "\n"
	}
	var out []string
	for _, l := range append([]string{rule(m.theme, max(m.w, minWidth))}, summary(b, m.theme)...) {
		out = append(out, text.Wrap(l, max(m.w, minWidth))...)
	}
	return strings.Join(out, "\n") + "\n"
}

// tallest is the height of the tallest recently drawn frame.
func (m *live) tallest() int { return slices.Max(m.heights[:]) }

// print moves lines above the frame: one batch at a time, because commands run concurrently, and never more than fit above the frame,
// because otherwise the terminal could not make room for them.
func (m *live) print() tea.Cmd {
	if m.done {
		return tea.Quit
	}
	if m.printing || len(m.pending) == 0 || m.frames < settleFrames {
		return nil
	}
	n := min(len(m.pending), max(1, m.h-m.tallest()-1))
	batch := strings.Join(m.pending[:n], "\n")
	m.pending = m.pending[n:]
	m.printing = true
	return tea.Sequence(tea.Println(batch), func() tea.Msg { return printedMsg{} })
}
