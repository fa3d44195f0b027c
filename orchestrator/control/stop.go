// Package control observes and stops work from outside: the state of a session, the four ways to end work, and the limits of a mission. It
// gives the context of the work a cause; the work then ends and records how.
package control

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/commander"
	"centurion/orchestrator/mail"
	"centurion/orchestrator/slots"
	"centurion/orchestrator/state"
	"centurion/orchestrator/task"
	"centurion/store"
	"centurion/workspace"
)

// Mission is a running mission.
type Mission struct {
	State    *state.Mission
	Sessions *agent.Sessions
	Tasks    *task.Tasks
	Slots    *slots.Pool
	Expand   func(ctx context.Context, task string) error // see [Desk.Expand]; "" for the mission's own agent
	Drop     context.CancelCauseFunc                      // ends everything that belongs to it
	Stopped  <-chan struct{}                              // closed when it has stopped and that is recorded
}

// Desk controls the missions of a host. Its methods may be called from several goroutines.
type Desk struct {
	Store     *store.Store
	Workspace *workspace.Workspace
	Running   func(mission string) *Mission // nil for one that does not run
	Ended     func(task string)             // a task has ended, or for "" a mission
	Workers   int                           // sessions at once, of a mission that sets no limit
	PerAgent  int                           // sessions of one agent at once, likewise

	TrustedPlan func(text []byte) bool                                // whether a person has trusted a plan with this text
	Expanding   func(ctx context.Context, mission, task string) error // is [Desk.Expand] for a mission that does not run
}

// There are four ways to end work. They differ in how much they end and in what it is afterwards: [Desk.Abort] ends a turn, [Desk.Stop] a
// session with everything that it has started, [Desk.Cancel] one task or a mission, [Desk.Pause] a mission. Each takes the id of a session,
// task or mission.

// find returns what an id names, and its mission if that is being worked on.
func (d *Desk) find(ctx context.Context, id string) (mail.Receiver, *Mission, error) {
	to, err := mail.Find(ctx, d.Store, "", id)
	if err != nil {
		return to, nil, err
	}
	return to, d.Running(to.Mission), nil
}

// Expand gives a task, or the agent of a mission, a checkout with all files at the place that is recorded, if it has none: it waits for the
// calls that are under way, and ends what runs in the background.
func (d *Desk) Expand(ctx context.Context, id, _ string) error {
	to, m, err := d.find(ctx, id)
	if err != nil {
		return err
	}
	if m == nil {
		return d.Expanding(ctx, to.Mission, to.Task)
	}
	return m.Expand(ctx, to.Task)
}

// How long is waited until a mission that has only just begun runs, and until it has a conversation to abort; and how often it is looked.
const (
	starting      = time.Second
	beginning     = 5 * time.Second
	beginningPoll = 10 * time.Millisecond
)

// AwaitResumed waits until a mission that is about to run again does, for a limited time, so that the next look at it finds it at work.
func (d *Desk) AwaitResumed(ctx context.Context, id string, about func() bool) error {
	return awaitBegin(ctx, beginning, func() bool {
		m, err := d.Store.Mission(ctx, id)
		return err != nil || m.Status.Alive() || !about()
	})
}

// awaitBegin waits until a mission that has only just begun is so far.
func awaitBegin(ctx context.Context, most time.Duration, far func() bool) error {
	for waited := time.Duration(0); !far() && waited < most; waited += beginningPoll {
		if err := guard.Sleep(ctx, beginningPoll); err != nil {
			return err
		}
	}
	return nil
}

// wait waits for an end.
func wait(ctx context.Context, ended <-chan struct{}) error {
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Abort ends the turn of a session, not the session: its request and its tool calls with their processes end, the calls that are left are
// answered with "Cancelled", and the answer is stored as cancelled. It returns when the turn has ended.
//
// Messages to the session that it has not read are answered next. Without any, the Commander is idle until a person writes to it or resumes
// the mission; no continuation and no result wakes it. Without a person to ask ([centurion.MissionOptions] Ask is not "ask") the mission
// pauses as soon as none of its tasks runs. A Commander without a turn becomes idle likewise. A task whose turn is aborted ends as
// cancelled, unless it has unread messages.
//
// The error has centurion.KindNotFound for an unknown id, and centurion.KindConflict for a session whose mission is not running.
func (d *Desk) Abort(ctx context.Context, id, reason string) error {
	const op = "abort"
	if err := agent.RefuseInCall(ctx, op); err != nil {
		return err
	}
	to, m, err := d.find(ctx, id)
	if err != nil {
		return err
	}
	rec, err := d.Store.Mission(ctx, to.Mission)
	if err != nil {
		return err
	}
	if to.Task == "" && rec.Status.Alive() {
		if err := awaitBegin(ctx, beginning, func() bool {
			m = d.Running(to.Mission)
			return m != nil && m.Sessions.Of(to.Session) != nil
		}); err != nil {
			return err
		}
	}
	cause := agent.Aborted(cmp.Or(reason, agent.AbortedByPerson))
	if m == nil {
		return nothingToAbort("mission "+rec.ID, mail.StatusAtRest(rec), rec.ID)
	}
	c := m.Sessions.Of(to.Session)
	if c == nil && to.Task == "" {
		return &centurion.Error{Op: op, Kind: centurion.KindConflict, Msg: "mission " + to.Mission + " has only just begun", Hint: "try again"}
	}
	if c != nil {
		ended := c.Live.Abort(cause)
		m.State.Notify()
		if ended != nil {
			return wait(ctx, ended)
		}
	}
	if to.Task == "" {
		return nil
	}
	// The task has no turn: it waits for its children, or its work is checked.
	t, err := d.Store.Task(ctx, to.Task)
	if err != nil {
		return err
	}
	if t.Status.Ended() {
		return nothingToAbort("task "+t.ID, string(t.Status), t.ID)
	}
	return d.cancelTask(ctx, to.Mission, t.ID, cause.Why())
}

func nothingToAbort(what, status, id string) error {
	return &centurion.Error{Op: "abort", Kind: centurion.KindConflict, Msg: fmt.Sprintf("nothing to abort: %s is %s", what, status), Hint: "see: centurion show " + id}
}

// Proceed continues a running mission whose Commander was stopped by [Desk.Abort]. Any other mission stays as it is.
func (d *Desk) Proceed(mission string) {
	m := d.Running(mission)
	if m == nil {
		return
	}
	if c := m.Sessions.On(""); c != nil {
		c.Live.Proceed()
	}
	m.State.Notify()
}

// Stop ends a session with everything that it has started: its turn, its tool calls and background commands with their
// processes, and its children with theirs. It returns when all of that has ended and is recorded. A task is cancelled
// then, and so are the tasks below it; a mission, named by its Commander's session or its own id, is paused and can be
// resumed. Work that has ended already stays as it is, without an error.
func (d *Desk) Stop(ctx context.Context, id, reason string) error {
	if err := agent.RefuseInCall(ctx, "stop"); err != nil {
		return err
	}
	to, m, err := d.find(ctx, id)
	if err != nil {
		return err
	}
	reason = cmp.Or(reason, "stopped by a person")
	if to.Task != "" {
		return d.stopFamily(ctx, to, reason)
	}
	if m == nil {
		rec, err := d.Store.Mission(ctx, to.Mission)
		if err != nil || !rec.Status.Alive() {
			return err
		}
	}
	return d.stopMission(ctx, to.Mission, &centurion.Error{Kind: centurion.KindInterrupted, Msg: reason})
}

// stopFamily cancels a task and all below it. It repeats until none is left: a task may just be entering the store.
func (d *Desk) stopFamily(ctx context.Context, to mail.Receiver, reason string) error {
	for {
		living, err := d.livingBelow(ctx, to)
		if err != nil || len(living) == 0 {
			return err
		}
		if m := d.Running(to.Mission); m != nil { // all of them first, so that none waits for another
			for _, id := range living {
				if r := m.State.Run(id); r != nil {
					r.Cancel(&centurion.Error{Kind: centurion.KindCancelled, Msg: reason})
				}
			}
		}
		for _, id := range living {
			if err := d.cancelTask(ctx, to.Mission, id, reason); err != nil {
				return err
			}
		}
	}
}

// livingBelow lists the tasks that have not ended among a task and those below it, starting with the task itself.
func (d *Desk) livingBelow(ctx context.Context, to mail.Receiver) ([]string, error) {
	all, err := d.Store.Tasks(ctx, to.Mission)
	if err != nil {
		return nil, err
	}
	m := d.Running(to.Mission)
	var living []string
	in := map[string]bool{} // sessions of the family
	for _, t := range all { // oldest first: a task is older than those that it has delegated
		if t.ID != to.Task && !in[t.Parent] {
			continue
		}
		if t.Session != "" {
			in[t.Session] = true
		}
		if !t.Status.Ended() || m != nil && m.State.Run(t.ID) != nil {
			living = append(living, t.ID)
		}
	}
	return living, nil
}

// Pause stops a mission so that it can be resumed, and returns when it has stopped. The error has centurion.KindConflict if it has
// stopped already.
func (d *Desk) Pause(ctx context.Context, id, reason string) error {
	to, _, err := d.find(ctx, id)
	if err != nil {
		return err
	}
	return d.stopMission(ctx, to.Mission, &centurion.Error{Kind: centurion.KindInterrupted, Msg: cmp.Or(reason, "paused by a person")})
}

// Cancel ends a mission or a task. One that has ended already stays as it is, without an error.
func (d *Desk) Cancel(ctx context.Context, id, reason string) error {
	to, _, err := d.find(ctx, id)
	if err != nil {
		return err
	}
	reason = cmp.Or(reason, "cancelled by a person")
	if to.Task != "" {
		return d.cancelTask(ctx, to.Mission, to.Task, reason)
	}
	rec, err := d.Store.Mission(ctx, to.Mission)
	if err != nil || !rec.Status.CanBecome(centurion.MissionCancelled) {
		return err
	}
	return d.stopMission(ctx, rec.ID, &centurion.Error{Kind: centurion.KindCancelled, Msg: reason})
}

// stopMission ends a mission for a cause and waits until it has stopped. One that does not run is moved in the store.
func (d *Desk) stopMission(ctx context.Context, id string, cause *centurion.Error) error {
	m := d.Running(id)
	rec, err := d.Store.Mission(ctx, id)
	if err != nil {
		return err
	}
	if m == nil && rec.Status == centurion.MissionPlanning { // its record alone would not keep it from going on
		if err := awaitBegin(ctx, starting, func() bool { m = d.Running(id); return m != nil }); err != nil {
			return err
		}
	}
	if m != nil {
		m.Drop(cause)
		return wait(ctx, m.Stopped)
	}
	defer d.Ended("")
	to := commander.VerdictOf(context.Background(), cause)
	return d.Store.Update(ctx, func(tx *store.Tx) error {
		m, err := tx.Mission(id)
		if err != nil {
			return err
		}
		if to.Status == centurion.MissionPaused && (m.Status.Ended() || m.Status == centurion.MissionFailed) { // only a rewind or a message reopens it
			return &centurion.Error{Op: "change mission " + id, Kind: centurion.KindConflict, Msg: fmt.Sprintf("it is %s and cannot become %s", m.Status, to.Status)}
		}
		_, err = commander.EndMission(tx, id, to, nil)
		return err
	})
}

// cancelTask ends one task and returns when its end is recorded. A task that has ended already stays as it is.
func (d *Desk) cancelTask(ctx context.Context, mission, id, reason string) error {
	if m := d.Running(mission); m != nil {
		return m.Tasks.Cancel(ctx, id, reason)
	}
	defer d.Ended(id)
	return task.CancelIdle(ctx, d.Store, id, reason)
}
