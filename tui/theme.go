package tui

import (
	"strings"

	"charm.land/lipgloss/v2"

	"centurion"
)

// tone is the meaning of a colour. Only the terminal's sixteen colours are used, so that the person's theme applies.
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

// theme paints text. The zero theme writes no escape sequences.
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

// roleTone is the accent of a role; custom agents have none.
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

// taskMark is a narrow character for a task's status, with its tone.
func taskMark(s centurion.TaskStatus) (string, tone) {
	look, ok := map[centurion.TaskStatus]struct {
		mark string
		tone tone
	}{
		centurion.TaskRunning: {"●", plain}, centurion.TaskWaiting: {"◦", dim}, centurion.TaskVerifying: {"◎", plain}, centurion.TaskMerging: {"⇅", plain},
		centurion.TaskCompleted: {"✓", good}, centurion.TaskFailed: {"✗", bad}, centurion.TaskCancelled: {"−", dim}, centurion.TaskBlocked: {"!", warn},
		centurion.StatusReverted: {"↶", warn}, centurion.StatusContinued: {"›", dim},
	}[s]
	if !ok {
		return "·", dim
	}
	return look.mark, look.tone
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
