// Package review decides whether the work of a mission is proven: which done items are, which reviews count, and what is missing before
// the end. It decides from a [View] that is read once, and changes neither the plan nor tasks.
package review

import (
	"context"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/store"
)

// View is the state of a mission at one moment, for judging its proof.
type View struct {
	Mission  centurion.Mission
	Plan     plan.View
	Unread   error // why the plan could not be read; reported elsewhere
	Tasks    []centurion.Task
	Receipts []centurion.Receipt
	// Own is when work of the mission's own agent was last merged.
	Own time.Time
	// MayReview is true if the mission's own agent can request reviews.
	MayReview bool
}

// Read reads a mission that has the plan p.
func Read(ctx context.Context, st *store.Store, mission string, p plan.View) (v View, err error) {
	v.Plan = p
	if v.Mission, err = st.Mission(ctx, mission); err != nil {
		return v, err
	}
	if v.Tasks, err = st.Tasks(ctx, mission); err != nil {
		return v, err
	}
	v.Receipts, err = st.Receipts(ctx, mission)
	v.Own = v.Mission.OwnLanding()
	return v, err
}

// isolated is true if the mission's writers have their own checkouts.
func (v View) isolated() bool { return v.Mission.Isolation == centurion.IsolationWorktree }

// Judge judges a running mission.
type Judge struct {
	st   *state.Mission
	plan *plan.Plan
	// Owner is the mission's own agent, once its conversation is open.
	Owner agents.Agent
}

// New returns the judge of a mission.
func New(st *state.Mission, plan *plan.Plan) *Judge { return &Judge{st: st, plan: plan} }

// Look reads the current plan and mission.
func (j *Judge) Look(ctx context.Context) (View, error) {
	p, unread := j.plan.Read()
	v, err := j.At(ctx, p)
	v.Unread = unread
	return v, err
}

// At is [Judge.Look] with a plan read before.
func (j *Judge) At(ctx context.Context, p plan.View) (View, error) {
	v, err := Read(ctx, j.st.Store, j.st.ID, p)
	_, none := j.st.Cast.Find(agents.Reviewer)
	v.MayReview = none == nil && j.Owner.MayDelegate(agents.Reviewer)
	return v, err
}

// Count records the number of done items with and without proof or review, the items in doubt, and the reviews that passed them.
func (j *Judge) Count(ctx context.Context, p plan.View) error {
	v, err := j.At(ctx, p)
	if err != nil {
		return err
	}
	counted := v.Count(ctx, j.st.Store)
	_, err = j.st.Record(ctx, func(rec *centurion.Mission) { rec.Tally = counted })
	return err
}

// KeepEvidence records the evidence that the mission achieved its goal; dir is the project's directory.
func (j *Judge) KeepEvidence(ctx context.Context, dir string) (centurion.Mission, error) {
	v, err := j.Look(ctx)
	if err != nil {
		return v.Mission, err
	}
	return j.st.Record(ctx, func(rec *centurion.Mission) { rec.Evidence = v.Evidence(dir) })
}
