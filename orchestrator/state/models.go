package state

import (
	"strings"

	"centurion"
	"centurion/event"
	"centurion/store"
)

// BeganWith records that a new session begins with another model than its own.
func BeganWith(tx *store.Tx, rec *centurion.Session, why string) error {
	_, err := tx.Append(centurion.Event{Type: centurion.EventSessionModel, Mission: rec.Metadata.Mission, Session: rec.ID, Task: rec.Metadata.Task,
		Data: event.Data(event.ModelData{Agent: rec.Agent, From: rec.Own().String(), To: rec.Model.Provider + "/" + rec.Model.ID,
			Kind: centurion.KindRateLimit, Reason: why})})
	return err
}

// Remodel changes the model of sessions that have their own model from, starting with their next request.
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
