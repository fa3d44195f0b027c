package orchestrator

import (
	"cmp"
	"context"
	"fmt"

	"centurion"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/commander"
	"centurion/orchestrator/mail"
	"centurion/orchestrator/task"
	"centurion/store"
)

// There are four ways to end work, which differ in how much of it they end and in what it is afterwards: [Host.Abort] a
// turn, [Host.Stop] a session with all that it has started, [Host.Cancel] one task, [Host.Pause] and Cancel a mission.
// Each gives the context of what it ends a cause; everything else follows from that.

// Abort ends the turn of a session, not the session: its request and its tool calls with their processes end, the calls
// that are left are answered with «Cancelled», and the answer is stored as cancelled. It returns when the turn has ended.
// The session is named by its id, or that of its task or mission.
//
// What was written to the session and not read yet is answered next. Without any, the Commander stands still until a
// person writes to it or resumes the mission; no continuation and no result wakes it. Where nobody is there to be asked
// ([centurion.MissionOptions] Ask is not "ask") the mission pauses as soon as none of its tasks runs. A Commander without a
// turn stands still likewise. A task whose turn is aborted ends as cancelled, unless something was written to it.
//
// The error has centurion.KindNotFound for an unknown id, and centurion.KindConflict for a session that nobody works on.
func (h *Host) Abort(ctx context.Context, id, reason string) error {
	const op = "abort"
	if err := agent.RefuseInCall(ctx, op); err != nil {
		return err
	}
	to, err := mail.Find(ctx, h.cfg.Store, "", id)
	if err != nil {
		return err
	}
	cause := agent.Aborted(cmp.Or(reason, agent.AbortedByPerson))
	m := h.running(to.Mission)
	if m == nil {
		rec, err := h.cfg.Store.Mission(ctx, to.Mission)
		if err != nil {
			return err
		}
		return &centurion.Error{Op: op, Kind: centurion.KindConflict, Msg: fmt.Sprintf("nothing to abort: mission %s is %s", rec.ID, mail.StatusAtRest(rec)),
			Hint: "see: centurion show " + rec.ID}
	}
	c := m.sessions.Of(to.Session)
	switch {
	case c == nil && to.Task == "":
		return &centurion.Error{Op: op, Kind: centurion.KindConflict, Msg: "mission " + m.st.ID + " has only just begun", Hint: "try again"}
	case c == nil:
		return m.abortTask(ctx, to.Task, cause)
	}
	ended := c.Live.Abort(cause)
	m.st.Notify()
	if ended == nil {
		if to.Task != "" { // it waits for its children, or its work is checked
			return m.abortTask(ctx, to.Task, cause)
		}
		return nil
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// abortTask ends a task that has no turn that could be aborted.
func (m *mission) abortTask(ctx context.Context, id string, cause *agent.AbortedError) error {
	t, err := m.h.cfg.Store.Task(ctx, id)
	if err != nil {
		return err
	}
	if t.Status.Ended() {
		return &centurion.Error{Op: "abort", Kind: centurion.KindConflict, Msg: fmt.Sprintf("nothing to abort: task %s is %s", t.ID, t.Status),
			Hint: "see: centurion show " + t.ID}
	}
	return m.tasks.Cancel(ctx, id, cause.Why())
}

// Proceed lets a running mission go on whose Commander a person had stopped with [Host.Abort]. Of any other it changes
// nothing.
func (h *Host) Proceed(id string) {
	m := h.running(id)
	if m == nil {
		return
	}
	if c := m.sessions.On(""); c != nil {
		c.Live.Proceed()
	}
	m.st.Notify()
}

// Stop ends a session with everything that it has started: its turn, its tool calls and background commands with their
// processes, and its children with theirs. It returns when all of that has ended and is recorded. A task is cancelled
// then, and so are the tasks below it; a mission, named by its Commander's session or its own id, is paused and can be
// resumed. What has ended already stays as it is, without an error.
func (h *Host) Stop(ctx context.Context, id, reason string) error {
	const op = "stop"
	if err := agent.RefuseInCall(ctx, op); err != nil {
		return err
	}
	to, err := mail.Find(ctx, h.cfg.Store, "", id)
	if err != nil {
		return err
	}
	reason = cmp.Or(reason, "stopped by a person")
	if to.Task != "" {
		return h.stopFamily(ctx, to, reason)
	}
	if h.running(to.Mission) == nil {
		rec, err := h.cfg.Store.Mission(ctx, to.Mission)
		if err != nil || !rec.Status.Alive() {
			return err
		}
	}
	return h.stop(ctx, to.Mission, &centurion.Error{Kind: centurion.KindInterrupted, Msg: reason})
}

// stopFamily cancels a task and all below it. It looks again until there is nothing left: a task may have been on its way
// into the store.
func (h *Host) stopFamily(ctx context.Context, to mail.Receiver, reason string) error {
	for {
		living, err := livingBelow(ctx, h.cfg.Store, h.running(to.Mission), to)
		if err != nil || len(living) == 0 {
			return err
		}
		m := h.running(to.Mission)
		if m != nil { // all of them first, so that none waits for another
			for _, id := range living {
				if r := m.st.Run(id); r != nil {
					r.Cancel(&centurion.Error{Kind: centurion.KindCancelled, Msg: reason})
				}
			}
		}
		for _, id := range living {
			end := h.endTask
			if m != nil {
				end = m.tasks.Cancel
			}
			if err := end(ctx, id, reason); err != nil {
				return err
			}
		}
	}
}

// livingBelow lists the tasks that have not ended among a task and those below it, the task itself first.
func livingBelow(ctx context.Context, st *store.Store, m *mission, to mail.Receiver) ([]string, error) {
	all, err := st.Tasks(ctx, to.Mission)
	if err != nil {
		return nil, err
	}
	runs := map[string]bool{}
	if m != nil {
		for _, r := range m.st.Runs() {
			runs[r.ID] = true
		}
	}
	var living []string
	in := map[string]bool{} // sessions of the family
	for _, t := range all { // oldest first: who delegates is older than what it has delegated
		if t.ID != to.Task && !in[t.Parent] {
			continue
		}
		if t.Session != "" {
			in[t.Session] = true
		}
		if !t.Status.Ended() || runs[t.ID] {
			living = append(living, t.ID)
		}
	}
	return living, nil
}

// Pause stops a mission so that it can be resumed, and returns when it has stopped. The error has centurion.KindConflict
// if it has stopped already.
func (h *Host) Pause(ctx context.Context, id, reason string) error {
	rec, err := h.cfg.Store.Mission(ctx, id)
	if err != nil {
		return err
	}
	if reason = cmp.Or(reason, "paused by a person"); reason == centurion.ErrShutdown.Msg {
		return h.stop(ctx, rec.ID, centurion.ErrShutdown)
	}
	return h.stop(ctx, rec.ID, &centurion.Error{Kind: centurion.KindInterrupted, Msg: reason})
}

// stop ends a mission for a cause and waits until it has stopped. A mission that nobody works on is moved in the store.
func (h *Host) stop(ctx context.Context, id string, cause *centurion.Error) error {
	if m := h.running(id); m != nil {
		m.drop(cause)
		select {
		case <-m.stopped:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer h.Keeper.Ended("")
	to := commander.VerdictOf(context.Background(), cause)
	return h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		if err := pausable(tx, id, to.Status); err != nil {
			return err
		}
		_, err := commander.EndMission(tx, id, to, nil)
		return err
	})
}

// Cancel ends a mission or a task, by id. What has ended already stays as it is, without an error.
func (h *Host) Cancel(ctx context.Context, id, reason string) error {
	if t, err := h.cfg.Store.Task(ctx, id); err == nil {
		if m := h.running(t.Mission); m != nil {
			return m.tasks.Cancel(ctx, t.ID, cmp.Or(reason, "cancelled by a person"))
		}
		return h.endTask(ctx, t.ID, cmp.Or(reason, "cancelled by a person"))
	}
	rec, err := h.cfg.Store.Mission(ctx, id)
	if err != nil {
		return err
	}
	if !rec.Status.CanBecome(centurion.MissionCancelled) {
		return nil
	}
	return h.stop(ctx, rec.ID, &centurion.Error{Kind: centurion.KindCancelled, Msg: cmp.Or(reason, "cancelled by a person")})
}

// endTask cancels a task of a mission that is not running.
func (h *Host) endTask(ctx context.Context, id, reason string) error {
	defer h.Keeper.Ended(id)
	return task.CancelIdle(ctx, h.cfg.Store, id, reason)
}

// pausable refuses to pause a mission that is over: only a rewind or a message brings it back.
func pausable(tx *store.Tx, id string, to centurion.MissionStatus) error {
	m, err := tx.Mission(id)
	if err != nil || to != centurion.MissionPaused || !m.Status.Ended() && m.Status != centurion.MissionFailed {
		return err
	}
	return &centurion.Error{Op: "change mission " + id, Kind: centurion.KindConflict, Msg: fmt.Sprintf("it is %s and cannot become %s", m.Status, to)}
}
