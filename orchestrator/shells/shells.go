// Package shells does what a person wants of a conversation that rests, and keeps its agent from working meanwhile: it runs a command,
// or shortens the history.
package shells

import (
	"context"
	"sync"

	"centurion"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/budget"
	"centurion/orchestrator/state"
	"centurion/provider"
	"centurion/session"
	"centurion/store"
	"centurion/tools"
)

// Desk serves the conversations of a project. Its methods may be called from several goroutines.
type Desk struct {
	Session session.Config // with the store, the runner, the keys and the project's directory
	// Model finds a model by its "provider/model" name.
	Model func(ref string) (agent.Model, error)
	// Hold keeps missions from beginning until release is called, and reports whether this one is running already.
	Hold func(mission string) (working bool, release func())
	Over func() // called when a command has ended
	// Renew changes what is fixed in a session's record until its next compaction.
	Renew func(ctx context.Context, rec *centurion.Session)
	// Forget removes what is reverted of a mission's conversation, which continues with the command. The mission does not run.
	Forget func(ctx context.Context, mission string) error

	mu      sync.Mutex        // protects running
	running map[string]*shell // by session
}

type shell struct {
	end   context.CancelCauseFunc
	ended chan struct{}
}

// errEnded ends a command, or a request for a summary.
var errEnded = &centurion.Error{Kind: centurion.KindCancelled, Msg: "a person has ended it"}

// Run runs a command in the project's directory, confined as the commands of agents are, and records it in the conversation, without its
// model: that knows of it in its next request. It returns the message with the call when the command has ended. The error has
// centurion.KindConflict for a session of a task, and for one that works.
func (d *Desk) Run(ctx context.Context, id, script string) (centurion.Message, error) {
	if script == "" {
		return centurion.Message{}, &centurion.Error{Op: "run command", Kind: centurion.KindUsage, Msg: "the command is empty"}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	one := &shell{cancel, make(chan struct{})}
	rec, err := d.begin(ctx, "run command", id, one)
	if err != nil {
		return centurion.Message{}, err
	}
	defer d.over(id, one)
	return session.Shell(ctx, d.Session, rec, script)
}

// Shorten replaces the history of a mission's own conversation by a summary of the model with that name, "" for its own, as a person has
// asked. The mission may have ended. The errors are those of [session.Shorten], and centurion.KindConflict for a session that works,
// centurion.KindBudget if the mission may not spend that much.
func (d *Desk) Shorten(ctx context.Context, id, model string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	one := &shell{cancel, make(chan struct{})}
	rec, err := d.begin(ctx, "compact", id, one)
	if err != nil {
		return err
	}
	defer d.over(id, one)
	mission, err := d.Session.Store.Mission(ctx, rec.Metadata.Mission)
	if err != nil {
		return err
	}
	if model == "" && rec.Model != nil {
		model = rec.Model.Provider + "/" + rec.Model.ID
	}
	m, err := d.Model(model)
	if err != nil {
		return err
	}
	cfg := d.Session
	cfg.Model, cfg.Ref, cfg.Price, cfg.MaxOut, cfg.Window, cfg.Media = m.Client, m.Ref, m.Price, m.MaxOut, m.Context, m.Media
	b := bill{mission: mission.ID, reserves: budget.New(mission, state.New(ctx, cancel, cfg.Store, mission, nil).AtLimit), price: m.Price}
	b.reserves.Open(b.mission)
	cfg.Host, cfg.Reserve = b, b.reserve
	cfg.Renewed = func(ctx context.Context, rec *centurion.Session) []tools.Tool {
		d.Renew(ctx, rec)
		return nil // no agent works
	}
	return session.Shorten(ctx, cfg, id)
}

// bill is the environment of a conversation that only gets a summary: what that costs is the mission's.
type bill struct {
	mission  string
	reserves *budget.Reserves
	price    *centurion.Price
}

func (b bill) reserve(ctx context.Context, n session.Need) (session.Cover, error) {
	grant, err := b.reserves.Request(ctx, b.mission, budget.Need{Input: n.Input, MaxOut: n.MaxOut, Price: b.price}, func(string) (func() error, error) {
		return func() error { return nil }, nil
	})
	return session.Cover{MaxOut: grant.MaxOut}, err
}

// Spent implements [session.Host].
func (b bill) Spent(tx *store.Tx, u centurion.Usage) error {
	m, err := tx.Mission(b.mission)
	if err != nil {
		return err
	}
	m.Usage, m.Rounds, m.Updated = m.Usage.Plus(u), m.Rounds+1, centurion.Now()
	return tx.PutMission(&m)
}

// Before implements [session.Host]: what has arrived stays for the next turn.
func (bill) Before(context.Context) ([]centurion.Message, error) { return nil, nil }

// Status implements [session.Host].
func (bill) Status() string { return "" }

// Waiting implements [session.Host].
func (bill) Waiting(context.Context, *provider.Wait) error { return nil }

// Consume implements [session.Host].
func (bill) Consume(*store.Tx, string, []string) error { return nil }

// begin takes a place for what a person wants, if the session rests.
func (d *Desk) begin(ctx context.Context, op, id string, one *shell) (centurion.Session, error) {
	rec, err := d.Session.Store.Session(ctx, id)
	if err != nil {
		return rec, err
	}
	working, release := d.Hold(rec.Metadata.Mission)
	defer release()
	if rec.Metadata.Mission == "" { // its mission may have been recorded meanwhile
		if rec, err = d.Session.Store.Session(ctx, id); err != nil {
			return rec, err
		}
	}
	if !working {
		if err := d.Forget(ctx, rec.Metadata.Mission); err != nil {
			return rec, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case rec.Metadata.Task != "":
		return rec, &centurion.Error{Op: op, Kind: centurion.KindConflict, Msg: "session " + id + " is that of a task, whose files are not the project's",
			Hint: "give the command in the session above, or in a terminal"}
	case working || d.running[id] != nil:
		return rec, &centurion.Error{Op: op, Kind: centurion.KindConflict, Msg: "session " + id + " works", Hint: "wait until it rests, or end its turn"}
	}
	if d.running == nil {
		d.running = map[string]*shell{}
	}
	d.running[id] = one
	return rec, nil
}

func (d *Desk) over(id string, one *shell) {
	d.mu.Lock()
	delete(d.running, id)
	d.mu.Unlock()
	close(one.ended)
	d.Over()
}

// Running returns what is closed when the command of a session, or the request for its summary, has ended, or nil if there is none; of any session for "".
func (d *Desk) Running(session string) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, one := range d.running {
		if id == session || session == "" {
			return one.ended
		}
	}
	return nil
}

// Abort ends the command of a session, and reports whether there was one. It returns when that has ended.
func (d *Desk) Abort(ctx context.Context, session string) (was bool, err error) {
	d.mu.Lock()
	one := d.running[session]
	d.mu.Unlock()
	if one == nil {
		return false, nil
	}
	one.end(errEnded)
	select {
	case <-one.ended:
		return true, nil
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
}
