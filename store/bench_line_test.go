package store

import (
	"fmt"
	"strings"
	"testing"

	"centurion"
)

// BenchmarkNewMessage is what a new message costs beside the commit: its row and finding its place on the line. The session
// has a system prompt of the usual size.
func BenchmarkNewMessage(b *testing.B) {
	s := openTemp(b)
	rec := centurion.Session{ID: "ses_1", Metadata: centurion.SessionMeta{Mission: "msn_1", System: strings.Repeat("Say what you do. ", 1000)}}
	if err := s.Update(b.Context(), func(tx *Tx) error { return tx.PutSession(&rec) }); err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		if err := s.Update(b.Context(), func(tx *Tx) error {
			for range 100 {
				n++
				m := centurion.Message{ID: fmt.Sprintf("msg_%08d", n), SessionID: rec.ID, Role: centurion.RoleAssistant}
				if err := tx.PutMessage(&m); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(n), "µs/message")
}
