package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"centurion"
	"centurion/config"
	"centurion/guard"
	"centurion/orchestrator/mail"
	"centurion/server"
)

// faulty is a host of another process. The first requests for path break off: before an answer when something is posted, else
// in the middle of it.
type faulty struct {
	server.API
	path   string
	bodies []string // of the requests for path, their query or what was posted
	left   int      // how many of them break off
	early  bool     // all before an answer
	events func(q server.EventQuery) []centurion.Event
	pause  error
	says   server.Mission // the mission

	mu sync.Mutex // protects left and bodies; tests read them when all requests have ended
}

func (f *faulty) Send(context.Context, mail.Post) (p mail.Posted, err error) {
	return p, nil
}
func (f *faulty) Mission(context.Context, string) (m server.Mission, err error) {
	return f.says, nil
}
func (f *faulty) Pause(context.Context, string, string) error { return f.pause }

func (f *faulty) Events(_ context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		for _, e := range f.events(q) {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (f *faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(b))
	ours := r.URL.Path == server.Prefix+f.path
	f.mu.Lock()
	abort := ours && f.left > 0
	if ours {
		f.bodies = append(f.bodies, r.URL.RawQuery+string(b))
	}
	if abort {
		f.left--
	}
	f.mu.Unlock()
	if abort && (f.early || r.Method == http.MethodPost) {
		panic(http.ErrAbortHandler)
	}
	server.Handler(f.API, "t", server.Info{PID: 4711, Version: "1"}, nil).ServeHTTP(w, r)
	if abort {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// connectTo returns a connection to a host that answers as f does.
func connectTo(t *testing.T, f *faulty) *Connection {
	t.Helper()
	f.API = f
	conn := &Connection{Place: hostElsewhere(t, nil), Options: Options{Version: "1"}, Note: func(string) {}}
	l, err := net.Listen("unix", filepath.Join(conn.State, "host.sock"))
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: f}
	var g guard.Group
	g.Go("host", func() error { _ = srv.Serve(l); return nil })
	t.Cleanup(func() {
		conn.set(nil, nil)
		if err := errors.Join(srv.Close(), g.Wait()); err != nil {
			t.Error(err)
		}
	})
	if err := conn.ConnectOrOwn(t.Context(), FirstTimeout); err != nil {
		t.Fatal(err)
	}
	return conn
}

// A message whose host goes away before it has said that it is stored is sent once more under the same id, so that
// it is stored once; the next message has another one.
func TestMessageKeepsItsIDOnRetry(t *testing.T) {
	f := &faulty{path: "/send", left: 2}
	conn := connectTo(t, f)
	for _, p := range []mail.Post{{Mission: "msn_1", Text: "one"}, {Mission: "msn_1", Text: "two"}, {ID: "dlv_own", Text: "three"}} {
		if _, err := conn.Send(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	var ids, texts []string
	for _, b := range f.bodies {
		var p mail.Post
		if err := json.Unmarshal([]byte(b), &p); err != nil {
			t.Fatal(err)
		}
		ids, texts = append(ids, p.ID), append(texts, p.Text)
	}
	if !slices.Equal(texts, []string{"one", "one", "one", "two", "three"}) {
		t.Fatalf("it was sent: %q", texts)
	}
	if ids[0] == "" || ids[0] != ids[1] || ids[0] != ids[2] {
		t.Errorf("the ids of one message are %q", ids[:3])
	}
	if ids[3] == ids[0] || ids[3] == "" || ids[4] != "dlv_own" {
		t.Errorf("the ids of the others are %q", ids[3:])
	}
}

// Whoever follows events goes on after the newest that arrived when the host goes away, and sees none twice.
func TestEventsGoOnWhereTheyBrokeOff(t *testing.T) {
	f := &faulty{path: "/events", left: 1}
	f.events = func(q server.EventQuery) (out []centurion.Event) {
		for seq := q.After + 1; seq <= min(q.After+2, 4); seq++ {
			out = append(out, centurion.Event{Seq: seq, Type: centurion.EventSessionIdle, Mission: q.Mission, Data: json.RawMessage("{}")})
		}
		return append(out, centurion.Event{Type: centurion.EventToast, Data: json.RawMessage("{}")}) // which has no number
	}
	conn := connectTo(t, f)
	var seen []int64
	for e, err := range conn.Events(t.Context(), server.EventQuery{Mission: "msn_1", Follow: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen = append(seen, e.Seq); e.Seq == 4 {
			break
		}
	}
	if want := []int64{1, 2, 0, 3, 4}; !slices.Equal(seen, want) {
		t.Errorf("events %v, want %v", seen, want)
	}
	for i, want := range []string{"after=0", "after=2"} {
		if !strings.Contains(f.bodies[i], want+"&") || !strings.Contains(f.bodies[i], "mission=msn_1") || !strings.Contains(f.bodies[i], "follow=true") {
			t.Errorf("request %d asked for %s", i, f.bodies[i])
		}
	}
}

// A mission that could not be paused is told of; one that has stopped meanwhile is not.
func TestPauseTellsOfFaults(t *testing.T) {
	for want, fault := range map[string]error{
		"": nil,
		"the mission could not be paused: the disk is full": &centurion.Error{Kind: centurion.KindDisk, Msg: "the disk is full"},
		"\x00": &centurion.Error{Kind: centurion.KindConflict, Msg: "it is not running"},
	} {
		f := &faulty{pause: fault}
		conn := connectTo(t, f)
		var noted []string
		conn.Note = func(line string) { noted = append(noted, line) }
		conn.Pause("msn_1")
		if got := strings.Join(noted, "\n"); got != strings.Trim(want, "\x00") {
			t.Errorf("%v: it says %q", fault, got)
		}
	}
}

// What has happened is read to its end, once each, although the host that was asked ends meanwhile.
func TestPastOutlivesItsHost(t *testing.T) {
	f := &faulty{path: "/events", left: 1, events: func(q server.EventQuery) (events []centurion.Event) {
		for seq := q.After + 1; seq <= 3; seq++ {
			events = append(events, centurion.Event{Seq: seq, Mission: "msn_1", Type: centurion.EventTaskQueued})
		}
		return events
	}}
	conn := connectTo(t, f)
	var got []int64
	for e, err := range conn.Place.Events(t.Context(), conn.API(), server.EventQuery{Mission: "msn_1"}, func(string) {}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Seq)
	}
	if !slices.Equal(got, []int64{1, 2, 3}) || len(f.bodies) != 2 {
		t.Errorf("read %v in %d requests", got, len(f.bodies))
	}
}

// When the host of a project goes away, many callers of one connection notice it at once. One of them makes this process the host, and the
// others find that; none makes it its own client.
func TestManyFindTheNextHost(t *testing.T) {
	x := newProject(t, nil)
	h := x.mustOwn(Options{})
	cfg := x.config()
	conn := &Connection{Place: x.Place, Workspace: x.ws, Config: cfg, Models: NewModels(cfg, config.Resolved{}), Note: x.note}
	if err := conn.ConnectOrOwn(t.Context(), FirstTimeout); err != nil || conn.Host() != nil {
		t.Fatalf("connected with %v", err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	var g guard.Group
	for range 8 {
		g.Go("call", func() error {
			_, err := Call(t.Context(), conn, func(api server.API) (int64, error) { return api.LastSeq(t.Context()) })
			return err
		})
		g.Go("read", func() error {
			for _, err := range conn.Events(t.Context(), server.EventQuery{}) {
				return err
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil || conn.Host() == nil {
		t.Errorf("%v; this process is the host: %v", err, conn.Host() != nil)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
	x.free("after the end")
}
