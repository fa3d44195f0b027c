// Package toolset fulfils the interfaces that the tools declare, for one conversation of a mission each: it hands out work, changes the plan,
// starts sub-agents and ends the mission.
package toolset

import (
	"context"
	"time"

	"centurion"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/approval"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/merge"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/review"
	"centurion/orchestrator/state"
	"centurion/orchestrator/task"
	"centurion/workspace"
)

// Set is what the tools of a mission's conversations work with.
type Set struct {
	Mission   *state.Mission
	Plan      *plan.Plan
	Judge     *review.Judge
	Approvals *approval.Approvals
	Brief     *brief.Writer
	Briefs    *brief.Desk
	Queue     *merge.Queue
	Sessions  *agent.Sessions
	Launcher  *task.Tasks // records, launches and cancels tasks
	Workspace *workspace.Workspace
	Finisher  Finisher

	Model        func(ref string) (agent.Model, error) // finds a model by its "provider/model" name
	TaskBudget   centurion.TaskBudget                  // of a task that is given none of its own
	Wait         time.Duration                         // how long a synchronous delegation waits before it goes on in the background
	SubAgentIdle time.Duration                         // how long nothing may come from a sub-agent, its waits apart, before it is stopped
	Poll         time.Duration                         // between two looks at a sub-agent that waits
}

// Finisher ends the mission.
type Finisher interface {
	// Missing runs the final checks and says, in words for the mission's own agent, what keeps the mission from being complete. The error is
	// a [state.Blocked] where only a person can help.
	Missing(ctx context.Context) ([]string, error)
	Claim()        // the mission is complete, unless more arrives before its turn ends
	Claimed() bool // whether it is
}

// ownMerged merges what the mission's own agent has written, if the call is its: why that cannot be is the error of the call.
func (s *Set) ownMerged(ctx context.Context, c *agent.Conversation) error {
	if c.Task != nil {
		return nil
	}
	back, err := s.Queue.LandOwn(ctx, agent.AuthorOf(c))
	if err != nil || back == nil {
		return err
	}
	if err := s.Queue.Refuse(ctx, agent.AuthorOf(c), back); err != nil {
		return err
	}
	return &centurion.Error{Kind: centurion.KindVerify, Msg: "your own changes cannot be merged yet: " + back.Text,
		Hint: "mend that first, then call it again"}
}
