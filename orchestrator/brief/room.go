// Package brief writes what a mission tells its models: the first message of a task, the notice of its end, where the plan stands. It
// changes no plan and no task; what it tells of is read once for each text.
package brief

import (
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/review"
	"centurion/orchestrator/state"
)

// Writer writes the texts of one mission.
type Writer struct {
	st    *state.Mission
	iso   *isolation.Checkouts
	plan  *plan.Plan
	judge *review.Judge
}

// New returns the writer of a mission.
func New(st *state.Mission, iso *isolation.Checkouts, plan *plan.Plan, judge *review.Judge) *Writer {
	return &Writer{st: st, iso: iso, plan: plan, judge: judge}
}
