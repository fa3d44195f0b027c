package store

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"centurion"
	"centurion/guard"
)

const victimEnv = "CENTURION_STORE_VICTIM"

// victim writes for ever, from several goroutines, and prints each sequence number once it is acknowledged.
func victim(path string) {
	s, err := Open(context.Background(), path)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	var g guard.Group
	for range 8 {
		g.Go("victim", func() error {
			for {
				var seq int64
				err := s.Update(context.Background(), func(tx *Tx) (err error) {
					p := benchPart("ses_1", "msg_1")
					if err := tx.PutPart(p); err != nil {
						return err
					}
					seq, err = tx.Append(centurion.Event{Type: centurion.EventPartUpdated, Session: p.ID})
					return err
				})
				if err != nil {
					return err
				}
				fmt.Println(seq)
			}
		})
	}
	fmt.Println(g.Wait())
	os.Exit(1)
}

// ORCH-33, IKI-82: an acknowledged update survives a killed process, and its journal row and its part stand or fall together.
func TestKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	var newest int64
	for range 2 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), victimEnv+"="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		told := map[int64]bool{}
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			n, err := strconv.ParseInt(lines.Text(), 10, 64)
			if err != nil {
				break // what went wrong
			}
			told[n] = true
			if len(told) == 60 {
				_ = cmd.Process.Kill()
			}
		}
		_ = cmd.Wait()
		if len(told) < 60 {
			t.Fatalf("the process ended after %d updates: %s", len(told), lines.Text())
		}

		s := openAt(t, path)
		found, err := s.Events(t.Context(), EventQuery{After: newest, Limit: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range found {
			delete(told, e.Seq)
			if n := count(t, s, `SELECT count(*) FROM part WHERE id = '`+e.Session+`'`); n != 1 {
				t.Errorf("journal row %d without its part", e.Seq)
			}
		}
		if parts, rows := count(t, s, `SELECT count(*) FROM part`), count(t, s, `SELECT count(*) FROM journal`); parts != rows {
			t.Errorf("%d parts and %d journal rows", parts, rows)
		}
		for n := range told {
			t.Errorf("acknowledged row %d is lost", n)
		}
		newest = s.LastSeq()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func count(t *testing.T, s *Store, query string) int {
	t.Helper()
	var n int
	err := s.read(t.Context(), func(c *conn) error { return c.row(query).Scan(&n) })
	if err != nil {
		t.Error(err) // not Fatal: it is called from other goroutines too
	}
	return n
}
