package centurion_test

import (
	"testing"

	"centurion"
)

// Each limit that a task has no own value for is the usual one, and only that.
func TestBudgetOr(t *testing.T) {
	t.Parallel()
	usual := centurion.TaskBudget{Cost: 1, Tokens: 2, Rounds: 3, ToolCalls: 4, Minutes: 5}
	full := centurion.TaskBudget{Cost: 10, Tokens: 20, Rounds: 30, ToolCalls: 40, Minutes: 50}
	for _, tt := range []struct{ own, usual, want centurion.TaskBudget }{
		{centurion.TaskBudget{}, usual, usual},
		{full, usual, full},
		{full, centurion.TaskBudget{}, full},
		{centurion.TaskBudget{Tokens: 20}, usual, centurion.TaskBudget{Cost: 1, Tokens: 20, Rounds: 3, ToolCalls: 4, Minutes: 5}},
		{centurion.TaskBudget{Cost: 10, Minutes: 50}, usual, centurion.TaskBudget{Cost: 10, Tokens: 2, Rounds: 3, ToolCalls: 4, Minutes: 50}},
	} {
		if got := tt.own.Or(tt.usual); got != tt.want {
			t.Errorf("%+v or %+v: %+v, want %+v", tt.own, tt.usual, got, tt.want)
		}
	}
}
