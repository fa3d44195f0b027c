package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"time"

	"centurion"
	"centurion/event"
	"centurion/guard"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/approval"
	"centurion/orchestrator/background"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/budget"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/merge"
	"centurion/orchestrator/ownership"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/review"
	"centurion/orchestrator/slots"
	"centurion/orchestrator/state"
	"centurion/orchestrator/task"
	"centurion/orchestrator/toolset"
	"centurion/permission"
	"centurion/store"
)

// mission is one running mission. Its loop runs in the goroutine that called Host.Run and owns the root conversation;
// each task runs in a goroutine of its own. They meet in the store, and wake each other through notify.
type mission struct {
	h     *Host
	st    *state.Mission
	plan  *plan.Plan
	judge *review.Judge
	brief *brief.Writer
	root  *conversation
	iso   *isolation.Checkouts
	// sessions are those that are being worked on.
	sessions *agent.Sessions
	// approvals are what its person allows and answers.
	approvals *approval.Approvals
	wanted    context.Context         // lasts as long as somebody wants the mission to go on, also while a full disk is waited for
	drop      context.CancelCauseFunc // ends wanted and everything else
	tasks     *task.Tasks
	toolset   *toolset.Set
	slots     *slots.Pool
	claims    *ownership.Files
	// workers is how many sessions run at once; h.mu protects it.
	workers int
	// commands go on beside the sessions.
	commands *background.Commands
	// queue puts finished work on the mission's branch.
	queue *merge.Queue

	// reserves is what of the budget belongs to whom.
	reserves *budget.Reserves

	loop *mainLoop

	// These belong to the loop.
	alive      bool   // it was moved to a living state
	ownReturns int    // times in a row that its own agent's work could not be merged
	again      string // why the same host begins anew; empty if it does not

	resumed   bool // a person has resumed it: it had stopped
	restarted bool // its loop has crashed and begins anew

	stopped chan struct{} // closed when it has stopped and that is recorded
}

func newMission(parent context.Context, h *Host, rec centurion.Mission) *mission {
	wanted, drop := context.WithCancelCause(parent)
	ctx, end := context.WithCancelCause(wanted)
	workers := h.cfg.workersOf(rec)
	m := &mission{h: h, st: state.New(ctx, end, h.cfg.Store, rec, h.cfg.cast(rec.Options.Profile)), slots: h.slots.Pool(workers, h.cfg.perAgentOf(rec)), workers: workers, wanted: wanted, drop: drop,
		stopped: make(chan struct{})}
	m.commands = background.New(m.st, h.cfg.Runner, h.cfg.Scratch)
	m.iso = isolation.New(m.st, h.Project, func(ctx context.Context, rec centurion.Mission, command, agent, task, what string) error {
		return m.approvals.MayRun(ctx, rec, command, agent, task, what)
	})
	m.plan = plan.New(m.st, m.iso, h.cfg.Watch, h.cfg.Workspace.TodoAt(rec.Todo))
	m.claims = ownership.New(m.st, m.iso, m.plan, m.slots)
	m.judge = review.New(m.st, m.plan)
	m.loop = &mainLoop{m: m}
	m.brief = brief.New(m.st, m.iso, m.plan, m.judge)
	m.approvals = approval.New(m.st, m.iso, m.plan, approval.Config{Rules: func(agent string) []permission.Level { return h.cfg.Rules(agent) }, Home: h.cfg.Home, Dir: h.cfg.Workspace.Dir(), Timeout: h.cfg.AskTimeout,
		Resting: func(task string, answers int, lives func(string) bool) bool {
			return m.sessions.Resting(task, answers, lives)
		}, Price: func(model string) *centurion.Price {
			got, _ := h.cfg.Model(model) // one that cannot be had is told when it is used
			return got.Price
		}})
	m.reserves = budget.New(rec, m.st.AtLimit)
	m.reserves.Open(m.st.ID)
	m.sessions = agent.New(m.st, m.iso, m.plan, m.approvals, m.reserves, h.cfg.agentConfig(), agent.Above{Take: m.brief.Take,
		Startable: m.startable, Answered: m.answerPrompts})
	m.queue = merge.NewQueue(merge.NewProver(m.st, m.iso, m.plan, m.approvals, h.checker, h.cfg.Workspace.Dir(), m.sessions.Alone), &m.claims.Registry, h.cfg.Returns)
	m.tasks = task.New(task.Deps{Mission: m.st, Checkouts: m.iso, Plan: m.plan, Approvals: m.approvals, Brief: m.brief, Briefs: h.briefs, Queue: m.queue,
		Sessions: m.sessions, Commands: m.commands, Reserves: m.reserves, Slots: m.slots, Claims: m.claims, Auditor: h.auditor,
		Workspace: h.cfg.Workspace, Version: h.cfg.Version, Returns: h.cfg.Returns, Open: m.open, Keeper: h.Keeper})
	m.toolset = &toolset.Set{Mission: m.st, Plan: m.plan, Judge: m.judge, Approvals: m.approvals, Brief: m.brief, Briefs: h.briefs,
		Queue: m.queue, Sessions: m.sessions, Launcher: m.tasks, Workspace: h.cfg.Workspace, Finisher: m.loop, Model: h.cfg.Model,
		TaskBudget: h.cfg.TaskBudget, Wait: h.cfg.Await, SubAgentIdle: h.cfg.SubAgentIdle, Poll: h.cfg.PollInterval}
	return m
}

// errSpace says that a mission that had stopped at a full disk can go on.
var errSpace = errors.New("there is space again")

// errStopped ends what is left of a mission that has its verdict.
var errStopped = &centurion.Error{Kind: centurion.KindInterrupted, Msg: "the mission has stopped"}

// run works on the mission until it stops and records how. It asks spaceCame first when the disk is full: if that returns
// true nothing is recorded, and the error is errSpace.
func (m *mission) run(spaceCame func(error) bool) (centurion.Mission, error) {
	ctx := m.st.Ctx
	var watch guard.Group
	var v verdict
	err := guard.Call("mission "+m.st.ID, func() (err error) {
		v, err = m.work(ctx, &watch)
		return err
	})
	interrupted := ctx.Err() != nil
	m.st.End(errStopped)
	crashed := errors.Join(m.tasks.Wait(), watch.Wait(), m.commands.Close(), m.queue.Close(context.WithoutCancel(ctx)))
	if err = errors.Join(err, crashed); err != nil {
		v = verdictOf(ctx, err)
	}
	if full := m.fullDisk(err, v); full != nil {
		if spaceCame(full) {
			m.iso.Leave(centurion.MissionRunning) // what goes on finds its checkouts
			rec, err := m.h.cfg.Store.Mission(context.WithoutCancel(ctx), m.st.ID)
			return rec, errors.Join(errSpace, err)
		}
		if cause := state.CauseOf(m.wanted); cause != nil { // it was stopped while it waited
			v = verdictOf(m.wanted, cause)
		}
	}
	m.iso.Leave(v.status)
	rec, ferr := m.finish(v)
	if !m.alive && !interrupted {
		ferr = errors.Join(err, ferr)
	}
	return rec, ferr
}

// work begins or resumes the mission and drives it to its verdict.
func (m *mission) work(ctx context.Context, watch *guard.Group) (verdict, error) {
	rec, err := m.recover(ctx, watch)
	if err != nil {
		return verdict{}, err
	}
	if !state.Alone(m.st.Profile) {
		watch.Go("watch plan", func() error { return m.plan.WatchPlan(ctx) })
	}
	if rec.Options.MaxDuration > 0 {
		left := time.Duration(rec.Options.MaxDuration-rec.ElapsedMS) * time.Millisecond
		timer := time.AfterFunc(left, func() { _ = m.st.TooLong(rec.Options.MaxDuration) })
		defer timer.Stop()
	}
	return m.supervise(ctx)
}

// begin moves the mission to a living state and says, in the history, why it goes on if it had stopped.
func (m *mission) begin(ctx context.Context) (centurion.Mission, error) {
	var rec centurion.Mission
	err := m.h.cfg.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if rec, err = tx.Mission(m.st.ID); err != nil {
			return err
		}
		rec.Runs++
		if rec.Status.Alive() {
			return m.beginAgain(tx, &rec)
		}
		was := rec
		m.resumed = true
		to := centurion.MissionRunning
		if !was.HadItems && !state.Alone(m.st.Profile) {
			to = centurion.MissionPlanning
		}
		if was.Status == centurion.MissionFailed {
			to = centurion.MissionRunning
		}
		rec, err = state.MoveMission(tx, m.st.ID, to, "", func(r *centurion.Mission) {
			r.Reopened, r.Runs, r.Reverted, r.Was = 0, was.Runs, nil, nil // what was reverted stands in the plan and in a word to its agent
		})
		return err
	})
	return rec, err
}

// beginAgain goes on with a mission whose host has died or has handed it over. Who waited for an answer of a person asks
// again; a question stays open, and the call that asked finds it.
func (m *mission) beginAgain(tx *store.Tx, rec *centurion.Mission) error {
	if err := tx.PutMission(rec); err != nil || rec.Runs == 1 {
		return err
	}
	if err := state.CloseAsks(tx, m.st.ID, true); err != nil {
		return err
	}
	d := state.Living(*rec)
	d.Reason = cmp.Or(m.again, "its host went away")
	_, err := tx.Append(centurion.Event{Type: centurion.EventMissionResumed, Mission: m.st.ID, Session: rec.Session, Data: event.Data(d)})
	return err
}

// fullDisk returns the error of a disk that made the mission stop, or nil if something else did.
func (m *mission) fullDisk(err error, v verdict) error {
	for _, e := range []error{v.err, err, context.Cause(m.st.Ctx)} {
		if centurion.KindOf(e) == centurion.KindDisk {
			return e
		}
	}
	return nil
}
