package store

import (
	"errors"
	"strings"
	"testing"

	"centurion"
)

// inOrder joins the ids of some rows.
func inOrder[T any](all []T, id func(T) string) string {
	var out []string
	for _, v := range all {
		out = append(out, id(v))
	}
	return strings.Join(out, " ")
}

// An opened session is taken once, before it has a mission: its row makes room for the one that is written again. No other row goes with it.
func TestTakeOpened(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	opened := centurion.Session{ID: "ses_1", Title: "opened"}
	begun := centurion.Session{ID: "ses_2", Metadata: centurion.SessionMeta{Mission: "msn_1"}}
	mustUpdate(t, s, func(tx *Tx) error { return errors.Join(tx.PutSession(&opened), tx.PutSession(&begun)) })
	mustUpdate(t, s, func(tx *Tx) error {
		got, err := tx.TakeOpened("ses_1")
		sameJSON(t, "the opened session", got, opened)
		return err
	})
	for id, want := range map[string]struct {
		kind centurion.Kind
		text string
	}{
		"ses_1": {centurion.KindNotFound, "ses_1"},
		"ses_2": {centurion.KindConflict, "begin session: session ses_2 has begun already"},
	} {
		err := s.Update(t.Context(), func(tx *Tx) error { return second(tx.TakeOpened(id)) })
		if centurion.KindOf(err) != want.kind || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: %v", id, err)
		}
		if want.kind == centurion.KindConflict && centurion.HintOf(err) != "send it a message" {
			t.Errorf("its hint: %s", centurion.HintOf(err))
		}
	}
	if _, err := s.Session(t.Context(), "ses_2"); err != nil {
		t.Errorf("another session: %v", err)
	}
	opened.Metadata.Mission = "msn_1"
	mustUpdate(t, s, func(tx *Tx) error { return tx.PutSession(&opened) })
	all, err := s.Sessions(t.Context(), "msn_1")
	if got := inOrder(all, func(v centurion.Session) string { return v.ID }); err != nil || got != "ses_2 ses_1" {
		t.Errorf("the mission's sessions: %s, %v", got, err)
	}
}

// A message is found with the parts that are asked for, only in its own session, and its id is taken in all of them.
func TestMessage(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	mustUpdate(t, s, func(tx *Tx) error {
		var all []error
		for _, m := range []string{"ses_1 msg_1", "ses_1 msg_2", "ses_2 msg_3"} {
			session, id, _ := strings.Cut(m, " ")
			all = append(all, tx.PutMessage(&centurion.Message{ID: id, SessionID: session, Role: centurion.RoleUser}))
			for _, p := range []string{"c", "a", "b"} {
				all = append(all, tx.PutPart(&centurion.Part{ID: "prt_" + id + p, MessageID: id, SessionID: session, Type: centurion.PartText, Text: p}))
			}
		}
		return errors.Join(all...)
	})
	for _, c := range []struct {
		session, id, want string
		parts             []string
	}{
		{"ses_1", "msg_1", "prt_msg_1c prt_msg_1a prt_msg_1b", nil},
		{"ses_1", "msg_1", "prt_msg_1b prt_msg_1c", []string{"prt_msg_1b", "prt_msg_2a", "prt_msg_1c", "prt_9"}},
		{"ses_2", "msg_3", "prt_msg_3a", []string{"prt_msg_3a"}},
		{"ses_2", "msg_1", "none", nil},
		{"ses_1", "msg_9", "none", []string{"prt_msg_1a"}},
	} {
		m, err := s.Message(t.Context(), c.session, c.id, c.parts...)
		got := inOrder(m.Parts, func(p centurion.Part) string { return p.ID })
		if c.want == "none" {
			if centurion.KindOf(err) != centurion.KindNotFound || !strings.Contains(err.Error(), "message "+c.id) {
				t.Errorf("%s in %s: %v", c.id, c.session, err)
			}
			continue
		}
		if err != nil || m.ID != c.id || got != c.want {
			t.Errorf("%s of %s, %q: %s %s, %v", c.id, c.session, c.parts, m.ID, got, err)
		}
	}
	mustUpdate(t, s, func(tx *Tx) error {
		if err := tx.CheckNewMessage("msg_3"); centurion.KindOf(err) != centurion.KindUsage || err.Error() != "store message: there is a message msg_3 already" || centurion.HintOf(err) != "give each message an id of its own, or none" {
			t.Errorf("a known id: %v", err)
		}
		return tx.CheckNewMessage("msg_4")
	})
}

// Sessions are listed by their ids or by those of their missions, oldest first; a call's task is its newest.
func TestListed(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	mustUpdate(t, s, func(tx *Tx) error {
		var all []error
		for _, v := range []string{"ses_3 msn_1", "ses_1 msn_2", "ses_2 msn_1", "ses_4 msn_3"} {
			id, mission, _ := strings.Cut(v, " ")
			all = append(all, tx.PutSession(&centurion.Session{ID: id, Metadata: centurion.SessionMeta{Mission: mission}}))
		}
		for _, v := range []string{"tsk_3 ses_1 call_1", "tsk_1 ses_1 call_1", "tsk_2 ses_2 call_1", "tsk_4 ses_1 call_2"} {
			f := strings.Fields(v)
			all = append(all, tx.PutTask(&centurion.Task{ID: f[0], Mission: "msn_1", Parent: f[1], Call: f[2]}))
		}
		return errors.Join(all...)
	})
	mustUpdate(t, s, func(tx *Tx) error {
		return errors.Join(tx.PutMission(&centurion.Mission{ID: "msn_2"}), tx.PutMission(&centurion.Mission{ID: "msn_1"}), tx.PutMission(&centurion.Mission{ID: "msn_2", Goal: "again"}))
	})
	if m, err := s.LatestMission(t.Context()); err != nil || m.ID != "msn_1" {
		t.Errorf("the mission started last: %s, %v", m.ID, err)
	}
	for _, c := range []struct {
		missions bool
		ids      []string
		want     string
	}{
		{false, []string{"ses_2", "ses_3", "ses_9"}, "ses_3 ses_2"}, {false, nil, ""}, {false, []string{"msn_1"}, ""},
		{true, []string{"msn_2", "msn_1"}, "ses_3 ses_1 ses_2"}, {true, []string{"ses_1"}, ""},
	} {
		all, err := s.SessionsIn(t.Context(), c.missions, c.ids)
		if got := inOrder(all, func(v centurion.Session) string { return v.ID }); err != nil || got != c.want {
			t.Errorf("%v %q: %s, %v", c.missions, c.ids, got, err)
		}
	}
	for call, want := range map[string]string{"ses_1 call_1": "tsk_1", "ses_2 call_1": "tsk_2", "ses_1 call_2": "tsk_4", "call_1 ses_1": "", "ses_3 call_1": ""} {
		session, id, _ := strings.Cut(call, " ")
		got, found, err := s.TaskByCall(t.Context(), session, id)
		if err != nil || got.ID != want || found != (want != "") {
			t.Errorf("%s: %s, %v, %v", call, got.ID, found, err)
		}
		mustUpdate(t, s, func(tx *Tx) error {
			again, found, err := tx.TaskByCall(session, id)
			if again.ID != want || found != (want != "") {
				t.Errorf("%s in a transaction: %s, %v", call, again.ID, found)
			}
			return err
		})
	}
}
