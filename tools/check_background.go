package tools

import (
	"context"
	"fmt"
	"strings"

	"centurion"
)

const backgroundKill = "kill"

type checkBackgroundInput struct {
	ID     string `json:"id"`
	Action string `json:"action"`
}

func checkBackgroundTool() Tool {
	return define("check_background", object(
		may("id", str("The command's id, such as bg_1; left out: a list of all of yours")),
		may("action", oneOf("kill ends it; look (the default) shows how it stands", "look", backgroundKill)),
	), func(in checkBackgroundInput) Effect {
		return Effect{ReadOnly: in.Action != backgroundKill, Hosted: in.Action == backgroundKill}
	}, runCheckBackground)
}

func runCheckBackground(ctx context.Context, c *Call, in checkBackgroundInput) (Result, error) {
	const op = "check_background"
	if c.Background == nil {
		return noBackground(op)
	}
	id := strings.TrimSpace(in.ID)
	switch {
	case id == "" && in.Action == backgroundKill:
		return Result{}, usage(op, "give the id of one of them", "kill which command?")
	case id == "":
		return listBackground(ctx, c)
	}
	look := c.Background.Look
	if in.Action == backgroundKill {
		look = c.Background.Kill
	}
	b, err := look(ctx, c, id)
	if err != nil {
		return Result{}, err
	}
	return looked(b), nil
}

func listBackground(ctx context.Context, c *Call) (Result, error) {
	all, err := c.Background.List(ctx, c)
	if err != nil {
		return Result{}, err
	}
	var out strings.Builder
	for _, b := range all {
		fmt.Fprintf(&out, "%s (%s)\n", b.State(), firstLine(b.Script))
	}
	if len(all) == 0 {
		out.WriteString("you have no background commands; those of an earlier run of the host have ended with it")
	}
	return Result{Output: strings.TrimRight(out.String(), "\n"), Title: centurion.Count(len(all), "background command"),
		Metadata: map[string]any{"count": len(all)}}, nil
}
