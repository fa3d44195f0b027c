package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
	"go.uber.org/goleak"

	"centurion"
	"centurion/guard"
	"centurion/server"
	"centurion/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is sessions that a test plays.
type fake struct {
	Sessions // what a test does not use

	mu      sync.Mutex
	open    map[string]store.Ask
	answers map[string]string
	facts   []centurion.Event
	changed chan struct{}
	prompt  func(ctx context.Context, p PromptParams) (Answer, error)
	readers int
	started []StartParams
}

func newFake() *fake {
	return &fake{open: map[string]store.Ask{}, answers: map[string]string{}, changed: make(chan struct{})}
}

func (f *fake) Start(_ context.Context, p StartParams) (Started, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started = append(f.started, p)
	return Started{"msn_1", "ses_1"}, nil
}

func (f *fake) Prompt(ctx context.Context, p PromptParams) (Answer, error) { return f.prompt(ctx, p) }

func (f *fake) Session(_ context.Context, id string) (centurion.Session, error) {
	if id == "ses_none" {
		return centurion.Session{}, &centurion.Error{Kind: centurion.KindNotFound, Msg: "no session ses_none", Hint: "look again"}
	}
	return centurion.Session{ID: id, Metadata: centurion.SessionMeta{Mission: "msn_1", Address: "0/" + strings.TrimPrefix(id, "ses_")}}, nil
}

func (f *fake) LastSeq(context.Context) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(len(f.facts)), nil
}

func (f *fake) Asks(context.Context) ([]store.Ask, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.SortedFunc(maps.Values(f.open), func(a, b store.Ask) int { return cmp.Compare(a.ID, b.ID) }), nil
}

func (f *fake) Answer(_ context.Context, id, answer string) error {
	f.mu.Lock()
	a, ok := f.open[id]
	if ok {
		f.answers[id] = answer
		delete(f.open, id)
	}
	f.mu.Unlock()
	if !ok {
		return &centurion.Error{Kind: centurion.KindConflict, Msg: "nobody asks " + id}
	}
	f.tell(centurion.Event{Type: map[string]centurion.EventType{store.AskQuestion: centurion.EventQuestionAnswered}[a.Type]})
	return nil
}

// asks puts an ask into the store.
func (f *fake) asks(a store.Ask) {
	f.mu.Lock()
	a.Mission = "msn_1"
	f.open[a.ID] = a
	f.mu.Unlock()
	f.tell(centurion.Event{Type: cmp.Or(map[string]centurion.EventType{store.AskQuestion: centurion.EventQuestionAsked}[a.Type], centurion.EventPermissionAsked)})
}

func (f *fake) tell(e centurion.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e.Type = cmp.Or(e.Type, centurion.EventPermissionReplied)
	e.Seq, e.Mission = int64(len(f.facts)+1), "msn_1"
	f.facts = append(f.facts, e)
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fake) Events(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		f.mu.Lock()
		f.readers++
		f.mu.Unlock()
		defer func() { f.mu.Lock(); f.readers--; f.mu.Unlock() }()
		for first := true; first || q.Follow; first = false {
			f.mu.Lock()
			facts, changed := f.facts[q.After:], f.changed
			f.mu.Unlock()
			for _, e := range facts {
				q.After = e.Seq
				if !yield(e, nil) {
					return
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (f *fake) answered(id string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.answers[id]
}

// played serves a client and ends with it. It runs in a bubble.
func played(t *testing.T, f *fake, o *jrpc2.ClientOptions, play func(c *jrpc2.Client, said func() string)) {
	t.Helper()
	playedBy(t, f, o, play)
	if f.readers != 0 {
		t.Errorf("%d subscriptions outlive their client", f.readers)
	}
}

// playedBy is played with any sessions.
func playedBy(t *testing.T, f Sessions, o *jrpc2.ClientOptions, play func(c *jrpc2.Client, said func() string)) {
	t.Helper()
	toUs, fromThem := io.Pipe()
	toThem, fromUs := io.Pipe()
	var g guard.Group
	var mu sync.Mutex
	var said strings.Builder
	g.Go("serve", func() error {
		return Serve(t.Context(), toUs, fromUs, f, Options{Version: "1", Say: func(s string) {
			mu.Lock()
			defer mu.Unlock()
			said.WriteString(s + "\n")
		}})
	})
	c := jrpc2.NewClient(channel.Line(toThem, fromThem), o)
	play(c, func() string { mu.Lock(); defer mu.Unlock(); return said.String() })
	_ = c.Close()
	_ = fromThem.Close()
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

func call(t *testing.T, c *jrpc2.Client, method string, params any) string {
	t.Helper()
	rsp, err := c.Call(t.Context(), method, params)
	if err != nil {
		return err.Error()
	}
	return rsp.ResultString()
}

// SUB-22, SUB-23, SUB-24, SUB-25: two questions at once, from two depths, reach the client with their sessions, and each gets
// its own answer, whichever comes first.
func TestAskUser(t *testing.T) { synctest.Test(t, testAskUser) }

func testAskUser(t *testing.T) {
	f := newFake()
	first := make(chan struct{})
	played(t, f, &jrpc2.ClientOptions{OnCallback: func(ctx context.Context, r *jrpc2.Request) (any, error) {
		var q Question
		if err := r.UnmarshalParams(&q); err != nil || r.Method() != "client/ask_user" {
			return nil, err
		}
		if q.ID == "que_1" {
			<-first // the second is answered before
		}
		return map[string]string{"answer": q.Address + " " + q.Question + " " + strings.Join(q.Choices, "|")}, nil
	}}, func(c *jrpc2.Client, _ func() string) {
		call(t, c, "session/start", StartParams{Prompt: "x"})
		f.asks(store.Ask{ID: "que_1", Type: store.AskQuestion, Session: "ses_3", Text: "which?", Options: []string{"a", "b"}})
		f.asks(store.Ask{ID: "que_2", Type: store.AskQuestion, Session: "ses_3/1", Title: "when?"})
		synctest.Wait()
		if f.answered("que_1") != "" || f.answered("que_2") != "0/3/1 when? " {
			t.Errorf("answers %q, %q", f.answered("que_1"), f.answered("que_2"))
		}
		close(first)
		synctest.Wait()
		if got := f.answered("que_1"); got != "0/3 which? a|b" {
			t.Errorf("answer %q", got)
		}
	})
}

// SUB-25, SUB-35: an answer that is empty, or none, leaves the question open for others, and says so.
func TestAnswerIsEmpty(t *testing.T) { synctest.Test(t, testAnswerIsEmpty) }

func testAnswerIsEmpty(t *testing.T) {
	for result, want := range map[string]string{`{"answer":" \n"}`: "que_1 stays open: the client's answer is empty; see: centurion asks",
		`{}`: "que_1 stays open: the client's answer is empty", `"yes"`: "que_1 stays open: the client's answer is no object"} {
		f := newFake()
		played(t, f, &jrpc2.ClientOptions{OnCallback: func(context.Context, *jrpc2.Request) (any, error) {
			return json.RawMessage(result), nil
		}}, func(c *jrpc2.Client, said func() string) {
			f.asks(store.Ask{ID: "que_1", Type: store.AskQuestion, Session: "ses_1", Text: "which?"})
			call(t, c, "session/start", StartParams{Prompt: "x"})
			synctest.Wait()
			if _, told := f.answers["que_1"]; told || len(f.open) != 1 || !strings.Contains(said(), want) {
				t.Errorf("%s: answered with %q, said %q", result, f.answered("que_1"), said())
			}
		})
	}
}

// SUB-23: a client that hears of several sessions of a mission is asked each question once.
func TestAskedOnce(t *testing.T) { synctest.Test(t, testAskedOnce) }

func testAskedOnce(t *testing.T) {
	f := newFake()
	var asked atomic.Int64
	played(t, f, &jrpc2.ClientOptions{OnCallback: func(context.Context, *jrpc2.Request) (any, error) {
		asked.Add(1)
		return map[string]string{"answer": "yes"}, nil
	}}, func(c *jrpc2.Client, _ func() string) {
		call(t, c, "session/start", StartParams{Prompt: "x"})
		call(t, c, "session/subscribe", ref{Session: "ses_2"})
		call(t, c, "session/subscribe", ref{Session: "ses_1"})
		synctest.Wait()
		f.asks(store.Ask{ID: "que_1", Type: store.AskQuestion, Session: "ses_2", Text: "which?"})
		synctest.Wait()
		if n := asked.Load(); n != 1 || f.answered("que_1") != "yes" {
			t.Errorf("asked %d times, answered %q", n, f.answered("que_1"))
		}
	})
}

// SUB-35: a mission learns from the beginning whether its client can be asked questions; one that does not say can.
func TestUnasked(t *testing.T) { synctest.Test(t, testUnasked) }

func testUnasked(t *testing.T) {
	for _, able := range []any{nil, map[string]bool{"ask_user": true}, map[string]bool{"confirm": true}} {
		f := newFake()
		played(t, f, nil, func(c *jrpc2.Client, _ func() string) {
			call(t, c, "initialize", map[string]any{"capabilities": able})
			call(t, c, "session/start", StartParams{Prompt: "x"})
		})
		m, _ := able.(map[string]bool)
		if len(f.started) != 1 || f.started[0].Unasked != (able != nil && !m["ask_user"]) {
			t.Errorf("%v: started with %+v", able, f.started)
		}
	}
}

func TestConfirm(t *testing.T) { synctest.Test(t, testConfirm) }

func testConfirm(t *testing.T) {
	for _, c := range []struct{ result, want, said string }{
		{`{"reply":"once"}`, "once", ""},
		{`{"reply":"always"}`, "always", ""},
		{`{"reply":"reject"}`, "reject", ""},
		{`{"reply":"reject","message":"not there"}`, "not there", ""},
		{`{"reply":"reject","message":"always"}`, "no: always", ""},
		{`{"reply":"reject","message":" yes "}`, "no: yes", ""}, // which would accept a plan
		{`{"reply":"perhaps"}`, "", "per_1 stays open: the client replied with neither once nor always nor reject"},
		{`{}`, "", "stays open"},
		{`[]`, "", "stays open"},
		{"", "", "stays open: [-32000] busy"},
	} {
		f := newFake()
		played(t, f, &jrpc2.ClientOptions{OnCallback: func(_ context.Context, r *jrpc2.Request) (any, error) {
			if c.result == "" {
				return nil, jrpc2.Errorf(-32000, "busy")
			}
			return json.RawMessage(c.result), nil
		}}, func(cl *jrpc2.Client, said func() string) {
			f.asks(store.Ask{ID: "per_1", Type: store.AskPermission, Session: "ses_3"})
			call(t, cl, "session/start", StartParams{Prompt: "x"})
			synctest.Wait()
			if got := f.answered("per_1"); got != c.want || (c.want == "") != (len(f.open) == 1) {
				t.Errorf("%s: answer %q, %d open", c.result, got, len(f.open))
			}
			if !strings.Contains(said(), c.said) || c.said == "" && said() != "" {
				t.Errorf("%s: said %q", c.result, said())
			}
		})
	}
}

// A client that goes away leaves what it was asked open, and nothing of it behind; so does one that said it cannot be asked.
func TestClientGoes(t *testing.T) { synctest.Test(t, testClientGoes) }

func testClientGoes(t *testing.T) {
	f := newFake()
	asked, never := make(chan struct{}), make(chan struct{})
	played(t, f, &jrpc2.ClientOptions{OnCallback: func(ctx context.Context, _ *jrpc2.Request) (any, error) {
		close(asked)
		select {
		case <-never:
		case <-ctx.Done():
		}
		return nil, ctx.Err()
	}}, func(c *jrpc2.Client, _ func() string) {
		call(t, c, "session/start", StartParams{Prompt: "x"})
		f.asks(store.Ask{ID: "que_1", Type: store.AskQuestion, Session: "ses_1", Text: "which?"})
		<-asked
	})
	if len(f.open) != 1 {
		t.Error("the question is gone")
	}

	f = newFake()
	played(t, f, &jrpc2.ClientOptions{OnCallback: func(context.Context, *jrpc2.Request) (any, error) {
		t.Error("it was asked")
		return nil, nil
	}}, func(c *jrpc2.Client, _ func() string) {
		call(t, c, "initialize", map[string]any{"capabilities": map[string]bool{"confirm": false, "ask_user": false}})
		call(t, c, "session/start", StartParams{Prompt: "x"})
		f.asks(store.Ask{ID: "que_1", Type: store.AskQuestion, Session: "ses_1", Text: "which?"})
		f.asks(store.Ask{ID: "per_1", Type: store.AskPermission, Session: "ses_1"})
		synctest.Wait()
	})
	if len(f.open) != 2 {
		t.Error("an ask is gone")
	}
}

// OPAL-33, OPAL-41: prompts wait for their answers and keep nobody from anything: others are answered meanwhile, and one that is
// given up is answered with an error.
func TestPromptsWait(t *testing.T) { synctest.Test(t, testPromptsWait) }

func testPromptsWait(t *testing.T) {
	f := newFake()
	f.prompt = func(ctx context.Context, p PromptParams) (Answer, error) {
		<-ctx.Done()
		return Answer{}, context.Cause(ctx)
	}
	var told []string
	played(t, f, &jrpc2.ClientOptions{OnNotify: func(r *jrpc2.Request) { told = append(told, r.Method()+r.ParamString()) }},
		func(c *jrpc2.Client, _ func() string) {
			var g guard.Group
			errs := make(chan string, 100)
			for range 100 {
				g.Go("prompt", func() error {
					errs <- call(t, c, "session/prompt", PromptParams{Session: "ses_1", Text: "x"})
					return nil
				})
			}
			synctest.Wait()
			if got := call(t, c, "session/unsubscribe", ref{Session: "ses_1"}); got != "{}" {
				t.Error(got)
			}
			if got := call(t, c, "session/subscribe", ref{Session: "ses_none"}); got != "[-32000] no session ses_none" {
				t.Error(got)
			}
			for id := range 100 {
				if err := c.Notify(t.Context(), "$/cancelRequest", map[string]int{"id": id + 1}); err != nil {
					t.Error(err)
				}
			}
			if err := g.Wait(); err != nil {
				t.Error(err)
			}
			if got := <-errs; !strings.Contains(got, "context canceled") {
				t.Error(got)
			}
			call(t, c, "session/subscribe", ref{Session: "ses_1"})
			f.tell(centurion.Event{Type: "agent_start", Session: "ses_1"})
			synctest.Wait()
		})
	if len(told) != 1 || !strings.HasPrefix(told[0], `session/event{"seq":1,`) {
		t.Errorf("told %v", told)
	}
}

// A crash in one method is an error of its one call.
func TestMethodCrashes(t *testing.T) { synctest.Test(t, testMethodCrashes) }

func testMethodCrashes(t *testing.T) {
	f := newFake()
	f.prompt = func(context.Context, PromptParams) (Answer, error) { panic("no") }
	played(t, f, nil, func(c *jrpc2.Client, _ func() string) {
		if got := call(t, c, "session/prompt", PromptParams{Session: "ses_1"}); !strings.Contains(got, "no") {
			t.Error(got)
		}
		for _, params := range []any{map[string]int{"nonsense": 1}, []int{1}, map[string]int{"text": 1}} {
			if got := call(t, c, "session/prompt", params); !strings.HasPrefix(got, "[-32602]") {
				t.Error(got)
			}
		}
		if got := call(t, c, "initialize", nil); !strings.Contains(got, `"version":"1"`) {
			t.Error(got)
		}
	})
}

// OPAL-14: a client that subscribes twice is told of each event once, and one that has unsubscribed of none.
func TestSubscribedTwice(t *testing.T) { synctest.Test(t, testSubscribedTwice) }

func testSubscribedTwice(t *testing.T) {
	f := newFake()
	told := 0
	played(t, f, &jrpc2.ClientOptions{OnNotify: func(*jrpc2.Request) { told++ }}, func(c *jrpc2.Client, _ func() string) {
		for _, step := range []struct {
			methods []string
			want    int
		}{{[]string{"session/subscribe", "session/subscribe"}, 1}, {[]string{"session/unsubscribe"}, 1}, {[]string{"session/subscribe"}, 2}} {
			for _, method := range step.methods {
				after, _ := f.LastSeq(t.Context())
				p := ref{Session: "ses_1"}
				if method == "session/subscribe" {
					p.After = after
				}
				call(t, c, method, p)
			}
			synctest.Wait()
			f.tell(centurion.Event{Type: "agent_start", Session: "ses_1"})
			synctest.Wait()
			if told != step.want {
				t.Errorf("after %v: told of %d events, want %d", step.methods, told, step.want)
			}
		}
	})
}

// SUB-22: the client is asked what its own missions ask, and nothing of others.
func TestAsksOfOthers(t *testing.T) { synctest.Test(t, testAsksOfOthers) }

func testAsksOfOthers(t *testing.T) {
	f := newFake()
	var asked []string
	played(t, f, &jrpc2.ClientOptions{OnCallback: func(_ context.Context, r *jrpc2.Request) (any, error) {
		var q Question
		err := r.UnmarshalParams(&q)
		asked = append(asked, q.ID)
		return map[string]string{"answer": "yes"}, err
	}}, func(c *jrpc2.Client, _ func() string) {
		f.open["que_2"] = store.Ask{ID: "que_2", Type: store.AskQuestion, Mission: "msn_2", Session: "ses_9", Text: "which?"}
		call(t, c, "session/start", StartParams{Prompt: "x"})
		f.asks(store.Ask{ID: "que_1", Type: store.AskQuestion, Session: "ses_1", Text: "which?"})
		synctest.Wait()
		if !slices.Equal(asked, []string{"que_1"}) || f.answered("que_2") != "" {
			t.Errorf("asked %v, answered %q", asked, f.answered("que_2"))
		}
	})
}

// SUB-25: what was answered elsewhere is withdrawn from the client, which still thinks about it.
func TestAnsweredElsewhere(t *testing.T) { synctest.Test(t, testAnsweredElsewhere) }

func testAnsweredElsewhere(t *testing.T) {
	f := newFake()
	decided := make(chan struct{})
	var told []string
	played(t, f, &jrpc2.ClientOptions{
		OnNotify: func(r *jrpc2.Request) {
			if r.Method() == "client/withdraw" {
				told = append(told, r.ParamString())
			}
		},
		OnCallback: func(context.Context, *jrpc2.Request) (any, error) {
			<-decided
			return map[string]string{"answer": "too late"}, nil
		},
	}, func(c *jrpc2.Client, _ func() string) {
		call(t, c, "session/start", StartParams{Prompt: "x"})
		f.asks(store.Ask{ID: "que_1", Type: store.AskQuestion, Session: "ses_1", Text: "which?"})
		synctest.Wait()
		if err := f.Answer(t.Context(), "que_1", "this"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !slices.Equal(told, []string{`{"id":"que_1"}`}) {
			t.Errorf("told %q", told)
		}
		close(decided)
		synctest.Wait()
		if got := f.answered("que_1"); got != "this" {
			t.Errorf("answered %q", got)
		}
	})
}
