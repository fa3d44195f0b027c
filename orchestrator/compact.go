package orchestrator

import (
	"context"
	"fmt"

	"centurion"
	"centurion/store"
)

// Compact asks for a session's history to be shortened before its next request: at once if it works, else when it goes
// on. Without anything to shorten nothing happens. The error has centurion.KindNotFound for an unknown session and
// centurion.KindConflict for one whose mission is over: the agent of a complete run of the profile assistant goes on when
// somebody writes to it.
func (h *Host) Compact(ctx context.Context, session string) error {
	rec, err := h.cfg.Store.Session(ctx, session)
	if err != nil {
		return err
	}
	m, err := h.cfg.Store.Mission(ctx, rec.Metadata.Mission)
	if err != nil {
		return err
	}
	if m.Status.Ended() && !continues(m, Posted{Task: rec.Metadata.Task}) {
		return &centurion.Error{Op: "compact session", Kind: centurion.KindConflict, Msg: fmt.Sprintf("its mission %s is %s", m.ID, m.Status),
			Hint: "only the sessions of a mission that goes on can be shortened; see: centurion ps"}
	}
	// It is stored first, so that it is not lost with a host that dies before that request; whoever holds the session writes
	// its row from memory, so it is told to them as well.
	err = h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		rec, err := tx.Session(session)
		if err != nil {
			return err
		}
		rec.Metadata.Compact = true
		return tx.PutSession(&rec)
	})
	if r := h.running(m.ID); r != nil && err == nil {
		r.sessions.Compact(session)
	}
	return err
}
