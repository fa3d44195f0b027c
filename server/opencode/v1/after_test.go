package v1

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/branches"
	"centurion/orchestrator/mail"
	"centurion/server"
	"centurion/store"
)

// atOnce is a host that does everything at once, and whose newest fact has the number 5.
type atOnce struct{ server.API }

func (atOnce) LastSeq(context.Context) (int64, error) { return 5, nil }

func (atOnce) Session(_ context.Context, id string) (centurion.Session, error) {
	return centurion.Session{ID: id, Agent: "commander", Metadata: centurion.SessionMeta{Mission: "msn_1"}}, nil
}

func (atOnce) Shell(context.Context, string, string) (server.Message, error) {
	return server.Message{}, nil
}

func (atOnce) Compact(context.Context, string, string) error { return nil }

func (atOnce) Revert(context.Context, string, string) (branches.Reverted, error) {
	return branches.Reverted{}, nil
}

func (atOnce) Written(context.Context, string, string) ([]centurion.FileDiff, error) {
	return nil, nil
}

func (atOnce) Prompt(context.Context, mail.Post) (mail.Reply, error) {
	return mail.Reply{Posted: mail.Posted{Session: "ses_1"}, Message: "msg_1"}, nil
}

func (atOnce) Send(context.Context, mail.Post) (mail.Posted, error) { return mail.Posted{}, nil }

func (atOnce) Message(context.Context, string, string, ...string) (server.Message, error) {
	return server.Message{}, nil
}

func (atOnce) Messages(context.Context, string) ([]server.Message, error) {
	return []server.Message{{Info: centurion.Message{ID: "msg_1", Role: centurion.RoleAssistant}}}, nil
}

// Who has an answer may leave: the facts that came before it have been told by then, whatever was asked for.
func TestAnswersComeAfterFacts(t *testing.T) {
	for name, test := range map[string]struct{ path, body string }{
		"a command":                   {"/shell", `{"agent":"assistant","command":"true"}`},
		"a summary":                   {"/summarize", `{}`},
		"a revert":                    {"/revert", `{"messageID":"` + string(centurion.NewID(centurion.PrefixMessage)) + `"}`},
		"a message":                   {"/message", `{"parts":[{"type":"text","text":"go"}]}`},
		"a message without an answer": {"/message", `{"noReply":true,"parts":[{"type":"text","text":"go"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told, answered := make(chan struct{}), false
				p := &Project{API: func() server.API { return atOnce{} }, Note: func(text string) { t.Error(text) },
					Catalog: func(context.Context) (Catalog, error) {
						return Catalog{Agents: []Agent{{Name: "assistant", Profile: "assistant"}}}, nil
					}}
				p.view.works = map[string]bool{"msn_1": true}
				var g guard.Group
				g.Go("tell", func() error {
					return p.told.Run(t.Context(), server.EventQuery{After: 4}, func(context.Context, server.EventQuery) iter.Seq2[centurion.Event, error] {
						return func(yield func(centurion.Event, error) bool) {
							<-told
							yield(centurion.Event{Seq: 5}, nil)
						}
					}, func(context.Context, centurion.Event) error { return nil }, p.Note)
				})
				w := httptest.NewRecorder()
				g.Go("ask", func() error {
					path := "/session/" + string(centurion.NewID(centurion.PrefixSession)) + test.path
					p.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(test.body)))
					answered = true
					return nil
				})
				if synctest.Wait(); answered {
					t.Errorf("it is answered before: %d %s", w.Code, w.Body)
				}
				close(told)
				if err := g.Wait(); err != nil || w.Code != http.StatusOK {
					t.Errorf("%v, %d %s", err, w.Code, w.Body)
				}
			})
		})
	}
}

// desk is a host that takes messages in later, and notes them.
type desk struct {
	server.API
	posts *[]mail.Post
}

func (d desk) Send(_ context.Context, p mail.Post) (mail.Posted, error) {
	*d.posts = append(*d.posts, p)
	return mail.Posted{}, nil
}

func (d desk) Prompt(ctx context.Context, p mail.Post) (mail.Reply, error) {
	posted, err := d.Send(ctx, p)
	return mail.Reply{Posted: posted}, errors.Join(err, &centurion.Error{Kind: centurion.KindConflict, Msg: "nobody answers"})
}

// What a client writes to a conversation reaches it with the command that it came from, also when that has begun a moment ago; one that is
// not read yet is shown as it will be.
func TestWrittenToASession(t *testing.T) {
	x := newRig(t)
	var posts []mail.Post
	x.answers(desk{x.project.API(), &posts})
	x.project.Expand = func(_ context.Context, command, arguments string) (Begin, error) {
		return Begin{Goal: "fix all", Typed: &centurion.Typed{Command: command, Arguments: arguments}}, nil
	}
	path := "/session/" + x.root.ID
	x.ask("POST", path+"/command", `{"command":"fix","arguments":"all"}`)
	if len(posts) != 1 || posts[0].To != x.root.ID || posts[0].Text != "fix all" || posts[0].Typed == nil || *posts[0].Typed != (centurion.Typed{Command: "fix", Arguments: "all"}) {
		t.Errorf("a command: %+v", posts)
	}
	w := httptest.NewRecorder() // the rig's answer to a message is the model's
	x.project.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", path+"/message", strings.NewReader(`{"messageID":"msg_note","noReply":true,"parts":[{"type":"text","text":"by the way"}]}`)))
	if says := w.Body.String(); w.Code != 200 || !strings.Contains(says, `"id":"msg_note"`) || !strings.Contains(says, `"text":"by the way"`) || len(posts) != 2 || !posts[1].NoReply {
		t.Errorf("a note: %d %s, %+v", w.Code, says, posts)
	}

	_, opened := x.ask("POST", "/session", `{"agent":"assistant"}`)
	id := regexp.MustCompile(`ses_\w+`).FindString(opened)
	x.project.Begin = func(context.Context, Begin) (server.Mission, error) { // another message was faster
		s, err := x.store.Session(t.Context(), id)
		s.Metadata.Mission = x.mission.ID
		x.update(func(tx *store.Tx) error { return errors.Join(err, tx.PutSession(&s)) })
		return server.Mission{}, &centurion.Error{Kind: centurion.KindConflict, Msg: "it has begun"}
	}
	status, body := x.ask("POST", "/session/"+id+"/prompt_async", `{"parts":[{"type":"text","text":"and this"}]}`)
	if status != http.StatusNoContent || len(posts) != 3 || posts[2].To != id || posts[2].Text != "and this" {
		t.Errorf("the second of two first messages: %d %s, %+v", status, body, posts)
	}
}

// endless is a text that does not end, and how much of it was read.
type endless int

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	*e += endless(len(b))
	return len(b), nil
}

// No more of a request is read than it may have.
func TestBodiesHaveALimit(t *testing.T) {
	var read endless
	w := httptest.NewRecorder()
	body := io.MultiReader(strings.NewReader(`{"title":"`), io.LimitReader(&read, 2*maxBody))
	(&Project{}).Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/session", body))
	if w.Code != http.StatusBadRequest || read > maxBody+1<<20 {
		t.Errorf("%d MB are read: %d %s", read>>20, w.Code, w.Body)
	}
}
