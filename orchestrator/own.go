package orchestrator

import (
	"context"
	"fmt"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/state"
	"centurion/store"
)

// landOwn merges what the mission's own agent has written so far: whoever it delegates to has to see it, and what it says is
// done has to be there. The mission's own checks guard the merge. It returns why the work stays where it is, or nil.
func (m *mission) landOwn(ctx context.Context) (*rejection, error) {
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
	l := &landing{agent: m.root.agent.Name}
	message := fmt.Sprintf("%s\n\nMission: %s\nAgent: %s\n", centurion.Clip(state.FirstLines(rec.Goal, 1, 1000), 72), m.st.ID, m.root.agent.Name)
	if l.commit, err = checkout.Commit(ctx, message); err != nil || l.commit.ID == "" {
		return nil, err
	}
	if !mayChange(m.root) {
		return nil, nil // it stays on its branch
	}
	back, err := m.beforeLanding(ctx, l)
	if back != nil || err != nil {
		return back, err
	}
	if err := m.land(ctx, l); err != nil || l.back != nil {
		return l.back, err
	}
	if l.landed == nil {
		if l.there != "" {
			return nil, m.moveOn(ctx, m.root, checkout, l.there)
		}
		return nil, nil
	}
	return nil, m.moveOn(ctx, m.root, checkout, l.landed.Commit)
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
	if err := m.ownReturned(ctx, c, back, 0); err != nil {
		return err
	}
	return &centurion.Error{Kind: centurion.KindVerify, Msg: "your own changes cannot be merged yet: " + back.text,
		Hint: "mend that first, then call it again"}
}

// ownReturned records that work of the mission's own agent goes back to it, for the n-th time in a row, and lays it back.
func (m *mission) ownReturned(ctx context.Context, c *conversation, back *rejection, n int) error {
	err := m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error { return tellReturn(tx, m.st.ID, "", c.id(), back, n) })
	if err != nil {
		return err
	}
	return m.layBack(ctx, c, back)
}

// layBack lays what others have done since into a checkout, together with its work.
func (m *mission) layBack(ctx context.Context, c *conversation, back *rejection) error {
	checkout := c.Checkout()
	if checkout == nil || back.tree == "" {
		return nil
	}
	if err := checkout.Lay(ctx, back.tree, back.onto); err != nil {
		return err
	}
	at := checkout.Where()
	back.text += "\nThe checkout holds your work on top of the newest state of the mission now: read files again before you edit them."
	return c.Where.Record(ctx, &at)
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
	if back.cause == event.ReturnedConflict {
		m.ownReturns = 0 // see handBack
	}
	if m.ownReturns++; m.ownReturns > m.h.cfg.Returns {
		return false, &state.Blocked{Question: fmt.Sprintf("The %s's own changes could not be merged, %d times: %s. What should be done?",
			m.root.agent.Name, m.ownReturns, back.short)}
	}
	if err := m.ownReturned(ctx, m.root, back, m.ownReturns); err != nil {
		return false, err
	}
	return true, m.root.say(ctx, centurion.OriginHost, back.text)
}
