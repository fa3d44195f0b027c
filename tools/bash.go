package tools

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"centurion"
	"centurion/permission"
	"centurion/text"
	"centurion/workspace"
	"centurion/worktree"
)

const (
	bashTimeout    = 2 * time.Minute
	bashMaxTimeout = 10 * time.Minute
	bashKeep       = 30_000 // bytes of output shown to a model
)

// scriptInput is a script that a model wants to run.
type scriptInput struct {
	Command     string `json:"command"`
	Timeout     int64  `json:"timeout"` // milliseconds
	Workdir     string `json:"workdir"`
	Description string `json:"description"`
}

// scriptSchema describes a scriptInput with these time limits.
func scriptSchema(usual, most time.Duration) *jsonschema.Schema {
	return object(
		need("command", nonEmpty("The shell script to run")),
		may("timeout", integer(fmt.Sprintf("Milliseconds until it is killed (default %d)", usual.Milliseconds()), 0, float64(most.Milliseconds()))),
		may("workdir", str("The directory to run it in, inside the project (default: the project's own)")),
		may("description", str("What it does, in a few words, for the person who watches")),
	)
}

func bashTool() Tool {
	return define("bash", scriptSchema(bashTimeout, bashMaxTimeout), bashEffect, runBash)
}

// bashEffect treats a script that plainly only reads as read-only, and any other as one that may touch anything. The project's
// directory is unknown here, so absolute paths count as outside.
func bashEffect(in scriptInput) Effect {
	if in.Workdir != "" {
		return Effect{}
	}
	return Effect{ReadOnly: permission.ParseShell(in.Command, noDirectory, homeDir()).ReadOnly}
}

// noDirectory is an absolute path that no script contains.
const noDirectory = "/.centurion-no-such-directory"

func homeDir() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return home
}

func runBash(ctx context.Context, c *Call, in scriptInput) (Result, error) {
	const op = "bash"
	if c.Runner == nil {
		return denied(op, "your role has no shell", "say in your answer which command should be run")
	}
	dir, err := mayRun(ctx, c, op, in)
	if err != nil {
		return Result{}, err
	}
	title := cmp.Or(in.Description, firstLine(in.Command))
	c.Progress(title)
	timeout := bashTimeout
	if in.Timeout > 0 {
		timeout = time.Duration(in.Timeout) * time.Millisecond
	}
	res, err := c.Runner.Run(ctx, centurion.Command{Script: in.Command, Dir: dir.In.Dir(), Workdir: dir.Rel, Env: shellEnv(ctx, c, dir.Abs()), Workspace: c.Workspace.Place().Workspace, Network: c.Network, Connect: c.Connect, Timeout: timeout, Output: c.Output, Keep: bashKeep})
	r := Result{Output: CommandText(res, timeout), Title: title, Metadata: map[string]any{"exit": res.ExitCode,
		"description": in.Description, "output": text.Printed(res.Output), "timed_out": res.TimedOut, "duration_ms": res.Duration.Milliseconds()}}
	return r, err
}

// shellEnv returns the variables that plugins add to a command.
func shellEnv(ctx context.Context, c *Call, dir string) (env []string) {
	in := struct {
		centurion.Hooked
		Dir  string `json:"cwd"`
		Call string `json:"callID"`
	}{centurion.Hooked{Session: c.Session, Agent: c.Agent, Mission: c.Mission, Task: c.Task}, dir, c.ID}
	type vars struct {
		Env map[string]string `json:"env"`
	}
	out, by, err := centurion.RunHook(ctx, c.Hooks, centurion.HookShellEnv, in, vars{map[string]string{}})
	if err != nil {
		return nil
	}
	c.Touched("environment", by)
	for _, name := range slices.Sorted(maps.Keys(out.Env)) {
		if value := out.Env[name]; name != "" && !strings.ContainsAny(name, "=\x00") && !strings.Contains(value, "\x00") {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// OutsidePrefix marks a path outside the project among the patterns of a bash access: the rules of external_directory apply to it, not
// those of bash.
const OutsidePrefix = "external_directory "

// mayRun resolves the directory of a script and asks whether the script may run.
func mayRun(ctx context.Context, c *Call, op string, in scriptInput) (place, error) {
	dir, err := locate(c, op, in.Workdir)
	if err != nil {
		return dir, err
	}
	if dir.Outside {
		return dir, &centurion.Error{Op: op, Kind: centurion.KindPermission, Msg: "workdir " + dir.Name + " is outside the project",
			Hint: "give a directory inside the project, or leave workdir out"}
	}
	info, err := dir.In.Stat(dir.Rel)
	if err != nil {
		return dir, dir.fail(op, 0, err)
	}
	if !info.IsDir() {
		return dir, usage(op, "give a directory", "workdir %s is not a directory", dir.Name)
	}
	shell := ScriptPlace(c.Workspace, dir.Rel).Parse(in.Command)
	patterns := shell.Commands
	if len(patterns) == 0 {
		patterns = []string{in.Command}
	}
	always := slices.Clone(shell.Always)
	for _, p := range shell.Paths {
		always = append(always, OutsidePrefix+p)
	}
	for _, p := range shell.Outside { // a command's words show its effect, but not the target of its output
		if !slices.ContainsFunc(shell.Commands, func(s string) bool { return strings.Contains(s, p) }) {
			patterns = append(patterns, OutsidePrefix+p)
		}
	}
	return dir, c.Gate.Ask(ctx, c, Access{Permission: "bash", Patterns: patterns, Always: always, Script: in.Command, Workdir: dir.Rel,
		Metadata: map[string]any{"command": in.Command, "description": in.Description, "workdir": dir.Rel}})
}

// ScriptPlace is where a script of ws runs: in workdir, relative to ws. Its analysis follows links, and looks what git would run.
func ScriptPlace(ws *workspace.Workspace, workdir string) permission.Place {
	p := permission.Place{Dir: ws.Dir(), Workdir: workdir, Home: homeDir(), Follow: ws.Follow, GitRuns: worktree.Runs}
	if ws.Elsewhere() { // its git directory is the workspace's own, made by us, and what it runs is confined
		p.GitRuns = func(string) string { return "" }
	}
	return p
}

// CommandText is the output of a command, followed by its end unless it simply succeeded.
func CommandText(res centurion.CommandResult, timeout time.Duration) string {
	out := strings.TrimRight(text.Printed(res.Output), "\n")
	if out == "" {
		out = "(no output)"
	}
	switch {
	case res.Exceeded != "":
		return out + "\nwas killed with everything it had started: " + UsedTooMuch(res.Exceeded)
	case res.TimedOut:
		return out + fmt.Sprintf("\ntimed out after %s and was killed with everything it had started. Give a longer timeout (at most %d ms), "+
			"or a command that ends by itself; servers and watchers do not.", timeout, bashMaxTimeout.Milliseconds())
	case res.ExitCode != 0:
		out += fmt.Sprintf("\nexit code %d", res.ExitCode)
	}
	if res.Held != "" {
		out += "\n(" + res.Held + ")"
	}
	return out
}

// UsedTooMuch says why a command was killed that exceeded a limit.
func UsedTooMuch(limit string) string {
	return "it used more than " + limit + ", the limit for all commands of a workspace. Use less at a time."
}

// firstLine is the first line of a script, shortened for a title.
func firstLine(s string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(s), "\n")
	line = headRunes(line, 80)
	if rest != "" && !strings.HasSuffix(line, "…") {
		line += " …"
	}
	return line
}
