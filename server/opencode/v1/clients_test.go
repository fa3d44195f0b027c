package v1

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"centurion"
	"centurion/orchestrator/branches"
	"centurion/orchestrator/roots"
	"centurion/server"
)

// talk is a host with a conversation of three messages, two roots and a child of the first one; it notes what is changed.
type talk struct {
	server.API
	root  centurion.Session
	mu    *sync.Mutex
	did   *[]string
	fails map[string]error
}

func (k talk) note(name, format string, args ...any) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	*k.did = append(*k.did, name+fmt.Sprintf(format, args...))
	return k.fails[name]
}

func (k talk) Messages(context.Context, string) (all []server.Message, err error) {
	for i := range 3 {
		all = append(all, k.message(fmt.Sprint("msg_", i)))
	}
	return all, k.fails["messages"]
}

func (k talk) message(id string) server.Message {
	m := server.Message{Info: centurion.Message{ID: id, SessionID: k.root.ID, Role: centurion.RoleUser, Agent: "commander", Model: centurion.ModelRef{Provider: "custom", ID: "m"}}}
	if id != "msg_0" {
		m.Prev = "msg_0"
	}
	return m
}

func (k talk) Message(_ context.Context, _, id string, _ ...string) (server.Message, error) {
	return k.message(id), k.fails["message"]
}

func (k talk) Roots(context.Context, roots.Query) ([]centurion.Session, error) {
	return []centurion.Session{k.root}, k.fails["roots"]
}

func (k talk) Sessions(context.Context, string) ([]centurion.Session, error) {
	child := k.root
	child.ID, child.ParentID = "ses_child", k.root.ID
	return []centurion.Session{k.root, child}, k.fails["sessions"]
}

func (k talk) Open(_ context.Context, o roots.Opening) (centurion.Session, error) {
	s := k.root
	s.ID = "ses_new"
	return s, k.note("open", " %s", o.Agent)
}

func (k talk) Fork(_ context.Context, session, at string) (branches.Forked, error) {
	return branches.Forked{Session: "ses_copy"}, k.note("fork", " %t %s", session == k.root.ID, at)
}

func (k talk) Change(_ context.Context, id string, c roots.Change) (centurion.Session, error) {
	s := k.root
	s.ID, s.Title = id, *c.Title
	return s, k.note("change", " %s %s", id, *c.Title)
}

// Pages of messages, children and copies of a session are what there is; what cannot be read is an error of the request.
func TestTalk(t *testing.T) {
	x := newRig(t)
	k := talk{API: x.project.API(), root: x.root, mu: &sync.Mutex{}, did: &[]string{}, fails: map[string]error{}}
	x.answers(k)
	path := "/session/" + x.root.ID
	ids := func(query string) string {
		status, body := x.ask("GET", path+query, "")
		var list []struct {
			ID   string
			Info struct{ ID string }
		}
		if status != 200 || json.Unmarshal([]byte(body), &list) != nil {
			return fmt.Sprint(status)
		}
		var all []string
		for _, m := range list {
			all = append(all, m.ID+m.Info.ID)
		}
		return strings.Join(all, " ")
	}
	for query, want := range map[string]string{"/message": "msg_0 msg_1 msg_2", "/message?limit=2": "msg_1 msg_2", "/message?limit=3": "msg_0 msg_1 msg_2", "/message?before=msg_2": "msg_0 msg_1",
		"/message?before=msg_2&limit=1": "msg_1", "/message?before=msg_9": "400", "/children": "ses_child"} {
		if got := ids(query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	for body, want := range map[string]string{`{}`: "ses_copy|fork true |change ses_copy a goal (fork #1)", `{"messageID":"msg_1"}`: "ses_copy|fork true msg_0|change ses_copy a goal (fork #1)", `{"messageID":"msg_0"}`: "ses_new|open commander"} {
		*k.did = nil
		status, got := x.ask("POST", path+"/fork", body)
		var s struct{ ID string }
		if err := json.Unmarshal([]byte(got), &s); err != nil || status != 200 || strings.Join(append([]string{s.ID}, *k.did...), "|") != want {
			t.Errorf("%s: %d %s, did %q", body, status, got, *k.did)
		}
	}
	for _, c := range [][3]string{{"messages", "GET", "/message"}, {"roots", "GET", "/children"}, {"sessions", "GET", "/children"}, {"fork", "POST", "/fork"}, {"change", "POST", "/fork"}, {"message", "GET", "/message/msg_1"}} {
		k.fails[c[0]] = &centurion.Error{Kind: centurion.KindState, Msg: "broken"}
		body := ""
		if c[1] == "POST" {
			body = "{}"
		}
		if status, got := x.ask(c[1], path+c[2], body); status != 500 {
			t.Errorf("%s fails: %d %s", c[0], status, got)
		}
		delete(k.fails, c[0])
	}
}

// What a client writes to the log or to terminal clients reaches them, and nothing else does.
func TestClientRoutes(t *testing.T) {
	x := newRig(t)
	var mu sync.Mutex
	var said []string
	hear := func(words ...string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, strings.Join(words, "/"))
	}
	x.project.Note = func(text string) { hear(text) }
	x.project.Show = func(title, message, variant string) { hear(title, message, variant) }
	next := x.listen("/event")
	for _, c := range []struct {
		path, body string
		status     int
		said       string
	}{
		{"/log", `{"service":"s","level":"error","message":"m"}`, 200, "error of client s: m"}, {"/log", `{"service":"s","level":"warn","message":"m"}`, 200, "warn of client s: m"},
		{"/log", `{"service":"s","level":"info","message":"m"}`, 200, ""}, {"/log", `{`, 400, ""},
		{"/tui/show-toast", `{"title":"t","message":"m","variant":"info"}`, 200, "t/m/info"}, {"/tui/show-toast", `{"message":"m","variant":"error"}`, 200, "/m/error"},
		{"/tui/show-toast", `{"title":"t","variant":"info"}`, 400, ""}, {"/tui/show-toast", `{"message":"m","variant":"loud"}`, 400, ""},
		{"/tui/append-prompt", `{"text":"more"}`, 200, ""}, {"/tui/publish", `{"type":"tui.command.execute","properties":{"command":"x"}}`, 200, ""},
		{"/tui/publish", `{"type":"session.deleted","properties":{}}`, 400, ""},
	} {
		said = nil
		status, body := x.ask("POST", c.path, c.body)
		if got := strings.Join(said, "|"); status != c.status || got != c.said || status == 200 && body != "true" {
			t.Errorf("%s %s: %d %s, said %q", c.path, c.body, status, body, got)
		}
	}
	for _, want := range []string{"tui.prompt.append map[text:more]", "tui.command.execute map[command:x]"} {
		if e := next(); fmt.Sprint(e.Type, " ", e.Properties) != want {
			t.Errorf("told %+v, want %s", e, want)
		}
	}
}
