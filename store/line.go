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

// lineVersion is the first schema in which a message knows the one before it on its line.
const lineVersion = 3

// messageTable2 is the table of messages before that.
var messageTable2 = newTable("message", 2, "id", "session", "origin", "unpriced", "data")

// tableOf returns a table as it was in a version of the schema.
func tableOf(t *table, version int) *table {
	if t == messageTable && version < lineVersion {
		return messageTable2
	}
	return t
}

// tablesOf returns the tables with data as they were in a version of the schema.
func tablesOf(version int) []*table {
	all := dataTables()
	for i, t := range all {
		all[i] = tableOf(t, version)
	}
	return all
}

// lines remembers the newest message of each session while messages of an older schema are read in their order.
type lines struct{ newest map[string]string }

// newest returns what makes a row of the newest schema out of a row of table t. It is to be called for the rows that are
// kept, in their order, so that a message that was lost leaves no gap.
func newest(t *table) func(*row) (*table, *row) {
	if t != messageTable2 {
		return func(r *row) (*table, *row) { return t, r }
	}
	var l lines
	return func(r *row) (*table, *row) { return messageTable, l.link(r) }
}

// link gives a message of an older schema the message before it.
func (l *lines) link(r *row) *row {
	if l.newest == nil {
		l.newest = map[string]string{}
	}
	id, session := string(r.cols[0]), string(r.cols[1])
	cols := slices.Insert(slices.Clone(r.cols), 2, sql.RawBytes(l.newest[session]))
	l.newest[session] = id
	return &row{seq: r.seq, sum: r.sum, cols: cols}
}

// addLines makes one line of each session's messages. A row that is not what was written keeps its old checksum, so that
// it is still found to be damaged.
func addLines(c *conn) error {
	type stamp struct {
		seq, sum int64
		prev     string
	}
	var stamps []stamp
	var l lines
	err := c.rawRows(messageTable2, messageTable2.selectRow+` ORDER BY seq`, func(r *row) error {
		sound := r.sound(messageTable2)
		linked := l.link(r)
		s := stamp{seq: r.seq, sum: r.sum, prev: string(linked.cols[2])}
		if sound {
			sum := messageTable.checksum()
			for _, col := range linked.cols {
				sum = sum.addBytes(col)
			}
			s.sum = sum.at(r.seq)
		}
		stamps = append(stamps, s)
		return nil
	})
	for _, s := range stamps {
		if err != nil {
			break
		}
		_, err = c.exec(`UPDATE message SET prev = ?, sum = ? WHERE seq = ?`, s.prev, s.sum, s.seq)
	}
	if err != nil {
		return fmt.Errorf("lines of messages: %w", err)
	}
	return nil
}

// leaf returns the newest message of a session's current line. Last is the message that was stored last.
func (c *conn) leaf(session, last string) (string, error) {
	leaf := last
	err := c.rows(sessionTable, ` WHERE id = ?`, func(r *row) error {
		if !bytes.Contains(r.data(), []byte(`"rewound":`)) { // hardly any ever was: the rest need not be read
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

// place fills in the message before m.
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

// Tree is everything that was ever said in a session.
type Tree struct {
	Session  centurion.Session
	Messages []centurion.Message // with their parts, in the order in which they were stored
	Leaf     string              // the newest message of the current line; empty in a session without messages
}

// Line returns the messages up to one of them, oldest first.
func (t Tree) Line(leaf string) []centurion.Message { return centurion.Line(t.Messages, leaf) }

// Tree returns all messages of a session, as they stood at one moment; KindNotFound if there is no such session.
func (s *Store) Tree(ctx context.Context, session string) (t Tree, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.snapshot(func() error {
			t, err = tree(c, session)
			return err
		})
	})
	return t, err
}

// Newest returns how many messages a session's current line has and the id of the newest of them, without reading what was
// said. A session without messages, or an unknown one, has none.
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

// Tree does what [Store.Tree] does, inside the transaction.
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
