package task

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/failpoint"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/race"
	"centurion/orchestrator/review"
	"centurion/orchestrator/state"
	"centurion/session"
	"centurion/store"
	"centurion/workspace/todo"
)

// endTask records how the task ended and delivers its result to the parent. A task that ends because the mission stops is queued again, for
// the time when the mission is resumed.
func (ts *Tasks) endTask(ctx context.Context, r *state.Run, out session.Outcome, err error) error {
	if cause := state.CauseOf(ctx); cause != nil && err != nil {
		err = cause
	}
	if centurion.KindOf(err) == centurion.KindDisk {
		ts.Mission.End(err)
	}
	status := ts.endStatus(err)
	after := context.WithoutCancel(ctx) // the end is recorded although the work was stopped
	t, terr := ts.Mission.Store.Task(after, r.ID)
	if terr != nil {
		return terr
	}
	left, told := ts.takeOver(after, r, t, status, &out), true
	rejected, void := state.Rejects(t.Agent, status, out.Text), state.JudgesNothing(t.Agent, status, out.Text)
	if rejected && t.Reviews && ts.Mission.Fences.Check(r.ID, r.Attempt) == nil {
		// Before the end is recorded: should the host die in between, the review ends once more and finds it open.
		if err := ts.Plan.MarkItem(after, t.Item, plan.OpenAgain); err != nil {
			return err
		}
	}
	frees, ferr := ts.Plan.WouldFree(after, t, status)
	if ferr != nil {
		return ferr
	}
	p, _ := ts.Plan.Read() // the main loop reports a plan that cannot be read
	// The store comes first: the next start corrects the plan from it, but a tick without a completed task would have the work done twice.
	if err := ts.Mission.Store.Update(after, func(tx *store.Tx) error {
		if err := ts.Mission.Fences.Check(r.ID, r.Attempt); err != nil {
			return err
		}
		if left != nil {
			if err := left(tx); err != nil {
				return err
			}
		}
		doubtful, derr := ts.endsInDoubt(tx, p, t, status)
		if derr != nil {
			return derr
		}
		told, derr = ts.recordEnd(tx, r, p, status, out, err, frees || rejected || void || doubtful)
		return derr
	}); err != nil {
		if errors.Is(err, state.ErrSuperseded) { // the newer attempt records the end
			return ts.Mission.RecordRefusal(after, r.ID, t.Session, r.Attempt, "its result")
		}
		return err
	}
	failpoint.Hit(failpoint.TaskEnded)
	ts.Keeper.Ended(r.ID)
	if t.Reviews || !told { // the item waits for another try
		return nil
	}
	if rejected || void { // the review is done, but its subject needs another one
		status = centurion.TaskCancelled
	}
	return ts.Plan.SettleItem(after, t.Item, status)
}

// endStatus is the final state of a task whose work ended with err.
func (ts *Tasks) endStatus(err error) centurion.TaskStatus {
	kind := centurion.KindOf(err)
	_, stuck := errors.AsType[*agent.StuckError](err)
	switch {
	case err == nil:
		return centurion.TaskCompleted
	case kind == centurion.KindCancelled:
		return centurion.TaskCancelled
	case ts.Mission.Ctx.Err() != nil:
		return centurion.TaskQueued
	case kind == centurion.KindPermission, stuck:
		return centurion.TaskBlocked
	}
	return centurion.TaskFailed
}

// takeOver takes the plan from a planner's answer and releases the task's checkout. Notes about both are added to its result. left, if not
// nil, has to run in the transaction of the task's end.
func (ts *Tasks) takeOver(ctx context.Context, r *state.Run, t centurion.Task, status centurion.TaskStatus, out *session.Outcome) (left func(*store.Tx) error) {
	if note := ts.takePlan(ctx, r, status, out.Text); note != "" {
		out.Text += "\n\n(" + note + ")"
	}
	if status.Ended() && ts.Mission.Fences.Check(r.ID, r.Attempt) == nil {
		note := ""
		if note, left = ts.Checkouts.Vacate(ctx, t); note != "" {
			out.Text = strings.TrimSpace(out.Text + "\n\n(" + note + ")")
		}
	}
	return left
}

// endsInDoubt reports whether the checks of a completed task prove too little, so that its parent has to act at once.
func (ts *Tasks) endsInDoubt(tx *store.Tx, p plan.View, t centurion.Task, status centurion.TaskStatus) (bool, error) {
	if err := takeReceipts(tx, t, status); err != nil {
		return false, err
	}
	if status != centurion.TaskCompleted || t.Item == "" || t.Agent == agents.Reviewer || !ts.Checkouts.Isolated() || p.Doc == nil {
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

// recordEnd writes the end of a task together with its delivery to the parent. told is false for a try whose race another one ends.
func (ts *Tasks) recordEnd(tx *store.Tx, r *state.Run, p plan.View, status centurion.TaskStatus, out session.Outcome, cause error, wake bool) (told bool, err error) {
	t, err := tx.Task(r.ID)
	if err != nil || t.Status.Ended() {
		return true, err
	}
	_, lost := errors.AsType[*race.LostError](cause)
	t, err = state.MoveTask(tx, r.ID, status, func(t *centurion.Task) {
		t.ElapsedMS = r.Worked(*t) // its checks and its merge were work, too
		t.Result = out.Text
		t.Files = append(t.Files, out.Files...)
		if !ts.Checkouts.Isolated() { // the trees around a command show its changes, its call does not
			for _, l := range t.Landed {
				for _, f := range l.Files {
					t.Files = append(t.Files, f.Path)
				}
			}
		}
		slices.Sort(t.Files)
		t.Files = slices.Compact(t.Files)
		t.Files = ts.Checkouts.WithoutAside(*t)
		if lost { // nothing of it counts
			t.Files = nil
		}
		if p.Doc != nil && status.Ended() { // the plan may change later
			t.Outside, _ = ts.Brief.Outside(p, *t)
		}
		switch {
		case status == centurion.TaskQueued:
			t.Reason = state.UntilResumed
			t.Result = ""
		case state.Rejects(t.Agent, status, out.Text):
			t.Reason = state.FoundFaults
		case state.JudgesNothing(t.Agent, status, out.Text):
			t.Reason = state.NoVerdict
		case status == centurion.TaskCompleted && r.Blind:
			t.Reason = state.SawNothing
		case lost && t.Race != nil:
			t.Race.Lost, t.Reason = true, cause.Error()
		case cause != nil:
			t.Error = &centurion.TaskError{Kind: centurion.KindOf(cause), Message: cause.Error(), Hint: centurion.HintOf(cause)}
		}
	})
	if err != nil || !status.Ended() {
		return true, err
	}
	if told, err = reports(tx, t); err != nil || !told {
		return told, cmp.Or(err, state.Redirect(tx, t))
	}
	return true, state.Deliver(tx, t, status != centurion.TaskCompleted || wake)
}

// errHasPlan means that the mission has a plan already.
var errHasPlan = errors.New("there is a plan")

// takePlan writes the plan from a planner's answer into the mission's todo list, if the mission's own agent has asked for it and there is no
// plan yet. It returns a note for that agent, or "".
func (ts *Tasks) takePlan(ctx context.Context, r *state.Run, status centurion.TaskStatus, answer string) string {
	if status != centurion.TaskCompleted || r.Agent != agents.Planner || r.Now.Load().Parent != ts.Mission.Spent.Load().Session || ts.Mission.Fences.Check(r.ID, r.Attempt) != nil {
		return ""
	}
	if p, err := ts.Plan.Read(); err != nil || len(p.Items()) > 0 {
		return ""
	}
	found := todo.FromText(answer)
	if found == nil {
		return ""
	}
	doc, _, err := ts.Plan.File.Replace(ctx, string(found.Bytes()), false, func(old, _ *todo.Doc) error {
		if old != nil && len(old.Items()) > 0 { // another agent was faster
			return errHasPlan
		}
		return nil
	})
	switch {
	case errors.Is(err, errHasPlan):
		return ""
	case err != nil:
		return "The host could not take the list above over: " + err.Error() + ". Write it with update_todo."
	}
	note := centurion.Count(doc.Counts().Total(), "item") + " taken from the planner's answer into the todo list"
	if err := errors.Join(ts.Plan.TellTodo(ctx), ts.Mission.Tell(ctx, func(x *event.MissionData) { x.Note = note })); err != nil {
		return "" // the list is written; the main loop reports it
	}
	return "The planner had not written the list itself: the host has taken it over.\n" + plan.Outline(doc)
}
