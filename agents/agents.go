// Package agents is the cast: the role, the prompt and the tools of each agent that a mission can call on.
//
// A session never asks what its agent may do. It is handed the tools that stand here and no others, so a role cannot
// use what it does not hold.
package agents

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"centurion"
)

// The names of the four agents of a mission. They are lower case and compared without case.
const (
	Commander = "commander"
	Planner   = "planner"
	Worker    = "worker"
	Reviewer  = "reviewer"
)

// Agent is one member of the cast.
type Agent struct {
	Name        string
	Description string   // one line: what it is for
	Mode        string   // primary: starts a mission; subagent: is delegated to
	Prompt      string   // the system prompt, before the surroundings are added
	Tools       []string // what it holds, in the order in which a model sees it
	Delegates   []string // the agents it may delegate to; empty for those that may not
	Model       string   // provider/model; empty means the mission's
	Temperature *float64 // nil means the model's default
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

// Cast is a set of agents by name.
type Cast struct{ agents []Agent }

// Default returns the four agents of a mission with the tools of their roles.
func Default() *Cast {
	looking := []string{"read", "ls", "glob", "grep"}
	with := func(names ...string) []string { return slices.Concat(looking, names) }
	return &Cast{agents: []Agent{
		{
			Name: Commander, Mode: "primary", Prompt: commanderPrompt,
			Description: "owns the goal: plans, delegates, judges, ends the mission",
			Tools: with("write", "edit", "bash", "update_todo", "delegate_task", "get_task_result", "list_tasks",
				"cancel_task", "mission_complete"),
			Delegates: []string{Planner, Worker, Reviewer},
		},
		{
			Name: Planner, Mode: "subagent", Prompt: plannerPrompt,
			Description: "looks into the project and writes the plan",
			Tools:       with("update_todo", "delegate_task"),
			Delegates:   []string{Worker},
		},
		{
			Name: Worker, Mode: "subagent", Prompt: workerPrompt,
			Description: "carries out one task: code, tests, documents",
			Tools:       with("write", "edit", "bash"),
		},
		{
			Name: Reviewer, Mode: "subagent", Prompt: reviewerPrompt,
			Description: "judges finished work on evidence",
			Tools:       with("bash", "update_todo"),
		},
	}}
}

// All returns the agents in their order.
func (c *Cast) All() []Agent { return slices.Clone(c.agents) }

// Find returns the agent with that name, compared without case. The error has centurion.KindUsage and offers the
// nearest name: a misspelt agent is never another one.
func (c *Cast) Find(name string) (Agent, error) {
	names := make([]string, 0, len(c.agents))
	for _, a := range c.agents {
		if strings.EqualFold(a.Name, name) {
			return a, nil
		}
		names = append(names, a.Name)
	}
	e := &centurion.Error{Op: "find agent", Kind: centurion.KindUsage,
		Msg: fmt.Sprintf("there is no agent %q; the agents are %s", name, strings.Join(names, ", "))}
	if near := centurion.Nearest(name, names); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return Agent{}, e
}

// MayDelegate reports whether agent a may hand a task to the agent named to.
func (a Agent) MayDelegate(to string) bool {
	return slices.ContainsFunc(a.Delegates, func(n string) bool { return strings.EqualFold(n, to) })
}

// Holds reports whether the agent has the tool.
func (a Agent) Holds(tool string) bool { return slices.Contains(a.Tools, tool) }
