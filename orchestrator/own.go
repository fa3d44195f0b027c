package orchestrator

import (
	"context"
	"fmt"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/merge"
	"centurion/orchestrator/state"
)

// landOwn is [merge.Queue.LandOwn] of the mission's own agent, once its conversation is open.
func (m *mission) landOwn(ctx context.Context) (*merge.Rejection, error) {
	if !m.iso.Isolated() || m.root == nil {
		return nil, nil
	}
	return m.queue.LandOwn(ctx, agent.AuthorOf(m.root))
}

// ownMerged is landOwn for a tool call of the mission's own agent: why the work cannot be merged is the error of the call.
func (m *mission) ownMerged(ctx context.Context, c *conversation) error {
	if c.Task != nil {
		return nil
	}
	back, err := m.landOwn(ctx)
	if err != nil || back == nil {
		return err
	}
	if err := m.queue.Refuse(ctx, agent.AuthorOf(c), back); err != nil {
		return err
	}
	return &centurion.Error{Kind: centurion.KindVerify, Msg: "your own changes cannot be merged yet: " + back.Text,
		Hint: "mend that first, then call it again"}
}

// ownTurnEnded merges what the mission's own agent has written when its turn has ended. again says that it was told why that
// cannot be and has to go on.
func (m *mission) ownTurnEnded(ctx context.Context) (again bool, err error) {
	back, err := m.landOwn(ctx)
	if err != nil || back == nil {
		if err == nil {
			m.ownReturns = 0
		}
		return false, err
	}
	if back.Cause == event.ReturnedConflict {
		m.ownReturns = 0 // see handBack
	}
	if m.ownReturns++; m.ownReturns > m.h.cfg.Returns {
		return false, &state.Blocked{Question: fmt.Sprintf("The %s's own changes could not be merged, %d times: %s. What should be done?",
			m.root.Agent.Name, m.ownReturns, back.Short)}
	}
	return true, m.queue.Return(ctx, agent.AuthorOf(m.root), back, m.ownReturns)
}
