package branches

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"centurion"
	"centurion/event"
	"centurion/failpoint"
	"centurion/orchestrator/mail"
	"centurion/orchestrator/roots"
	"centurion/orchestrator/state"
	"centurion/store"
)

// Reverted is the result of [Branches.Revert].
type Reverted struct {
	Session centurion.Session `json:"session"`
	Kept    []string          `json:"kept,omitempty"` // files that somebody else has changed, too: they stay as they are
}

// Revert reverts a root conversation from a message on: its mission's own agent forgets that at the next message, and the files that it has
// changed since are as they were, unless others have changed them, too. An answer counts as the message that it answers. Until the next
// message another one can be named, and "" brings everything back. A crash leaves the state before or after it, once a host has started.
//
// The error has centurion.KindNotFound for a message that is not on the current line, and KindConflict while the mission is worked on, for
// one that no message continues, and if files were changed in a way that only an undo takes back.
func (b *Branches) Revert(ctx context.Context, id, message string) (Reverted, error) {
	ctx = context.WithoutCancel(ctx) // a client that leaves does not stop it half-way
	rec, err := b.Store.Session(ctx, id)
	if err == nil {
		err = roots.IsRoot(rec)
	}
	mission := rec.Metadata.Mission
	if err != nil || mission == "" && message == "" {
		return Reverted{Session: rec}, err
	}
	if mission == "" {
		return Reverted{}, noMessages("revert", id)
	}
	b.Rest(ctx, mission, id)
	working, release := b.Hold(mission)
	defer release()
	if working {
		return Reverted{}, refused("wait for its end, or end it first: centurion pause "+mission, "mission %s is being worked on", mission)
	}
	if b.Command(id) != nil {
		return Reverted{}, commandRuns("revert", id)
	}
	if _, err := b.settle(ctx, mission, true); err != nil { // what a host left that has died
		return Reverted{}, err
	}
	if err := b.choose(ctx, mission, message); err != nil {
		return Reverted{}, err
	}
	kept, err := b.settle(ctx, mission, false)
	if err != nil {
		return Reverted{}, err
	}
	m, err := b.Store.Mission(ctx, mission)
	return Reverted{roots.Shown(rec, m), kept}, err
}

func refused(hint, format string, args ...any) error {
	return &centurion.Error{Op: "revert", Kind: centurion.KindConflict, Msg: fmt.Sprintf(format, args...), Hint: hint}
}

// choose records what is to be reverted.
func (b *Branches) choose(ctx context.Context, mission, message string) error {
	m, err := b.Store.Mission(ctx, mission)
	if err != nil {
		return err
	}
	t, err := b.Store.Tree(ctx, m.Session)
	if err != nil {
		return err
	}
	var later []centurion.Message
	if message != "" {
		if later, err = laterFrom(t, message); err != nil {
			return err
		}
		if err := b.revertible(ctx, m, later[0]); err != nil {
			return err
		}
		message = later[0].ID
	}
	switch r := m.Revert; {
	case r == nil && message == "" || r != nil && r.Message == message:
		return nil
	case r != nil:
		r.Next = &message
		return b.put(ctx, mission, r)
	}
	r, err := b.Files.Plan(ctx, later)
	if err != nil {
		return err
	}
	return b.put(ctx, mission, &r)
}

// laterFrom lists the messages of the current line from the user message on that is named, or answered by the one that is named.
func laterFrom(t store.Tree, message string) ([]centurion.Message, error) {
	line := t.Line(t.Leaf)
	at := slices.IndexFunc(line, func(m centurion.Message) bool { return m.ID == message })
	if at < 0 {
		return nil, &centurion.Error{Op: "revert", Kind: centurion.KindNotFound, Msg: "session " + t.Session.ID + " has no message " + message + " on its line",
			Hint: "see: centurion show --tree " + t.Session.ID}
	}
	for at > 0 && line[at].Role != centurion.RoleUser {
		at--
	}
	return line[at:], nil
}

// revertible refuses what would leave work behind, or a conversation that nobody could continue.
func (b *Branches) revertible(ctx context.Context, m centurion.Mission, from centurion.Message) error {
	alone := state.Alone(m.Options.Profile)
	switch {
	case m.Status.Ended() && !mail.Continues(m):
		return refused(fmt.Sprintf("go back in it with: centurion rewind %s --to MESSAGE; its work is undone by: centurion undo %s", m.Session, m.ID),
			"mission %s is %s", m.ID, m.Status)
	case !alone && from.Prev == "":
		return refused("open another session; its work is undone by: centurion undo "+m.ID, "it is the goal of mission %s", m.ID)
	case m.Merged != nil && m.Merged.Time.Millis() > from.Time.Created:
		return refused("undo that first: centurion undo "+m.ID, "the work of mission %s was merged since", m.ID)
	case alone || m.Isolation == centurion.IsolationWorktree: // what is not merged is on the mission's branch
		return nil
	}
	return b.withoutTasks(ctx, m, from.Time.Created)
}

// withoutTasks refuses a revert if tasks have changed files since a time.
func (b *Branches) withoutTasks(ctx context.Context, m centurion.Mission, since int64) error {
	tasks, err := b.Store.Tasks(ctx, m.ID)
	for _, t := range tasks {
		if t.Undone.IsZero() && slices.ContainsFunc(t.Landed, func(l centurion.Landed) bool { return max(l.Time.Millis(), t.Ended.Millis()) > since }) {
			return refused("undo that first: centurion undo "+t.ID, "%s has changed files since", t.Name())
		}
	}
	return err
}

// settle moves the files as it is recorded, and names those that it has to leave; crashed says that a host may have died meanwhile.
func (b *Branches) settle(ctx context.Context, mission string, crashed bool) (kept []string, err error) {
	m, err := b.Store.Mission(ctx, mission)
	r := m.Revert
	if err != nil || r == nil || !r.Moving && r.Next == nil {
		return nil, err
	}
	if r.Next != nil {
		if kept, err = b.Files.Move(ctx, r.Files, true, crashed); err != nil {
			return nil, err
		}
		failpoint.Hit(failpoint.UndoMoved)
		if r, err = b.next(ctx, m.Session, *r.Next); err == nil {
			err = b.put(ctx, mission, r)
		}
		if err != nil || r == nil {
			return kept, err
		}
		crashed = false
	}
	left, err := b.Files.Move(ctx, r.Files, false, crashed)
	if err != nil {
		return nil, err
	}
	failpoint.Hit(failpoint.UndoMoved)
	for i := range r.Files {
		r.Files[i].Files = slices.DeleteFunc(r.Files[i].Files, func(f centurion.FileChange) bool { return slices.Contains(left, f.Path) })
	}
	r.Kept, r.Moving = append(r.Kept, left...), false
	return r.Kept, b.put(ctx, mission, r)
}

// next is the revert from a message on, nil for "".
func (b *Branches) next(ctx context.Context, session, message string) (*centurion.Revert, error) {
	if message == "" {
		return nil, nil
	}
	t, err := b.Store.Tree(ctx, session)
	if err != nil {
		return nil, err
	}
	later, err := laterFrom(t, message)
	if err != nil {
		return nil, err
	}
	r, err := b.Files.Plan(ctx, later)
	return &r, err
}

// put records what is reverted, and tells it when the files are there.
func (b *Branches) put(ctx context.Context, mission string, r *centurion.Revert) error {
	return b.Store.Update(ctx, func(tx *store.Tx) error {
		m, err := tx.Mission(mission)
		if err != nil {
			return err
		}
		m.Revert = r
		if err := tx.PutMission(&m); err != nil || r != nil && (r.Moving || r.Next != nil) {
			return err
		}
		_, err = tx.Append(centurion.Event{Type: centurion.EventSessionRenamed, Mission: mission, Session: m.Session, Data: event.Data(event.SessionData{Title: m.Title})})
		return err
	})
}

// Repair finishes the reverts of a host that has died.
func (b *Branches) Repair(ctx context.Context) error {
	all, err := b.Store.Missions(ctx)
	for _, m := range all {
		if m.Revert != nil {
			_, serr := b.settle(ctx, m.ID, true)
			err = errors.Join(err, serr)
		}
	}
	return err
}

// Forget removes what is reverted from the line of a mission's conversation, which continues. The mission does not run; "" has none.
func (b *Branches) Forget(ctx context.Context, mission string) error {
	if mission == "" {
		return nil
	}
	if _, err := b.settle(ctx, mission, true); err != nil {
		return err
	}
	m, err := b.Store.Mission(ctx, mission)
	if err != nil || m.Revert == nil {
		return err
	}
	err = b.Store.Update(ctx, func(tx *store.Tx) error {
		m, err := tx.Mission(mission)
		if err != nil || m.Revert == nil {
			return err
		}
		t, err := tx.Tree(m.Session)
		if err != nil {
			return err
		}
		r := Rewound{From: t.Leaf}
		for _, msg := range t.Messages {
			if msg.ID == m.Revert.Message {
				r.Leaf = msg.Prev
			}
		}
		return r.move(tx, t, m, centurion.Rewound{Whole: state.Alone(m.Options.Profile) && m.Isolation != centurion.IsolationWorktree, Kept: m.Revert.Kept})
	})
	if err == nil {
		err = b.Rewound(ctx, m.Session)
	}
	return err
}

// Written lists what the turn of a user message has changed in the project's own directory, or with "" what the standing revert has.
func (b *Branches) Written(ctx context.Context, session, message string) ([]centurion.FileDiff, error) {
	if message != "" {
		m, err := b.Store.Message(ctx, session, message)
		if err != nil || len(m.Wrote) == 0 {
			return nil, err
		}
		return b.Files.Written(ctx, m.Wrote)
	}
	rec, err := b.Store.Session(ctx, session)
	if err != nil || rec.Metadata.Mission == "" {
		return nil, err
	}
	m, err := b.Store.Mission(ctx, rec.Metadata.Mission)
	if err != nil || m.Revert == nil {
		return nil, err
	}
	var all []centurion.FileDiff
	for _, l := range m.Revert.Files {
		diffs, err := b.Files.Written(ctx, []centurion.Landed{l})
		if err != nil {
			return nil, err
		}
		all = append(all, diffs...)
	}
	return all, nil
}
