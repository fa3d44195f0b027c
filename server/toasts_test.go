package server_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/event/toast"
	"centurion/server"
	"centurion/store"
)

// ORCH-17, ORCH-107: a client that asks for toasts is told them in OpenCode's shape among the facts they follow from, and what
// came before it began to read is counted and not told. One that does not ask gets none, and none is stored.
func TestToasts(t *testing.T) {
	p := newProject(t)
	p.mission.Options.MaxWorkers = 7
	task := func(tx *store.Tx, typ centurion.EventType, id string, status centurion.TaskStatus) error {
		_, err := tx.Append(centurion.Event{Type: typ, Mission: p.mission.ID, Task: id, Data: json.RawMessage(
			fmt.Sprintf(`{"agent":"worker","title":"Write %s","status":%q,"parent":%q}`, id, status, p.session.ID))})
		return err
	}
	var joined int64
	if err := p.store.Update(t.Context(), func(tx *store.Tx) error {
		for _, id := range []string{"a", "b"} {
			if err := task(tx, centurion.EventTaskStarted, id, centurion.TaskRunning); err != nil {
				return err
			}
		}
		return tx.PutMission(&p.mission)
	}); err != nil {
		t.Fatal(err)
	}
	joined = p.store.LastSeq()
	if err := p.store.Update(t.Context(), func(tx *store.Tx) error {
		if err := task(tx, centurion.EventTaskCompleted, "a", centurion.TaskCompleted); err != nil {
			return err
		}
		return task(tx, centurion.EventTaskStarted, "c", centurion.TaskRunning)
	}); err != nil {
		t.Fatal(err)
	}
	stored := p.store.LastSeq()
	c := connect(t, p.local)
	told := func(q server.EventQuery) (facts int, toasts []toast.Toast) {
		t.Helper()
		events, err := collect(c.Events(t.Context(), q))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Type != "tui.toast.show" {
				facts++
				continue
			}
			d, err := event.Decode[toast.Toast](e)
			if err != nil || e.Seq != 0 || e.After == 0 || e.Mission != p.mission.ID || e.Session != p.session.ID || d.Duration <= 0 {
				t.Errorf("%+v, %v", e, err)
			}
			toasts = append(toasts, d)
		}
		return facts, toasts
	}
	if facts, toasts := told(server.EventQuery{Mission: p.mission.ID}); facts != 6 || len(toasts) != 0 {
		t.Errorf("not asked for: %d facts, %v", facts, toasts)
	}
	facts, toasts := told(server.EventQuery{Mission: p.mission.ID, Toasts: true, After: joined})
	if facts != 2 || len(toasts) != 1 || toasts[0].Variant != toast.Success ||
		!strings.HasPrefix(toasts[0].Message, "Task completed: Write a (0s)\nRunning (2): [1/4]\n") || !strings.HasSuffix(toasts[0].Message, "Slots: 2/7 · worker 2/10") {
		t.Errorf("from the middle on: %d facts, %+v", facts, toasts)
	}
	if facts, toasts := told(server.EventQuery{Mission: p.mission.ID, Toasts: true, After: stored}); facts != 0 || len(toasts) != 0 {
		t.Errorf("after everything: %d facts, %+v", facts, toasts)
	}
	if facts, toasts := told(server.EventQuery{Mission: p.mission.ID, Toasts: true}); facts != 6 || len(toasts) != 2 || toasts[0].Title != "Mission started" {
		t.Errorf("from the start: %d facts, %+v", facts, toasts)
	}
	if p.store.LastSeq() != stored {
		t.Error("reading toasts has written something")
	}
}

// A reader that follows is told a toast half a second after its fact, without another one, and can leave at any time.
func TestFollowToasts(t *testing.T) {
	p := newProject(t)
	c := connect(t, p.local)
	next, end := iter.Pull2(c.Events(t.Context(), server.EventQuery{Mission: p.mission.ID, Follow: true, Toasts: true}))
	defer end()
	var got []centurion.EventType
	for range 4 {
		e, err, ok := next()
		if !ok || err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Type)
	}
	if want := []centurion.EventType{centurion.EventMissionStarted, centurion.EventToast, centurion.EventTaskQueued, centurion.EventToast}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
