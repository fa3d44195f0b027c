//lint:file-ignore SA1019 servers of today ask for roots and send logs, which the version of 2026 has deprecated

package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"centurion"
)

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func raw(schema string) json.RawMessage { return json.RawMessage(schema) }

// newServer is a server of the SDK with one of everything.
func newServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "everything", Version: "1"}, &sdk.ServerOptions{PageSize: 2})
	add := func(name string, f func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
		s.AddTool(&sdk.Tool{Name: name, Description: "The tool " + name, InputSchema: raw(`{"type":"object"}`), Annotations: &sdk.ToolAnnotations{ReadOnlyHint: name == "look"}}, f)
	}
	text := func(s string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
	}
	image, _ := base64.StdEncoding.DecodeString(png)
	add("look", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return text("seen"), nil })
	add("echo", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(string(r.Params.Arguments)), nil
	})
	add("nothing", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{}, nil
	})
	add("fails", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		r := text("no such issue")
		r.IsError = true
		return r, nil
	})
	add("data", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{StructuredContent: map[string]any{"n": 1}}, nil
	})
	add("twice", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		r := text(`{"n": 1}`)
		r.StructuredContent = map[string]any{"n": 1}
		return r, nil
	})
	add("media", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.ImageContent{MIMEType: "image/png", Data: image}, &sdk.AudioContent{MIMEType: "audio/mp3", Data: []byte("abc")},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "note://1", Text: "noted"}}, &sdk.ResourceLink{URI: "note://2", Name: "two"}}}, nil
	})
	add("large", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(strings.Repeat("0123456789", 5<<20)), nil
	})
	add("roots", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		roots, err := r.Session.ListRoots(ctx, nil)
		if err != nil {
			return nil, err
		}
		return text(roots.Roots[0].URI), nil
	})
	add("wants", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		_, err1 := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{Messages: []*sdk.SamplingMessage{}})
		_, err2 := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "your password?"})
		return text(fmt.Sprint(err1 != nil, err2 != nil)), r.Session.Ping(ctx, nil)
	})
	s.AddPrompt(&sdk.Prompt{Name: "review", Arguments: []*sdk.PromptArgument{{Name: "file", Required: true}}}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "Review " + r.Params.Arguments["file"]}}}}, nil
	})
	s.AddResource(&sdk.Resource{URI: "note://1", Name: "one", MIMEType: "text/plain"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "note://1", Text: "noted"}}}, nil
	})
	return s
}

func TestEverything(t *testing.T) {
	st := &starter{serve: map[string]func(io.Reader, io.Writer) error{"every.thing": through(newServer())}}
	cs := settled(t, Options{Start: st.start}, local("every.thing")...)
	for name, want := range map[string]string{
		"echo": `{"a":[1,"b"]}`, "look": "seen", "nothing": "[the answer is empty]", "data": `{"n":1}`, "twice": `{"n": 1}`,
		"media": "[image answer, 1×1]\n[audio answer, audio/mp3, 3 B: not shown]\nnoted\n[resource note://2, two]",
		"roots": "file:///srv/project", "wants": "true true",
	} {
		tool := cs.tool(t, "every_thing_"+name)
		if tool.ReadOnly || tool.Remote != name || tool.Description != "The tool "+name {
			t.Errorf("%+v", tool)
		}
		r, err := cs.Call(t.Context(), tool, "", raw(`{"a":[1,"b"]}`))
		if err != nil || r.Text != want {
			t.Errorf("%s: %q, %v, want %q", name, r.Text, err, want)
		}
		if name == "media" && (len(r.Files) != 1 || r.Files[0].Mime != centurion.MimePNG) {
			t.Errorf("files %+v", r.Files)
		}
	}
	_, err := cs.Call(t.Context(), cs.tool(t, "every_thing_fails"), "", nil)
	if centurion.KindOf(err) != centurion.KindUsage || !strings.HasSuffix(err.Error(), "no such issue") || errors.Is(err, ErrMayHaveRun) {
		t.Errorf("a failed tool: %v", err)
	}
	if n := cs.Notices(); len(n) != 1 || !strings.Contains(n[0], "sampling/createMessage") || len(cs.Notices()) != 0 {
		t.Errorf("notices %q", n)
	}
	l := cs.Tools()
	if len(l.Tools) != 10 || !slices.IsSortedFunc(l.Tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("%d tools", len(l.Tools))
	}
	if len(l.Prompts) != 1 || l.Prompts[0].Name != "every_thing:review" || len(l.Resources) != 1 || l.Resources[0].URI != "note://1" {
		t.Errorf("%+v %+v", l.Prompts, l.Resources)
	}
	if r, err := cs.Prompt(t.Context(), "every_thing:review", []string{"a.go", "b.go"}); err != nil || r.Text != "Review a.go b.go" {
		t.Errorf("%+v %v", r, err)
	}
	for _, name := range []string{"every_thing:review", "nothing"} {
		if _, err := cs.Prompt(t.Context(), name, nil); err == nil {
			t.Errorf("%s without its argument", name)
		}
	}
	if r, err := cs.Read(t.Context(), "every.thing", "note://1"); err != nil || r.Text != "noted" {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := cs.Read(t.Context(), "other", "note://1"); centurion.KindOf(err) != centurion.KindNotFound {
		t.Error(err)
	}
	if _, err := cs.Read(t.Context(), "every.thing", "note://9"); centurion.KindOf(err) != centurion.KindUsage {
		t.Error(err)
	}
}

// An answer of 50 MB is cut, and says so.
func TestLargeAnswer(t *testing.T) {
	st := &starter{serve: map[string]func(io.Reader, io.Writer) error{"s": through(newServer())}}
	cs := settled(t, Options{Start: st.start}, local("s")...)
	r, err := cs.Call(t.Context(), cs.tool(t, "s_large"), "", nil)
	if err != nil || len(r.Text) > MaxText+200 || !strings.HasSuffix(r.Text, "[cut here: the answer has 50 MB, and 50 MB are left out]") {
		t.Errorf("%d bytes, %v: %.80s", len(r.Text), err, r.Text[len(r.Text)-80:])
	}
}

// A server's word that a tool only reads counts only if the person trusts the server.
func TestReadOnly(t *testing.T) {
	st := &starter{serve: map[string]func(io.Reader, io.Writer) error{"a": through(newServer()), "b": through(newServer())}}
	servers := local("a", "b")
	servers[1].Trusted = true
	cs := settled(t, Options{Start: st.start}, servers...)
	for name, want := range map[string]bool{"a_look": false, "b_look": true, "b_echo": false} {
		if got := cs.tool(t, name).ReadOnly; got != want {
			t.Errorf("%s: read only %v", name, got)
		}
	}
}

// A real process: its own exit, and being killed in the middle.
func TestProcess(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	good := Server{Name: "good", Command: []string{self}, Environment: map[string]string{"MCP_TEST_SERVER": "1"}}
	bad := Server{Name: "bad", Command: []string{"sh", "-c", "echo cannot find module >&2; exit 7"}}
	var p Process
	cs := open(t, Options{Start: func(ctx context.Context, s Server) (Process, error) {
		c, err := execute(ctx, s)
		if s.Name == "good" {
			p = c
		}
		return c, err
	}}, good, bad, Server{Name: "absent", Command: []string{"/no/such/program"}})
	c := cs.all[0]
	if _, err := c.settle(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if r, err := cs.Call(t.Context(), cs.tool(t, "good_echo"), "", raw(`{"a":1}`)); err != nil || r.Text != `{"a":1}` {
		t.Fatal(r, err)
	}
	p.Kill()
	// The next call waits for the new process.
	if r, err := cs.Call(t.Context(), Tool{Name: "good_echo", Server: "good", Remote: "echo"}, "", raw(`{"a":2}`)); err != nil && !errors.Is(err, ErrMayHaveRun) {
		t.Fatal(r, err)
	}
	if r, err := cs.Call(t.Context(), Tool{Name: "good_echo", Server: "good", Remote: "echo"}, "", raw(`{"a":3}`)); err != nil || r.Text != `{"a":3}` {
		t.Fatal(r, err)
	}
	l := cs.Tools()
	if l.Servers[1].Err == nil || !strings.Contains(l.Servers[1].Err.Error(), "exit status 7: cannot find module") {
		t.Errorf("%+v", l.Servers[1])
	}
	if l.Servers[2].Err == nil || !strings.Contains(l.Servers[2].Err.Error(), "no such file") {
		t.Errorf("%+v", l.Servers[2])
	}
}

// With a head start nothing begins before it has passed, or somebody waits for a server.
func TestHeadStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &starter{serve: map[string]func(io.Reader, io.Writer) error{"a": through(newServer()), "b": through(newServer())}}
		cs := Open(append(local("a"), local("b")...), Options{Start: st.start, Root: "/", HeadStart: time.Second})
		defer cs.Close()
		states := func() string {
			cs.Tools()
			synctest.Wait()
			l := cs.Tools()
			return string(l.Servers[0].State + " " + l.Servers[1].State)
		}
		began := time.Now()
		if got := states(); got != "connecting connecting" {
			t.Error(got)
		}
		if r, err := cs.Read(t.Context(), "a", "note://1"); err != nil || r.Text != "noted" || time.Since(began) != 0 {
			t.Errorf("%+v after %s, %v", r, time.Since(began), err)
		}
		if got := states(); got != "ready connecting" {
			t.Error(got)
		}
		time.Sleep(time.Second)
		if got := states(); got != "ready ready" {
			t.Error(got)
		}
	})
}

// Servers that never answer delay neither Open nor the first list.
func TestSilentServersDelayNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := func(in io.Reader, _ io.Writer) error { _, err := io.Copy(io.Discard, in); return err }
		st := &starter{serve: map[string]func(io.Reader, io.Writer) error{}}
		var servers []Server
		for i := range 20 {
			name := fmt.Sprint("s", i)
			servers = append(servers, local(name)...)
			if st.serve[name] = through(newServer()); i < 5 {
				st.serve[name] = silent
			}
		}
		began := time.Now()
		cs := Open(servers, Options{Start: st.start, Root: "/"})
		cs.Tools()
		if time.Since(began) != 0 {
			t.Error("Open and the first list took", time.Since(began))
		}
		synctest.Wait()
		if l := cs.Tools(); len(l.Tools) != 15*10 || time.Since(began) != 0 || l.Servers[0].State != Connecting || l.Servers[19].State != Ready {
			t.Errorf("%d tools after %s, %+v", len(l.Tools), time.Since(began), l.Servers)
		}
		_, err := cs.Call(t.Context(), Tool{Name: "s0_x", Server: "s0", Remote: "x"}, "", nil)
		if !errors.Is(err, ErrNotBegun) || time.Since(began) > DefaultTimeout {
			t.Error(time.Since(began), err)
		}
		time.Sleep(4*DefaultTimeout + 20*time.Second)
		if s := cs.Tools().Servers[0]; s.State != Failed || !strings.Contains(s.Err.Error(), "did not answer in time") {
			t.Errorf("%+v", s)
		}
		if err := cs.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Four attempts in growing distances, then one at each need, and not at once.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &starter{}
		cs := Open(local("s"), Options{Start: st.start, Root: "/"})
		defer cs.Close()
		at := func(d time.Duration, want int) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if n := st.starts("s"); n != want {
				t.Fatalf("%d starts, want %d", n, want)
			}
		}
		at(0, 1)
		at(firstWait, 2)
		at(2*firstWait, 3)
		at(4*firstWait, 4)
		if s := cs.Tools().Servers[0]; s.State != Failed || !strings.Contains(s.Err.Error(), "s is not installed") {
			t.Fatalf("%+v", s)
		}
		at(time.Hour, 4)
		cs.Tools()
		at(time.Second, 5)
		cs.Tools() // too early
		at(time.Hour, 5)
		st.serve = map[string]func(io.Reader, io.Writer) error{"s": through(newServer())}
		if _, err := cs.Call(t.Context(), Tool{Name: "s_look", Server: "s", Remote: "look"}, "", nil); err != nil {
			t.Fatal(err)
		}
		at(0, 6)
	})
}

func TestDisabled(t *testing.T) {
	st := &starter{}
	cs := settled(t, Options{Start: st.start}, Server{Name: "s", Command: []string{"s"}, Disabled: true})
	if s := cs.Tools().Servers[0]; s.State != Disabled || st.starts("s") != 0 {
		t.Errorf("%+v, %d starts", s, st.starts("s"))
	}
	if _, err := cs.Call(t.Context(), Tool{Server: "s"}, "", nil); !errors.Is(err, ErrNotBegun) {
		t.Error(err)
	}
}

// Tools with one name: neither is offered, and the error names both.
func TestClash(t *testing.T) {
	one := func(name string) func(io.Reader, io.Writer) error {
		return script{"tools/list": func(p *player) {
			p.result(fmt.Sprintf(`{"tools":[{"name":%q,"inputSchema":{"type":"object"}},{"name":"other","inputSchema":{"type":"object"}}]}`, name))
		}}.serve
	}
	st := &starter{serve: map[string]func(io.Reader, io.Writer) error{"a": one("b_c"), "a_b": one("c")}}
	l := settled(t, Options{Start: st.start}, local("a", "a_b")...).Tools()
	if l.Err == nil || centurion.KindOf(l.Err) != centurion.KindConflict || !strings.Contains(l.Err.Error(), `"b_c" of a and "c" of a_b would both be called a_b_c`) {
		t.Error(l.Err)
	}
	if len(l.Tools) != 2 {
		t.Errorf("%+v", l.Tools)
	}
}

// A changed list is seen by later calls of Tools, and changes no list that was returned.
func TestListChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		st := &starter{serve: map[string]func(io.Reader, io.Writer) error{"s": through(s)}}
		cs := Open(local("s"), Options{Start: st.start, Root: "/"})
		defer cs.Close()
		synctest.Wait()
		before := cs.Tools().Tools
		first := before[0]
		s.RemoveTools("data")
		s.AddTool(&sdk.Tool{Name: "added", InputSchema: raw(`{"type":"object"}`)}, nil)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		after := cs.Tools().Tools
		has := func(l []Tool, name string) bool {
			return slices.ContainsFunc(l, func(t Tool) bool { return t.Name == name })
		}
		if !has(before, "s_data") || has(before, "s_added") || has(after, "s_data") || !has(after, "s_added") || before[0].Name != first.Name {
			t.Errorf("before %d, after %d tools", len(before), len(after))
		}
		if _, err := cs.Call(t.Context(), cs.tool(t, "s_look"), "", nil); err != nil {
			t.Error(err)
		}
		if _, err := cs.Call(t.Context(), Tool{Name: "s_data", Server: "s", Remote: "data"}, "", nil); centurion.KindOf(err) != centurion.KindUsage || errors.Is(err, ErrMayHaveRun) {
			t.Error("a tool that is gone:", err)
		}
	})
}
