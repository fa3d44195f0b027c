package tools

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/permission"
	"centurion/text"
)

//go:embed bash.md
var bashDoc string

const (
	bashTimeout    = 2 * time.Minute
	bashMaxTimeout = 10 * time.Minute
	bashKeep       = 30_000 // bytes of output that a model sees
)

type bashInput struct {
	Command     string `json:"command"`
	Timeout     int64  `json:"timeout"` // milliseconds
	Workdir     string `json:"workdir"`
	Description string `json:"description"`
}

func bashTool() Tool {
	return define("bash", bashDoc, object(
		need("command", nonEmpty("The shell script to run")),
		may("timeout", integer(fmt.Sprintf("Milliseconds until it is killed (default %d)", bashTimeout.Milliseconds()), 0,
			float64(bashMaxTimeout.Milliseconds()))),
		may("workdir", str("The directory to run it in, inside the project (default: the project's own)")),
		may("description", str("What it does, in a few words, for the person who watches")),
	), bashEffect, runBash)
}

// bashEffect takes a script that plainly only reads for what it is, and every other for something that may touch
// anything. The project's directory is not known here, so that an absolute path counts as one outside.
func bashEffect(in bashInput) Effect {
	if in.Workdir != "" {
		return Effect{}
	}
	return Effect{ReadOnly: permission.ParseShell(in.Command, noDirectory, homeDir()).ReadOnly}
}

// noDirectory is an absolute path that no script names.
const noDirectory = "/.centurion-no-such-directory"

func homeDir() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return home
}

func runBash(ctx context.Context, c *Call, in bashInput) (Result, error) {
	const op = "bash"
	if c.Runner == nil {
		return Result{}, &centurion.Error{Op: op, Kind: centurion.KindPermission, Msg: "your role has no shell",
			Hint: "say in your answer which command should be run"}
	}
	dir, err := mayRun(ctx, c, op, script{in.Command, in.Workdir, in.Description})
	if err != nil {
		return Result{}, err
	}
	title := cmp.Or(in.Description, firstLine(in.Command))
	c.Progress(title)
	timeout := bashTimeout
	if in.Timeout > 0 {
		timeout = time.Duration(in.Timeout) * time.Millisecond
	}
	res, err := c.Runner.Run(ctx, centurion.Command{Script: in.Command, Dir: dir.abs, Timeout: timeout, Keep: bashKeep})
	r := Result{Output: commandText(res, timeout), Title: title, Metadata: map[string]any{"exit": res.ExitCode,
		"description": in.Description, "output": text.Printed(res.Output), "timed_out": res.TimedOut, "duration_ms": res.Duration.Milliseconds()}}
	return r, err
}

// OutsidePrefix stands before a path outside the project among the patterns of a bash access: what it is a rule of is not the command
// but external_directory.
const OutsidePrefix = "external_directory "

// script is what a model wants to have run.
type script struct{ command, workdir, description string }

// mayRun finds the directory that a script is to run in and asks whether it may.
func mayRun(ctx context.Context, c *Call, op string, s script) (place, error) {
	dir, err := locate(c, op, s.workdir)
	if err != nil {
		return dir, err
	}
	if dir.outside() {
		return dir, &centurion.Error{Op: op, Kind: centurion.KindPermission, Msg: "workdir " + dir.name + " is outside the project",
			Hint: "give a directory inside the project, or leave workdir out"}
	}
	info, err := dir.stat(op)
	if err != nil {
		return dir, err
	}
	if !info.IsDir() {
		return dir, usage(op, "give a directory", "workdir %s is not a directory", dir.name)
	}
	shell := permission.ParseShell(s.command, dir.abs, homeDir())
	patterns := shell.Commands
	if len(patterns) == 0 {
		patterns = []string{s.command}
	}
	always := slices.Clone(shell.Always)
	for _, p := range shell.Paths {
		always = append(always, OutsidePrefix+p)
	}
	for _, p := range shell.Outside { // a command's own words say what it does, but not where its output goes
		if !slices.ContainsFunc(shell.Commands, func(s string) bool { return strings.Contains(s, p) }) {
			patterns = append(patterns, OutsidePrefix+p)
		}
	}
	return dir, c.Gate.Ask(ctx, c, Access{Permission: "bash", Patterns: patterns, Always: always, Script: s.command,
		Metadata: map[string]any{"command": s.command, "description": s.description, "workdir": dir.rel}})
}

// commandText is what a command printed, and below it how it ended, unless it just ended well.
func commandText(res centurion.CommandResult, timeout time.Duration) string {
	out := strings.TrimRight(text.Printed(res.Output), "\n")
	if out == "" {
		out = "(no output)"
	}
	switch {
	case res.TimedOut:
		return out + fmt.Sprintf("\ntimed out after %s and was killed with everything it had started. Give a longer timeout (at most %d ms), "+
			"or a command that ends by itself; servers and watchers do not.", timeout, bashMaxTimeout.Milliseconds())
	case res.ExitCode != 0:
		return out + fmt.Sprintf("\nexit code %d", res.ExitCode)
	}
	return out
}

// firstLine is the first line of a script, cut to what fits in a title.
func firstLine(s string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(s), "\n")
	line = headRunes(line, 80)
	if rest != "" && !strings.HasSuffix(line, "…") {
		line += " …"
	}
	return line
}
