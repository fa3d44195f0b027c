package tools

import (
	"context"
	"fmt"
	"strings"

	"centurion"
)

// Delegator is implemented by the orchestrator for the tools that start, read and stop tasks. Its methods are safe for concurrent use
// by several sessions. Errors have a hint for the model: the nearest agent, item or task.
type Delegator interface {
	// Delegate records a task and returns it at once; the same call id gives the same task.
	Delegate(ctx context.Context, c *Call, d Delegation) (centurion.Task, error)
	// ItemTitle returns the current title of a todo item, or "" if there is none.
	ItemTitle(item string) string
	// Await blocks until the task has ended, and consumes and returns its result, which is not delivered again. If ctx ends first, the
	// task continues and its result is delivered as a notice.
	Await(ctx context.Context, c *Call, task string) (centurion.Task, error)
	// Tasks lists the tasks delegated by this session, oldest first. A second call waits while the list is unchanged and nothing can be
	// started.
	Tasks(ctx context.Context, c *Call) ([]centurion.Task, error)
	// Result returns one of these tasks and consumes its result if it has ended. While the task lives and nothing can be started, it
	// waits until something ends or arrives, some minutes at most. can describes what can be started, or is "".
	Result(ctx context.Context, c *Call, task string) (t centurion.Task, can string, err error)
	// Report describes an ended task, in the same words as the notice of its end.
	Report(ctx context.Context, t centurion.Task) (string, error)
	// Cancel stops one of these tasks. It does nothing if the task has ended.
	Cancel(ctx context.Context, c *Call, task, reason string) (centurion.Task, error)
	// Complete ends the mission if everything is proven, also by the command check unless it is empty. Otherwise the error says what is
	// missing.
	Complete(ctx context.Context, c *Call, summary, check string) (string, error)
}

// Delegation is a request to start a task.
type Delegation struct {
	Agent       string
	Description string // three to eight words for the board
	Prompt      string // passed to the worker verbatim
	Item        string // the todo item to work on; may be empty
	Context     bool   // it gets the project's shared context
	Resume      string // an ended task, or its session, whose conversation is continued; may be empty

	Budget centurion.TaskBudget // its limits; zero fields: as configured
}

// Planner changes the plan for the tools that may do so. The orchestrator implements it; it checks roles and running tasks and records
// every change.
type Planner interface {
	// UpdateTodo applies one change completely or not at all and returns a summary of the new list. remarks is true if the summary has
	// remarks for the model.
	UpdateTodo(ctx context.Context, c *Call, u TodoUpdate) (list string, remarks bool, err error)
}

// TodoUpdate is one change of the plan. Its fields are applied in this order.
type TodoUpdate struct {
	Level   int          // 1, 2 or 3; 0 for no change
	Content string       // replaces the whole file; empty for no change
	Items   []ItemUpdate // changes of items by id
	Add     []NewItem    // appended to their section
}

// ItemUpdate changes one item.
type ItemUpdate struct {
	ID     string   `json:"id"`
	Status string   `json:"status,omitempty"` // open, done, cancelled or blocked
	Title  string   `json:"title,omitempty"`
	Note   string   `json:"note,omitempty"`  // added to the item
	After  []string `json:"after,omitempty"` // further items to wait for
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

// label names a task: T1 "parse the limits" (worker).
func label(t centurion.Task) string { return labelWith(t, "") }

// labelWith names a task, with the title of its item if it differs: T1 "the limits" (worker; item: Parse limits).
func labelWith(t centurion.Task, item string) string {
	who := t.Agent
	if item != "" && item != t.Title {
		who += "; item: " + centurion.Clip(item, 60)
	}
	return fmt.Sprintf("%s %q (%s)", t.Name(), t.Title, who)
}

// labelEarlier names a task whose item has a newer one by its number: w3 "the limits" (worker; earlier task of T1).
func labelEarlier(t centurion.Task) string {
	who := t.Agent + "; earlier task of " + t.Item
	t.Item = ""
	return fmt.Sprintf("%s %q (%s)", t.Name(), t.Title, who)
}

// state describes a task's status and what it waits for.
func state(t centurion.Task) string {
	s := string(t.Status)
	if before, ok := strings.CutPrefix(t.Reason, "after "); ok && t.Status == centurion.TaskWaiting {
		return "waiting for " + before
	}
	if t.Reason != "" {
		s += ": " + t.Reason
	}
	return s
}

// resumes describes which task's conversation a task continues, and so replaces; "" if none.
func resumes(t centurion.Task) string {
	if t.Resumes == "" {
		return ""
	}
	return fmt.Sprintf("It continues the earlier conversation; its name is %s from now on.", t.Name())
}

// Overlaps is the advice for models about files that several sessions change. With apart each session has a worktree of its own.
func Overlaps(apart bool) string {
	const scheduled = "Items whose `files:` overlap run one after the other. "
	if apart {
		return scheduled + "Nothing else is locked: each session has its own worktree, and the host merges them; a conflict comes back to the later one."
	}
	return scheduled + "All sessions share one directory: until an item ends, only its agent may change the files that it names or has written."
}
