package orchestrator

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"centurion"
	"centurion/orchestrator/budget"
	"centurion/text"
)

// withDefaults is a task's budget, with the configured one for what it does not set.
func withDefaults(o, usual centurion.TaskBudget) centurion.TaskBudget {
	return centurion.TaskBudget{Cost: cmp.Or(o.Cost, usual.Cost), Tokens: cmp.Or(o.Tokens, usual.Tokens),
		Rounds: cmp.Or(o.Rounds, usual.Rounds), ToolCalls: cmp.Or(o.ToolCalls, usual.ToolCalls), Minutes: cmp.Or(o.Minutes, usual.Minutes)}
}

// budgetLine is what the Commander sees of the budget: what is spent, what tasks have reserved, and what is left.
func (m *mission) budgetLine(rec centurion.Mission) string {
	now := m.reserves.State()
	var b strings.Builder
	b.WriteString("Spent: ")
	if !rec.Usage.Unpriced {
		b.WriteString(text.Cost(rec.Usage))
		if now.Limit[budget.USD] > 0 {
			b.WriteString(" of " + text.USD(rec.Options.MaxCost))
		}
		b.WriteString(", ")
	}
	fmt.Fprintf(&b, "%d", rec.Usage.Tokens.Total())
	if now.Limit[budget.Tokens] > 0 {
		fmt.Fprintf(&b, " of %d", rec.Options.MaxTokens)
	}
	b.WriteString(" tokens")
	if now.Limit[budget.Rounds] > 0 {
		fmt.Fprintf(&b, ", %d of %d requests", rec.Rounds, rec.Options.MaxRounds)
	}
	if most := rec.Options.MaxToolCalls; most > 0 {
		fmt.Fprintf(&b, ", %d of %d tool calls", rec.ToolCalls, most)
	}
	if rec.Options.MaxDuration > 0 {
		left := time.Duration(rec.Options.MaxDuration-m.st.Elapsed()) * time.Millisecond
		fmt.Fprintf(&b, ", time left: %s", text.Took(left.Round(time.Minute)))
	}
	var reserved, left []string
	for i, n := range now.Held {
		d := budget.Dim(i)
		if now.Limit[d] == 0 {
			continue
		}
		if n > 0 {
			reserved = append(reserved, d.Say(n))
		}
		left = append(left, d.Say(max(0, now.Limit[d]-now.Spent[d]-n)))
	}
	if len(reserved) > 0 {
		fmt.Fprintf(&b, ". Reserved by %s: %s", centurion.Count(now.Holders, "task"), strings.Join(reserved, ", "))
	}
	if len(left) > 0 {
		fmt.Fprintf(&b, ". Left: %s", strings.Join(left, ", "))
	}
	return b.String()
}
