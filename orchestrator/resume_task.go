package orchestrator

import (
	"context"
	"fmt"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/state"
	"centurion/orchestrator/task"
	"centurion/session"
	"centurion/store"
	"centurion/tools"
)

// resumes returns the task whose session a delegation goes on with: its id is empty if it begins a new one. The error says why a task
// cannot be gone on with: it is unknown, another agent's, not ended, or its conversation is there no more.
func (d delegator) resumes(ctx context.Context, agent agents.Agent, want tools.Delegation) (centurion.Task, error) {
	var newest centurion.Task
	if want.Resume == "" {
		return newest, nil
	}
	tasks, err := d.c.Tasks(ctx)
	if err != nil {
		return newest, err
	}
	var names []string
	for _, t := range tasks { // oldest first: a session that was resumed before is its last task's
		if (goesBy(t, want.Resume) || want.Resume == t.Session) && (t.Agent == agent.Name || newest.Agent != agent.Name) {
			newest = t
		}
		names = append(names, t.Name())
	}
	switch {
	case newest.ID == "":
		e := &centurion.Error{Kind: centurion.KindNotFound, Msg: fmt.Sprintf("there is no task %q to resume", want.Resume)}
		if near := centurion.Nearest(want.Resume, names); near != "" {
			e.Hint = "did you mean " + near + "?"
		} else {
			e.Hint = "leave out resume to hand it to a new session"
		}
		return newest, e
	case newest.Agent != agent.Name:
		return newest, &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("task %s is the %s's", newest.Name(), newest.Agent),
			Hint: fmt.Sprintf("resume it as %s, or leave out resume to hand it to a new %s", newest.Agent, agent.Name)}
	case !newest.Status.Ended():
		return newest, task.StillAtWork(newest)
	case newest.Session == "":
		return newest, &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("task %s ended before it began: there is nothing to resume", newest.Name()),
			Hint: "leave out resume to hand it to a new session"}
	}
	rec, err := d.m.h.cfg.Store.Session(ctx, newest.Session)
	if centurion.KindOf(err) == centurion.KindNotFound || err == nil && state.Dropped(rec) != nil {
		return newest, &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("the conversation of task %s is not kept any more", newest.Name()),
			Hint: "leave out resume to hand it to a new session, with what it has to know in the prompt"}
	}
	return newest, err
}

// resumeSession begins a task in the session of one that has ended: its history goes on with the new prompt.
func (m *mission) resumeSession(ctx context.Context, t *centurion.Task) error {
	brief, err := m.brief.Resumed(ctx, *t)
	if err != nil {
		return err
	}
	begun, _ := m.plan.ItemNow(t.Item)
	unchanged := t.Unchanged
	return m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		rec, err := tx.Session(t.Session)
		if err != nil {
			return err
		}
		moved, err := state.MoveTask(tx, t.ID, centurion.TaskRunning, func(t *centurion.Task) {
			t.Attempt, t.Started, t.Verify, t.Unchanged = 1, centurion.Now(), begun.Verify, unchanged
		})
		if err != nil {
			return err
		}
		// The end of the task before is no part of this one: nothing that it waited for is waited for again.
		rec.Metadata.Task, rec.Metadata.Attempt, rec.Metadata.Retry = t.ID, moved.Attempt, nil
		if err := tx.PutSession(&rec); err != nil {
			return err
		}
		*t = moved
		if err := underWay(tx, m.st.ID, t.Agent); err != nil {
			return err
		}
		_, err = session.Say(tx, &rec, centurion.OriginParent, brief)
		return err
	})
}
