package main

import (
	"context"
	"iter"
	"strings"
	"testing"

	"centurion"
	"centurion/host"
	"centurion/server"
)

// interruptedRead is a host whose reader is interrupted while it asks for the newest event's number or for events for the at-th time.
type interruptedRead struct {
	server.API
	interrupt context.CancelFunc
	at        int
}

func (a *interruptedRead) Mission(context.Context, string) (server.Mission, error) {
	return server.Mission{}, nil
}

func (a *interruptedRead) LastSeq(ctx context.Context) (int64, error) {
	if a.at--; a.at == 0 {
		a.interrupt()
	}
	return 1, ctx.Err()
}

func (a *interruptedRead) Events(ctx context.Context, _ server.EventQuery) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		if a.at--; a.at == 0 {
			a.interrupt()
		}
		yield(centurion.Event{Seq: 1}, ctx.Err())
	}
}

// Ctrl-C ends the watching, whichever request it cuts: none of them is a failure.
func TestInterruptEndsTheWatching(t *testing.T) {
	for at := 1; at <= 3; at++ {
		ctx, interrupt := context.WithCancel(t.Context())
		c := &cli{in: strings.NewReader(""), out: &strings.Builder{}, err: &strings.Builder{}}
		v := &view{cli: c, View: &host.View{API: &interruptedRead{interrupt: interrupt, at: at}}}
		err := (&runner{c, &runFlags{}}).watch(ctx, v, server.Mission{}, func(server.API, string) (m server.Mission, err error) { return m, nil })
		if err != nil || c.code != exitInterrupted || ctx.Err() == nil {
			t.Errorf("interrupted in the %d. request: exit %d, %v, interrupted: %v", at, c.code, err, ctx.Err())
		}
	}
}
