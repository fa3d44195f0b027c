package v1

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/guard/cputime"
	"centurion/store"
)

// A fact of a session of 2,000 messages becomes an event: only the message that it names is read again.
func BenchmarkFact(b *testing.B) {
	x := newRig(b)
	var last centurion.Message
	x.update(func(tx *store.Tx) error {
		for i := range 2000 {
			last = centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: x.root.ID, Role: centurion.RoleAssistant, Agent: "commander", Time: centurion.MessageTime{Created: int64(i), Completed: int64(i)}}
			part := centurion.Part{ID: centurion.NewID(centurion.PrefixPart), SessionID: x.root.ID, MessageID: last.ID, Type: centurion.PartText, Text: fmt.Sprintf("answer %d", i)}
			if err := errors.Join(tx.PutMessage(&last), tx.PutPart(&part)); err != nil {
				return err
			}
		}
		return nil
	})
	e := centurion.Event{Type: centurion.EventMessageUpdated, Mission: x.mission.ID, Session: x.root.ID, Data: event.Data(map[string]any{"message": last.ID})}
	before := cputime.Used()
	for b.Loop() {
		if err := x.project.tell(b.Context(), e); err != nil {
			b.Fatal(err)
		}
	}
	reportCPU(b, before)
}

// reportCPU reports the CPU time of an operation: wall time depends on what else the machine does.
func reportCPU(b *testing.B, before time.Duration) {
	b.ReportMetric(float64((cputime.Used()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// A list of 1,000 sessions, each the root of a mission: without and with the sessions below them.
func BenchmarkList(b *testing.B) {
	x := newRig(b)
	x.update(func(tx *store.Tx) error {
		for range 999 {
			s, m := x.root, x.mission
			s.ID, m.ID, m.Status = centurion.NewID(centurion.PrefixSession), centurion.NewID(centurion.PrefixMission), centurion.MissionCompleted
			m.Session, s.Metadata.Mission = s.ID, m.ID
			if err := errors.Join(tx.PutMission(&m), tx.PutSession(&s)); err != nil {
				return err
			}
		}
		return nil
	})
	for _, query := range []string{"?roots=true", "?roots=true&limit=100", ""} {
		b.Run("session"+query, func(b *testing.B) {
			before := cputime.Used()
			for b.Loop() {
				if status, body := x.ask("GET", "/session"+query, ""); status != 200 {
					b.Fatal(body)
				}
			}
			reportCPU(b, before)
		})
	}
}
