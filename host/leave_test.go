package host

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/store"
	"centurion/store/storetest"
)

// A host that leaves does not wait for ever for a mission that only a person can bring further; one that works, it waits for, also where one
// of its agents asks meanwhile.
func TestHostDoesNotWaitForAPersonForEver(t *testing.T) {
	for name, tt := range map[string]struct {
		asks  bool
		works time.Duration // until something happens in it
		want  time.Duration
	}{
		"it asks":                    {true, 0, personTimeout},
		"it asks, and works besides": {true, personTimeout / 2, 2 * personTimeout},
		"it works":                   {false, 0, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := storetest.Open(t)
				err := s.Update(t.Context(), func(tx *store.Tx) error {
					if err := tx.PutMission(&centurion.Mission{ID: "msn_1", Status: centurion.MissionRunning}); err != nil || !tt.asks {
						return err
					}
					return tx.PutAsk(&store.Ask{ID: "que_1", Mission: "msn_1", Type: store.AskQuestion, Created: centurion.Now()})
				})
				if err != nil {
					t.Fatal(err)
				}
				ended, stop := context.WithCancelCause(t.Context())
				x := &run{end: stop, done: make(chan struct{})}
				context.AfterFunc(ended, func() { close(x.done) })
				r := &runs{store: s, changed: make(chan struct{}), all: map[string]*run{"msn_1": x}}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if tt.works > 0 {
					time.AfterFunc(tt.works, func() {
						if err := s.Update(t.Context(), func(tx *store.Tx) error {
							_, err := tx.Append(centurion.Event{Type: centurion.EventTaskQueued, Mission: "msn_1"})
							return err
						}); err != nil {
							t.Error(err)
						}
					})
				}
				var said []string
				began := time.Now()
				r.waitForOthers(ctx, func(line string) { said = append(said, line) })
				if took := time.Since(began); took != tt.want || context.Cause(ended) != centurion.ErrShutdown {
					t.Errorf("it left after %s (%v), want %s", took, context.Cause(ended), tt.want)
				}
				if told := strings.Contains(strings.Join(said, "\n"), "mission msn_1 waits for you and is paused"); told != tt.asks {
					t.Errorf("it said: %q", said)
				}
			})
		})
	}
}
