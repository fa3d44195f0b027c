package rpc

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/creachadair/jrpc2"

	"centurion"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/control"
	"centurion/orchestrator/mail"
	"centurion/server"
	"centurion/store"
)

// broken is a project whose n-th answer is an error.
type broken struct {
	*project
	calls, n int
}

var errLost = errors.New("connection lost")

func (b *broken) next() error {
	if b.calls++; b.calls == b.n {
		return errLost
	}
	return nil
}

func (b *broken) Session(ctx context.Context, id string) (centurion.Session, error) {
	if err := b.next(); err != nil {
		return centurion.Session{}, err
	}
	return b.project.Session(ctx, id)
}

func (b *broken) Missions(ctx context.Context) ([]server.Mission, error) {
	if err := b.next(); err != nil {
		return nil, err
	}
	return b.project.Missions(ctx)
}

func (b *broken) Sessions(ctx context.Context, m string) ([]centurion.Session, error) {
	if err := b.next(); err != nil {
		return nil, err
	}
	return b.project.Sessions(ctx, m)
}

func (b *broken) Messages(ctx context.Context, s string) ([]server.Message, error) {
	if err := b.next(); err != nil {
		return nil, err
	}
	return b.project.Messages(ctx, s)
}

func (b *broken) State(ctx context.Context, s string) (control.State, error) {
	if err := b.next(); err != nil {
		return control.State{}, err
	}
	return b.project.State(ctx, s)
}

func (b *broken) LastSeq(context.Context) (int64, error)       { return 42, b.next() }
func (b *broken) Abort(context.Context, string, string) error  { return b.next() }
func (b *broken) Stop(context.Context, string, string) error   { return b.next() }
func (b *broken) Asks(context.Context) ([]store.Ask, error)    { return nil, b.next() }
func (b *broken) Answer(context.Context, string, string) error { return b.next() }
func (b *broken) Prompt(context.Context, mail.Post) (mail.Reply, error) {
	return mail.Reply{}, b.next()
}
func (b *broken) Events(context.Context, server.EventQuery) iter.Seq2[centurion.Event, error] {
	return nil
}

// Whatever of a call fails is the error of the call, and a state has both its parts.
func TestBridgeErrors(t *testing.T) {
	ctx := t.Context()
	for name, do := range map[string]func(*Bridge) error{
		"prompt":  func(b *Bridge) error { _, err := b.Prompt(ctx, PromptParams{Session: "ses_1"}); return err },
		"abort":   func(b *Bridge) error { return b.Abort(ctx, "ses_1", "") },
		"stop":    func(b *Bridge) error { return b.Stop(ctx, "ses_1", "") },
		"state":   func(b *Bridge) error { _, err := b.State(ctx, "ses_1"); return err },
		"list":    func(b *Bridge) error { _, err := b.List(ctx, ""); return err },
		"list of": func(b *Bridge) error { _, err := b.List(ctx, "msn_1"); return err },
		"history": func(b *Bridge) error { _, err := b.History(ctx, "ses_1"); return err },
		"asks":    func(b *Bridge) error { _, err := b.Asks(ctx); return err },
		"answer":  func(b *Bridge) error { return b.Answer(ctx, "per_1", "once") },
	} {
		host := &broken{project: &project{}}
		b := &Bridge{API: func() server.API { return host }}
		if err := do(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for n := range host.calls {
			host.calls, host.n = 0, n+1
			if err := do(b); !errors.Is(err, errLost) {
				t.Errorf("%s, call %d: %v", name, n+1, err)
			}
		}
	}
	b := &Bridge{API: func() server.API { return &project{} }}
	if st, err := b.State(ctx, "ses_1"); err != nil || st.Seq != 42 || st.Activity != agent.Stopped {
		t.Errorf("%+v, %v", st, err)
	}
	for want, err := range map[string]error{
		"session/start: prompt is empty | say what is to be done": second(b.Start(ctx, StartParams{})),
		"session is missing | session/list tells their ids":       second(b.Session(ctx, "")),
	} {
		if got := fmt.Sprintf("%v | %s", err, centurion.HintOf(err)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// A prompt goes on with all of its parts and the command that made it. Who cannot look for the next host says that.
func TestBridgePromptWhole(t *testing.T) {
	host := &posted{}
	b := &Bridge{API: func() server.API { return host }}
	parts, typed := []centurion.Part{{Type: centurion.PartText, Text: "p"}}, &centurion.Typed{}
	if _, err := b.Prompt(t.Context(), PromptParams{Session: "ses_1", Parts: parts, Typed: typed}); err != nil || !reflect.DeepEqual(host.posts[0].Parts, parts) || host.posts[0].Typed != typed {
		t.Errorf("%v, posted %+v", err, host.posts)
	}
	host.gone = 1
	if _, err := b.Prompt(t.Context(), PromptParams{Session: "ses_1"}); centurion.KindOf(err) != centurion.KindNetwork {
		t.Errorf("without a way to the next host: %v", err)
	}
	host.gone, host.posts = 1, nil
	b.Moved = func(context.Context, server.API) (bool, error) { return true, errLost }
	if _, err := b.Prompt(t.Context(), PromptParams{Session: "ses_1"}); !errors.Is(err, errLost) || len(host.posts) != 1 {
		t.Errorf("%v after %d posts", err, len(host.posts))
	}
}

// deaf is sessions of which something cannot be read.
type deaf struct {
	*fake
	asks, seq, events error
}

func (d deaf) Asks(ctx context.Context) ([]store.Ask, error) {
	if d.asks != nil {
		return nil, d.asks
	}
	return d.fake.Asks(ctx)
}

func (d deaf) LastSeq(ctx context.Context) (int64, error) {
	if d.seq != nil {
		return 0, d.seq
	}
	return d.fake.LastSeq(ctx)
}

func (d deaf) Events(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error] {
	if d.events == nil || q.View == server.ViewAgent {
		return d.fake.Events(ctx, q)
	}
	return func(yield func(centurion.Event, error) bool) { yield(centurion.Event{}, d.events) }
}

// Whoever could no longer pass on what agents ask says so when the client goes; a client that has gone meanwhile is no error.
func TestDeskFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			d    deaf
			says string
		}{
			"asks":   {deaf{asks: errLost}, errLost.Error()},
			"number": {deaf{seq: errLost}, errLost.Error()},
			"events": {deaf{events: errLost}, errLost.Error()},
			"all":    {deaf{}, ""},
		} {
			c.d.fake = newFake()
			var said func() string
			playedBy(t, c.d, nil, func(cl *jrpc2.Client, say func() string) {
				said = say
				call(t, cl, "session/subscribe", ref{Session: "ses_1"})
				synctest.Wait()
			})
			if !strings.Contains(said(), c.says) || c.says == "" && said() != "" {
				t.Errorf("%s: said %q", name, said())
			}
		}
	})
}
