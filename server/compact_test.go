package server_test

import (
	"context"
	"testing"
	"testing/synctest"

	"centurion"
	"centurion/guard"
	"centurion/store"
)

// A client asks for a session's history to be shortened; what is wrong about it comes back with its kind.
func TestCompact(t *testing.T) {
	p, _ := hosting(t)
	c := connect(t, p.local)
	worker := p.worker()
	ctx := t.Context()
	for what, test := range map[string]struct {
		session string
		kind    centurion.Kind
	}{
		"nothing to shorten":     {p.session.ID[:len(p.session.ID)-3], centurion.KindConflict},
		"nobody works on it now": {worker, centurion.KindConflict},
		"no such session":        {"ses_none", centurion.KindNotFound},
	} {
		if err := c.Compact(ctx, test.session, ""); centurion.KindOf(err) != test.kind || centurion.HintOf(err) == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if rec, err := p.store.Session(ctx, worker); err != nil || !rec.Metadata.Compact {
		t.Errorf("what is done later is recorded as %v, %v", rec.Metadata.Compact, err)
	}
	p.local.Host = nil
	if err := c.Compact(ctx, p.session.ID, ""); centurion.KindOf(err) != centurion.KindConflict || centurion.HintOf(err) == "" {
		t.Errorf("without a host: %v", err)
	}
}

// worker records a session of a task.
func (p *project) worker() string {
	s := centurion.Session{ID: centurion.NewID(centurion.PrefixSession), ParentID: p.session.ID, Metadata: centurion.SessionMeta{Mission: p.mission.ID, Task: p.task.ID}}
	if err := p.store.Update(context.Background(), func(tx *store.Tx) error { return tx.PutSession(&s) }); err != nil {
		panic(err)
	}
	return s.ID
}

// Who asks for a session that works waits for the summary, through all that happens beside it, and not beyond the end of the mission.
func TestCompactWaits(t *testing.T) {
	for what, test := range map[string]struct {
		end  func(p *project, worker string) []centurion.Event
		kind centurion.Kind
	}{
		"the summary comes": {func(p *project, worker string) []centurion.Event {
			return []centurion.Event{{Type: centurion.EventCompacted, Mission: p.mission.ID, Session: p.session.ID}, {Type: centurion.EventCompacted, Mission: p.mission.ID, Session: worker}}
		}, ""},
		"the mission stops": {func(p *project, _ string) []centurion.Event {
			p.local.Host.Mail.Closed(context.Background(), p.mission, p.mission.ID, nil)
			return []centurion.Event{{Type: centurion.EventMissionPaused, Mission: p.mission.ID}}
		}, centurion.KindConflict},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, _ := hosting(t)
				worker := p.worker()
				p.local.Host.Mail.Expect(p.mission.ID)
				var g guard.Group
				over := false
				g.Go("compact", func() error {
					if err := p.local.Compact(t.Context(), worker, ""); centurion.KindOf(err) != test.kind {
						t.Errorf("it ends with %v", err)
					}
					over = true
					return nil
				})
				synctest.Wait()
				for _, e := range test.end(p, worker) {
					if synctest.Wait(); over {
						t.Error("it is over too early")
					}
					if err := p.store.Update(t.Context(), func(tx *store.Tx) error { _, err := tx.Append(e); return err }); err != nil {
						t.Fatal(err)
					}
				}
				if err := g.Wait(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}
