package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/agents"
	"centurion/cli/print"
	"centurion/host"
	"centurion/sandbox"
	"centurion/server"
	"centurion/trust"
	"centurion/workspace"
	"centurion/workspace/todo"
)

const trustHelp = `Show what the files of this project run, allow or send once you trust them, and ask whether you do.

Files that came with the project, or that an agent wrote, can only restrict agents. What else they hold is not in force before you
trust it: agents, rules that allow more, shell in commands, worktree.setup, verify, addresses and keys of models. --ask allow is no trust.
Trust is bound to the content of each file: after a change you are shown the difference, and the file is not trusted until you
say so again. A mission that runs keeps what it started with.

A plan that no mission wrote is shown if it is .opencode/todo.md; any other is named as PLAN.`

func trustCommand(c *cli) *cobra.Command {
	var f readFlags
	var yes, revoke bool
	cmd := &cobra.Command{Use: "trust [PLAN]", Short: "Trust what a project's files run and allow", Long: trustHelp,
		Example: "  centurion trust\n  centurion trust --yes\n  centurion trust --revoke\n  centurion trust .opencode/todo-20260102-150405.md", Args: exactly(0, 1, "at most one plan"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(f.format); err != nil {
				return err
			}
			p, ws, err := c.locate(f.dir)
			if err != nil {
				return err
			}
			defer ws.Close()
			if c.getenv(centurion.HostVariable) != "" || (&sandbox.Runner{Mark: p.Mark()}).Started() {
				return &centurion.Error{Kind: centurion.KindPermission, Msg: "an agent's command cannot trust a project", Hint: "run it in a terminal of your own: " + trust.Command}
			}
			if revoke {
				return c.revokeTrust(p, f.format)
			}
			_, err = c.trustProject(cmd.Context(), p, ws, first(args), f.format, yes)
			return err
		}}
	f.bind(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "trust all of it without asking")
	cmd.Flags().BoolVar(&revoke, "revoke", false, "trust nothing of this project any more")
	cmd.MarkFlagsMutuallyExclusive("yes", "revoke")
	return cmd
}

func (c *cli) revokeTrust(p host.Place, format string) error {
	book, _ := trust.Open(p.State) // an unreadable one is replaced
	names, err := book.Revoke()
	if err != nil {
		return err
	}
	if format == "json" {
		return writeJSON(c.out, append([]string{}, names...))
	}
	return c.say(nil, "nothing of this project is trusted now; it was "+centurion.Count(len(names), "file"))
}

// trustProject shows what needs trust and records the person's yes. It reports whether everything is trusted now.
func (c *cli) trustProject(ctx context.Context, p host.Place, ws *workspace.Workspace, plan, format string, yes bool) (bool, error) {
	states, book, err := c.needTrust(ctx, p, ws, plan)
	if err != nil {
		return false, err
	}
	var files []trust.File
	for _, s := range states {
		if !s.Trusted {
			files = append(files, s.File())
		}
	}
	if format != "json" {
		if err := print.Trust(c.out, states); err != nil || len(files) == 0 {
			return true, err
		}
		switch {
		case yes:
		case !c.live():
			return false, &centurion.Error{Kind: centurion.KindUsage, Msg: "nothing was trusted: there is no terminal to ask on", Hint: "if you trust it: " + trust.Command + " --yes"}
		default:
			key, err := c.choose(ctx, "trust all of it? (y/N)", "yn", "n")
			if err != nil || key != "y" {
				return false, errors.Join(err, c.say(err, "nothing was trusted"))
			}
		}
	}
	if format != "json" || yes {
		if err := book.Trust(files...); err != nil {
			return false, err
		}
	}
	if format != "json" {
		return true, c.say(nil, "trusted, until it changes")
	}
	for i, s := range states {
		states[i] = book.Compare(s.File())
	}
	return yes, writeJSON(c.out, append([]trust.State{}, states...))
}

// needTrust compares the project's files, and a plan of no mission, with what the person has trusted of them.
func (c *cli) needTrust(ctx context.Context, p host.Place, ws *workspace.Workspace, plan string) ([]trust.State, *trust.Book, error) {
	cfg, err := c.configured(ws.Dir())
	if err != nil {
		return nil, nil, err
	}
	if _, err := cfg.Cast(agents.ProfileMission); err != nil { // before the rules: it moves those of old names to their place
		return nil, nil, err
	}
	if _, err := cfg.Rules(); err != nil {
		return nil, nil, err
	}
	states := cfg.ProjectFiles()
	named := plan != ""
	if !named {
		if plan, err = ownerlessPlan(ctx, p); err != nil || plan == "" {
			return states, cfg.Trust, err
		}
	}
	text, _, err := ws.ReadFile(plan, 0)
	var doc *todo.Doc
	if err == nil {
		doc, err = todo.Parse(text)
	}
	if err != nil {
		if named {
			return nil, nil, &centurion.Error{Op: "read plan", Kind: centurion.KindUsage, Err: err, Hint: "name a plan of the project, such as " + workspace.TodoPath}
		}
		return states, cfg.Trust, nil // the start of a mission reports an unreadable plan
	}
	if f := planFileOf(plan, text, doc); len(f.Items) > 0 {
		states = append(states, cfg.Trust.Compare(f))
	}
	return states, cfg.Trust, nil
}

// planFileOf lists the checks of a plan.
func planFileOf(name string, text []byte, doc *todo.Doc) trust.File {
	f := trust.File{Name: name, Sum: trust.Sum(string(text))}
	add := func(line int, commands []string) {
		for _, command := range commands {
			f.Items = append(f.Items, trust.Item{Line: line, Kind: trust.Verify, Text: command})
		}
	}
	add(1, doc.Checks())
	for _, it := range doc.Items() {
		add(it.Line, it.Verify)
	}
	return f
}

// ownerlessPlan returns the path of the project's plan, or "" if a mission owns it.
func ownerlessPlan(ctx context.Context, p host.Place) (string, error) {
	api, closeAPI, err := p.API(ctx)
	if _, none := errors.AsType[host.NoMissionError](err); none {
		return workspace.TodoPath, nil
	}
	if err != nil {
		return "", err
	}
	all, err := api.Missions(ctx)
	if err = errors.Join(err, closeAPI()); err != nil {
		return "", err
	}
	if i := slices.IndexFunc(all, func(m server.Mission) bool { return m.Todo == workspace.TodoPath }); i >= 0 && all[i].HasPlan {
		return "", nil
	}
	return workspace.TodoPath, nil
}
