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

// A host that leaves does not wait for ever for a mission that only a person can bring further; one that works, it waits for.
func TestHostDoesNotWaitForAPersonForEver(t *testing.T) {
	for name, asks := range map[string]bool{"it asks": true, "it works": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := storetest.Open(t)
				err := s.Update(t.Context(), func(tx *store.Tx) error {
					if err := tx.PutMission(&centurion.Mission{ID: "msn_1", Status: centurion.MissionRunning}); err != nil || !asks {
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
				var said []string
				began := time.Now()
				r.waitForOthers(ctx, func(line string) { said = append(said, line) })
				want := map[bool]time.Duration{true: personTimeout, false: time.Hour}[asks]
				if took := time.Since(began); took != want || context.Cause(ended) != centurion.ErrShutdown {
					t.Errorf("it left after %s (%v), want %s", took, context.Cause(ended), want)
				}
				if told := strings.Contains(strings.Join(said, "\n"), "mission msn_1 waits for you and is paused"); told != asks {
					t.Errorf("it said: %q", said)
				}
			})
		})
	}
}
