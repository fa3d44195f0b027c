package tools

import (
	"context"

	"centurion"
)

// Delegator is the one upward call of the program: the orchestrator fulfils it for the tools that start, read and stop
// tasks. Every method may be called from several sessions at once. Errors carry a hint for the model: the nearest
// agent, item or task.
type Delegator interface {
	// Delegate records a task and returns at once, with the task as it was recorded; the same call id gives the same task.
	Delegate(ctx context.Context, c *Call, d Delegation) (centurion.Task, error)
	// ItemTitle returns the title of a todo item as it is now, or "" if there is no such item.
	ItemTitle(item string) string
	// Await blocks until the task has ended and returns it, and consumes its result: it is not delivered again.
	// When ctx ends first the task goes on and its result is delivered as a notice.
	Await(ctx context.Context, c *Call, task string) (centurion.Task, error)
	// Tasks lists the tasks that this session delegated, oldest first. A second call waits while the list is still the same and nothing
	// can be started.
	Tasks(ctx context.Context, c *Call) ([]centurion.Task, error)
	// Result returns one of them and consumes its result if it has ended. While it lives and nothing can be started it waits until
	// something ends or arrives, some minutes at most. can says what can be started; it is empty if that is nothing.
	Result(ctx context.Context, c *Call, task string) (t centurion.Task, can string, err error)
	// Report says all that is to be told of a task that has ended: the same text as the notice of its end.
	Report(ctx context.Context, t centurion.Task) (string, error)
	// Cancel stops one of them. Cancelling what has ended is no error and changes nothing.
	Cancel(ctx context.Context, c *Call, task, reason string) (centurion.Task, error)
	// Complete ends the mission if everything is proven done, by the command check as well unless it is empty. Otherwise the error says
	// exactly what is still missing.
	Complete(ctx context.Context, c *Call, summary, check string) (string, error)
}

// Delegation is a request to start a task.
type Delegation struct {
	Agent       string
	Description string // three to eight words for the board
	Prompt      string // handed to the worker verbatim
	Item        string // the todo item it works on; may be empty
	Context     bool   // it is given the project's shared context
	Resume      string // a task that has ended, or its session, whose conversation goes on; may be empty

	Budget centurion.TaskBudget // what it may spend at most; zero fields: as configured
}

// Planner changes the plan for the tools that may: it is fulfilled by the orchestrator, which checks roles and running
// tasks and records every change.
type Planner interface {
	// UpdateTodo applies one change as a whole or not at all and returns the list as it is then, in short. Remarks says that more
	// stands there, which the model has to read.
	UpdateTodo(ctx context.Context, c *Call, u TodoUpdate) (list string, remarks bool, err error)
}

// TodoUpdate is one change of the plan. Its fields apply in this order.
type TodoUpdate struct {
	Level   int          // 1, 2 or 3; 0 leaves it
	Content string       // replaces the whole file; empty leaves it
	Items   []ItemUpdate // changes of items by id
	Add     []NewItem    // appended to their section
}

// ItemUpdate changes one item.
type ItemUpdate struct {
	ID     string   `json:"id"`
	Status string   `json:"status,omitempty"` // open, done, cancelled or blocked
	Title  string   `json:"title,omitempty"`
	Note   string   `json:"note,omitempty"`  // kept under the item
	After  []string `json:"after,omitempty"` // items that it has to wait for too
}

// NewItem is an item to add.
type NewItem struct {
	ID      string   `json:"id,omitempty"` // assigned if empty
	Section string   `json:"section,omitempty"`
	Title   string   `json:"title"`
	Agent   string   `json:"agent,omitempty"`
	After   []string `json:"after,omitempty"`
	Files   []string `json:"files,omitempty"`
	Verify  []string `json:"verify,omitempty"`
}
