package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"sync"
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

// project is a host that writes down what it is asked. Sessions of the mission msn_bad cannot be listed, and a session ses_none there is not.
type project struct {
	server.API // what a test does not use

	mu  sync.Mutex
	did []string
}

func (p *project) note(format string, args ...any) {
	p.mu.Lock() // two feeds of one front end call it side by side
	defer p.mu.Unlock()
	p.did = append(p.did, fmt.Sprintf(format, args...))
}

func (p *project) Session(_ context.Context, id string) (centurion.Session, error) {
	if id == "ses_none" {
		return centurion.Session{}, &centurion.Error{Kind: centurion.KindNotFound, Msg: "no session ses_none", Hint: "look again"}
	}
	return centurion.Session{ID: "ses_" + strings.TrimPrefix(id, "ses_"), Metadata: centurion.SessionMeta{Mission: "msn_1"}}, nil
}

func (p *project) Missions(context.Context) ([]server.Mission, error) {
	return []server.Mission{{ID: "msn_2"}, {ID: "msn_1"}}, nil
}

func (p *project) Sessions(_ context.Context, mission string) ([]centurion.Session, error) {
	if mission == "msn_bad" {
		return nil, &centurion.Error{Kind: centurion.KindState, Msg: "broken"}
	}
	if mission == "msn_empty" {
		return nil, nil
	}
	return []centurion.Session{{ID: "ses_of_" + mission}}, nil
}

func (p *project) Messages(_ context.Context, session string) ([]server.Message, error) {
	return []server.Message{{Prev: "msg_of_" + session}}, nil
}

func (p *project) State(_ context.Context, session string) (control.State, error) {
	p.note("state %s", session)
	return control.State{Activity: agent.Stopped}, nil
}

func (p *project) LastSeq(context.Context) (int64, error) { return 42, nil }

func (p *project) Abort(_ context.Context, session, reason string) error {
	p.note("abort %s %s", session, reason)
	return nil
}

func (p *project) Stop(_ context.Context, session, reason string) error {
	p.note("stop %s %s", session, reason)
	return nil
}

func (p *project) Prompt(_ context.Context, post mail.Post) (mail.Reply, error) {
	return mail.Reply{Text: "heard " + post.Text, Finish: "stop", Message: "msg_1"}, nil
}

func (p *project) Asks(context.Context) ([]store.Ask, error) { return nil, nil }

func (p *project) Answer(_ context.Context, ask, answer string) error {
	p.note("answer %s %s", ask, answer)
	return nil
}

func (p *project) Events(_ context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error] {
	p.note("events %+v", q)
	return func(func(centurion.Event, error) bool) {}
}

// OPAL-33: each method does what its name says to the session that is named, and says what was wrong where it cannot.
func TestMethods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &project{}
		b := &Bridge{API: func() server.API { return host }, Begin: func(_ context.Context, p StartParams) (server.Mission, error) {
			if p.Prompt == "fail" {
				return server.Mission{}, &centurion.Error{Kind: centurion.KindConfig, Msg: "no model"}
			}
			return server.Mission{ID: "msn_1", Session: "ses_1"}, nil
		}}
		playedBy(t, b, nil, func(c *jrpc2.Client, _ func() string) {
			for _, test := range []struct {
				method string
				params any
				want   string // a part of the answer
				did    string
			}{
				{"session/start", StartParams{Prompt: " \n"}, "[-32602] session/start: prompt is empty", ""},
				{"session/start", StartParams{Prompt: "fail"}, "[-32000] no model", ""},
				{"session/prompt", PromptParams{Session: "ses_1", Text: "x"}, `{"text":"heard x","finish":"stop","message":"msg_1"}`, ""},
				{"session/prompt", PromptParams{Session: "ses_1", Text: "x", Policy: "later"}, "[-32602] session/prompt: policy is neither steer nor queue: later", ""},
				{"session/prompt", PromptParams{Session: "ses_none", Text: "x"}, "[-32000] no session ses_none", ""},
				{"session/abort", ref{Session: "1", Reason: "why"}, "{}", "abort ses_1 why"},
				{"session/abort", ref{Session: "ses_none"}, "[-32000] no session ses_none", ""},
				{"session/stop", ref{Session: "1", Reason: "why"}, "{}", "stop ses_1 why"},
				{"session/stop", ref{}, "[-32602] session is missing", ""},
				{"session/state", ref{Session: "1"}, `"seq":42`, "state ses_1"},
				{"session/state", ref{Session: "ses_none"}, "[-32000] no session ses_none", ""},
				{"session/list", ref{Mission: "msn_3"}, `"id":"ses_of_msn_3"`, ""},
				{"session/list", ref{}, `"id":"ses_of_msn_2"`, ""},
				{"session/list", ref{}, `"id":"ses_of_msn_1"`, ""},
				{"session/list", ref{Mission: "msn_empty"}, `[]`, ""},
				{"session/list", ref{Mission: "msn_bad"}, "[-32000] broken", ""},
				{"session/history", ref{Session: "ses_1"}, `"prev":"msg_of_ses_1"`, ""},
				{"session/history", ref{Session: "ses_none"}, "[-32000] no session ses_none", ""},
				{"session/subscribe", ref{Session: "1", After: 7}, `{"session":"ses_1"}`, "events {After:7 Mission:msn_1 Session:ses_1 Task: Deltas:true Follow:true Toasts:false View:agent Keep:false}"},
				{"session/start", StartParams{Prompt: "x"}, `{"mission":"msn_1","session":"ses_1"}`, "events {After:42 Mission:msn_1 Session:ses_1 Task: Deltas:true Follow:true Toasts:false View:agent Keep:false}"},
			} {
				host.did = nil
				got := call(t, c, test.method, test.params)
				synctest.Wait()
				if !strings.Contains(got, test.want) || test.did != "" && !strings.Contains(strings.Join(host.did, "\n"), test.did) || test.did == "" && host.did != nil {
					t.Errorf("%s %+v: %s, did %q", test.method, test.params, got, host.did)
				}
			}
			_, err := c.Call(t.Context(), "session/state", ref{Session: "ses_none"})
			var data failure
			if e := new(jrpc2.Error); !errors.As(err, &e) || json.Unmarshal(e.Data, &data) != nil || data != (failure{centurion.KindNotFound, "look again"}) {
				t.Errorf("the data of an error: %+v", data)
			}
		})
		if err := b.Answer(t.Context(), "per_1", "once"); err != nil || host.did[len(host.did)-1] != "answer per_1 once" {
			t.Errorf("%v, %q", err, host.did)
		}
		followed := false
		b.Follow = func(context.Context, server.EventQuery) iter.Seq2[centurion.Event, error] {
			followed = true
			return nil
		}
		if b.Events(t.Context(), server.EventQuery{}); followed {
			t.Error("what is only read once was followed across hosts")
		}
		if b.Events(t.Context(), server.EventQuery{Follow: true}); !followed {
			t.Error("it was not followed across hosts")
		}
		host.did = nil
		bad := &Bridge{API: func() server.API { return badProject{host} }}
		if all, err := bad.List(t.Context(), ""); err == nil || all != nil {
			t.Errorf("of a mission that cannot be read: %v, %v", all, err)
		}
	})
}

// badProject has a mission that cannot be read.
type badProject struct{ *project }

func (badProject) Missions(context.Context) ([]server.Mission, error) {
	return []server.Mission{{ID: "msn_1"}, {ID: "msn_bad"}}, nil
}

// ending is events that break off.
type ending struct{ *fake }

func (ending) Events(_ context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		if q.View == server.ViewAgent {
			yield(centurion.Event{}, &centurion.Error{Kind: centurion.KindNetwork, Msg: "the host is gone"})
		}
	}
}

// Where the events of a session break off, the client's user is told.
func TestEventsBreakOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		playedBy(t, ending{f}, nil, func(c *jrpc2.Client, said func() string) {
			call(t, c, "session/subscribe", ref{Session: "ses_1"})
			synctest.Wait()
			if got := said(); got != "the events of ses_1 end: the host is gone\n" {
				t.Errorf("said %q", got)
			}
		})
	})
}

// SUB-24: a client is asked with everything that is known of an ask; what is answered elsewhere is taken back, and a mission's asks are
// those of its clients only.
func TestWhatIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		var asked []any
		played(t, f, &jrpc2.ClientOptions{OnCallback: func(ctx context.Context, r *jrpc2.Request) (any, error) {
			var p Permission
			if err := r.UnmarshalParams(&p); err != nil {
				return nil, err
			}
			asked = append(asked, p)
			<-ctx.Done()
			return nil, ctx.Err()
		}}, func(c *jrpc2.Client, _ func() string) {
			f.asks(store.Ask{ID: "per_1", Type: store.AskPermission, Session: "ses_3", Call: "call_1", Permission: "bash", Patterns: []string{"ls *"},
				Always: []string{"ls"}, Title: "List", Text: "it lists", Metadata: map[string]any{"command": "ls a"}})
			f.asks(store.Ask{ID: "per_2", Type: store.AskPermission, Session: "ses_4"})
			f.mu.Lock()
			other := f.open["per_2"]
			other.Mission = "msn_2"
			f.open["per_2"] = other
			f.mu.Unlock()
			call(t, c, "session/start", StartParams{Prompt: "x"})
			synctest.Wait()
			want := Permission{ID: "per_1", Type: store.AskPermission, Session: "ses_3", Address: "0/3", Call: "call_1", Permission: "bash",
				Patterns: []string{"ls *"}, Always: []string{"ls"}, Title: "List", Text: "it lists", Metadata: map[string]any{"command": "ls a"}}
			if len(asked) != 1 || !reflect.DeepEqual(asked[0], want) {
				t.Errorf("asked %+v", asked)
			}
		})
	})
}
