package commander

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"centurion"
	"centurion/event"
	"centurion/failpoint"
	"centurion/guard"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/mail"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/text"
)

// Begin moves the mission to a living state and says, in the history, why it continues if it had stopped.
func (l *Loop) Begin(ctx context.Context) (centurion.Mission, error) {
	var rec centurion.Mission
	err := l.Mission.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if rec, err = tx.Mission(l.Mission.ID); err != nil {
			return err
		}
		rec.Runs++
		rec.Confinement = l.Confined
		if rec.Status.Alive() {
			return l.beginAgain(tx, &rec)
		}
		l.resumed = true
		to, runs := centurion.MissionRunning, rec.Runs
		if !rec.HadItems && !state.Alone(l.Mission.Profile) && rec.Status != centurion.MissionFailed {
			to = centurion.MissionPlanning
		}
		rec, err = state.MoveMission(tx, l.Mission.ID, to, "", func(r *centurion.Mission) {
			r.Confinement = l.Confined
			r.Reopened, r.Runs, r.Reverted, r.Was = 0, runs, nil, nil // the plan and a message to its agent say what was reverted
		})
		return err
	})
	return rec, err
}

// beginAgain continues a mission whose host has died or handed it over. Calls that waited for a person ask again; a question stays
// open, and the call that asked finds it.
func (l *Loop) beginAgain(tx *store.Tx, rec *centurion.Mission) error {
	if err := tx.PutMission(rec); err != nil || rec.Runs == 1 {
		return err
	}
	if err := state.CloseAsks(tx, l.Mission.ID, true); err != nil {
		return err
	}
	d := state.Living(*rec)
	d.Reason = cmp.Or(l.Again, "its host went away")
	_, err := tx.Append(centurion.Event{Type: centurion.EventMissionResumed, Mission: l.Mission.ID, Session: rec.Session, Data: event.Data(d)})
	return err
}

// A crashing part only takes down what depends on it. A crashed tool call is answered with its crash. A task's turn is retried as after
// any failure, or fails at once if its parent waits for it. The Commander's loop restarts after its history is reloaded and repaired;
// repeated crashes end its mission, and no other.

const (
	maxRestarts   = 3               // of a Commander's loop within restartWindow
	restartWindow = 5 * time.Second // a loop that has survived this long since its last crashes has recovered
)

// Supervise drives the mission's loop and restarts it when it crashes.
func (l *Loop) Supervise(ctx context.Context) (v Verdict, err error) {
	var crashes []time.Time
	for {
		err = guard.Call("mission "+l.Mission.ID, func() (err error) {
			v, err = l.run(ctx)
			return err
		})
		if !state.Crashed(err) || ctx.Err() != nil {
			return v, err
		}
		if err := l.Root.Load(ctx); err != nil { // its memory may be inconsistent
			return v, err
		}
		now := time.Now()
		crashes = append(crashes, now)
		for now.Sub(crashes[0]) > restartWindow {
			crashes = crashes[1:]
		}
		if len(crashes) > maxRestarts {
			return Verdict{}, &centurion.Error{Kind: centurion.KindCrashed, Err: err,
				Msg:  fmt.Sprintf("it crashed %s within %s", centurion.Count(len(crashes), "time"), text.Took(restartWindow)),
				Hint: "this is a fault of the program; what is done is kept: centurion resume " + l.Mission.ID}
		}
		l.claimed.Store(false)
		l.resumed, l.restarted = false, true
		why := fmt.Sprintf("begun anew after a crash, %d of %d: %s", len(crashes), maxRestarts, centurion.Clip(err.Error(), 200))
		if err := l.Mission.Tell(ctx, func(d *event.MissionData) { d.Reason = why }); err != nil {
			return v, err
		}
	}
}

// Verdict is how a mission stops.
type Verdict struct {
	Status centurion.MissionStatus
	Reason string
	Hint   string
	Asks   bool  // Reason is a question of the mission's own agent, for a person to answer
	Err    error // the cause; nil if nothing went wrong
}

// Finish records the verdict.
func (l *Loop) Finish(v Verdict) (centurion.Mission, error) {
	failpoint.Hit(failpoint.MissionVerdict)
	l.Ending()
	var rec centurion.Mission
	var question store.Ask
	if v.Asks {
		question = l.Approvals.ClosingQuestion(v.Reason)
		v.Reason = state.OpenQuestions(question, nil)
	}
	if v.Status != centurion.MissionCompleted {
		l.countDone()
	}
	// The outcome is recorded even though the caller's context has ended.
	err := l.Mission.Store.Update(context.Background(), func(tx *store.Tx) (err error) {
		if rec, err = tx.Mission(l.Mission.ID); err != nil || !rec.Status.Alive() { // it could not even be started
			return err
		}
		if state.HandedOver(l.Mission.Ctx) || v.Err == centurion.ErrHandover {
			rec.ElapsedMS = l.Mission.Elapsed()
			return tx.PutMission(&rec)
		}
		if over := l.Mission.Exceeded(); over != nil {
			if _, err := tx.Append(centurion.Event{Type: centurion.EventBudgetExceeded, Mission: l.Mission.ID, Session: rec.Session,
				Data: event.Data(over)}); err != nil {
				return err
			}
		}
		if v.Status == centurion.MissionCompleted {
			if err := mail.AllRead(tx, rec.Session); err != nil {
				return err
			}
		}
		if v.Asks {
			if err := state.PutAsk(tx, question); err != nil {
				return err
			}
		}
		rec, err = EndMission(tx, l.Mission.ID, v, func(r *centurion.Mission) { r.ElapsedMS = l.Mission.Elapsed() })
		return err
	})
	return rec, err
}

// countDone records how many done items are proven so far; in a complete mission the final checks count them. An unreadable plan is
// skipped: it is then the reason for the end.
func (l *Loop) countDone() {
	if p, err := l.Plan.Read(); err == nil && p.Doc != nil && l.Root != nil {
		_ = l.Judge.Count(context.Background(), p)
		_, _ = l.Judge.KeepEvidence(context.Background(), l.Workspace.Dir())
	}
}

// EndMission records how a mission stops, after everything its end entails: its event is the last.
func EndMission(tx *store.Tx, id string, v Verdict, change func(*centurion.Mission)) (centurion.Mission, error) {
	if err := state.CloseAsks(tx, id, v.Status == centurion.MissionPaused || v.Status == centurion.MissionBlocked); err != nil {
		return centurion.Mission{}, err
	}
	settle := state.RequeueTasks
	if v.Status == centurion.MissionCancelled {
		settle = state.CancelTasks
	}
	if err := settle(tx, id, v.Reason); err != nil {
		return centurion.Mission{}, err
	}
	reason := v.Reason
	if v.Hint != "" {
		reason += " (" + v.Hint + ")"
	}
	return state.MoveMission(tx, id, v.Status, reason, func(r *centurion.Mission) {
		r.Reserved = centurion.Reserved{}
		if change != nil {
			change(r)
		}
	})
}

// VerdictOf returns the verdict of a mission whose work ended with err.
func VerdictOf(ctx context.Context, err error) Verdict {
	if cause := state.CauseOf(ctx); cause != nil && cause != ErrStopped {
		err = cause
	}
	v := Verdict{Reason: err.Error(), Hint: centurion.HintOf(err), Err: err}
	if b, ok := errors.AsType[*state.Blocked](err); ok {
		return Verdict{Status: centurion.MissionBlocked, Reason: b.Question}
	}
	switch centurion.KindOf(err) {
	case centurion.KindCancelled:
		v.Status = centurion.MissionCancelled
	case centurion.KindInterrupted, centurion.KindBudget, centurion.KindDisk:
		v.Status = centurion.MissionPaused
	case centurion.KindPermission:
		v.Status = centurion.MissionBlocked
	default:
		v.Status = centurion.MissionFailed
		if _, asks := errors.AsType[*agent.AskError](err); asks {
			v.Status = centurion.MissionBlocked
		}
	}
	return v
}

// ErrStopped ends the rest of a mission that has its verdict.
var ErrStopped = &centurion.Error{Kind: centurion.KindInterrupted, Msg: "the mission has stopped"}
