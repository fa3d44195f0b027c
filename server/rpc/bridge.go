package rpc

import (
	"context"
	"iter"
	"strings"

	"centurion"
	"centurion/orchestrator/mail"
	"centurion/server"
	"centurion/store"
)

// Bridge implements [Sessions] by the API of a project.
type Bridge struct {
	// API returns the current server of the project.
	API func() server.API
	// Begin starts a mission according to the configuration.
	Begin func(ctx context.Context, p StartParams) (server.Mission, error)
	// Follow yields events, even across hosts. Nil uses the current server at the time of the call.
	Follow func(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error]
	// Moved reports whether another process than was serves the project now, and switches to it. Nil means never.
	Moved func(ctx context.Context, was server.API) (bool, error)
}

var _ Sessions = (*Bridge)(nil)

// Start begins a mission.
func (b *Bridge) Start(ctx context.Context, p StartParams) (Started, error) {
	if strings.TrimSpace(p.Prompt) == "" {
		return Started{}, &centurion.Error{Op: "session/start", Kind: centurion.KindUsage, Msg: "prompt is empty", Hint: "say what is to be done"}
	}
	m, err := b.Begin(ctx, p)
	return Started{Mission: m.ID, Session: m.Session}, err
}

// Prompt sends a message to a session and waits for the answer. It resumes a stopped mission.
func (b *Bridge) Prompt(ctx context.Context, p PromptParams) (Answer, error) {
	s, err := b.Session(ctx, p.Session)
	if err != nil {
		return Answer{}, err
	}
	post := mail.Post{ID: centurion.NewID(centurion.PrefixDelivery), To: s.ID, Text: p.Text, Parts: p.Parts, Typed: p.Typed, Queue: p.Policy == "queue",
		Origin: centurion.OriginPerson, Resume: true}
	for {
		api := b.API()
		got, err := api.Prompt(ctx, post)
		if centurion.KindOf(err) == centurion.KindNetwork && b.Moved != nil {
			moved, merr := b.Moved(ctx, api)
			if merr != nil {
				return Answer{}, merr
			}
			if moved { // repeat the request to the next server, by its id
				continue
			}
		}
		return Answer{Text: got.Text, Finish: got.Finish, Message: got.Message}, err
	}
}

// Abort ends the turn of a session, but not the session.
func (b *Bridge) Abort(ctx context.Context, session, reason string) error {
	return b.of(ctx, session, func(id string) error { return b.API().Abort(ctx, id, reason) })
}

// Stop ends a session with its tools and its children.
func (b *Bridge) Stop(ctx context.Context, session, reason string) error {
	return b.of(ctx, session, func(id string) error { return b.API().Stop(ctx, id, reason) })
}

// of calls do for an existing session.
func (b *Bridge) of(ctx context.Context, session string, do func(id string) error) error {
	s, err := b.Session(ctx, session)
	if err != nil {
		return err
	}
	return do(s.ID)
}

// State returns the state of a session.
func (b *Bridge) State(ctx context.Context, session string) (State, error) {
	s, err := b.Session(ctx, session)
	if err != nil {
		return State{}, err
	}
	seq, err := b.LastSeq(ctx) // read first: later events are repeated, and none is missed
	if err != nil {
		return State{}, err
	}
	st, err := b.API().State(ctx, s.ID)
	return State{State: st, Seq: seq}, err
}

// List returns the sessions of one mission or of all.
func (b *Bridge) List(ctx context.Context, mission string) ([]centurion.Session, error) {
	if mission != "" {
		return b.API().Sessions(ctx, mission)
	}
	missions, err := b.API().Missions(ctx)
	var all []centurion.Session
	for _, m := range missions {
		some, serr := b.API().Sessions(ctx, m.ID)
		if serr != nil {
			return nil, serr
		}
		all = append(all, some...)
	}
	return all, err
}

// Session returns a session.
func (b *Bridge) Session(ctx context.Context, id string) (centurion.Session, error) {
	if id == "" {
		return centurion.Session{}, &centurion.Error{Kind: centurion.KindUsage, Msg: "session is missing", Hint: "session/list tells their ids"}
	}
	return b.API().Session(ctx, id)
}

// History returns the messages of a session.
func (b *Bridge) History(ctx context.Context, session string) ([]server.Message, error) {
	if _, err := b.Session(ctx, session); err != nil {
		return nil, err
	}
	return b.API().Messages(ctx, session)
}

// Asks lists the open asks.
func (b *Bridge) Asks(ctx context.Context) ([]store.Ask, error) { return b.API().Asks(ctx) }

// Answer answers an ask.
func (b *Bridge) Answer(ctx context.Context, ask, answer string) error {
	return b.API().Answer(ctx, ask, answer)
}

// Events yields events.
func (b *Bridge) Events(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error] {
	if b.Follow != nil && q.Follow {
		return b.Follow(ctx, q)
	}
	return b.API().Events(ctx, q)
}

// LastSeq is the number of the newest event.
func (b *Bridge) LastSeq(ctx context.Context) (int64, error) { return b.API().LastSeq(ctx) }
