package mail

import (
	"context"
	"fmt"
	"strings"

	"centurion"
	"centurion/session"
	"centurion/store"
)

// CompactWord is the text of a [Post] that is meant for the host: the agent does not read it, and its history is shortened instead.
const CompactWord = "/compact"

// wantsCompact reports whether a message is [CompactWord]. The error has centurion.KindUsage for text after it, which would be lost.
func (p Post) wantsCompact() (bool, error) {
	word, rest, _ := strings.Cut(strings.TrimSpace(p.Text), " ")
	if word != CompactWord || p.Origin != centurion.OriginPerson {
		return false, nil
	}
	if rest != "" {
		return false, &centurion.Error{Op: "send", Kind: centurion.KindUsage, Msg: CompactWord + " takes no text behind it",
			Hint: "send " + CompactWord + " alone, and what the agent should know in a message of its own"}
	}
	return true, nil
}

// compactReceiver shortens the history of a message's receiver, unless it is short.
func (d *Desk) compactReceiver(ctx context.Context, p Post, to Receiver) (Posted, error) {
	var m centurion.Mission
	var got Posted
	err := d.store.Update(ctx, func(tx *store.Tx) (err error) { // it only reads
		m, got, err = describe(tx, p, to)
		return err
	})
	got.Compact = true
	if err != nil {
		return got, err
	}
	if got.Session == "" {
		return got, &centurion.Error{Op: "compact session", Kind: centurion.KindConflict, Msg: "task " + to.Task + " has no conversation yet",
			Hint: "it begins with a short one; see: centurion tasks " + m.ID}
	}
	if got.Task != "" { // no other session of an ended mission makes a request
		if err := reachable(m, got); err != nil {
			return got, err
		}
	}
	got.Working = d.sessions(m.ID) != nil
	stored, err := d.store.Messages(ctx, got.Session)
	if err != nil {
		return got, err
	}
	if got.Short = session.Short(stored); got.Short {
		return got, nil
	}
	got.Done, err = d.Shorten(ctx, got.Session)
	return got, err
}

// Compact asks for a session's history to be shortened before its next request: while it works, or when it is resumed. A history
// without anything to shorten stays as it is. The error has centurion.KindNotFound for an unknown session and centurion.KindConflict for
// one whose mission is over; a complete run of the profile assistant is not over, because the next message reopens it.
func (d *Desk) Compact(ctx context.Context, session string) error {
	rec, err := d.store.Session(ctx, session)
	if err != nil {
		return err
	}
	m, err := d.store.Mission(ctx, rec.Metadata.Mission)
	if err != nil {
		return err
	}
	if m.Status.Ended() && !reopens(m, Posted{Task: rec.Metadata.Task}) {
		return &centurion.Error{Op: "compact session", Kind: centurion.KindConflict, Msg: fmt.Sprintf("its mission %s is %s", m.ID, m.Status),
			Hint: "only the sessions of a mission that goes on can be shortened; see: centurion ps"}
	}
	// It is stored first, so that a host that dies before that request does not lose it. A conversation that is open writes the row from
	// its memory, so it is told as well.
	err = d.store.Update(ctx, func(tx *store.Tx) error {
		rec, err := tx.Session(session)
		if err != nil {
			return err
		}
		rec.Metadata.Compact = true
		return tx.PutSession(&rec)
	})
	if s := d.sessions(m.ID); s != nil && err == nil {
		s.Compact(session)
	}
	return err
}
