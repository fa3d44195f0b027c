package server_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/sandbox"
	"centurion/server"
)

// S5, design §9: the socket asks for the token too.
func TestToken(t *testing.T) {
	p := newProject(t)
	path, _ := listen(t, p.local)
	raw := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	for _, route := range []string{"GET ", "GET /missions", "GET /mission", "GET /tasks", "GET /tasks/x", "GET /sessions", "GET /sessions/x",
		"GET /sessions/x/messages", "GET /receipts", "GET /asks", "GET /events", "POST /asks/x", "POST /cancel", "POST /send", "GET /nonsense"} {
		method, at, _ := strings.Cut(route, " ")
		for _, header := range []string{"", "Bearer ", "Bearer wrong", "Bearer " + token + "x", "Basic " + token} {
			req, err := http.NewRequestWithContext(t.Context(), method, "http://host"+server.Prefix+at, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			if header != "" {
				req.Header.Set("Authorization", header)
			}
			resp, err := raw.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != http.StatusUnauthorized || !bytes.Contains(body, []byte(`"auth"`)) || bytes.Contains(body, []byte(p.mission.ID)) {
				t.Errorf("%s with %q: status %d, %s", route, header, resp.StatusCode, body)
			}
		}
	}
	c := server.NewClient(path, "wrong")
	defer c.Close()
	if _, err := c.Missions(t.Context()); centurion.KindOf(err) != centurion.KindAuth {
		t.Errorf("a client with a wrong token: %v, kind %s", err, centurion.KindOf(err))
	}
	// Without a token of its own a server lets nobody in.
	rec := recorder{header: http.Header{}}
	server.Handler(p.local, "", server.Info{}, nil).ServeHTTP(&rec, mustRequest(t, http.MethodGet, "/missions", ""))
	if rec.status != http.StatusUnauthorized {
		t.Errorf("a server without a token answers %d", rec.status)
	}
}

// S5: a process that agents have started is refused, with the right token, too, and the host is told.
func TestRefusedPeer(t *testing.T) {
	p := newProject(t)
	var told []sandbox.Peer
	h := server.Handler(p.local, token, server.Info{}, func(p sandbox.Peer) { told = append(told, p) })
	for _, peer := range []sandbox.Peer{{PID: 7, Refused: "an agent's"}, {PID: 8}} {
		rec := recorder{header: http.Header{}, status: http.StatusOK}
		req := mustRequest(t, http.MethodGet, "/missions", "")
		req.Header.Set("Authorization", "Bearer "+token)
		h.ServeHTTP(&rec, req.WithContext(server.WithPeer(t.Context(), peer)))
		if want := map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[peer.Refused == ""]; rec.status != want {
			t.Errorf("%+v: %d, %s", peer, rec.status, rec.String())
		}
	}
	if len(told) != 1 || told[0].PID != 7 {
		t.Errorf("told: %+v", told)
	}
}

// recorder is a response writer that keeps what it is given.
type recorder struct {
	header http.Header
	status int
	bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(s int) { r.status = s }

func (r *recorder) Flush() {}

func mustRequest(t *testing.T, method, at, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://host"+server.Prefix+at, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// An error keeps its kind, its words and its hint on the way.
func TestErrors(t *testing.T) {
	p := newProject(t)
	c := connect(t, p.local)
	ctx := t.Context()
	for name, call := range map[string]func(a server.API) error{
		"mission":  func(a server.API) error { _, err := a.Mission(ctx, "msn_nosuch"); return err },
		"tasks":    func(a server.API) error { _, err := a.Tasks(ctx, "msn_nosuch"); return err },
		"task":     func(a server.API) error { _, err := a.Task(ctx, "tsk_nosuch"); return err },
		"sessions": func(a server.API) error { _, err := a.Sessions(ctx, "msn_nosuch"); return err },
		"session":  func(a server.API) error { _, err := a.Session(ctx, "ses_nosuch"); return err },
		"messages": func(a server.API) error { _, err := a.Messages(ctx, "ses_nosuch"); return err },
		"receipts": func(a server.API) error { _, err := a.Receipts(ctx, "msn_nosuch"); return err },
		"answer":   func(a server.API) error { return a.Answer(ctx, "que_nosuch", "x") },
		"cancel":   func(a server.API) error { return a.Cancel(ctx, "tsk_nosuch", "") },
	} {
		t.Run(name, func(t *testing.T) {
			want, got := call(p.local), call(c)
			if centurion.KindOf(want) != centurion.KindNotFound {
				t.Fatalf("what is not there gives %v, kind %s", want, centurion.KindOf(want))
			}
			if got == nil || got.Error() != want.Error() || centurion.KindOf(got) != centurion.KindOf(want) || centurion.HintOf(got) != centurion.HintOf(want) {
				t.Errorf("through the socket %v (%s, %q) is %v (%s, %q)", want, centurion.KindOf(want), centurion.HintOf(want),
					got, centurion.KindOf(got), centurion.HintOf(got))
			}
			if centurion.HintOf(got) == "" {
				t.Errorf("%v has no hint", got)
			}
		})
	}
}

// failing is an API whose every answer is one error.
type failing struct {
	server.API
	err error
}

func (f failing) Missions(context.Context) ([]server.Mission, error) { return nil, f.err }

func TestStatuses(t *testing.T) {
	for kind, want := range map[centurion.Kind]int{centurion.KindUsage: 400, centurion.KindAuth: 401, centurion.KindPermission: 403,
		centurion.KindNotFound: 404, centurion.KindConflict: 409, centurion.KindInternal: 500, centurion.KindState: 500} {
		h := server.Handler(failing{err: &centurion.Error{Kind: kind, Msg: "m"}}, token, server.Info{}, nil)
		req := mustRequest(t, http.MethodGet, "/missions", "")
		req.Header.Set("Authorization", "Bearer "+token)
		rec := recorder{header: http.Header{}}
		h.ServeHTTP(&rec, req)
		if rec.status != want || rec.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: status %d, not %d (%s)", kind, rec.status, want, rec.header)
		}
	}
}

// Bodies have a limit and a form.
func TestBodies(t *testing.T) {
	p := newProject(t)
	h := server.Handler(p.local, token, server.Info{}, nil)
	for _, tt := range []struct {
		at, body string
		want     int
	}{
		{"/cancel", "", 400},
		{"/cancel", "{", 400},
		{"/cancel", `{"id":"x","resaon":"y"}`, 400},
		{"/cancel", `{"id":7}`, 400},
		{"/cancel", `{"id":"tsk_x"}`, 404},
		{"/asks/que_x", `{"answer":"x"}`, 404},
		{"/asks/que_x", `{"answer":"` + strings.Repeat("a", 2<<20) + `"}`, 413},
		{"/cancel", `{"id":"` + strings.Repeat("a", 2<<20) + `"}`, 413},
		{"/nonsense", `{}`, 404},
		{"/missions", `{}`, 409}, // this process starts nothing
		{"/missions", `{"goal":"x","option":{}}`, 400},
		{"/missions", `{"goal":"` + strings.Repeat("a", 2<<20) + `"}`, 409}, // it may have files
		{"/prompt", `{"text":"` + strings.Repeat("a", 2<<20) + `"}`, 404},   // so may this one, which is for nobody
		{"/resume", `{"id":"` + p.mission.ID + `"}`, 409},
		{"/pause", `{"id":"msn_x"}`, 404},
		{"/events", `{}`, 405},
	} {
		req := mustRequest(t, http.MethodPost, tt.at, tt.body)
		req.Header.Set("Authorization", "Bearer "+token)
		rec := recorder{header: http.Header{}}
		h.ServeHTTP(&rec, req)
		if rec.status != tt.want {
			t.Errorf("%s %.40s: status %d, not %d: %s", tt.at, tt.body, rec.status, tt.want, rec.String())
		}
	}
	req := mustRequest(t, http.MethodGet, "/events?after=yesterday", "")
	req.Header.Set("Authorization", "Bearer "+token)
	rec := recorder{header: http.Header{}}
	h.ServeHTTP(&rec, req)
	if rec.status != 400 {
		t.Errorf("after=yesterday: status %d", rec.status)
	}
}

// A browser reads the journal as text/event-stream, and goes on after the last event that it has seen.
func TestEventsForBrowsers(t *testing.T) {
	p := newProject(t)
	read := func(header http.Header) (string, []string) {
		rec := recorder{header: http.Header{}}
		r := mustRequest(t, http.MethodGet, "/events?after=0", "")
		r.Header = header
		server.Routes(p.local, server.Info{}).ServeHTTP(&rec, r)
		return rec.header.Get("Content-Type"), strings.SplitAfter(strings.TrimSpace(rec.String()), "\n\n")
	}
	kind, all := read(http.Header{"Accept": {"text/event-stream"}})
	if kind != "text/event-stream" || len(all) < 2 || !strings.HasPrefix(all[0], "id: 1\ndata: {\"seq\":1,") {
		t.Fatalf("%s: %q", kind, all)
	}
	if _, rest := read(http.Header{"Accept": {"text/event-stream"}, "Last-Event-Id": {"1"}}); !slices.Equal(rest, all[1:]) {
		t.Errorf("after the first: %q, want %q", rest, all[1:])
	}
	if kind, lines := read(http.Header{"Accept": {"*/*"}}); kind != "application/x-ndjson" || !strings.HasPrefix(lines[0], `{"seq":1,`) {
		t.Errorf("%s: %q", kind, lines)
	}
	if _, wrong := read(http.Header{"Last-Event-Id": {"x"}}); !strings.Contains(wrong[0], "must be sequence numbers") {
		t.Errorf("no number: %q", wrong)
	}
}
