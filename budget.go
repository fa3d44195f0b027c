package centurion

import "cmp"

// TaskBudget is what one task may spend at most. A zero field sets no limit of its own; the mission's limits hold in any
// case. What is set of Cost, Tokens and Rounds is reserved whole when the task is started.
type TaskBudget struct {
	Cost      float64 `json:"cost,omitempty"`       // USD; without meaning for a model that has no price
	Tokens    int64   `json:"tokens,omitempty"`     // of all its requests and answers together
	Rounds    int     `json:"rounds,omitempty"`     // requests to models
	ToolCalls int     `json:"tool_calls,omitempty"` // calls that are run
	Minutes   float64 `json:"minutes,omitempty"`    // at work, without the time before it began and the time paused
}

// Or is the budget, with the usual one for what it does not set.
func (b TaskBudget) Or(usual TaskBudget) TaskBudget {
	return TaskBudget{Cost: cmp.Or(b.Cost, usual.Cost), Tokens: cmp.Or(b.Tokens, usual.Tokens),
		Rounds: cmp.Or(b.Rounds, usual.Rounds), ToolCalls: cmp.Or(b.ToolCalls, usual.ToolCalls), Minutes: cmp.Or(b.Minutes, usual.Minutes)}
}

// Reserved is what the living tasks of a mission may still spend, and nobody else.
type Reserved struct {
	USD    float64 `json:"cost,omitempty"`
	Tokens int64   `json:"tokens,omitempty"`
	Rounds int     `json:"rounds,omitempty"`
	Tasks  int     `json:"tasks,omitempty"` // conversations that hold something
}
