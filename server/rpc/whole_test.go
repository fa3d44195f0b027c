package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/creachadair/jrpc2"

	"centurion"
	"centurion/guard"
	"centurion/server"
	"centurion/store"
)

// A client is told of all that it can call and what it may be sent.
func TestInitializeWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		played(t, newFake(), nil, func(c *jrpc2.Client, _ func() string) {
			want := `{"capabilities":{"max_line":4194304,"methods":["session/start","session/prompt","session/abort","session/state","session/stop","session/list","session/history","session/subscribe","session/unsubscribe"],` +
				`"notifications":["session/event","client/withdraw"],"policies":["steer","queue"],"requests":["client/ask_user","client/confirm"]},"name":"centurion","protocol":1,"version":"1"}`
			if got := call(t, c, "initialize", nil); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	})
}

// An error has a code, a kind and the next step.
func TestErrorsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.prompt = func(_ context.Context, p PromptParams) (Answer, error) {
			return Answer{}, map[string]error{"gone": context.Canceled, "over": &centurion.Error{Kind: centurion.KindConflict, Msg: "it has ended", Hint: "begin another"}}[p.Text]
		}
		played(t, f, nil, func(c *jrpc2.Client, _ func() string) {
			for want, p := range map[string]PromptParams{
				`-32000 it has ended {"kind":"conflict","hint":"begin another"}`: {Text: "over"},
				`-32602 session/prompt: policy is neither steer nor queue: later {"kind":"usage","hint":"steer is read before the next request to the model, queue at the end of the turn"}`: {Policy: "later"},
			} {
				_, err := c.Call(t.Context(), "session/prompt", p)
				e, ok := errors.AsType[*jrpc2.Error](err)
				if !ok {
					t.Fatal(err)
				}
				if got := fmt.Sprintf("%d %s %s", e.Code, e.Message, e.Data); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
			if _, err := c.Call(t.Context(), "session/prompt", PromptParams{Text: "gone"}); !errors.Is(err, context.Canceled) {
				t.Errorf("a prompt that was given up: %v", err)
			}
		})
	})
}

// A question reaches the client once and with all that is known of it, also while it is open and others come.
func TestQuestionWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		var asked []Question
		decided := make(chan struct{})
		played(t, f, &jrpc2.ClientOptions{OnCallback: func(_ context.Context, r *jrpc2.Request) (any, error) {
			var q Question
			err := r.UnmarshalParams(&q)
			asked = append(asked, q)
			<-decided
			return map[string]string{"answer": "yes"}, err
		}}, func(c *jrpc2.Client, said func() string) {
			call(t, c, "session/start", StartParams{Prompt: "x"})
			f.asks(store.Ask{ID: "que_1", Type: store.AskQuestion, Session: "ses_3", Text: "which?", Title: "Colour", Options: []string{"a", "b"}})
			synctest.Wait()
			f.asks(store.Ask{ID: "que_2", Type: store.AskQuestion, Session: "ses_4", Title: "when?"})
			synctest.Wait()
			close(decided)
			synctest.Wait()
			want := []Question{{ID: "que_1", Session: "ses_3", Address: "0/3", Question: "which?", Choices: []string{"a", "b"}}, {ID: "que_2", Session: "ses_4", Address: "0/4", Question: "when?"}}
			if !reflect.DeepEqual(asked, want) || said() != "" {
				t.Errorf("asked %+v, want %+v; said %q", asked, want, said())
			}
		})
	})
}

// cut is sessions whose events break off with their reader.
type cut struct{ *fake }

func (cut) Events(ctx context.Context, _ server.EventQuery) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		<-ctx.Done()
		yield(centurion.Event{}, ctx.Err())
	}
}

// Events that end because the client wants no more of them are no fault.
func TestEventsAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told func() string
		playedBy(t, cut{newFake()}, nil, func(c *jrpc2.Client, said func() string) {
			call(t, c, "session/subscribe", ref{Session: "ses_1"})
			synctest.Wait()
			call(t, c, "session/unsubscribe", ref{Session: "ses_1"})
			synctest.Wait()
			told = said
		})
		if told() != "" {
			t.Errorf("said %q", told())
		}
	})
}

// wire is a connection of which reading or closing fails.
type wire struct {
	bytes.Buffer
	err    error
	closed []string
	name   string
}

func (w *wire) Read([]byte) (int, error) { return 0, w.err }

func (w *wire) Close() error {
	w.closed = append(w.closed, w.name)
	return w.err
}

// A connection that breaks is an error, the end of the input is none; both directions are closed, and nobody has to listen to what is said.
func TestServeEnds(t *testing.T) {
	lost := errors.New("connection lost")
	for end, want := range map[error]error{io.EOF: nil, lost: lost} {
		in, out := &wire{err: end, name: "in"}, &wire{name: "out"}
		err := Serve(t.Context(), in, out, newFake(), Options{})
		if !errors.Is(err, want) || want != nil && centurion.KindOf(err) != centurion.KindNetwork || want == nil && err != nil {
			t.Errorf("after %v: %v", end, err)
		}
		if !slices.Contains(in.closed, "in") || !slices.Contains(out.closed, "out") {
			t.Errorf("after %v %v and %v are closed", end, in.closed, out.closed)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		in, theirs := io.Pipe()
		var out closer
		var g guard.Group
		g.Go("serve", func() error { return Serve(t.Context(), in, &out, ending{newFake()}, Options{}) })
		fmt.Fprintln(theirs, `{"jsonrpc":"2.0","id":1,"method":"session/subscribe","params":{"session":"ses_1"}}`)
		synctest.Wait()
		if err := errors.Join(theirs.Close(), g.Wait()); err != nil || out.String() != `{"jsonrpc":"2.0","id":1,"result":{"session":"ses_1"}}`+"\n" {
			t.Errorf("%v: %s", err, out.String())
		}
	})
	if err := NewLines(&wire{err: lost}, &wire{}, 10).Close(); !errors.Is(err, lost) {
		t.Errorf("the input cannot be closed: %v", err)
	}
	if err := NewLines(&wire{}, &wire{err: lost}, 10).Close(); !errors.Is(err, lost) {
		t.Errorf("the output cannot be closed: %v", err)
	}
}

// A line that is too long is answered as one that cannot be read.
func TestRefusalWhole(t *testing.T) {
	var out closer
	l := NewLines(strings.NewReader(strings.Repeat("x", 70<<10)+"\n{}\n"), &out, 32)
	if line, err := l.Recv(); string(line) != "{}" || err != nil {
		t.Errorf("read %q, %v", line, err)
	}
	if want := `{"error":{"code":-32600,"message":"a message is longer than 32 B"},"id":null,"jsonrpc":"2.0"}` + "\n"; out.String() != want {
		t.Errorf("answered %q", out.String())
	}
}
