package agents

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/text"
)

// The profiles: the cast that works on a goal.
const (
	ProfileMission   = "mission"   // the four, with a plan and proof; also the meaning of ""
	ProfileAssistant = "assistant" // one interactive agent and its sub-agents
)

// Assistant is the only agent of the profile of that name.
const Assistant = "assistant"

// subAgentTool starts the assistant's sub-agents. Sub-agents do not have it: they are one level deep.
const subAgentTool = "sub_agent"

//go:embed assistant.md
var assistantPrompt string

// subAgent follows the prompt of a custom agent that works for another of its kind.
const subAgent = `

You work as a sub-agent: another agent handed you one task, and no one else reads what you write. Keep to the task, and end with a text that says what you did, what you found and what is left: it is all that reaches the one who handed it to you.
`

// DefaultAssistant returns the cast of the profile assistant: one agent that works alone or through sub-agents of its kind.
func DefaultAssistant() *Cast {
	tools := []string{"read", "ls", "glob", "grep", "write", "edit", "bash", "run_background", "check_background", "webfetch", "websearch",
		"codesearch", "skill", askUser, subAgentTool}
	return &Cast{owner: Assistant, agents: []Agent{{
		Name: Assistant, Mode: "primary", Prompt: suited(assistantPrompt, tools), Tools: tools, External: []Pick{{"*", true}},
		Description: "works with one person: answers, changes code, starts sub-agents",
	}}}
}

// Owner returns the agent for goals that name none.
func (c *Cast) Owner() string { return cmp.Or(c.owner, Commander) }

// one reports whether the cast has one agent for all work, and no roles.
func (c *Cast) one() bool { return c.owner != "" }

// role returns the built-in agent whose tools a custom agent gets for owning work or carrying out a task.
func (c *Cast) role(task bool) string {
	switch {
	case c.one():
		return c.owner
	case task:
		return Worker
	}
	return Commander
}

// foreignTo reports whether a definition does not belong to this cast: it changes an agent built into the other one, or defines one
// that no agent here could start.
func (c *Cast) foreignTo(d Definition) bool {
	other := DefaultAssistant()
	if c.one() {
		other = Default()
	}
	if _, err := c.Get(d.Name); err == nil {
		return false
	}
	_, err := other.Get(d.Name)
	return err == nil || c.one() && d.Mode == "subagent"
}

// speaks lists every tool that a definition may name: definitions are written for both profiles.
func (c *Cast) speaks() []string {
	all := slices.Clone(c.known())
	for _, other := range []*Cast{Default(), DefaultAssistant()} {
		all = text.Union(all, other.known()...)
	}
	return all
}

// SubAgent returns the agent as a sub-agent of its own kind: with those of held that it has itself, without the tool that starts
// sub-agents, and with prompt replacing its own unless empty.
func (a Agent) SubAgent(held []string, prompt string) Agent {
	own := strings.TrimRight(a.Prompt, "\n") + subAgent
	builtIn := a.builtIn()
	a.Tools = slices.DeleteFunc(slices.Clone(a.Tools), func(t string) bool { return t == subAgentTool || !slices.Contains(held, t) })
	if builtIn { // the assistant's own addresses the person and mentions tools that a sub-agent may not have
		own = suited(subAgentPrompt, a.Tools)
	}
	var picks []Pick
	for _, t := range held {
		if a.HoldsExternal(t) {
			picks = append(picks, Pick{t, true})
		}
	}
	a.External = picks
	a.Delegates, a.asTask = nil, nil
	a.Prompt = strings.TrimRight(cmp.Or(strings.TrimSpace(prompt), own), "\n") + "\n"
	return a
}

// ForSubAgent returns the tools of own for a sub-agent that is to have those in want, nil meaning all. An unknown name is an error of
// [centurion.KindUsage] that lists them and suggests the nearest; so is an empty list, which is ambiguous.
func ForSubAgent(own, want []string) ([]string, error) {
	own = slices.DeleteFunc(slices.Clone(own), func(t string) bool { return t == subAgentTool })
	if want == nil {
		return own, nil
	}
	may := "it may have " + strings.Join(own, ", ")
	if len(want) == 0 {
		return nil, &centurion.Error{Kind: centurion.KindUsage, Msg: "tools is an empty list: a sub-agent without tools can do nothing", Hint: "leave tools out for all of them; " + may}
	}
	var unknown []string
	near := ""
	for _, name := range want {
		if !slices.Contains(own, name) {
			unknown = append(unknown, fmt.Sprintf("%q", name))
			near = cmp.Or(near, centurion.Nearest(name, own))
		}
	}
	if unknown == nil {
		return slices.DeleteFunc(own, func(t string) bool { return !slices.Contains(want, t) }), nil
	}
	e := &centurion.Error{Kind: centurion.KindUsage, Msg: "a sub-agent cannot have the tool " + strings.Join(unknown, ", "), Hint: may}
	if near != "" {
		e.Hint = fmt.Sprintf("did you mean %q? ", near) + may
	}
	return nil, e
}
