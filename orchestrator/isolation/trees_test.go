package isolation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
	"centurion/store"
	"centurion/tools"
	"centurion/worktree"
)

// What a call of the mission's own agent has named is what it changed, even if others write at the same time. Calls of a turn are taken together
// only while nobody else writes: a revert of the turn would take back the work of others.
func TestTurnsOfTheOwnAgent(t *testing.T) {
	t.Parallel()
	m, s := kept(t, centurion.Mission{Status: centurion.MissionRunning})
	dir, home := t.TempDir(), t.TempDir()
	m.project.openShadow = func(ctx context.Context) (*worktree.Shadow, error) {
		return worktree.OpenShadow(ctx, worktree.Options{Dir: dir, Home: home})
	}
	if err := s.Update(t.Context(), func(tx *store.Tx) error {
		return errors.Join(tx.PutSession(&centurion.Session{ID: "ses_0"}), tx.PutMessage(&centurion.Message{ID: "msg_1", SessionID: "ses_0", Role: centurion.RoleUser}),
			tx.PutMessage(&centurion.Message{ID: "msg_2", SessionID: "ses_0", Role: centurion.RoleAssistant, ParentID: "msg_1"}))
	}); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		named, other string // files that are written during the call
		want         string // of the turn
	}{
		{"", "", ""},
		{"a", "", "[a]"},
		{"b", "", "[a b]"},
		{"c", "others", "[a b] [c]"},
		{"d", "", "[a b] [c d]"},
		{"", "", "[a b] [c d]"},
	} {
		after, err := m.RecordTree(t.Context(), &Seat{Holder: "commander"}, &tools.Call{ID: fmt.Sprint("call_", i)}, tools.Effect{})
		if err != nil {
			t.Fatal(err)
		}
		var res tools.Result
		for _, name := range []string{c.named, c.other} {
			if name != "" {
				err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte("x\n"), 0o600))
			}
		}
		if c.named != "" {
			res.Files = []string{c.named}
		}
		msg, merr := centurion.Message{}, error(nil)
		if err = errors.Join(err, after(t.Context(), res)); err == nil {
			msg, merr = s.Message(t.Context(), "ses_0", "msg_1")
		}
		if err := errors.Join(err, merr); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, l := range msg.Wrote {
			got += fmt.Sprint(centurion.Paths(l.Files), " ")
		}
		if got = strings.TrimSpace(got); got != c.want {
			t.Errorf("after %q beside %q: %s, want %s", c.named, c.other, got, c.want)
		}
	}
	rec, err := s.Mission(t.Context(), "msn_1")
	if err != nil || len(rec.Wrote) != 1 || fmt.Sprint(centurion.Paths(rec.Wrote[0].Files)) != "[a b c d]" {
		t.Errorf("of the mission: %+v, %v", rec.Wrote, err)
	}
}
