package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/guard"
	"centurion/orchestrator/mail"
	"centurion/orchestrator/roots"
	"centurion/server"
	v1 "centurion/server/opencode/v1"
	"centurion/server/rpc"
	"centurion/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host is a project whose facts a test writes.
type host struct {
	server.API // what a test does not use

	mu            sync.Mutex
	messages      map[string]server.Message
	facts         []centurion.Event
	changed       chan struct{}
	asks          []store.Ask
	answers       []string
	status        centurion.MissionStatus
	reason, child string
	fault         error // of a look at the mission, and of a stop
	todo          event.TodoData
	paused        []string
	stops         int
	servers       []server.ToolServer
}

func (h *host) Servers(context.Context, bool) ([]server.ToolServer, error) { return h.servers, nil }

func (h *host) Open(context.Context, roots.Opening) (centurion.Session, error) {
	return centurion.Session{ID: "ses_1", Agent: "assistant"}, nil
}

func (h *host) Session(_ context.Context, id string) (centurion.Session, error) {
	s := centurion.Session{ID: id, Agent: "assistant", Metadata: centurion.SessionMeta{Profile: agents.ProfileAssistant}}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.status != "" {
		s.Metadata.Mission = "msn_1"
	}
	if id == "ses_child" || id == h.child {
		s.ParentID, s.Metadata.Mission = "ses_1", "msn_1"
	}
	return s, nil
}

func (h *host) LastSeq(context.Context) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return int64(len(h.facts)), nil
}

func (h *host) Message(_ context.Context, _, id string, parts ...string) (server.Message, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.messages[id], nil
}

func (h *host) Mission(_ context.Context, id string) (server.Mission, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return server.Mission{ID: id, Status: h.status, Reason: h.reason}, h.fault
}

func (h *host) Asks(context.Context) ([]store.Ask, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]store.Ask(nil), h.asks...), nil
}

func (h *host) Answer(_ context.Context, id, answer string) error {
	h.mu.Lock()
	h.answers, h.asks = append(h.answers, id+": "+answer), nil
	h.mu.Unlock()
	h.tell(centurion.Event{Type: centurion.EventPermissionReplied})
	return nil
}

func (h *host) Stop(context.Context, string, string) error {
	h.mu.Lock()
	h.stops++
	begun, fault := h.status != "", h.fault
	h.mu.Unlock()
	if !begun {
		return &centurion.Error{Kind: centurion.KindNotFound, Msg: "it has no mission"}
	}
	if fault != nil {
		return fault
	}
	h.end(centurion.MissionPaused, "")
	return nil
}

// Prompt is answered by nobody.
func (h *host) Prompt(ctx context.Context, p mail.Post) (mail.Reply, error) {
	h.mu.Lock()
	h.answers, h.asks = append(h.answers, p.Text), []store.Ask{{ID: "que_2", Mission: "msn_1", Type: store.AskQuestion, Text: "And now?"}}
	h.mu.Unlock()
	h.tell(centurion.Event{Type: centurion.EventQuestionAsked})
	<-ctx.Done()
	return mail.Reply{}, context.Cause(ctx)
}

func (h *host) Todo(context.Context, string) (event.TodoData, error) { return h.todo, nil }

func (h *host) Tasks(context.Context, string) ([]server.Task, error) {
	return []server.Task{{Item: "T2", Reason: "an older one"}, {Item: "T2", Reason: "no network"}}, nil
}

func (h *host) Task(_ context.Context, id string) (server.Task, error) {
	return server.Task{ID: id, Name: "T2", Agent: "worker"}, nil
}

// tell commits a fact, or publishes a delta.
func (h *host) tell(e centurion.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.Session == "" && e.Type != centurion.EventDelta {
		e.Session = "ses_1"
	}
	if e.Mission == "" {
		e.Mission = "msn_1"
	}
	e.Seq = int64(len(h.facts) + 1)
	h.facts = append(h.facts, e)
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *host) end(status centurion.MissionStatus, reason string) {
	h.mu.Lock()
	h.status, h.reason = status, reason
	h.mu.Unlock()
	h.tell(centurion.Event{Type: centurion.EventType("mission." + string(status))})
}

// message tells a message of the session.
func (h *host) message(session, task, finish string, parts ...centurion.Part) {
	h.mu.Lock()
	id := fmt.Sprintf("msg_%d", len(h.facts))
	h.messages[id] = server.Message{Info: centurion.Message{ID: id, SessionID: session, Role: centurion.RoleAssistant, Finish: finish}, Parts: parts}
	h.mu.Unlock()
	h.tell(centurion.Event{Type: centurion.EventMessageUpdated, Session: session, Task: task, Data: event.Data(map[string]string{"message": id})})
}

func (h *host) delta(session string, d event.DeltaData) {
	h.tell(centurion.Event{Type: centurion.EventDelta, Session: session, Data: event.Data(d)})
}

func (h *host) follow(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		for {
			h.mu.Lock()
			facts, changed := h.facts[q.After:], h.changed
			h.mu.Unlock()
			for _, e := range facts {
				if q.After = e.Seq; !yield(e, nil) {
					return
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

// editor is a scripted client.
type editor struct {
	*testing.T
	*host
	in  io.WriteCloser
	out bytes.Buffer
	mu  sync.Mutex
}

// played serves an editor in a bubble until it leaves. Begun is called with the first message of a session.
func played(t *testing.T, begun func(h *host, b v1.Begin), play func(e *editor)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &host{messages: map[string]server.Message{}, changed: make(chan struct{})}
		p := &v1.Project{Directory: "/p", API: func() server.API { return h }, Catalog: func(context.Context) (v1.Catalog, error) {
			return v1.Catalog{Agents: []v1.Agent{{Name: "assistant", Profile: "assistant"}, {Name: "commander", Profile: "mission"}, {Name: "worker"}},
				Commands: []v1.Command{{Name: "task", Description: "Work"}}}, nil
		}, Expand: func(_ context.Context, command, arguments string) (v1.Begin, error) {
			return v1.Begin{Goal: arguments, Profile: agents.ProfileMission}, nil
		}, Begin: func(_ context.Context, b v1.Begin) (server.Mission, error) {
			h.mu.Lock()
			h.status = centurion.MissionRunning
			h.mu.Unlock()
			h.tell(centurion.Event{Type: centurion.EventMissionStarted})
			begun(h, b)
			return server.Mission{ID: "msn_1"}, nil
		}}
		in, toUs := io.Pipe()
		fromUs, out := io.Pipe()
		e := &editor{T: t, host: h, in: toUs}
		var g guard.Group
		g.Go("serve", func() error {
			return Serve(t.Context(), in, out, Options{Version: "1", Say: h.hears(t), Close: func() error { return nil },
				Open: func(context.Context, string) (*Project, error) {
					return &Project{p, &rpc.Bridge{API: p.API, Follow: h.follow}, func(m string) { h.paused = append(h.paused, m) }}, nil
				}})
		})
		g.Go("read", func() error {
			buf := make([]byte, 1<<16)
			for {
				n, err := fromUs.Read(buf)
				e.mu.Lock()
				e.out.Write(buf[:n])
				e.mu.Unlock()
				if err != nil {
					return nil
				}
			}
		})
		play(e)
		_ = toUs.Close()
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// says sends a line, and returns the lines that come back until nothing happens any more, without the session's id.
func (e *editor) says(line string) string {
	e.Helper()
	if line != "" {
		if _, err := io.WriteString(e.in, line+"\n"); err != nil {
			e.Fatal(err)
		}
	}
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.out.Reset()
	var all strings.Builder
	for line := range strings.Lines(e.out.String()) {
		if update, ok := strings.CutPrefix(line, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"ses_1","update":`); ok {
			line = strings.TrimSuffix(update, "}}\n") + "\n"
		}
		all.WriteString(strings.Replace(line, `"jsonrpc":"2.0",`, "", 1))
	}
	return all.String()
}

const (
	newSession = `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/p","mcpServers":[]}}`
	aPrompt    = `{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"ses_1","prompt":[{"type":"text","text":"hello"}]}}`
	aCancel    = `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"ses_1"}}`
)

func want(t *testing.T, what, got string, lines ...string) {
	t.Helper()
	if diff := cmp.Diff(strings.Join(lines, "\n"), strings.TrimSpace(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func textPart(id, text string) centurion.Part {
	return centurion.Part{ID: id, Type: centurion.PartText, Text: text}
}

// A text is told in pieces; after a loss the rest comes when it is whole, and nothing twice. The answer comes last.
func TestTextIsWhole(t *testing.T) {
	played(t, func(*host, v1.Begin) {}, func(e *editor) {
		e.says(newSession)
		e.says(aPrompt)
		e.delta("ses_1", event.DeltaData{Part: "prt_1", Field: "text", Delta: "One, "})
		e.delta("", event.DeltaData{Gap: true})
		e.delta("ses_1", event.DeltaData{Part: "prt_1", Field: "text", Delta: "three, "})
		e.message("ses_1", "", centurion.FinishStop, textPart("prt_1", "One, two, three, four."))
		e.delta("ses_1", event.DeltaData{Part: "prt_2", Field: "text", Delta: "Again."})
		e.message("ses_1", "", centurion.FinishLength, textPart("prt_2", "Again."))
		e.delta("ses_child", event.DeltaData{Part: "prt_3", Field: "text", Delta: "not this"})
		e.message("ses_child", "tsk_1", centurion.FinishStop, textPart("prt_3", "not this"))
		e.end(centurion.MissionCompleted, "")
		want(t, "told", e.says(""), `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"One, "}}`,
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"two, three, four."}}`,
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\n\nAgain."}}`, `{"id":2,"result":{"stopReason":"max_tokens"}}`)
	})
}

// Every end of a turn has its reason, and an error is no end.
func TestStopReasons(t *testing.T) {
	for name, tt := range map[string]struct {
		finish string
		status centurion.MissionStatus
		want   string
	}{
		"ended":   {centurion.FinishStop, centurion.MissionCompleted, `{"id":2,"result":{"stopReason":"end_turn"}}`},
		"refused": {centurion.FinishFilter, centurion.MissionCompleted, `{"id":2,"result":{"stopReason":"refusal"}}`},
		"blocked": {centurion.FinishStop, centurion.MissionBlocked, `*The mission is blocked: why* A new message continues it."}}` + "\n" + `{"id":2,"result":{"stopReason":"end_turn"}}`},
		"failed":  {centurion.FinishStop, centurion.MissionFailed, `"error":{"code":-32603,"message":"the mission failed: why; see: centurion show msn_1"`},
	} {
		t.Run(name, func(t *testing.T) {
			played(t, func(h *host, _ v1.Begin) {
				h.message("ses_1", "", tt.finish, textPart("prt_1", "x"))
				h.end(tt.status, "why")
			}, func(e *editor) {
				e.says(newSession)
				if got := e.says(aPrompt); !strings.Contains(got, tt.want) {
					t.Errorf("got %s", got)
				}
			})
		})
	}
}

// What an editor attaches reaches the model as a part, and a link as the name of the file. A command at the beginning is carried out.
func TestPrompt(t *testing.T) {
	const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	var begun []v1.Begin
	played(t, func(h *host, b v1.Begin) {
		begun = append(begun, b)
		h.end(centurion.MissionCompleted, "")
	}, func(e *editor) {
		e.says(newSession)
		got := e.says(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"ses_1","prompt":[{"type":"text","text":"/task do it"},{"type":"image","mimeType":"image/png","data":"` + png + `"},` +
			`{"type":"resource_link","name":"x","uri":"file:///p/src/a%20b.go#L3:9"},{"type":"resource_link","name":"y","uri":"file:///etc/hosts"},{"type":"resource","resource":{"uri":"file:///p/n.md","text":"a note"}}]}}`)
		want(t, "answer", got, `{"id":2,"result":{"stopReason":"end_turn"}}`)
	})
	if len(begun) != 1 || begun[0].Profile != "mission" || begun[0].Session != "ses_1" || begun[0].Goal != "do it" {
		t.Fatalf("begun: %+v", begun)
	}
	var parts []string
	for _, p := range begun[0].Parts {
		if p.File != nil {
			p.Text = p.File.Mime + " " + p.File.Name
		}
		parts = append(parts, p.Text)
	}
	if diff := cmp.Diff([]string{"do it", "image/png image", "@src/a b.go#L3:9", "@/etc/hosts", "File n.md:\n\na note", "text/plain n.md"}, parts); diff != "" {
		t.Error(diff)
	}
}

// A cancel right behind its prompt ends that one, and one behind its answer ends nothing.
func TestCancelAtOnce(t *testing.T) {
	played(t, func(h *host, _ v1.Begin) {}, func(e *editor) {
		e.says(newSession)
		e.says(aCancel)
		want(t, "cancelled", e.says(aPrompt+"\n"+aCancel), `{"id":2,"result":{"stopReason":"cancelled"}}`)
		stops := e.stops
		if e.says(aCancel); stops == 0 || e.stops != stops {
			t.Errorf("it was stopped %d times, and then %d times", stops, e.stops)
		}
	})
}

// What an editor gets wrong is said, and the session goes on.
func TestBadInput(t *testing.T) {
	played(t, func(h *host, _ v1.Begin) {}, func(e *editor) {
		for line, want := range map[string]string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":9}}`:                                     `"protocolVersion":1}`,
			`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"ses_1","prompt":[]}}`:                     `this connection has no session ses_1; begin one with session/new`,
			`{"jsonrpc":"2.0","id":3,"method":"session/new","params":{"cwd":"p","mcpServers":[]}}`:                              `cwd is no absolute path: p`,
			`{"jsonrpc":"2.0","id":4,"method":"session/load","params":{"sessionId":"../x","cwd":"/p"}}`:                         `"code":-32602`,
			`{"jsonrpc":"2.0","id":5,"method":"session/load","params":{"sessionId":"ses_0123456789abcdef01234567","cwd":"/p"}}`: `"code":-32602`,
			`{"jsonrpc":"2.0","id":6,"method":"session/set_mode","params":{"sessionId":"ses_x","modeId":"assistant"}}`:          `no session ses_x`,
			`{"jsonrpc":"2.0","id":7,"method":"terminal/create","params":{}}`:                                                   `"code":-32601`,
			`{"jsonrpc":"2.0","id":8,`: `"code":-32700`,
		} {
			if got := e.says(line); !strings.Contains(got, want) {
				t.Errorf("%s: %s", line, got)
			}
		}
		e.says(newSession)
		prompt := func(id int, content string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"ses_1","prompt":%s}}`, id, content)
		}
		for content, want := range map[string]string{`3`: "invalid parameters", `[]`: "the prompt is empty", `[{"type":"audio","data":"eA=="}]`: `there is no type \"audio\" of content`,
			`[{"type":"image","data":"?"}]`: "is no base64", `[{"type":"text","text":" "}]`: "the prompt is empty"} {
			if got := e.says(prompt(9, content)); !strings.Contains(got, want) || !strings.Contains(got, "-32602") {
				t.Errorf("%s: %s", content, got)
			}
		}
		e.says(aPrompt)
		if got := e.says(prompt(10, `[{"type":"text","text":"more"}]`)); !strings.Contains(got, "is still working on a prompt; wait for its answer, or end it with session/cancel") {
			t.Errorf("a second prompt: %s", got)
		}
		want(t, "modes", e.says(`{"jsonrpc":"2.0","id":11,"method":"session/set_mode","params":{"sessionId":"ses_1","modeId":"worker"}}`),
			`{"id":11,"error":{"code":-32602,"message":"worker works for other agents, and is no mode","data":{"hint":"","kind":"usage"}}}`)
	})
}

// A turn that someone else aborts has ended for the editor, too.
func TestAbortedElsewhere(t *testing.T) {
	played(t, func(*host, v1.Begin) {}, func(e *editor) {
		e.says(newSession)
		e.says(aPrompt)
		e.tell(centurion.Event{Type: centurion.EventSessionAborted})
		want(t, "aborted", e.says(""), `{"id":2,"result":{"stopReason":"cancelled"}}`)
	})
}

// The plan is told whole, with why something is blocked.
func TestPlan(t *testing.T) {
	played(t, func(*host, v1.Begin) {}, func(e *editor) {
		e.says(newSession)
		e.says(aPrompt)
		e.todo = event.TodoData{TodoCounts: event.TodoCounts{Blocked: 1}, Items: []event.PlanItem{{ID: "T1", Title: "a", Status: "running"}, {ID: "T2", Title: "b", Status: "blocked"},
			{ID: "T3", Title: "c", Status: "done"}, {ID: "T4", Title: "d", Status: "cancelled"}, {ID: "T5", Title: "e", Status: "open"}}}
		e.tell(centurion.Event{Type: centurion.EventTodoUpdated})
		want(t, "plan", e.says(""), `{"sessionUpdate":"plan","entries":[{"content":"T1 a","priority":"medium","status":"in_progress"},{"content":"T2 b (blocked: no network)","priority":"medium","status":"pending"},`+
			`{"content":"T3 c","priority":"medium","status":"completed"},{"content":"T4 d (cancelled)","priority":"medium","status":"completed"},{"content":"T5 e","priority":"medium","status":"pending"}]}`)
	})
}

// The call of a task says whose it is, and its changes are diffs.
func TestCallsOfTasks(t *testing.T) {
	part := centurion.Part{ID: "prt_1", Type: centurion.PartTool, Tool: "edit", CallID: "c", State: &centurion.ToolState{Status: centurion.ToolRunning,
		Input: json.RawMessage(`{"filePath":"a.go","oldString":"x","newString":"y"}`)}}
	played(t, func(*host, v1.Begin) {}, func(e *editor) {
		e.says(newSession)
		e.says(aPrompt)
		e.message("ses_child", "tsk_1", "", part)
		done := *part.State
		done.Status, done.Output, done.Metadata = centurion.ToolCompleted, "edited", map[string]any{"diff": "--- a/a.go\n+++ b/a.go\n@@ -1,2 +1,2 @@\n-x\n+y\n z\n@@ -9 +9,2 @@\n w\n+-v\n"}
		part.State = &done
		e.message("ses_child", "tsk_1", "", part)
		e.message("ses_child", "tsk_1", "", part) // the same again
		want(t, "calls", e.says(""),
			`{"sessionUpdate":"tool_call","content":[{"type":"diff","path":"/p/a.go","oldText":"x","newText":"y"}],"toolCallId":"prt_1","title":"T2 worker: edit a.go","kind":"edit","status":"in_progress","rawInput":{"filePath":"a.go","newString":"y","oldString":"x"}}`,
			`{"sessionUpdate":"tool_call_update","content":[{"type":"diff","path":"/p/a.go","oldText":"x\nz\n","newText":"y\nz\n"},{"type":"diff","path":"/p/a.go","oldText":"w\n","newText":"w\n-v\n"}],"toolCallId":"prt_1","title":"T2 worker: edit a.go","kind":"edit","status":"completed","rawInput":{"filePath":"a.go","newString":"y","oldString":"x"},"rawOutput":{"output":"edited"}}`)
	})
}

// Every kind of ask shows the whole of what is decided, and each answer reaches the host as the host knows it.
func TestAsks(t *testing.T) {
	permission := store.Ask{ID: "per_1", Type: store.AskPermission, Permission: "bash", Patterns: []string{"make all"}, Always: []string{"make *"}, Text: "needs approval", Metadata: map[string]any{"command": "make \\\nall"}}
	plan := store.Ask{ID: "per_2", Type: store.AskPlan, Title: "a plan", Text: "- [ ] T1 one\n- [ ] T2 two"}
	question := store.Ask{ID: "que_3", Type: store.AskQuestion, Text: "Which?", Options: []string{"red"}, Line: "commander 0/ › worker 0/1"}
	selected := func(id string) string { return `{"outcome":{"outcome":"selected","optionId":"` + id + `"}}` }
	for name, tt := range map[string]struct {
		ask               store.Ask
		shows, reply, get string
	}{
		"once":      {permission, "```\\nneeds approval\\nmake \\\\\\nall\\nmake all\\n```", selected("once"), "per_1: once"},
		"always":    {permission, `"name":"Always allow make *"`, selected("always"), "per_1: always"},
		"reject":    {permission, `"kind":"reject_once"`, selected("reject"), "per_1: reject"},
		"escaped":   {permission, "", `{"outcome":{"outcome":"cancelled"}}`, "per_1: reject"},
		"plan":      {plan, `- [ ] T1 one\n- [ ] T2 two\na plan`, selected("run"), "per_2: run"},
		"not now":   {plan, `"name":"Not now"`, selected("quit"), "per_2: quit"},
		"put aside": {plan, "", `{"outcome":{"outcome":"cancelled"}}`, ""},
		"question":  {question, `Which?\n(commander 0/ › worker 0/1)`, selected("red"), "que_3: red"},
		"silence":   {question, `"name":"Do not answer"`, selected(event.NoAnswer), "que_3: " + event.NoAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			played(t, func(*host, v1.Begin) {}, func(e *editor) {
				e.says(newSession)
				e.says(aPrompt)
				tt.ask.Mission = "msn_1"
				e.host.mu.Lock()
				e.asks = []store.Ask{tt.ask}
				e.host.mu.Unlock()
				e.tell(centurion.Event{Type: centurion.EventPermissionAsked, Session: "ses_child"})
				if got := e.says(""); !strings.Contains(got, tt.shows) || !strings.Contains(got, `"method":"session/request_permission"`) {
					t.Errorf("shown: %s", got)
				}
				e.says(`{"jsonrpc":"2.0","id":1,"result":` + tt.reply + `}`)
				if got := strings.Join(e.answers, "|"); got != tt.get {
					t.Errorf("answered %q", got)
				}
			})
		})
	}
}

// A question can be answered in words: the prompt ends, and the next one is the answer.
func TestAnswerInChat(t *testing.T) {
	played(t, func(*host, v1.Begin) {}, func(e *editor) {
		e.says(newSession)
		e.says(aPrompt)
		e.host.mu.Lock()
		e.asks = []store.Ask{{ID: "que_1", Mission: "msn_1", Type: store.AskQuestion, Text: "Which?"}}
		e.host.mu.Unlock()
		e.tell(centurion.Event{Type: centurion.EventQuestionAsked})
		e.says("")
		want(t, "ends", e.says(`{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"selected","optionId":"chat"}}}`),
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\n\nWhich?"}}`, `{"id":2,"result":{"stopReason":"end_turn"}}`)
		e.says(strings.Replace(aPrompt, `"id":2`, `"id":3`, 1))
		if diff := cmp.Diff([]string{"que_1: hello"}, e.answers); diff != "" {
			t.Error(diff)
		}
		e.end(centurion.MissionCompleted, "")
		want(t, "goes on", e.says(""), `{"id":3,"result":{"stopReason":"end_turn"}}`)
		e.says(strings.Replace(aPrompt, `"id":2`, `"id":4`, 1))
		want(t, "ends again", e.says(`{"jsonrpc":"2.0","id":2,"result":{"outcome":{"outcome":"selected","optionId":"chat"}}}`),
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\n\nAnd now?"}}`, `{"id":4,"result":{"stopReason":"end_turn"}}`)
	})
}

// An editor that reads nothing makes nobody wait but those who tell it of sessions, and its end is seen.
func TestReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, toUs := io.Pipe()
		fromUs, out := io.Pipe()
		q := newQueue(in, out)
		var g guard.Group
		g.Go("write", q.write)
		msg := []byte(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`)
		for range 6 {
			if err := q.Send(msg); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		full := make(chan error, 1)
		g.Go("tell", func() error { full <- q.room(ctx); return nil })
		synctest.Wait()
		select {
		case err := <-full:
			t.Fatalf("there is room: %v", err)
		default:
		}
		gone := errors.New("gone")
		cancel(gone)
		if err := <-full; !errors.Is(err, gone) {
			t.Error(err)
		}
		_ = toUs.Close()
		if _, err := q.Recv(); err != io.EOF {
			t.Errorf("its end: %v", err)
		}
		_ = fromUs.Close()
		_ = g.Wait() // writing fails
		if err := q.Send(msg); err == nil {
			t.Error("one that has gone is written to")
		}
	})
}

// The prompts of MCP servers are commands, with what they want.
func TestServersCommands(t *testing.T) {
	played(t, func(*host, v1.Begin) {}, func(e *editor) {
		e.servers = []server.ToolServer{{Name: "linear", Prompts: []server.ServerPrompt{{Name: "linear:review", Description: "Reviews", Arguments: []string{"what", "how"}}}}}
		got := e.says(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/p","mcpServers":[]}}`)
		if !strings.Contains(got, `{"description":"Reviews","input":{"hint":"what how"},"name":"linear:review"}`) || !strings.Contains(got, `"name":"task"`) {
			t.Error(got)
		}
	})
}
