// Package brief writes what a mission tells its models: the first message of a task, the notice of its end, where the plan stands. It
// changes no plan and no task; what it tells of is read once for each text.
package brief

import (
	"context"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/review"
	"centurion/orchestrator/state"
	"centurion/store"
)

// Writer writes the texts of one mission.
type Writer struct {
	st    *state.Mission
	iso   *isolation.Checkouts
	plan  *plan.Plan
	judge *review.Judge
	past  Past
}

// Past is what a mission's events tell of its work.
type Past struct {
	Merges  func(context.Context) ([]centurion.Event, error)                    // to the mission's branch, oldest first
	Returns func(context.Context, store.EventQuery) ([]event.ReturnData, error) // why work of a task or session went back, oldest first
}

// New returns the writer of a mission.
func New(st *state.Mission, iso *isolation.Checkouts, plan *plan.Plan, judge *review.Judge, past Past) *Writer {
	return &Writer{st: st, iso: iso, plan: plan, judge: judge, past: past}
}
