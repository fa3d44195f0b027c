package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/state"
	"centurion/store"
)

// Post is a message into a mission.
type Post struct {
	// ID names the message: the same one sent again is stored once. Empty makes a new one.
	ID string `json:"id,omitempty"`
	// Mission is where To is looked for, by its whole id. An id in To belongs to whatever mission it belongs to.
	Mission string `json:"mission,omitempty"`
	// To is an address (0/ is the Commander, 0/3 its fourth child), an item of the plan, or the whole id of a session, task
	// or mission.
	To   string `json:"to"`
	Text string `json:"text"` // at most MaxPost bytes; it is given to the model as it is
	// Files go with the text: see centurion.CheckFiles.
	Files []centurion.File `json:"files,omitempty"`
	// Queue leaves the message until the receiver's turn has ended. Otherwise it is taken in before the next request.
	Queue  bool             `json:"queue,omitempty"`
	Origin centurion.Origin `json:"origin,omitempty"` // empty means a person
	// Resume lets a mission that has stopped go on, for who waits for the answer. [Host] itself begins no work.
	Resume bool `json:"resume,omitempty"`
}

// MaxPost bounds the text of a [Post], in bytes: it is sent with every later request of its receiver. It is what a goal
// may have.
const MaxPost = 256 << 10

// Posted is where a [Post] was stored.
type Posted struct {
	ID      string                  `json:"id"`
	Mission string                  `json:"mission"`
	Status  centurion.MissionStatus `json:"status"` // of the mission
	Session string                  `json:"session,omitempty"`
	Address string                  `json:"address,omitempty"` // empty for a task that has no session yet
	Agent   string                  `json:"agent"`
	Task    string                  `json:"task,omitempty"`
	State   centurion.TaskStatus    `json:"state,omitempty"` // of the task
	Reason  string                  `json:"reason,omitempty"`
	Working bool                    `json:"working"`           // somebody works on the mission: the message is read without a resume
	Compact bool                    `json:"compact,omitempty"` // it was [CompactWord]: nothing was stored, the history will be shortened
	Short   bool                    `json:"short,omitempty"`   // of [CompactWord]: there is nothing to shorten
}

// Send stores a message for an agent of a mission and wakes who waits for it. From then on it is told exactly once, also
// across a crash: the Commander takes it in between two of its steps, or at once if it is idle; a task's agent likewise,
// when it runs. Messages to one receiver are told in the order in which they were sent; one that steers does not wait for
// one that is queued. A mission that has stopped reads it when it is resumed. The error has centurion.KindUsage for an empty
// or too long text, KindNotFound for an unknown receiver and KindConflict for one that has ended.
func (h *Host) Send(ctx context.Context, p Post) (_ Posted, err error) {
	if strings.TrimSpace(p.Text) == CompactWord { // then nothing is sent
		defer func() {
			if e, ok := errors.AsType[*centurion.Error](err); ok && e.Op == "send" {
				e := *e
				e.Op = "compact"
				err = &e
			}
		}()
	}
	if err := p.settle(); err != nil {
		return Posted{}, err
	}
	to, err := receiverOf(ctx, h.cfg.Store, p)
	if err != nil {
		return Posted{}, err
	}
	if err := h.cfg.filesFor(ctx, to.session, p.Files); err != nil {
		return Posted{}, err
	}
	if compact, err := p.wantsCompact(); compact || err != nil {
		if err != nil {
			return Posted{}, err
		}
		return h.compactAt(ctx, p, to)
	}
	var got Posted
	err = h.cfg.Store.Update(ctx, func(tx *store.Tx) (err error) {
		got, err = post(tx, p, to)
		return err
	})
	if err != nil {
		return Posted{}, err
	}
	if m := h.running(got.Mission); m != nil {
		got.Working = true
		m.st.Notify()
	}
	return got, nil
}

func (p *Post) settle() error {
	p.ID = cmp.Or(p.ID, centurion.NewID(centurion.PrefixDelivery))
	p.Origin = cmp.Or(p.Origin, centurion.OriginPerson)
	switch {
	case strings.TrimSpace(p.Text) == "":
		return &centurion.Error{Op: "send", Kind: centurion.KindUsage, Msg: "the message is empty",
			Hint: `say what the agent should know: centurion send 0/ "use PostgreSQL"`}
	case len(p.Text) > MaxPost:
		return &centurion.Error{Op: "send", Kind: centurion.KindUsage, Msg: "the message is longer than " + centurion.Bytes(MaxPost),
			Hint: "put the details into a file of the project and name it in the message"}
	}
	return centurion.CheckFiles(p.Files)
}

// receiver is who a message is for: a session, or a task that may have none yet.
type receiver struct{ mission, session, task string }

// receiverOf finds who a message is for.
func receiverOf(ctx context.Context, st *store.Store, p Post) (receiver, error) {
	switch kind, _, _ := strings.Cut(p.To, "_"); centurion.Prefix(kind) {
	case centurion.PrefixTask:
		t, err := st.Task(ctx, p.To)
		return receiver{t.Mission, t.Session, t.ID}, err
	case centurion.PrefixSession:
		s, err := st.Session(ctx, p.To)
		return receiver{s.Metadata.Mission, s.ID, s.Metadata.Task}, err
	case centurion.PrefixMission:
		m, err := st.Mission(ctx, p.To)
		return receiver{m.ID, m.Session, ""}, err
	}
	sessions, err := st.Sessions(ctx, p.Mission)
	if err != nil {
		return receiver{}, err
	}
	tasks, err := st.Tasks(ctx, p.Mission)
	if err != nil {
		return receiver{}, err
	}
	return find(p, sessions, tasks)
}

// find looks an address or an item up among the agents of a mission.
func find(p Post, sessions []centurion.Session, tasks []centurion.Task) (receiver, error) {
	for _, s := range sessions {
		if strings.Trim(s.Metadata.Address, "/") == strings.Trim(p.To, "/") {
			return receiver{p.Mission, s.ID, s.Metadata.Task}, nil
		}
	}
	for _, t := range slices.Backward(tasks) { // the newest of an item's tasks
		if t.Item != "" && strings.EqualFold(t.Item, p.To) {
			return receiver{p.Mission, t.Session, t.ID}, nil
		}
	}
	status := map[string]centurion.Task{}
	var names, living []string
	for _, t := range tasks {
		status[t.ID] = t
		if t.Item != "" {
			names = append(names, t.Item)
		}
	}
	for _, s := range sessions {
		names = append(names, s.Metadata.Address)
		t, task := status[s.Metadata.Task]
		if !task || !t.Status.Ended() {
			living = append(living, fmt.Sprintf("%s (%s)", s.Metadata.Address, s.Agent))
		}
	}
	if len(living) > named {
		living = append(living[:named], centurion.Count(len(living)-named, "other"))
	}
	e := &centurion.Error{Op: "send", Kind: centurion.KindNotFound,
		Msg:  fmt.Sprintf("mission %s has no agent %q; you can write to %s", p.Mission, p.To, strings.Join(living, ", ")),
		Hint: "see: centurion tasks " + p.Mission}
	if near := centurion.Nearest(p.To, names); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return receiver{}, e
}

// named is how many receivers an error names.
const named = 6

// post stores a message for a receiver that can still hear it.
func post(tx *store.Tx, p Post, to receiver) (Posted, error) {
	m, err := tx.Mission(to.mission)
	if err != nil {
		return Posted{}, err
	}
	got := Posted{ID: p.ID, Mission: m.ID, Status: m.Status, Session: to.session, Task: to.task}
	d := store.Delivery{ID: p.ID, Mission: m.ID, Session: to.session, Wake: true, Created: centurion.Now(), Text: p.Text,
		Origin: p.Origin, Queue: p.Queue, Files: p.Files}
	if to.task != "" {
		t, err := tx.Task(to.task)
		if err != nil {
			return got, err
		}
		got.Session, got.Agent, got.State, got.Reason = t.Session, t.Agent, t.Status, t.Reason
		d.Session = state.ReceiverOf(t)
	}
	if got.Session != "" {
		s, err := tx.Session(got.Session)
		if err != nil {
			return got, err
		}
		got.Agent, got.Address = s.Agent, s.Metadata.Address
	}
	if _, err := tx.Delivery(p.ID); err == nil {
		return got, nil // it was sent again because nobody knew whether it had come
	} else if centurion.KindOf(err) != centurion.KindNotFound {
		return got, err
	}
	if continues(m, got) {
		if m, err = wakeable(tx, m); err != nil {
			return got, err
		}
		got.Status = m.Status
	}
	if err := reachable(m, got); err != nil {
		return got, err
	}
	if err := tx.PutDelivery(&d); err != nil {
		return got, err
	}
	_, err = tx.Append(centurion.Event{Type: centurion.EventMessageQueued, Mission: m.ID, Session: got.Session, Task: got.Task,
		Data: event.Data(event.QueuedData{ID: d.ID, Address: got.Address, Origin: d.Origin, Queue: d.Queue, Text: centurion.Clip(d.Text, 2000), Files: labels(d.Files)})})
	return got, err
}

// reachable refuses a message that nobody would ever read.
func reachable(m centurion.Mission, to Posted) error {
	switch {
	case m.Status.Ended():
		return &centurion.Error{Op: "send", Kind: centurion.KindConflict, Msg: fmt.Sprintf("mission %s is %s: nobody reads what is written to it", m.ID, m.Status),
			Hint: `start another one: centurion run "GOAL"`}
	case to.State.Ended():
		who := cmp.Or(to.Address, to.Task)
		return &centurion.Error{Op: "send", Kind: centurion.KindConflict, Msg: fmt.Sprintf("%s (%s) has ended: its task is %s", who, to.Agent, to.State),
			Hint: fmt.Sprintf(`write to the Commander: centurion send 0/ --mission %s "TEXT"`, m.ID)}
	}
	return nil
}
