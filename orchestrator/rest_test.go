package orchestrator

import (
	"errors"
	"testing"

	"centurion"
	"centurion/workspace"
)

// What may be done to a mission at rest only is not done while somebody works on it, and nobody begins to meanwhile.
func TestAtRest(t *testing.T) {
	t.Parallel()
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	h := New(Config{Workspace: ws})
	own, done := errors.New("its own"), 0
	do := func() error {
		done++
		if h.starting.TryLock() {
			t.Error("a mission could have been entered meanwhile")
			h.starting.Unlock()
		}
		return own
	}
	if err := h.AtRest("msn_1", do); !errors.Is(err, own) || done != 1 {
		t.Errorf("at rest: %v, done %d times", err, done)
	}
	h.missions["msn_1"] = &mission{}
	if err := h.AtRest("msn_1", do); centurion.KindOf(err) != centurion.KindConflict || done != 1 {
		t.Errorf("being worked on: %v, done %d times", err, done)
	}
	if err := h.AtRest("msn_2", do); !errors.Is(err, own) || done != 2 {
		t.Errorf("beside another: %v, done %d times", err, done)
	}
}
