package orchestrator

import (
	"context"
	"testing"
	"time"

	"centurion/sandbox"
)

// realRig has real commands and the real clock.
func realRig(t *testing.T, cast map[string]script) *rig {
	t.Helper()
	t.Parallel()
	r := newRig(t, cast)
	ctx, cancel := context.WithTimeout(r.ctx, time.Minute)
	t.Cleanup(cancel)
	r.ctx = ctx
	r.cfg.Runner = &sandbox.Runner{Grace: 100 * time.Millisecond, Slots: 1}
	r.restart()
	return r
}
