package store

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"centurion"
)

func benchPart(session, message string) *centurion.Part {
	return &centurion.Part{ID: centurion.NewID(centurion.PrefixPart), SessionID: session, MessageID: message,
		Type: centurion.PartText, Text: strings.Repeat("Limits are read from the file. ", 8)}
}

func onePart(tx *Tx, p *centurion.Part) error {
	if err := tx.PutPart(p); err != nil {
		return err
	}
	_, err := tx.Append(centurion.Event{Type: centurion.EventPartUpdated, Mission: "msn_1", Session: p.SessionID,
		Data: []byte(`{"part":"` + p.ID + `","message":"` + p.MessageID + `"}`)})
	return err
}

// BenchmarkSync is what the disk alone takes: what the other figures are to be read beside.
func BenchmarkSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "f"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	page := make([]byte, 3*4120) // about what a commit of a part and a journal row writes
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		if _, err := f.Write(page); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	report(b, took)
}

// BenchmarkUpdate is one writer that waits for every commit.
func BenchmarkUpdate(b *testing.B) {
	s := openTemp(b)
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		if err := s.Update(b.Context(), func(tx *Tx) error { return onePart(tx, benchPart("ses_1", "msg_1")) }); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	report(b, took)
}

// BenchmarkUpdate50 is fifty sessions that each wait for every commit.
func BenchmarkUpdate50(b *testing.B) {
	s := openTemp(b)
	const writers = 50
	took := make([][]time.Duration, writers)
	n := 0
	b.ResetTimer()
	start := time.Now()
	for range b.N {
		var wg sync.WaitGroup
		for w := range writers {
			session := fmt.Sprintf("ses_%d", w)
			wg.Go(func() {
				for range 20 {
					start := time.Now()
					if err := s.Update(b.Context(), func(tx *Tx) error { return onePart(tx, benchPart(session, "msg_1")) }); err != nil {
						b.Error(err)
						return
					}
					took[w] = append(took[w], time.Since(start))
				}
			})
		}
		wg.Wait()
		n += writers * 20
	}
	b.ReportMetric(float64(n)/time.Since(start).Seconds(), "updates/s")
	report(b, slices.Concat(took...))
}

// BenchmarkOpen opens and closes an existing file.
func BenchmarkOpen(b *testing.B) {
	path := openTemp(b).Path()
	for b.Loop() {
		s, err := Open(b.Context(), path)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMessages500 reads a conversation of 500 messages with four parts each, and just where it stands.
func BenchmarkMessages500(b *testing.B) {
	s := openTemp(b)
	err := s.Update(b.Context(), func(tx *Tx) error {
		for i := range 500 {
			m := centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: "ses_1", Role: centurion.RoleAssistant}
			if i%2 == 0 {
				m.Role = centurion.RoleUser
			}
			if err := tx.PutMessage(&m); err != nil {
				return err
			}
			for range 4 {
				if err := onePart(tx, benchPart("ses_1", m.ID)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("whole", func(b *testing.B) {
		for b.Loop() {
			if m, err := s.Messages(b.Context(), "ses_1"); err != nil || len(m) != 500 || len(m[499].Parts) != 4 {
				b.Fatal(len(m), err)
			}
		}
	})
	b.Run("newest", func(b *testing.B) {
		for b.Loop() {
			if id, n, err := s.Newest(b.Context(), "ses_1"); err != nil || n != 500 || id == "" {
				b.Fatal(id, n, err)
			}
		}
	})
}

func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkOpenSmall opens and closes the largest state of which every page is looked at.
func BenchmarkOpenSmall(b *testing.B) {
	s := openTemp(b)
	var size int
	for size < smallFile-100_000 {
		if err := s.Update(b.Context(), func(tx *Tx) error {
			for range 100 {
				if err := onePart(tx, benchPart("ses_1", "msg_1")); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
		if err := s.w.row("SELECT page_count * 4096 FROM pragma_page_count").Scan(&size); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := Open(b.Context(), s.Path())
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHead is what a commit pays for naming itself beside the file.
func BenchmarkHead(b *testing.B) {
	h := openHead(filepath.Join(b.TempDir(), "state.db"))
	defer h.close()
	for n := int64(1); b.Loop(); n++ {
		h.advance(n, 0)
	}
}

// BenchmarkOwned is what a commit of an owner pays for looking whether it still is one.
func BenchmarkOwned(b *testing.B) {
	s := openTemp(b)
	if err := s.Own(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := s.owned(); err != nil {
			b.Fatal(err)
		}
	}
}
