package rpc

import (
	"context"
	"iter"
	"strings"

	"centurion"
	"centurion/orchestrator"
	"centurion/server"
	"centurion/store"
)

// Bridge drives the sessions of a project through its API.
type Bridge struct {
	// API returns who serves the project at the moment.
	API func() server.API
	// Begin starts a mission as the configuration says.
	Begin func(ctx context.Context, p StartParams) (server.Mission, error)
	// Follow yields events, also across hosts. Nil asks whoever serves the project when it is called.
	Follow func(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error]
	// Moved reports whether somebody else than was serves the project now, and finds who does. Nil means that nobody ever
	// does.
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

// Prompt writes to a session and waits for the answer. A mission that has stopped goes on for it.
func (b *Bridge) Prompt(ctx context.Context, p PromptParams) (Answer, error) {
	s, err := b.Session(ctx, p.Session)
	if err != nil {
		return Answer{}, err
	}
	post := orchestrator.Post{ID: centurion.NewID(centurion.PrefixDelivery), To: s.ID, Text: p.Text, Queue: p.Policy == "queue",
		Origin: centurion.OriginPerson, Resume: true}
	for {
		api := b.API()
		got, err := api.Prompt(ctx, post)
		if centurion.KindOf(err) == centurion.KindNetwork && b.Moved != nil {
			moved, merr := b.Moved(ctx, api)
			if merr != nil {
				return Answer{}, merr
			}
			if moved { // the next one is asked the same, by its id
				continue
			}
		}
		return Answer{Text: got.Text, Finish: got.Finish, Message: got.Message}, err
	}
}

// Abort ends the turn of a session, and not the session.
func (b *Bridge) Abort(ctx context.Context, session, reason string) error {
	return b.of(ctx, session, func(id string) error { return b.API().Abort(ctx, id, reason) })
}

// Stop ends a session with its tools and its children.
func (b *Bridge) Stop(ctx context.Context, session, reason string) error {
	return b.of(ctx, session, func(id string) error { return b.API().Stop(ctx, id, reason) })
}

// of does something to a session that there is.
func (b *Bridge) of(ctx context.Context, session string, do func(id string) error) error {
	s, err := b.Session(ctx, session)
	if err != nil {
		return err
	}
	return do(s.ID)
}

// State tells how a session stands.
func (b *Bridge) State(ctx context.Context, session string) (State, error) {
	s, err := b.Session(ctx, session)
	if err != nil {
		return State{}, err
	}
	seq, err := b.LastSeq(ctx) // before: what comes meanwhile is told again, and nothing is missed
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

// Asks lists what waits for a person.
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

// LastSeq is the number of the newest fact.
func (b *Bridge) LastSeq(ctx context.Context) (int64, error) { return b.API().LastSeq(ctx) }
