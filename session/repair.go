package session

import (
	"context"
	"time"

	"centurion"
	"centurion/store"
)

// interrupted is the result of a call whose outcome a restart has lost.
const interrupted = "interrupted by a restart; its effects are unknown: look before you do it again"

// repair gives every message and call that a restart left half done an end: an answer that was still streaming is marked
// as broken, and a call without a result gets one. A call that only reads, or whose whole effect is a row in the store,
// could be run again without harm; the model decides that, because it is told.
func (s *Session) repair(ctx context.Context) error {
	now := time.Now().UnixMilli()
	var broken []*centurion.Message
	for i := range s.history {
		m := &s.history[i]
		if m.Role != centurion.RoleAssistant {
			continue
		}
		touched := false
		streaming := m.Finish == ""
		if streaming {
			m.Finish, m.Time.Completed, touched = centurion.FinishError, now, true
			m.Error = messageError(centurion.ErrShutdown, m.Model.Provider)
		}
		for j := range m.Parts {
			p := &m.Parts[j]
			if p.Type != centurion.PartTool || p.State == nil || p.State.Ended() {
				continue
			}
			st := &centurion.ToolState{Status: centurion.ToolError, Input: p.State.Input, Error: interrupted,
				Time: centurion.PartTime{Start: p.State.Time.Start, End: now}}
			if streaming {
				st.Input, st.Metadata = input([]byte(p.State.Raw)), map[string]any{unsent: true}
			}
			p.State, touched = st, true
		}
		if touched {
			broken = append(broken, m)
		}
	}
	if len(broken) == 0 {
		return nil
	}
	return s.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		for _, m := range broken {
			if err := putMessage(tx, m); err != nil {
				return err
			}
			if _, err := tx.Append(fact(&s.rec, centurion.EventMessageUpdated, map[string]any{
				"message": m.ID, "agent": m.Agent, "finish": m.Finish, "repaired": true})); err != nil {
				return err
			}
		}
		return nil
	})
}
