package tui

import (
	"fmt"
	"time"

	"centurion"
)

// limits are a mission's limits with what is spent of each that the lines above do not tell.
func limits(m *centurion.Mission) []string {
	o := m.Options
	var all []string
	if o.MaxCost > 0 {
		all = append(all, fmt.Sprintf("$%.2f of $%.2f", m.Usage.USD, o.MaxCost))
	}
	if o.MaxTokens > 0 {
		all = append(all, fmt.Sprintf("%s of %s tokens", count(m.Usage.Tokens.Total()), count(o.MaxTokens)))
	}
	if o.MaxRounds > 0 {
		all = append(all, fmt.Sprintf("%d of %s", m.Rounds, centurion.Count(o.MaxRounds, "round")))
	}
	if o.MaxToolCalls > 0 {
		all = append(all, fmt.Sprintf("%d of %s", m.ToolCalls, centurion.Count(o.MaxToolCalls, "tool call")))
	}
	if o.MaxDuration > 0 {
		all = append(all, fmt.Sprintf("%s of %s", span(time.Duration(m.ElapsedMS)*time.Millisecond), span(time.Duration(o.MaxDuration)*time.Millisecond)))
	}
	return all
}

// reserved says what the living tasks of a mission may still spend.
func reserved(m *centurion.Mission) string {
	r := m.Reserved
	if r.Tasks == 0 {
		return ""
	}
	var all []string
	if r.USD > 0 {
		all = append(all, fmt.Sprintf("$%.2f", r.USD))
	}
	if r.Tokens > 0 {
		all = append(all, count(r.Tokens)+" tokens")
	}
	if r.Rounds > 0 {
		all = append(all, centurion.Count(r.Rounds, "round"))
	}
	return dots(append(all, "by "+centurion.Count(r.Tasks, "task"))...)
}

// taskBudget is a task's own budget with what is spent of it.
func taskBudget(t *centurion.Task) []string {
	b := t.Budget
	var all []string
	if b.Cost > 0 {
		all = append(all, fmt.Sprintf("$%.2f of $%.2f", t.Usage.USD, b.Cost))
	}
	if b.Tokens > 0 {
		all = append(all, fmt.Sprintf("%s of %s tokens", count(t.Usage.Tokens.Total()), count(b.Tokens)))
	}
	if b.Rounds > 0 {
		all = append(all, fmt.Sprintf("%d of %s", t.Rounds, centurion.Count(b.Rounds, "round")))
	}
	if b.ToolCalls > 0 {
		all = append(all, fmt.Sprintf("%d of %s", t.ToolCalls, centurion.Count(b.ToolCalls, "tool call")))
	}
	if b.Minutes > 0 {
		all = append(all, fmt.Sprintf("at most %s", span(time.Duration(b.Minutes*float64(time.Minute)))))
	}
	return all
}
