package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"centurion"
)

// Tx is a write transaction. It belongs to the function passed to [Store.Update]: call its methods in that function's goroutine and not
// after its end. Its reads see its own writes. After a failed statement all further methods return the same error.
type Tx struct {
	c   *conn
	err error // of the first failed statement
	seq int64 // the newest journal row

	wrote bool // anything was written
}

// Delivery is a message or result for the history of a session: a task's result for its delegator, or, with a text and without a task,
// a message. It is taken once, in the transaction that adds it to the history.
type Delivery struct {
	ID      string         `json:"id"` // for a message whose id the sender gave: that one
	Mission string         `json:"mission"`
	Session string         `json:"session"`        // the receiver; for a message to a task without a session, the task
	Task    string         `json:"task"`           // the task with the result
	Wake    bool           `json:"wake,omitempty"` // it wakes an idle receiver at once
	Created centurion.Time `json:"created"`
	Taken   centurion.Time `json:"taken,omitzero"`    // zero while pending
	Message string         `json:"message,omitempty"` // the message that contains it

	Text    string           `json:"text,omitempty"`     // of a message
	Origin  centurion.Origin `json:"origin,omitempty"`   // its author
	Queue   bool             `json:"queue,omitempty"`    // it waits for the end of the receiver's turn
	NoReply bool             `json:"no_reply,omitempty"` // it wants no answer, and the next request has it
	Agent   string           `json:"agent,omitempty"`    // its receiver has this agent from then on; "" is the one that it has
	Model   string           `json:"model,omitempty"`    // likewise, provider/model
	Rest    bool             `json:"rest,omitempty"`     // its sender waits until the receiver rests; an abort leaves it without an answer
	Missed  string           `json:"missed,omitempty"`   // the original receiver, which had ended before it was read

	Files []centurion.File `json:"files,omitempty"` // attached files, until it is taken
	Parts []centurion.Part `json:"parts,omitempty"` // the message, if it is more than Text and Files, until it is taken
}

// The types of [Ask].
const (
	AskPermission = "permission"
	AskQuestion   = "question"
	AskPlan       = "plan"
)

// Ask is a request to a person.
type Ask struct {
	ID         string         `json:"id"`
	Type       string         `json:"type"` // permission, question or plan
	Mission    string         `json:"mission"`
	Session    string         `json:"session,omitempty"`
	Task       string         `json:"task,omitempty"`
	Message    string         `json:"message,omitempty"`    // the assistant message with the waiting call
	Call       string         `json:"call,omitempty"`       // the waiting tool call
	Permission string         `json:"permission,omitempty"` // the requested permission: bash, edit, …
	Patterns   []string       `json:"patterns,omitempty"`   // patterns to allow now
	Always     []string       `json:"always,omitempty"`     // patterns that "always" would allow from now on
	Title      string         `json:"title,omitempty"`
	Text       string         `json:"text,omitempty"`
	Metadata   map[string]any `json:"metadata,omitempty"`
	Options    []string       `json:"options,omitempty"`
	CostLow    float64        `json:"cost_low,omitempty"` // USD; for a plan whose model has a price
	CostHigh   float64        `json:"cost_high,omitempty"`
	Created    centurion.Time `json:"created"`
	Deadline   centurion.Time `json:"deadline,omitzero"`
	Answered   centurion.Time `json:"answered,omitzero"` // zero while open
	Answer     string         `json:"answer,omitempty"`  // once, always, reject, or a text
	By         string         `json:"by,omitempty"`      // person, program, always (answer to another ask), policy, timeout, abort or shutdown
	PID        int            `json:"pid,omitempty"`     // the process that answered through the socket, as the system names it; 0 if unknown
	Command    string         `json:"command,omitempty"` // its command line, up to 200 bytes

	Agent   string `json:"agent,omitempty"`   // the asking agent
	Address string `json:"address,omitempty"` // its address in the mission
	Line    string `json:"line,omitempty"`    // the agents above it, the mission's own agent first
}

// Append appends a fact to the journal and returns its sequence number, which is valid once the update is committed. A zero Time
// becomes now, empty Data {}. Token deltas are not facts and are refused.
func (tx *Tx) Append(e centurion.Event) (seq int64, err error) {
	if e.Time.IsZero() {
		e.Time = centurion.Now()
	}
	if len(e.Data) == 0 {
		e.Data = json.RawMessage("{}")
	}
	if e.Type == "" || e.Type == centurion.EventDelta || !json.Valid(e.Data) {
		return 0, &centurion.Error{Op: "write state", Kind: centurion.KindInternal,
			Msg: "event " + string(e.Type) + " cannot be a journal row: it needs the type of a fact and JSON data"}
	}
	res, err := tx.write(journalTable, []any{e.Time.Millis(), string(e.Type), e.Mission, e.Session, e.Task, tx.Redacted(string(e.Data))})
	if err != nil {
		return 0, err
	}
	if seq, err = res.LastInsertId(); err == nil {
		tx.seq = seq
	}
	return seq, tx.failed(err)
}

// Redactor replaces the keys in a text.
type Redactor interface {
	// Text returns the text without keys. JSON stays valid JSON.
	Text(s string) string
}

// Redact replaces keys in all rows that are written from now on. It is called before the first Update.
func (s *Store) Redact(keys Redactor) { s.w.keys = keys }

// Redacted returns a text without keys, as it would be stored: for one that is shortened before, and could lose the end of a key.
func (tx *Tx) Redacted(s string) string {
	if tx.c == nil || tx.c.keys == nil { // it has none after its end
		return s
	}
	return tx.c.keys.Text(s)
}

// PutMission writes a mission by its id.
func (tx *Tx) PutMission(m *centurion.Mission) error {
	return tx.put(missionTable, m.ID, m, string(m.Status))
}

// PutSession writes a session by its id. It stays with its first mission.
func (tx *Tx) PutSession(v *centurion.Session) error {
	return tx.put(sessionTable, v.ID, v, v.Metadata.Mission)
}

// TakeOpened returns an opened session, which has no mission, and deletes its row: it is to be written again with one. The error has
// centurion.KindNotFound if there is none with this id, and centurion.KindConflict if it has a mission.
func (tx *Tx) TakeOpened(id string) (centurion.Session, error) {
	rec, err := tx.Session(id)
	if err == nil && rec.Metadata.Mission != "" {
		err = &centurion.Error{Op: "begin session", Kind: centurion.KindConflict, Msg: "session " + id + " has begun already", Hint: "send it a message"}
	}
	if err == nil {
		tx.wrote = true
		_, err = tx.exec(`DELETE FROM session WHERE id = ?`, id)
	}
	return rec, err
}

// PutMessage writes a message by its id, without its parts. Its position in the session and its previous message are set by the first
// write: without a Prev that is the newest message of the session's current line, which is filled in.
func (tx *Tx) PutMessage(m *centurion.Message) error {
	if m.Prev == "" {
		if err := tx.place(m); err != nil {
			return err
		}
	}
	return tx.put(messageTable, m.ID, m, m.SessionID, m.Prev, string(m.Origin), m.Usage.Unpriced)
}

// CheckNewMessage refuses, with centurion.KindUsage, the id of a message that exists in any session.
func (tx *Tx) CheckNewMessage(id string) error {
	if tx.err != nil {
		return tx.err
	}
	found := false
	err := tx.c.rows(messageTable, ` WHERE id = ?`, func(*row) error { found = true; return nil }, id)
	if err == nil && found {
		return &centurion.Error{Op: "store message", Kind: centurion.KindUsage, Msg: "there is a message " + id + " already", Hint: "give each message an id of its own, or none"}
	}
	return tx.failed(err)
}

// PutPart writes a part by its id. Its position in the message is set by the first write.
func (tx *Tx) PutPart(p *centurion.Part) error {
	return tx.put(partTable, p.ID, p, p.SessionID, p.MessageID, p.Usage.Unpriced)
}

// PutTask writes a task by its id.
func (tx *Tx) PutTask(t *centurion.Task) error {
	return tx.put(taskTable, t.ID, t, t.Mission, t.Parent, t.Call, string(t.Status))
}

// PutReceipt writes a receipt by its id.
func (tx *Tx) PutReceipt(r *centurion.Receipt) error {
	return tx.put(receiptTable, r.ID, r, r.Mission, r.Task)
}

// PutDelivery writes a delivery by its id.
func (tx *Tx) PutDelivery(d *Delivery) error {
	return tx.put(deliveryTable, d.ID, d, d.Mission, d.Task, d.Session, d.Taken.Millis())
}

// PutAsk writes an ask by its id.
func (tx *Tx) PutAsk(a *Ask) error {
	return tx.put(askTable, a.ID, a, a.Mission, a.Answered.Millis())
}

// Mission returns a mission; KindNotFound if there is none with this id.
func (tx *Tx) Mission(id string) (centurion.Mission, error) {
	return txOne[centurion.Mission](tx, missionTable, id)
}

// Session returns a session; KindNotFound if there is none with this id.
func (tx *Tx) Session(id string) (centurion.Session, error) {
	return txOne[centurion.Session](tx, sessionTable, id)
}

// Task returns a task; KindNotFound if there is none with this id.
func (tx *Tx) Task(id string) (centurion.Task, error) {
	return txOne[centurion.Task](tx, taskTable, id)
}

// Delivery returns a delivery; KindNotFound if there is none with this id.
func (tx *Tx) Delivery(id string) (Delivery, error) { return txOne[Delivery](tx, deliveryTable, id) }

// Ask returns an ask; KindNotFound if there is none with this id.
func (tx *Tx) Ask(id string) (Ask, error) { return txOne[Ask](tx, askTable, id) }

const byCall = ` WHERE parent = ? AND call = ? ORDER BY seq DESC LIMIT 1`

// TaskByCall returns the task delegated by a session's tool call, if any; the newest if a model has used the call's id twice.
func (tx *Tx) TaskByCall(session, call string) (centurion.Task, bool, error) {
	found, err := txList[centurion.Task](tx, taskTable, byCall, session, call)
	return newestOf(found, err)
}

// PendingDeliveries returns the pending deliveries to a session, oldest first.
func (tx *Tx) PendingDeliveries(session string) ([]Delivery, error) {
	return txList[Delivery](tx, deliveryTable, ` WHERE session = ? AND taken = 0 ORDER BY seq`, session)
}

// NextSerial returns the next unused serial number for children of an address: 0, 1, 2 and so on. Once committed, a number is never
// given again, even after a restart.
func (tx *Tx) NextSerial(mission, address string) (int, error) {
	if tx.err != nil {
		return 0, tx.err
	}
	var n int64
	err := tx.c.rows(serialTable, ` WHERE mission = ? AND address = ?`, func(r *row) (err error) {
		n, err = strconv.ParseInt(string(r.data()), 10, 64)
		return err
	}, mission, address)
	if err != nil {
		return 0, tx.failed(err)
	}
	_, err = tx.write(serialTable, []any{mission, address, n + 1})
	return int(n), err
}

// put marshals v and writes it with its id and its other columns.
func (tx *Tx) put(t *table, id string, v any, others ...any) error {
	if tx.err != nil {
		return tx.err
	}
	data, err := marshal(v)
	if err == nil && id == "" {
		err = errors.New("no id")
	}
	if err != nil {
		return &centurion.Error{Op: "write state", Kind: centurion.KindInternal, Msg: fmt.Sprintf("%T %s", v, id), Err: err}
	}
	vals := make([]any, 0, len(t.cols)+1) // and the checksum
	vals = append(append(append(vals, id), others...), tx.Redacted(string(data)))
	res, err := tx.write(t, vals)
	if err != nil || t.fixed == 1 {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 {
		return tx.failed(err)
	}
	// The row exists with other fixed columns, which stay.
	err = tx.c.rows(t, ` WHERE id = ?`, func(r *row) error {
		for i := 1; i < t.fixed; i++ {
			vals[i] = string(r.cols[i])
		}
		return nil
	}, id)
	if err != nil {
		return tx.failed(err)
	}
	_, err = tx.write(t, vals)
	return err
}

// write runs a table's upsert with a row's values and their checksum.
func (tx *Tx) write(t *table, vals []any) (sql.Result, error) {
	if tx.err != nil {
		return nil, tx.err
	}
	tx.wrote = true
	res, err := tx.c.put(t, vals)
	return res, tx.failed(err)
}

// marshal calls v's own method if there is one: json.Marshal would validate the result once more.
func marshal(v any) ([]byte, error) {
	if m, ok := v.(json.Marshaler); ok {
		return m.MarshalJSON()
	}
	return json.Marshal(v)
}

func (tx *Tx) exec(query string, args ...any) (int64, error) {
	if tx.err != nil {
		return 0, tx.err
	}
	n, err := tx.c.exec(query, args...)
	return n, tx.failed(err)
}

// failed remembers a failed statement: SQLite may have rolled back everything, and later statements would be committed on their own.
func (tx *Tx) failed(err error) error {
	if err != nil && tx.err == nil {
		tx.err = tx.c.fail("write state", err)
	}
	return tx.err
}

func txList[T any](tx *Tx, t *table, rest string, args ...any) ([]T, error) {
	if tx.err != nil {
		return nil, tx.err
	}
	found, err := list[T](tx.c, t, rest, args...)
	return found, tx.failed(err)
}

func txOne[T any](tx *Tx, t *table, id string) (T, error) {
	found, err := txList[T](tx, t, ` WHERE id = ?`, id)
	return first(found, err, t.name, id)
}

// Tasks returns the tasks of a mission, oldest first.
func (tx *Tx) Tasks(mission string) ([]centurion.Task, error) {
	return txList[centurion.Task](tx, taskTable, ` WHERE mission = ? ORDER BY seq`, mission)
}

// TaskCounts returns the numbers of a mission's tasks by status, without zeros. Continued tasks count as [centurion.StatusContinued],
// reverted ones as [centurion.StatusReverted].
func (tx *Tx) TaskCounts(mission string) (map[string]int, error) {
	tasks, err := tx.Tasks(mission)
	counts := map[string]int{}
	gone := centurion.Continued(tasks)
	for _, t := range tasks {
		status := t.Status
		switch {
		case gone[t.ID] != "":
			status = centurion.StatusContinued
		case t.Reverted():
			status = centurion.StatusReverted
		}
		counts[string(status)]++
	}
	return counts, err
}

// Receipts returns the receipts of a task, oldest first.
func (tx *Tx) Receipts(mission, task string) ([]centurion.Receipt, error) {
	// No index has the task: SQLite would skip a row with a damaged task, without a check of its checksum.
	found, err := txList[centurion.Receipt](tx, receiptTable, ` WHERE mission = ? ORDER BY seq`, mission)
	return slices.DeleteFunc(found, func(r centurion.Receipt) bool { return r.Task != task }), err
}

// Asks returns all asks of a mission, oldest first.
func (tx *Tx) Asks(mission string) ([]Ask, error) {
	return txList[Ask](tx, askTable, ` WHERE mission = ? ORDER BY seq`, mission)
}

// OpenAsks returns the open asks of a mission, oldest first.
func (tx *Tx) OpenAsks(mission string) ([]Ask, error) {
	return txList[Ask](tx, askTable, ` WHERE mission = ? AND answered = 0 ORDER BY seq`, mission)
}
