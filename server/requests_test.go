package server_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"centurion"
	"centurion/orchestrator/mail"
	"centurion/orchestrator/retention"
	"centurion/orchestrator/roots"
	"centurion/sandbox"
	"centurion/server"
	"centurion/takeover"
)

// requests are what a client asks a server, by what it sends.
func requests(t *testing.T, c *server.Client) map[string]func() error {
	ctx := t.Context()
	got := func(_ any, err error) error { return err }
	return map[string]func() error{
		`POST /asks/a%2Fb {"answer":"once"}`: func() error { return c.Answer(ctx, "a/b", "once") },
		`POST /asks/a {"answer":"once","client":"p"}`: func() error {
			return c.Answer(server.WithPeer(ctx, sandbox.Peer{PID: 1, Command: "p"}), "a", "once")
		},
		`POST /stop {"id":"i","reason":"why"}`: func() error { return c.Stop(ctx, "i", "why") },
		`POST /send {"to":"0/","text":"hi"}`:   func() error { return got(c.Send(ctx, mail.Post{To: "0/", Text: "hi"})) },
		`POST /tidy {"dry_run":true}`:          func() error { return got(c.Tidy(ctx, retention.TidyOptions{DryRun: true})) },
		`GET /receipts?mission=m+1`:            func() error { return got(c.Receipts(ctx, "m 1")) },
		`GET /seq`:                             func() error { return got(c.LastSeq(ctx)) },
		`GET /diff?id=i&patch=true&path=a&path=b`: func() error {
			return got(c.Diff(ctx, "i", takeover.DiffOptions{Patch: true, Paths: []string{"a", "b"}}))
		},
		`GET /roots?all=true&before=13&limit=14&search=x&since=12&tasks=false`: func() error {
			return got(c.Roots(ctx, roots.Query{Search: "x", Since: 12, Before: 13, Limit: 14, All: true}))
		},
		`POST /pause {"id":"i","reason":"why"}`:             func() error { return c.Pause(ctx, "i", "why") },
		`POST /sessions/a%2Fb/compact {"model":"p/m"}`:      func() error { return c.Compact(ctx, "a/b", "p/m") },
		`POST /sessions/a%2Fb/revert {"message":"m"}`:       func() error { return got(c.Revert(ctx, "a/b", "m")) },
		`POST /sessions/a%2Fb/fork {"at":"m"}`:              func() error { return got(c.Fork(ctx, "a/b", "m")) },
		`GET /sessions/a%2Fb/tree`:                          func() error { return got(c.Tree(ctx, "a/b")) },
		`POST /roots/a%2Fb {}`:                              func() error { return got(c.Change(ctx, "a/b", roots.Change{})) },
		`POST /roots/a%2Fb/remove {}`:                       func() error { return c.Remove(ctx, "a/b") },
		`POST /missions {"goal":"g","options":{}}`:          func() error { return got(c.Start(ctx, "g", centurion.MissionOptions{})) },
		`POST /abort {"id":"i","reason":"why"}`:             func() error { return c.Abort(ctx, "i", "why") },
		`POST /prompt {"to":"0/","text":"hi"}`:              func() error { return got(c.Prompt(ctx, mail.Post{To: "0/", Text: "hi"})) },
		`POST /sessions/a%2Fb/rewind {"to":"m","mark":"n"}`: func() error { return got(c.Rewind(ctx, "a/b", server.Rewind{To: "m", Mark: "n"})) },
		`POST /undo {"id":"i","dry_run":true}`:              func() error { return got(c.Undo(ctx, "i", takeover.UndoRequest{DryRun: true})) },
		`GET /asks`:                                         func() error { return got(c.Asks(ctx)) },
		`GET /sessions/a%2Fb/written?message=m+1`:           func() error { return got(c.Written(ctx, "a/b", "m 1")) },
		`POST /cancel {"id":"i","reason":"why"}`:            func() error { return c.Cancel(ctx, "i", "why") },
		`POST /resume {"id":"i","options":{}}`:              func() error { return got(c.Resume(ctx, "i", centurion.MissionOptions{})) },
		`GET /todo?mission=m+1`:                             func() error { return got(c.Todo(ctx, "m 1")) },
		`GET /state?id=s+1`:                                 func() error { return got(c.State(ctx, "s 1")) },
		`POST /expand {"id":"i","reason":"why"}`:            func() error { return c.Expand(ctx, "i", "why") },
		`POST /servers/content {"server":"s","uri":"u"}`:    func() error { return got(c.Content(ctx, server.ServerQuery{Server: "s", URI: "u"})) },
		`POST /merge {"id":"i","dry_run":true}`:             func() error { return got(c.Merge(ctx, "i", takeover.MergeRequest{DryRun: true})) },
		`GET /mission?id=m+1`:                               func() error { return got(c.Mission(ctx, "m 1")) },
		`GET /tasks/a%2Fb`:                                  func() error { return got(c.Task(ctx, "a/b")) },
		`GET /sessions?mission=m+1`:                         func() error { return got(c.Sessions(ctx, "m 1")) },
		`POST /sessions/a%2Fb/shell {"command":"ls"}`:       func() error { return got(c.Shell(ctx, "a/b", "ls")) },
		`GET `:                func() error { return got(c.Info(ctx)) },
		`GET /missions`:       func() error { return got(c.Missions(ctx)) },
		`GET /sessions/a%2Fb`: func() error { return got(c.Session(ctx, "a/b")) },
		`GET /sessions/a%2Fb/messages/c%2Fd?part=e&part=f`: func() error { return got(c.Message(ctx, "a/b", "c/d", "e", "f")) },
		`POST /roots {}`:               func() error { return got(c.Open(ctx, roots.Opening{})) },
		`GET /tasks?mission=m+1`:       func() error { return got(c.Tasks(ctx, "m 1")) },
		`GET /sessions/a%2Fb/messages`: func() error { return got(c.Messages(ctx, "a/b")) },
		`GET /servers?wait=true`:       func() error { return got(c.Servers(ctx, true)) },
		`GET /events?after=7&deltas=true&follow=false&keep=false&mission=m&session=s&task=t&toasts=true&view=v`: func() error {
			_, err := collect(c.Events(ctx, server.EventQuery{After: 7, Mission: "m", Session: "s", Task: "t", Deltas: true, Toasts: true, View: "v"}))
			return err
		},
	}
}

// served returns the address of a server that answers everything alike, and what it was asked last.
func served(t *testing.T, status int, answer string) (base string, asked *http.Request, body *string) {
	asked, body = &http.Request{}, new(string)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*asked, *body = *r, string(b)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, asked, body
}

// Every request goes to its path of the API below the address that was given, with the project and the token; what an id holds does not
// change the path. A client that may only read asks for nothing that changes something.
func TestRequestsWhole(t *testing.T) {
	base, asked, body := served(t, http.StatusOK, "null\n")
	c := server.NewPortClient(base+"/t/x/", "tok", "/p q")
	defer c.Close()
	send := requests(t, c)
	for want, do := range send {
		if err := do(); err != nil {
			t.Errorf("%s: %v", want, err)
		}
		q := asked.URL.Query()
		if q.Get("directory") != "/p q" || asked.Header.Get("Authorization") != "Bearer tok" || asked.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s is asked with %q and %q", want, asked.URL.RawQuery, asked.Header)
		}
		q.Del("directory")
		asked.URL.RawQuery = q.Encode()
		if got := strings.TrimSuffix(asked.Method+" "+strings.TrimPrefix(asked.URL.RequestURI(), "/t/x"+server.Prefix)+" "+*body, " "); got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
	}
	why := errors.New("another version hosts it")
	c.OnlyRead(why)
	for want, do := range send {
		*asked = http.Request{}
		err := do()
		if reads := strings.HasPrefix(want, "GET"); reads && err != nil || !reads && (err != why || asked.URL != nil) {
			t.Errorf("%s of a client that may only read: %v", want, err)
		}
	}
}

// What is no answer of a host is not taken for one.
func TestAnswersOfOthers(t *testing.T) {
	for _, test := range []struct {
		status           int
		answer, one, all string
	}{
		{200, "<html>", "ask the host: the host of this project does not answer: invalid character '<' looking for beginning of value | network | it may have just ended; see: centurion ps",
			"read events: invalid character '<' looking for beginning of value | internal | "},
		{200, `{"error":{"kind":"disk","message":"no space","hint":"free some"}}`, "<nil> |  | ", "no space | disk | free some"},
		{502, "bad gateway", "ask the host: it answered 502 Bad Gateway | internal | ", "ask the host: it answered 502 Bad Gateway | internal | "},
		{502, "{}", "ask the host: it answered 502 Bad Gateway | internal | ", "ask the host: it answered 502 Bad Gateway | internal | "},
		{409, `{"error":{"kind":"conflict","message":"it runs","hint":"wait"}}`, "it runs | conflict | wait", "it runs | conflict | wait"},
	} {
		base, asked, _ := served(t, test.status, test.answer)
		c := server.NewPortClient(base, "", "")
		_, one := c.Session(t.Context(), "x")
		if asked.Header.Get("Authorization") != "" || asked.URL.RawQuery != "" {
			t.Errorf("a client without a token and a project sends %q, %q", asked.Header, asked.URL.RawQuery)
		}
		_, all := collect(c.Events(t.Context(), server.EventQuery{}))
		if fails(one) != test.one || fails(all) != test.all {
			t.Errorf("%d %s:\n%s\n%s", test.status, test.answer, fails(one), fails(all))
		}
		c.Close()
	}
	if _, err := server.NewPortClient("http://\x7f", "", "").Missions(t.Context()); centurion.KindOf(err) != centurion.KindInternal {
		t.Errorf("an address that is none: %v", err)
	}
}

// fails is an error with its kind and its hint.
func fails(err error) string {
	return fmt.Sprintf("%v | %s | %s", err, centurion.KindOf(err), centurion.HintOf(err))
}

// A host that goes away in the middle of an event is gone, and not one that says something wrong: its reader continues with the next host.
func TestEventIsCut(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"seq":1,"type":"task.queued"}`+"\n"+`{"seq":2,"type":"task.sta`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer srv.Close()
	c := server.NewPortClient(srv.URL, "", "")
	defer c.Close()
	all, err := collect(c.Events(t.Context(), server.EventQuery{Follow: true}))
	if len(all) != 1 || all[0].Seq != 1 || centurion.KindOf(err) != centurion.KindNetwork {
		t.Errorf("%+v, %s", all, fails(err))
	}
}
