// Package storetest fills, reads and damages state files, for tests and trials of what package store promises. It is
// not part of the program.
package storetest

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
	"centurion/store"
)

// Open opens a new state file, which is closed when the test ends.
func Open(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Fill writes n rounds of rows to every table, about 6 KB each round.
func Fill(ctx context.Context, s *store.Store, rng *rand.Rand, n int) error {
	text := func() string { return strings.Repeat(fmt.Sprintf("word%d ", rng.IntN(1000)), 1+rng.IntN(60)) }
	for i := range n {
		id := func(kind string) string { return fmt.Sprintf("%s_%04d%08x", kind, i, rng.Uint32()) }
		mission, session, message, task := id("msn"), id("ses"), id("msg"), id("tsk")
		at := centurion.MillisTime(1_700_000_000_000 + int64(i))
		err := s.Update(ctx, func(tx *store.Tx) error {
			puts := []func() error{
				func() error {
					return tx.PutMission(&centurion.Mission{ID: mission, Goal: text(), Status: centurion.MissionRunning, Started: at})
				},
				func() error {
					return tx.PutSession(&centurion.Session{ID: session, Metadata: centurion.SessionMeta{Mission: mission, Address: "0/", System: text()}})
				},
				func() error {
					return tx.PutMessage(&centurion.Message{ID: message, SessionID: session, Role: centurion.RoleUser, Agent: text()})
				},
				func() error {
					return tx.PutPart(&centurion.Part{ID: id("prt"), SessionID: session, MessageID: message, Type: centurion.PartText, Text: text()})
				},
				func() error {
					return tx.PutTask(&centurion.Task{ID: task, Mission: mission, Parent: session, Call: id("call"), Prompt: text(), Created: at})
				},
				func() error {
					return tx.PutReceipt(&centurion.Receipt{ID: id("rcp"), Mission: mission, Task: task, Command: text(), Time: at})
				},
				func() error {
					return tx.PutDelivery(&store.Delivery{ID: id("dlv"), Mission: mission, Session: session, Task: task, Created: at})
				},
				func() error {
					return tx.PutAsk(&store.Ask{ID: id("ask"), Type: store.AskQuestion, Mission: mission, Text: text(), Created: at})
				},
				func() error { _, err := tx.NextSerial(mission, "0/"); return err },
				func() error {
					data, err := json.Marshal(map[string]string{"text": text()})
					if err == nil {
						_, err = tx.Append(centurion.Event{Type: centurion.EventTaskQueued, Mission: mission, Session: session, Task: task, Time: at, Data: data})
					}
					return err
				},
			}
			for _, put := range puts {
				if err := put(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Dump reads everything through every method of a Store that reads, and returns it as lines of JSON. Two states with
// the same content have the same dump. The next serial number of each mission is taken in an update that is undone.
func Dump(ctx context.Context, s *store.Store) (string, error) {
	var b strings.Builder
	d := dumper{out: json.NewEncoder(&b)}
	missions, err := s.Missions(ctx)
	d.add("missions", missions, err)
	d.add("last seq", s.LastSeq(), nil)
	for after := int64(0); d.err == nil; {
		page, err := s.Events(ctx, store.EventQuery{After: after})
		d.add("events", page, err)
		if len(page) == 0 {
			break
		}
		after = page[len(page)-1].Seq
	}
	asks, err := s.Asks(ctx, "", true)
	d.add("open asks", asks, err)
	if len(missions) > 0 {
		latest, err := s.LatestMission(ctx)
		d.add("latest", latest, err)
	}
	for _, m := range missions {
		d.mission(ctx, s, m.ID)
		if d.err != nil {
			break
		}
	}
	return b.String(), d.err
}

// Fail makes a state refuse to read a table, or to write its rows, until undo is called.
func Fail(ctx context.Context, s *store.Store, table string, write bool) (undo func() error, err error) {
	run := func(queries ...string) error {
		db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(s.Path())+"?mode=rw&_pragma=busy_timeout(5000)")
		for _, q := range queries {
			if err == nil {
				_, err = db.ExecContext(ctx, q)
			}
		}
		return errors.Join(err, db.Close())
	}
	if !write {
		return func() error { return run("ALTER TABLE gone RENAME TO " + table) }, run("ALTER TABLE " + table + " RENAME TO gone")
	}
	refuse := func(what string) string {
		return fmt.Sprintf("CREATE TRIGGER no_%s BEFORE %s ON %s BEGIN SELECT RAISE(ABORT, 'refused'); END", what, what, table)
	}
	return func() error { return run("DROP TRIGGER no_insert", "DROP TRIGGER no_update") }, run(refuse("insert"), refuse("update"))
}

type dumper struct {
	out *json.Encoder
	err error
}

func (d *dumper) add(what string, v any, err error) {
	if d.err == nil {
		d.err = err
	}
	if d.err == nil {
		d.err = d.out.Encode(map[string]any{what: v})
	}
}

// errUndone undoes an update.
var errUndone = fmt.Errorf("undone")

func (d *dumper) mission(ctx context.Context, s *store.Store, id string) {
	m, err := s.Mission(ctx, id)
	d.add("mission", m, err)
	name, err := s.ResolveMission(ctx, id)
	d.add("name", name, err)
	sessions, err := s.Sessions(ctx, id)
	d.add("sessions", sessions, err)
	tasks, err := s.Tasks(ctx, id)
	d.add("tasks", tasks, err)
	receipts, err := s.Receipts(ctx, id)
	d.add("receipts", receipts, err)
	deliveries, err := s.Deliveries(ctx, id)
	d.add("deliveries", deliveries, err)
	asks, err := s.Asks(ctx, id, false)
	d.add("asks", asks, err)
	events, err := s.Events(ctx, store.EventQuery{Mission: id, Limit: 1 << 30})
	d.add("events", events, err)
	for _, ses := range sessions {
		one, err := s.Session(ctx, ses.ID)
		d.add("session", one, err)
		messages, err := s.Messages(ctx, ses.ID)
		d.add("messages", messages, err)
		for _, msg := range messages {
			d.add("origin", []any{msg.Origin, msg.Usage.Unpriced}, nil)
		}
		pending, err := s.PendingDeliveries(ctx, ses.ID)
		d.add("pending", pending, err)
		events, err := s.Events(ctx, store.EventQuery{Session: ses.ID, Limit: 1 << 30})
		d.add("events", events, err)
	}
	for _, t := range tasks {
		one, err := s.Task(ctx, t.ID)
		d.add("task", one, err)
	}
	serials := map[string]int{}
	err = s.Update(ctx, func(tx *store.Tx) error {
		for _, ses := range sessions {
			n, err := tx.NextSerial(id, ses.Metadata.Address)
			if err != nil {
				return err
			}
			serials[ses.Metadata.Address] = n
		}
		for _, t := range tasks {
			one, found, err := tx.TaskByCall(t.Parent, t.Call)
			if err != nil {
				return err
			}
			d.add("by call", []any{one, found}, nil)
		}
		return errUndone
	})
	if err == errUndone {
		err = nil
	}
	d.add("serials", serials, err)
}

// page is the size of SQLite's pages here.
const page = 4096

// Mutate damages the state file at path, or its log, as disks and people do, and says what it did. It must not be
// open. It returns "" if there was nothing to damage in the way that rng chose.
func Mutate(rng *rand.Rand, path string) (string, error) {
	file := path
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 && rng.IntN(3) == 0 {
		file += "-wal"
		if rng.IntN(4) == 0 {
			return "removed the log", os.Remove(file)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil || len(b) == 0 {
		return "", err
	}
	before, name, did := string(b), filepath.Base(file), ""
	pages := max(1, len(b)/page)
	at := rng.IntN(pages) * page
	switch rng.IntN(7) {
	case 0, 1:
		n := rng.IntN(len(b) * 8)
		b[n/8] ^= 1 << (n % 8)
		did = fmt.Sprintf("%s: flipped bit %d of byte %d", name, n%8, n/8)
	case 2:
		n := 1 + rng.IntN(64)
		for range n {
			b[rng.IntN(len(b))] = byte(rng.Uint32())
		}
		did = fmt.Sprintf("%s: wrote over %d bytes", name, n)
	case 3:
		n := rng.IntN(len(b))
		if rng.IntN(2) == 0 {
			n -= n % page
		}
		b, did = b[:n], fmt.Sprintf("%s: cut to %d bytes", name, n)
	case 4:
		clear(b[at:min(len(b), at+page)])
		did = fmt.Sprintf("%s: zeroed page %d", name, at/page+1)
	case 5:
		for i := at; i < min(len(b), at+page); i++ {
			b[i] = byte(rng.Uint32())
		}
		did = fmt.Sprintf("%s: filled page %d with noise", name, at/page+1)
	case 6:
		other := rng.IntN(pages) * page
		if n := min(at, other) + page; n <= len(b) && max(at, other)+page <= len(b) {
			kept := string(b[at : at+page])
			copy(b[at:], b[other:other+page])
			copy(b[other:], kept)
		}
		did = fmt.Sprintf("%s: swapped pages %d and %d", name, at/page+1, other/page+1)
	}
	if string(b) == before {
		return "", nil
	}
	return did, os.WriteFile(file, b, 0o600)
}
