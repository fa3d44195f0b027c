package task

import (
	"cmp"
	"context"
	"slices"

	"centurion"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/merge"
	"centurion/orchestrator/race"
	"centurion/orchestrator/state"
	"centurion/session"
	"centurion/store"
)

// rivals returns the living tries of a task's race, without its own.
func (ts *Tasks) rivals(r *state.Run) []*state.Run {
	t := r.Now.Load()
	return slices.DeleteFunc(slices.Clone(ts.Mission.Runs()), func(o *state.Run) bool { return o.ID == r.ID || !race.Of(*t, *o.Now.Load()) })
}

// lostRace ends a task that begins, perhaps after a crash, when another try of its item is merged already.
func (ts *Tasks) lostRace(ctx context.Context, r *state.Run) error {
	t := r.Now.Load()
	if t.Race == nil {
		return nil
	}
	tasks, err := ts.Mission.Store.Tasks(ctx, ts.Mission.ID)
	if err != nil {
		return err
	}
	return race.LostBy(tasks, t.Race.ID, t.ID)
}

// accept is [merge.Queue.Accept]. Held work is accepted when its race is decided without it, which ends it, or for it: then it ends the race.
func (ts *Tasks) accept(ctx context.Context, c *agent.Conversation, out *session.Outcome, returns int) (back *merge.Rejection, err error) {
	for {
		back, err = ts.Queue.Accept(ctx, agent.AuthorOf(c), out, returns)
		if err == nil && back == nil {
			err = ts.endRace(ctx, c.Task)
		}
		if err != nil || back == nil || !back.Held {
			return back, err
		}
		if err := ts.awaitRace(ctx, c.Task, back.Lines); err != nil {
			return back, err
		}
	}
}

// awaitRace waits until another try is merged, or the held work of a task is the best that there is.
func (ts *Tasks) awaitRace(ctx context.Context, r *state.Run, lines int) error {
	err := ts.Mission.MoveRun(ctx, r, centurion.TaskWaiting, func(t *centurion.Task) {
		t.Race.Held, t.Race.Lines = true, lines
		t.Reason = "the other tries of its race, since its checks pass, but do not prove its work"
	})
	ts.Mission.Notify() // it may decide the race for another one
	for err == nil {
		changed := ts.Mission.Change()
		tasks, terr := ts.Mission.Store.Tasks(ctx, ts.Mission.ID)
		id := r.Now.Load().Race.ID
		if err = cmp.Or(terr, race.LostBy(tasks, id, r.ID)); err != nil {
			break
		}
		if race.Winner(race.Tries(tasks, id)) == r.ID {
			return ts.Mission.MoveRun(ctx, r, centurion.TaskRunning, nil)
		}
		err = ts.Mission.Await(ctx, changed, 0)
	}
	return err
}

// endRace ends the other tries of a task whose work is accepted. It returns when their ends are recorded, so that its own end, which is told,
// is the end of the race.
func (ts *Tasks) endRace(ctx context.Context, r *state.Run) error {
	others := ts.rivals(r)
	for _, o := range others {
		o.Cancel(race.Lost(*r.Now.Load()))
	}
	for _, o := range others {
		select {
		case <-o.Done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// takeReceipts gives the item of a race the receipts of the try that was merged: until now they stand under the name of the try, as those of
// the others always do.
func takeReceipts(tx *store.Tx, t centurion.Task, status centurion.TaskStatus) error {
	if t.Race == nil || len(t.Landed) == 0 && status != centurion.TaskCompleted {
		return nil
	}
	receipts, err := tx.Receipts(t.Mission, t.ID)
	for _, r := range receipts {
		if r.Item == t.Name() && err == nil {
			r.Item = t.Item
			err = tx.PutReceipt(&r)
		}
	}
	return err
}

// reports reports whether the end of a task is told to its parent, and settles its item.
func reports(tx *store.Tx, t centurion.Task) (bool, error) {
	if t.Race == nil {
		return true, nil
	}
	tasks, err := tx.Tasks(t.Mission)
	return race.Reports(tasks, t), err
}
