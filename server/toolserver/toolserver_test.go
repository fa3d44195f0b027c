package toolserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"centurion"
	"centurion/event"
	"centurion/guard"
	"centurion/server"
	"centurion/server/rpc"
	"centurion/store"
	"centurion/takeover"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host is a project that a test plays.
type host struct {
	server.API // what a test does not use

	mu      sync.Mutex
	mission server.Mission
	open    []store.Ask
	events  chan centurion.Event
	crash   bool
}

func newHost() *host {
	return &host{events: make(chan centurion.Event), mission: server.Mission{ID: "msn_1", Goal: "x", HasPlan: true, Status: centurion.MissionRunning}}
}

func (h *host) Mission(_ context.Context, id string) (server.Mission, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.crash {
		panic("no")
	}
	if id == "msn_none" {
		return server.Mission{}, &centurion.Error{Kind: centurion.KindNotFound, Msg: "no mission", Hint: "look again"}
	}
	return h.mission, nil
}

func (h *host) stop(status centurion.MissionStatus) {
	h.mu.Lock()
	h.mission.Status = status
	h.mu.Unlock()
}

func (h *host) Missions(ctx context.Context) ([]server.Mission, error) {
	all := make([]server.Mission, listed+2)
	for i := range all {
		all[i], _ = h.Mission(ctx, "")
	}
	return all, nil
}

func (h *host) LastSeq(context.Context) (int64, error) { return 7, nil }

func (h *host) Todo(context.Context, string) (event.TodoData, error) {
	return event.TodoData{TodoCounts: event.TodoCounts{Open: 1, Done: 1}}, nil
}

func (h *host) plan(context.Context, string) ([]event.PlanItem, error) {
	return []event.PlanItem{{ID: "T1", Title: "one", Status: "done"}, {ID: "T2", Title: "two", Status: "open"}}, nil
}

func (h *host) Receipts(context.Context, string) ([]centurion.Receipt, error) {
	return []centurion.Receipt{{Item: "T1", Command: "make", Error: "old"}, {Item: "T1", Command: "make", Passed: true, Proof: centurion.ProofProven}}, nil
}

func (h *host) Diff(context.Context, string, takeover.DiffOptions) (takeover.Change, error) {
	return takeover.Change{}, &centurion.Error{Kind: centurion.KindConflict, Msg: "nothing was recorded"}
}

func (h *host) Asks(context.Context) ([]store.Ask, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open, nil
}

func (h *host) follow(ctx context.Context, _ server.EventQuery) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		for {
			select {
			case e := <-h.events:
				if !yield(e, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func (h *host) project() *Project {
	return &Project{Call: func(_ context.Context, f func(server.API) error) error { return f(h) }, Follow: h.follow, Plan: h.plan, Take: func(string) {},
		Own: func(string) bool { return true },
		Begin: func(context.Context, rpc.StartParams) (server.Mission, error) {
			return h.Mission(context.Background(), "")
		}}
}

// served serves a host while use runs, over two pipes.
func served(t *testing.T, h *host, use func(*mcp.ClientSession, func() []string)) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ours, theirs := io.Pipe()
	answers, out := io.Pipe()
	var g guard.Group
	g.Go("serve", func() error {
		return Serve(ctx, ours, out, New(ctx, "1", h.project()), func() {})
	})
	var mu sync.Mutex
	var told []string
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, r.Params.Message)
	}})
	s, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: answers, Writer: theirs}, nil)
	if err != nil {
		t.Fatal(err)
	}
	use(s, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return told
	})
	_ = s.Close()
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

func called(t *testing.T, s *mcp.ClientSession, tool string, args map[string]any) (r Result, said string) {
	p := &mcp.CallToolParams{Name: tool, Arguments: args}
	p.SetProgressToken("t")
	res, err := s.CallTool(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(res.StructuredContent)
	if err = errors.Join(err, json.Unmarshal(b, &r)); err != nil {
		t.Fatal(err)
	}
	return r, res.Content[0].(*mcp.TextContent).Text
}

// A call waits until the mission stops, asks, or the time is over, and tells how far it is; the mission goes on in any case.
func TestWaits(t *testing.T) { synctest.Test(t, testWaits) }

func testWaits(t *testing.T) {
	h := newHost()
	served(t, h, func(s *mcp.ClientSession, told func() []string) {
		begin := time.Now()
		r, _ := called(t, s, "run_mission", map[string]any{"goal": "x"})
		if took := time.Since(begin); took != 0 || r.Mission.Status != "running" || len(r.Open) != 1 || r.Open[0].ID != "T2" || len(r.Checks) != 1 || !r.Checks[0].Passed {
			t.Errorf("after %v: %+v", took, r)
		}
		called(t, s, "mission_result", map[string]any{"wait_seconds": 10})
		synctest.Wait()
		if took := time.Since(begin); took != 10*time.Second || len(told()) != 4 || told()[3] != "running · 1 of 2 items done · 0 tokens · $0.00" {
			t.Errorf("after %v: %q", took, told())
		}
		for _, x := range []struct {
			typ    centurion.EventType
			status centurion.MissionStatus
		}{{centurion.EventQuestionAsked, centurion.MissionRunning}, {centurion.EventPermissionAsked, centurion.MissionRunning}, {centurion.EventMissionFailed, centurion.MissionFailed}} {
			begin = time.Now()
			var g guard.Group
			g.Go("events", func() error {
				time.Sleep(5 * time.Second)
				h.events <- centurion.Event{Type: centurion.EventTodoUpdated}
				time.Sleep(5 * time.Second)
				h.stop(x.status)
				h.events <- centurion.Event{Type: x.typ}
				return nil
			})
			r, _ := called(t, s, "delegate", map[string]any{"task": "x"})
			if err := g.Wait(); err != nil || time.Since(begin) != 10*time.Second || r.Mission.Status != string(x.status) || r.Files == nil {
				t.Errorf("%s: after %v: %+v, %v", x.typ, time.Since(begin), r, err)
			}
		}
		begin = time.Now()
		if _, said := called(t, s, "mission_result", map[string]any{"wait_seconds": 10}); time.Since(begin) != 0 || !strings.Contains(said, "status: failed") {
			t.Errorf("after %v: %s", time.Since(begin), said)
		}
	})
}

// A call that waits ends with the server, a crash is an error of its call, and no list of a result or a schema is nil.
func TestCallsEnd(t *testing.T) { synctest.Test(t, testCallsEnd) }

func testCallsEnd(t *testing.T) {
	h := newHost()
	served(t, h, func(s *mcp.ClientSession, _ func() []string) {
		tools, err := s.ListTools(t.Context(), nil)
		if err != nil || len(tools.Tools) != 11 {
			t.Fatalf("%d tools, %v", len(tools.Tools), err)
		}
		for _, tool := range tools.Tools {
			if b, err := json.Marshal(tool.InputSchema); err != nil || strings.Contains(string(b), "null") || tool.OutputSchema == nil {
				t.Errorf("%s: %s, %v", tool.Name, b, err)
			}
			if reads := strings.HasPrefix(tool.Name, "list_") || strings.HasPrefix(tool.Name, "mission_"); tool.Annotations.ReadOnlyHint != reads {
				t.Errorf("%s: %+v", tool.Name, tool.Annotations)
			}
		}
		for _, tool := range []string{"list_missions", "list_questions", "mission_todo", "mission_result"} {
			if res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool}); err != nil || res.IsError {
				t.Errorf("%s: %v, %v", tool, res, err)
			} else if b, err := json.Marshal(res.StructuredContent); err != nil || strings.Contains(string(b), "null") {
				t.Errorf("%s: %s, %v", tool, b, err)
			}
		}
		if _, said := called(t, s, "mission_todo", map[string]any{"mission": "msn_none"}); said != "no mission\nnext: look again" {
			t.Error(said)
		}
		h.mu.Lock()
		h.crash = true
		h.mu.Unlock()
		if _, said := called(t, s, "mission_todo", nil); !strings.Contains(said, "crashed: no") {
			t.Error(said)
		}
		h.mu.Lock()
		h.crash = false
		h.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "mission_result", Arguments: map[string]any{"wait_seconds": 3600}}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		var g guard.Group
		g.Go("call", func() error {
			_, _ = s.CallTool(t.Context(), &mcp.CallToolParams{Name: "mission_result", Arguments: map[string]any{"wait_seconds": 3600}}) // ends with the client
			return nil
		})
		synctest.Wait()
		_ = s.Close()
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// What is approved is shown with every character of it, hidden ones too, and as the call that it is.
func TestAskedWhole(t *testing.T) {
	h := newHost()
	h.open = []store.Ask{{ID: "per_1", Type: store.AskPermission, Mission: "msn_1", Permission: "bash", Title: "ls\u202e\nrm -r x", Metadata: map[string]any{"command": "ls\u202e"}},
		{ID: "per_2", Type: store.AskPermission, Mission: "msn_2", Permission: "linear_add", Patterns: []string{"*"}, Metadata: map[string]any{"input": map[string]any{"title": "x"}}},
		{ID: "que_1", Type: store.AskQuestion, Mission: "msn_1", Text: "which?", Options: []string{"a"}}}
	p := h.project()
	p.Own = func(id string) bool { return id == "msn_1" }
	got, err := p.asks(t.Context(), "")
	if err != nil || len(got) != 3 {
		t.Fatal(got, err)
	}
	for i, want := range []Question{
		{ID: "per_1", Type: "permission", Mission: "msn_1", Text: `bash · ls\u202e\nrm -r x`, Details: `{"command":"ls\u202e"}`, Answer: "once or deny"},
		{ID: "per_2", Type: "permission", Mission: "msn_2", Text: "linear_add · *", Details: `{"input":{"title":"x"}}`, Answer: "nothing: it was not started here, so only the user answers it"},
		{ID: "que_1", Type: "question", Mission: "msn_1", Text: "which?", Options: []string{"a"}, Answer: "a text or the number of an option, from 1"}} {
		want.Options = append([]string{}, want.Options...)
		if !reflect.DeepEqual(got[i], want) {
			t.Errorf("%+v, want %+v", got[i], want)
		}
	}
}

// A line that is no message is answered, and ends nothing. A client that has gone is known even if it never reads.
func TestPipe(t *testing.T) { synctest.Test(t, testPipe) }

func testPipe(t *testing.T) {
	ours, theirs := io.Pipe()
	answers, out := io.Pipe()
	gone := make(chan struct{})
	var g guard.Group
	g.Go("serve", func() error {
		return Serve(t.Context(), ours, out, New(t.Context(), "1", newHost().project()), func() { close(gone) })
	})
	send := func(line string) {
		if _, err := io.WriteString(theirs, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	buf := make([]byte, 10_000)
	read := func() string {
		n, err := answers.Read(buf)
		if err != nil {
			t.Error(err)
		}
		return string(buf[:n])
	}
	for line, says := range map[string]string{
		`{"jsonrpc":`:                      `"code":-32700`,
		`[1]`:                              `"code":-32700`,
		`"` + strings.Repeat("x", maxLine): "a message is longer than 16 MB",
	} {
		g.Go("write", func() error { send(line); return nil })
		if got := read(); !strings.Contains(got, says) || !strings.Contains(got, `"id":null`) {
			t.Errorf("%.20s: %s", line, got)
		}
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if got := read(); !strings.Contains(got, `"name":"centurion"`) {
		t.Error(got)
	}
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for range 5 {
		send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	}
	_ = theirs.Close()
	<-gone
	_ = answers.Close() // only now can it end
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}
