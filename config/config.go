// Package config finds and reads the configuration of a person and a project: OpenCode's files, Centurion's own, the environment, and
// the stores of API keys. It merges them into one [Config], resolves a mission's model with its key, and locates the state directory.
// It reads files and, if no model is named, asks local model servers for their list; it starts no process, writes only the key store,
// and opens no state.
//
// # Order
//
// Later files win, objects are merged key by key, all other values are replaced; the entries of instructions are collected:
//
//	~/.config/opencode/{config.json,opencode.json,opencode.jsonc}      global
//	$OPENCODE_CONFIG                                                   global; the project's if it lies in the project
//	opencode.json, opencode.jsonc from the git root down to the project
//	~/.config/opencode/{agent,agents,command,commands}/**/*.md         global
//	.opencode/ from the git root down: opencode.json(c), then its agents and commands
//	$OPENCODE_CONFIG_CONTENT                                           global
//	~/.config/centurion/config.jsonc, then .opencode/centurion.jsonc   Centurion's own keys
//
// # Trust
//
// A file in the project came with the repository, or an agent wrote it. Before a person trusts its content (package trust), it can restrict
// and word, and nothing else. What it withholds is noted with file and line ([Config.ProjectFiles]):
//
//   - Agents, and changes of built-in ones, but for what they may not do. Rules that make a decision milder, of all agents or one.
//   - Keys of centurion.jsonc that would loosen what the person set ("ask": "allow", "yes", "merge", "detach", "sandbox": "off", higher
//     limits, "search" other than a SearXNG on this machine), and the price and ids of models of a provider that the project did not define.
//   - The choice of model, agent, profile and fallback models, unless the person's is the same: it costs their money.
//   - The address, key, headers and variables of a provider, on this machine too, unless the address is the one that the person would use.
//     A provider that rests on them is refused ([Untrusted]).
//   - {env:NAME}, which is left as it stands, except a known provider's own variable at its usual address. {file:path} must always stay
//     inside the project, and is part of the content.
//   - Plugins, and files that are plugins or tools: they run.
//   - MCP servers: they run commands, and what agents do goes there.
//   - Instructions outside the project.
//   - verify, worktree.setup and shell in commands are returned, marked as foreign ([Config.Origin], [Command]); their users refuse them.
package config

import (
	"cmp"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/mcp"
	"centurion/plugin"
	"centurion/provider/catalog"
	"centurion/trust"
)

// Options select the sources. The zero value means the current directory and the process's own environment.
type Options struct {
	Dir     string                   // the project; "" means the current directory
	Home    string                   // the person's home; "" means that of the environment
	Env     func(name string) string // nil means os.Getenv
	Keyring Keyring                  // nil means the desktop's, if there is one
	HTTP    *http.Client             // for local servers and lists of models; nil means a plain client
	Stamps  Stamps                   // gets what is read, also when that fails; nil keeps nothing
}

// Config is the merged configuration.
type Config struct {
	Model        string // "provider/model"; the own key before OpenCode's
	DefaultAgent string
	Providers    map[string]Provider
	Agents       map[string]Agent   // by lower-case name
	Commands     map[string]Command // by name, without the slash
	Servers      []mcp.Server       // in the files' order
	Plugins      []plugin.Source    // in the order in which they were read
	Permission   []PermissionLevel  // in the order they were read
	// AgentPermission is the permissions of single agents in the project's files, by lower-case name, in the order they were read. Those
	// of the person's own files are in Agents.
	AgentPermission map[string][]PermissionLevel
	Instructions    []string // paths, patterns or URLs; relative ones belong to the project
	Own             Own
	Sources         []string // the files read, in order, absolute
	Notices         []string // lines for stderr about ignored settings
	Ignored         []Ignored
	Dropped         []string // notices that are not about Ignored
	// Trust is what the person has trusted of the project. A change of it counts when the configuration is loaded again.
	Trust *trust.Book

	refused   error               // a key of OpenCode's without which a run must not start
	providers []string            // the ids in the files' order
	mine      map[string]Provider // without what an untrusted file of the project sets
	sources   []*source
	entries   []PluginEntry
	catalog   *catalog.Catalog // nil in a Config that was not loaded
	opts      Options
	own       *node // Centurion's own keys, merged
	open      *node // OpenCode's keys, merged, with the agents and commands of Markdown files
	mineOpen  *node // the same without the project's untrusted files

	withheldModel *node // the model that an untrusted file of the project names
}

// PermissionLevel is the permission value of one file, with its keys in order.
type PermissionLevel struct {
	File    string // for display
	Project bool   // from an untrusted file of the project
	Raw     json.RawMessage

	at  *node // nil in a Config that was not loaded
	src *source
}

// Agent is a configured agent. Unset fields are zero; its model and tools are not checked.
type Agent struct {
	Name        string // lower case
	Description string
	Mode        string // primary, subagent, all or ""
	Model       string // "provider/model" or ""
	Prompt      string
	Temperature *float64
	Steps       int      // requests; 0 means no limit
	Fallback    []string // fallback models; nil means unset, an empty list none
	Tools       map[string]bool
	Permission  json.RawMessage // of the person's own files, with its keys in order; nil if there is none
	Disable     bool
	File        string // its last definition, for display
}

// Command is a configured slash command.
type Command struct {
	Name        string
	Description string
	Template    string
	Agent       string
	Model       string
	Subtask     bool
	File        string
	Project     bool // some of it is from an untrusted file of the project
}

// Own is Centurion's own keys. Zero means unset: the user of a value knows its default.
type Own struct {
	Agent, Model, Format, Isolation, Ask, Dirty, Profile, Sandbox string

	MaxWorkers, MaxPerAgent, MaxRounds, Level int
	MaxCost                                   *float64 // USD
	MaxTokens                                 int64
	MaxDuration                               time.Duration
	Yes, Merge, Detach, RequireProof          bool
	MaxToolCalls                              int
	TaskBudget                                centurion.TaskBudget // the default for tasks

	Search Search // the search engines for websearch and codesearch

	Verify         []string // the project's own acceptance commands
	WorktreeSetup  []string // commands that prepare a fresh checkout
	Workspaces     string   // how checkouts are made: auto, overlay or checkout
	Persist        string   // coalesce or every_event
	ToolPolicy     string   // auto, sequential or concurrent
	Notify         *bool    // desktop notifications
	SessionHeaders *bool    // x-session-id and x-parent-session-id on requests to models
	CoAuthoredBy   *bool    // a Co-Authored-By trailer in commits
	Agents         map[string]OwnAgent
	Fallback       Fallback
	Concurrency    Concurrency

	Limits
}

// CommitsAlone reports whether commits have no Co-Authored-By trailer.
func (o *Own) CommitsAlone() bool { return o.CoAuthoredBy != nil && !*o.CoAuthoredBy }

// OwnAgent is an agent's settings in Centurion's own files, beyond OpenCode's keys.
type OwnAgent struct {
	ACP      []string // the command line of an agent that is another program, or the name of a preset
	Env      []string // the variables that it gets
	Files    []string // the directories outside of its checkout in which it may write
	Hosts    []string // the hosts that it may connect to; * is any
	Fallback []string // fallback models; nil means unset, an empty list none

	ToolPolicy string // auto, sequential or concurrent; "" means the general setting
}

// Search configures the person's search engines.
type Search struct {
	SearXNG string // the address of a SearXNG instance
	Brave   Secret
	Tavily  Secret
	GitHub  Secret // a token for GitHub's code search
}

// Limits are the configurable constants of the orchestrator. Zero means the default.
type Limits struct {
	PollInterval       time.Duration // between two audits
	StallTimeout       time.Duration // without any event
	SessionTTL         time.Duration
	SubAgentIdle       time.Duration // without any event of a sub-agent
	Retention          time.Duration // of a finished task's session
	ArchiveAfter       time.Duration // of a finished task's record
	ArchiveFailedAfter time.Duration
	KeepTasks          int           // maximum number of records
	StableFor          time.Duration // of an idle foreign agent
	WaitTimeout        time.Duration // of a synchronous delegation
	IdleTimeout        time.Duration // without a byte from a model
	GateRelease        time.Duration // waits for a rate gate beyond this release the slot
	RetryDelay         time.Duration // between two attempts
	MaxAttempts        int           // of a session
	MaxRetries         int           // of a request
	Countdown          time.Duration // before a continuation
	StuckRounds        int           // without progress before another approach is requested
	PauseRounds        int           // without progress before a person is asked
	MaxReopened        int           // how often a failed check sends work back
	MaxCommands        int           // parallel shell commands of the whole host, without checks
	MaxChecks          int           // parallel checks of the whole host
	MaxProcesses       int           // of the commands of a workspace together
	MaxMemory          int           // likewise, in MiB
	AskTimeout         time.Duration // of an ask
	CompactionBuffer   int           // tokens to keep free in a model's window
}

// ownFields are the keys of Centurion's own files.
func ownFields() []field[Own] {
	return append([]field[Own]{
		{"$schema", func(*Own, string, *node) error { return nil }},
		text("model", func(o *Own) *string { return &o.Model }),
		{"agent", setOwnAgent},
		choice("format", func(o *Own) *string { return &o.Format }, "text", "json"),
		choice("isolation", func(o *Own) *string { return &o.Isolation }, "auto", "shared", "worktree"),
		integer("max_workers", 1, 0, func(o *Own) *int { return &o.MaxWorkers }),
		integer("max_per_agent", 1, 0, func(o *Own) *int { return &o.MaxPerAgent }),
		number("max_cost", func(o *Own) **float64 { return &o.MaxCost }),
		integer("max_tokens", 1, 0, func(o *Own) *int64 { return &o.MaxTokens }),
		duration("max_duration", func(o *Own) *time.Duration { return &o.MaxDuration }),
		integer("max_rounds", 1, 0, func(o *Own) *int { return &o.MaxRounds }),
		integer("max_tool_calls", 1, 0, func(o *Own) *int { return &o.MaxToolCalls }),
		{"task_budget", setTaskBudget},
		choice("ask", func(o *Own) *string { return &o.Ask }, "ask", "deny", "allow"),
		boolean("yes", func(o *Own) *bool { return &o.Yes }),
		choice("dirty", func(o *Own) *string { return &o.Dirty }, "include", "ignore"),
		integer("level", 1, 3, func(o *Own) *int { return &o.Level }),
		choice("profile", func(o *Own) *string { return &o.Profile }, "mission", "assistant", "solo"),
		choice("sandbox", func(o *Own) *string { return &o.Sandbox }, "auto", "require", "off"),
		boolean("merge", func(o *Own) *bool { return &o.Merge }),
		boolean("require_proof", func(o *Own) *bool { return &o.RequireProof }),
		boolean("detach", func(o *Own) *bool { return &o.Detach }),
		list("verify", true, func(o *Own) *[]string { return &o.Verify }),
		{"fallback", setFallback},
		{"concurrency", setConcurrency},
		section("worktree", list("setup", true, func(o *Own) *[]string { return &o.WorktreeSetup }),
			choice("workspaces", func(o *Own) *string { return &o.Workspaces }, "auto", "overlay", "checkout")),
		section("search",
			text("searxng", func(o *Own) *string { return &o.Search.SearXNG }),
			text("brave_key", func(o *Own) *string { return (*string)(&o.Search.Brave) }),
			text("tavily_key", func(o *Own) *string { return (*string)(&o.Search.Tavily) }),
			text("github_token", func(o *Own) *string { return (*string)(&o.Search.GitHub) })),
		section("compaction", integer("buffer", 1, 0, func(o *Own) *int { return &o.CompactionBuffer })),
		choice("persist", func(o *Own) *string { return &o.Persist }, "coalesce", "every_event"),
		toolPolicy(func(o *Own) *string { return &o.ToolPolicy }),
		optional("notify", func(o *Own) **bool { return &o.Notify }),
		optional("session_headers", func(o *Own) **bool { return &o.SessionHeaders }),
		optional("co_authored_by", func(o *Own) **bool { return &o.CoAuthoredBy }),
	}, limitFields()...)
}

func limitFields() []field[Own] {
	return []field[Own]{
		duration("poll_interval", func(o *Own) *time.Duration { return &o.PollInterval }),
		duration("stall_timeout", func(o *Own) *time.Duration { return &o.StallTimeout }),
		duration("session_ttl", func(o *Own) *time.Duration { return &o.SessionTTL }),
		duration("sub_agent_idle", func(o *Own) *time.Duration { return &o.SubAgentIdle }),
		duration("retention", func(o *Own) *time.Duration { return &o.Retention }),
		duration("archive_after", func(o *Own) *time.Duration { return &o.ArchiveAfter }),
		duration("archive_failed_after", func(o *Own) *time.Duration { return &o.ArchiveFailedAfter }),
		integer("keep_tasks", 1, 0, func(o *Own) *int { return &o.KeepTasks }),
		duration("stable_for", func(o *Own) *time.Duration { return &o.StableFor }),
		duration("wait_timeout", func(o *Own) *time.Duration { return &o.WaitTimeout }),
		duration("ask_timeout", func(o *Own) *time.Duration { return &o.AskTimeout }),
		duration("idle_timeout", func(o *Own) *time.Duration { return &o.IdleTimeout }),
		duration("gate_release", func(o *Own) *time.Duration { return &o.GateRelease }),
		duration("retry_delay", func(o *Own) *time.Duration { return &o.RetryDelay }),
		integer("max_attempts", 1, 0, func(o *Own) *int { return &o.MaxAttempts }),
		integer("max_retries", 1, 0, func(o *Own) *int { return &o.MaxRetries }),
		duration("countdown", func(o *Own) *time.Duration { return &o.Countdown }),
		integer("stuck_rounds", 1, 0, func(o *Own) *int { return &o.StuckRounds }),
		integer("pause_rounds", 1, 0, func(o *Own) *int { return &o.PauseRounds }),
		integer("max_reopened", 1, 0, func(o *Own) *int { return &o.MaxReopened }),
		integer("max_commands", 1, 0, func(o *Own) *int { return &o.MaxCommands }),
		integer("max_checks", 1, 0, func(o *Own) *int { return &o.MaxChecks }),
		integer("max_processes", 1, 0, func(o *Own) *int { return &o.MaxProcesses }),
		integer("max_memory", 1, 0, func(o *Own) *int { return &o.MaxMemory }),
	}
}

// setOwnAgent reads "agent": the flag's value, a name, or an object with settings by agent.
func setOwnAgent(o *Own, key string, n *node) error {
	switch n.kind {
	case kindString:
		o.Agent = n.text
		return nil
	case kindObject:
	default:
		return n.mismatch(key, "an agent's name or an object with settings by agent")
	}
	fields := []field[OwnAgent]{list("acp", true, func(a *OwnAgent) *[]string { return &a.ACP }),
		list("env", true, func(a *OwnAgent) *[]string { return &a.Env }),
		list("files", true, func(a *OwnAgent) *[]string { return &a.Files }),
		list("hosts", true, func(a *OwnAgent) *[]string { return &a.Hosts }),
		list("fallback", true, func(a *OwnAgent) *[]string { return &a.Fallback }),
		toolPolicy(func(a *OwnAgent) *string { return &a.ToolPolicy })}
	o.Agents = make(map[string]OwnAgent, len(n.members))
	for _, m := range n.members {
		var a OwnAgent
		if err := decodeKnown(m.value, key+"."+m.key, &a, fields); err != nil {
			return err
		}
		o.Agents[m.key] = a
	}
	return nil
}

// section is an object with keys of Centurion's own.
func section(key string, fields ...field[Own]) field[Own] {
	return field[Own]{key, func(o *Own, key string, n *node) error { return decodeKnown(n, key, o, fields) }}
}

// decodeKnown is [decode] of an object of Centurion's own, in which an unknown key is an error.
func decodeKnown[T any](n *node, key string, dst *T, fields []field[T]) error {
	return decode(n, key, dst, fields, func(u member) error { return unknownKey(u, key+".", keysOf(fields)) })
}

// unknownKey is the error for an unknown key in Centurion's own files.
func unknownKey(m member, prefix string, known []string) error {
	e := m.value.src.at(m.line, "unknown key %q", prefix+m.key)
	if near := centurion.Nearest(m.key, known); near != "" {
		e.Msg += "; the nearest known key is \"" + prefix + near + "\""
		e.Hint = "rename it or remove it"
		return e
	}
	if prefix == "" && isOpenCodeKey(m.key) {
		e.Msg += ", which belongs to opencode.json"
		e.Hint = "move it to the opencode.json beside it"
		return e
	}
	e.Hint = "remove it; the keys are listed in docs/configuration.md"
	if prefix != "" {
		e.Hint = "remove it; the keys there are " + strings.Join(known, ", ")
	}
	return e
}

// Origin returns the file that last set a key, for display, and whether that is an untrusted file of the project. Keys are written with
// dots: "verify", "worktree.setup", "provider.openai". Centurion's own keys take precedence. For an unset key file is "".
func (c *Config) Origin(key string) (file string, foreign bool) {
	for _, n := range []*node{c.own, c.open} {
		if n = n.path(key); n != nil {
			return n.src.name, n.src.foreign()
		}
	}
	return "", false
}

// ProjectFiles compares the project's files with what the person has trusted of them: those that are trusted, and those with something
// that is not in force without trust. What only widens permissions is known after [Config.Rules].
func (c *Config) ProjectFiles() (out []trust.State) {
	for _, s := range c.sources {
		slices.SortStableFunc(s.items, func(a, b trust.Item) int { return a.Line - b.Line })
		if s.trusted || len(s.items) > 0 {
			out = append(out, c.Trust.Compare(trust.File{Name: filepath.ToSlash(s.name), Sum: s.sum, Items: s.items}))
		}
	}
	return out
}

// path resolves a key with dots. It does not find keys that contain dots themselves.
func (n *node) path(key string) *node {
	for start, i := 0, 0; i <= len(key); i++ {
		if i == len(key) || key[i] == '.' {
			n = n.get(key[start:i])
			start = i + 1
		}
	}
	return n
}

func (o Options) env(name string) string {
	if o.Env == nil {
		return os.Getenv(name)
	}
	return o.Env(name)
}

// home returns the person's home directory, or "".
func (o Options) home() string {
	home := cmp.Or(o.Home, o.env("HOME"))
	if home == "" && runtime.GOOS == "windows" {
		home = o.env("USERPROFILE")
	}
	if o.Home == "" && !filepath.IsAbs(home) {
		return ""
	}
	return home
}

// base returns an XDG base directory: the variable if it is an absolute path, otherwise the standard's default below home, otherwise
// "".
func (o Options) base(name string, below ...string) string {
	if dir := o.env(name); filepath.IsAbs(dir) {
		return dir
	}
	if home := o.home(); home != "" {
		return filepath.Join(append([]string{home}, below...)...)
	}
	return ""
}

func configError(msg, hint string) *centurion.Error {
	return &centurion.Error{Op: "read config", Kind: centurion.KindConfig, Msg: msg, Hint: hint}
}
