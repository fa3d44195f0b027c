// Package shells runs commands of a person in conversations that rest, and keeps their agents from working meanwhile.
package shells

import (
	"context"
	"sync"

	"centurion"
	"centurion/session"
)

// Desk runs the commands of a project's conversations. Its methods may be called from several goroutines.
type Desk struct {
	Session session.Config // with the store, the runner, the keys and the project's directory
	// Hold keeps missions from beginning until release is called, and reports whether this one is running already.
	Hold func(mission string) (working bool, release func())
	Over func() // called when a command has ended
	// Forget removes what is reverted of a mission's conversation, which continues with the command. The mission does not run.
	Forget func(ctx context.Context, mission string) error

	mu      sync.Mutex        // protects running
	running map[string]*shell // by session
}

type shell struct {
	end   context.CancelCauseFunc
	ended chan struct{}
}

// errEnded ends a command.
var errEnded = &centurion.Error{Kind: centurion.KindCancelled, Msg: "a person has ended the command"}

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
	rec, err := d.begin(ctx, id, one)
	if err != nil {
		return centurion.Message{}, err
	}
	defer d.over(id, one)
	return session.Shell(ctx, d.Session, rec, script)
}

// begin takes a place for a command, if the session rests.
func (d *Desk) begin(ctx context.Context, id string, one *shell) (centurion.Session, error) {
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
	const op = "run command"
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

// Running returns what is closed when the command of a session has ended, or nil if there is none; of any session for "".
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
