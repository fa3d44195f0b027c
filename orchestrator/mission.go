package orchestrator

import (
	"context"
	"errors"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/loop"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/approval"
	"centurion/orchestrator/background"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/budget"
	"centurion/orchestrator/commander"
	"centurion/orchestrator/frozen"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/merge"
	"centurion/orchestrator/opener"
	"centurion/orchestrator/ownership"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/review"
	"centurion/orchestrator/slots"
	"centurion/orchestrator/state"
	"centurion/orchestrator/task"
	"centurion/orchestrator/toolset"
	"centurion/permission"
	"centurion/tools"
	"centurion/verify"
)

// mission is one running mission. Its loop runs in the goroutine that called Host.Run and owns the root conversation;
// each task runs in a goroutine of its own. They share the store, and wake each other through state.Mission.Notify.
type mission struct {
	h    *Host
	st   *state.Mission
	plan *plan.Plan
	iso  *isolation.Checkouts
	// inProject says that its sessions work in the project's own directory.
	inProject bool
	// frozen are the checks with which its items were handed out.
	frozen *frozen.Desk
	// sessions are the open ones.
	sessions *agent.Sessions
	// approvals are the permissions and answers of its person.
	approvals *approval.Approvals
	wanted    context.Context         // ends when the mission is to stop; lasts while it waits on a full disk
	drop      context.CancelCauseFunc // ends wanted and everything else
	tasks     *task.Tasks
	slots     *slots.Pool
	claims    *ownership.Files
	// commands run in the background of the sessions.
	commands *background.Commands
	// queue puts finished work on the mission's branch.
	queue *merge.Queue

	// loop drives the conversation of its own agent.
	loop   *commander.Loop
	opener *opener.Opener

	stopped chan struct{} // closed when it has stopped and that is recorded
}

func newMission(parent context.Context, h *Host, rec centurion.Mission) *mission {
	c := h.cfg() // it keeps that until it stops
	wanted, drop := context.WithCancelCause(parent)
	ctx, end := context.WithCancelCause(wanted)
	m := &mission{h: h, st: state.New(ctx, end, c.Store, rec, c.cast(rec.Options.Profile)), slots: h.slots.Pool(h.Control.Width(c.width(rec.Options))),
		wanted: wanted, drop: drop, stopped: make(chan struct{}), inProject: rec.Isolation != centurion.IsolationWorktree}
	m.commands = background.New(m.st, c.Runner, c.Scratch)
	m.iso = isolation.New(m.st, h.Project, func(ctx context.Context, rec centurion.Mission, command, agent, task, what string) error {
		return m.approvals.MayRun(ctx, rec, command, agent, task, what)
	})
	m.plan = plan.New(m.st, m.iso, c.Watch, c.Workspace.TodoAt(rec.Todo), c.TrustedPlan)
	m.claims = ownership.New(m.st, m.iso, m.plan, m.slots)
	judge := review.New(m.st, m.plan)
	writer := brief.New(m.st, m.iso, m.plan, judge)
	m.approvals = approval.New(m.st, m.iso, m.plan, approval.Config{
		Rules: func(agent string) []permission.Level { return c.Rules(agent) },
		Home:  c.Home, Workspace: c.Workspace, Timeout: c.AskTimeout, Confined: c.Confined, Hooks: c.Hooks,
		Resting: func(task string, answers int, lives func(string) bool) bool {
			return m.sessions.Resting(task, answers, lives)
		},
		Price: func(model string) *centurion.Price {
			got, _ := c.Model(model) // its error is reported when the model is used
			return got.Price
		},
	})
	reserves := budget.New(rec, m.st.AtLimit)
	reserves.Open(m.st.ID)
	m.sessions = agent.New(m.st, m.iso, m.plan, m.approvals, reserves, c.agentConfig(), agent.Above{Take: writer.Take,
		Begins: func(ctx context.Context, name string) (func(*centurion.Session), error) {
			return m.opener.Begins(ctx, name)
		},
		Turner: func(of *agent.Conversation) agent.Turner { return m.opener.Turner(of) },
		Recast: func(ctx context.Context, of *agent.Conversation, rec centurion.Session) error {
			return m.opener.Recast(ctx, of, rec)
		},
		Startable: func(ctx context.Context) (string, error) { return writer.Startable(ctx, &m.claims.Registry) }, Answered: h.Mail.Answered})
	checker := &verify.Checker{Runner: c.Runner, Network: m.approvals.Online, Connect: m.approvals.CheckConnections}
	prover := merge.NewProver(m.st, m.iso, m.plan, m.approvals, checker, c.Workspace.Dir(), m.sessions.Alone, c.Checks)
	m.frozen = frozen.New(m.st, m.plan)
	m.queue = merge.NewQueue(prover, &m.claims.Registry, m.frozen, c.Returns)
	m.opener = &opener.Opener{Mission: m.st, Plan: m.plan, Checkouts: m.iso, Sessions: m.sessions, Claims: m.claims, Commands: m.commands,
		Reserves: reserves, Brief: writer, Briefs: c.briefs, Call: tools.Call{Mission: m.st.ID, Workspace: c.Workspace, Writers: &h.files,
			Runner: c.Runner, Keys: c.Keys, Web: c.Web, Hooks: c.Hooks, Await: c.Await}}
	m.tasks = task.New(task.Deps{Mission: m.st, Checkouts: m.iso, Plan: m.plan, Frozen: m.frozen, Approvals: m.approvals, Brief: writer, Briefs: c.briefs,
		Queue: m.queue, Sessions: m.sessions, Commands: m.commands, Reserves: reserves, Slots: m.slots, Claims: m.claims, Auditor: h.auditor,
		Workspace: c.Workspace, Version: c.Version, Returns: c.Returns, Open: m.opener.Open, Keeper: h.Keeper})
	m.loop = &commander.Loop{Mission: m.st, Plan: m.plan, Judge: judge, Checkouts: m.iso, Approvals: m.approvals, Sessions: m.sessions,
		Reserves: reserves, Queue: m.queue, Workspace: c.Workspace, Returns: c.Returns, Confined: c.Confinement,
		Policy:   loop.Policy{Countdown: c.Countdown, NewApproach: c.NewApproach, GiveUp: c.GiveUp},
		Branched: h.Branches.Word, Ending: func() { h.Mail.Verdict(m.st.ID) }}
	m.opener.Loop, m.opener.Tools = m.loop, &toolset.Set{Mission: m.st, Plan: m.plan, Judge: judge, Approvals: m.approvals, Brief: writer, Briefs: c.briefs,
		Queue: m.queue, Sessions: m.sessions, Launcher: m.tasks, Workspace: c.Workspace, Finisher: m.loop, Model: c.Model,
		TaskBudget: c.TaskBudget, Wait: c.Await, SubAgentIdle: c.SubAgentIdle, Poll: c.PollInterval}
	return m
}

// errSpace says that a mission that had stopped on a full disk can continue.
var errSpace = errors.New("there is space again")

// run works on the mission until it stops and records how. On a full disk it asks spaceCame first: if that returns true,
// nothing is recorded, and the error is errSpace.
func (m *mission) run(spaceCame func(error) bool) (centurion.Mission, error) {
	ctx := m.st.Ctx
	var watch guard.Group
	var v commander.Verdict
	err := guard.Call("mission "+m.st.ID, func() (err error) {
		v, err = m.work(ctx, &watch)
		return err
	})
	interrupted := ctx.Err() != nil
	m.st.End(commander.ErrStopped)
	crashed := errors.Join(m.tasks.Wait(), watch.Wait(), m.commands.Close(), m.queue.Close(context.WithoutCancel(ctx)))
	if err = errors.Join(err, crashed); err != nil {
		v = commander.VerdictOf(ctx, err)
	}
	if full := m.fullDisk(err, v); full != nil {
		if spaceCame(full) {
			m.iso.Leave(centurion.MissionRunning) // the next run finds its checkouts
			rec, err := m.h.cfg().Store.Mission(context.WithoutCancel(ctx), m.st.ID)
			return rec, errors.Join(errSpace, err)
		}
		if cause := state.CauseOf(m.wanted); cause != nil { // it was stopped while waiting
			v = commander.VerdictOf(m.wanted, cause)
		}
	}
	m.iso.Leave(v.Status)
	rec, ferr := m.loop.Finish(v)
	if !m.loop.Begun && !interrupted {
		ferr = errors.Join(err, ferr)
	}
	return rec, ferr
}

// whole runs the mission, and ends only this mission after a crash outside of its loop.
func (m *mission) whole(spaceCame func(error) bool) (rec centurion.Mission, err error) {
	err = guard.Call("mission "+m.st.ID, func() (err error) {
		rec, err = m.run(spaceCame)
		return err
	})
	if _, panicked := errors.AsType[*guard.PanicError](err); !panicked {
		return rec, err
	}
	// Its work has ended with everything that belongs to it: run recovers from crashes of that itself.
	lost := guard.Call("end mission "+m.st.ID, func() (ferr error) {
		m.iso.Leave(centurion.MissionFailed)
		rec, ferr = m.loop.Finish(commander.VerdictOf(context.Background(), err))
		return ferr
	})
	if lost != nil {
		return rec, errors.Join(err, lost)
	}
	return rec, nil
}

// work starts or resumes the mission and drives it to its verdict.
func (m *mission) work(ctx context.Context, watch *guard.Group) (commander.Verdict, error) {
	rec, err := m.recover(ctx, watch)
	if err != nil {
		return commander.Verdict{}, err
	}
	if !state.Alone(m.st.Profile) {
		watch.Go("watch plan", func() error { return m.plan.WatchPlan(ctx) })
	}
	if rec.Options.MaxDuration > 0 {
		left := time.Duration(rec.Options.MaxDuration-rec.ElapsedMS) * time.Millisecond
		timer := time.AfterFunc(left, func() { _ = m.st.TooLong(rec.Options.MaxDuration) })
		defer timer.Stop()
	}
	return m.loop.Supervise(ctx)
}

// fullDisk returns the error of a full disk that made the mission stop, or nil for any other reason.
func (m *mission) fullDisk(err error, v commander.Verdict) error {
	for _, e := range []error{v.Err, err, context.Cause(m.st.Ctx)} {
		if centurion.KindOf(e) == centurion.KindDisk {
			return e
		}
	}
	return nil
}
