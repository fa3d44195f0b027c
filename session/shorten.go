package session

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"centurion"
	"centurion/event"
)

// ErrUnended says that a conversation cannot be shortened before it goes on: calls have no result, or an answer is not whole.
var ErrUnended = errors.New("not everything of the last answer has ended")

// Shorten replaces the history of a conversation that nobody works on by a summary, as a person has asked; its tools need not be known.
// Nothing is changed by an error: that of the model, [ErrUnended], or one with centurion.KindConflict if there is nothing to shorten or
// somebody has written meanwhile.
func Shorten(ctx context.Context, cfg Config, id string) error {
	rec, err := cfg.Store.Session(ctx, id)
	if err != nil {
		return err
	}
	stored, err := cfg.Store.Messages(ctx, id)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(stored, unended) {
		return ErrUnended
	}
	if Short(stored) {
		return &centurion.Error{Op: "compact", Kind: centurion.KindConflict, Msg: "there is nothing to shorten in session " + id, Hint: "write to it first"}
	}
	v := viewOf(stored)
	s := &Session{cfg: cfg, acted: map[string]string{}, rec: rec, history: v.history, fresh: v.fresh, row: v.row, leaf: stored[len(stored)-1].ID}
	// What the newest request had besides the history, such as the tools, goes on taking its place.
	s.status = max(0, (s.size()-s.fixed())*perToken-weightOf(s.history))
	_, err = s.compact(ctx, event.CompactedAsked)
	return err
}

// unended reports whether an opened session would have to repair a message, or to run its calls.
func unended(m centurion.Message) bool {
	return m.Role == centurion.RoleAssistant && (m.Finish == "" || slices.ContainsFunc(m.Parts, func(p centurion.Part) bool {
		return p.Type == centurion.PartTool && p.State != nil && !p.State.Ended()
	}))
}

// unwritten is the error of a summary that its model did not write, to the person who waits for it.
func unwritten(err error) error {
	err = cmp.Or(err, error(&centurion.Error{Msg: "its answer is empty"}))
	return &centurion.Error{Op: "compact", Kind: centurion.KindNoAnswer, Msg: "the model wrote no summary, and the conversation is as it was", Err: err, Hint: centurion.HintOf(err)}
}

// overtaken is the error of a summary that would hide what was written to the session meanwhile.
func (s *Session) overtaken() error {
	return &centurion.Error{Op: "compact", Kind: centurion.KindConflict, Msg: "a message was written to session " + s.rec.ID + " meanwhile", Hint: "ask again"}
}
