package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/branches"
	"centurion/orchestrator/roots"
	"centurion/server"
	"centurion/store"
)

// heard is a host that writes down what it is asked.
type heard struct {
	server.API
	calls []string
}

func note[T any](h *heard, name string, args ...any) (v T, err error) {
	h.calls = append(h.calls, fmt.Sprintf("%s %+v", name, args))
	return v, nil
}

func (h *heard) Roots(_ context.Context, q roots.Query) ([]centurion.Session, error) {
	return note[[]centurion.Session](h, "roots", q)
}

func (h *heard) Open(_ context.Context, o roots.Opening) (centurion.Session, error) {
	return note[centurion.Session](h, "open", o.Title)
}

func (h *heard) Change(_ context.Context, id string, c roots.Change) (centurion.Session, error) {
	return note[centurion.Session](h, "change", id, *c.Title)
}

func (h *heard) Remove(_ context.Context, id string) error {
	_, err := note[int](h, "remove", id)
	return err
}

func (h *heard) Servers(_ context.Context, wait bool) ([]server.ToolServer, error) {
	return note[[]server.ToolServer](h, "servers", wait)
}

func (h *heard) Content(_ context.Context, q server.ServerQuery) (server.ServerContent, error) {
	return note[server.ServerContent](h, "content", q)
}

func (h *heard) Written(_ context.Context, id, message string) ([]centurion.FileDiff, error) {
	return note[[]centurion.FileDiff](h, "written", id, message)
}

func (h *heard) Message(_ context.Context, id, message string, parts ...string) (server.Message, error) {
	return note[server.Message](h, "message", id, message, parts)
}

func (h *heard) Todo(_ context.Context, id string) (event.TodoData, error) {
	return note[event.TodoData](h, "todo", id)
}

func (h *heard) Revert(_ context.Context, id, message string) (branches.Reverted, error) {
	return note[branches.Reverted](h, "revert", id, message)
}

func (h *heard) Rewind(_ context.Context, id string, r server.Rewind) (branches.Rewound, error) {
	return note[branches.Rewound](h, "rewind", id, r)
}

func (h *heard) Fork(_ context.Context, id, at string) (branches.Forked, error) {
	return note[branches.Forked](h, "fork", id, at)
}

func (h *heard) Shell(_ context.Context, id, command string) (server.Message, error) {
	return note[server.Message](h, "shell", id, command)
}

func (h *heard) Answer(_ context.Context, id, answer string) error {
	_, err := note[int](h, "answer", id, answer)
	return err
}

func (h *heard) Cancel(_ context.Context, id, reason string) error {
	_, err := note[int](h, "cancel", id, reason)
	return err
}

// What a client asks of a conversation reaches the host with all that it was asked with.
func TestEachRouteOfConversations(t *testing.T) {
	h, ctx := &heard{}, t.Context()
	c := connect(t, h)
	of := func(_ any, err error) error { return err }
	title := "A"
	for want, call := range map[string]func() error{
		"roots [{Search:x Since:12 Before:13 Limit:14 All:true Tasks:false}]": func() error {
			return of(c.Roots(ctx, roots.Query{Search: "x", Since: 12, Before: 13, Limit: 14, All: true}))
		},
		"roots [{Search: Since:0 Before:0 Limit:0 All:false Tasks:true}]": func() error { return of(c.Roots(ctx, roots.Query{Since: -1, Tasks: true})) },
		"open [A]":                 func() error { return of(c.Open(ctx, roots.Opening{Title: "A"})) },
		"change [x A]":             func() error { return of(c.Change(ctx, "x", roots.Change{Title: &title})) },
		"remove [x]":               func() error { return c.Remove(ctx, "x") },
		"servers [true]":           func() error { return of(c.Servers(ctx, true)) },
		"servers [false]":          func() error { return of(c.Servers(ctx, false)) },
		"written [x y]":            func() error { return of(c.Written(ctx, "x", "y")) },
		"message [x y [p]]":        func() error { return of(c.Message(ctx, "x", "y", "p")) },
		"todo [x]":                 func() error { return of(c.Todo(ctx, "x")) },
		"revert [x y]":             func() error { return of(c.Revert(ctx, "x", "y")) },
		"rewind [x {To:y Mark:z}]": func() error { return of(c.Rewind(ctx, "x", server.Rewind{To: "y", Mark: "z"})) },
		"fork [x y]":               func() error { return of(c.Fork(ctx, "x", "y")) },
		"shell [x y]":              func() error { return of(c.Shell(ctx, "x", "y")) },
		"answer [x y]":             func() error { return c.Answer(ctx, "x", "y") },
		"cancel [x y]":             func() error { return c.Cancel(ctx, "x", "y") },
		"content [{Prompt:p Words:[w] Server:s URI:u}]": func() error {
			return of(c.Content(ctx, server.ServerQuery{Prompt: "p", Words: []string{"w"}, Server: "s", URI: "u"}))
		},
	} {
		h.calls = nil
		if err := call(); err != nil || !slices.Equal(h.calls, []string{want}) {
			t.Errorf("%q, want %q, %v", h.calls, want, err)
		}
	}
}

// Lists have what there is, also for a reader that keeps the mission; of another mission they have nothing.
func TestListsWhole(t *testing.T) {
	p, b := hosting(t)
	ctx := t.Context()
	if err := p.store.Update(ctx, func(tx *store.Tx) error {
		_, err := tx.Append(centurion.Event{Type: centurion.EventTodoUpdated, Mission: p.mission.ID, Data: event.Data(event.TodoData{Title: "ours"})})
		_, berr := tx.Append(centurion.Event{Type: centurion.EventTodoUpdated, Mission: "msn_b", Data: event.Data(event.TodoData{Title: "theirs"})})
		return errors.Join(err, berr)
	}); err != nil {
		t.Fatal(err)
	}
	sessions, err := p.local.Sessions(ctx, p.mission.ID)
	receipts, rerr := p.local.Receipts(ctx, p.mission.ID)
	asks, aerr := p.local.Asks(ctx)
	todo, terr := p.local.Todo(ctx, p.mission.ID)
	if errors.Join(err, rerr, aerr, terr) != nil || len(sessions) != 1 || len(receipts) != 1 || len(asks) != 1 || todo.Title != "ours" {
		t.Errorf("%d sessions, %d receipts, %d asks, %+v", len(sessions), len(receipts), len(asks), todo)
	}
	kept, err := collect(p.local.Events(ctx, server.EventQuery{Mission: p.mission.ID, Keep: true}))
	if len(kept) != 3 || err != nil || b.keeps(p.mission.ID) != 0 || len(b.change) != 2 {
		t.Errorf("a reader that keeps it is told %d events, %v", len(kept), err)
	}
	if n, err := p.local.LastSeq(ctx); n != 4 || err != nil {
		t.Errorf("the newest event is %d, %v", n, err)
	}
}

// A server is known by the name that it listens on and by this machine's own; who is not let in is told why.
func TestGuardWhole(t *testing.T) {
	for _, x := range []struct {
		host, origin, token string
		status              int
		says                string
	}{
		{"box.lan:4096", "", token, 200, ""}, {"BOX.lan", "", token, 200, ""}, {"[::1]", "", token, 200, ""}, {"::1", "", token, 200, ""}, {"10.0.0.1:4096", "", token, 403, "this server is not 10.0.0.1:4096"},
		{"box.lan", "http://other.lan", token, 403, "web pages of http://other.lan are not let in"}, {"box.lan", "http://%zz", token, 403, "web pages of http://%zz are not let in"},
		{"box.lan", "", "", 401, "the token is missing or wrong"},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://box.lan/session", nil)
		r.Host = x.host
		r.Header.Set("Authorization", "Bearer "+x.token)
		if x.origin != "" {
			r.Header.Set("Origin", x.origin)
		}
		w := httptest.NewRecorder()
		server.Guard(token, "box.lan", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		if w.Code != x.status || !strings.Contains(w.Body.String(), `"message":"`+x.says) && x.says != "" || (w.Header().Get("WWW-Authenticate") != "") != (x.status == 401) {
			t.Errorf("%s from %q: %d, %s", x.host, x.origin, w.Code, w.Body)
		}
	}
}
