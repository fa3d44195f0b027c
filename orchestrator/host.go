// Package orchestrator runs missions: it drives the Commander's session, starts, verifies and ends tasks, delivers their
// results, and continues until the goal is proven done or only a person can decide. It owns time and carries out the
// decisions of the pure packages recovery and loop.
//
// Every state is a recorded transition: a task is finished because its function returned, never because it looked idle.
package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/guard"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/approval"
	"centurion/orchestrator/branches"
	"centurion/orchestrator/control"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/mail"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/pulse"
	"centurion/orchestrator/retention"
	"centurion/orchestrator/revert"
	"centurion/orchestrator/roots"
	"centurion/orchestrator/shells"
	"centurion/orchestrator/slots"
	"centurion/orchestrator/space"
	"centurion/orchestrator/state"
	"centurion/sandbox"
	"centurion/tools"
)

// Host runs the missions of one project. Its methods are safe for concurrent use.
type Host struct {
	Keeper   *retention.Keeper  // archives and removes ended missions
	Branches *branches.Branches // rewinds and forks conversations
	Project  *isolation.Project // its repository and its history of files; the caller closes it when no mission runs any more
	Space    *space.Waits       // missions that wait on a full disk
	Mail     *mail.Desk         // messages to their agents, and the answers
	Control  *control.Desk      // states of sessions, ends and limits of missions
	Roots    *roots.Desk        // conversations that a person begins
	Shell    *shells.Desk       // commands of a person in conversations that rest
	inForce  atomic.Pointer[inForce]
	slots    *slots.Shared // the right to run, shared by all missions
	files    tools.Writers // lets one session at a time replace a file
	auditor  *pulse.Auditor
	desk     *plan.Desk
	reverts  *revert.Desk

	starting sync.Mutex // held while a new mission gets its plan, and while a mission begins to run

	mu       sync.Mutex // protects what follows
	missions map[string]*mission
}

// New returns a host that runs nothing yet.
func New(cfg Config) *Host {
	cfg.complete()
	h := &Host{slots: slots.New(cfg.Workers, cfg.Concurrency).Within(cfg.Process),
		Project:  isolation.NewProject(cfg.Store, cfg.Workspace, cfg.Worktrees, cfg.Shadow),
		missions: map[string]*mission{}}
	h.Keeper = retention.New(retention.Config{Store: cfg.Store, Workspace: cfg.Workspace, Project: h.Project, Retention: cfg.Retention,
		ArchiveAfter: cfg.ArchiveAfter, ArchiveFailedAfter: cfg.ArchiveFailedAfter, KeepTasks: cfg.KeepTasks,
		Working: func(mission string) bool { return h.running(mission) != nil }, Forget: h.forget})
	model := func(ref string) (Model, error) {
		h.cfg().Look(context.Background())
		return h.cfg().Model(ref)
	}
	if cfg.Model == nil { // no mission runs in this process
		model = nil
	}
	h.Mail = mail.New(cfg.Store, model, func(id string) *agent.Sessions {
		if m := h.running(id); m != nil {
			return m.sessions
		}
		return nil
	})
	h.Mail.Hooks = cfg.Hooks
	h.Mail.Hold, h.Mail.Agent = h.hold, func(profile, name string) (agents.Agent, error) { return h.cfg().cast(profile).Find(name) }
	h.Control = &control.Desk{Store: cfg.Store, Workspace: cfg.Workspace, Running: h.controlled, Ended: h.Keeper.Ended, Workers: cfg.Workers, PerAgent: cfg.PerAgent,
		TrustedPlan: cfg.TrustedPlan, Expanding: h.Project.Expand}
	h.Space = &space.Waits{Store: cfg.Store, Workspace: cfg.Workspace, Longest: cfg.DiskWait, Publish: cfg.Publish}
	h.auditor = &pulse.Auditor{Interval: cfg.PollInterval, Audit: h.audit}
	h.desk, h.reverts = plan.NewDesk(cfg.Store, cfg.Workspace, h.planOf, cfg.TrustedPlan), revert.New(cfg.Store, cfg.Workspace)
	h.Branches = &branches.Branches{Store: cfg.Store, Workspace: cfg.Workspace, Hold: h.hold, Rewound: h.reverts.MarkRewound, Rest: h.rest,
		Command: func(session string) <-chan struct{} { return h.Shell.Running(session) },
		Files:   &revert.Files{Project: h.Project, Workspace: cfg.Workspace}}
	h.Mail.Forget = h.Branches.Forget
	h.Renew(cfg)
	h.Roots = &roots.Desk{Store: cfg.Store, Workspace: cfg.Workspace, Version: cfg.Version, Cancel: h.Control.Cancel, Look: cfg.Look,
		Cast: func(profile string) *agents.Cast { return h.cfg().cast(profile) },
		Model: func(ref string) (centurion.ModelRef, error) {
			m, err := h.cfg().models().Model(ref)
			return m.Ref, err
		}}
	h.Mail.Shorten = func(ctx context.Context, session string) (bool, error) { return h.Shorten(ctx, session, "") }
	h.Shell = &shells.Desk{Session: cfg.agentConfig().Session, Model: model, Hold: h.hold, Forget: h.Branches.Forget, Over: func() {
		h.starting.Lock()
		defer h.starting.Unlock()
		h.release()
	}}
	h.Shell.Renew = h.renew
	h.Roots.Abort = func(ctx context.Context, session string) error {
		_, err := h.Shell.Abort(ctx, session)
		return err
	}
	h.Shell.Session.Store, h.Shell.Session.Call = cfg.Store, tools.Call{Runner: cfg.Runner, Keys: cfg.Keys}
	return h
}

// Start records a new mission with its Commander's session. It does not run it. The error has centurion.KindUsage for an empty goal or
// an unknown agent or model.
func (h *Host) Start(ctx context.Context, goal string, opts centurion.MissionOptions) (centurion.Mission, error) {
	h.cfg().Look(ctx)
	return h.cfg().starter.Start(ctx, goal, opts)
}

// Run works on a mission until it stops and returns it as it is then: completed, failed, cancelled, paused or blocked.
// It resumes a mission that had stopped. When ctx ends, everything of the mission has ended when Run returns, and the
// mission is paused; with [centurion.ErrHandover] as the cause it stays as it is, and the next host continues it. Run
// waits for space on a full disk as long as [Config] allows. An error means that not even the end could be recorded.
func (h *Host) Run(ctx context.Context, id string) (centurion.Mission, error) {
	again, begun := "", false
	for {
		m, rec, err := h.enter(ctx, id)
		if m == nil {
			if !begun && centurion.KindOf(err) == centurion.KindConflict { // another call works on it
				return rec, err
			}
			if h.Mail.Closed(ctx, rec, id, err) {
				again, begun = "", false
				continue
			}
			return rec, err
		}
		if !begun {
			h.Mail.Expect(id)
			begun = true
		}
		m.loop.Again = again
		rec, err = m.whole(func(err error) bool { return h.Space.Await(m.wanted, m.st.ID, err) })
		h.leave(m)
		switch {
		case errors.Is(err, mail.ErrUnread):
			again = mail.ErrUnread.Msg
		case errors.Is(err, errSpace):
			again = ""
		default:
			if !h.Mail.Closed(ctx, rec, id, err) {
				return rec, err
			}
			again, begun = "", false
		}
	}
}

// enter begins to work on a mission. It returns nil for one that is over or already running.
func (h *Host) enter(ctx context.Context, id string) (*mission, centurion.Mission, error) {
	cfg := h.cfg()
	rec, err := cfg.Store.Mission(context.WithoutCancel(ctx), id)
	if err != nil {
		return nil, rec, err
	}
	cfg.Look(ctx)
	h.starting.Lock()
	defer h.starting.Unlock()
	for ended := h.Shell.Running(rec.Session); ended != nil && ctx.Err() == nil; ended = h.Shell.Running(rec.Session) { // a person's command is recorded in its session
		h.starting.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
		}
		h.starting.Lock()
	}
	if rec, err = cfg.Store.Mission(context.WithoutCancel(ctx), id); err != nil || rec.Status.Ended() {
		return nil, rec, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.missions[id] != nil {
		return nil, rec, &centurion.Error{Op: "run mission", Kind: centurion.KindConflict, Msg: "mission " + id + " is running already",
			Hint: "follow it with: centurion logs -f " + id}
	}
	h.missions[id] = newMission(ctx, h, rec)
	h.slots.Enter(h.missions[id].slots)
	return h.missions[id], rec, nil
}

func (h *Host) leave(m *mission) {
	h.starting.Lock() // a mission that begins meanwhile would lose its first commands
	h.mu.Lock()
	delete(h.missions, m.st.ID)
	h.mu.Unlock()
	if m.inProject {
		h.release()
	}
	h.starting.Unlock()
	h.slots.Leave(m.slots)
	m.drop(nil)
	h.Keeper.Ended("") // its blocked tasks will not be worked on any more
	close(m.stopped)
}

// release ends what runs beside commands in the project's own directory, unless it is used. Call it with h.starting held.
func (h *Host) release() {
	h.mu.Lock()
	used := h.Shell.Running("") != nil
	for _, m := range h.missions {
		used = used || m.inProject
	}
	h.mu.Unlock()
	cfg := h.cfg()
	if r, ok := cfg.Runner.(centurion.Releaser); ok && !used {
		_ = r.Release(cfg.Workspace.Dir()) // files that stay are removed by the next host
	}
}

// Answer answers an ask: once, always or reject for a permission, run or quit for a plan, a text for a question. The error has
// centurion.KindNotFound if no ask with that id waits. from is the process that answers.
func (h *Host) Answer(ctx context.Context, id, answer string, from sandbox.Peer) error {
	return approval.Answer(ctx, h.cfg().Store, id, answer, from, func(mission string) *approval.Approvals {
		if m := h.running(mission); m != nil {
			return m.approvals
		}
		return nil
	})
}

// Running lists the ids of the running missions, in no order.
func (h *Host) Running() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.missions))
}

// hold keeps missions from beginning until release is called, and reports whether this one is running already.
func (h *Host) hold(mission string) (working bool, release func()) {
	h.starting.Lock()
	return h.running(mission) != nil, h.starting.Unlock
}

// AtRest calls do while a mission neither runs nor begins to. It returns the error of do, or one with centurion.KindConflict, without
// calling do, if the mission is running. A call in do that enters a mission would deadlock.
func (h *Host) AtRest(id string, do func() error) error {
	working, release := h.hold(id)
	defer release()
	if working {
		return &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("mission %s is being worked on", id), Hint: "stop it first: centurion pause " + id}
	}
	return do()
}

// restTime is how long a mission may take to stop when its one agent has answered.
const restTime = 2 * time.Second

// rest waits until a mission that stops with each answer has done so, unless its agent works.
func (h *Host) rest(ctx context.Context, mission, session string) {
	m := h.running(mission)
	if m == nil || !state.Alone(m.st.Profile) {
		return
	}
	if c := m.sessions.Of(session); c != nil && c.Live.Busy() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, restTime)
	defer cancel()
	select {
	case <-m.stopped:
	case <-ctx.Done():
	}
}

func (h *Host) running(id string) *mission {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.missions[id]
}

// controlled is a running mission as [control.Desk] needs it, or nil.
func (h *Host) controlled(id string) *control.Mission {
	m := h.running(id)
	if m == nil {
		return nil
	}
	return &control.Mission{State: m.st, Sessions: m.sessions, Tasks: m.tasks, Slots: m.slots, Expand: m.iso.Expand, Drop: m.drop, Stopped: m.stopped}
}

// audit examines every task at work. Gap is the delay of this poll beyond its interval.
func (h *Host) audit(gap time.Duration) {
	h.mu.Lock()
	all := slices.Collect(maps.Values(h.missions))
	h.mu.Unlock()
	for _, m := range all {
		for _, c := range m.sessions.All() {
			if gap > pulse.Standstill {
				c.Pulse.Forgive(gap)
			}
			if c.Task != nil {
				c.Examine()
			}
		}
		m.tasks.FindLost()
	}
}

// forget frees the memory of a task whose session was dropped.
func (h *Host) forget(t centurion.Task) {
	if m := h.running(t.Mission); m != nil {
		m.st.Fences.Forget(t.ID)
		m.commands.Forget(t.Session)
	}
}

// planOf returns the plan's file of a running mission, or nil.
func (h *Host) planOf(id string) *plan.File {
	if m := h.running(id); m != nil {
		return m.plan.File
	}
	return nil
}

// publisher keeps a panic of the receiver from the sender.
func publisher(publish func(centurion.Event)) func(centurion.Event) {
	if publish == nil {
		return nil
	}
	return func(e centurion.Event) {
		_ = guard.Call("publish", func() error { publish(e); return nil }) // a delta may be lost
	}
}
