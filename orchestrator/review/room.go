// Package review decides what shows that the work of a mission is done: which done items are proven, which reviews count, what is
// missing before the end. It decides from a [View] that is read once, and changes neither the plan nor a task.
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

// View is a mission in one moment, as its proof is judged by it.
type View struct {
	Mission  centurion.Mission
	Plan     plan.View
	Unread   error // why the plan could not be read; it is told elsewhere
	Tasks    []centurion.Task
	Receipts []centurion.Receipt
	// Own is when work of the mission's own agent was merged last.
	Own time.Time
	// MayReview says that the mission's own agent can have its work reviewed at all.
	MayReview bool
}

// Read looks at a mission with the plan p.
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

// isolated says that the mission's writers have checkouts of their own.
func (v View) isolated() bool { return v.Mission.Isolation == centurion.IsolationWorktree }

// Judge looks at a running mission.
type Judge struct {
	st   *state.Mission
	plan *plan.Plan
	// Owner is the mission's own agent, once its conversation is open.
	Owner agents.Agent
}

// New returns the judge of a mission.
func New(st *state.Mission, plan *plan.Plan) *Judge { return &Judge{st: st, plan: plan} }

// Look reads the plan and the mission as they are now.
func (j *Judge) Look(ctx context.Context) (View, error) {
	p, unread := j.plan.Read()
	v, err := j.At(ctx, p)
	v.Unread = unread
	return v, err
}

// At is [Judge.Look] with a plan that was read before.
func (j *Judge) At(ctx context.Context, p plan.View) (View, error) {
	v, err := Read(ctx, j.st.Store, j.st.ID, p)
	_, none := j.st.Cast.Find(agents.Reviewer)
	v.MayReview = none == nil && j.Owner.MayDelegate(agents.Reviewer)
	return v, err
}

// Count records how many items are done with a proof or a review and how many without, which are in doubt, and which review has passed
// them.
func (j *Judge) Count(ctx context.Context, p plan.View) error {
	v, err := j.At(ctx, p)
	if err != nil {
		return err
	}
	counted := v.Count(ctx, j.st.Store)
	_, err = j.st.Record(ctx, counted.Put)
	return err
}

// KeepEvidence records what shows that the mission did what it was to do; dir is that of the project.
func (j *Judge) KeepEvidence(ctx context.Context, dir string) (centurion.Mission, error) {
	v, err := j.Look(ctx)
	if err != nil {
		return v.Mission, err
	}
	return j.st.Record(ctx, func(rec *centurion.Mission) { rec.Evidence = v.Evidence(dir) })
}
