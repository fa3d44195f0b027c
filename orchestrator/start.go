package orchestrator

import (
	"context"

	"centurion"
	"centurion/event"
	"centurion/session"
	"centurion/store"
)

// opening is what a mission begins with.
type opening struct {
	mission centurion.Mission
	session centurion.Session
	text    string // the first message
	texts   string // attached to it as a part of its own
	files   []centurion.File
	instead string // why another model than the agent's own begins, empty if it does not
	note    string // what the host tells the person of it, empty if nothing
}

// recordStart writes a mission with its root's session and first message, in one transaction.
func (h *Host) recordStart(ctx context.Context, o opening) error {
	return h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		m, rec := o.mission, o.session
		if err := tx.PutMission(&m); err != nil {
			return err
		}
		d := living(m)
		d.Note = o.note
		if _, err := tx.Append(centurion.Event{Type: centurion.EventMissionStarted, Mission: m.ID, Session: rec.ID,
			Data: event.Data(d)}); err != nil {
			return err
		}
		err := session.Create(tx, &rec, centurion.OriginPerson, o.text, o.files...)
		if err == nil {
			err = attachText(tx, rec.ID, o.texts)
		}
		if err != nil || o.instead == "" {
			return err
		}
		return beganWith(tx, &rec, o.instead)
	})
}
