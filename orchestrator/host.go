// Package orchestrator runs missions: it drives the Commander's session, starts, verifies and ends tasks, delivers their
// results, and goes on until the goal is proven done or something only a person can decide stands in the way. It owns
// time and carries out what the pure packages recovery and loop decide.
//
// Every state is a recorded transition: a task is finished because its function returned, never because it looked idle.
package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/agents/instructions"
	"centurion/guard"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/approval"
	"centurion/orchestrator/branches"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/mail"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/pulse"
	"centurion/orchestrator/retention"
	"centurion/orchestrator/revert"
	"centurion/orchestrator/slots"
	"centurion/orchestrator/space"
	"centurion/orchestrator/state"
	"centurion/permission"
	"centurion/recovery"
	"centurion/session"
	"centurion/store"
	"centurion/tools"
	"centurion/tools/web"
	"centurion/verify"
	"centurion/workspace"
	"centurion/worktree"
)

// Defaults of [Config].
const (
	DefaultWorkers   = 50
	DefaultPerAgent  = 10
	DefaultCountdown = 2 * time.Second
	DefaultReturns   = 3               // times a failed check sends a task back to its worker, or the final check reopens items
	DefaultAwait     = 5 * time.Minute // how long a synchronous delegation waits before it goes on in the background
	DefaultGateWait  = 5 * time.Second // a longer wait for a provider gives the slot back
	DefaultDiskWait  = time.Minute     // how long a mission waits for a full disk before it stops; a script wants to hear of it
)

// Config is what a [Host] works with. Store, Workspace, Model and Runner are needed; the zero value of everything else is
// a useful default.
type Config struct {
	Store     *store.Store
	Workspace *workspace.Workspace
	Cast      *agents.Cast // of the profile mission
	Assistant *agents.Cast // of the profile assistant
	// Model finds a model by its "provider/model" name; "" is the project's default.
	Model   func(ref string) (Model, error)
	Runner  centurion.Runner
	Mark    string                                // what programs that tools start have as [centurion.HostVariable]
	Web     *web.Client                           // for the tools that fetch and search; nil where there is no network
	Rules   func(agent string) []permission.Level // the permission rules for an agent, weakest first
	Home    string                                // the person's home directory, for rules with ~
	Publish func(centurion.Event)                 // takes token deltas; must not block
	Version string
	// Worktrees opens the project's git repository; nil where there is none: then all sessions of a mission write in the
	// project's own directory. The host closes it.
	Worktrees func(context.Context) (*worktree.Repo, error)
	// Shadow opens the history of the project's files, for missions whose sessions all write in the project's own directory; nil
	// keeps none.
	Shadow  func(context.Context) (*worktree.Shadow, error)
	Scratch string // a directory for what background commands print; "" is the system's for temporary files
	// Watch calls changed whenever a plan's file may have changed, until ctx ends. Nil watches the file itself.
	Watch func(ctx context.Context, plan *workspace.TodoFile, changed func()) error

	// Fallback lists what a session of an agent whose own model is the given one goes on with when that fails, as
	// "provider/model", in the order of preference; nil means nothing.
	Fallback    func(agent, model string) []string
	Concurrency slots.Caps // caps beside the two that follow

	// Instructions finds what project and person have written down for agents, and skills; nil finds nothing.
	Instructions *instructions.Finder

	Workers   int // sessions at once
	PerAgent  int // sessions of one agent at once
	Countdown time.Duration
	Returns   int
	Await     time.Duration
	GateWait  time.Duration   // a longer wait for a provider gives the slot back
	DiskWait  time.Duration   // how long a mission waits for space on a full disk; below zero: for ever
	Recovery  recovery.Policy // how often, and after which wait, a failed turn is repeated
	// An attempt that works longer than SessionTTL fails; its waits do not count.
	PollInterval, StallTimeout, SessionTTL time.Duration
	// How long what has ended is kept: see [retention.Config].
	Retention, ArchiveAfter, ArchiveFailedAfter time.Duration
	KeepTasks                                   int
	// SubAgentIdle is how long nothing may come from a sub-agent, its waits apart, before it is stopped.
	SubAgentIdle time.Duration
	// NewApproach and GiveUp are rounds without progress after which another approach is asked for, and a person.
	NewApproach, GiveUp int
	Buffer              int                  // tokens of a model's window that stay free; 0 means what session.Buffer says
	TaskBudget          centurion.TaskBudget // what a task may spend that is given no budget of its own; zero fields: no limit
	// AskTimeout is how long an agent's question waits for a person before its agent is told to decide itself; 0: for ever.
	AskTimeout time.Duration

	Policy     session.Policy            // which tool calls of one answer may overlap
	Policies   map[string]session.Policy // the same for single agents, by name
	EveryEvent bool                      // each piece of an answer is stored before the next is taken
}

// Model is a model that sessions can talk to.
type Model = agent.Model

// Host runs the missions of one project. Its methods may be called from several goroutines.
type Host struct {
	Keeper   *retention.Keeper  // of what has ended
	Branches *branches.Branches // of conversations
	Project  *isolation.Project // its repository and its history of files; to be closed when no mission runs any more
	Space    *space.Waits       // of missions on a full disk
	Mail     *mail.Desk         // messages to their agents, and the answers
	cfg      Config
	slots    *slots.Shared // the right to run, of all missions together
	checker  *verify.Checker
	files    tools.Writers // one session at a time replaces a file
	auditor  *pulse.Auditor
	desk     *plan.Desk
	reverts  *revert.Desk
	briefs   *brief.Desk

	starting sync.Mutex // held while a mission's plan gets its name, and while a mission that has one is entered

	mu       sync.Mutex // protects what follows
	missions map[string]*mission
}

// New returns a host that runs nothing yet.
func New(cfg Config) *Host {
	cfg.Workers = cmp.Or(cfg.Workers, DefaultWorkers)
	cfg.PerAgent = cmp.Or(cfg.PerAgent, DefaultPerAgent)
	cfg.Countdown = cmp.Or(cfg.Countdown, DefaultCountdown)
	cfg.Returns = cmp.Or(cfg.Returns, DefaultReturns)
	cfg.Await = cmp.Or(cfg.Await, DefaultAwait)
	cfg.GateWait = cmp.Or(cfg.GateWait, DefaultGateWait)
	cfg.DiskWait = cmp.Or(cfg.DiskWait, DefaultDiskWait)
	cfg.PollInterval = cmp.Or(cfg.PollInterval, DefaultPollInterval)
	cfg.StallTimeout = cmp.Or(cfg.StallTimeout, DefaultStallTimeout)
	cfg.SessionTTL = cmp.Or(cfg.SessionTTL, DefaultSessionTTL)
	cfg.SubAgentIdle = cmp.Or(cfg.SubAgentIdle, DefaultSubAgentIdle)
	if cfg.Assistant == nil {
		cfg.Assistant = agents.DefaultAssistant()
	}
	cfg.Publish = publisher(cfg.Publish)
	if cfg.Cast == nil {
		cfg.Cast = agents.Default()
	}
	if cfg.Watch == nil {
		cfg.Watch = func(ctx context.Context, plan *workspace.TodoFile, changed func()) error {
			return plan.Watch(ctx, changed)
		}
	}
	if cfg.Rules == nil {
		cfg.Rules = func(string) []permission.Level {
			return []permission.Level{{Name: permission.DefaultLevel, Rules: permission.Defaults(false)}}
		}
	}
	h := &Host{cfg: cfg, slots: slots.New(cfg.Workers, cfg.Concurrency), checker: &verify.Checker{Runner: cfg.Runner},
		Project:  isolation.NewProject(cfg.Store, cfg.Workspace, cfg.Worktrees, cfg.Shadow),
		missions: map[string]*mission{}}
	h.Keeper = retention.New(retention.Config{Store: cfg.Store, Workspace: cfg.Workspace, Project: h.Project, Retention: cfg.Retention,
		ArchiveAfter: cfg.ArchiveAfter, ArchiveFailedAfter: cfg.ArchiveFailedAfter, KeepTasks: cfg.KeepTasks,
		Working: func(mission string) bool { return h.running(mission) != nil }, Forget: h.forget})
	h.Mail = mail.New(cfg.Store, cfg.Model, h.sessions)
	h.Space = &space.Waits{Store: cfg.Store, Workspace: cfg.Workspace, Longest: cfg.DiskWait, Publish: cfg.Publish}
	h.auditor = &pulse.Auditor{Interval: cfg.PollInterval, Audit: h.audit}
	h.desk, h.reverts = plan.NewDesk(cfg.Store, cfg.Workspace, h.planOf), revert.New(cfg.Store, cfg.Workspace)
	h.Branches = &branches.Branches{Store: cfg.Store, Workspace: cfg.Workspace, Hold: h.hold, Rewound: h.reverts.MarkRewound}
	h.briefs = &brief.Desk{Rules: func(agent string) []permission.Level { return h.cfg.Rules(agent) }, Instructions: cfg.Instructions, Web: cfg.Web, Workspace: cfg.Workspace, Project: h.Project,
		Window: func(model centurion.ModelRef) int {
			got, _ := h.cfg.Model(model.String()) // one that cannot be had is told when it is used
			return got.Context
		}}
	return h
}

// cast returns the agents that a profile has.
func (c *Config) cast(profile string) *agents.Cast {
	if profile == agents.ProfileAssistant {
		return c.Assistant
	}
	return c.Cast
}

// checkProfile refuses a profile that there is not, and what a profile has not.
func checkProfile(opts centurion.MissionOptions) error {
	known := []string{agents.ProfileMission, agents.ProfileAssistant}
	switch {
	case opts.Profile != "" && !slices.Contains(known, opts.Profile):
		e := &centurion.Error{Op: "start mission", Kind: centurion.KindUsage, Msg: fmt.Sprintf("there is no profile %q; the profiles are %s", opts.Profile, strings.Join(known, ", "))}
		if near := centurion.Nearest(opts.Profile, known); near != "" {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		}
		return e
	case state.Alone(opts.Profile) && opts.PlanOnly:
		return &centurion.Error{Op: "start mission", Kind: centurion.KindUsage, Msg: "the profile assistant makes no plans", Hint: "take --profile mission, or ask it for a plan in words"}
	case state.Alone(opts.Profile) && opts.Plan != "":
		return &centurion.Error{Op: "start mission", Kind: centurion.KindUsage, Msg: "the profile assistant carries out no plans", Hint: "leave out --plan, or use --profile mission"}
	case state.Alone(opts.Profile) && opts.Level > 0:
		return &centurion.Error{Op: "start mission", Kind: centurion.KindUsage, Msg: "the profile assistant knows no levels", Hint: "leave out --level, or take --profile mission"}
	}
	return nil
}

// agentConfig is what the sessions of a mission go by.
func (c *Config) agentConfig() agent.Config {
	return agent.Config{Models: agent.Models{Model: c.Model, Fallback: c.Fallback, Recovery: c.Recovery}, Policies: c.Policies, GateWait: c.GateWait, Await: c.Await,
		Poll: c.PollInterval, Limits: c.limits(), Session: session.Config{Publish: c.Publish, Root: c.Workspace.Dir(), Policy: c.Policy, EveryEvent: c.EveryEvent,
			Buffer: c.Buffer}}
}

// Run works on a mission until it stops and returns it as it is then: completed, failed, cancelled, paused or blocked.
// A mission that had stopped is resumed. When ctx ends, everything of the mission is stopped and has ended when Run
// returns, and the mission is paused; with [centurion.ErrHandover] as the cause it stays as it is, for the next host to
// go on with. A full disk is waited for as [Config] says. An error means that not even the end could be recorded.
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

// enter begins to work on a mission. It returns nil for one that is over, or is being worked on already.
func (h *Host) enter(ctx context.Context, id string) (*mission, centurion.Mission, error) {
	h.starting.Lock()
	defer h.starting.Unlock()
	rec, err := h.cfg.Store.Mission(context.WithoutCancel(ctx), id)
	if err != nil || rec.Status.Ended() {
		return nil, rec, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.missions[id] != nil {
		return nil, rec, &centurion.Error{Op: "run mission", Kind: centurion.KindConflict, Msg: "mission " + id + " is running already",
			Hint: "follow it with: centurion logs -f " + id}
	}
	h.missions[id] = newMission(ctx, h, rec)
	h.fit()
	return h.missions[id], rec, nil
}

func (h *Host) leave(m *mission) {
	h.mu.Lock()
	delete(h.missions, m.st.ID)
	h.fit()
	h.mu.Unlock()
	m.drop(nil)
	h.Keeper.Ended("") // what was blocked will not be worked on any more
	close(m.stopped)
}

// Answer answers an ask: once, always or reject for a permission, run or quit for a plan, a text for a question. The error has
// centurion.KindNotFound if nothing of that id waits.
func (h *Host) Answer(ctx context.Context, id, answer string) error {
	return approval.Answer(ctx, h.cfg.Store, id, answer, func(mission string) *approval.Approvals {
		if m := h.running(mission); m != nil {
			return m.approvals
		}
		return nil
	})
}

// Running lists the ids of the missions that are being worked on, in no order.
func (h *Host) Running() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.missions))
}

// hold stops work on a mission from beginning until release is called, and says whether it is being worked on already.
func (h *Host) hold(mission string) (working bool, release func()) {
	h.starting.Lock()
	return h.running(mission) != nil, h.starting.Unlock
}

// AtRest calls do while nobody works on a mission or begins to. It returns its error, or one with centurion.KindConflict if the
// mission is being worked on; then do is not called. Nothing that enters a mission may be called in do: it would wait for ever.
func (h *Host) AtRest(id string, do func() error) error {
	working, release := h.hold(id)
	defer release()
	if working {
		return &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("mission %s is being worked on", id), Hint: "stop it first: centurion pause " + id}
	}
	return do()
}

func (h *Host) running(id string) *mission {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.missions[id]
}

// sessions returns those of a mission that is being worked on, or nil.
func (h *Host) sessions(id string) *agent.Sessions {
	if m := h.running(id); m != nil {
		return m.sessions
	}
	return nil
}

// audit looks at every task that is at work. Gap is how much later than it should this poll has come.
func (h *Host) audit(gap time.Duration) {
	h.mu.Lock()
	all := slices.Collect(maps.Values(h.missions))
	h.mu.Unlock()
	for _, m := range all {
		m.audit(gap)
	}
}

// forget lets go of what is kept in memory for a task whose session was dropped.
func (h *Host) forget(t centurion.Task) {
	if m := h.running(t.Mission); m != nil {
		m.st.Fences.Forget(t.ID)
		m.commands.Forget(t.Session)
	}
}

// planOf returns the plan's file of a mission that is being worked on, or nil.
func (h *Host) planOf(id string) *plan.File {
	if m := h.running(id); m != nil {
		return m.plan.File
	}
	return nil
}

// publisher keeps a fault of who watches from those who are watched.
func publisher(publish func(centurion.Event)) func(centurion.Event) {
	if publish == nil {
		return nil
	}
	return func(e centurion.Event) {
		_ = guard.Call("publish", func() error { publish(e); return nil }) // a delta may be lost
	}
}
