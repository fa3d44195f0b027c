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
	all := spentOf(centurion.TaskBudget{Cost: o.MaxCost, Tokens: o.MaxTokens, Rounds: o.MaxRounds, ToolCalls: o.MaxToolCalls}, m.Usage, m.Rounds, m.ToolCalls)
	if o.MaxDuration > 0 {
		all = append(all, fmt.Sprintf("%s of %s", text.Span(time.Duration(m.ElapsedMS)*time.Millisecond), text.Span(time.Duration(o.MaxDuration)*time.Millisecond)))
	}
	return all
}

// spentOf formats the usage of each limit, except time.
func spentOf(b centurion.TaskBudget, u centurion.Usage, rounds, calls int) []string {
	var all []string
	if b.Cost > 0 {
		all = append(all, text.USD(u.USD)+" of "+text.USD(b.Cost))
	}
	if b.Tokens > 0 {
		all = append(all, fmt.Sprintf("%s of %s tokens", text.Tokens(u.Tokens.Total()), text.Tokens(b.Tokens)))
	}
	if b.Rounds > 0 {
		all = append(all, fmt.Sprintf("%d of %s", rounds, centurion.Count(b.Rounds, "round")))
	}
	if b.ToolCalls > 0 {
		all = append(all, fmt.Sprintf("%d of %s", calls, centurion.Count(b.ToolCalls, "tool call")))
	}
	return all
}

// reserved describes the remaining reservations of a mission's living tasks.
func reserved(m *centurion.Mission) string {
	r := m.Reserved
	if r.Tasks == 0 {
		return ""
	}
	var all []string
	if r.USD > 0 {
		all = append(all, text.USD(r.USD))
	}
	if r.Tokens > 0 {
		all = append(all, text.Tokens(r.Tokens)+" tokens")
	}
	if r.Rounds > 0 {
		all = append(all, centurion.Count(r.Rounds, "round"))
	}
	return text.Dots(append(all, "by "+centurion.Count(r.Tasks, "task"))...)
}

// taskBudget is a task's own budget with its usage.
func taskBudget(t *centurion.Task) []string {
	all := spentOf(t.Budget, t.Usage, t.Rounds, t.ToolCalls)
	if b := t.Budget.Minutes; b > 0 {
		all = append(all, fmt.Sprintf("at most %s", text.Span(time.Duration(b*float64(time.Minute)))))
	}
	return all
}
