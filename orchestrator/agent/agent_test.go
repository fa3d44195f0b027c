package agent

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/state"
	"centurion/store/storetest"
	"centurion/tools"
)

// sessionsOf is the sessions of a mission that nobody works on.
func sessionsOf(t *testing.T) *Sessions {
	ctx, end := context.WithCancelCause(t.Context())
	return New(state.New(ctx, end, nil, centurion.Mission{ID: "msn_1"}, nil), nil, nil, nil, nil, Config{}, Above{})
}

// IKI-26: who could not load a session has not kept it.
func TestDamagedSessionIsNotKept(t *testing.T) {
	m := sessionsOf(t)
	st := storetest.Open(t)
	damaged := &Conversation{m: m, id: "ses_y"}
	damaged.cfg.Store = st
	if err := m.Open(t.Context(), damaged, centurion.Session{}); centurion.KindOf(err) != centurion.KindNotFound {
		t.Error(err)
	}
	if err := m.drive(&Conversation{m: m, id: "ses_y"}); err != nil {
		t.Errorf("a session that could not be loaded is kept: %v", err)
	}
}

// A new session begins with the first model of the chain that is there and accepts requests now.
func TestFreeModelIsOpen(t *testing.T) {
	closed := map[string]time.Duration{"p/own": time.Hour, "p/busy": time.Second, "p/free": 0, "p/last": 0}
	m := Models{Fallback: func(_, _ string) []string { return []string{"p/gone", "p/busy", "p/free", "p/last"} },
		Model: func(name string) (Model, error) {
			left, ok := closed[name]
			if !ok {
				return Model{}, errors.New("it is not there")
			}
			_, id, _ := strings.Cut(name, "/")
			return Model{Ref: centurion.ModelRef{Provider: "p", ID: id}, Closed: func() time.Duration { return left }}, nil
		}}
	if ref, why := m.Free("worker", centurion.ModelRef{Provider: "p", ID: "own"}); ref.String() != "p/free" || !strings.Contains(why, "using p/free") {
		t.Errorf("it begins with %s: %s", ref, why)
	}
}

// LOOP-1: of those who find at the same moment that a session's conversation was superseded, one gets the session.
func TestOneConversationAfterAnother(t *testing.T) {
	t.Parallel()
	const at = 8
	for round := range 200 {
		m := sessionsOf(t)
		old := &Conversation{m: m, id: "ses_x", Task: &state.Run{ID: "tsk_1", Done: make(chan struct{})}, Attempt: 1}
		if err := m.drive(old); err != nil {
			t.Fatal(err)
		}
		m.st.Fences.Raise("tsk_1", 2)
		errs := make([]error, at)
		begun := make(chan struct{}, at)
		var g guard.Group
		m.st.Fences.Lock() // all of them have looked who has it, before any of them knows that it is stale
		for i := range errs {
			g.Go("drive", func() error {
				begun <- struct{}{}
				errs[i] = m.drive(&Conversation{m: m, id: "ses_x"})
				return nil
			})
		}
		for range at {
			<-begun
		}
		runtime.Gosched()
		m.st.Fences.Unlock()
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, err := range errs {
			if err == nil {
				got++
			} else if centurion.KindOf(err) != centurion.KindConflict {
				t.Error(err)
			}
		}
		if got != 1 {
			t.Fatalf("round %d: %d of %d have the session", round, got, at)
		}
	}
}

// OPAL-41, LOOP-42: the first who stops a turn says why; who stops a conversation between two turns stops the next one.
func TestFirstAbortCounts(t *testing.T) {
	var l Live
	turn, over := l.begin(t.Context())
	ended := l.Abort(Aborted("first"))
	if l.Abort(Aborted("second")) != ended || ended == nil {
		t.Error("the second is not told of the same end")
	}
	if got := context.Cause(turn); got == nil || got.Error() != "stopped by the person: first" || l.stop.Why() != "first" {
		t.Errorf("it ended with %v, and %q is recorded", got, l.stop.Why())
	}
	over()
	if !isClosed(ended) {
		t.Error("its end is not told")
	}

	l = Live{}
	if l.Abort(Aborted("early")) != nil {
		t.Error("an end is told of a turn that was not there")
	}
	turn, over = l.begin(t.Context())
	defer over()
	if got := context.Cause(turn); got == nil || got.Error() != "stopped by the person: early" {
		t.Errorf("the next turn has begun: %v", got)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A conversation waits until each of its waits is over, also when one of them is ended twice.
func TestWaitsAreCounted(t *testing.T) {
	t.Parallel()
	var l Live
	first, second := l.Wait(WaitSlot), l.Wait(WaitSlot)
	first()
	first()
	if w := l.Standing().Waits; w != WaitSlot {
		t.Errorf("with one left it waits for %q", w)
	}
	second()
	if w := l.Standing().Waits; w != "" {
		t.Errorf("with none left it waits for %q", w)
	}
}

// A tool call runs until it is done, the oldest first; within it nothing can be stopped that it would wait for.
func TestRunningCalls(t *testing.T) {
	t.Parallel()
	var l Live
	running := func() (ids []string) {
		for _, c := range l.Running() {
			ids = append(ids, c.ID)
		}
		return ids
	}
	in, first := l.Call(t.Context(), "bash", "call_2", "msg_1")
	_, second := l.Call(t.Context(), "read", "call_3", "msg_2")
	if got := running(); !slices.Equal(got, []string{"call_2", "call_3"}) || l.Standing().Waits != WaitTool {
		t.Errorf("%s run; it waits for %q", got, l.Standing().Waits)
	}
	first()
	if got := running(); !slices.Equal(got, []string{"call_3"}) {
		t.Errorf("%s run", got)
	}
	second()
	if got := running(); len(got) > 0 || l.Standing().Waits != "" {
		t.Errorf("%s run; it waits for %q", got, l.Standing().Waits)
	}
	if err := RefuseInCall(in, "stop"); centurion.KindOf(err) != centurion.KindConflict {
		t.Error(err)
	}
	if err := RefuseInCall(t.Context(), "stop"); err != nil {
		t.Error(err)
	}
}

// What a resumed session was given whole it may replace; of a file that it was given in part it would lose the rest.
func TestGivenFilesAreKnown(t *testing.T) {
	t.Parallel()
	c, seen := conversationOf(t, centurion.Mission{}, nil), &tools.Seen{}
	recall(seen, centurion.Session{Metadata: centurion.SessionMeta{Given: []centurion.Given{{Path: "whole.md", Version: "1", Whole: true}, {Path: "part.md", Version: "2"}}}}, c.Sess)
	if err := seen.Check("whole.md", "1"); err != nil {
		t.Errorf("given whole: %v", err)
	}
	for path, kind := range map[string]centurion.Kind{"whole.md": centurion.KindConflict, "part.md": centurion.KindUsage} {
		if err := seen.Check(path, "2"); centurion.KindOf(err) != kind {
			t.Errorf("%s as it is now: %v", path, err)
		}
	}
}
