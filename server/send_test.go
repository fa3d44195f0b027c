package server_test

import (
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/orchestrator/mail"
	"centurion/server"
	"centurion/store"
)

// A message comes through the socket with its ids completed, and as a person's, whoever its sender says it is.
func TestSend(t *testing.T) {
	p, b := hosting(t)
	c := connect(t, p.local)
	short := func(id string) string { return id[:len(id)-4] }
	for i, post := range []mail.Post{
		{To: "0/", Text: "one"},
		{To: "0", Mission: short(p.mission.ID), Text: "two", Origin: centurion.OriginHost, Queue: true},
		{To: short(p.session.ID), Text: "three"},
		{To: short(p.mission.ID), Text: "four"},
	} {
		got, err := c.Send(t.Context(), post)
		if err != nil {
			t.Fatal(err)
		}
		if got.Mission != p.mission.ID || got.Session != p.session.ID || got.Address != "0/" || got.Working || got.Status != centurion.MissionPaused {
			t.Errorf("message %d: %+v", i, got)
		}
	}
	waiting, err := p.store.PendingDeliveries(t.Context(), p.session.ID)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, d := range waiting {
		texts = append(texts, d.Text)
		if d.Origin != centurion.OriginPerson || d.Queue != (d.Text == "two") {
			t.Errorf("stored %+v", d)
		}
	}
	if got := strings.Join(texts, " "); got != "one two three four" {
		t.Errorf("stored %q", got)
	}
	for to, want := range map[string]centurion.Kind{"0/5": centurion.KindNotFound, "ses_zz": centurion.KindNotFound, "msn_": centurion.KindUsage} {
		if _, err := c.Send(t.Context(), mail.Post{To: to, Text: "x"}); centurion.KindOf(err) != want {
			t.Errorf("to %s: %v", to, err)
		}
	}
	if len(b.launched) > 0 {
		t.Errorf("a paused mission was gone on with: %v", b.launched)
	}
	if _, err := (&server.Local{Store: p.store}).Send(t.Context(), mail.Post{To: "0/", Text: "x"}); centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("without a host: %v", err)
	}
}

// A blocked mission goes on when its Commander is told how, and not when somebody else is.
func TestSendAnswersBlockedMission(t *testing.T) {
	p, b := hosting(t)
	worker := centurion.Session{ID: centurion.NewID(centurion.PrefixSession), Agent: "worker", ProjectID: "global",
		Metadata: centurion.SessionMeta{Mission: p.mission.ID, Address: "0/0", Task: p.task.ID}}
	p.mission.Status, p.task.Session = centurion.MissionBlocked, worker.ID
	if err := p.store.Update(t.Context(), func(tx *store.Tx) error {
		if err := tx.PutMission(&p.mission); err != nil {
			return err
		}
		if err := tx.PutTask(&p.task); err != nil {
			return err
		}
		return tx.PutSession(&worker)
	}); err != nil {
		t.Fatal(err)
	}
	got, err := p.local.Send(t.Context(), mail.Post{To: "0/0", Text: "x"})
	if err != nil || got.Working || got.Task != p.task.ID || len(b.launched) > 0 {
		t.Errorf("to the worker: %+v, %v, launched %v", got, err, b.launched)
	}
	got, err = p.local.Send(t.Context(), mail.Post{To: "0/", Text: "by the way", NoReply: true})
	if err != nil || got.Working || len(b.launched) > 0 {
		t.Errorf("without an answer: %+v, %v, launched %v", got, err, b.launched)
	}
	got, err = p.local.Send(t.Context(), mail.Post{To: "0/", Text: "use PostgreSQL"})
	if err != nil || !got.Working || !slices.Equal(b.launched, []string{p.mission.ID}) {
		t.Errorf("to the Commander: %+v, %v, launched %v", got, err, b.launched)
	}
}
