package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"

	"centurion"
)

// eventPage is the default limit of [EventQuery].
const eventPage = 1000

// EventQuery selects journal rows; its zero fields select everything.
type EventQuery struct {
	After   int64 // only rows with a higher sequence number
	Limit   int   // at most so many rows; 0 means 1000
	Mission string
	Session string
	Task    string
	Types   []centurion.EventType
}

// read runs f on a connection of the read pool. It waits for one until ctx ends; what was begun is finished.
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

// list returns the nouns whose JSON a query selects.
func list[T any](c *conn, query string, args ...any) ([]T, error) {
	var found []T
	err := c.each(func(scan func(...any) error) error {
		var data sql.RawBytes
		if err := scan(&data); err != nil {
			return err
		}
		var v T
		if err := json.Unmarshal(data, &v); err != nil {
			return errDamaged(c.path, fmt.Sprintf("row of type %T", v), err)
		}
		found = append(found, v)
		return nil
	}, query, args...)
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

func readList[T any](ctx context.Context, s *Store, query string, args ...any) (found []T, err error) {
	err = s.read(ctx, func(c *conn) error {
		found, err = list[T](c, query, args...)
		return err
	})
	return found, err
}

func readOne[T any](ctx context.Context, s *Store, table, id string) (T, error) {
	found, err := readList[T](ctx, s, `SELECT data FROM `+table+` WHERE id = ?`, id)
	return first(found, err, table, id)
}

// Missions returns all missions of the project, newest first.
func (s *Store) Missions(ctx context.Context) ([]centurion.Mission, error) {
	return readList[centurion.Mission](ctx, s, `SELECT data FROM mission ORDER BY seq DESC`)
}

// Mission returns a mission; KindNotFound if there is none with this id.
func (s *Store) Mission(ctx context.Context, id string) (centurion.Mission, error) {
	return readOne[centurion.Mission](ctx, s, "mission", id)
}

// LatestMission returns the mission that was started last; KindNotFound if the project has none.
func (s *Store) LatestMission(ctx context.Context) (centurion.Mission, error) {
	found, err := readList[centurion.Mission](ctx, s, `SELECT data FROM mission ORDER BY seq DESC LIMIT 1`)
	if err == nil && len(found) == 0 {
		return centurion.Mission{}, &centurion.Error{Op: "read state", Kind: centurion.KindNotFound,
			Msg: "this project has no mission yet", Hint: "start one with `centurion run \"GOAL\"`"}
	}
	return first(found, err, "mission", "")
}

// Session returns a session; KindNotFound if there is none with this id.
func (s *Store) Session(ctx context.Context, id string) (centurion.Session, error) {
	return readOne[centurion.Session](ctx, s, "session", id)
}

// Sessions returns the sessions of a mission, oldest first.
func (s *Store) Sessions(ctx context.Context, mission string) ([]centurion.Session, error) {
	return readList[centurion.Session](ctx, s, `SELECT data FROM session WHERE mission = ? ORDER BY seq`, mission)
}

// Messages returns the messages of a session with their parts, as they stood at one moment, oldest first. A session
// without messages, or an unknown one, has none.
func (s *Store) Messages(ctx context.Context, session string) ([]centurion.Message, error) {
	var found []centurion.Message
	err := s.read(ctx, func(c *conn) error {
		return c.snapshot(func() (err error) {
			if found, err = messages(c, session); err != nil || len(found) == 0 {
				return err
			}
			return addParts(c, session, found)
		})
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

func messages(c *conn, session string) ([]centurion.Message, error) {
	var found []centurion.Message
	err := c.each(func(scan func(...any) error) error {
		var (
			m        centurion.Message
			data     sql.RawBytes
			origin   string
			unpriced bool
		)
		if err := scan(&data, &origin, &unpriced); err != nil {
			return err
		}
		if err := m.UnmarshalJSON(data); err != nil {
			return errDamaged(c.path, "message of session "+session, err)
		}
		m.Origin, m.Usage.Unpriced = centurion.Origin(origin), unpriced
		found = append(found, m)
		return nil
	}, `SELECT data, origin, unpriced FROM message WHERE session = ? ORDER BY seq`, session)
	return found, err
}

func addParts(c *conn, session string, to []centurion.Message) error {
	index := make(map[string]*centurion.Message, len(to))
	for i := range to {
		index[to[i].ID] = &to[i]
	}
	return c.each(func(scan func(...any) error) error {
		var (
			p        centurion.Part
			data     sql.RawBytes
			unpriced bool
		)
		if err := scan(&data, &unpriced); err != nil {
			return err
		}
		if err := p.UnmarshalJSON(data); err != nil {
			return errDamaged(c.path, "part of session "+session, err)
		}
		p.Usage.Unpriced = unpriced
		if m := index[p.MessageID]; m != nil {
			m.Parts = append(m.Parts, p)
		}
		return nil
	}, `SELECT data, unpriced FROM part WHERE session = ? ORDER BY seq`, session)
}

// Tasks returns the tasks of a mission, oldest first.
func (s *Store) Tasks(ctx context.Context, mission string) ([]centurion.Task, error) {
	return readList[centurion.Task](ctx, s, `SELECT data FROM task WHERE mission = ? ORDER BY seq`, mission)
}

// Task returns a task; KindNotFound if there is none with this id.
func (s *Store) Task(ctx context.Context, id string) (centurion.Task, error) {
	return readOne[centurion.Task](ctx, s, "task", id)
}

// Receipts returns the receipts of a mission, oldest first.
func (s *Store) Receipts(ctx context.Context, mission string) ([]centurion.Receipt, error) {
	return readList[centurion.Receipt](ctx, s, `SELECT data FROM receipt WHERE mission = ? ORDER BY seq`, mission)
}

// Deliveries returns the deliveries of a mission, taken and pending, oldest first.
func (s *Store) Deliveries(ctx context.Context, mission string) ([]Delivery, error) {
	return readList[Delivery](ctx, s, `SELECT data FROM delivery WHERE mission = ? ORDER BY seq`, mission)
}

// PendingDeliveries returns what waits to be delivered to a session, oldest first.
func (s *Store) PendingDeliveries(ctx context.Context, session string) ([]Delivery, error) {
	return readList[Delivery](ctx, s, `SELECT data FROM delivery WHERE session = ? AND taken = 0 ORDER BY seq`, session)
}

// Asks returns the asks of a mission, or of all missions if it is empty, oldest first. With open it returns only those
// that nobody has answered.
func (s *Store) Asks(ctx context.Context, mission string, open bool) ([]Ask, error) {
	var where []string
	var args []any
	if mission != "" {
		where, args = append(where, "mission = ?"), append(args, mission)
	}
	if open {
		where = append(where, "answered = 0")
	}
	query := `SELECT data FROM ask`
	if len(where) > 0 {
		query += ` WHERE ` + strings.Join(where, " AND ")
	}
	return readList[Ask](ctx, s, query+` ORDER BY seq`, args...)
}

// Events returns the journal rows that q selects, in the order of their sequence numbers. Fewer than the limit means
// that there were no more. Rows of one session or task are found by reading through those of their mission, or through
// all if q does not name it.
func (s *Store) Events(ctx context.Context, q EventQuery) ([]centurion.Event, error) {
	where, args := "seq > ?", []any{q.After}
	for _, f := range [...]struct{ column, value string }{{"mission", q.Mission}, {"session", q.Session}, {"task", q.Task}} {
		if f.value != "" {
			where, args = where+" AND "+f.column+" = ?", append(args, f.value)
		}
	}
	if len(q.Types) > 0 {
		where += " AND type IN (?" + strings.Repeat(", ?", len(q.Types)-1) + ")"
		for _, t := range q.Types {
			args = append(args, string(t))
		}
	}
	limit := q.Limit
	if limit <= 0 {
		limit = eventPage
	}
	var found []centurion.Event
	err := s.read(ctx, func(c *conn) error {
		return c.each(func(scan func(...any) error) error {
			var (
				e    centurion.Event
				ms   int64
				data []byte
			)
			if err := scan(&e.Seq, &ms, &e.Type, &e.Mission, &e.Session, &e.Task, &data); err != nil {
				return err
			}
			e.Time, e.Data = centurion.MillisTime(ms), data
			found = append(found, e)
			return nil
		}, `SELECT seq, time, type, mission, session, task, data FROM journal WHERE `+where+` ORDER BY seq LIMIT ?`,
			append(args, limit)...)
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// ResolveMission returns the id of the mission that a person meant: the id itself or the beginning of it, with or
// without its prefix. KindNotFound if there is none, KindUsage if there are several.
func (s *Store) ResolveMission(ctx context.Context, prefix string) (string, error) {
	return s.resolve(ctx, "mission", centurion.PrefixMission, prefix)
}

// ResolveTask does for tasks what [Store.ResolveMission] does for missions.
func (s *Store) ResolveTask(ctx context.Context, prefix string) (string, error) {
	return s.resolve(ctx, "task", centurion.PrefixTask, prefix)
}

// ResolveSession does for sessions what [Store.ResolveMission] does for missions.
func (s *Store) ResolveSession(ctx context.Context, prefix string) (string, error) {
	return s.resolve(ctx, "session", centurion.PrefixSession, prefix)
}

// named is how many candidates an error names.
const named = 5

func (s *Store) resolve(ctx context.Context, table string, kind centurion.Prefix, typed string) (string, error) {
	full := typed
	if !strings.HasPrefix(typed, string(kind)+"_") {
		full = string(kind) + "_" + typed
	}
	if typed == "" || full == string(kind)+"_" {
		return "", &centurion.Error{Op: "find " + table, Kind: centurion.KindUsage, Msg: "an empty id names nothing", Hint: listHint(table)}
	}
	var found, near []string
	err := s.read(ctx, func(c *conn) (err error) {
		// 0x7f comes after every character of an id.
		if found, err = column(c, `SELECT id FROM `+table+` WHERE id >= ? AND id < ? ORDER BY id LIMIT ?`, full, full+"\x7f", named+1); err != nil || len(found) > 0 {
			return err
		}
		near, err = neighbours(c, table, full)
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
		return "", &centurion.Error{Op: "find " + table, Kind: centurion.KindUsage,
			Msg: fmt.Sprintf("%q could be %s", typed, strings.Join(found, ", ")), Hint: "type more of the id"}
	}
	e := &centurion.Error{Op: "find " + table, Kind: centurion.KindNotFound, Msg: fmt.Sprintf("no %s %q", table, typed), Hint: listHint(table)}
	if len(near) > 0 {
		e.Msg += "; the nearest is " + strings.Join(near, " or ")
	}
	return "", e
}

// neighbours returns the ids just before and after a place in their order, if they share at least the beginning of
// their time with it.
func neighbours(c *conn, table, full string) ([]string, error) {
	const shared = len("msn_") + 2
	if len(full) < shared {
		return nil, nil
	}
	var near []string
	for _, q := range []string{`id < ? ORDER BY id DESC`, `id > ? ORDER BY id`} {
		ids, err := column(c, `SELECT id FROM `+table+` WHERE `+q+` LIMIT 1`, full)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if strings.HasPrefix(id, full[:shared]) {
				near = append(near, id)
			}
		}
	}
	return near, nil
}

// column returns the strings of a query with one column.
func column(c *conn, query string, args ...any) ([]string, error) {
	var found []string
	err := c.each(func(scan func(...any) error) error {
		var v string
		err := scan(&v)
		found = append(found, v)
		return err
	}, query, args...)
	return found, err
}
