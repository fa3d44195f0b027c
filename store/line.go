package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"centurion"
)

// lineVersion is the first schema in which a message refers to the previous one on its line.
const lineVersion = 3

// messageTable2 is the earlier table of messages.
var messageTable2 = newTable("message", 2, "id", "session", "origin", "unpriced", "data")

// tableOf returns a table in its form in a version of the schema.
func tableOf(t *table, version int) *table {
	if t == messageTable && version < lineVersion {
		return messageTable2
	}
	return t
}

// tablesOf returns the tables with data in their form in a version of the schema.
func tablesOf(version int) []*table {
	all := dataTables()
	for i, t := range all {
		all[i] = tableOf(t, version)
	}
	return all
}

// lines tracks the newest message of each session while messages of an older schema are read in order.
type lines struct{ newest map[string]string }

// newest returns a function that converts rows of table t to the newest schema. Call it for the kept rows, in order, so that a lost
// message leaves no gap.
func newest(t *table) func(*row) (*table, *row) {
	if t != messageTable2 {
		return func(r *row) (*table, *row) { return t, r }
	}
	var l lines
	return func(r *row) (*table, *row) { return messageTable, l.link(r) }
}

// link sets the previous message of a message from an older schema.
func (l *lines) link(r *row) *row {
	if l.newest == nil {
		l.newest = map[string]string{}
	}
	id, session := string(r.cols[0]), string(r.cols[1])
	cols := slices.Insert(slices.Clone(r.cols), 2, sql.RawBytes(l.newest[session]))
	l.newest[session] = id
	return &row{seq: r.seq, sum: r.sum, cols: cols}
}

// addLines makes one line of each session's messages. A damaged row keeps its old checksum, so that the damage is still detected.
func addLines(c *conn) error {
	var l lines
	update := `UPDATE message SET prev = ?, sum = ? WHERE seq = ?`
	err := c.rewrite(messageTable2, messageTable2.selectRow+` ORDER BY seq`, update, func(r *row) []any {
		sum, linked := r.sum, l.link(r)
		if r.sound(messageTable2) {
			sum = messageTable.sum(linked.cols).at(r.seq)
		}
		return []any{string(linked.cols[2]), sum, r.seq}
	})
	if err != nil {
		return fmt.Errorf("lines of messages: %w", err)
	}
	return nil
}

// leaf returns the newest message of a session's current line. last is the message stored last.
func (c *conn) leaf(session, last string) (string, error) {
	leaf := last
	err := c.rows(sessionTable, ` WHERE id = ?`, func(r *row) error {
		if !bytes.Contains(r.data(), []byte(`"rewound":`)) { // rarely the case: the rest need not be parsed
			return nil
		}
		var rec centurion.Session
		if err := json.Unmarshal(r.data(), &rec); err != nil {
			return errDamaged(c.path, r.name(sessionTable), err)
		}
		leaf = rec.Metadata.Leaf(last)
		return nil
	}, session)
	return leaf, err
}

// place sets the previous message of m.
func (tx *Tx) place(m *centurion.Message) error {
	if tx.err != nil {
		return tx.err
	}
	last, known := "", false
	see := func(r *row) error {
		last = string(r.cols[0])
		if known = last == m.ID; known {
			m.Prev = string(r.cols[2])
		}
		return nil
	}
	err := tx.c.rows(messageTable, ` WHERE session = ? ORDER BY seq DESC LIMIT 1`, see, m.SessionID)
	if err != nil || known || last == "" {
		return tx.failed(err)
	}
	newest := last
	if err := tx.c.rows(messageTable, ` WHERE id = ?`, see, m.ID); err != nil || known {
		return tx.failed(err)
	}
	m.Prev, err = tx.c.leaf(m.SessionID, newest)
	return tx.failed(err)
}

// Tree is all messages of a session.
type Tree struct {
	Session  centurion.Session
	Messages []centurion.Message // with their parts, in the order they were stored
	Leaf     string              // the newest message of the current line; empty in a session without messages
}

// Line returns the messages up to one of them, oldest first.
func (t Tree) Line(leaf string) []centurion.Message { return centurion.Line(t.Messages, leaf) }

// Tree returns all messages of a session, in one consistent snapshot; KindNotFound if there is no such session.
func (s *Store) Tree(ctx context.Context, session string) (t Tree, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.snapshot(func() error {
			t, err = tree(c, session)
			return err
		})
	})
	return t, err
}

// Newest returns the number of messages on a session's current line and the id of the newest, without reading their content. An empty
// or unknown session has none.
func (s *Store) Newest(ctx context.Context, session string) (id string, line int, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.snapshot(func() error {
			var all []centurion.Message
			err := c.rows(messageTable, ` WHERE session = ? ORDER BY seq`, func(r *row) error {
				all = append(all, centurion.Message{ID: string(r.cols[0]), Prev: string(r.cols[2])})
				return nil
			}, session)
			if err != nil || len(all) == 0 {
				return err
			}
			if id, err = c.leaf(session, all[len(all)-1].ID); err == nil {
				line = len(centurion.Line(all, id))
			}
			return err
		})
	})
	return id, line, err
}

// Tree is [Store.Tree] within the transaction.
func (tx *Tx) Tree(session string) (Tree, error) {
	if tx.err != nil {
		return Tree{}, tx.err
	}
	t, err := tree(tx.c, session)
	if centurion.KindOf(err) == centurion.KindNotFound {
		return t, err
	}
	return t, tx.failed(err)
}

func tree(c *conn, session string) (Tree, error) {
	found, err := list[centurion.Session](c, sessionTable, ` WHERE id = ?`, session)
	rec, err := first(found, err, sessionTable.name, session)
	if err != nil {
		return Tree{}, err
	}
	t := Tree{Session: rec}
	if t.Messages, err = messages(c, session); err != nil || len(t.Messages) == 0 {
		return t, err
	}
	t.Leaf = rec.Metadata.Leaf(t.Messages[len(t.Messages)-1].ID)
	return t, addParts(c, session, t.Messages)
}
