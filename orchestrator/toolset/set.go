// Package toolset implements interfaces that package tools declares, for one conversation of a mission each: delegation, the plan,
// sub-agents and the end of the mission.
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

// Set creates the implementations for the conversations of one mission.
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
	TaskBudget   centurion.TaskBudget                  // the default of tasks
	Wait         time.Duration                         // the longest wait of a synchronous delegation
	SubAgentIdle time.Duration                         // a sub-agent that is silent for longer is stopped; its waits do not count
	Poll         time.Duration                         // the time between two looks at a sub-agent that waits
}

// Finisher ends the mission.
type Finisher interface {
	// Missing runs the final checks. It lists, for the mission's own agent, why the mission is not complete. The error is a [state.Blocked]
	// if only a person can help.
	Missing(ctx context.Context) ([]string, error)
	Claim()        // the mission is complete, unless a message arrives before the turn ends
	Claimed() bool // reports whether it is
}

// ownMerged merges the work of the mission's own agent, before a call of it that needs the merged state. The error is for the model.
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
		Hint: "fix that first, then call it again"}
}
