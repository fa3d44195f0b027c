package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/agents"
	"centurion/cli/goal"
	"centurion/cli/lookup"
	"centurion/config"
	"centurion/event/toast"
	"centurion/host"
	"centurion/server"
	"centurion/text"
	"centurion/tui"
	"centurion/workspace"
)

// slashCommand is a built-in command that a goal may start with.
type slashCommand struct {
	name, args, short string
	do                func(c *runner, ctx context.Context, args []string) error // nil: it starts a mission
}

// slashCommands are the built-in commands, in the order of the list. Other commands cannot replace them.
func slashCommands() []slashCommand {
	through := func(name string) func(*runner, context.Context, []string) error {
		return func(c *runner, ctx context.Context, args []string) error {
			return c.dispatch(ctx, append([]string{name}, args...))
		}
	}
	return []slashCommand{
		{"task", "GOAL", "Work on a goal to its end; the same as the goal alone", nil},
		{"plan", "GOAL", "Write the plan, show it and end", nil},
		{"agents", "", "List the agents", through("agents")},
		{"status", "[MISSION]", "Show a mission and its tasks (default: the latest)", (*runner).status},
		{"pause", "[MISSION]", "Pause a mission (default: the latest)", through("pause")},
		{"resume", "[MISSION]", "Resume a mission (default: the latest)", func(c *runner, ctx context.Context, args []string) error {
			if len(args) > 1 {
				return &centurion.Error{Kind: centurion.KindUsage, Msg: "/resume takes at most one mission", Hint: "see: centurion ps"}
			}
			return c.resumeMission(ctx, first(args))
		}},
		{"stop", "[MISSION]", "Stop a mission so that it can be resumed; the same as /pause", through("pause")},
		{"compact", "[ADDRESS]", "Shorten a conversation (default: the Commander's of the latest mission)", through("compact")},
		{"cancel", "[ID]", "Cancel a mission or a task (default: the latest mission)", (*runner).cancelLatest},
	}
}

// dispatch runs a command of the program, passing on the run flags that it shares.
func (c *runner) dispatch(ctx context.Context, args []string) error {
	for _, o := range [][2]string{{"--dir", c.f.dir}, {"--format", c.f.format}} {
		if o[1] != "" {
			args = append(args, o[0], o[1])
		}
	}
	root := c.root()
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

// viewFlags are the run flags shared with the commands that only read a project.
func (f *runFlags) viewFlags() *readFlags {
	return &readFlags{dir: f.dir, format: cmp.Or(f.format, "text")}
}

// status is /status.
func (c *runner) status(ctx context.Context, args []string) error {
	how := c.f.viewFlags()
	err := c.open(ctx, how, func(v *view) error {
		m, err := v.API.Mission(ctx, first(args))
		if err != nil {
			return err
		}
		tasks, err := v.API.Tasks(ctx, m.ID)
		if err != nil {
			return err
		}
		if how.format == "json" {
			return writeJSON(c.out, struct {
				server.Mission
				Board []server.Task `json:"board"`
			}{m, tasks})
		}
		if err := tui.Missions(c.out, []centurion.Mission{m.Noun()}, c.showOptions()); err != nil || len(tasks) == 0 {
			return err
		}
		o := c.listOptions(ctx, v.API, m)
		o.Most = toast.MaxLines // the others are counted; `centurion tasks` lists all
		return tui.Tasks(c.out, lookup.Tasks(tasks), o)
	})
	if _, none := errors.AsType[host.NoMissionError](err); none && how.format == "text" {
		_, err = fmt.Fprintln(c.out, noMissions)
	}
	return err
}

// cancelLatest is /cancel.
func (c *runner) cancelLatest(ctx context.Context, args []string) error {
	if len(args) == 0 {
		err := c.open(ctx, c.f.viewFlags(), func(v *view) error {
			m, err := v.API.Mission(ctx, "")
			args = []string{m.ID}
			return err
		})
		if err != nil {
			return err
		}
	}
	return c.dispatch(ctx, append([]string{"cancel"}, args...))
}

// request is what a goal asks for.
type request struct {
	goal     string
	planOnly bool
	subAgent bool             // a sub-agent is to carry out the command
	typed    *centurion.Typed // the command of the person's or the project's that made the goal
	done     bool             // it was a command that has been carried out
}

// splitSlash splits a text that begins with a slash into its first word, without the slash, and the rest.
func splitSlash(text string) (word, rest string, ok bool) {
	text, ok = strings.CutPrefix(text, "/")
	end := strings.IndexFunc(text, unicode.IsSpace)
	if end < 0 {
		end = len(text)
	}
	return text[:end], strings.TrimSpace(text[end:]), ok
}

// readRequest evaluates a goal's first word: nothing, a built-in command, or one of the person's or the project's, whose text becomes
// the goal.
func (c *runner) readRequest(ctx context.Context, text string, configured func(dir string) (*config.Config, error)) (request, error) {
	word, rest, ok := splitSlash(text)
	if !ok {
		return request{goal: text}, nil
	}
	for _, s := range slashCommands() {
		switch {
		case s.name != word:
		case s.do != nil:
			return request{done: true}, s.do(c, ctx, goal.SplitArgs(rest))
		case rest == "":
			return request{}, &centurion.Error{Kind: centurion.KindUsage, Msg: "/" + word + " needs a goal", Hint: "write: centurion run \"/" + word + " GOAL\""}
		default:
			return request{goal: rest, planOnly: word == "plan"}, nil
		}
	}
	ws, err := workspace.Open(cmp.Or(c.f.dir, "."))
	if err != nil {
		return request{}, err
	}
	defer ws.Close()
	cfg, err := configured(ws.Dir())
	if err != nil {
		return request{}, err
	}
	cmd, ok := cfg.Commands[word]
	if !ok {
		if strings.Contains(word, "/") { // a path
			return request{goal: text}, nil
		}
		if p, found, err := c.prompt(ctx, ws, cfg, word, rest); err != nil || found {
			return request{goal: p, typed: &centurion.Typed{Command: word, Arguments: rest}}, err
		}
		return request{}, unknownSlash(word, cfg)
	}
	return c.expandCommand(ctx, ws, cfg, cmd, rest)
}

// prompt returns the text of a prompt of an MCP server, which is a command of the form server:prompt.
func (c *runner) prompt(ctx context.Context, ws *workspace.Workspace, cfg *config.Config, word, rest string) (text string, found bool, err error) {
	place, own, err := c.locate(ws.Dir())
	if err != nil {
		return "", false, err
	}
	defer own.Close()
	cfg.Own.Sandbox = cmp.Or(c.f.sandbox, cfg.Own.Sandbox)
	return place.Prompt(ctx, cfg, ws, Version, word, goal.SplitArgs(rest))
}

// unknownSlash returns the error for an unknown command.
func unknownSlash(word string, cfg *config.Config) error {
	names := text.Each(slashCommands(), func(s slashCommand) string { return "/" + s.name })
	for _, n := range slices.Sorted(maps.Keys(cfg.Commands)) {
		names = append(names, "/"+n)
	}
	near := centurion.Nearest("/"+word, names)
	return &centurion.Error{Kind: centurion.KindUsage, Msg: fmt.Sprintf("there is no command /%s; there are %s", word, strings.Join(slices.Compact(names), ", ")),
		Hint: text.If(near != "", "did you mean "+near+"?", "a goal that begins with a slash is given with: centurion run \"/task GOAL\"")}
}

// expandCommand builds the goal from a command of the person's or the project's, and sets its agent and model unless flags do.
func (c *runner) expandCommand(ctx context.Context, ws *workspace.Workspace, cfg *config.Config, cmd config.Command, args string) (request, error) {
	profile := cmp.Or(c.f.profile, cfg.Own.Profile)
	cast, err := cfg.Cast(profile)
	if err != nil {
		return request{}, err
	}
	st, to := request{typed: &centurion.Typed{Command: cmd.Name, Arguments: args}}, ""
	switch agent, err := cast.Find(cmp.Or(cmd.Agent, cast.Owner())); {
	case c.f.agent != "":
	case err != nil && slices.Contains(config.OpenCodeAgents, strings.ToLower(cmd.Agent)):
		st.planOnly = strings.EqualFold(cmd.Agent, "plan") // which changes nothing in OpenCode either
		if !st.planOnly {
			c.note(fmt.Sprintf("/%s: the agent %q is OpenCode's own; the %s does its work here", cmd.Name, cmd.Agent, cast.Owner()))
		}
	case err != nil:
		c.notices(cfg) // the agent may be one that needs trust
		return st, &centurion.Error{Op: fmt.Sprintf("run /%s of %s", cmd.Name, cmd.File), Kind: centurion.KindConfig, Err: err, Hint: centurion.HintOf(err)}
	case cmd.Subtask && profile == agents.ProfileAssistant:
		st.subAgent = true
	case cmd.Subtask && agent.Mode == "primary":
		to = agents.Worker
	case cmd.Subtask || agent.Mode == "subagent":
		to = agent.Name
	case cmd.Agent != "":
		c.f.agent = agent.Name
	}
	c.f.model = cmp.Or(c.f.model, cmd.Model)
	rules, err := cfg.Rules()
	if err != nil {
		return st, err
	}
	run := func(ctx context.Context, one centurion.Command) (res centurion.CommandResult, err error) {
		place, found, err := c.locate(ws.Dir())
		if err != nil {
			return res, err
		}
		defer found.Close()
		cfg.Own.Sandbox = cmp.Or(c.f.sandbox, cfg.Own.Sandbox)
		return place.RunOnce(ctx, cfg, one)
	}
	e := goal.Expansion{Run: run, Command: cmd, Args: args, Workspace: ws, Rules: rules(cmp.Or(to, c.f.agent, cast.Owner())), Note: c.note}
	if st.goal, err = e.Expand(ctx); err != nil {
		return st, err
	}
	if st.subAgent {
		st.goal += "\n\n---\nHand this as one task to a sub-agent with sub_agent, and report its result."
	}
	if to != "" {
		st.goal += fmt.Sprintf("\n\n---\nDelegate this as one task to the agent %s, and report its result.", to)
	}
	return st, nil
}

func commandsCommand(c *cli) *cobra.Command {
	type row struct {
		Name        string `json:"name"`
		Arguments   string `json:"arguments,omitempty"`
		Description string `json:"description"`
		Agent       string `json:"agent,omitempty"`
		Model       string `json:"model,omitempty"`
		Subtask     bool   `json:"subtask,omitempty"`
		Source      string `json:"source"` // a file, or "built in"
	}
	return plainCommand("commands", "List the slash commands",
		"List the words that a goal may begin with: the program's own, and those of .opencode/commands/*.md, opencode.json and\n"+
			"their like in ~/.config/opencode. A command's text becomes the goal. In it $ARGUMENTS and $1 to $9 stand for what follows the\n"+
			"word; @FILE adds a file of the project; !`SHELL` is replaced by what a shell command prints, in your own files only.",
		"  centurion commands\n  centurion run \"/plan port the parser to Go\"",
		func(_ context.Context, f *readFlags) error {
			cfg, err := c.configured(f.dir)
			if err != nil {
				return err
			}
			c.notices(cfg)
			rows, own := []row{}, slashCommands()
			for _, s := range own {
				rows = append(rows, row{Name: s.name, Arguments: s.args, Description: s.short, Source: builtIn})
			}
			for _, name := range slices.Sorted(maps.Keys(cfg.Commands)) {
				cmd := cfg.Commands[name]
				if slices.ContainsFunc(own, func(s slashCommand) bool { return s.name == name }) {
					if cmd.File != config.FromPlugins {
						c.note(fmt.Sprintf("%s does not count: /%s is built in", cmd.File, name))
					}
					continue
				}
				rows = append(rows, row{Name: name, Description: cmp.Or(cmd.Description, centurion.Clip(oneLine(cmd.Template), 80)),
					Agent: cmd.Agent, Model: cmd.Model, Subtask: cmd.Subtask, Source: cmd.File})
			}
			return printRows(c, f.format, rows, func(r row) string {
				from := fmt.Sprintf("%21sfrom %s%s%s\n", "", r.Source, text.When(r.Agent != "", ", agent "+r.Agent), text.When(r.Model != "", ", model "+r.Model))
				return fmt.Sprintf("%-20s %s\n%s", strings.TrimSpace("/"+r.Name+" "+r.Arguments), oneLine(r.Description), text.When(r.Source != builtIn, from))
			})
		})
}
