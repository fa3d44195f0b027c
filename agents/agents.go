// Package agents is the cast: the role, prompt and tools of each agent that a mission can use.
//
// A session never asks what its agent may do. It gets the tools listed here and no others, so a role cannot exceed them.
package agents

import (
	_ "embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"centurion"
	"centurion/text"
)

// The names of the four agents of a mission. They are lower case and case-insensitive.
const (
	Commander = "commander"
	Planner   = "planner"
	Worker    = "worker"
	Reviewer  = "reviewer"
)

// Agent is one member of the cast.
type Agent struct {
	Name        string
	Description string   // one line: its purpose
	Mode        string   // primary: starts a mission; subagent: is delegated to; all: both
	Prompt      string   // the system prompt, before the context is added
	Tools       []string // in the order a model sees them
	Delegates   []string // the agents it may delegate to
	Model       string   // provider/model; empty means the mission's
	Temperature *float64 // nil means the model's default
	Steps       int      // requests in one turn; 0 means no limit of its own
	Source      string   // what defined or changed it, for people; empty if built in
	Custom      bool     // not one of the four
	External    []Pick   // which tools of MCP servers and plugins it holds: the last that matches decides

	asTask *Agent // the variant for carrying out a task, if different
}

var (
	//go:embed commander.md
	commanderPrompt string
	//go:embed planner.md
	plannerPrompt string
	//go:embed worker.md
	workerPrompt string
	//go:embed reviewer.md
	reviewerPrompt string
)

// Pick gives an agent the tools whose names match a pattern, or takes them away.
type Pick struct {
	Pattern string // of [path.Match]
	Yes     bool
}

// Cast is a set of agents by name.
type Cast struct {
	agents  []Agent
	servers []string // see [Cast.Beside]
	plugins bool     // likewise
	owner   string   // the only agent of a cast without roles; "" with the four
}

// Default returns the four agents of a mission with the tools of their roles.
func Default() *Cast {
	looking := []string{"read", "ls", "glob", "grep"}
	with := func(names ...string) []string { return slices.Concat(looking, names) }
	return &Cast{agents: []Agent{
		{
			Name: Commander, Mode: "primary", Prompt: commanderPrompt,
			Description: "owns the goal: plans, delegates, judges, ends the mission",
			Tools: with("write", "edit", "bash", "update_todo", "update_context", "skill", "delegate_task", "get_task_result", "list_tasks",
				"cancel_task", "mission_complete"),
			Delegates: []string{Planner, Worker, Reviewer},
		},
		{
			Name: Planner, Mode: "subagent", Prompt: plannerPrompt,
			Description: "looks into the project and writes the plan",
			Tools:       with("webfetch", "websearch", "codesearch", "cache_docs", "update_todo", "update_context", "skill", "delegate_task"),
			Delegates:   []string{Planner}, // helpers that look and report: none below it writes
		},
		{
			Name: Worker, Mode: "subagent", Prompt: workerPrompt,
			Description: "carries out one task: code, tests, documents",
			Tools:       with("write", "edit", "bash", "run_background", "check_background", "webfetch", "websearch", "codesearch", "update_context", "skill"),
		},
		{
			Name: Reviewer, Mode: "subagent", Prompt: reviewerPrompt,
			Description: "judges finished work on evidence",
			Tools:       with("bash", "run_background", "check_background", "cache_docs", "update_todo", "update_context", "skill"),
		},
	}}
}

// All returns the agents in their order.
func (c *Cast) All() []Agent { return slices.Clone(c.agents) }

// aliases are agent names of older casts.
func aliases() map[string]string {
	return map[string]string{"architect": Planner, "researcher": Planner, "builder": Worker, "librarian": Worker,
		"inspector": Reviewer, "recorder": Reviewer}
}

// Alias returns the agent that an old name stands for, ignoring case, or "".
func Alias(name string) string { return aliases()[strings.ToLower(name)] }

// Get returns the agent with exactly that name, ignoring case but without aliases. The error is that of [Cast.Find]. It is for names
// resolved earlier, which must not come to mean another agent.
func (c *Cast) Get(name string) (Agent, error) {
	for _, a := range c.agents {
		if strings.EqualFold(a.Name, name) {
			return a, nil
		}
	}
	return Agent{}, c.unknown(name)
}

// Find returns the agent with that name or alias, ignoring case. The error has centurion.KindUsage and suggests the nearest name: a
// misspelt agent is never another one.
func (c *Cast) Find(name string) (Agent, error) {
	a, err := c.Get(name)
	if to := Alias(name); err != nil && to != "" {
		if b, no := c.Get(to); no == nil {
			return b, nil
		}
	}
	return a, err
}

func (c *Cast) unknown(name string) error {
	names := text.Each(c.agents, func(a Agent) string { return a.Name })
	e := &centurion.Error{Op: "find agent", Kind: centurion.KindUsage,
		Msg: fmt.Sprintf("there is no agent %q; the agents are %s", name, strings.Join(names, ", "))}
	if near := centurion.Nearest(name, slices.Concat(names, slices.Sorted(maps.Keys(aliases())))); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return e
}

// ForTask returns the agent as it carries out a task: an agent that could also own a mission lacks the tools for that while another
// owns it.
func (a Agent) ForTask() Agent {
	if a.asTask != nil {
		return *a.asTask
	}
	return a
}

// MayDelegate reports whether agent a may hand a task to the agent named to.
func (a Agent) MayDelegate(to string) bool {
	return slices.ContainsFunc(a.Delegates, func(n string) bool { return strings.EqualFold(n, to) })
}

// Beside returns the cast with the names of MCP servers, whose tools definitions may name. With plugins, whose tools are not known before they
// run, definitions may name any.
func (c *Cast) Beside(servers []string, plugins bool) *Cast {
	out := *c
	out.servers, out.plugins = servers, plugins
	return &out
}

// HoldsExternal reports whether the agent has a tool of an MCP server or a plugin.
func (a Agent) HoldsExternal(tool string) (yes bool) {
	for _, p := range a.External {
		if ok, err := path.Match(p.Pattern, tool); ok && err == nil {
			yes = p.Yes
		}
	}
	return yes
}

// Picked returns the patterns of the tools of MCP servers and plugins that it holds, in order; those that it lacks begin with "!".
func (a Agent) Picked() (patterns []string) {
	for _, p := range a.External {
		patterns = append(patterns, text.When(!p.Yes, "!")+p.Pattern)
	}
	return patterns
}

// Holds reports whether the agent has the tool.
func (a Agent) Holds(tool string) bool { return slices.Contains(a.Tools, tool) }
