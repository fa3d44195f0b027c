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

// ownBudgetError makes the error of a task that has used up its own budget. It ends the task and nothing else.
func ownBudgetError(format string, args ...any) error {
	return &centurion.Error{Kind: centurion.KindBudget, Msg: "the task's own budget of " + fmt.Sprintf(format, args...) + " is used up",
		Hint: "what it has done so far is kept; delegate the rest with a higher budget, or do it another way"}
}

// spentOwn ends the conversation's task because its own budget does not pay for the next request.
func (c *conversation) spentOwn(d budget.Dim) error {
	err := ownBudgetError("%s", d.Say(budget.Own(c.task.now.Load().Budget)[d]))
	c.task.cancel(err)
	return err
}

// withinOwn ends the conversation's task when it wanted more tool calls than its own budget has.
func (c *conversation) withinOwn() error {
	if c.task == nil || !c.task.refused.Load() {
		return nil
	}
	err := ownBudgetError("%s", centurion.Count(c.task.now.Load().Budget.ToolCalls, "tool call"))
	c.task.cancel(err)
	return err
}

// timed ends a task when the time of its own budget is over. The returned function stops that.
func (r *taskRun) timed() (stop func()) {
	t := r.now.Load()
	r.begun = time.Now()
	if t.Budget.Minutes <= 0 {
		return func() {}
	}
	most := time.Duration(t.Budget.Minutes * float64(time.Minute))
	timer := time.AfterFunc(most-time.Duration(t.ElapsedMS)*time.Millisecond, func() { r.cancel(ownBudgetError("%s", text.Took(most))) })
	return func() { timer.Stop() }
}

// left says what a task has left of its own budget: of money, tokens and requests always, of tool calls and time when it
// is less than a fifth.
func (r *taskRun) left() string {
	t := r.now.Load()
	b := t.Budget
	all := budget.OwnLeft(*t)
	if n := b.ToolCalls - t.ToolCalls; b.ToolCalls > 0 && n*5 < b.ToolCalls {
		all = append(all, centurion.Count(max(0, n), "tool call"))
	}
	if m := b.Minutes - float64(t.ElapsedMS+r.since())/60_000; b.Minutes > 0 && m*5 < b.Minutes {
		all = append(all, text.Took(time.Duration(max(0, m)*float64(time.Minute)).Round(time.Minute)))
	}
	if len(all) == 0 {
		return ""
	}
	return "Left of this task's budget: " + strings.Join(all, ", ") + ". When it is used up the task fails: end with your result before.\n"
}

// since is how long the task has been at work beyond what is recorded, in milliseconds.
func (r *taskRun) since() int64 {
	t := r.now.Load()
	return max(0, time.Since(r.begun).Milliseconds()-(t.ElapsedMS-r.before))
}

// worked is how long a task has been at work until now, in milliseconds; what is recorded of one that has not begun.
func (r *taskRun) worked(t centurion.Task) int64 {
	if r.begun.IsZero() {
		return t.ElapsedMS
	}
	return r.before + time.Since(r.begun).Milliseconds()
}

// spend adds what an answer has cost to the task's record.
func (r *taskRun) spend(t centurion.Task, u centurion.Usage) centurion.Task {
	t.Usage = t.Usage.Plus(u)
	t.Rounds++
	t.ElapsedMS = r.worked(t)
	r.now.Store(&t)
	return t
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
		left := time.Duration(rec.Options.MaxDuration-m.elapsed()) * time.Millisecond
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
