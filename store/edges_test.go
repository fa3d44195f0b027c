package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"centurion"
)

// Faults of the disk and of other programs have the kind and the next step that fit them, whoever reports them.
func TestFaultsSayWhatToDo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	s := openAt(t, path)
	mustUpdate(t, s, func(tx *Tx) error { return tx.PutSession(&centurion.Session{ID: "ses_1"}) })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	other := func(f func(c *conn) error) error {
		t.Helper()
		db, err := openDB(path, "rw", 1)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		c, err := connect(t.Context(), db, path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		return f(c)
	}
	full := other(func(c *conn) error {
		return errors.Join(c.script("PRAGMA max_page_count=1"), c.script("CREATE TABLE big AS SELECT zeroblob(1000000)"))
	})
	busy := other(func(c *conn) error {
		if err := c.script("BEGIN IMMEDIATE"); err != nil {
			return err
		}
		return other(func(c *conn) error {
			return errors.Join(c.script("PRAGMA busy_timeout=0"), c.script("BEGIN IMMEDIATE"))
		})
	})
	for name, c := range map[string]struct {
		err  error
		kind centurion.Kind
		hint string
	}{
		"no space":             {&os.PathError{Err: syscall.ENOSPC}, centurion.KindDisk, hintSpace},
		"too large":            {&os.PathError{Err: syscall.EFBIG}, centurion.KindDisk, hintSpace},
		"quota":                {&os.PathError{Err: syscall.EDQUOT}, centurion.KindDisk, hintSpace},
		"failing":              {&os.PathError{Err: syscall.EIO}, centurion.KindDisk, hintDisk},
		"a file as directory":  {&os.PathError{Err: syscall.ENOTDIR}, centurion.KindState, "CENTURION_HOME"},
		"no directory":         {&os.PathError{Err: syscall.ENOENT}, centurion.KindState, "CENTURION_HOME"},
		"after the end":        {sql.ErrConnDone, centurion.KindState, ""},
		"the database is full": {full, centurion.KindDisk, hintSpace},
		"another program":      {busy, centurion.KindState, "close it and try again"},
	} {
		err := fail("write state", path, c.err)
		if hint := centurion.HintOf(err); centurion.KindOf(err) != c.kind || !strings.Contains(hint, c.hint) || (hint == "") != (c.hint == "") {
			t.Errorf("%s: %v is %q (%s), want %q (%s)", name, c.err, centurion.KindOf(err), hint, c.kind, c.hint)
		}
	}
	for what, hint := range map[string]string{"task": "centurion tasks", "ask": "centurion asks", "mission": "centurion ps", "session": "centurion ps"} {
		if err := errNotFound(what, "x"); !strings.Contains(centurion.HintOf(err), hint) || centurion.KindOf(err) != centurion.KindNotFound {
			t.Errorf("%s: %v (%s)", what, err, centurion.HintOf(err))
		}
	}
}

// A head counts for what it says only as a whole: with its magic word, its length and its checksum.
func TestHeadIsReadAsAWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	whole := mark{seq: 7, ticks: 3}
	sealed := func(b []byte) []byte {
		return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	}
	for name, c := range map[string]struct {
		b    []byte
		want mark
	}{
		"whole":         {whole.encode(), whole},
		"shorter":       {whole.encode()[:headSize-1], mark{}},
		"longer":        {append(whole.encode(), 0), mark{}},
		"another magic": {sealed(append([]byte("CENTHEAP"), whole.encode()[8:24]...)), mark{}},
		"another sum":   {append(whole.encode()[:headSize-1], 1), mark{}},
	} {
		if err := os.WriteFile(path+headSuffix, c.b, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := readHead(path); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if err := os.Remove(path + headSuffix); err != nil {
		t.Fatal(err)
	}
	h := openHead(path)
	defer h.close()
	for _, c := range []struct{ seq, ticks, wantSeq, wantTicks int64 }{{9, 0, 9, 0}, {0, 4, 9, 4}, {0, 0, 9, 4}, {12, 0, 12, 0}} {
		if h.advance(c.seq, c.ticks); readHead(path) != (mark{c.wantSeq, c.wantTicks}) {
			t.Errorf("after %+v it says %+v", c, readHead(path))
		}
	}
}

// A commit that only takes something away is known to the head as any other: it cannot get lost unnoticed.
func TestEveryWriteCounts(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	mustUpdate(t, s, func(tx *Tx) error {
		for _, task := range []centurion.Task{{ID: "tsk_1", Mission: "msn_1"}, {ID: "tsk_2", Mission: "msn_1"}} {
			if err := tx.PutTask(&task); err != nil {
				return err
			}
		}
		return nil
	})
	for name, c := range map[string]struct {
		f     func(tx *Tx) error
		grows bool
	}{
		"a task is removed": {func(tx *Tx) error { return tx.RemoveTask("tsk_1", true) }, true},
		"a row is written":  {func(tx *Tx) error { return tx.PutSession(&centurion.Session{ID: "ses_1"}) }, true},
		"a number is given": {func(tx *Tx) error { return second(tx.NextSerial("msn_1", "0")) }, true},
		"it is only read":   {func(tx *Tx) error { return second(tx.Tasks("msn_1")) }, false},
	} {
		before := readHead(s.Path())
		mustUpdate(t, s, c.f)
		if after := readHead(s.Path()); (after.ticks > before.ticks) != c.grows {
			t.Errorf("%s: %+v, before %+v", name, after, before)
		}
	}
}

// A look at a state ends when its caller does, and an empty file in the place of one that had content is told from a new one.
func TestCheckOfWhatIsLost(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	s := openAt(t, path)
	mustUpdate(t, s, func(tx *Tx) error {
		if err := fact(tx, "ses_1"); err != nil {
			return err
		}
		return tx.PutSession(&centurion.Session{ID: "ses_1"})
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Check(t.Context(), path); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(centurion.ErrCancelled)
	if err := Check(ctx, path); centurion.KindOf(err) != centurion.KindCancelled {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := Salvage(ctx, path); centurion.KindOf(err) != centurion.KindCancelled {
		t.Errorf("a repair that was cancelled: %v", err)
	}
	for _, c := range []struct {
		name  string
		spoil func() error
	}{{"emptied", func() error { return os.Truncate(path, 0) }}, {"gone", func() error { return os.Remove(path) }}} {
		name := c.name
		if err := c.spoil(); err != nil {
			t.Fatal(err)
		}
		if err := Check(t.Context(), path); centurion.KindOf(err) != centurion.KindState || !strings.Contains(err.Error(), "1 events are missing") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Open(t.Context(), path); centurion.KindOf(err) != centurion.KindState {
			t.Errorf("%s, opened: %v", name, err)
		}
	}
	if err := os.Remove(path + headSuffix); err != nil {
		t.Fatal(err)
	}
	if err := Check(t.Context(), path); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("without a head: %v", err)
	}
}

// A new state is made whole or not at all: a step that fails leaves a file as if nobody had begun.
func TestNewStateIsMadeWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	_, err := open(t.Context(), path, fstest.MapFS{
		"0001_a.sql": {Data: []byte("CREATE TABLE a (x)")},
		"0002_b.sql": {Data: []byte("CREATE TABLE a (x)")}, // there is one
	})
	if err == nil {
		t.Fatal("it can be opened")
	}
	db, err := openDB(path, "ro", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM sqlite_schema").Scan(&n); err != nil || n != 0 {
		t.Errorf("it has %d objects, %v", n, err)
	}
}

// A migration removes what earlier attempts to copy the state left, and keeps copies of other versions.
func TestMigrationRemovesHalfCopies(t *testing.T) {
	t.Parallel()
	path := unpack(t, olderVersions[0], "whole")
	kept := path + ".v" + string(rune('0'+olderVersions[0]))
	for _, name := range []string{kept + ".tmp1", kept + ".tmp22", path + ".v9.tmp1"} {
		if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(kept + "*"); len(left) != 1 || left[0] != kept {
		t.Errorf("copies: %q", left)
	}
	if isMissing(path + ".v9.tmp1") {
		t.Error("a copy of another version was removed")
	}
}

// What a session has taken in is its own, of its mission, and not what still waits.
func TestTakenDeliveries(t *testing.T) {
	t.Parallel()
	s, now := openTemp(t), centurion.Now()
	mustUpdate(t, s, func(tx *Tx) error {
		for _, d := range []Delivery{
			{ID: "1", Mission: "msn_1", Session: "ses_1", Taken: now}, {ID: "2", Mission: "msn_1", Session: "ses_2", Taken: now},
			{ID: "3", Mission: "msn_1", Session: "ses_1"}, {ID: "4", Mission: "msn_2", Session: "ses_1", Taken: now}, {ID: "5", Mission: "msn_1", Session: "ses_1", Taken: now},
		} {
			if err := tx.PutDelivery(&d); err != nil {
				return err
			}
		}
		ids := func(all []Delivery, err error) string {
			var b strings.Builder
			for _, d := range all {
				b.WriteString(d.ID)
			}
			return b.String()
		}
		if got := ids(tx.TakenDeliveries("msn_1", "ses_1")); got != "15" {
			t.Errorf("taken: %s", got)
		}
		if got := ids(tx.PendingDeliveries("ses_1")); got != "3" {
			t.Errorf("pending: %s", got)
		}
		if got := ids(tx.Deliveries("msn_1")); got != "1235" {
			t.Errorf("all: %s", got)
		}
		return nil
	})
	if got, err := s.PendingDeliveries(t.Context(), "ses_1"); err != nil || len(got) != 1 || got[0].ID != "3" {
		t.Errorf("pending, read: %+v, %v", got, err)
	}
}

// A head that has grown too long is cut: else no commit would ever make it valid again.
func TestHeadTooLong(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	if err := os.WriteFile(path+headSuffix, make([]byte, headSize+9), 0o600); err != nil {
		t.Fatal(err)
	}
	h := openHead(path)
	defer h.close()
	h.advance(7, 0)
	if got := readHead(path); got.seq != 7 {
		t.Errorf("it says %+v", got)
	}
}
