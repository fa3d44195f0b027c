package session

import (
	"slices"

	"centurion"
	"centurion/store"
)

// PutModel records, in tx, that the session talks to another model from its next request on, and with which failures
// behind it. The model that it was given stays known. Open it again with that model afterwards.
func (s *Session) PutModel(tx *store.Tx, to centurion.ModelRef, r centurion.Retry) error {
	s.isAsked()
	rec := s.rec
	if rec.Metadata.OwnModel == nil {
		rec.Metadata.OwnModel = rec.Model
	}
	rec.Model = &centurion.SessionModel{ID: to.ID, Provider: to.Provider}
	if own := rec.Metadata.OwnModel; own != nil && *own == *rec.Model {
		rec.Metadata.OwnModel = nil
	}
	rec.Metadata.Retry = &r
	if err := tx.PutSession(&rec); err != nil {
		return err
	}
	s.rec = rec
	return nil
}

// ClearRetry records, in tx, that no request waits to be repeated: the row of failures is over.
func (s *Session) ClearRetry(tx *store.Tx) error {
	s.isAsked()
	s.rec.Metadata.Retry = nil
	return tx.PutSession(&s.rec)
}

// fitting leaves out of the history what another model has thought: reasoning is signed by the model that it came from, and
// another one refuses it.
func fitting(stored []centurion.Message, model centurion.ModelRef) []centurion.Message {
	foreign := func(m centurion.Message) bool {
		return m.Role == centurion.RoleAssistant && m.Model != model &&
			slices.ContainsFunc(m.Parts, func(p centurion.Part) bool { return p.Type == centurion.PartReasoning })
	}
	if !slices.ContainsFunc(stored, foreign) {
		return stored
	}
	fit := slices.Clone(stored)
	for i, m := range fit {
		if foreign(m) {
			fit[i].Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p centurion.Part) bool { return p.Type == centurion.PartReasoning })
		}
	}
	return fit
}
