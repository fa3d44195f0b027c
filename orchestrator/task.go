package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/failpoint"
	"centurion/guard"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/merge"
	"centurion/orchestrator/notes"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/slots"
	"centurion/orchestrator/state"
	"centurion/orchestrator/toolset"
	"centurion/session"
	"centurion/store"
)

// launch starts the goroutine of a recorded task.
func (m *mission) launch(t centurion.Task) {
	ctx, cancel := context.WithCancelCause(m.st.Ctx)
	r := &state.Run{ID: t.ID, Item: t.Item, Name: t.Name(), Agent: t.Agent, Ctx: ctx, Cancel: cancel, Done: make(chan struct{})}
	r.Place = m.slots.Join(r.Agent) // now: tasks are launched in the order in which they were delegated
	r.Now.Store(&t)
	r.Before = t.ElapsedMS
	r.Account, r.Covered = m.reserves.Spawn(t, m.sessions.Portion(t))
	m.st.Add(r)
	m.h.auditor.Watch()
	m.tasks.Go("task "+t.ID, func() (err error) {
		defer func() {
			cancel(nil)
			m.st.Drop(r)
			m.claims.Drop(t.Name())
			m.reserves.Close(r.Account)
			close(r.Done)
			m.st.Notify()
			err = errors.Join(err, m.h.auditor.Unwatch())
		}()
		err = guard.Call("task "+r.Name, func() error { return m.runTask(ctx, r) })
		if err != nil {
			m.st.End(err) // nobody would ever hear of the task's end
		}
		return err
	})
}

// runTask works on a task until it has ended, or until the mission stops. An error means that the end could not be
// recorded.
func (m *mission) runTask(ctx context.Context, r *state.Run) error {
	defer func() { r.Place.Leave() }()
	var out session.Outcome
	err := guard.Call("task "+r.Name, func() (err error) {
		if err = m.sessions.Cover(ctx, r); err == nil {
			err = m.ready(ctx, r)
		}
		if err == nil {
			out, err = m.attempt(ctx, r)
		}
		return err
	})
	return m.endTask(ctx, r, out, err)
}

// ready waits until the task may be launched: its plan is accepted, its item's predecessors are done, and nobody else
// holds its files. What it waits for stands in the task.
func (m *mission) ready(ctx context.Context, r *state.Run) error {
	told := ""
	for {
		changed := m.st.Change()
		why, err := m.obstacle(ctx, r)
		if err != nil || why == "" {
			return err
		}
		r.Place.Leave()
		r.Place = nil
		if why != told {
			if err := m.st.MoveRun(ctx, r, centurion.TaskWaiting, func(t *centurion.Task) { t.Reason = why }); err != nil {
				return err
			}
			told = why
		}
		m.reserves.Rest(r.Account)
		err = m.st.Await(ctx, changed, 0)
		m.reserves.Wake(r.Account)
		if err != nil {
			return err
		}
	}
}

// attempt runs the task's session to its end and checks the outcome, sending it back to its worker a bounded number of
// times.
func (m *mission) attempt(ctx context.Context, r *state.Run) (session.Outcome, error) {
	if r.Place == nil {
		r.Place = m.slots.Join(r.Agent)
		if err := m.st.MoveRun(ctx, r, centurion.TaskQueued, nil); err != nil {
			return session.Outcome{}, err
		}
	}
	sl, err := m.slots.Launch(ctx, r.Place, func(ctx context.Context) (ref centurion.ModelRef, err error) {
		ref, r.Own, r.Instead, err = m.sessions.ModelOf(ctx, r.ID)
		return ref, err
	})
	if err != nil {
		return session.Outcome{}, err
	}
	defer sl.Release()
	m.reserves.Wake(r.Account)
	defer r.Timed()()
	c, t, err := m.startAttempt(ctx, r, sl)
	if err != nil {
		return session.Outcome{}, err
	}
	defer m.sessions.Forget(c)
	defer m.commands.End(ownerOf(m, c, c.ID()))
	var files []string
	for returns := t.Returns; ; returns++ {
		out, lost, err := m.workOn(ctx, c, files)
		if err != nil {
			return out, err
		}
		sl.Release()
		back, err := m.queue.Accept(ctx, agent.AuthorOf(c), &out, returns)
		files = out.Files
		said := out.Text
		out.Text = toolset.WithLost(r.Agent, said, lost)
		if err != nil {
			return out, err
		}
		if back == nil || back.Ends {
			more, err := c.SpokenTo(ctx)
			if more {
				returns-- // what somebody has written meanwhile is no failure, and may be what helps
				continue
			}
			if err != nil || back == nil {
				return out, err
			}
		}
		if returns, err = m.handBack(ctx, c, sl, back, returns, said); err != nil {
			return out, err
		}
	}
}

// workOn runs a task's session to its end and what it has left in the background, so that nothing of the task writes while it is checked. have are
// the files that it has changed before; lost tells of the commands that were still running.
func (m *mission) workOn(ctx context.Context, c *conversation, have []string) (out session.Outcome, lost []string, err error) {
	out, err = c.ToEnd(ctx)
	lost = m.commands.End(ownerOf(m, c, c.ID()))
	out.Files = slices.Concat(have, out.Files)
	slices.Sort(out.Files)
	out.Files = slices.Compact(out.Files)
	if err == nil {
		rec := c.Sess.Record()
		err = m.commands.TellLost(ctx, rec.Agent+" "+rec.Metadata.Address, lost)
	}
	return out, lost, err
}

// handBack gives a task's work back to its session, with the slot that it needs to go on. Work that has come back too often
// fails, or is a person's to decide, who is shown what the session has said last: then the count of returns, which it returns,
// begins anew. A notice does not count. A conflict is no failure of the session: somebody else was faster. The count begins anew with it,
// which comes to an end because somebody else's work was merged each time.
func (m *mission) handBack(ctx context.Context, c *conversation, sl *slots.Slot, back *merge.Rejection, returns int, said string) (int, error) {
	conflict := back.Cause == event.ReturnedConflict
	over := back.Ends || merge.GivesUp(said) || returns >= m.h.cfg.Returns && !back.Notice && !conflict
	switch {
	case over && !m.iso.Isolated() && !back.Ends:
		return returns, &centurion.Error{Kind: centurion.KindVerify,
			Msg: fmt.Sprintf("its acceptance command still fails after %s: %s", centurion.Count(returns, "return"), back.Short)}
	case over:
		var err error
		if back.Text, err = m.stuck(ctx, c, back, returns, said); err != nil {
			return returns, err
		}
		returns = -1 // a person has said that it is tried on
	case back.Notice:
		returns--
	case conflict:
		returns = 0
	}
	if err := sl.Acquire(ctx); err != nil {
		return returns, err
	}
	return returns, m.queue.Return(ctx, agent.AuthorOf(c), back, returns+1)
}

// startAttempt creates or reopens the task's session under the next fencing number and marks its item as running.
func (m *mission) startAttempt(ctx context.Context, r *state.Run, sl *slots.Slot) (*conversation, centurion.Task, error) {
	t, err := m.h.cfg.Store.Task(ctx, r.ID)
	if err != nil {
		return nil, t, err
	}
	r.Attempt = t.Attempt + 1
	m.st.Fences.Raise(r.ID, r.Attempt)
	if t.Attempt == 0 && t.Agent == agents.Reviewer && m.iso.Isolated() {
		changed, err := m.iso.Changed(ctx)
		if err != nil {
			return nil, t, err
		}
		t.Unchanged = !changed
	}
	if t.Session == "" {
		err = m.createSession(ctx, &t, r, sl.Model())
	} else {
		err = m.reopenSession(ctx, &t)
	}
	r.Working.Store(err == nil)
	failpoint.Hit(failpoint.AttemptStarted)
	if err == nil && !t.Reviews {
		err = m.plan.MarkItem(ctx, t.Item, plan.MarkRunning)
	}
	if err != nil {
		return nil, t, err
	}
	c, err := m.open(ctx, t.Session, r)
	if err != nil {
		return nil, t, err
	}
	c.Slot = sl
	m.st.Notify()
	return c, t, nil
}

// createSession starts the task's first attempt.
func (m *mission) createSession(ctx context.Context, t *centurion.Task, r *state.Run, model centurion.ModelRef) error {
	agent, err := m.st.CarriesOut(*t)
	if err != nil {
		return err
	}
	parent, err := m.h.cfg.Store.Session(ctx, t.Parent)
	if err != nil {
		return err
	}
	brief, err := m.brief.Task(ctx, *t)
	if err != nil {
		return err
	}
	begun, _ := m.plan.ItemNow(t.Item)
	unchanged := t.Unchanged
	shared, given := notes.ForTask(m.h.cfg.Workspace, m.plan.Detail(), *t)
	if t.Sub == nil {
		shared += m.brief.Files(ctx, m.h.briefs, agent)
	}
	told, err := m.brief.Open(ctx, m.h.briefs, agent, *t, model)
	if err != nil {
		return err
	}
	return m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		serial, err := tx.NextSerial(m.st.ID, parent.Metadata.Address)
		if err != nil {
			return err
		}
		address := centurion.ChildAddress(parent.Metadata.Address, serial)
		rec := session.New(centurion.Session{Title: t.Title, Agent: agent.Name, Directory: parent.Directory, ParentID: parent.ID,
			ProjectID: parent.ProjectID, Slug: strings.Trim(strings.ReplaceAll(address, "/", "-"), "-"), Version: m.h.cfg.Version,
			Model: &centurion.SessionModel{ID: model.ID, Provider: model.Provider},
			Metadata: centurion.SessionMeta{Mission: m.st.ID, Task: t.ID, Attempt: 1, Address: address, System: told.System, AgentFile: agent.Source,
				Roster: m.st.Cast.Roster(agent), Offered: m.h.briefs.Callable(agent), Skills: told.Skills, Given: append(told.Given, given...)}}, centurion.Now())
		moved, err := state.MoveTask(tx, t.ID, centurion.TaskRunning, func(t *centurion.Task) {
			t.Attempt, t.Session, t.Started, t.Verify, t.Unchanged = 1, rec.ID, centurion.Now(), begun.Verify, unchanged
		})
		if err != nil {
			return err
		}
		*t = moved
		if err := underWay(tx, m.st.ID, agent.Name); err != nil {
			return err
		}
		if t.Sub != nil {
			rec.Metadata.Tools = t.Sub.Tools
		}
		if r.Instead != "" {
			rec.Metadata.OwnModel = &centurion.SessionModel{ID: r.Own.ID, Provider: r.Own.Provider}
		}
		if err := session.Create(tx, &rec, centurion.OriginParent, brief+shared); err != nil {
			return err
		}
		if err := state.Forward(tx, t.ID, rec.ID); err != nil || r.Instead == "" {
			return err
		}
		return state.BeganWith(tx, &rec, r.Instead)
	})
}

// underWay moves the mission from planning to running when somebody begins to carry the plan out.
func underWay(tx *store.Tx, mission, agent string) error {
	rec, err := tx.Mission(mission)
	if err != nil || rec.Status != centurion.MissionPlanning || agent == agents.Planner {
		return err
	}
	_, err = state.MoveMission(tx, mission, centurion.MissionRunning, "", nil)
	return err
}

// reopenSession starts a further attempt in the session of the last one, whose history holds what was done so far.
func (m *mission) reopenSession(ctx context.Context, t *centurion.Task) error {
	if t.Attempt == 0 {
		return m.resumeSession(ctx, t)
	}
	return m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		moved, err := state.MoveTask(tx, t.ID, centurion.TaskRunning, func(t *centurion.Task) { t.Attempt++ })
		if err != nil {
			return err
		}
		rec, err := tx.Session(t.Session)
		if err != nil {
			return err
		}
		rec.Metadata.Attempt = moved.Attempt
		*t = moved
		if err := underWay(tx, m.st.ID, t.Agent); err != nil {
			return err
		}
		return tx.PutSession(&rec)
	})
}
