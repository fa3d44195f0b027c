package orchestrator

import (
	"cmp"
	"context"
	"runtime"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/agents/instructions"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/pulse"
	"centurion/orchestrator/slots"
	"centurion/permission"
	"centurion/recovery"
	"centurion/redact"
	"centurion/session"
	"centurion/store"
	"centurion/tools"
	"centurion/tools/web"
	"centurion/workspace"
	"centurion/worktree"
)

// Defaults of [Config].
const (
	DefaultWorkers   = 50
	DefaultPerAgent  = 10
	DefaultCountdown = 2 * time.Second
	DefaultReturns   = 3               // times a failed check returns a task to its worker, or the final check reopens items
	DefaultAwait     = 5 * time.Minute // how long a synchronous delegation waits before it continues in the background
	DefaultGateWait  = 5 * time.Second // a longer wait for a provider releases the slot
	DefaultDiskWait  = time.Minute     // how long a mission waits for space on a full disk before it stops, so that a script learns of it

	DefaultPollInterval = time.Second
	DefaultStallTimeout = 5 * time.Minute // far above the 120 s after which a request to a silent provider ends
	DefaultSessionTTL   = time.Hour       // of an attempt's own work, without waits
	DefaultSubAgentIdle = 2 * time.Minute // longest silence of a sub-agent before it is stopped; the figure of the first system
)

// Config configures a [Host]. Store, Workspace, Model and Runner are required; the zero value of every other field is a
// useful default.
type Config struct {
	Store     *store.Store
	Workspace *workspace.Workspace
	Cast      *agents.Cast // of the profile mission
	Assistant *agents.Cast // of the profile assistant
	// Model finds a model by its "provider/model" name; "" is the project's default.
	Model  func(ref string) (Model, error)
	Runner centurion.Runner
	// Confined means that the runner confines commands fully, so that those inside the project need no approval.
	Confined bool
	// Confinement is recorded with missions; nil records nothing.
	Confinement *centurion.Confinement
	Keys        *redact.Keys                          // that file tools must not lose; nil knows none
	Hooks       centurion.Hooks                       // of plugins; nil has none
	External    tools.External                        // the tools of MCP servers and plugins; nil has none
	Web         *web.Client                           // for the tools that fetch and search; nil without a network
	Rules       func(agent string) []permission.Level // the permission rules for an agent, weakest first
	Home        string                                // the person's home directory, for rules with ~
	Publish     func(centurion.Event)                 // receives token deltas; must not block
	Version     string
	// Look is called before something begins. It may call [Host.Renew]. Nil does nothing.
	Look func(ctx context.Context)
	// Worktrees opens the project's git repository; nil if there is none: then all sessions of a mission write in the
	// project's own directory. The host closes it.
	Worktrees func(context.Context) (*worktree.Repo, error)
	// Shadow opens the history of the project's files, for missions whose sessions all write in the project's own directory; nil keeps
	// none.
	Shadow  func(context.Context) (*worktree.Shadow, error)
	Scratch string // a directory for the output of background commands; "" is the system's for temporary files
	// TrustedPlan reports whether the person has trusted a plan with this text, whose checks then need no permission; nil means never.
	TrustedPlan func(text []byte) bool
	// Watch calls changed whenever a plan's file may have changed, until ctx ends. Nil watches the file itself.
	Watch func(ctx context.Context, plan *workspace.TodoFile, changed func()) error

	// Fallback lists the models, as "provider/model", with which a session of an agent continues when its own model fails,
	// the preferred one first; nil means none.
	Fallback    func(agent, model string) []string
	Concurrency slots.Caps     // limits in addition to the two below
	Process     *slots.Process // the process that has this host beside others; nil if it has only this one

	// Instructions finds skills and the instructions of project and person for agents; nil finds nothing.
	Instructions *instructions.Finder

	Workers   int // simultaneous sessions
	Checks    int // simultaneous checks of a mission; 1 proves one work after the other; 0 means max(2, CPUs)
	PerAgent  int // simultaneous sessions of one agent
	Countdown time.Duration
	Returns   int
	Await     time.Duration
	GateWait  time.Duration   // a session returns its slot for a longer wait for a provider
	DiskWait  time.Duration   // how long a mission waits for space on a full disk; below zero: no limit
	Recovery  recovery.Policy // how often, and after which delay, a failed turn is repeated
	// An attempt that works longer than SessionTTL fails; its waits do not count.
	PollInterval, StallTimeout, SessionTTL time.Duration
	// How long ended missions and tasks are kept: see [retention.Config].
	Retention, ArchiveAfter, ArchiveFailedAfter time.Duration
	KeepTasks                                   int
	// SubAgentIdle is the longest silence of a sub-agent, without its waits, before it is stopped.
	SubAgentIdle time.Duration
	// NewApproach and GiveUp are the rounds without progress after which the agent has to try another approach, and after which a
	// person is asked.
	NewApproach, GiveUp int
	Buffer              int                  // tokens of a model's window that stay free; 0 means session.Buffer
	TaskBudget          centurion.TaskBudget // the budget of a task that is given none of its own; zero fields: no limit
	// AskTimeout is how long an ask waits for a person: then an agent decides its question itself, and a permission is refused; 0: no limit.
	AskTimeout time.Duration

	Policy     session.Policy            // which tool calls of one answer may overlap
	Policies   map[string]session.Policy // the same for individual agents, by name
	EveryEvent bool                      // each piece of an answer is stored before the next is read
}

// Model is a model for sessions.
type Model = agent.Model

// complete sets the defaults of fields that are not set.
func (c *Config) complete() {
	c.Workers = cmp.Or(c.Workers, DefaultWorkers)
	c.PerAgent = cmp.Or(c.PerAgent, DefaultPerAgent)
	c.Checks = cmp.Or(c.Checks, max(2, runtime.NumCPU()))
	c.Countdown = cmp.Or(c.Countdown, DefaultCountdown)
	c.Returns = cmp.Or(c.Returns, DefaultReturns)
	c.Await = cmp.Or(c.Await, DefaultAwait)
	c.GateWait = cmp.Or(c.GateWait, DefaultGateWait)
	c.DiskWait = cmp.Or(c.DiskWait, DefaultDiskWait)
	c.PollInterval = cmp.Or(c.PollInterval, DefaultPollInterval)
	c.StallTimeout = cmp.Or(c.StallTimeout, DefaultStallTimeout)
	c.SessionTTL = cmp.Or(c.SessionTTL, DefaultSessionTTL)
	c.SubAgentIdle = cmp.Or(c.SubAgentIdle, DefaultSubAgentIdle)
	if c.Assistant == nil {
		c.Assistant = agents.DefaultAssistant()
	}
	if c.TrustedPlan == nil {
		c.TrustedPlan = func([]byte) bool { return false }
	}
	c.Publish = publisher(c.Publish)
	if c.Cast == nil {
		c.Cast = agents.Default()
	}
	if c.Watch == nil {
		c.Watch = func(ctx context.Context, plan *workspace.TodoFile, changed func()) error {
			return plan.Watch(ctx, changed)
		}
	}
	if c.Look == nil {
		c.Look = func(context.Context) {}
	}
	if c.Rules == nil {
		c.Rules = func(string) []permission.Level {
			return []permission.Level{{Name: permission.DefaultLevel, Rules: permission.Defaults(false)}}
		}
	}
}

func (c *Config) models() agent.Models {
	return agent.Models{Model: c.Model, Fallback: c.Fallback, Recovery: c.Recovery}
}

// agentConfig configures the sessions of a mission.
func (c *Config) agentConfig() agent.Config {
	return agent.Config{Models: c.models(), Policies: c.Policies, GateWait: c.GateWait, Await: c.Await,
		Poll: c.PollInterval, Limits: pulse.Limits{Silent: c.StallTimeout, Worked: c.SessionTTL}, Session: session.Config{Publish: c.Publish, Root: c.Workspace.Dir(), Policy: c.Policy, EveryEvent: c.EveryEvent, Hooks: c.Hooks,
			Buffer: c.Buffer}, External: c.External}
}

// cast returns the agents of a profile.
func (c *Config) cast(profile string) *agents.Cast {
	if profile == agents.ProfileAssistant {
		return c.Assistant
	}
	return c.Cast
}
