package tools

import (
	"context"
	"fmt"
	"strings"

	"centurion"
)

type listTasksInput struct {
	Status string `json:"status"`
}

func listTasksTool() Tool {
	names := make([]string, len(centurion.TaskStatuses))
	for i, s := range centurion.TaskStatuses {
		names[i] = string(s)
	}
	return define("list_tasks", object(
		may("status", oneOf("Only tasks with this status", names...)),
	), func(listTasksInput) Effect { return Effect{ReadOnly: true} }, runListTasks)
}

func runListTasks(ctx context.Context, c *Call, in listTasksInput) (Result, error) {
	if c.Delegator == nil {
		return noDelegator("list_tasks", "")
	}
	all, err := c.Delegator.Tasks(ctx, c)
	if err != nil {
		return Result{}, err
	}
	newest := map[string]string{} // task by item: it has the item's name
	for _, t := range all {
		newest[t.Item] = t.ID
	}
	var b strings.Builder
	n := 0
	for _, t := range all {
		if in.Status != "" && string(t.Status) != in.Status {
			continue
		}
		n++
		called := label(t)
		if t.Item != "" && newest[t.Item] != t.ID {
			called = labelEarlier(t)
		}
		fmt.Fprintf(&b, "%s: %s", called, state(t))
		if t.Error != nil {
			fmt.Fprintf(&b, ", %s: %s", t.Error.Kind, firstLine(t.Error.Message))
		}
		b.WriteByte('\n')
	}
	switch {
	case len(all) == 0:
		b.WriteString("no task has been delegated yet")
	case n == 0:
		fmt.Fprintf(&b, "none of %s is %s", centurion.Count(len(all), "task"), in.Status)
	}
	return Result{Output: b.String(), Title: centurion.Count(n, "task"), Metadata: map[string]any{"count": n}}, nil
}
