package state

import (
	"fmt"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/budget"
	"centurion/text"
)

// budgetError makes the error of a reached limit.
func budgetError(format string, args ...any) error {
	return &centurion.Error{Kind: centurion.KindBudget, Msg: fmt.Sprintf(format, args...), Err: nil,
		Hint: "continue with a higher limit: centurion resume --max-cost, --max-tokens, --max-duration, --max-rounds or --max-tool-calls"}
}

// AtLimit stops the mission because the rest of one of its limits does not cover a request.
func (m *Mission) AtLimit(d budget.Dim) error {
	rec := m.Spent.Load()
	o, u := rec.Options, rec.Usage
	switch d {
	case budget.USD:
		return m.exceed(event.BudgetData{Limit: "max_cost", Spent: u.USD, Max: o.MaxCost}, budgetError("the cost limit of %s is reached", text.USD(o.MaxCost)))
	case budget.Tokens:
		return m.exceed(event.BudgetData{Limit: "max_tokens", Spent: float64(u.Tokens.Total()), Max: float64(o.MaxTokens)},
			budgetError("the token limit (%d) is reached", o.MaxTokens))
	}
	return m.exceed(event.BudgetData{Limit: "max_rounds", Spent: float64(rec.Rounds), Max: float64(o.MaxRounds)},
		budgetError("the request limit (%d) is reached", o.MaxRounds))
}

// WithinTimeAndCalls stops the mission when its time or its tool calls are used up. The cost of a request is checked when it is reserved.
func (m *Mission) WithinTimeAndCalls() error {
	rec := m.Spent.Load()
	o := rec.Options
	switch {
	case o.MaxToolCalls > 0 && rec.ToolCalls >= o.MaxToolCalls:
		return m.exceed(event.BudgetData{Limit: "max_tool_calls", Spent: float64(rec.ToolCalls), Max: float64(o.MaxToolCalls)},
			budgetError("the limit of %d tool calls is reached", o.MaxToolCalls))
	case o.MaxDuration > 0 && m.Elapsed() >= o.MaxDuration:
		return m.TooLong(o.MaxDuration)
	}
	return nil
}

// TooLong stops the mission because it has worked for limit milliseconds.
func (m *Mission) TooLong(limit int64) error {
	return m.exceed(event.BudgetData{Limit: "max_duration", Spent: float64(limit), Max: float64(limit)},
		budgetError("the time limit of %s is reached", text.Took(text.Millis(limit))))
}

// exceed stops the mission at a limit. The first reached limit is reported when the mission has stopped.
func (m *Mission) exceed(d event.BudgetData, err error) error {
	m.mu.Lock()
	if m.over == nil {
		m.over = &d
	}
	m.mu.Unlock()
	m.End(err)
	return err
}

// Exceeded returns the first reached limit, or nil.
func (m *Mission) Exceeded() *event.BudgetData {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.over
}
