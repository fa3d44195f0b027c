package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"centurion/guard"
	"centurion/provider/scripted"
	"centurion/server/toolserver"
)

// toolsTest is `centurion mcp` in this process, with the client of the SDK.
type toolsTest struct {
	*testing.T
	client *mcp.ClientSession
	env    []string
	in     io.Closer
	said   *strings.Builder // on standard error, after it has ended
	ended  func()           // waits for its end

	mu       sync.Mutex
	progress []string
}

// startTools serves a project in dir until the test ends.
func startTools(t *testing.T, home, dir string, model *scripted.Model, flags ...string) *toolsTest {
	t.Helper()
	address, err := model.Serve()
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := io.Pipe()
	answers, out := io.Pipe()
	s := &toolsTest{T: t, in: theirs, said: &strings.Builder{},
		env: []string{"HOME=" + home, "CENTURION_HOME=" + filepath.Join(home, "state"), "OPENAI_API_KEY=x", "OPENAI_BASE_URL=" + address}}
	c := &cli{in: ours, out: out, err: s.said, env: s.env}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var g guard.Group
	g.Go("mcp", func() error {
		defer out.Close()
		defer ours.Close()
		if code := c.run(ctx, append([]string{"mcp", "--model", "openai/gpt-5", "--sandbox", "off", "--dir", dir}, flags...)); code != 0 {
			t.Errorf("mcp exits with %d", code)
		}
		return nil
	})
	s.ended = sync.OnceFunc(func() {
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		_ = theirs.Close() // it is a pipe
		s.ended()
		cancel()
		_ = model.Close()
	})
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.progress = append(s.progress, r.Params.Message)
		}})
	if s.client, err = client.Connect(t.Context(), &mcp.IOTransport{Reader: answers, Writer: theirs}, nil); err != nil {
		t.Fatalf("%v: %s", err, s.said)
	}
	return s
}

// call calls a tool, and returns its data and its text, which begins with "error" if it is one.
func call[T any](s *toolsTest, tool string, args map[string]any) (v T, said string) {
	s.Helper()
	p := &mcp.CallToolParams{Name: tool, Arguments: args}
	p.SetProgressToken(tool)
	res, err := s.client.CallTool(s.Context(), p)
	if err != nil {
		s.Fatalf("%s: %v", tool, err)
	}
	said = res.Content[0].(*mcp.TextContent).Text
	if res.IsError {
		return v, "error " + said
	}
	b, err := json.Marshal(res.StructuredContent)
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	if err != nil || strings.Contains(string(b), "null") {
		s.Errorf("%s returns %s: %v", tool, b, err)
	}
	return v, said
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// removes is a model whose agent runs a command, and says "done" after it.
func removes(r scripted.Request) scripted.Answer {
	if r.Turn > 1 {
		return scripted.Answer{Say: "done"}
	}
	return scripted.Answer{Calls: []scripted.Call{{Name: "bash", Arguments: `{"command": "rm keep.txt", "description": "remove it"}`}}}
}

// A client gives a task to an agent, is shown all of what the agent wants to run, and decides: once, never for always.
func TestToolsDelegate(t *testing.T) {
	dir := t.TempDir()
	keep := filepath.Join(dir, "keep.txt")
	s := startTools(t, t.TempDir(), dir, scripted.Func(removes))
	for _, tt := range []struct {
		answer map[string]any
		kept   bool
	}{{map[string]any{"answer": "deny", "reason": "I need it"}, true}, {map[string]any{"answer": "once"}, false}} {
		write(t, keep, "x")
		got, _ := call[toolserver.Result](s, "delegate", map[string]any{"task": "remove it", "wait_seconds": 60})
		if len(got.Questions) != 1 || got.Questions[0].Text != "bash · rm keep.txt" || !strings.Contains(got.Questions[0].Details, `"command":"rm keep.txt"`) || got.Mission.Status != "running" {
			t.Fatalf("%+v", got)
		}
		ask := got.Questions[0].ID
		for _, no := range []string{"always", "yes", ""} {
			if _, said := call[toolserver.Done](s, "answer", map[string]any{"id": ask, "answer": no}); !strings.Contains(said, "neither once nor deny") {
				t.Errorf("%q: %s", no, said)
			}
		}
		tt.answer["id"] = ask
		if _, said := call[toolserver.Done](s, "answer", tt.answer); !strings.Contains(said, "answered "+ask) {
			t.Error(said)
		}
		got, _ = call[toolserver.Result](s, "mission_result", map[string]any{"wait_seconds": 60})
		if _, err := os.Stat(keep); got.Summary != "done" || got.Mission.Status != "completed" || (err == nil) != tt.kept {
			t.Errorf("%v: %+v, %v", tt.answer, got, err)
		}
	}
	var out, errs strings.Builder
	logs := &cli{in: strings.NewReader(""), out: &out, err: &errs, env: s.env}
	if code := logs.run(t.Context(), []string{"logs", "--format", "json", "--dir", dir}); code != 0 || !strings.Contains(out.String(), `"by":"program"`) ||
		!strings.Contains(out.String(), `"command":"the client of centurion mcp"`) {
		t.Errorf("it is not recorded who has answered: %d %s\n%s", code, errs.String(), out.String())
	}
	if done, said := call[toolserver.Done](s, "send", map[string]any{"text": "what did you do?", "wait_seconds": 60}); done.Said != "done" {
		t.Error(said)
	}
	if list, _ := call[toolserver.Missions](s, "list_missions", nil); len(list.Missions) != 2 || list.Missions[1].Verdict != "completed" || list.Missions[1].Tokens == 0 {
		t.Errorf("%+v", list)
	}
	if s.mu.Lock(); len(s.progress) == 0 || !strings.Contains(s.progress[0], "tokens") {
		t.Errorf("progress %q", s.progress)
	}
	s.mu.Unlock()
}

// The plan of a mission is shown as it is now.
func TestToolsPlan(t *testing.T) {
	model := scripted.Func(func(r scripted.Request) scripted.Answer {
		switch r.Turn {
		case 1:
			return scripted.Answer{Calls: []scripted.Call{{Name: "update_todo", Arguments: `{"content": "# Plan\n- [ ] T1 Greet @worker\n  - verify: true\n- [ ] T2 Look @reviewer\n  - after: T1\n", "level": 2}`}}}
		case 2:
			return scripted.Answer{Calls: []scripted.Call{{Name: "update_todo", Arguments: `{"items": [{"id": "T2", "status": "cancelled"}]}`}, {Name: "bash", Arguments: `{"command": "rm keep.txt", "description": "x"}`}}}
		}
		return scripted.Answer{Say: "I wait."}
	})
	s := startTools(t, t.TempDir(), t.TempDir(), model)
	got, said := call[toolserver.Result](s, "run_mission", map[string]any{"goal": "greet", "wait_seconds": 60})
	if len(got.Questions) != 1 || len(got.Open) != 1 || got.Open[0].ID != "T1" || got.Mission.Items != 1 {
		t.Fatal(said)
	}
	if todo, said := call[toolserver.Todo](s, "mission_todo", nil); len(todo.Items) != 2 || todo.Items[0].Verify[0] != "true" || todo.Items[1].Status != "cancelled" {
		t.Error(said)
	}
	if _, said := call[toolserver.Done](s, "pause", nil); !strings.Contains(said, "paused "+got.Mission.ID) {
		t.Error(said)
	}
	if _, said := call[toolserver.Done](s, "send", map[string]any{"text": "loudly, then"}); !strings.Contains(said, "delivered to commander; it is read when the mission is resumed") {
		t.Error(said)
	}
}

// A question is answered with the number of an option.
func TestToolsQuestion(t *testing.T) {
	s := startTools(t, t.TempDir(), t.TempDir(), scripted.Func(func(r scripted.Request) scripted.Answer {
		if r.Turn > 1 {
			return scripted.Answer{Say: r.Results()[0]}
		}
		return scripted.Answer{Calls: []scripted.Call{{Name: "ask_user", Arguments: `{"question": "How?", "choices": ["loudly", "softly"]}`}}}
	}))
	got, said := call[toolserver.Result](s, "delegate", map[string]any{"task": "greet"})
	if len(got.Questions) != 1 || got.Questions[0].Text != "How?" || len(got.Questions[0].Options) != 2 {
		t.Fatal(said)
	}
	for _, x := range [][2]string{{"3", "there is no choice 3"}, {"", "the answer is empty"}, {"2", "answered"}, {"2", "waits for an answer"}} {
		if _, said := call[toolserver.Done](s, "answer", map[string]any{"id": got.Questions[0].ID, "answer": x[0]}); !strings.Contains(said, x[1]) {
			t.Errorf("%q: %s", x[0], said)
		}
	}
	if got, said := call[toolserver.Result](s, "mission_result", map[string]any{"wait_seconds": 60}); !strings.Contains(got.Summary, "softly") {
		t.Error(said)
	}
}

// Two clients serve one project. Neither answers for the other's mission, which goes on when the client that hosts it leaves; what a
// client leaves behind is paused.
func TestTwoToolServers(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	model := scripted.Func(removes)
	first := startTools(t, home, dir, model)
	second := startTools(t, home, dir, model)
	got, _ := call[toolserver.Result](second, "delegate", map[string]any{"task": "remove it", "wait_seconds": 60})
	if len(got.Questions) != 1 {
		t.Fatalf("%+v", got)
	}
	if _, said := call[toolserver.Done](first, "answer", map[string]any{"id": got.Questions[0].ID, "answer": "once"}); !strings.Contains(said, "only the user answers for it") {
		t.Error(said)
	}
	if q, _ := call[toolserver.Questions](first, "list_questions", nil); len(q.Questions) != 1 || !strings.Contains(q.Questions[0].Answer, "only the user") {
		t.Errorf("%+v", q)
	}
	if _, said := call[toolserver.Result](first, "resume", nil); !strings.Contains(said, "is running already") {
		t.Error(said)
	}
	_ = first.in.Close()
	first.ended()
	if got, said := call[toolserver.Result](second, "mission_result", nil); got.Mission.Status == "paused" || strings.HasPrefix(said, "error") {
		t.Errorf("the host has left: %s", said)
	}
	run, _ := call[toolserver.Result](second, "run_mission", map[string]any{"goal": "remove it"})
	if run.Mission.Status != "planning" || !strings.Contains(run.Next, "mission_result") {
		t.Errorf("%+v", run)
	}
	_ = second.in.Close()
	second.ended()
	if !strings.Contains(second.said.String(), "mission "+run.Mission.ID+" is paused; continue with: centurion resume") || strings.Contains(first.said.String(), "is paused") {
		t.Errorf("first said %s\nsecond said %s", first.said, second.said)
	}
	third := startTools(t, home, dir, model)
	if got, _ := call[toolserver.Missions](third, "list_missions", nil); len(got.Missions) != 2 || got.Missions[0].Status != "paused" {
		t.Errorf("%+v", got)
	}
	if got, said := call[toolserver.Result](third, "resume", map[string]any{"mission": run.Mission.ID, "wait_seconds": 60}); got.Mission.Status != "completed" && len(got.Questions) != 1 {
		t.Error(said)
	}
}

// What a client gets wrong is an error of the call that says what would be right.
func TestToolsRefuse(t *testing.T) {
	s := startTools(t, t.TempDir(), t.TempDir(), scripted.Func(func(scripted.Request) scripted.Answer { return scripted.Answer{Say: "done"} }))
	long := strings.Repeat("x", 10_000_000)
	for _, tt := range []struct {
		tool string
		args map[string]any
		says string
	}{
		{"mission_result", nil, "this project has no mission yet"},
		{"run_mission", map[string]any{"goal": " "}, "the goal is empty"},
		{"run_mission", map[string]any{"goal": long}, "the goal is longer than 256 KB"},
		{"run_mission", map[string]any{"goal": "x", "agent": "wrker"}, `did you mean "worker"?`},
		{"run_mission", map[string]any{"goal": "x", "model": "nobody/x"}, `unknown provider "nobody"`},
		{"run_mission", map[string]any{"gaol": "x"}, `unexpected additional properties ["gaol"]`},
		{"delegate", map[string]any{"task": "x", "agent": "worker"}, `there is no agent "worker"`},
		{"cancel", map[string]any{"mission": ""}, "mission is missing"},
		{"answer", map[string]any{"id": "per_1", "answer": "once"}, `nothing with the id "per_1" waits`},
		{"mission_todo", map[string]any{"mission": "msn_zzz"}, `no mission "msn_zzz"`},
		{"mission_result", map[string]any{"mission": long}, "no mission"},
	} {
		_, said := call[any](s, tt.tool, tt.args)
		if !strings.HasPrefix(said, "error ") || !strings.Contains(said, tt.says) || len(said) > 6000 {
			t.Errorf("%s: %.300s", tt.tool, said)
		}
	}
	got, said := call[toolserver.Result](s, "delegate", map[string]any{"task": "x"})
	if got.Summary != "done" || got.Evidence != "" {
		t.Error(said)
	}
	near := got.Mission.ID[:len(got.Mission.ID)-1] + "!"
	if _, said := call[any](s, "mission_result", map[string]any{"mission": near}); !strings.Contains(said, "the nearest is "+got.Mission.ID) {
		t.Error(said)
	}
	for tool, says := range map[string]string{"cancel": "is completed already", "pause": "it is completed and cannot become paused", "resume": "is completed already"} {
		if _, said := call[any](s, tool, map[string]any{"mission": got.Mission.ID}); !strings.Contains(said, says) {
			t.Errorf("%s: %s", tool, said)
		}
	}
}
