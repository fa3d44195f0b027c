package tools

import (
	"context"
	"fmt"
)

type getTaskResultInput struct {
	TaskID string `json:"task_id"`
}

func getTaskResultTool() Tool {
	return define("get_task_result", object(
		need("task_id", nonEmpty("The task's name: T2, w7")),
	), func(getTaskResultInput) Effect { return Effect{ReadOnly: true} }, runGetTaskResult)
}

func runGetTaskResult(ctx context.Context, c *Call, in getTaskResultInput) (Result, error) {
	if c.Delegator == nil {
		return noDelegator("get_task_result", "")
	}
	t, can, err := c.Delegator.Result(ctx, c, in.TaskID)
	if err != nil {
		return Result{}, err
	}
	if t.Status.Ended() {
		return finished(ctx, c, t)
	}
	what := fmt.Sprintf("%s has not ended: %s.", label(t), state(t))
	if can != "" {
		what += " " + can
	}
	return started(t, what), nil
}
