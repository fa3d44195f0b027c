package state

import (
	"strings"

	"centurion"
	"centurion/event"
	"centurion/store"
)

// BeganWith tells that a new session does not begin with the model that it was given.
func BeganWith(tx *store.Tx, rec *centurion.Session, why string) error {
	_, err := tx.Append(centurion.Event{Type: centurion.EventSessionModel, Mission: rec.Metadata.Mission, Session: rec.ID, Task: rec.Metadata.Task,
		Data: event.Data(event.ModelData{Agent: rec.Agent, From: rec.Own().String(), To: rec.Model.Provider + "/" + rec.Model.ID,
			Kind: centurion.KindRateLimit, Reason: why})})
	return err
}

// Remodel gives sessions whose own model is one another one, from their next request on.
func Remodel(tx *store.Tx, sessions []centurion.Session, from, to string) error {
	for _, s := range sessions {
		if s.Model == nil || s.Own().String() != from {
			continue
		}
		rec, err := tx.Session(s.ID)
		if err != nil {
			return err
		}
		provider, id, _ := strings.Cut(to, "/")
		rec.Model, rec.Metadata.OwnModel = &centurion.SessionModel{ID: id, Provider: provider}, nil
		if err := tx.PutSession(&rec); err != nil {
			return err
		}
	}
	return nil
}
