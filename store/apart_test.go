package store

import (
	"errors"
	"testing"

	"centurion"
)

// Sessions that are written in turns keep their own lines: a message stands under the newest of its own session, and each session shows
// its own messages with their parts.
func TestLinesOfSeveralSessions(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	mustUpdate(t, s, func(tx *Tx) error {
		return errors.Join(tx.PutSession(&centurion.Session{ID: "ses_1"}), tx.PutSession(&centurion.Session{ID: "ses_2"}), tx.PutSession(&centurion.Session{ID: "ses_3"}))
	})
	saying(t, s, "ses_1", 1, "a")
	saying(t, s, "ses_2", 1, "x")
	saying(t, s, "ses_1", 1, "b")
	saying(t, s, "ses_2", 1, "y", "z")
	backTo(t, s, "ses_2", "x")
	saying(t, s, "ses_1", 1, "c")
	saying(t, s, "ses_2", 1, "w")
	for session, want := range map[string]struct{ line, all, leaf string }{"ses_1": {"a b c", "a b c", "c"}, "ses_2": {"x w", "x y z w", "w"}, "ses_3": {}} {
		if got := path(t, s, session); got != want.line {
			t.Errorf("the line of %s is %s, want %s", session, got, want.line)
		}
		tree, err := s.Tree(t.Context(), session)
		if err != nil || names(tree.Messages) != want.all || tree.Leaf != want.leaf || tree.Session.ID != session {
			t.Errorf("%s has %s and ends at %s, %v", session, names(tree.Messages), tree.Leaf, err)
		}
	}
	for session, want := range map[string]struct {
		id string
		n  int
	}{"ses_1": {"c", 3}, "ses_2": {"w", 2}, "ses_3": {}, "ses_9": {}} {
		if id, n, err := s.Newest(t.Context(), session); err != nil || id != want.id || n != want.n {
			t.Errorf("%s ends at %s after %d, %v", session, id, n, err)
		}
	}
	for id, under := range map[string]string{"a": "", "b": "a", "c": "b"} {
		m, err := s.Message(t.Context(), "ses_1", id)
		if err != nil || m.Prev != under {
			t.Errorf("%s stands under %q, %v", id, m.Prev, err)
		}
	}
	for id, under := range map[string]string{"x": "", "y": "x", "z": "y", "w": "x"} {
		m, err := s.Message(t.Context(), "ses_2", id)
		if err != nil || m.Prev != under {
			t.Errorf("%s stands under %q, %v", id, m.Prev, err)
		}
	}
	mustUpdate(t, s, func(tx *Tx) error { // in a transaction it is what stands there by then
		m := centurion.Message{ID: "d", SessionID: "ses_1", Role: centurion.RoleUser}
		if err := tx.PutMessage(&m); err != nil || m.Prev != "c" {
			t.Errorf("d stands under %q, %v", m.Prev, err)
		}
		tree, err := tx.Tree("ses_1")
		if tree.Leaf != "d" || len(tree.Messages) != 4 {
			t.Errorf("within it ends at %s", tree.Leaf)
		}
		return err
	})
}

// What is typed of an id names one, or says which it could be; how many there may be does not change who is found whole.
func TestResolveAmongMany(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	mustUpdate(t, s, func(tx *Tx) error {
		var all []error
		for _, id := range []string{"msn_aa", "msn_aab", "msn_aac", "msn_aad", "msn_aae", "msn_aaf", "msn_ab1", "msn_ab5", "msn_ac"} {
			all = append(all, tx.PutMission(&centurion.Mission{ID: id}))
		}
		return errors.Join(all...)
	})
	for typed, want := range map[string]centurion.Kind{"aa": "", "ab": centurion.KindUsage, "zz": centurion.KindNotFound, "": centurion.KindUsage} {
		if _, err := s.ResolveMission(t.Context(), typed); centurion.KindOf(err) != want || (centurion.HintOf(err) == "") != (want == "") {
			t.Errorf("%q: kind %s, hint %q", typed, centurion.KindOf(err), centurion.HintOf(err))
		}
	}
	for typed, want := range map[string]string{
		"aa": "msn_aa", "msn_aab": "msn_aab", "ac": "msn_ac", "msn_a": `find mission: "msn_a" could be msn_aa, msn_aab, msn_aac, msn_aad, msn_aae, …`,
		"ab": `find mission: "ab" could be msn_ab1, msn_ab5`, "ab3": `find mission: no mission "ab3"; the nearest is msn_ab1 or msn_ab5`, "zz": `find mission: no mission "zz"`,
		"": "find mission: an empty id names nothing", "msn_": "find mission: an empty id names nothing",
	} {
		got, err := s.ResolveMission(t.Context(), typed)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", typed, got, want)
		}
	}
}
