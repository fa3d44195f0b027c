package state

import (
	"cmp"
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

// Recast gives a session the agent that begins changes it to, unless that is nil, and the model that a message names, unless it has them.
func Recast(tx *store.Tx, rec *centurion.Session, begins func(*centurion.Session), model string) error {
	agent, own := rec.Agent, rec.Own().String()
	if begins != nil {
		begins(rec)
	}
	if model != "" && model != own {
		provider, id, _ := strings.Cut(model, "/")
		rec.Model, rec.Metadata.OwnModel = &centurion.SessionModel{ID: id, Provider: provider}, nil
	}
	tell := func(t centurion.EventType, from, to string) error {
		if from == to {
			return nil
		}
		_, err := tx.Append(centurion.Event{Type: t, Mission: rec.Metadata.Mission, Session: rec.ID,
			Data: event.Data(event.ModelData{Agent: rec.Agent, From: from, To: to, Reason: "a message of the person names it"})})
		return err
	}
	if rec.Agent == agent && rec.Own().String() == own {
		return nil
	}
	return cmp.Or(tx.PutSession(rec), tell(centurion.EventSessionAgent, agent, rec.Agent), tell(centurion.EventSessionModel, own, rec.Own().String()))
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
