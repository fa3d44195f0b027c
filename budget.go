package centurion

// TaskBudget is what one task may spend at most. A zero field sets no limit of its own; the mission's limits hold in any
// case. What is set of Cost, Tokens and Rounds is reserved whole when the task is started.
type TaskBudget struct {
	Cost      float64 `json:"cost,omitempty"`       // USD; without meaning for a model that has no price
	Tokens    int64   `json:"tokens,omitempty"`     // of all its requests and answers together
	Rounds    int     `json:"rounds,omitempty"`     // requests to models
	ToolCalls int     `json:"tool_calls,omitempty"` // calls that are run
	Minutes   float64 `json:"minutes,omitempty"`    // at work, without the time before it began and the time paused
}

// Reserved is what the living tasks of a mission may still spend, and nobody else.
type Reserved struct {
	USD    float64 `json:"cost,omitempty"`
	Tokens int64   `json:"tokens,omitempty"`
	Rounds int     `json:"rounds,omitempty"`
	Tasks  int     `json:"tasks,omitempty"` // conversations that hold something
}
