package orchestrator

import (
	"context"
	"errors"

	"centurion"
	"centurion/event"
	"centurion/failpoint"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/state"
	"centurion/store"
)

// verdict is how a mission stops.
type verdict struct {
	status centurion.MissionStatus
	reason string
	hint   string
	asks   bool  // reason is a question of the mission's own agent, which a person can answer
	err    error // what stopped it; nil if nothing went wrong
}

// finish records the verdict.
func (m *mission) finish(v verdict) (centurion.Mission, error) {
	failpoint.Hit(failpoint.MissionVerdict)
	m.h.prompts.verdict(m.st.ID)
	var rec centurion.Mission
	var question store.Ask
	if v.asks {
		question = m.approvals.ClosingQuestion(v.reason)
		v.reason = state.OpenQuestions(question, nil)
	}
	if v.status != centurion.MissionCompleted {
		m.countDone()
	}
	// What happened is recorded even though the caller's context has ended.
	err := m.h.cfg.Store.Update(context.Background(), func(tx *store.Tx) (err error) {
		if rec, err = tx.Mission(m.st.ID); err != nil || !rec.Status.Alive() { // it could not even be begun
			return err
		}
		if state.HandedOver(m.st.Ctx) || v.err == centurion.ErrHandover {
			rec.ElapsedMS = m.st.Elapsed()
			return tx.PutMission(&rec)
		}
		if over := m.st.Exceeded(); over != nil {
			if _, err := tx.Append(centurion.Event{Type: centurion.EventBudgetExceeded, Mission: m.st.ID, Session: rec.Session,
				Data: event.Data(over)}); err != nil {
				return err
			}
		}
		if err := unheard(tx, rec, v); err != nil {
			return err
		}
		if v.asks {
			if err := state.PutAsk(tx, question); err != nil {
				return err
			}
		}
		rec, err = endMission(tx, m.st.ID, v, func(r *centurion.Mission) {
			r.ElapsedMS = m.st.Elapsed()
		})
		return err
	})
	return rec, err
}

// countDone keeps how many of the items that are done so far are proven; the final checks count them in a mission that is complete. Where the
// plan cannot be read the mission ends without: that is what it ends for, then.
func (m *mission) countDone() {
	if p, err := m.plan.Read(); err == nil && p.Doc != nil && m.root != nil {
		_ = m.judge.Count(context.Background(), p)
		_, _ = m.judge.KeepEvidence(context.Background(), m.h.cfg.Workspace.Dir())
	}
}

// endMission writes how a mission stops, after everything that its end brings with it: its event is the last.
func endMission(tx *store.Tx, id string, v verdict, change func(*centurion.Mission)) (centurion.Mission, error) {
	if err := state.CloseAsks(tx, id, v.status == centurion.MissionPaused || v.status == centurion.MissionBlocked); err != nil {
		return centurion.Mission{}, err
	}
	settle := state.RequeueTasks
	if v.status == centurion.MissionCancelled {
		settle = state.CancelTasks
	}
	if err := settle(tx, id, v.reason); err != nil {
		return centurion.Mission{}, err
	}
	reason := v.reason
	if v.hint != "" {
		reason += " (" + v.hint + ")"
	}
	return state.MoveMission(tx, id, v.status, reason, func(r *centurion.Mission) {
		r.Reserved = centurion.Reserved{}
		if change != nil {
			change(r)
		}
	})
}

// verdictOf says how a mission stops whose work ended with err.
func verdictOf(ctx context.Context, err error) verdict {
	if cause := state.CauseOf(ctx); cause != nil && cause != errStopped {
		err = cause
	}
	v := verdict{reason: err.Error(), hint: centurion.HintOf(err), err: err}
	if b, ok := errors.AsType[*state.Blocked](err); ok {
		return verdict{status: centurion.MissionBlocked, reason: b.Question}
	}
	switch centurion.KindOf(err) {
	case centurion.KindCancelled:
		v.status = centurion.MissionCancelled
	case centurion.KindInterrupted:
		v.status = centurion.MissionPaused
	case centurion.KindBudget, centurion.KindDisk:
		v.status = centurion.MissionPaused
	case centurion.KindPermission:
		v.status = centurion.MissionBlocked
	default:
		v.status = centurion.MissionFailed
		if _, asks := errors.AsType[*agent.AskError](err); asks {
			v.status = centurion.MissionBlocked
		}
	}
	return v
}

// summarize keeps the Commander's last words as the mission's summary.
func (l *mainLoop) summarize(ctx context.Context) error {
	text, err := l.m.st.LastText(ctx, l.m.root.ID())
	if err == nil {
		_, err = l.m.st.Record(ctx, func(rec *centurion.Mission) { rec.Summary = text })
	}
	return err
}
