package centurion

import "cmp"

// TaskBudget is the limits of one task. A zero field sets no limit of its own; the mission's limits apply in any case. Cost, Tokens and
// Rounds, where set, are reserved completely when the task starts.
type TaskBudget struct {
	Cost      float64 `json:"cost,omitempty"`       // USD; meaningless for a model without a price
	Tokens    int64   `json:"tokens,omitempty"`     // of all its requests and answers
	Rounds    int     `json:"rounds,omitempty"`     // requests to models
	ToolCalls int     `json:"tool_calls,omitempty"` // calls that are run
	Minutes   float64 `json:"minutes,omitempty"`    // at work, without the time before its begin and pauses
}

// Or returns the budget with zero fields replaced by those of usual.
func (b TaskBudget) Or(usual TaskBudget) TaskBudget {
	return TaskBudget{Cost: cmp.Or(b.Cost, usual.Cost), Tokens: cmp.Or(b.Tokens, usual.Tokens),
		Rounds: cmp.Or(b.Rounds, usual.Rounds), ToolCalls: cmp.Or(b.ToolCalls, usual.ToolCalls), Minutes: cmp.Or(b.Minutes, usual.Minutes)}
}

// Reserved is the part of a mission's limits that only its living tasks may spend.
type Reserved struct {
	USD    float64 `json:"cost,omitempty"`
	Tokens int64   `json:"tokens,omitempty"`
	Rounds int     `json:"rounds,omitempty"`
	Tasks  int     `json:"tasks,omitempty"` // conversations with a reservation
}
