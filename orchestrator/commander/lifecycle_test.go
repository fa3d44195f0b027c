package commander

import (
	"context"
	"errors"
	"testing"

	"centurion"
	"centurion/orchestrator/state"
)

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
