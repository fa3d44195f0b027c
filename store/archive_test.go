package store

import (
	"path/filepath"
	"strings"
	"testing"

	"centurion"
)

// A task that is removed takes its deliveries along, and its session if nobody else has it; everything else stays and is
// whole, also after the file was made smaller.
func TestRemoveTask(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Own(t.Context()); err != nil {
		t.Fatal(err)
	}
	update := func(f func(tx *Tx) error) {
		t.Helper()
		if err := s.Update(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	update(func(tx *Tx) error {
		for _, id := range []string{"a", "b", "c"} {
			task := centurion.Task{ID: "tsk_" + id, Mission: "msn_1", Session: "ses_" + id, Status: centurion.TaskCompleted}
			ses := centurion.Session{ID: "ses_" + id, Metadata: centurion.SessionMeta{Mission: "msn_1"}}
			msg := centurion.Message{ID: "msg_" + id, SessionID: ses.ID, Role: centurion.RoleUser}
			part := centurion.Part{ID: "prt_" + id, SessionID: ses.ID, MessageID: msg.ID, Type: centurion.PartText, Text: strings.Repeat("x", 1<<20)}
			d := Delivery{ID: "dlv_" + id, Mission: "msn_1", Task: task.ID}
			for _, err := range []error{tx.PutTask(&task), tx.PutSession(&ses), tx.PutMessage(&msg), tx.PutPart(&part), tx.PutDelivery(&d)} {
				if err != nil {
					return err
				}
			}
		}
		_, err := tx.Append(centurion.Event{Type: centurion.EventTaskCompleted, Mission: "msn_1", Task: "tsk_a"})
		return err
	})
	update(func(tx *Tx) error {
		if err := tx.RemoveTask("tsk_a", true); err != nil {
			return err
		}
		if err := tx.RemoveTask("tsk_none", true); err != nil {
			return err
		}
		return tx.RemoveTask("tsk_b", false)
	})
	look := func() {
		t.Helper()
		if n, err := s.TaskCount(t.Context()); n != 1 || err != nil {
			t.Errorf("%d tasks, %v", n, err)
		}
		for id, want := range map[string]int{"a": 0, "b": 1, "c": 1} {
			msgs, err := s.Messages(t.Context(), "ses_"+id)
			_, serr := s.Session(t.Context(), "ses_"+id)
			if err != nil || len(msgs) != want || (serr == nil) != (want == 1) {
				t.Errorf("session %s: %d messages, %v, %v", id, len(msgs), err, serr)
			}
		}
		ds, err := s.Deliveries(t.Context(), "msn_1")
		if err != nil || len(ds) != 1 || ds[0].Task != "tsk_c" {
			t.Errorf("deliveries: %v, %v", ds, err)
		}
		if es, err := s.Events(t.Context(), EventQuery{}); err != nil || len(es) != 1 {
			t.Errorf("events: %v, %v", es, err)
		}
	}
	look()
	before, after, err := s.Compact(t.Context())
	if err != nil || before-after < 1<<20 || after < 2<<20 {
		t.Errorf("compacted from %d to %d bytes, %v", before, after, err)
	}
	look()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Check(t.Context(), path); err != nil {
		t.Errorf("the file is not whole: %v", err)
	}
	if s, err = Open(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	look()
}

// Who has lost the state does not rewrite it.
func TestCompactLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	other, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := s.Own(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := other.Own(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Compact(t.Context()); centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("it was compacted: %v", err)
	}
}
