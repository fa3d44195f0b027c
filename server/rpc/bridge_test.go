package rpc

import (
	"context"
	"testing"

	"centurion"
	"centurion/orchestrator/control"
	"centurion/orchestrator/mail"
	"centurion/server"
)

// posted is a host that keeps what is written to it. It is gone as often as gone says.
type posted struct {
	server.API // what a test does not use

	posts []mail.Post
	gone  int
}

func (p *posted) Session(_ context.Context, id string) (centurion.Session, error) {
	return centurion.Session{ID: id}, nil
}

func (p *posted) Prompt(_ context.Context, post mail.Post) (mail.Reply, error) {
	p.posts = append(p.posts, post)
	if p.gone--; p.gone >= 0 {
		return mail.Reply{}, &centurion.Error{Kind: centurion.KindNetwork, Msg: "the host has gone"}
	}
	return mail.Reply{Text: "heard"}, nil
}

// A prompt is a person's message, which a stopped mission goes on for; the policy says when it is read. When the host has moved
// the next one is asked the same, by its id, so that nothing is said twice.
func TestBridgePrompts(t *testing.T) {
	for policy, queue := range map[string]bool{"": false, "steer": false, "queue": true} {
		host := &posted{gone: 1}
		b := &Bridge{API: func() server.API { return host }, Moved: func(context.Context, server.API) (bool, error) { return true, nil }}
		got, err := b.Prompt(t.Context(), PromptParams{Session: "ses_1", Text: "x", Policy: policy})
		if err != nil || got.Text != "heard" || len(host.posts) != 2 {
			t.Fatalf("%q: %+v, %v after %d posts", policy, got, err, len(host.posts))
		}
		p := host.posts[1]
		if p.ID == "" || p.ID != host.posts[0].ID || p.To != "ses_1" || p.Text != "x" || p.Queue != queue || !p.Resume || p.Origin != centurion.OriginPerson {
			t.Errorf("%q: first %+v, then %+v", policy, host.posts[0], p)
		}
	}
	host := &posted{gone: 1}
	b := &Bridge{API: func() server.API { return host }, Moved: func(context.Context, server.API) (bool, error) { return false, nil }}
	if _, err := b.Prompt(t.Context(), PromptParams{Session: "ses_1", Text: "x"}); centurion.KindOf(err) != centurion.KindNetwork || len(host.posts) != 1 {
		t.Errorf("nobody has taken over: %v after %d posts", err, len(host.posts))
	}
}

// moving is a host in which something happens whenever it is asked for a state.
type moving struct {
	posted
	seq int64
}

func (m *moving) LastSeq(context.Context) (int64, error) { return m.seq, nil }

func (m *moving) State(context.Context, string) (control.State, error) {
	m.seq++
	return control.State{}, nil
}

// Who subscribes after the number of a state is told of everything that the state does not have yet.
func TestStateIsNotOlderThanItsNumber(t *testing.T) {
	b := &Bridge{API: func() server.API { return &moving{seq: 42} }}
	if st, err := b.State(t.Context(), "ses_1"); err != nil || st.Seq != 42 {
		t.Errorf("%+v, %v", st, err)
	}
}
