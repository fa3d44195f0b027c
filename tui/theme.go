package tui

import (
	"strings"

	"charm.land/lipgloss/v2"

	"centurion"
)

// tone is what a colour means. The sixteen colours of the terminal are used, so that the person's own theme holds.
type tone int

const (
	plain tone = iota
	strong
	dim
	good
	bad
	warn
	commander
	planner
	worker
	reviewer
)

// theme paints. The zero theme writes no escape sequence at all.
type theme struct{ color bool }

func (t theme) paint(c tone, s string) string {
	if !t.color || s == "" || c == plain {
		return s
	}
	st := lipgloss.NewStyle()
	switch c {
	case strong:
		st = st.Bold(true)
	case dim:
		st = st.Faint(true)
	case good:
		st = st.Foreground(lipgloss.Green)
	case bad:
		st = st.Foreground(lipgloss.Red)
	case warn:
		st = st.Foreground(lipgloss.Yellow)
	case commander:
		st = st.Foreground(lipgloss.Magenta)
	case planner:
		st = st.Foreground(lipgloss.Cyan)
	case worker:
		st = st.Foreground(lipgloss.Blue)
	case reviewer:
		st = st.Foreground(lipgloss.BrightMagenta)
	}
	return st.Render(s)
}

// roleTone is the accent of a role; agents of a person's own have none.
func roleTone(agent string) tone {
	switch strings.ToLower(agent) {
	case "commander":
		return commander
	case "planner":
		return planner
	case "worker":
		return worker
	case "reviewer":
		return reviewer
	}
	return strong
}

// taskMark is one narrow character for a task's state, and its tone.
func taskMark(s centurion.TaskStatus) (string, tone) {
	switch s {
	case centurion.TaskRunning:
		return "●", plain
	case centurion.TaskWaiting:
		return "◦", dim
	case centurion.TaskVerifying:
		return "◎", plain
	case centurion.TaskMerging:
		return "⇅", plain
	case centurion.TaskCompleted:
		return "✓", good
	case centurion.TaskFailed:
		return "✗", bad
	case centurion.TaskCancelled:
		return "−", dim
	case centurion.TaskBlocked:
		return "!", warn
	case centurion.StatusReverted:
		return "↶", warn
	case centurion.StatusContinued:
		return "›", dim
	}
	return "·", dim
}

func missionTone(s centurion.MissionStatus) tone {
	switch s {
	case centurion.MissionCompleted:
		return good
	case centurion.MissionFailed:
		return bad
	case centurion.MissionPaused, centurion.MissionBlocked:
		return warn
	case centurion.MissionCancelled:
		return dim
	}
	return plain
}
