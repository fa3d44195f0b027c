package tools

import "context"

type missionCompleteInput struct {
	Summary string `json:"summary"`
	Verify  string `json:"verify"`
}

func missionCompleteTool() Tool {
	return define("mission_complete", object(
		need("summary", nonEmpty("What was done and what the person should know, in a few sentences")),
		may("verify", nonEmpty("A shell command that fails without the change and passes with it; for a goal without a plan")),
	), func(missionCompleteInput) Effect { return Effect{Hosted: true, Once: true} }, runMissionComplete)
}

func runMissionComplete(ctx context.Context, c *Call, in missionCompleteInput) (Result, error) {
	if c.Delegator == nil {
		return noDelegator("mission_complete", "end your turn with your result instead")
	}
	out, err := c.Delegator.Complete(ctx, c, in.Summary, in.Verify)
	if err != nil {
		return Result{}, err
	}
	return Result{Output: out, Title: "mission complete", EndTurn: true}, nil
}
