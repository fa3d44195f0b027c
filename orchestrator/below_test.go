package orchestrator

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/guard"
	"centurion/orchestrator/roots"
	"centurion/provider/scripted"
)

// Issue "Real OpenCode clients": a person opens sessions below others; each has a conversation of its own, and goes with the one above,
// which ends its work and its command first.
func TestSessionsBelow(t *testing.T) {
	bubble(t, map[string]script{"assistant": func(scripted.Request) scripted.Answer { return scripted.Answer{Delay: time.Hour, Say: "late"} }}, func(r *rig) {
		d := r.host.Roots
		open := func(below string) string {
			s, err := d.Open(r.ctx, roots.Opening{Profile: agents.ProfileAssistant, Below: below})
			if err != nil || s.Metadata.Below != below {
				r.t.Fatalf("opened %+v, %v", s, err)
			}
			return s.ID
		}
		if _, err := d.Open(r.ctx, roots.Opening{Below: "ses_none"}); centurion.KindOf(err) != centurion.KindNotFound {
			r.t.Errorf("opened below nothing: %v", err)
		}
		top := open("")
		child, beside := open(top), open(top)
		below := open(child)
		m, err := r.host.Start(r.ctx, "Do it", centurion.MissionOptions{Session: child, Profile: agents.ProfileAssistant})
		if err != nil {
			r.t.Fatal(err)
		}
		list := func(all bool) (n int) {
			got, err := d.List(r.ctx, roots.Query{All: all})
			if err != nil {
				r.t.Fatal(err)
			}
			for _, s := range got {
				if s.ID == child && s.Metadata.Below != top {
					r.t.Errorf("with a mission, it stands below %q", s.Metadata.Below)
				}
			}
			return len(got)
		}
		equal(r.t, "sessions below none", list(false), 1)
		equal(r.t, "all sessions", list(true), 4)
		var g guard.Group
		ended := r.inBackground(&g, m.ID)
		g.Go("command", func() error {
			_, err := r.host.Shell.Run(context.WithoutCancel(r.ctx), beside, "sleep 1h")
			return err
		})
		synctest.Wait()
		if err := d.Remove(r.ctx, top); err != nil {
			r.t.Fatal(err)
		}
		r.is(<-ended, centurion.MissionCancelled, "removed")
		equal(r.t, "sessions that are left", list(true), 0)
		var order []string
		for _, e := range r.events("", centurion.EventSessionRemoved) {
			order = append(order, e.Session)
		}
		if len(order) != 4 || order[3] != top {
			r.t.Errorf("removed %v, the highest one is %s, another %s", order, top, below)
		}
		if r.host.Shell.Running("") != nil {
			r.t.Error("a command goes on")
		}
		if err := g.Wait(); err != nil {
			r.t.Error(err)
		}
	})
}
