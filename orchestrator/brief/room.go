// Package brief writes the texts that a mission sends to its models: the first message of a task, the notice of its end, the status of
// the plan. It changes no plan and no task, and reads its data once for each text.
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
