package commander

import (
	"context"
	"errors"
	"testing"

	"centurion"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/store/storetest"
)

// A mission that stops has nothing reserved any more, has its reason with what helps, and leaves its tasks to the next host, unless it is over.
func TestEndMission(t *testing.T) {
	t.Parallel()
	for to, task := range map[centurion.MissionStatus]centurion.TaskStatus{centurion.MissionPaused: centurion.TaskQueued, centurion.MissionBlocked: centurion.TaskQueued, centurion.MissionCancelled: centurion.TaskCancelled} {
		st := storetest.Open(t)
		var m centurion.Mission
		err := st.Update(t.Context(), func(tx *store.Tx) (err error) {
			err = errors.Join(tx.PutMission(&centurion.Mission{ID: "msn_1", Session: "ses_0", Status: centurion.MissionRunning, Reserved: centurion.Reserved{USD: 1, Tasks: 1}}),
				tx.PutTask(&centurion.Task{ID: "tsk_1", Mission: "msn_1", Status: centurion.TaskRunning}))
			if err == nil {
				m, err = EndMission(tx, "msn_1", Verdict{Status: to, Reason: "why", Hint: "do that"}, func(m *centurion.Mission) { m.ElapsedMS = 7 })
			}
			return err
		})
		left, terr := st.Task(t.Context(), "tsk_1")
		if err != nil || terr != nil || m.Status != to || m.Reason != "why (do that)" || m.Reserved != (centurion.Reserved{}) || m.ElapsedMS != 7 || left.Status != task {
			t.Errorf("%s: %+v, its task is %s; %v, %v", to, m, left.Status, err, terr)
		}
	}
}

// Why the work of a mission ended decides how the mission stops; the cause of its context counts more than the error, but for the host's own.
func TestVerdictOf(t *testing.T) {
	kind := func(k centurion.Kind) error { return &centurion.Error{Kind: k, Msg: "why"} }
	for name, test := range map[string]struct {
		cause, err error
		want       centurion.MissionStatus
	}{
		"cancelled":     {err: kind(centurion.KindCancelled), want: centurion.MissionCancelled},
		"paused":        {err: kind(centurion.KindInterrupted), want: centurion.MissionPaused},
		"budget":        {err: kind(centurion.KindBudget), want: centurion.MissionPaused},
		"full disk":     {err: kind(centurion.KindDisk), want: centurion.MissionPaused},
		"not permitted": {err: kind(centurion.KindPermission), want: centurion.MissionBlocked},
		"a question":    {err: &state.Blocked{Question: "which?"}, want: centurion.MissionBlocked},
		"anything else": {err: errors.New("x"), want: centurion.MissionFailed},
		"cause first":   {cause: kind(centurion.KindCancelled), err: errors.New("x"), want: centurion.MissionCancelled},
		"the end's own": {cause: ErrStopped, err: errors.New("x"), want: centurion.MissionFailed},
	} {
		ctx, end := context.WithCancelCause(t.Context())
		if test.cause != nil {
			end(test.cause)
		}
		if got := VerdictOf(ctx, test.err); got.Status != test.want {
			t.Errorf("%s: %s, want %s", name, got.Status, test.want)
		}
		end(nil)
	}
}
