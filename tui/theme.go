package tui

import (
	"cmp"
	"strings"

	"charm.land/lipgloss/v2"

	"centurion"
	"centurion/text"
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

// styles are the looks of the tones but plain.
var styles = [...]lipgloss.Style{
	strong:    lipgloss.NewStyle().Bold(true),
	dim:       lipgloss.NewStyle().Faint(true),
	good:      lipgloss.NewStyle().Foreground(lipgloss.Green),
	bad:       lipgloss.NewStyle().Foreground(lipgloss.Red),
	warn:      lipgloss.NewStyle().Foreground(lipgloss.Yellow),
	commander: lipgloss.NewStyle().Foreground(lipgloss.Magenta),
	planner:   lipgloss.NewStyle().Foreground(lipgloss.Cyan),
	worker:    lipgloss.NewStyle().Foreground(lipgloss.Blue),
	reviewer:  lipgloss.NewStyle().Foreground(lipgloss.BrightMagenta),
}

// theme paints text. The zero theme writes no escape sequences.
type theme struct{ color bool }

func (t theme) paint(c tone, s string) string {
	if !t.color || s == "" || c == plain {
		return s
	}
	return styles[c].Render(s)
}

// paintAll paints each line.
func (t theme) paintAll(c tone, lines []string) []string {
	return text.Each(lines, func(l string) string { return t.paint(c, l) })
}

// prefixed puts a prefix before each line.
func prefixed(prefix string, lines []string) []string {
	return text.Each(lines, func(l string) string { return prefix + l })
}

// roleTone is the accent of a role; custom agents have none.
func roleTone(agent string) tone {
	roles := map[string]tone{"commander": commander, "planner": planner, "worker": worker, "reviewer": reviewer}
	return cmp.Or(roles[strings.ToLower(agent)], strong)
}

// taskMark is a narrow character for a task's status, with its tone.
func taskMark(s centurion.TaskStatus) (string, tone) {
	type look struct {
		mark string
		tone tone
	}
	l := cmp.Or(map[centurion.TaskStatus]look{
		centurion.TaskRunning: {"●", plain}, centurion.TaskWaiting: {"◦", dim}, centurion.TaskVerifying: {"◎", plain}, centurion.TaskMerging: {"⇅", plain},
		centurion.TaskCompleted: {"✓", good}, centurion.TaskFailed: {"✗", bad}, centurion.TaskCancelled: {"−", dim}, centurion.TaskBlocked: {"!", warn},
		centurion.StatusReverted: {"↶", warn}, centurion.StatusContinued: {"›", dim},
	}[s], look{"·", dim})
	return l.mark, l.tone
}

func missionTone(s centurion.MissionStatus) tone {
	return map[centurion.MissionStatus]tone{
		centurion.MissionCompleted: good, centurion.MissionFailed: bad, centurion.MissionPaused: warn,
		centurion.MissionBlocked: warn, centurion.MissionCancelled: dim,
	}[s]
}
