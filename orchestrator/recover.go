package orchestrator

import (
	"context"
	"errors"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/guard"
)

// recover prepares a new, stopped or interrupted mission for its loop. It repairs everything that a crashed host may have left half done;
// each step relies on the ones before it:
//
//  1. what its person has reverted of the conversation leaves the line (branches.Branches.Forget); undos and redos that were recorded: in
//     the plan, the notes and the mission (revert.Desk.Settle)
//  2. the state of the mission, and asks whose call is gone (commander.Loop.Begin)
//  3. the snapshot, the branch and the checkouts (isolation.Checkouts.Open)
//  4. the calls and messages of the first session; those of a task when it is launched (open)
//  5. merges: the branch says which of them have happened (merge.Queue.Repair)
//  6. marks in the plan: the store says what has ended (plan.Plan.Reconcile)
//  7. tasks that were at work: they are launched again (task.Tasks.Restart)
//
// It lists its repairs in the journal.
func (m *mission) recover(ctx context.Context, beside *guard.Group) (centurion.Mission, error) {
	var repaired repairs
	if err := m.h.Branches.Forget(ctx, m.st.ID); err != nil {
		return centurion.Mission{}, err
	}
	opened, closed, err := m.h.reverts.Settle(ctx, m.st.ID)
	if err != nil {
		return centurion.Mission{}, err
	}
	repaired.add("marked as reverted or restored", append(opened, closed...)...)
	rec, err := m.loop.Begin(ctx)
	if err != nil {
		return rec, err
	}
	m.loop.Begun = true
	if err := errors.Join(m.plan.KnowItems(ctx), m.frozen.Load(ctx)); err != nil {
		return rec, err
	}
	if err := m.plan.MeetPlan(ctx, rec); err != nil {
		return rec, err
	}
	if err := m.approvals.Restore(ctx); err != nil {
		return rec, err
	}
	if err := m.iso.Open(ctx, rec, beside); err != nil {
		return rec, err
	}
	m.claims.Apart = m.iso.Isolated()
	if m.loop.Root, err = m.opener.Open(ctx, rec.Session, nil); err != nil {
		return rec, err
	}
	m.loop.Judge.Owner = m.loop.Root.Agent
	if err := m.queue.Repair(ctx); err != nil {
		return rec, err
	}
	marked, again, err := m.tasks.Restart(ctx)
	if err != nil {
		return rec, err
	}
	repaired.add("marks corrected", marked...)
	repaired.add("tasks started again", again...)
	if len(repaired) > 0 {
		if err := m.st.Tell(ctx, func(d *event.MissionData) { d.Note = "after a restart: " + strings.Join(repaired, "; ") }); err != nil {
			return rec, err
		}
	}
	p, err := m.plan.Read()
	_, err = m.plan.TellMistakes(ctx, p, err)
	return rec, err
}

// repairs lists repairs for a person.
type repairs []string

func (r *repairs) add(what string, names ...string) {
	if len(names) > 0 {
		*r = append(*r, what+": "+centurion.Clip(strings.Join(names, ", "), 200))
	}
}
