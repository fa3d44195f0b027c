package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"centurion"
	"centurion/text"
)

// syncWait is the default wait of a call for a task that is not in the background. The orchestrator itself ends the wait after that
// time, reacquiring the slot; syncGrace is for an orchestrator that does not.
const (
	syncWait  = 5 * time.Minute
	syncGrace = 10 * time.Second
)

type delegateTaskInput struct {
	Agent       string `json:"agent"`
	Description string `json:"description"`
	Prompt      string `json:"prompt"`
	Item        string `json:"item"`
	Background  *bool  `json:"background"`
	Context     bool   `json:"context"`
	Resume      string `json:"resume"`

	Budget centurion.TaskBudget `json:"budget"`
}

func delegateTaskTool() Tool {
	return define("delegate_task", object(
		need("agent", nonEmpty("The agent that does it")),
		need("description", nonEmpty("A title of three to eight words, for the board")),
		need("prompt", nonEmpty("Everything the agent must know; it sees nothing of your conversation")),
		may("item", str("The todo item it works on, such as T1")),
		may("background", boolean("Continue at once and be notified when it ends (default true); false waits for its end, some minutes at most")),
		may("context", boolean("Add the text of .opencode/context.md at its start (default false)")),
		may("resume", str("A task that has ended (T2, w7): its agent continues the same conversation with this prompt")),
		hidden("budget", taskBudget()), // configured with task_budget; accepted from models, too
	), func(delegateTaskInput) Effect { return Effect{Hosted: true, Once: true, Alike: "delegate_task"} }, runDelegateTask)
}

// DelegationTo returns the schema of delegate_task for a model that may call these agents.
func DelegationTo(agents []string) json.RawMessage {
	s := offered(delegateTaskTool().Schema())
	s.Properties["agent"] = oneOf("The agent that does it", agents...)
	raw, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return raw
}

func runDelegateTask(ctx context.Context, c *Call, in delegateTaskInput) (Result, error) {
	if c.Delegator == nil {
		return noDelegator("delegate_task", "do it yourself, or say in your answer what is left to do")
	}
	t, err := c.Delegator.Delegate(ctx, c, Delegation{Agent: strings.TrimSpace(in.Agent), Description: strings.TrimSpace(in.Description),
		Prompt: in.Prompt, Item: strings.TrimSpace(in.Item), Context: in.Context, Resume: strings.TrimSpace(in.Resume), Budget: in.Budget})
	if err != nil {
		return Result{}, err
	}
	if c.Begun != nil {
		c.Begun()
	}
	if t.Race != nil {
		r := startedRace(t)
		r.Metadata["background"] = true
		return r, nil
	}
	if in.Background == nil || *in.Background {
		r := started(t, fmt.Sprintf("%s is %s.", labelWith(t, c.Delegator.ItemTitle(t.Item)), state(t)))
		r.Metadata["background"] = true
		return r, nil
	}
	c.Progress("waiting for " + t.Name())
	limit := cmp.Or(c.Await, syncWait)
	wait, stop := context.WithTimeoutCause(ctx, limit+syncGrace, errSyncWait)
	defer stop()
	done, err := c.Delegator.Await(wait, c, t.ID)
	switch {
	case err == nil && done.Status.Ended():
		r, err := finished(ctx, c, done)
		if name := resumes(done); name != "" {
			r.Output += "\n" + name
		}
		return r, err
	case err == nil, ctx.Err() == nil && context.Cause(wait) == errSyncWait:
		return started(t, fmt.Sprintf("%s has not ended after %s and continues in the background.", labelWith(t, c.Delegator.ItemTitle(t.Item)), text.Took(limit))), nil
	}
	return Result{}, err
}

// taskBudget is the schema of a task's own budget.
func taskBudget() *jsonschema.Schema {
	number := func(doc string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "number", Description: doc, Minimum: new(0.0)}
	}
	s := object(may("cost", number("USD")), may("tokens", integer("", 0, 0)), may("rounds", integer("Requests to the model", 0, 0)),
		may("tool_calls", integer("", 0, 0)), may("minutes", number("At work")))
	s.Description = "What the task may spend at most; it fails when that is used up. Leave it out unless the work must stay small"
	return s
}

var errSyncWait = errors.New("the wait for the task is over")

// started is the result for a running task.
func started(t centurion.Task, what string) Result {
	if r := resumes(t); r != "" {
		what += " " + r
	}
	return Result{Output: what + " You will be told when it ends; end your turn when nothing else is left to do.",
		Title: t.Title, Metadata: taskMeta(t)}
}

// startedRace is the result for the tries of an item.
func startedRace(t centurion.Task) Result {
	n := len(t.Race.Agents)
	tries := make([]string, n)
	for i, agent := range t.Race.Agents {
		tries[i] = fmt.Sprintf("%s/%d (%s)", t.Item, i+1, agent)
	}
	return Result{Output: fmt.Sprintf("%s %q is tried by %s, each in its own worktree: about %s the cost of one. The first work that its check proves "+
		"is integrated, and the other tries end. You will be told once, when it is decided; end your turn when nothing else is left to do.",
		t.Item, t.Title, strings.Join(tries, ", "), centurion.Count(n, "time")), Title: t.Title, Metadata: taskMeta(t)}
}

// finished is the result for an ended task; it consumes the task's result.
func finished(ctx context.Context, c *Call, t centurion.Task) (Result, error) {
	text, err := c.Delegator.Report(ctx, t)
	return Result{Output: text, Title: t.Title, Metadata: taskMeta(t), Consumes: []string{t.ID}}, err
}

func taskMeta(t centurion.Task) map[string]any {
	return map[string]any{"task": t.ID, "agent": t.Agent, "status": string(t.Status), "sessionId": t.Session}
}

func noDelegator(op, hint string) (Result, error) {
	return denied(op, "your role does not delegate", hint)
}
