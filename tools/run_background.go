package tools

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"centurion"
	"centurion/text"
)

// The time limits of background commands.
const (
	backgroundTimeout    = 5 * time.Minute // longer than a build, short for a forgotten server
	backgroundMaxTimeout = time.Hour       // the sandbox's maximum
)

func runBackgroundTool() Tool {
	return define("run_background", scriptSchema(backgroundTimeout, backgroundMaxTimeout),
		func(scriptInput) Effect { return Effect{} }, runRunBackground)
}

func runRunBackground(ctx context.Context, c *Call, in scriptInput) (Result, error) {
	const op = "run_background"
	if c.Background == nil {
		return noBackground(op)
	}
	dir, err := mayRun(ctx, c, op, in)
	if err != nil {
		return Result{}, err
	}
	timeout := backgroundTimeout
	if in.Timeout > 0 {
		timeout = min(time.Duration(in.Timeout)*time.Millisecond, backgroundMaxTimeout)
	}
	b, err := c.Background.Start(ctx, c, centurion.Command{Script: in.Command, Dir: dir.In.Dir(), Workdir: dir.Rel, Env: shellEnv(ctx, c, dir.Abs()), Workspace: c.Workspace.Place().Workspace, Network: c.Network, Connect: c.Connect, Timeout: timeout}, in.Description)
	if err != nil {
		return Result{}, err
	}
	out := fmt.Sprintf("%s is running, for %s at most, and ends with your task. You will be told when it ends; "+
		"what it prints shows check_background.", b.ID, text.Took(timeout))
	return Result{Output: out, Title: b.ID + ": " + cmp.Or(in.Description, firstLine(in.Command)), Metadata: backgroundMeta(b)}, nil
}
