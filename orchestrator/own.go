package orchestrator

import (
	"context"
	"fmt"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/merge"
	"centurion/orchestrator/state"
)

// landOwn merges what the mission's own agent has written so far: whoever it delegates to has to see it, and what it says is
// done has to be there. The mission's own checks guard the merge. It returns why the work stays where it is, or nil.
func (m *mission) landOwn(ctx context.Context) (*merge.Rejection, error) {
	if !m.iso.Isolated() || m.root == nil {
		return nil, nil
	}
	m.landing.Lock()
	defer m.landing.Unlock()
	checkout := m.root.Checkout()
	if checkout == nil {
		return nil, nil
	}
	rec, err := m.h.cfg.Store.Mission(ctx, m.st.ID)
	if err != nil {
		return nil, err
	}
	l := &merge.Work{Agent: m.root.agent.Name}
	message := fmt.Sprintf("%s\n\nMission: %s\nAgent: %s\n", centurion.Clip(state.FirstLines(rec.Goal, 1, 1000), 72), m.st.ID, m.root.agent.Name)
	if l.Commit, err = checkout.Commit(ctx, message); err != nil || l.Commit.ID == "" {
		return nil, err
	}
	if !mayChange(m.root) {
		return nil, nil // it stays on its branch
	}
	back, err := m.queue.LeftMarkers(ctx, l)
	if back != nil || err != nil {
		return back, err
	}
	if err := m.queue.Land(ctx, l); err != nil || l.Back != nil {
		return l.Back, err
	}
	return nil, moveOn(ctx, m.root, l.There)
}

// ownMerged is landOwn for a tool call of the mission's own agent: why the work cannot be merged is the error of the call.
func (m *mission) ownMerged(ctx context.Context, c *conversation) error {
	if c.task != nil {
		return nil
	}
	back, err := m.landOwn(ctx)
	if err != nil || back == nil {
		return err
	}
	if err = m.recordReturn(ctx, c, back, 0); err == nil {
		err = layBack(ctx, c, back)
	}
	if err != nil {
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
			m.root.agent.Name, m.ownReturns, back.Short)}
	}
	return true, m.returned(ctx, m.root, back, m.ownReturns)
}
