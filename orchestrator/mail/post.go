// Package mail takes messages of people and programs for the agents of a host's missions, and brings back the answers. It stores a
// message, wakes its receiver, and keeps the callers that wait for the answer of a turn. It runs nothing: the host tells it which
// missions are being worked on.
package mail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/text"
)

// Post is a message into a mission.
type Post struct {
	// ID identifies the message: sending it again stores it only once. Empty creates a new one. One that begins with msg becomes the id
	// of the message in its session.
	ID string `json:"id,omitempty"`
	// Mission is the mission of the address or item in To, by its whole id. An id in To needs none.
	Mission string `json:"mission,omitempty"`
	// To is an address (0/ is the Commander, 0/3 its fourth child), an item of the plan, or the full id of a session, task or mission.
	To   string `json:"to"`
	Text string `json:"text"` // at most MaxPost bytes; the model gets it as it is
	// Files accompany the text: see centurion.CheckFiles.
	Files []centurion.File `json:"files,omitempty"`
	// Parts are the message for the model, if it is more than Text and Files.
	Parts []centurion.Part `json:"parts,omitempty"`
	// Typed is the slash command that made the message; nil for none.
	Typed *centurion.Typed `json:"typed,omitempty"`
	// Queue leaves the message until the receiver's turn has ended. Otherwise the receiver reads it before its next request.
	Queue  bool             `json:"queue,omitempty"`
	Origin centurion.Origin `json:"origin,omitempty"` // empty means a person
	// Model ("provider/model") is that of the receiver from this message on, "" for the one that it has. Only the mission's own agent can
	// have another one; while it works, from the request on that has the message.
	Model string `json:"model,omitempty"`
	// Agent is that of the receiver from this message on, likewise. Only in the profile assistant there can be another one.
	Agent string `json:"agent,omitempty"`
	// NoReply adds the message to a conversation without an answer; the next request has it. An opened session takes such a message, too.
	NoReply bool `json:"no_reply,omitempty"`
	// Rest lets [Desk.Prompt] wait until the receiver has read all messages and its turn has ended; the last answer is then that to all
	// of them. An abort leaves those that are not read yet without an answer; the next request has them.
	Rest bool `json:"rest,omitempty"`
	// Resume resumes a mission that has stopped, for a caller that wants the answer. The server does that; a [Desk] starts no work.
	Resume bool `json:"resume,omitempty"`
}

// MaxPost bounds the text of a [Post], in bytes, because every later request of its receiver repeats it. A goal has the same limit.
const MaxPost = 256 << 10

// Posted is where a [Post] was stored.
type Posted struct {
	ID      string                  `json:"id"`
	Mission string                  `json:"mission"`
	Status  centurion.MissionStatus `json:"status"` // of the mission
	Session string                  `json:"session,omitempty"`
	Address string                  `json:"address,omitempty"` // empty for a task without a session
	Agent   string                  `json:"agent"`
	Task    string                  `json:"task,omitempty"`
	State   centurion.TaskStatus    `json:"state,omitempty"` // of the task
	Reason  string                  `json:"reason,omitempty"`
	Working bool                    `json:"working"`           // the mission is being worked on: the message is read without a resume
	Compact bool                    `json:"compact,omitempty"` // it was [CompactWord]: nothing was stored, the history is to be shortened
	Short   bool                    `json:"short,omitempty"`   // for [CompactWord]: there is nothing to shorten
	Done    bool                    `json:"done,omitempty"`    // for [CompactWord]: the summary is there
}

// Desk takes the messages for all missions of a host. Its methods may be called from several goroutines.
type Desk struct {
	// Hold keeps a mission from beginning until release is called. Nil where none ever runs.
	Hold func(mission string) (working bool, release func())
	// Forget removes what is reverted of a conversation that a message without an answer continues. Nil where none ever runs.
	Forget func(ctx context.Context, mission string) error
	// Shorten shortens a session's history, and reports whether that is done already; see orchestrator.Host.Shorten.
	Shorten func(ctx context.Context, session string) (done bool, err error)

	Hooks centurion.Hooks // of plugins; nil has none
	store *store.Store
	// Agent finds an agent of a profile. Nil where sessions keep theirs.
	Agent func(profile, name string) (agents.Agent, error)

	model    func(ref string) (agent.Model, error)
	sessions func(mission string) *agent.Sessions
	waiters
}

// New returns a desk where nobody waits. Model finds a model by its "provider/model" name; nil checks no files. Sessions returns the
// sessions of a mission that is being worked on, and nil for any other.
func New(st *store.Store, model func(ref string) (agent.Model, error), sessions func(mission string) *agent.Sessions) *Desk {
	return &Desk{store: st, model: model, sessions: sessions,
		waiters: waiters{open: map[string]bool{}, closing: map[string]chan struct{}{}, waiting: map[*waiter]struct{}{}}}
}

// Send stores a message for an agent of a mission and wakes its receiver. The receiver reads it exactly once, also across a crash: the
// Commander between two of its steps, or at once if it is idle; a task's agent likewise, when it runs. Messages to one receiver arrive
// in the order in which they were sent; one that steers does not wait for one that is queued. A mission that has stopped reads it when
// it is resumed. The error has centurion.KindUsage for an empty or too long text, KindNotFound for an unknown receiver and KindConflict
// for one that has ended.
func (d *Desk) Send(ctx context.Context, p Post) (_ Posted, err error) {
	if strings.TrimSpace(p.Text) == CompactWord { // then nothing is sent
		defer func() {
			if e, ok := errors.AsType[*centurion.Error](err); ok && e.Op == "send" {
				e := *e
				e.Op = "compact"
				err = &e
			}
		}()
	}
	if err := p.complete(); err != nil {
		return Posted{}, err
	}
	to, err := Find(ctx, d.store, p.Mission, p.To)
	if err != nil {
		return Posted{}, err
	}
	if p.Agent, p.Model, err = d.checkAgent(ctx, to, p); err != nil {
		return Posted{}, err
	}
	if err := d.checkFiles(ctx, to.Session, p); err != nil {
		return Posted{}, err
	}
	if compact, err := p.wantsCompact(); compact || err != nil {
		if err != nil {
			return Posted{}, err
		}
		return d.compactReceiver(ctx, p, to)
	}
	put := put
	switch {
	case p.NoReply:
		put = d.note
	case p.Model != "":
		put = d.remodel
	}
	if (p.NoReply || p.Model != "") && d.Hold != nil { // a conversation that begins meanwhile would not know of it
		working, release := d.Hold(to.Mission)
		defer release()
		if p.NoReply && !working {
			if err := d.Forget(ctx, to.Mission); err != nil {
				return Posted{}, err
			}
		}
	}
	got, err := d.keep(ctx, p, to, put)
	if err != nil {
		return Posted{}, err
	}
	if s := d.sessions(got.Mission); s != nil {
		got.Working = true
		s.Notify()
	}
	return got, nil
}

// complete fills in the defaults of a message and checks what needs no store.
func (p *Post) complete() error {
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
	return centurion.CheckFiles(p.files())
}

func (p Post) delivery(mission, to string) store.Delivery {
	return store.Delivery{ID: p.ID, Mission: mission, Session: to, Wake: true, Created: centurion.Now(), Text: p.Text,
		Origin: p.Origin, Queue: p.Queue, NoReply: p.NoReply, Rest: p.Rest, Agent: p.Agent, Model: p.Model, Files: p.Files, Parts: p.Parts}
}

// remodel stores a message for the mission's own agent, which has another model from then on: at once while nobody works on the mission,
// so that a model that is gone does not keep the session from being opened.
func (d *Desk) remodel(tx *store.Tx, p Post, to Receiver) (Posted, error) {
	got, err := put(tx, p, to)
	if err != nil || d.sessions(got.Mission) != nil {
		return got, err
	}
	rec, err := tx.Session(got.Session)
	return got, cmp.Or(err, state.Recast(tx, &rec, nil, p.Model))
}

// checkAgent returns the agent and the model that a message gives to its receiver. It refuses what that cannot have.
func (d *Desk) checkAgent(ctx context.Context, to Receiver, p Post) (name, model string, err error) {
	if p.Agent+p.Model == "" || to.Mission == "" {
		return "", p.Model, nil
	}
	refuse := func(msg, hint string) (string, string, error) {
		return "", "", &centurion.Error{Op: "send", Kind: centurion.KindConflict, Msg: msg, Hint: hint}
	}
	if to.Session == "" {
		return refuse("the task has not begun, and takes no agent and no model", "leave them out")
	}
	rec, err := d.store.Session(ctx, to.Session)
	if err != nil {
		return "", "", err
	}
	m, err := d.store.Mission(ctx, to.Mission)
	if err != nil {
		return "", "", err
	}
	same := p.Agent == "" || strings.EqualFold(rec.Agent, p.Agent)
	switch {
	case !same && (to.Task != "" || p.NoReply || d.Agent == nil || !state.Alone(m.Options.Profile)):
		return refuse(fmt.Sprintf("this session is one of %s, and not of %s", rec.Agent, p.Agent), "begin another session with that agent, or copy this one: centurion fork "+rec.ID)
	case to.Task != "" && p.Model != "" && p.Model != rec.Own().String():
		return refuse("the model cannot change: a task keeps its own", "leave the model as it is")
	case to.Task != "":
		return "", "", nil
	case same:
		return text.When(p.Agent != "", rec.Agent), p.Model, nil
	}
	a, err := d.Agent(m.Options.Profile, p.Agent)
	if err == nil && a.Model != "" && p.Model == "" && d.model != nil {
		var own agent.Model
		own, err = d.model(a.Model)
		p.Model = own.Ref.String()
	}
	return a.Name, p.Model, err
}

// note stores a message that wants no answer: in the conversation itself, unless that is at work, and takes it in before its next request.
func (d *Desk) note(tx *store.Tx, p Post, to Receiver) (got Posted, err error) {
	got = Posted{ID: p.ID, Session: to.Session}
	if to.Mission != "" { // it is no opened session
		var m centurion.Mission
		if m, got, err = describe(tx, p, to); err != nil {
			return got, err
		}
		if got.Session == "" || m.Status.Alive() && d.sessions(m.ID) != nil {
			return put(tx, p, to)
		}
		if !reopens(m, got) {
			if err := reachable(m, got); err != nil {
				return got, err
			}
		}
	}
	rec, err := tx.Session(got.Session)
	if err == nil {
		err = tx.CheckNewMessage(p.ID)
	}
	if err == nil {
		_, err = state.Say(tx, &rec, p.delivery(to.Mission, rec.ID))
	}
	return got, err
}

// files are all files of a message.
func (p Post) files() []centurion.File {
	return append(slices.Clip(p.Files), centurion.FilesOf(p.Parts)...)
}

// put stores a message for a receiver that will still read it.
func put(tx *store.Tx, p Post, to Receiver) (Posted, error) {
	m, got, err := describe(tx, p, to)
	if err != nil {
		return got, err
	}
	switch was, err := tx.Delivery(p.ID); {
	case err == nil && was.Mission == m.ID && was.Text == p.Text:
		return got, nil // the sender did not learn that it had arrived
	case err == nil:
		return got, &centurion.Error{Op: "send", Kind: centurion.KindUsage, Msg: "another message has the id " + p.ID, Hint: "give each message an id of its own, or none"}
	case centurion.KindOf(err) != centurion.KindNotFound:
		return got, err
	}
	if err := tx.CheckNewMessage(p.ID); err != nil {
		return got, err
	}
	if reopens(m, got) {
		if m, err = reopen(tx, m); err != nil {
			return got, err
		}
		got.Status = m.Status
	}
	if err := reachable(m, got); err != nil {
		return got, err
	}
	d := p.delivery(m.ID, cmp.Or(got.Session, got.Task))
	if err := tx.PutDelivery(&d); err != nil {
		return got, err
	}
	var files []string
	for _, f := range p.files() {
		files = append(files, f.Describe())
	}
	_, err = tx.Append(centurion.Event{Type: centurion.EventMessageQueued, Mission: m.ID, Session: got.Session, Task: got.Task,
		Data: event.Data(event.QueuedData{ID: d.ID, Address: got.Address, Origin: d.Origin, Queue: d.Queue, Text: centurion.Clip(d.Text, 2000), Files: files})})
	return got, err
}

// describe returns the mission of a receiver, and the receiver as it is now.
func describe(tx *store.Tx, p Post, to Receiver) (centurion.Mission, Posted, error) {
	m, err := tx.Mission(to.Mission)
	got := Posted{ID: p.ID, Mission: m.ID, Status: m.Status, Session: to.Session, Task: to.Task}
	if err == nil && to.Task != "" {
		var t centurion.Task
		t, err = tx.Task(to.Task)
		got.Session, got.Agent, got.State, got.Reason = t.Session, t.Agent, t.Status, t.Reason
	}
	if err == nil && got.Session != "" {
		var s centurion.Session
		s, err = tx.Session(got.Session)
		got.Agent, got.Address = s.Agent, s.Metadata.Address
	}
	return m, got, err
}

// reachable refuses a message that no agent would ever read.
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

// ErrUnread says that a mission cannot be complete: a message has come that its Commander has not read.
var ErrUnread = &centurion.Error{Kind: centurion.KindInterrupted, Msg: "a person has written"}

// AllRead returns [ErrUnread] if a session has not read everything that was written to it.
func AllRead(tx *store.Tx, session string) error {
	waiting, err := tx.PendingDeliveries(session)
	if err == nil && slices.ContainsFunc(waiting, state.IsMail) {
		err = ErrUnread
	}
	return err
}

// HasUnread reports whether a session has not read everything that was written to it. It is false where that cannot be read: the
// transaction of the verdict, which asks [AllRead], fails for the same reason.
func HasUnread(ctx context.Context, st *store.Store, session string) bool {
	waiting, err := st.PendingDeliveries(ctx, session)
	return err == nil && slices.ContainsFunc(waiting, state.IsMail)
}

// The one agent of the profile assistant ends its run with each answer, and continues with the same history when it gets a message. A
// completed mission of the profile mission stays ended, and so does a run that a person has cancelled.

// Continues reports whether a message to a mission's root begins it again although nobody works on it: the last run of the
// profile assistant is complete, or was when the message came.
func Continues(m centurion.Mission) bool {
	return state.Alone(m.Options.Profile) && (m.Status == centurion.MissionCompleted ||
		m.Status == centurion.MissionPaused && m.Reason == ErrUnread.Msg)
}

// GoesOn reports whether a message to a mission's root whose answer is waited for lets it continue although nobody works on it: one that
// [Continues], and a run of the profile assistant that was paused, as by a rewind, a stop or the end of its host.
func GoesOn(m centurion.Mission) bool {
	return Continues(m) || state.Alone(m.Options.Profile) && m.Status == centurion.MissionPaused
}

// reopens reports whether a message makes a completed run one that can be resumed.
func reopens(m centurion.Mission, to Posted) bool {
	return to.Task == "" && m.Status == centurion.MissionCompleted && Continues(m)
}

// reopen makes a completed run one that can be resumed.
func reopen(tx *store.Tx, m centurion.Mission) (centurion.Mission, error) {
	return state.MoveMission(tx, m.ID, centurion.MissionPaused, ErrUnread.Msg, func(r *centurion.Mission) {
		r.Stands(centurion.Mission{Status: r.Status, Reason: r.Reason, Reopened: r.Reopened})
	})
}

// reopenedSince reports whether a message has come to a run after it was recorded as complete, while its work was still being cleared
// away, and returns the mission as it is now. A message that comes after this look has to begin the run itself, so that the mission is
// closed before.
func (d *Desk) reopenedSince(ctx context.Context, rec centurion.Mission) (centurion.Mission, bool) {
	if !reopens(rec, Posted{}) {
		return rec, false
	}
	now, err := d.store.Mission(context.WithoutCancel(ctx), rec.ID)
	if err != nil || now.Status != centurion.MissionPaused || !Continues(now) {
		return rec, false
	}
	return now, true
}
