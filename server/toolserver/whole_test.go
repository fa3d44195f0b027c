package toolserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"centurion"
	"centurion/event"
	"centurion/server"
	"centurion/store"
)

// A user is asked to allow each tool by what it can do: each says so, and what it is for.
func TestToolsAreDescribed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served(t, newHost(), func(s *mcp.ClientSession, _ func() []string) {
			info := s.InitializeResult()
			can, err := json.Marshal(info.Capabilities)
			if err != nil {
				t.Fatal(err)
			}
			if i := info.ServerInfo; i.Name != "centurion" || i.Title != "Centurion" || i.Version != "1" || info.Instructions != instructions || string(can) != `{"tools":{}}` {
				t.Errorf("%+v, %s", i, can)
			}
			list, err := s.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			is := func(hint *bool) string { return map[bool]string{true: "?", false: "no"}[hint == nil || *hint] }
			var got []string
			for _, tool := range list.Tools {
				a := tool.Annotations
				got = append(got, fmt.Sprintf("%s reads %t destroys %s again %t world %s", tool.Name, a.ReadOnlyHint, is(a.DestructiveHint), a.IdempotentHint, is(a.OpenWorldHint)))
				if !strings.HasSuffix(tool.Description, ".") {
					t.Errorf("%s is described as %q", tool.Name, tool.Description)
				}
			}
			const works, reads = " reads false destroys ? again false world ?", " reads true destroys ? again false world no"
			want := []string{"answer" + works, "cancel reads false destroys ? again true world no", "delegate" + works, "list_missions" + reads, "list_questions" + reads, "mission_result" + reads,
				"mission_todo" + reads, "pause reads false destroys no again false world no", "resume" + works, "run_mission" + works, "send" + works}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	})
}

// A permission is asked with everything that would be allowed, and who asks; a plan that is not there has no items, one that cannot be read is an error.
func TestQuestionsAndPlans(t *testing.T) {
	a, ctx := newActing(centurion.MissionRunning), t.Context()
	a.open = []store.Ask{{ID: "per_1", Mission: "msn_1", Type: store.AskPermission, Agent: "worker", Address: "0/1", Permission: "bash", Patterns: []string{"ls *", "cat *"}, Text: "to look", Metadata: map[string]any{"command": "ls \u202e"}},
		{ID: "per_2", Mission: "msn_1", Type: store.AskPlan, Title: "run it", Permission: "plan", Patterns: []string{"p"}},
		{ID: "que_1", Mission: "msn_1", Type: store.AskQuestion, Text: "?", Options: []string{"a"}, Address: "0/2"}}
	got := outcome(a.project().listQuestions(ctx, nil, struct{}{}))
	want := `{"questions":[{"id":"per_1","type":"permission","mission":"msn_1","agent":"worker 0/1","text":"bash · ls * cat *","why":"to look","details":"{\"command\":\"ls \\u202e\"}","options":[],"answer_with":"once or deny"},` +
		`{"id":"per_2","type":"plan","mission":"msn_1","text":"plan · run it","options":[],"answer_with":"once or deny"},` +
		`{"id":"que_1","type":"question","mission":"msn_1","agent":"0/2","text":"?","options":["a"],"answer_with":"a text or the number of an option, from 1"}]}`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	p := a.project()
	for status, open := range map[string]int{"open": 1, "running": 1, "done": 0, "cancelled": 0} {
		p.Plan = func(context.Context, string) ([]event.PlanItem, error) {
			return []event.PlanItem{{ID: "T1", Status: status}}, nil
		}
		if r, err := p.result(ctx, "msn_1"); err != nil || len(r.Open) != open {
			t.Errorf("an item that is %s: %v, %v", status, r.Open, err)
		}
	}
	for kind, want := range map[centurion.Kind]string{centurion.KindNotFound: `{"mission":"msn_1","items":[]}`, centurion.KindDisk: "broken | "} {
		p.Plan = func(context.Context, string) ([]event.PlanItem, error) {
			return nil, &centurion.Error{Kind: kind, Msg: "broken"}
		}
		if got := outcome(p.missionTodo(ctx, nil, named{})); got != want {
			t.Errorf("%s: %s", kind, got)
		}
		if _, err := p.result(ctx, "msn_1"); err != nil {
			t.Errorf("a result with a plan that cannot be read: %v", err)
		}
	}
	a.mission.HasPlan = false
	if got := outcome(p.missionTodo(ctx, nil, named{})); got != `{"mission":"msn_1","items":[]}` {
		t.Errorf("without a plan: %s", got)
	}
}

// What waits for events waits for those of its mission after what is known, until the one that counts or the time is over; a reader that fails is an
// error.
func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newActing(centurion.MissionPaused)
		p := a.project()
		var asked []server.EventQuery
		var after time.Duration
		p.Follow = func(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error] {
			asked = append(asked, q)
			return func(yield func(centurion.Event, error) bool) {
				for _, typ := range []centurion.EventType{centurion.EventTodoUpdated, centurion.EventMissionResumed, centurion.EventPlanAsked} {
					select {
					case <-time.After(after):
					case <-ctx.Done():
						return
					}
					if !yield(centurion.Event{Type: typ}, nil) {
						return
					}
				}
			}
		}
		req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{}}
		a.mission.Status, after = centurion.MissionRunning, time.Second
		begin := time.Now()
		if err := p.await(t.Context(), req, "msn_1", time.Minute); err != nil || time.Since(begin) != 3*time.Second {
			t.Errorf("a plan was asked for, and it waits %v: %v", time.Since(begin), err)
		}
		a.open = []store.Ask{{ID: "que_1", Mission: "msn_1"}}
		begin = time.Now()
		if err := p.await(t.Context(), req, "msn_1", time.Minute); err != nil || time.Since(begin) != 0 {
			t.Errorf("an agent asks already, and it waits %v: %v", time.Since(begin), err)
		}
		a.open = nil
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(centurion.ErrShutdown)
		if err := p.until(ctx, "msn_1", 0, time.Minute, func(centurion.EventType) bool { return false }); !errors.Is(err, centurion.ErrShutdown) {
			t.Errorf("a call that has ended: %v", err)
		}
		lost := errors.New("lost")
		p.Follow = func(context.Context, server.EventQuery) iter.Seq2[centurion.Event, error] {
			return func(yield func(centurion.Event, error) bool) { yield(centurion.Event{}, lost) }
		}
		if err := p.await(t.Context(), req, "msn_1", time.Minute); !errors.Is(err, lost) {
			t.Errorf("events that break off: %v", err)
		}
	})
}

// failing is an input that breaks.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// output is where answers go.
type output struct{ bytes.Buffer }

func (*output) Close() error { return nil }

// The end of the input is told, and is no error, as is the end of the program; a connection that breaks is one. A line that is no message is answered.
func TestServeEnds(t *testing.T) {
	lost := errors.New("connection lost")
	over, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		ctx  context.Context
		in   io.Reader
		want error
		out  string
	}{
		"the end":     {t.Context(), strings.NewReader(""), nil, ""},
		"nonsense":    {t.Context(), strings.NewReader("{" + strings.Repeat("x", 300) + "\n"), nil, `{"error":{"code":-32700,"message":"not a JSON-RPC message: `},
		"broken":      {t.Context(), failing{lost}, lost, ""},
		"at shutdown": {over, failing{lost}, nil, ""},
	} {
		gone, out := 0, &output{}
		err := Serve(c.ctx, c.in, out, New(t.Context(), "1", newHost().project()), func() { gone++ })
		if c.want == nil && err != nil || c.want != nil && (!errors.Is(err, c.want) || centurion.KindOf(err) != centurion.KindNetwork || !strings.HasPrefix(err.Error(), "serve MCP client: ")) || gone != 1 {
			t.Errorf("%s: %v, %d times gone", name, err, gone)
		}
		if !strings.HasPrefix(out.String(), c.out) || c.out == "" && out.Len() > 0 || out.Len() > 320 {
			t.Errorf("%s: answered %s", name, out.String())
		}
	}
}

// ending is a host whose mission ends right after it was looked at.
type ending struct {
	*acting
	seq int64
}

func (e *ending) Mission(ctx context.Context, id string) (server.Mission, error) {
	e.seq = 8
	return e.acting.Mission(ctx, id)
}

func (e *ending) LastSeq(context.Context) (int64, error) { return e.seq, nil }

// A mission that ends between two looks at it is not waited for: nothing more would come of it.
func TestEndsBetweenLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &ending{newActing(centurion.MissionRunning), 7}
		p := e.project()
		p.Call = func(_ context.Context, f func(server.API) error) error { return f(e) }
		p.Follow = func(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error] {
			return func(yield func(centurion.Event, error) bool) {
				if q.After < 8 && !yield(centurion.Event{Seq: 8, Type: centurion.EventMissionFailed}, nil) {
					return
				}
				<-ctx.Done()
			}
		}
		begin := time.Now()
		if err := p.await(t.Context(), &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{}}, "msn_1", time.Hour); err != nil || time.Since(begin) != 0 {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
	})
}

// A call that waits ends when its server does, although the client is still there, and says why.
func TestWaitEndsWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancelCause(t.Context())
		ours, theirs := mcp.NewInMemoryTransports()
		served, err := New(ctx, "1", newHost().project()).Connect(t.Context(), ours, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), theirs, nil)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		time.AfterFunc(time.Minute, func() { end(centurion.ErrShutdown) })
		res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "mission_result", Arguments: map[string]any{"wait_seconds": 3600}})
		if err != nil || !res.IsError || time.Since(begin) != time.Minute || res.Content[0].(*mcp.TextContent).Text != centurion.ErrShutdown.Error() {
			t.Errorf("after %v: %+v, %v", time.Since(begin), res, err)
		}
		if err := errors.Join(s.Close(), served.Wait()); err != nil {
			t.Error(err)
		}
	})
}
