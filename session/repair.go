package session

import (
	"context"
	"slices"
	"time"

	"centurion"
	"centurion/store"
)

// interrupted is the result of a call whose outcome was lost in a restart.
const interrupted = "interrupted by a restart; its effects are unknown: look before you do it again"

// repair completes what a restart left unfinished: a streaming answer is marked as failed, and a call with unknown effects gets a
// result that says so. finishCalls handles calls that only read, are idempotent, or had not begun.
func (s *Session) repair(ctx context.Context) error {
	now := time.Now().UnixMilli()
	var broken []*centurion.Message
	var lost []centurion.Part
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
			// A call whose stored input has a placeholder in place of a key would now do something else.
			if p.Type != centurion.PartTool || p.State == nil || p.State.Ended() || !streaming && s.cfg.Call.Keys.Mark(string(p.State.Input)) == "" && (left(m, *p) || s.repeatable(*p) || s.unbegun(ctx, *p)) {
				continue
			}
			st := &centurion.ToolState{Status: centurion.ToolError, Input: p.State.Input, Error: interrupted,
				Time: centurion.PartTime{Start: p.State.Time.Start, End: now}}
			if streaming && p.State.Status == centurion.ToolPending {
				st.Input, st.Metadata = input([]byte(p.State.Raw)), map[string]any{unsent: true}
			}
			p.State, touched = st, true
			if !streaming {
				lost = append(lost, *p)
			}
		}
		if touched {
			broken = append(broken, m)
		}
	}
	if len(broken) == 0 {
		return nil
	}
	return s.update(ctx, func(tx *store.Tx) error {
		for _, m := range broken {
			if err := putMessage(tx, m); err != nil {
				return err
			}
			if _, err := tx.Append(fact(&s.rec, centurion.EventMessageUpdated, map[string]any{
				"message": m.ID, "agent": m.Agent, "finish": m.Finish, "repaired": true})); err != nil {
				return err
			}
		}
		for _, p := range lost {
			if err := s.tellResult(tx, p); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Session) unbegun(ctx context.Context, p centurion.Part) bool {
	return s.cfg.Unbegun != nil && s.cfg.Unbegun(ctx, p)
}

// repeatable reports whether a call without a result may simply run again.
func (s *Session) repeatable(p centurion.Part) bool {
	_, e, err := s.effectOf(p.Tool, p.State.Input)
	return err == nil && (e.ReadOnly || e.Once)
}

// finishCalls runs repeatable calls of the last answer that a restart left without a result.
func (s *Session) finishCalls(ctx context.Context) (ran, error) {
	for i := len(s.history) - 1; i >= 0; i-- {
		m := &s.history[i]
		if m.Role != centurion.RoleAssistant {
			continue
		}
		todo := calls{msg: m}
		for j, p := range m.Parts {
			if p.Type == centurion.PartTool && p.State != nil && !p.State.Ended() {
				todo.parts, todo.args = append(todo.parts, j), append(todo.args, p.State.Input)
			}
		}
		if len(todo.parts) == 0 {
			return ran{}, nil
		}
		if err := s.takeUp(ctx, todo); err != nil {
			return ran{}, err
		}
		return s.runCalls(ctx, todo)
	}
	return ran{}, nil
}

// left reports whether a call of an accepted answer had not begun when its session stopped.
func left(m *centurion.Message, p centurion.Part) bool {
	return accepted(m) && p.State.Status == centurion.ToolPending
}

// takeUp records that such calls begin: from then on it is unknown whether they had run.
func (s *Session) takeUp(ctx context.Context, c calls) error {
	var begun []centurion.Part
	for n := range c.parts {
		if p := c.part(n); left(c.msg, *p) {
			st := *p.State
			st.Status, st.Time = centurion.ToolRunning, centurion.PartTime{Start: time.Now().UnixMilli()}
			own := *p
			own.State = &st
			begun = append(begun, own)
		}
	}
	if len(begun) == 0 {
		return nil
	}
	err := s.update(ctx, func(tx *store.Tx) error {
		for i := range begun {
			if err := tx.PutPart(&begun[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, p := range begun {
		i := slices.IndexFunc(c.msg.Parts, func(old centurion.Part) bool { return old.ID == p.ID })
		c.msg.Parts[i].State = p.State
	}
	return nil
}
