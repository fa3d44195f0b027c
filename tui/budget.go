package tui

import (
	"fmt"
	"time"

	"centurion"
	"centurion/text"
)

// limits are a mission's limits with the usage that the lines above do not show.
func limits(m *centurion.Mission) []string {
	o := m.Options
	b := centurion.TaskBudget{Cost: o.MaxCost, Tokens: o.MaxTokens, Rounds: o.MaxRounds, ToolCalls: o.MaxToolCalls}
	elapsed := text.Span(text.Millis(m.ElapsedMS)) + " of " + text.Span(text.Millis(int64(o.MaxDuration)))
	return spentOf(b, m.Usage, m.Rounds, m.ToolCalls, text.When(o.MaxDuration > 0, elapsed))
}

// spentOf formats the usage of each limit. That of time comes formatted.
func spentOf(b centurion.TaskBudget, u centurion.Usage, rounds, calls int, elapsed string) []string {
	return text.Filled(
		text.When(b.Cost > 0, text.USD(u.USD)+" of "+text.USD(b.Cost)),
		text.When(b.Tokens > 0, fmt.Sprintf("%s of %s tokens", text.Tokens(u.Tokens.Total()), text.Tokens(b.Tokens))),
		text.When(b.Rounds > 0, fmt.Sprintf("%d of %s", rounds, centurion.Count(b.Rounds, "round"))),
		text.When(b.ToolCalls > 0, fmt.Sprintf("%d of %s", calls, centurion.Count(b.ToolCalls, "tool call"))),
		elapsed,
	)
}

// reserved describes the remaining reservations of a mission's living tasks.
func reserved(m *centurion.Mission) string {
	r := m.Reserved
	if r.Tasks == 0 {
		return ""
	}
	return text.Dots(
		text.When(r.USD > 0, text.USD(r.USD)),
		text.When(r.Tokens > 0, text.Tokens(r.Tokens)+" tokens"),
		text.When(r.Rounds > 0, centurion.Count(r.Rounds, "round")),
		"by "+centurion.Count(r.Tasks, "task"),
	)
}

// taskBudget is a task's own budget with its usage.
func taskBudget(t *centurion.Task) []string {
	minutes := time.Duration(t.Budget.Minutes * float64(time.Minute))
	return spentOf(t.Budget, t.Usage, t.Rounds, t.ToolCalls, text.When(minutes > 0, "at most "+text.Span(minutes)))
}
