package tools

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"time"

	"centurion"
	"centurion/text"
)

//go:embed run_background.md
var runBackgroundDoc string

// The time limits of background commands.
const (
	backgroundTimeout    = 5 * time.Minute // longer than a build, short for a forgotten server
	backgroundMaxTimeout = time.Hour       // the sandbox's maximum
)

type runBackgroundInput struct {
	Command     string `json:"command"`
	Timeout     int64  `json:"timeout"` // milliseconds
	Workdir     string `json:"workdir"`
	Description string `json:"description"`
}

func runBackgroundTool() Tool {
	return define("run_background", runBackgroundDoc, object(
		need("command", nonEmpty("The shell script to run")),
		may("timeout", integer(fmt.Sprintf("Milliseconds until it is killed (default %d)", backgroundTimeout.Milliseconds()), 0,
			float64(backgroundMaxTimeout.Milliseconds()))),
		may("workdir", str("The directory to run it in, inside the project (default: the project's own)")),
		may("description", str("What it does, in a few words, for the person who watches")),
	), func(runBackgroundInput) Effect { return Effect{} }, runRunBackground)
}

func runRunBackground(ctx context.Context, c *Call, in runBackgroundInput) (Result, error) {
	const op = "run_background"
	if c.Background == nil {
		return Result{}, noBackground(op)
	}
	dir, err := mayRun(ctx, c, op, script{in.Command, in.Workdir, in.Description})
	if err != nil {
		return Result{}, err
	}
	timeout := backgroundTimeout
	if in.Timeout > 0 {
		timeout = min(time.Duration(in.Timeout)*time.Millisecond, backgroundMaxTimeout)
	}
	b, err := c.Background.Start(ctx, c, centurion.Command{Script: in.Command, Dir: dir.abs, Timeout: timeout}, in.Description)
	if err != nil {
		return Result{}, err
	}
	out := fmt.Sprintf("%s is running, for %s at most, and ends with your task. You will be told when it ends; "+
		"what it prints shows check_background.", b.ID, text.Took(timeout))
	return Result{Output: out, Title: b.ID + ": " + cmp.Or(in.Description, firstLine(in.Command)), Metadata: backgroundMeta(b)}, nil
}
