package session

import (
	"slices"

	"centurion"
	"centurion/store"
)

// PutModel records, in tx, the model of the session from its next request on, and the failures that led to it. The session's own model
// is kept. Open the session again with the new model afterwards.
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

// ClearRetry records, in tx, that no request waits for a retry: the streak of failures is over.
func (s *Session) ClearRetry(tx *store.Tx) error {
	s.isAsked()
	s.rec.Metadata.Retry = nil
	return tx.PutSession(&s.rec)
}

// fitting omits thoughts of other models from the history: reasoning is signed by its model, and others refuse it.
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
