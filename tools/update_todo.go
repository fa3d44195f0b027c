package tools

import (
	"context"
	"encoding/json"
)

type updateTodoInput struct {
	Level   int          `json:"level"`
	Content string       `json:"content"`
	Items   []ItemUpdate `json:"items"`
	Add     []NewItem    `json:"add"`
}

func updateTodoTool() Tool {
	return define("update_todo", object(
		may("level", integer("How big the mission is: 1, 2 or 3", 1, 3)),
		may("content", nonEmpty("The whole text of the plan; replaces what is there")),
		may("items", list("Changes of items", object(
			need("id", nonEmpty("The item's id, such as T1")),
			may("status", oneOf("Its new status", "open", "done", "cancelled", "blocked")),
			may("title", nonEmpty("Its new title")),
			may("note", nonEmpty("A line to keep under the item")),
			may("after", list("More ids that it waits for; [] clears them", str("An id"))),
		))),
		may("add", list("New items", object(
			need("title", nonEmpty("The work, in one line")),
			may("id", nonEmpty("Its id (default: the next free one)")),
			may("section", nonEmpty("The ## section it belongs to (default: the last)")),
			may("agent", nonEmpty("The agent that does it: worker, reviewer …")),
			may("after", list("Ids of the items that must finish first", str("An id"))),
			may("files", list("The files it may change, as patterns", str("A path or pattern"))),
			may("verify", list("Commands that prove it is done", str("A shell command"))),
		))),
	), func(updateTodoInput) Effect { return Effect{Hosted: true} }, runUpdateTodo)
}

func runUpdateTodo(ctx context.Context, c *Call, in updateTodoInput) (Result, error) {
	const op = "update_todo"
	if c.Planner == nil {
		return denied(op, "your role does not change the plan", "say in your answer what should change in it")
	}
	u, err := c.withoutKeys(TodoUpdate(in))
	if err != nil {
		return Result{}, err
	}
	if u.Level == 0 && u.Content == "" && len(u.Items) == 0 && len(u.Add) == 0 {
		return Result{}, usage(op, "give level, content, items or add", "nothing was given to change")
	}
	for _, i := range u.Items {
		if i.Status == "" && i.Title == "" && i.Note == "" && i.After == nil {
			return Result{}, usage(op, "give status, title, note or after", "nothing was given to change in item %s", i.ID)
		}
	}
	if err := c.Gate.Ask(ctx, c, Access{Permission: "todowrite", Patterns: []string{"*"}, Always: []string{"*"}}); err != nil {
		return Result{}, err
	}
	out, remarks, err := c.Planner.UpdateTodo(ctx, c, u)
	if err != nil {
		return Result{}, err
	}
	return Result{Output: out, Title: "plan", Metadata: map[string]any{"level": u.Level, "changed": len(u.Items), "added": len(u.Add), "remarks": remarks}}, nil
}

// withoutKeys returns the update with placeholders for keys: the plan is shown, sent and kept.
func (c *Call) withoutKeys(u TodoUpdate) (clean TodoUpdate, err error) {
	b, err := json.Marshal(u)
	if err != nil {
		return u, err
	}
	err = json.Unmarshal([]byte(c.Keys.Text(string(b))), &clean)
	for i := range clean.Items {
		clean.Items[i].After = u.Items[i].After // an empty list clears it, and JSON leaves it out
	}
	return clean, err
}
