package orchestrator

import (
	"context"

	"centurion"
	"centurion/orchestrator/commander"
	"centurion/orchestrator/state"
	"centurion/store"
)

// Goes on: the one agent of the profile assistant ends its run with each answer, and goes on with the same history when
// somebody writes to it. A completed mission of the profile mission stays ended, and so does what a person has cancelled.

// Continues reports whether a message to a mission's root begins it again although nobody works on it: the last run of the
// profile assistant is complete, or was when somebody wrote to it.
func Continues(m centurion.Mission) bool {
	return state.Alone(m.Options.Profile) && (m.Status == centurion.MissionCompleted ||
		m.Status == centurion.MissionPaused && m.Reason == commander.ErrSpoken.Msg)
}

// GoesOn reports whether a message to a mission's root whose answer is waited for lets it go on although nobody works on it: what
// [Continues], and a run of the profile assistant that was paused, as by a rewind, a stop or the end of its host.
func GoesOn(m centurion.Mission) bool {
	return Continues(m) || state.Alone(m.Options.Profile) && m.Status == centurion.MissionPaused
}

// continues reports whether a message makes a completed run one that can be resumed.
func continues(m centurion.Mission, to Posted) bool {
	return to.Task == "" && m.Status == centurion.MissionCompleted && Continues(m)
}

// wakeable makes a completed run one that can be resumed.
func wakeable(tx *store.Tx, m centurion.Mission) (centurion.Mission, error) {
	return state.MoveMission(tx, m.ID, centurion.MissionPaused, commander.ErrSpoken.Msg, func(r *centurion.Mission) {
		r.Stands(centurion.Mission{Status: r.Status, Reason: r.Reason, Reopened: r.Reopened})
	})
}

// spokenSince reports whether somebody has written to a run after it was recorded as complete, while its work was still
// being cleared away, and returns how its mission stands. It goes on at once then, and who waits for the answer gets it. Who
// writes after this look has to begin it, so that the mission is closed before.
func spokenSince(ctx context.Context, st *store.Store, rec centurion.Mission) (centurion.Mission, bool) {
	if !continues(rec, Posted{}) {
		return rec, false
	}
	now, err := st.Mission(context.WithoutCancel(ctx), rec.ID)
	if err != nil || now.Status != centurion.MissionPaused || !Continues(now) {
		return rec, false
	}
	return now, true
}

// Expect says that [Host.Run] is about to be called for a mission: from now until it returns there is somebody who answers
// what is written to it.
func (h *Host) Expect(mission string) { h.prompts.begin(mission) }

// Attended reports whether somebody works on a mission, or is about to.
func (h *Host) Attended(mission string) bool { return h.prompts.isOpen(mission) }
