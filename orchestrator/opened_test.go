package orchestrator

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/guard"
	"centurion/orchestrator/roots"
	"centurion/provider/scripted"
)

// Issue "Real OpenCode clients" 1: a session exists before its goal, which its first message is; until then what it begins with may change.
func TestOpenedSession(t *testing.T) {
	bubble(t, map[string]script{"commander": func(scripted.Request) scripted.Answer { return say("done") }}, func(r *rig) {
		d := r.host.Roots
		list := func(q roots.Query) (ids []string) {
			all, err := d.List(r.ctx, q)
			if err != nil {
				r.t.Fatal(err)
			}
			for _, s := range all {
				ids = append(ids, s.ID)
			}
			return ids
		}
		set := func(s string) *string { return &s }
		s, err := d.Open(r.ctx, roots.Opening{Profile: agents.ProfileAssistant})
		if err != nil || s.Agent != "assistant" || !strings.HasPrefix(s.Title, roots.Untitled) || s.Model == nil {
			r.t.Fatalf("opened %+v, %v", s, err)
		}
		other, err := d.Open(r.ctx, roots.Opening{Title: " An  other\none "})
		equal(r.t, "title", other.Title, "An other one")
		if err != nil || !slices.Equal(list(roots.Query{Limit: 1, Search: "OTHER"}), []string{other.ID}) {
			r.t.Fatalf("found %v, %v", list(roots.Query{Search: "OTHER"}), err)
		}
		for name, o := range map[string]roots.Opening{"profile": {Profile: "solo"}, "agent": {Agent: "nobody"}} {
			if _, err := d.Open(r.ctx, o); err == nil {
				r.t.Errorf("an unknown %s is accepted", name)
			}
		}
		if s, err = d.Change(r.ctx, s.ID, roots.Change{Profile: set("mission"), Title: set("Mine")}); err != nil || s.Agent != "commander" || s.Title != "Mine" {
			r.t.Fatalf("changed to %+v, %v", s, err)
		}
		time.Sleep(time.Minute) // it began when it was opened
		m, err := r.host.Start(r.ctx, "Do it", centurion.MissionOptions{Session: s.ID})
		if err != nil || m.Session != s.ID {
			r.t.Fatalf("it begins session %s instead of %s: %v", m.Session, s.ID, err)
		}
		if _, err := r.host.Start(r.ctx, "Again", centurion.MissionOptions{Session: s.ID}); centurion.KindOf(err) != centurion.KindConflict {
			r.t.Errorf("a session begins twice: %v", err)
		}
		if rec, err := r.store.Session(r.ctx, s.ID); err != nil || rec.Time.Created != s.Time.Created || rec.Time.Created == 0 {
			r.t.Errorf("it was opened at %d, and says %d: %v", s.Time.Created, rec.Time.Created, err)
		}
		r.run(m.ID)
		for name, c := range map[string]roots.Change{"agent": {Agent: set("assistant")}, "model": {Model: &s.Model.ID}, "profile": {Profile: set("assistant")}} {
			if _, err := d.Change(r.ctx, s.ID, c); centurion.KindOf(err) != centurion.KindConflict {
				r.t.Errorf("its %s changes afterwards: %v", name, err)
			}
		}
		at := int64(1_700_000_000_000)
		if s, err = d.Change(r.ctx, s.ID, roots.Change{Archived: &at}); err != nil || s.Title != "Mine" || s.Time.Archived != at {
			r.t.Errorf("archived: %+v, %v", s, err)
		}
		equal(r.t, "sessions in the list", len(list(roots.Query{})), 2)
		for _, id := range []string{s.ID, other.ID} {
			if err := d.Remove(r.ctx, id); err != nil {
				r.t.Error(err)
			}
		}
		equal(r.t, "sessions left in the list", len(list(roots.Query{})), 0)
		if rec, err := r.store.Session(r.ctx, s.ID); err != nil || rec.ID != s.ID {
			r.t.Errorf("its record is gone: %v", err)
		}
		var told []centurion.EventType
		for _, e := range r.events("", centurion.EventSessionOpened, centurion.EventSessionRenamed, centurion.EventSessionRemoved) {
			if e.Session == s.ID {
				told = append(told, e.Type)
			}
		}
		if want := []centurion.EventType{centurion.EventSessionOpened, centurion.EventSessionRenamed, centurion.EventSessionRenamed, centurion.EventSessionRemoved}; !slices.Equal(told, want) {
			r.t.Errorf("told %v, want %v", told, want)
		}
	})
}

// A conversation that is removed while it works ends.
func TestRemoveWorkingSession(t *testing.T) {
	bubble(t, map[string]script{"commander": func(scripted.Request) scripted.Answer { return scripted.Answer{Delay: time.Hour, Say: "late"} }}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		var g guard.Group
		ended := r.inBackground(&g, m.ID)
		synctest.Wait()
		if err := r.host.Roots.Remove(r.ctx, m.Session); err != nil {
			r.t.Fatal(err)
		}
		r.is(<-ended, centurion.MissionCancelled, "removed")
		if err := g.Wait(); err != nil {
			r.t.Error(err)
		}
	})
}
