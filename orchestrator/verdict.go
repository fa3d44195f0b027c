package orchestrator

import (
	"context"
	"errors"

	"centurion"
	"centurion/event"
	"centurion/failpoint"
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
	m.h.prompts.verdict(m.id)
	var rec centurion.Mission
	var question store.Ask
	if v.asks {
		question = m.closingQuestion(v.reason)
		v.reason = openQuestions(question, nil)
	}
	if v.status != centurion.MissionCompleted {
		m.countDone()
	}
	// What happened is recorded even though the caller's context has ended.
	err := m.h.cfg.Store.Update(context.Background(), func(tx *store.Tx) (err error) {
		if rec, err = tx.Mission(m.id); err != nil || !rec.Status.Alive() { // it could not even be begun
			return err
		}
		if handedOver(m.ctx) || v.err == centurion.ErrHandover {
			rec.ElapsedMS = m.elapsed()
			return tx.PutMission(&rec)
		}
		if over := m.exceeded(); over != nil {
			if _, err := tx.Append(centurion.Event{Type: centurion.EventBudgetExceeded, Mission: m.id, Session: rec.Session,
				Data: event.Data(over)}); err != nil {
				return err
			}
		}
		if err := unheard(tx, rec, v); err != nil {
			return err
		}
		if v.asks {
			if err := putAsk(tx, question); err != nil {
				return err
			}
		}
		rec, err = endMission(tx, m.id, v, func(r *centurion.Mission) {
			r.ElapsedMS = m.elapsed()
		})
		return err
	})
	return rec, err
}

// countDone keeps how many of the items that are done so far are proven; the final checks count them in a mission that is complete. Where the
// plan cannot be read the mission ends without: that is what it ends for, then.
func (m *mission) countDone() {
	if p, err := m.plan(); err == nil && p.doc != nil && m.root != nil {
		_ = m.countProof(context.Background(), p)
		_, _ = m.keepEvidence(context.Background())
	}
}

// handedOver reports whether the work was ended so that another host goes on with it.
func handedOver(ctx context.Context) bool { return context.Cause(ctx) == centurion.ErrHandover }

// endMission writes how a mission stops, after everything that its end brings with it: its event is the last.
func endMission(tx *store.Tx, id string, v verdict, change func(*centurion.Mission)) (centurion.Mission, error) {
	if err := closeAsks(tx, id, v.status == centurion.MissionPaused || v.status == centurion.MissionBlocked); err != nil {
		return centurion.Mission{}, err
	}
	settle := requeueTasks
	if v.status == centurion.MissionCancelled {
		settle = cancelTasks
	}
	if err := settle(tx, id, v.reason); err != nil {
		return centurion.Mission{}, err
	}
	reason := v.reason
	if v.hint != "" {
		reason += " (" + v.hint + ")"
	}
	return moveMission(tx, id, v.status, reason, func(r *centurion.Mission) {
		r.Reserved = centurion.Reserved{}
		if change != nil {
			change(r)
		}
	})
}

// verdictOf says how a mission stops whose work ended with err.
func verdictOf(ctx context.Context, err error) verdict {
	if cause := causeOf(ctx); cause != nil && cause != errStopped {
		err = cause
	}
	v := verdict{reason: err.Error(), hint: centurion.HintOf(err), err: err}
	if b, ok := errors.AsType[*errBlocked](err); ok {
		return verdict{status: centurion.MissionBlocked, reason: b.question}
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
		if _, asks := errors.AsType[*errAsk](err); asks {
			v.status = centurion.MissionBlocked
		}
	}
	return v
}
