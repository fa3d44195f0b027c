package store

import (
	"encoding/json"
	"errors"
	"fmt"

	"centurion"
)

// Tx is a write transaction. It belongs to the function that was given to [Store.Update]: its methods are called from
// that function's goroutine and not after its end. Its reads see its own writes. After a statement has failed every
// further method returns the same error.
type Tx struct {
	c   *conn
	err error // of the first statement that failed
	seq int64 // the newest journal row
}

// Delivery is a task's result on its way into the history of the session that delegated it. It is taken once, in the
// transaction that inserts it there.
type Delivery struct {
	ID      string         `json:"id"`
	Mission string         `json:"mission"`
	Session string         `json:"session"` // the receiver
	Task    string         `json:"task"`
	Wake    bool           `json:"wake,omitempty"` // it wakes an idle receiver at once
	Created centurion.Time `json:"created"`
	Taken   centurion.Time `json:"taken,omitzero"`    // zero while pending
	Message string         `json:"message,omitempty"` // the message that it stands in
}

// The types of [Ask].
const (
	AskPermission = "permission"
	AskQuestion   = "question"
	AskPlan       = "plan"
)

// Ask is anything that waits for a person.
type Ask struct {
	ID         string         `json:"id"`
	Type       string         `json:"type"` // permission, question or plan
	Mission    string         `json:"mission"`
	Session    string         `json:"session,omitempty"`
	Task       string         `json:"task,omitempty"`
	Call       string         `json:"call,omitempty"`       // the tool call that waits
	Permission string         `json:"permission,omitempty"` // what is asked for: bash, edit, …
	Patterns   []string       `json:"patterns,omitempty"`   // what it would be allowed for now
	Always     []string       `json:"always,omitempty"`     // what an answer of always would allow from now on
	Title      string         `json:"title,omitempty"`
	Text       string         `json:"text,omitempty"`
	Metadata   map[string]any `json:"metadata,omitempty"`
	Options    []string       `json:"options,omitempty"`
	CostLow    float64        `json:"cost_low,omitempty"` // USD; of a plan whose model has a price
	CostHigh   float64        `json:"cost_high,omitempty"`
	Created    centurion.Time `json:"created"`
	Deadline   centurion.Time `json:"deadline,omitzero"`
	Answered   centurion.Time `json:"answered,omitzero"` // zero while open
	Answer     string         `json:"answer,omitempty"`  // once, always, reject, or a text
	By         string         `json:"by,omitempty"`      // person, policy or shutdown
}

// Append writes a fact to the journal and returns its sequence number, which counts once the update is committed. A
// zero Time becomes now, empty Data {}. Token deltas are not facts and are refused.
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
	seq, err = tx.exec(`INSERT INTO journal (time, type, mission, session, task, data) VALUES (?, ?, ?, ?, ?, ?)`,
		e.Time.Millis(), string(e.Type), e.Mission, e.Session, e.Task, string(e.Data))
	if err == nil {
		tx.seq = seq
	}
	return seq, err
}

// PutMission writes a mission by its id.
func (tx *Tx) PutMission(m *centurion.Mission) error {
	return tx.put(m.ID, m, `INSERT INTO mission (id, data, status) VALUES (?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET data = excluded.data, status = excluded.status`, string(m.Status))
}

// PutSession writes a session by its id. It stays with the mission it was first written for.
func (tx *Tx) PutSession(v *centurion.Session) error {
	return tx.put(v.ID, v, `INSERT INTO session (id, data, mission) VALUES (?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET data = excluded.data`, v.Metadata.Mission)
}

// PutMessage writes a message by its id, without its parts. Its place among the session's messages is that of its
// first writing.
func (tx *Tx) PutMessage(m *centurion.Message) error {
	return tx.put(m.ID, m, `INSERT INTO message (id, data, session, origin, unpriced) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET data = excluded.data, origin = excluded.origin, unpriced = excluded.unpriced`,
		m.SessionID, string(m.Origin), m.Usage.Unpriced)
}

// PutPart writes a part by its id. Its place among the message's parts is that of its first writing.
func (tx *Tx) PutPart(p *centurion.Part) error {
	return tx.put(p.ID, p, `INSERT INTO part (id, data, session, message, unpriced) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET data = excluded.data, unpriced = excluded.unpriced`,
		p.SessionID, p.MessageID, p.Usage.Unpriced)
}

// PutTask writes a task by its id.
func (tx *Tx) PutTask(t *centurion.Task) error {
	return tx.put(t.ID, t, `INSERT INTO task (id, data, mission, parent, call, status) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET data = excluded.data, status = excluded.status`,
		t.Mission, t.Parent, t.Call, string(t.Status))
}

// PutReceipt writes a receipt by its id.
func (tx *Tx) PutReceipt(r *centurion.Receipt) error {
	return tx.put(r.ID, r, `INSERT INTO receipt (id, data, mission, task) VALUES (?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET data = excluded.data`, r.Mission, r.Task)
}

// PutDelivery writes a delivery by its id.
func (tx *Tx) PutDelivery(d *Delivery) error {
	return tx.put(d.ID, d, `INSERT INTO delivery (id, data, mission, session, task, taken) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET data = excluded.data, session = excluded.session, taken = excluded.taken`,
		d.Mission, d.Session, d.Task, d.Taken.Millis())
}

// PutAsk writes an ask by its id.
func (tx *Tx) PutAsk(a *Ask) error {
	return tx.put(a.ID, a, `INSERT INTO ask (id, data, mission, answered) VALUES (?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET data = excluded.data, answered = excluded.answered`,
		a.Mission, a.Answered.Millis())
}

// Mission returns a mission; KindNotFound if there is none with this id.
func (tx *Tx) Mission(id string) (centurion.Mission, error) {
	return txOne[centurion.Mission](tx, "mission", id)
}

// Session returns a session; KindNotFound if there is none with this id.
func (tx *Tx) Session(id string) (centurion.Session, error) {
	return txOne[centurion.Session](tx, "session", id)
}

// Task returns a task; KindNotFound if there is none with this id.
func (tx *Tx) Task(id string) (centurion.Task, error) { return txOne[centurion.Task](tx, "task", id) }

// Delivery returns a delivery; KindNotFound if there is none with this id.
func (tx *Tx) Delivery(id string) (Delivery, error) { return txOne[Delivery](tx, "delivery", id) }

// Ask returns an ask; KindNotFound if there is none with this id.
func (tx *Tx) Ask(id string) (Ask, error) { return txOne[Ask](tx, "ask", id) }

// TaskByCall returns the task that a session delegated with a tool call, the newest if a model has used the call's id
// twice, and whether there is one.
func (tx *Tx) TaskByCall(session, call string) (centurion.Task, bool, error) {
	found, err := txList[centurion.Task](tx,
		`SELECT data FROM task WHERE parent = ? AND call = ? ORDER BY seq DESC LIMIT 1`, session, call)
	if err != nil || len(found) == 0 {
		return centurion.Task{}, false, err
	}
	return found[0], true, nil
}

// PendingDeliveries returns what waits to be delivered to a session, oldest first.
func (tx *Tx) PendingDeliveries(session string) ([]Delivery, error) {
	return txList[Delivery](tx, `SELECT data FROM delivery WHERE session = ? AND taken = 0 ORDER BY seq`, session)
}

// NextSerial returns the next unused serial number for children of an address: 0, 1, 2 and so on. A number is never
// given twice, also after a restart, once the update that took it is committed.
func (tx *Tx) NextSerial(mission, address string) (int, error) {
	if _, err := tx.exec(`INSERT INTO serial (mission, address, next) VALUES (?, ?, 1)
		ON CONFLICT DO UPDATE SET next = next + 1`, mission, address); err != nil {
		return 0, err
	}
	var n int
	err := tx.c.each(func(scan func(...any) error) error { return scan(&n) },
		`SELECT next - 1 FROM serial WHERE mission = ? AND address = ?`, mission, address)
	return n, tx.failed(err)
}

// put marshals v and runs an upsert whose first two parameters are its id and its JSON.
func (tx *Tx) put(id string, v any, query string, rest ...any) error {
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
	_, err = tx.exec(query, append([]any{id, string(data)}, rest...)...)
	return err
}

// marshal asks v itself where it can: json.Marshal would read through the answer once more.
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

// failed remembers that a statement failed: SQLite may have rolled back everything, and what came after it would be
// committed by itself.
func (tx *Tx) failed(err error) error {
	if err != nil && tx.err == nil {
		tx.err = tx.c.fail("write state", err)
	}
	return tx.err
}

func txList[T any](tx *Tx, query string, args ...any) ([]T, error) {
	if tx.err != nil {
		return nil, tx.err
	}
	found, err := list[T](tx.c, query, args...)
	return found, tx.failed(err)
}

func txOne[T any](tx *Tx, table, id string) (T, error) {
	found, err := txList[T](tx, `SELECT data FROM `+table+` WHERE id = ?`, id)
	return first(found, err, table, id)
}

// Tasks returns the tasks of a mission, oldest first.
func (tx *Tx) Tasks(mission string) ([]centurion.Task, error) {
	return txList[centurion.Task](tx, `SELECT data FROM task WHERE mission = ? ORDER BY seq`, mission)
}

// TaskCounts returns how many tasks of a mission are in each state that any is in.
func (tx *Tx) TaskCounts(mission string) (map[string]int, error) {
	tasks, err := tx.Tasks(mission)
	counts := map[string]int{}
	for _, t := range tasks {
		counts[string(t.Status)]++
	}
	return counts, err
}

// Receipts returns the receipts of a task, oldest first.
func (tx *Tx) Receipts(mission, task string) ([]centurion.Receipt, error) {
	return txList[centurion.Receipt](tx, `SELECT data FROM receipt WHERE mission = ? AND task = ? ORDER BY seq`, mission, task)
}

// OpenAsks returns what waits for a person in a mission, oldest first.
func (tx *Tx) OpenAsks(mission string) ([]Ask, error) {
	return txList[Ask](tx, `SELECT data FROM ask WHERE mission = ? AND answered = 0 ORDER BY seq`, mission)
}
