package agents

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"centurion"
	"centurion/text"
)

// Definition is a person's or project's definition of one agent. Unset fields change nothing.
type Definition struct {
	Name        string // compared without case
	Description string
	Mode        string // primary, subagent or all; "" means all for a new agent
	Model       string // provider/model
	Prompt      string
	Temperature *float64
	Steps       int             // requests in one turn; 0 means no limit of its own
	Tools       map[string]bool // by our names, OpenCode's, or a pattern with *
	Disable     bool
	Source      string // its origin, for people
}

// OutsidePrompt is told to an agent that is another program, instead of a role's prompt, which names tools that it does not have.
//
//go:embed outside.md
var OutsidePrompt string

// handedOver follows the prompt of a custom agent that carries out a task: its author did not know about missions.
const handedOver = `

You were handed one task of a larger mission. No one can be asked. Keep to the task, and end with a text that says what you did, what you found and what is left: it is all that reaches the one who handed it to you.
`

// mission returns the tools for delegating work. A custom agent has them only while it owns the mission: delegation is one level deep,
// so that work does not spawn work endlessly.
func mission() []string {
	return []string{"delegate_task", "get_task_result", "list_tasks", "cancel_task", "mission_complete"}
}

// foreign maps tool names of other programs to ours, or to "" without a counterpart.
func foreign() map[string]string {
	return map[string]string{
		"list": "ls", "task": "delegate_task", "todowrite": "update_todo", "patch": "edit", "multiedit": "edit", "apply_patch": "edit",
		"grep_search": "grep", "mgrep": "grep", "glob_search": "glob", "call_agent": "delegate_task",
		"webfetch": "", "websearch": "", "codesearch": "", "todoread": "", "question": askUser, "lsp": "", "invalid": "",
	}
}

// With returns the cast with definitions applied: custom agents, which the Commander may delegate to, and changes to existing ones. A
// built-in agent keeps its role: tools can be removed but not added, and its mode stays; the notes say where a definition asks for
// more. An error has centurion.KindConfig and names the definition: an invalid name, or an unknown tool, with the nearest one.
func (c *Cast) With(defs ...Definition) (cast *Cast, notes []string, err error) {
	o := overlay{base: c, cast: &Cast{agents: slices.Clone(c.agents), owner: c.owner}}
	for _, d := range slices.SortedFunc(slices.Values(defs), func(a, b Definition) int { return cmp.Compare(a.Name, b.Name) }) {
		d.Name = strings.ToLower(d.Name)
		if !isName(d.Name) {
			return nil, nil, &centurion.Error{Op: "read agents", Kind: centurion.KindConfig,
				Msg:  fmt.Sprintf("%q of %s cannot be the name of an agent", d.Name, d.Source),
				Hint: "use letters, digits and - _ . / for its name, and begin with a letter"}
		}
		if c.foreignTo(d) {
			continue
		}
		i := slices.IndexFunc(o.cast.agents, func(a Agent) bool { return a.Name == d.Name })
		if i < 0 {
			err = o.add(d)
		} else {
			err = o.change(i, d)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	o.delegates()
	return o.cast, o.notes, nil
}

func isName(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789-_./", r)) {
			return false
		}
	}
	return s != ""
}

// overlay is a cast being built.
type overlay struct {
	base, cast *Cast
	notes      []string
}

func (o *overlay) note(d Definition, format string, args ...any) {
	o.notes = append(o.notes, fmt.Sprintf("agent %s (%s): ", d.Name, d.Source)+fmt.Sprintf(format, args...))
}

// change applies a definition to an agent of the cast.
func (o *overlay) change(i int, d Definition) error {
	a := &o.cast.agents[i]
	if d.Disable {
		if a.Name == o.base.Owner() {
			o.note(d, "it is not disabled, because every mission is its own")
			return nil
		}
		o.cast.agents = slices.Delete(o.cast.agents, i, i+1)
		return nil
	}
	a.Description, a.Model = cmp.Or(oneLine(d.Description), a.Description), cmp.Or(d.Model, a.Model)
	a.Prompt, a.Source = cmp.Or(d.Prompt, a.Prompt), cmp.Or(d.Source, a.Source)
	a.Temperature, a.Steps = cmp.Or(d.Temperature, a.Temperature), cmp.Or(d.Steps, a.Steps)
	if d.Mode != "" && d.Mode != a.Mode {
		o.note(d, "its mode stays %s", a.Mode)
	}
	held, err := o.choose(d, a.Tools)
	if err != nil {
		return err
	}
	a.External = slices.Concat(a.External, o.picks(d))
	builtIn := a.builtIn()
	var more []string
	a.Tools = slices.DeleteFunc(held, func(t string) bool {
		no := !slices.Contains(a.Tools, t)
		if no && named(d.Tools, t) {
			more = append(more, t)
		}
		return no
	})
	if builtIn {
		a.Prompt = suited(assistantPrompt, a.Tools)
	}
	if len(more) > 0 {
		o.note(d, "its role does not hold %s", strings.Join(more, ", "))
	}
	return nil
}

// add adds a custom agent.
func (o *overlay) add(d Definition) error {
	if d.Disable {
		return nil
	}
	a := Agent{Name: d.Name, Description: oneLine(cmp.Or(d.Description, d.Prompt)), Mode: cmp.Or(d.Mode, "all"), Model: d.Model,
		Temperature: d.Temperature, Steps: d.Steps, Source: d.Source, Custom: true}
	asked, err := o.choose(d, nil)
	if err != nil {
		return err
	}
	task, err := o.as(a, d, o.base.role(true))
	if err != nil {
		return err
	}
	task.Tools = slices.DeleteFunc(task.Tools, func(t string) bool { return slices.Contains(mission(), t) })
	if d.Prompt != "" {
		told := handedOver
		if task.Holds(askUser) {
			told = strings.Replace(told, " No one can be asked.", "", 1)
		}
		task.Prompt = strings.TrimRight(task.Prompt, "\n") + told
	}
	if a.Mode == "subagent" {
		if up := slices.DeleteFunc(asked, func(t string) bool { return !slices.Contains(mission(), t) || !named(d.Tools, t) }); len(up) > 0 {
			o.note(d, "a subagent does not hold %s: what is delegated is not delegated further", strings.Join(up, ", "))
		}
		o.cast.agents = append(o.cast.agents, task)
		return nil
	}
	if a, err = o.as(a, d, o.base.role(false)); err != nil {
		return err
	}
	if a.Mode == "all" {
		a.asTask = &task
	}
	o.cast.agents = append(o.cast.agents, a)
	return nil
}

// as gives a new agent the tools of a role that the definition leaves it, and its prompt if it has none.
func (o *overlay) as(a Agent, d Definition, role string) (Agent, error) {
	like, err := o.base.Get(role)
	if err != nil {
		return a, err
	}
	a.Prompt = cmp.Or(d.Prompt, like.Prompt)
	a.External = slices.Concat(like.External, o.picks(d))
	a.Tools, err = o.choose(d, like.Tools)
	if d.Prompt == "" && like.builtIn() {
		a.Prompt = suited(assistantPrompt, a.Tools)
	}
	return a, err
}

// delegates sets who may delegate to whom, once all agents exist.
func (o *overlay) delegates() {
	if o.base.one() {
		return
	}
	var own, all []string
	for _, a := range o.cast.agents {
		if a.Custom && a.Mode != "primary" {
			own = append(own, a.Name)
		}
		if a.Mode != "primary" {
			all = append(all, a.Name)
		}
	}
	for i := range o.cast.agents {
		a := &o.cast.agents[i]
		switch {
		case a.Custom && a.Mode != "subagent":
			a.Delegates = slices.DeleteFunc(slices.Clone(all), func(n string) bool { return n == a.Name })
		case a.Name == Commander:
			a.Delegates = slices.Concat(a.Delegates, own)
		}
		a.Delegates = slices.DeleteFunc(slices.Clone(a.Delegates), func(n string) bool { return !slices.Contains(all, n) })
	}
}

// known lists every tool of the cast's agents, in the order a model sees them.
func (c *Cast) known() []string {
	var out []string
	for _, a := range c.agents {
		out = text.Union(out, a.Tools...)
	}
	return text.Union(out, askUser)
}

// askUser asks the person. The four do not have it: a mission that needs to know something from its person blocks. A custom agent has
// it if its definition says so.
const askUser = "ask_user"

// inOrder returns the keys of a definition's tools in the order in which they count: patterns first, shorter before longer, then names,
// and of these removals before additions.
func (d Definition) inOrder() []string {
	return slices.SortedFunc(maps.Keys(d.Tools), func(a, b string) int {
		order := func(k string) int {
			switch {
			case strings.Contains(k, "*"):
				return 0
			case !d.Tools[k]:
				return 1
			}
			return 2
		}
		return cmp.Or(order(a)-order(b), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
}

// picks returns what a definition says about tools from outside. In a mission, a pattern gives only those whose source it names.
func (o *overlay) picks(d Definition) (out []Pick) {
	for _, key := range d.inOrder() {
		yes, pattern := d.Tools[key], strings.Contains(key, "*")
		if o.base.fromOutside(key) || pattern && (!yes || o.base.one() || !strings.HasPrefix(key, "*")) {
			out = append(out, Pick{key, yes})
		}
	}
	return out
}

// fromOutside reports whether a name is that of a tool of an MCP server or a plugin.
func (c *Cast) fromOutside(tool string) bool {
	_, other := foreign()[strings.ToLower(tool)]
	return !other && !strings.Contains(tool, "*") && !slices.Contains(c.speaks(), strings.ToLower(tool)) &&
		(c.plugins || slices.ContainsFunc(c.servers, func(server string) bool { return strings.HasPrefix(tool, server+"_") }))
}

// choose applies a definition's tools to those held.
func (o *overlay) choose(d Definition, held []string) ([]string, error) {
	known, has := o.base.known(), map[string]bool{}
	for _, t := range held {
		has[t] = true
	}
	for _, key := range d.inOrder() {
		if o.base.fromOutside(key) {
			continue
		}
		names, err := meant(key, d.Tools[key], o.base.speaks())
		if err != nil {
			return nil, &centurion.Error{Op: "read agents", Kind: centurion.KindConfig, Err: err, Hint: centurion.HintOf(err),
				Msg: fmt.Sprintf("agent %q of %s", d.Name, d.Source)}
		}
		for _, n := range names {
			has[n] = d.Tools[key]
		}
	}
	return slices.DeleteFunc(slices.Clone(known), func(t string) bool { return !has[t] }), nil
}

// meant returns the tools meant by a key of a definition. As in OpenCode, removing one way to change files removes all, and bash stands
// for every way to run a command.
func meant(key string, yes bool, known []string) ([]string, error) {
	name := strings.ToLower(key)
	if strings.Contains(name, "*") {
		return slices.DeleteFunc(slices.Clone(known), func(t string) bool {
			ok, err := path.Match(name, t)
			return err != nil || !ok || yes && t == askUser // a person names the agents that may ask them
		}), nil
	}
	other, is := foreign()[name]
	switch {
	case slices.Contains(known, name):
	case is && other == "":
		return nil, nil
	case is:
		name = other
	default:
		e := &centurion.Error{Kind: centurion.KindConfig, Msg: fmt.Sprintf("there is no tool %q; the tools are %s", key, strings.Join(known, ", "))}
		e.Hint = "correct or remove it under `tools`"
		if near := centurion.Nearest(name, slices.Concat(known, slices.Sorted(maps.Keys(foreign())))); near != "" {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		}
		return nil, e
	}
	switch {
	case !yes && (name == "write" || name == "edit"):
		return []string{"write", "edit"}, nil
	case name == "delegate_task" || name == subAgentTool: // the same thing under two names, by profile
		return []string{"delegate_task", subAgentTool}, nil
	case name == "bash": // a shell is a shell, even in the background
		return []string{"bash", "run_background", "check_background"}, nil
	}
	return []string{name}, nil
}

// named reports whether a definition asks for a tool by its name, not by a pattern.
func named(tools map[string]bool, tool string) bool {
	for key, yes := range tools {
		if name := strings.ToLower(key); yes && (name == tool || foreign()[name] == tool) {
			return true
		}
	}
	return false
}

// oneLine returns the first line of a text, short enough for a list.
func oneLine(s string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return centurion.Clip(strings.Join(strings.Fields(first), " "), maxDescription)
}

// maxDescription limits a description, in bytes: it is in every request of agents that may delegate to this one.
const maxDescription = 160

// Roster describes the custom agents that a may delegate to, one line each, or returns "". The built-in four are described in the
// prompts, and only what a mission gives them beside their role is said here.
func (c *Cast) Roster(a Agent) string {
	var b strings.Builder
	for _, to := range c.agents {
		if !a.MayDelegate(to.Name) {
			continue
		}
		has := text.When(len(to.External) > 0, "has the tools "+strings.Join(to.Picked(), " "))
		if to.Custom {
			fmt.Fprintf(&b, "- %s: %s\n", to.Name, strings.Join(text.Filled(cmp.Or(to.Description, "no description"), has), "; "))
		} else if has != "" {
			fmt.Fprintf(&b, "- %s: also %s\n", to.Name, has)
		}
	}
	return b.String()
}
