package orchestrator

import (
	"context"
	"errors"
	"slices"
	"strings"

	"centurion"
	"centurion/agents"
	"centurion/failpoint"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/review"
	"centurion/orchestrator/state"
	"centurion/session"
	"centurion/store"
)

// endTask records how the task ended, and what its parent has to be told. A task that ended because the mission stops
// is queued again: it is tried anew when the mission is resumed.
func (m *mission) endTask(ctx context.Context, r *state.Run, out session.Outcome, err error) error {
	if cause := state.CauseOf(ctx); cause != nil && err != nil {
		err = cause
	}
	if centurion.KindOf(err) == centurion.KindDisk {
		m.st.End(err)
	}
	status := m.endStatus(err)
	after := context.WithoutCancel(ctx) // the end is recorded although the work was stopped
	t, terr := m.h.cfg.Store.Task(after, r.ID)
	if terr != nil {
		return terr
	}
	m.takeOver(after, r, t, status, &out)
	rejected, void := state.Rejects(t.Agent, status, out.Text), state.JudgesNothing(t.Agent, status, out.Text)
	if rejected && t.Reviews && m.st.Fences.Check(r.ID, r.Attempt) == nil {
		// Before the end is recorded: should the host die in between, the review ends once more and finds it open.
		if err := m.plan.MarkItem(after, t.Item, plan.OpenAgain); err != nil {
			return err
		}
	}
	frees, ferr := m.plan.WouldFree(after, t, status)
	if ferr != nil {
		return ferr
	}
	p, _ := m.plan.Read() // the plan's own fault is told elsewhere
	// The store comes first: what it says is put right in the plan at the next start, but a tick without a completed task
	// would have the work done twice.
	if err := m.h.cfg.Store.Update(after, func(tx *store.Tx) error {
		if err := m.st.Fences.Check(r.ID, r.Attempt); err != nil {
			return err
		}
		doubtful, derr := m.endsInDoubt(tx, p, t, status)
		if derr != nil {
			return derr
		}
		return m.recordEnd(tx, r, p, status, out, err, frees || rejected || void || doubtful)
	}); err != nil {
		if errors.Is(err, state.ErrSuperseded) { // the task's end is the newer attempt's to tell
			return m.st.RecordRefusal(after, r.ID, t.Session, r.Attempt, "its result")
		}
		return err
	}
	failpoint.Hit(failpoint.TaskEnded)
	m.h.Keeper.Ended(r.ID)
	if t.Reviews {
		return nil
	}
	if rejected || void { // the review is done, what it looked at is not: it has to be looked at again
		status = centurion.TaskCancelled
	}
	return m.plan.SettleItem(after, t.Item, status)
}

// endStatus is the state that a task ends in whose work ended with err.
func (m *mission) endStatus(err error) centurion.TaskStatus {
	kind := centurion.KindOf(err)
	switch {
	case err == nil:
		return centurion.TaskCompleted
	case kind == centurion.KindCancelled:
		return centurion.TaskCancelled
	case m.st.Ctx.Err() != nil:
		return centurion.TaskQueued
	case kind == centurion.KindPermission, isStuck(err):
		return centurion.TaskBlocked
	}
	return centurion.TaskFailed
}

// takeOver takes from a task that ends the plan that it was to write, and its checkout. What there is to say of that is
// added to its result.
func (m *mission) takeOver(ctx context.Context, r *state.Run, t centurion.Task, status centurion.TaskStatus, out *session.Outcome) {
	if note := m.takePlan(ctx, r, status, out.Text); note != "" {
		out.Text += "\n\n(" + note + ")"
	}
	if status.Ended() && m.st.Fences.Check(r.ID, r.Attempt) == nil {
		if note := m.iso.Vacate(ctx, t); note != "" {
			out.Text = strings.TrimSpace(out.Text + "\n\n(" + note + ")")
		}
	}
}

// endsInDoubt reports whether the checks of what a task has done prove too little: its parent has to see to that at once.
func (m *mission) endsInDoubt(tx *store.Tx, p plan.View, t centurion.Task, status centurion.TaskStatus) (bool, error) {
	if status != centurion.TaskCompleted || t.Item == "" || t.Agent == agents.Reviewer || !m.iso.Isolated() || p.Doc == nil {
		return false, nil
	}
	it, ok := p.Doc.Item(t.Item)
	if !ok || len(it.Verify) == 0 {
		return false, nil
	}
	receipts, err := tx.Receipts(t.Mission, t.ID)
	_, proof := review.Unproven(it, receipts, true)
	return proof != "", err
}

// recordEnd writes the end of a task together with its delivery to the parent.
func (m *mission) recordEnd(tx *store.Tx, r *state.Run, p plan.View, status centurion.TaskStatus, out session.Outcome, cause error, wake bool) error {
	t, err := tx.Task(r.ID)
	if err != nil || t.Status.Ended() {
		return err
	}
	t, err = state.MoveTask(tx, r.ID, status, func(t *centurion.Task) {
		t.ElapsedMS = r.Worked(*t) // its checks and its merge were work, too
		t.Result = out.Text
		t.Files = append(t.Files, out.Files...)
		if !m.iso.Isolated() { // what a command has changed no call names, but the trees around it
			for _, l := range t.Landed {
				for _, f := range l.Files {
					t.Files = append(t.Files, f.Path)
				}
			}
		}
		slices.Sort(t.Files)
		t.Files = slices.Compact(t.Files)
		t.Files = m.iso.WithoutAside(*t)
		if p.Doc != nil && status.Ended() { // the plan may change: what it gave the item is kept as it is now
			t.Outside, _ = m.brief.Outside(p, *t)
		}
		switch {
		case status == centurion.TaskQueued:
			t.Reason = state.UntilResumed
			t.Result = ""
		case state.Rejects(t.Agent, status, out.Text):
			t.Reason = state.FoundFaults
		case state.JudgesNothing(t.Agent, status, out.Text):
			t.Reason = state.NoVerdict
		case cause != nil:
			t.Error = &centurion.TaskError{Kind: centurion.KindOf(cause), Message: cause.Error(), Hint: centurion.HintOf(cause)}
		}
	})
	if err != nil || !status.Ended() {
		return err
	}
	return state.Deliver(tx, t, status != centurion.TaskCompleted || wake)
}

// cancelTask ends one living task. It returns when the end is recorded.
func (m *mission) cancelTask(ctx context.Context, id, reason string) error {
	r := m.st.Run(id)
	if r == nil {
		return m.h.endTask(ctx, id, reason)
	}
	r.Cancel(&centurion.Error{Kind: centurion.KindCancelled, Msg: reason})
	select {
	case <-r.Done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
