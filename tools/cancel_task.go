package tools

import (
	"context"
	"fmt"

	"centurion"
)

type cancelTaskInput struct {
	TaskID string `json:"task_id"`
	Reason string `json:"reason"`
}

func cancelTaskTool() Tool {
	return define("cancel_task", object(
		need("task_id", nonEmpty("The task's name: T2, w7")),
		may("reason", str("Why, for the record")),
	), func(cancelTaskInput) Effect { return Effect{Hosted: true, Once: true, Alike: "cancel_task"} }, runCancelTask)
}

func runCancelTask(ctx context.Context, c *Call, in cancelTaskInput) (Result, error) {
	if c.Delegator == nil {
		return noDelegator("cancel_task", "")
	}
	t, err := c.Delegator.Cancel(ctx, c, in.TaskID, in.Reason)
	if err != nil {
		return Result{}, err
	}
	out := fmt.Sprintf("%s is cancelled.", label(t))
	switch {
	case t.Status.Ended() && t.Status != centurion.TaskCancelled:
		out = fmt.Sprintf("%s had ended before (%s); nothing was cancelled.", label(t), t.Status)
	case !t.Status.Ended():
		out = fmt.Sprintf("%s is being cancelled.", label(t))
	}
	return Result{Output: out, Title: t.Title, Metadata: taskMeta(t)}, nil
}
