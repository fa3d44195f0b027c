package store

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"centurion"
)

// saying puts messages with these ids into a session, each under the newest of the current line.
func saying(t *testing.T, s *Store, session string, at int64, ids ...string) {
	t.Helper()
	mustUpdate(t, s, func(tx *Tx) error {
		for _, id := range ids {
			m := centurion.Message{ID: id, SessionID: session, Role: centurion.RoleUser, Time: centurion.MessageTime{Created: at}}
			if err := tx.PutMessage(&m); err != nil {
				return err
			}
			if err := tx.PutPart(&centurion.Part{ID: "prt_" + id, SessionID: session, MessageID: id, Type: centurion.PartText, Text: "text of " + id}); err != nil {
				return err
			}
		}
		return nil
	})
}

// backTo lets a session go on under a message.
func backTo(t *testing.T, s *Store, session, leaf string) {
	t.Helper()
	mustUpdate(t, s, func(tx *Tx) error {
		tree, err := tx.Tree(session)
		if err != nil {
			return err
		}
		tree.Session.Metadata.Rewound = &centurion.Rewound{Leaf: leaf, Last: tree.Messages[len(tree.Messages)-1].ID}
		return tx.PutSession(&tree.Session)
	})
}

func path(t *testing.T, s *Store, session string) string {
	t.Helper()
	line, err := s.Messages(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	return names(line)
}

func names(line []centurion.Message) string {
	var ids []string
	for _, m := range line {
		if m.Text() != "text of "+m.ID {
			ids = append(ids, "without its part:")
		}
		ids = append(ids, m.ID)
	}
	return strings.Join(ids, " ")
}

// OPAL-29, OPAL-30, OPAL-31, OPAL-34, OPAL-35: what was said stands in the store when the call returns, each message under the one before
// it, and the path follows the current leaf, also after the file is opened again. A message that is written once more
// keeps its place.
func TestLines(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state.db")
	s := openAt(t, file)
	rec := centurion.Session{ID: "ses_1", Metadata: centurion.SessionMeta{Mission: "msn_1"}}
	mustUpdate(t, s, func(tx *Tx) error { return tx.PutSession(&rec) })
	for _, step := range []struct {
		back string
		say  []string
		want string
	}{
		{"", []string{"a", "b", "c"}, "a b c"},
		{"a", nil, "a"},
		{"", []string{"d", "e"}, "a d e"},
		{"b", []string{"f"}, "a b f"},
		{"e", nil, "a d e"},
		{"c", []string{"g", "h"}, "a b c g h"},
		{"h", []string{"i"}, "a b c g h i"},
	} {
		if step.back != "" {
			backTo(t, s, "ses_1", step.back)
		}
		saying(t, s, "ses_1", 1, step.say...)
		if got := path(t, s, "ses_1"); got != step.want {
			t.Errorf("after %+v: %s", step, got)
		}
		if newest, n, err := s.Newest(t.Context(), "ses_1"); err != nil || !strings.HasSuffix(step.want, newest) || n != len(strings.Fields(step.want)) {
			t.Errorf("after %+v the newest of %d is %s, %v", step, n, newest, err)
		}
	}
	again := centurion.Message{ID: "b", SessionID: "ses_1", Role: centurion.RoleUser, Agent: "changed"}
	mustUpdate(t, s, func(tx *Tx) error { return tx.PutMessage(&again) })
	if again.Prev != "a" {
		t.Errorf("it stands under %q", again.Prev)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, file)
	tree, err := s.Tree(t.Context(), "ses_1")
	if err != nil || tree.Leaf != "i" || names(tree.Messages) != "a b c d e f g h i" || tree.Messages[1].Agent != "changed" {
		t.Errorf("%s, leaf %s, %v", names(tree.Messages), tree.Leaf, err)
	}
	for leaf, want := range map[string]string{"f": "a b f", "e": "a d e", "a": "a", "none": ""} {
		if got := names(tree.Line(leaf)); got != want {
			t.Errorf("the line to %s is %s", leaf, got)
		}
	}
	if newest, n, err := s.Newest(t.Context(), "ses_2"); newest != "" || n != 0 || err != nil {
		t.Error(newest, n, err)
	}
	if _, err := s.Tree(t.Context(), "ses_2"); centurion.KindOf(err) != centurion.KindNotFound {
		t.Error(err)
	}
}

// LOOP-78: messages of the same moment keep the order in which they were stored, on every line.
func TestLineOrder(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	mustUpdate(t, s, func(tx *Tx) error { return tx.PutSession(&centurion.Session{ID: "ses_1"}) })
	saying(t, s, "ses_1", 7, "z", "m", "a")
	backTo(t, s, "ses_1", "z")
	saying(t, s, "ses_1", 7, "y", "b")
	if got := path(t, s, "ses_1"); got != "z y b" {
		t.Error(got)
	}
	if tree, err := s.Tree(t.Context(), "ses_1"); err != nil || names(tree.Line("a")) != "z m a" {
		t.Error(names(tree.Line("a")), err)
	}
}

// OPAL-36: who asks while others write gets a line as it stood at one moment: whole, with its parts.
func TestLineSnapshot(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	mustUpdate(t, s, func(tx *Tx) error { return tx.PutSession(&centurion.Session{ID: "ses_1"}) })
	saying(t, s, "ses_1", 1, "root")
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		defer close(done)
		for i := range 40 {
			saying(t, s, "ses_1", 1, fmt.Sprintf("%da", i), fmt.Sprintf("%db", i))
			backTo(t, s, "ses_1", "root")
		}
	})
	for range 3 {
		wg.Go(func() {
			for {
				got := path(t, s, "ses_1")
				var i, j int
				if n, _ := fmt.Sscanf(got, "root %da %db", &i, &j); got != "root" && (n != 2 || i != j || strings.Count(got, " ") != 2) {
					t.Errorf("half a line: %s", got)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	wg.Wait()
}

// OPAL-36: a message and its parts, changed together, are never read apart.
func TestMessageSnapshot(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	put := func(n string) {
		mustUpdate(t, s, func(tx *Tx) error {
			m := centurion.Message{ID: "msg_1", SessionID: "ses_1", Role: centurion.RoleUser, Agent: n}
			if err := tx.PutMessage(&m); err != nil {
				return err
			}
			return tx.PutPart(&centurion.Part{ID: "prt_1", SessionID: "ses_1", MessageID: m.ID, Type: centurion.PartText, Text: n})
		})
	}
	put("0")
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		defer close(done)
		for i := range 60 {
			put(fmt.Sprint(i))
		}
	})
	for range 3 {
		wg.Go(func() {
			for {
				line, err := s.Messages(t.Context(), "ses_1")
				if err != nil || len(line) != 1 || line[0].Agent != line[0].Text() {
					t.Errorf("%+v, %v", line, err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	wg.Wait()
}

// TRIAL R19, OPAL-29: a row that was damaged before its file was brought up to date is still found to be.
func TestMigrateDamagedMessage(t *testing.T) {
	t.Parallel()
	file := unpack(t, 2, "whole")
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	var session string
	err = db.QueryRowContext(t.Context(), "UPDATE message SET origin = 'nobody' WHERE seq = 5 RETURNING session").Scan(&session)
	if err != nil || db.Close() != nil {
		t.Fatal(err)
	}
	s := openAt(t, file)
	if _, err := s.Messages(t.Context(), session); centurion.KindOf(err) != centurion.KindState {
		t.Errorf("the row is read: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	report, err := Salvage(t.Context(), file)
	if err != nil {
		t.Fatal(report, err)
	}
	s = openAt(t, file)
	line, err := s.Messages(t.Context(), session)
	if err != nil || len(line) < 3 {
		t.Errorf("%d messages are left, %v", len(line), err)
	}
}

// R19, OPAL-29: a tree is repaired with its branches; where a message was lost, its line goes on with the one before.
func TestSalvageTree(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state.db")
	s := openAt(t, file)
	mustUpdate(t, s, func(tx *Tx) error { return tx.PutSession(&centurion.Session{ID: "ses_1"}) })
	saying(t, s, "ses_1", 1, "msg_a", "msg_b", "msg_c", "msg_d")
	backTo(t, s, "ses_1", "msg_b")
	saying(t, s, "ses_1", 1, "msg_e")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lost := []byte(`{"id":"msg_c"`)
	if n := bytes.Count(b, lost); n != 1 {
		t.Fatalf("%d rows", n)
	}
	if err := os.WriteFile(file, bytes.Replace(b, lost, []byte(`{"id":"msg_X"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if report, err := Salvage(t.Context(), file); err != nil || len(report.Aside) == 0 {
		t.Fatal(report, err)
	}
	s = openAt(t, file)
	tree, err := s.Tree(t.Context(), "ses_1")
	if err != nil || names(tree.Line(tree.Leaf)) != "msg_a msg_b msg_e" || names(tree.Line("msg_d")) != "msg_a msg_b msg_d" {
		t.Errorf("%s and %s, %v", names(tree.Line(tree.Leaf)), names(tree.Line("msg_d")), err)
	}
}
