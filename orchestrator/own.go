package orchestrator

import (
	"context"
	"fmt"

	"centurion/event"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/state"
)

// ownTurnEnded merges what the mission's own agent has written when its turn has ended. again says that it was told why that
// cannot be and has to go on.
func (m *mission) ownTurnEnded(ctx context.Context) (again bool, err error) {
	back, err := m.queue.LandOwn(ctx, agent.AuthorOf(m.root))
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
