package space

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/event"
	"centurion/store"
	"centurion/workspace"
)

// A mission waits until both the state and the project can be written again, which is tried soon at first and then every five seconds; it goes on
// with nothing if it waits too long or is not wanted any more. Meanwhile its watchers are told why, and it is known.
func TestAwait(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		longest time.Duration
		free    time.Duration // when the project can be written again; 0 for never
		ends    time.Duration // when the mission is not wanted any more; 0 for never
		after   time.Duration // the end of the wait
		want    bool
	}{
		"at once":            {time.Hour, time.Millisecond, 0, 500 * time.Millisecond, true},
		"free before a look": {-1, 17400 * time.Millisecond, 0, 17500 * time.Millisecond, true},
		"free after a look":  {-1, 12600 * time.Millisecond, 0, 17500 * time.Millisecond, true},
		"too long":           {3 * time.Second, 4 * time.Second, 0, 3 * time.Second, false},
		"not wanted":         {-1, 0, 2 * time.Second, 2 * time.Second, false},
		"no limit":           {0, time.Minute, 0, time.Minute + 2500*time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { await(t, test.longest, test.free, test.ends, test.after, test.want) })
		})
	}
}

func await(t *testing.T, longest, free, ends, after time.Duration, want bool) {
	ws, err := workspace.Open(t.TempDir())
	st, serr := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	blocks := filepath.Join(ws.Dir(), ".opencode")
	if err := errors.Join(err, serr, os.WriteFile(blocks, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(st.Close(), ws.Close()); err != nil {
			t.Error(err)
		}
	}()
	if err := st.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Append(centurion.Event{Type: centurion.EventMissionUpdated, Mission: "msn_0"})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	const why = "waiting for space: the disk is full"
	w := &Waits{Store: st, Workspace: ws, Longest: longest}
	told := 0
	w.Publish = func(e centurion.Event) {
		told++
		wants := fmt.Sprint(centurion.Event{Time: centurion.Now(), Type: centurion.EventMissionUpdated, Mission: "msn_1", After: st.LastSeq(),
			Data: event.Data(event.MissionData{Status: centurion.MissionPaused, Reason: why})})
		if got := fmt.Sprint(e); got != wants {
			t.Errorf("told %s, want %s", got, wants)
		}
	}
	wanted, end := context.WithCancel(t.Context())
	defer end()
	if free > 0 {
		defer time.AfterFunc(free, func() { _ = os.Remove(blocks) }).Stop() // then it can be written
	}
	if ends > 0 {
		defer time.AfterFunc(ends, end).Stop()
	}
	during := time.AfterFunc(after/2, func() {
		if got := fmt.Sprint(w.Reason("msn_1"), w.Reason("msn_2"), w.All()); got != why+"map[msn_1:"+why+"]" {
			t.Errorf("known meanwhile: %s", got)
		}
	})
	defer during.Stop()
	began := time.Now()
	got := w.Await(wanted, "msn_1", errors.New("the disk is full"))
	if took := time.Since(began); got != want || took != after {
		t.Errorf("%v after %v, want %v after %v", got, took, want, after)
	}
	if told != 1 || w.Reason("msn_1") != "" || len(w.All()) > 0 {
		t.Errorf("told %d times; known afterwards: %v", told, w.All())
	}
}

// A project that can be written helps nothing while the state cannot; nobody has to watch.
func TestAwaitState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ws, err := workspace.Open(t.TempDir())
		st, serr := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
		if err := errors.Join(err, serr, st.Close()); err != nil {
			t.Fatal(err)
		}
		if (&Waits{Store: st, Workspace: ws, Longest: time.Minute}).Await(t.Context(), "msn_1", errors.New("full")) {
			t.Error("it goes on without its state")
		}
		if err := ws.Close(); err != nil {
			t.Error(err)
		}
	})
}
