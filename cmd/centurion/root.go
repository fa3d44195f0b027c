package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"centurion"
	"centurion/text"
)

// getenv reads the program's environment.
func (c *cli) getenv(name string) string {
	for _, kv := range slices.Backward(c.env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

const rootHelp = `Centurion runs teams of coding agents on your project until the work is verified.

Give it a goal in a project directory. A Commander plans the goal into .opencode/todo.md and delegates tasks to workers.
Centurion runs the acceptance commands itself and continues until the work is proven.`

const rootExample = `  centurion demo                                  see a whole mission, without a key
  centurion run "add a rate limit to the API"     work on a goal in this directory
  centurion run "/plan port the parser to Go"     write the plan, run it later with: centurion resume
  centurion run --detach "fix the flaky test"     in the background; watch it with: centurion attach
  centurion ps                                    what ran and what runs here`

// root builds the command tree.
func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use: "centurion", Short: "Run teams of coding agents", Long: rootHelp, Example: rootExample, Version: Version,
		SilenceErrors: true, SilenceUsage: true,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.SetVersionTemplate("centurion {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SuggestionsMinimumDistance = 2
	root.AddCommand(runCommand(c), demoCommand(c), resumeCommand(c), psCommand(c), showCommand(c), tasksCommand(c), pathCommand(c),
		logsCommand(c), reportCommand(c), asksCommand(c), answerCommand(c), approveCommand(c), denyCommand(c), sendCommand(c), compactCommand(c),
		diffCommand(c), mergeCommand(c), undoCommand(c), forkCommand(c), rewindCommand(c), cancelCommand(c), abortCommand(c),
		stopCommand(c), pauseCommand(c), attachCommand(c),
		serveCommand(c), acpCommand(c), rpcCommand(c), mcpCommand(c), hostCommand(c), serviceCommand(c),
		agentsCommand(c), commandsCommand(c), modelsCommand(c), authCommand(c), trustCommand(c), pluginCommand(c), doctorCommand(c), gcCommand(c), versionCommand(c))
	for _, l := range laterCommands {
		root.AddCommand(&cobra.Command{Use: l.use, Short: l.short + " (not in this version)", Hidden: true, DisableFlagParsing: true,
			RunE: func(cmd *cobra.Command, _ []string) error { return notYet("centurion "+cmd.Name(), l.step) }})
	}
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, s := range root.Commands() {
		switch s.Name() {
		case "completion":
			completionHelp(s)
		case "help":
			s.Example = "  centurion help run"
			helpOfCommand(s)
		}
	}
	return root
}

// helpOfCommand makes `centurion help` refuse unknown commands.
func helpOfCommand(cmd *cobra.Command) {
	cmd.Run = nil
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		found, rest, err := cmd.Root().Find(args)
		if err == nil && found.HasSubCommands() {
			err = unknownCommand(found, rest)
		}
		if err != nil {
			return err
		}
		found.InitDefaultHelpFlag()
		found.InitDefaultVersionFlag()
		return found.Help()
	}
}

// completionHelp adds examples to the commands that write completion scripts, and an error for an unsupported shell.
func completionHelp(cmd *cobra.Command) {
	cmd.Args = unknownCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.Example = "  source <(centurion completion bash)"
	where := map[string]string{"bash": "  centurion completion bash > /etc/bash_completion.d/centurion",
		"zsh": "  centurion completion zsh > \"${fpath[1]}/_centurion\"", "fish": "  centurion completion fish > ~/.config/fish/completions/centurion.fish",
		"powershell": "  centurion completion powershell | Out-String | Invoke-Expression"}
	for _, s := range cmd.Commands() {
		s.Example = cmp.Or(where[s.Name()], cmd.Example)
	}
}

// unknownCommand refuses a first word that is no command, suggesting the nearest one.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	names := text.Each(cmd.Commands(), (*cobra.Command).Name)
	e := &centurion.Error{Kind: centurion.KindUsage, Msg: fmt.Sprintf("there is no command %q", cmd.CommandPath()+" "+args[0]),
		Hint: "see: " + cmd.CommandPath() + " --help"}
	if !cmd.HasParent() {
		e.Msg = fmt.Sprintf("there is no command %q", args[0])
		e.Hint += `; a goal is given with: centurion run "GOAL"`
	}
	near := centurion.Nearest(args[0], names)
	e.Hint = cmp.Or(habitHint(cmd.Name(), args[0]), text.When(near != "", fmt.Sprintf("did you mean `%s %s`?", cmd.CommandPath(), near)), e.Hint)
	return e
}

// flagError rewords cobra's errors, suggesting the nearest flag.
func flagError(cmd *cobra.Command, err error) error {
	e := &centurion.Error{Kind: centurion.KindUsage, Err: err, Hint: "see: " + cmd.CommandPath() + " --help"}
	if cmd.HasAvailableSubCommands() && cmd.Flags().NArg() > 0 { // the flag belongs to a misspelt command
		return unknownCommand(cmd, cmd.Flags().Args())
	}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		e.Err, e.Msg = nil, fmt.Sprintf("--%s cannot be %q; it is a %s", bad.GetFlag().Name, bad.GetValue(), kindOfFlag(bad.GetFlag()))
		return e
	}
	if none, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		e.Err, e.Msg = nil, fmt.Sprintf("--%s needs a value: %s", none.GetFlag().Name, none.GetFlag().Usage)
		return e
	}
	if none, ok := errors.AsType[*pflag.NotExistError](err); ok && none.GetSpecifiedShortnames() != "" {
		e.Err, e.Msg = nil, "there is no flag -"+none.GetSpecifiedName()
		e.Hint = cmp.Or(habitOfFlag(cmd, none.GetSpecifiedName()), e.Hint)
		return e
	}
	word, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !ok {
		return e
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	near := centurion.Nearest(word, names)
	e.Err, e.Msg = nil, "there is no flag --"+word
	e.Hint = cmp.Or(habitOfFlag(cmd, word), text.When(near != "", "did you mean --"+near+"?"), e.Hint)
	return e
}

// kindOfFlag describes a flag's value.
func kindOfFlag(f *pflag.Flag) string {
	kinds := map[string]string{"duration": "duration such as 90m or 1h30m", "float64": "number such as 2.5", "int": "whole number",
		"int64": "whole number", (*sessionCap)(nil).Type(): "whole number of at least 1", "bool": "word: true or false"}
	return cmp.Or(kinds[f.Value.Type()], f.Value.Type())
}

// exactly refuses a wrong number of arguments, described by what.
func exactly(lo, hi int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= lo && (hi < 0 || len(args) <= hi) {
			return nil
		}
		return &centurion.Error{Kind: centurion.KindUsage, Msg: fmt.Sprintf("%s takes %s, not %s", cmd.Name(), what, centurion.Count(len(args), "argument")),
			Hint: "see: " + cmd.CommandPath() + " --help"}
	}
}

// laterCommands are planned commands. They say so instead of being unknown.
var laterCommands = []struct{ use, short, step string }{
	{"inbox [ADDRESS]", "Read an agent's messages", "messages between agents"},
}

func notYet(what, step string) error {
	return &centurion.Error{Kind: centurion.KindUsage, Msg: fmt.Sprintf("`%s` is not in version %s: it comes with %s", what, Version, step),
		Hint: "see what there is with: centurion --help"}
}

// commandHabits maps commands of other tools to ours, below centurion or one of its commands.
func commandHabits(parent string) map[string]string {
	const run, question = `run "GOAL"`, `run --profile assistant "QUESTION"`
	if parent == "auth" {
		return map[string]string{"add": "auth login PROVIDER", "set": "auth login PROVIDER", "key": "auth login PROVIDER", "remove": "auth logout PROVIDER",
			"rm": "auth logout PROVIDER", "delete": "auth logout PROVIDER", "ls": "auth list", "status": "auth list"}
	}
	return map[string]string{
		"login": "auth login PROVIDER", "logout": "auth logout PROVIDER", "providers": "auth list", "whoami": "auth list",
		"sessions": "ps", "session": "ps", "history": "ps", "ls": "ps", "list": "ps", "status": "ps", "missions": "ps", "jobs": "ps",
		"exec": run, "start": run, "new": run, "do": run, "prompt": run, "goal": run, "p": run, "e": run,
		"chat": question, "ask": question, "tui": question,
		"continue": "resume", "restart": "resume", "plan": `run "/plan GOAL"`,
		"kill": "cancel", "log": "logs", "tail": "logs", "export": "report", "todo": "tasks", "apply": "merge", "revert": "undo", "rollback": "undo",
		"message": "send", "msg": "send", "allow": "approve", "reject": "deny", "cleanup": "gc", "prune": "gc", "clean": "gc", "model": "models", "agent": "agents",
		"init": run, "setup": run, "config": "doctor", "settings": "doctor", "configure": "doctor",
	}
}

// habitHint returns the hint for a command name of another tool, or "".
func habitHint(parent, word string) string {
	to := commandHabits(parent)[word]
	switch {
	case to == "":
		return ""
	case word == "init" || word == "setup":
		return fmt.Sprintf("did you mean `centurion %s`, which needs no preparation?", to)
	case to == "doctor":
		return "did you mean `centurion doctor`, which names the files that configure it? (docs/configuration.md has the keys)"
	}
	return fmt.Sprintf("did you mean `centurion %s`?", to)
}

// flagHabits maps flags of other tools to ours, with a value if there is one.
func flagHabits() map[string][2]string {
	return map[string][2]string{
		"yolo": {"ask", " allow"}, "dangerously-skip-permissions": {"ask", " allow"}, "dangerously-bypass-approvals-and-sandbox": {"ask", " allow"},
		"full-auto": {"ask", " allow"}, "allow-all": {"ask", " allow"}, "allow-all-tools": {"ask", " allow"}, "auto-approve": {"ask", " allow"}, "auto": {"ask", " allow"},
		"json": {"format", " json"}, "output-format": {"format", " json"}, "output": {"format", " json"}, "o": {"format", " json"}, "stream-json": {"format", " json"},
		"m": {"model", ""}, "a": {"agent", ""}, "cwd": {"dir", ""}, "cd": {"dir", ""}, "C": {"dir", ""}, "workdir": {"dir", ""}, "directory": {"dir", ""},
		"max-turns": {"max-rounds", ""}, "max-iterations": {"max-rounds", ""}, "max-budget-usd": {"max-cost", ""}, "budget": {"max-cost", ""},
		"worktree": {"isolation", " worktree"}, "w": {"isolation", " worktree"}, "background": {"detach", ""}, "bg": {"detach", ""}, "d": {"detach", ""},
		"image": {"file", ""}, "i": {"file", ""}, "y": {"yes", ""},
	}
}

// habitOfFlag returns the hint for a flag of another tool, or "".
func habitOfFlag(cmd *cobra.Command, flag string) string {
	switch flag {
	case "p", "print", "prompt", "e", "exec":
		return "did you mean `centurion run \"GOAL\"`?"
	case "c", "continue", "r", "resume":
		return "did you mean `centurion resume`?"
	}
	to := flagHabits()[flag]
	switch {
	case to[0] == "":
		return ""
	case cmd.Flags().Lookup(to[0]) != nil:
		return fmt.Sprintf("did you mean --%s%s?", to[0], to[1])
	case !cmd.HasParent():
		return fmt.Sprintf("did you mean `centurion run --%s%s \"GOAL\"`?", to[0], to[1])
	}
	return ""
}
