package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"centurion"
)

// eventPage is the default limit of [EventQuery].
const eventPage = 1000

// EventQuery selects journal rows; its zero fields select everything.
type EventQuery struct {
	After   int64 // only rows with a higher sequence number
	Limit   int   // the maximum number of rows; 0 means 1000
	Mission string
	Session string
	Task    string
	Types   []centurion.EventType
}

// read runs f on a connection of the read pool. It waits for one until ctx ends; once started, f is completed.
func (s *Store) read(ctx context.Context, f func(c *conn) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var c *conn
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.closing:
		return errClosed("read state")
	case c = <-s.free:
	}
	defer func() { s.free <- c }()
	if c == nil {
		opened, err := connect(context.WithoutCancel(ctx), s.readDB, s.path)
		if err != nil {
			return err
		}
		c = opened
		if err := c.script("PRAGMA query_only=1"); err != nil {
			return c.fail("read state", err)
		}
	}
	return c.fail("read state", f(c))
}

// list returns the nouns of the selected rows of t.
func list[T any](c *conn, t *table, rest string, args ...any) ([]T, error) {
	var found []T
	err := c.rows(t, rest, func(r *row) error {
		var v T
		if err := json.Unmarshal(r.data(), &v); err != nil {
			return errDamaged(c.path, r.name(t), err)
		}
		found = append(found, v)
		return nil
	}, args...)
	return found, err
}

func first[T any](found []T, err error, what, id string) (T, error) {
	if err == nil && len(found) == 0 {
		err = errNotFound(what, id)
	}
	if err != nil {
		var zero T
		return zero, err
	}
	return found[0], nil
}

func readList[T any](ctx context.Context, s *Store, t *table, rest string, args ...any) (found []T, err error) {
	err = s.read(ctx, func(c *conn) error {
		found, err = list[T](c, t, rest, args...)
		return err
	})
	return found, err
}

func readOne[T any](ctx context.Context, s *Store, t *table, id string) (T, error) {
	found, err := readList[T](ctx, s, t, ` WHERE id = ?`, id)
	return first(found, err, t.name, id)
}

// Missions returns all missions of the project, newest first.
func (s *Store) Missions(ctx context.Context) ([]centurion.Mission, error) {
	return readList[centurion.Mission](ctx, s, missionTable, ` ORDER BY seq DESC`)
}

// Mission returns a mission; KindNotFound if there is none with this id.
func (s *Store) Mission(ctx context.Context, id string) (centurion.Mission, error) {
	return readOne[centurion.Mission](ctx, s, missionTable, id)
}

// LatestMission returns the mission started last; KindNotFound if the project has none.
func (s *Store) LatestMission(ctx context.Context) (centurion.Mission, error) {
	found, err := readList[centurion.Mission](ctx, s, missionTable, ` ORDER BY seq DESC LIMIT 1`)
	if err == nil && len(found) == 0 {
		return centurion.Mission{}, &centurion.Error{Op: "read state", Kind: centurion.KindNotFound,
			Msg: "this project has no mission yet", Hint: "start one with `centurion run \"GOAL\"`"}
	}
	return first(found, err, "mission", "")
}

// Session returns a session; KindNotFound if there is none with this id.
func (s *Store) Session(ctx context.Context, id string) (centurion.Session, error) {
	return readOne[centurion.Session](ctx, s, sessionTable, id)
}

// Sessions returns the sessions of a mission, oldest first.
func (s *Store) Sessions(ctx context.Context, mission string) ([]centurion.Session, error) {
	return readList[centurion.Session](ctx, s, sessionTable, ` WHERE mission = ? ORDER BY seq`, mission)
}

// SessionsIn returns the sessions with these ids, or with missions those of these missions, oldest first.
func (s *Store) SessionsIn(ctx context.Context, missions bool, ids []string) ([]centurion.Session, error) {
	column := map[bool]string{true: "mission", false: "id"}[missions]
	list, err := json.Marshal(ids) // one parameter, however many there are
	if err != nil {
		return nil, err
	}
	return readList[centurion.Session](ctx, s, sessionTable, ` WHERE `+column+` IN (SELECT value FROM json_each(?)) ORDER BY seq`, string(list))
}

// Messages returns the messages of a session's current line with their parts, in one consistent snapshot, oldest first. An empty or
// unknown session has none. [Store.Tree] also returns those of other lines.
func (s *Store) Messages(ctx context.Context, session string) ([]centurion.Message, error) {
	var found []centurion.Message
	err := s.read(ctx, func(c *conn) error {
		return c.snapshot(func() (err error) {
			if found, err = messages(c, session); err != nil || len(found) == 0 {
				return err
			}
			leaf, err := c.leaf(session, found[len(found)-1].ID)
			if err != nil {
				return err
			}
			found = centurion.Line(found, leaf)
			return addParts(c, session, found)
		})
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Message returns a message of a session with those of its parts that are named, in their order, or with all if none is. The error has
// centurion.KindNotFound if the session has no such message.
func (s *Store) Message(ctx context.Context, session, id string, parts ...string) (centurion.Message, error) {
	found := make([]centurion.Message, 0, 1)
	err := s.read(ctx, func(c *conn) error {
		return c.snapshot(func() (err error) {
			if found, err = messagesWhere(c, ` WHERE id = ? AND session = ?`, id, session); err != nil || len(found) == 0 {
				return err
			}
			if len(parts) == 0 {
				return addPartsWhere(c, found, ` WHERE session = ? AND message = ? ORDER BY seq`, session, id)
			}
			for _, part := range parts {
				if err := addPartsWhere(c, found, ` WHERE id = ? AND message = ?`, part, id); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return first(found, err, messageTable.name, id)
}

func messages(c *conn, session string) ([]centurion.Message, error) {
	return messagesWhere(c, ` WHERE session = ? ORDER BY seq`, session)
}

func messagesWhere(c *conn, where string, args ...any) ([]centurion.Message, error) {
	var found []centurion.Message
	err := c.rows(messageTable, where, func(r *row) error {
		var m centurion.Message
		if err := m.UnmarshalJSON(r.data()); err != nil {
			return errDamaged(c.path, r.name(messageTable), err)
		}
		m.Prev, m.Origin, m.Usage.Unpriced = string(r.cols[2]), centurion.Origin(r.cols[3]), string(r.cols[4]) == "1"
		found = append(found, m)
		return nil
	}, args...)
	return found, err
}

func addParts(c *conn, session string, to []centurion.Message) error {
	return addPartsWhere(c, to, ` WHERE session = ? ORDER BY seq`, session)
}

func addPartsWhere(c *conn, to []centurion.Message, where string, args ...any) error {
	index := make(map[string]*centurion.Message, len(to))
	for i := range to {
		index[to[i].ID] = &to[i]
	}
	return c.rows(partTable, where, func(r *row) error {
		var p centurion.Part
		if err := p.UnmarshalJSON(r.data()); err != nil {
			return errDamaged(c.path, r.name(partTable), err)
		}
		p.Usage.Unpriced = string(r.cols[3]) == "1"
		if m := index[p.MessageID]; m != nil {
			m.Parts = append(m.Parts, p)
		}
		return nil
	}, args...)
}

// Tasks returns the tasks of a mission, oldest first.
func (s *Store) Tasks(ctx context.Context, mission string) ([]centurion.Task, error) {
	return readList[centurion.Task](ctx, s, taskTable, ` WHERE mission = ? ORDER BY seq`, mission)
}

// Task returns a task; KindNotFound if there is none with this id.
func (s *Store) Task(ctx context.Context, id string) (centurion.Task, error) {
	return readOne[centurion.Task](ctx, s, taskTable, id)
}

// TaskByCall returns the task delegated by a session's tool call, as [Tx.TaskByCall] does.
func (s *Store) TaskByCall(ctx context.Context, session, call string) (centurion.Task, bool, error) {
	found, err := readList[centurion.Task](ctx, s, taskTable, byCall, session, call)
	return newestOf(found, err)
}

func newestOf(found []centurion.Task, err error) (centurion.Task, bool, error) {
	if err != nil || len(found) == 0 {
		return centurion.Task{}, false, err
	}
	return found[0], true, nil
}

// Receipts returns the receipts of a mission, oldest first.
func (s *Store) Receipts(ctx context.Context, mission string) ([]centurion.Receipt, error) {
	return readList[centurion.Receipt](ctx, s, receiptTable, ` WHERE mission = ? ORDER BY seq`, mission)
}

// Deliveries returns the deliveries of a mission, taken and pending, oldest first.
func (s *Store) Deliveries(ctx context.Context, mission string) ([]Delivery, error) {
	return readList[Delivery](ctx, s, deliveryTable, ` WHERE mission = ? ORDER BY seq`, mission)
}

// PendingDeliveries returns the pending deliveries to a session, oldest first.
func (s *Store) PendingDeliveries(ctx context.Context, session string) ([]Delivery, error) {
	return readList[Delivery](ctx, s, deliveryTable, ` WHERE session = ? AND taken = 0 ORDER BY seq`, session)
}

// Asks returns the asks of a mission, or of all missions if it is empty, oldest first. With open it returns only unanswered ones.
func (s *Store) Asks(ctx context.Context, mission string, open bool) ([]Ask, error) {
	var where []string
	var args []any
	if mission != "" {
		where, args = append(where, "mission = ?"), append(args, mission)
	}
	if open {
		where = append(where, "answered = 0")
	}
	rest := ""
	if len(where) > 0 {
		rest = ` WHERE ` + strings.Join(where, " AND ")
	}
	return readList[Ask](ctx, s, askTable, rest+` ORDER BY seq`, args...)
}

// Events returns the selected journal rows by sequence number. Fewer than the limit means that there are no more. For a session or task
// it reads all rows of the mission in q, or all rows if there is none.
func (s *Store) Events(ctx context.Context, q EventQuery) ([]centurion.Event, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = eventPage
	}
	rest, args := ` WHERE seq > ?`, []any{q.After}
	if q.Mission != "" {
		rest, args = rest+` AND mission = ?`, append(args, q.Mission)
	}
	rest += ` ORDER BY seq` // without LIMIT ?, which makes SQLite recompile the statement each time
	var found []centurion.Event
	err := s.read(ctx, func(c *conn) error {
		err := c.rows(journalTable, rest, func(r *row) error {
			// Filtered here, after the checksum: SQLite would skip rows with a damaged session, task or type.
			if !q.selects(r) {
				return nil
			}
			ms, err := strconv.ParseInt(string(r.cols[0]), 10, 64)
			if err != nil {
				return errDamaged(c.path, r.name(journalTable), err)
			}
			found = append(found, centurion.Event{Seq: r.seq, Time: centurion.MillisTime(ms), Type: centurion.EventType(r.cols[1]),
				Mission: string(r.cols[2]), Session: string(r.cols[3]), Task: string(r.cols[4]), Data: slices.Clone([]byte(r.data()))})
			if len(found) == limit {
				return errEnough
			}
			return nil
		}, args...)
		if err == errEnough {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// errEnough ends a read before its last row.
var errEnough = errors.New("enough")

// selects reports whether a row of q's mission is selected.
func (q *EventQuery) selects(r *row) bool {
	return (q.Session == "" || q.Session == string(r.cols[3])) && (q.Task == "" || q.Task == string(r.cols[4])) &&
		(len(q.Types) == 0 || slices.Contains(q.Types, centurion.EventType(r.cols[1])))
}

// ResolveMission returns the id of the mission with this id or prefix, with or without "msn_". KindNotFound if there is none, KindUsage
// if there are several.
func (s *Store) ResolveMission(ctx context.Context, prefix string) (string, error) {
	return s.resolve(ctx, missionTable, centurion.PrefixMission, prefix)
}

// ResolveTask is [Store.ResolveMission] for tasks.
func (s *Store) ResolveTask(ctx context.Context, prefix string) (string, error) {
	return s.resolve(ctx, taskTable, centurion.PrefixTask, prefix)
}

// ResolveSession is [Store.ResolveMission] for sessions.
func (s *Store) ResolveSession(ctx context.Context, prefix string) (string, error) {
	return s.resolve(ctx, sessionTable, centurion.PrefixSession, prefix)
}

// named limits the candidates named in an error.
const named = 5

func (s *Store) resolve(ctx context.Context, t *table, kind centurion.Prefix, typed string) (string, error) {
	full := typed
	if !strings.HasPrefix(typed, string(kind)+"_") {
		full = string(kind) + "_" + typed
	}
	if typed == "" || full == string(kind)+"_" {
		return "", &centurion.Error{Op: "find " + t.name, Kind: centurion.KindUsage, Msg: "an empty id names nothing", Hint: listHint(t.name)}
	}
	var found, near []string
	few := ` WHERE id >= ? AND id < ? ORDER BY id LIMIT ` + strconv.Itoa(named+1)
	err := s.read(ctx, func(c *conn) (err error) {
		// 0x7f comes after every character of an id.
		if found, err = ids(c, t, few, full, full+"\x7f"); err != nil || len(found) > 0 {
			return err
		}
		near, err = neighbours(c, t, full)
		return err
	})
	switch {
	case err != nil:
		return "", err
	case len(found) > 0 && (len(found) == 1 || found[0] == full):
		return found[0], nil
	case len(found) > named:
		found[named] = "…"
		fallthrough
	case len(found) > 1:
		return "", &centurion.Error{Op: "find " + t.name, Kind: centurion.KindUsage,
			Msg: fmt.Sprintf("%q could be %s", typed, strings.Join(found, ", ")), Hint: "type more of the id"}
	}
	e := &centurion.Error{Op: "find " + t.name, Kind: centurion.KindNotFound, Msg: fmt.Sprintf("no %s %q", t.name, typed), Hint: listHint(t.name)}
	if len(near) > 0 {
		e.Msg += "; the nearest is " + strings.Join(near, " or ")
	}
	return "", e
}

// neighbours returns the ids just before and after a place in their order, if they share at least the beginning of their time with it.
func neighbours(c *conn, t *table, full string) ([]string, error) {
	const shared = len("msn_") + 2
	if len(full) < shared {
		return nil, nil
	}
	var near []string
	for _, q := range []string{`id < ? ORDER BY id DESC`, `id > ? ORDER BY id`} {
		found, err := ids(c, t, ` WHERE `+q+` LIMIT 1`, full)
		if err != nil {
			return nil, err
		}
		for _, id := range found {
			if strings.HasPrefix(id, full[:shared]) {
				near = append(near, id)
			}
		}
	}
	return near, nil
}

// ids returns the ids of the selected rows of t.
func ids(c *conn, t *table, rest string, args ...any) ([]string, error) {
	var found []string
	err := c.rows(t, rest, func(r *row) error {
		found = append(found, string(r.cols[0]))
		return nil
	}, args...)
	return found, err
}
