//lint:file-ignore SA1019 servers of today ask for roots and send logs, which the version of 2026 has deprecated

package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"centurion"
)

// scripted opens servers that do what their scripts say.
func scripted(t *testing.T, o Options, scripts map[string]script, servers ...Server) (*Clients, *starter) {
	t.Helper()
	st := &starter{serve: map[string]func(io.Reader, io.Writer) error{}}
	for name, s := range scripts {
		st.serve[name] = s.serve
	}
	o.Start = st.start
	return open(t, o, servers...), st
}

// What a server is told, word for word: who asks, where they work, and what they want.
func TestWhatIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		note := func(p *player) {
			told = append(told, p.Method+" "+string(p.Params))
			p.result(ordinary[p.Method])
		}
		cs, _ := scripted(t, Options{Root: "/srv/project", Below: "/srv/checkouts", Version: "1.2"}, map[string]script{"s": {
			"initialize": note, "tools/call": note, "prompts/get": note, "resources/read": note,
			"prompts/list": func(p *player) {
				p.result(`{"prompts":[{"name":"a b","description":"d\u001b[1m","arguments":[{"name":"x","description":"which","required":true},null,{"name":"y"},{"name":"z"}]}]}`)
			},
		}}, local("s")...)
		do := Tool{Name: "s_do", Server: "s", Remote: "do"}
		if r, err := cs.Call(t.Context(), do, "/work", raw(`{"a":1}`)); err != nil || !reflect.DeepEqual(r, Result{Text: "done"}) {
			t.Errorf("%+v, %v", r, err)
		}
		if _, err := cs.Call(t.Context(), do, "", nil); err != nil {
			t.Error(err)
		}
		for _, words := range [][]string{{"1"}, {"1", "2", "3", "4"}, {}} {
			r, err := cs.Prompt(t.Context(), "s:a_b", words)
			if len(words) > 0 && (err != nil || r.Text != "asked") || len(words) == 0 && (err == nil || err.Error() != "s:a_b: the argument x is missing" || centurion.HintOf(err) != "which" || centurion.KindOf(err) != centurion.KindUsage) {
				t.Errorf("%q: %+v, %v (%s)", words, r, err, centurion.HintOf(err))
			}
		}
		if r, err := cs.Read(t.Context(), "s", "note://1"); err != nil || r.Text != "noted" {
			t.Errorf("%+v, %v", r, err)
		}
		want := []string{
			`initialize {"clientInfo":{"name":"centurion","version":"1.2"},"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}`,
			`tools/call {"_meta":{"centurion/directory":"/work"},"name":"do","arguments":{"a":1}}`,
			`tools/call {"name":"do","arguments":{}}`,
			`prompts/get {"arguments":{"x":"1"},"name":"a b"}`,
			`prompts/get {"arguments":{"x":"1","y":"2","z":"3 4"},"name":"a b"}`,
			`resources/read {"uri":"note://1"}`,
		}
		if !reflect.DeepEqual(told, want) {
			t.Errorf("told\n%s", strings.Join(told, "\n"))
		}
	})
}

// A server that asks where people work is told of both directories.
func TestRoots(t *testing.T) {
	s := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "1"}, nil)
	s.AddTool(&sdk.Tool{Name: "roots", InputSchema: raw(`{"type":"object"}`)}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		roots, err := r.Session.ListRoots(ctx, nil)
		if err != nil {
			return nil, err
		}
		b, err := json.Marshal(roots.Roots)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(b)}}}, err
	})
	for below, want := range map[string]string{
		"/srv/a b": `[{"name":"a b","uri":"file:///srv/a%20b"},{"name":"project","uri":"file:///srv/project"}]`,
		"":         `[{"name":"project","uri":"file:///srv/project"}]`,
	} {
		st := &starter{serve: map[string]func(io.Reader, io.Writer) error{"s": through(s)}}
		cs := settled(t, Options{Start: st.start, Root: "/srv/project", Below: below}, local("s")...)
		if r, err := cs.Call(t.Context(), Tool{Name: "s_roots", Server: "s", Remote: "roots"}, "", nil); err != nil || r.Text != want {
			t.Errorf("%s, %v", r.Text, err)
		}
	}
}

// How long is waited for an answer, and what is said then. The longer limit of a server counts for its calls, too.
func TestHowLong(t *testing.T) {
	silent := script{"tools/call": abuses["hangs"], "prompts/get": abuses["hangs"], "resources/read": abuses["hangs"]}
	for limit, want := range map[time.Duration][3]time.Duration{
		0:             {CallTimeout, DefaultTimeout, DefaultTimeout},
		time.Second:   {CallTimeout, time.Second, time.Second},
		1 * time.Hour: {time.Hour, time.Hour, time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := local("s")
			server[0].Timeout = limit
			cs, _ := scripted(t, Options{}, map[string]script{"s": silent}, server...)
			if err := cs.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i, ask := range []func() error{
				func() error {
					_, err := cs.Call(t.Context(), Tool{Name: "s_do", Server: "s", Remote: "do"}, "", nil)
					return err
				},
				func() error { _, err := cs.Prompt(t.Context(), "s:ask", []string{"x"}); return err },
				func() error { _, err := cs.Read(t.Context(), "s", "note://1"); return err },
			} {
				began := time.Now()
				err := ask()
				said := []string{"call s_do: the MCP server s: it did not answer in time: the call may have run", "get s:ask: the MCP server s: it did not answer in time", "read note://1: the MCP server s: it did not answer in time"}
				if took := time.Since(began); took != want[i] || err == nil || err.Error() != said[i] {
					t.Errorf("limit %s, request %d: %v after %s", limit, i, err, took)
				}
			}
		})
	}
}

// What a server has is listed as far as it can be used; of the rest a person is told once.
func TestListing(t *testing.T) {
	many := func(what string, one string) func(p *player) {
		return func(p *player) { p.result(`{"` + what + `":[` + strings.Repeat(one+",", maxItems) + one + `]}`) }
	}
	cs, _ := scripted(t, Options{}, map[string]script{
		"full": {"resources/list": many("resources", `{"uri":"u","name":"n"}`), "prompts/list": many("prompts", `{"name":"p"}`)},
		"odd": {
			"tools/list": func(p *player) {
				p.result(`{"tools":[{"name":"b","title":"T\u001b[1m","description":"d\u001b[1m","inputSchema":{"type":"object"},"annotations":{"title":"no","readOnlyHint":true}},{"name":"a","inputSchema":{"type":"object"},"annotations":{"title":"A\u001b[1m"}}]}`)
			},
			"prompts/list": abuses["answers an error"],
			"resources/list": func(p *player) {
				p.result(`{"resources":[{"uri":"u","name":"n\u001b[1m","description":"d\u001b[1m","mimeType":"m\u001b[1m","size":7}]}`)
			},
		},
		"poor": {"resources/list": abuses["answers an error"], "prompts/list": func(p *player) {
			p.result(`{"prompts":[{"name":"p q","description":"d\u001b[1m","arguments":[{"name":"x","description":"y\u001b[1m","required":true}]}]}`)
		}},
	}, local("full", "odd", "poor")...)
	if err := cs.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := cs.Tools()
	var got []string
	for _, tool := range l.Tools {
		got = append(got, fmt.Sprintf("%s of %s %s %q %q %t", tool.Name, tool.Server, tool.Remote, tool.Title, tool.Description, tool.ReadOnly))
	}
	if want := []string{`full_do of full do "" "does" false`, `odd_a of odd a "A" "" false`, `odd_b of odd b "T" "d" false`, `poor_do of poor do "" "does" false`}; !reflect.DeepEqual(got, want) || l.Err != nil {
		t.Errorf("tools\n%s\n%v", strings.Join(got, "\n"), l.Err)
	}
	if len(l.Prompts) != maxItems+1 || len(l.Resources) != maxItems+1 {
		t.Fatalf("%d prompts, %d resources", len(l.Prompts), len(l.Resources))
	}
	if got, want := l.Prompts[maxItems], (Prompt{Name: "poor:p_q", Server: "poor", Remote: "p q", Description: "d", Arguments: []Argument{{"x", "y", true}}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got, want := l.Resources[maxItems], (Resource{Server: "odd", URI: "u", Name: "n", Description: "d", Mime: "m", Size: 7}); got != want {
		t.Errorf("%+v", got)
	}
	want := []string{"MCP server full: it has more than 1000 prompts; the others are left out", "MCP server full: it has more than 1000 resources; the others are left out"}
	notices := cs.Notices()
	if len(notices) != 4 || !reflect.DeepEqual(notices[:2], want) || !strings.HasPrefix(notices[2], "MCP server odd: its prompts cannot be listed: ") || !strings.HasPrefix(notices[3], "MCP server poor: its resources cannot be listed: ") {
		t.Errorf("notices\n%s", strings.Join(notices, "\n"))
	}
}

// What is known of a server while it dies and cannot come back: its tools stay while it is tried, and go with the last attempt.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cs, st := scripted(t, Options{}, map[string]script{"s": {"tools/call": abuses["dies"]}}, local("s")...)
		known := func() string {
			synctest.Wait()
			status, lists := cs.all[0].now()
			return fmt.Sprintf("%s %v tools=%d prompts=%d", status.State, status.Err, len(lists.Tools), len(lists.Prompts))
		}
		for _, step := range []struct {
			do   func()
			want string
		}{
			{func() {}, "ready <nil> tools=1 prompts=1"},
			{func() {
				st.mu.Lock()
				delete(st.serve, "s")
				st.mu.Unlock()
				_, _ = cs.Call(t.Context(), Tool{Server: "s", Remote: "do"}, "", nil)
			}, "connecting <nil> tools=1 prompts=1"},
			{func() { time.Sleep(firstWait + lull) }, "connecting MCP server s: s is not installed tools=1 prompts=1"},
			{func() { time.Sleep(10 * firstWait) }, "failed MCP server s: s is not installed tools=0 prompts=0"},
			{func() { time.Sleep(pause); cs.Tools() }, "failed MCP server s: s is not installed tools=0 prompts=0"},
			{func() {
				if _, err := cs.Call(t.Context(), Tool{Name: "s_do", Server: "s", Remote: "do"}, "", nil); err == nil || err.Error() != "call s_do: MCP server s: s is not installed: the call has not begun" {
					t.Error(err)
				}
			}, "failed MCP server s: s is not installed tools=0 prompts=0"},
		} {
			if step.do(); known() != step.want {
				t.Errorf("%s, want %s", known(), step.want)
			}
		}
	})
}

// A connection that lasted makes up for earlier failures: a server that dies now and then comes back each time after the same while.
func TestSteady(t *testing.T) {
	for lasts, want := range map[time.Duration]State{steady: Ready, steady - time.Second: Failed} {
		synctest.Test(t, func(t *testing.T) {
			cs, st := scripted(t, Options{}, map[string]script{"s": {"prompts/get": func(p *player) { p.end = errEnded }}}, local("s")...)
			for range 2 * attempts {
				time.Sleep(lasts)
				_, _ = cs.Prompt(t.Context(), "s:ask", []string{"x"})
				time.Sleep(firstWait + 2*lull)
				if st, _ := cs.all[0].now(); want == Ready && st.State != Ready {
					t.Errorf("%+v", st)
				}
			}
			if n := st.starts("s"); want == Ready && n != 2*attempts+1 || want == Failed && n > 2*attempts {
				t.Errorf("%d starts of one that lasts %s", n, lasts)
			}
		})
	}
}

// A list that cannot be read again stays as it was, and that is told.
func TestListChangedBadly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := 0
		cs, _ := scripted(t, Options{}, map[string]script{"s": {
			"tools/list": func(p *player) {
				if lists++; lists > 1 {
					abuses["answers an error"](p)
					return
				}
				p.result(ordinary[p.Method])
			},
			"tools/call": func(p *player) {
				p.line(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				p.result(ordinary[p.Method])
			},
		}}, local("s")...)
		if _, err := cs.Call(t.Context(), Tool{Server: "s", Remote: "do"}, "", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * lull)
		l := cs.Tools()
		if n := cs.Notices(); len(l.Tools) != 1 || l.Servers[0].State != Ready || lists != 2 || len(n) != 1 || !strings.HasPrefix(n[0], "MCP server s: its changed lists cannot be read: ") {
			t.Errorf("%+v, %q", l, n)
		}
	})
}

// Of an answer no more goes into a message than fits, and what is left out says so.
func TestResultLimits(t *testing.T) {
	image, _ := base64.StdEncoding.DecodeString(png)
	var many []sdk.Content
	for range centurion.MaxFiles + 1 {
		many = append(many, &sdk.ImageContent{MIMEType: "image/png", Data: image})
	}
	r := resultOf(&sdk.CallToolResult{Content: many})
	label := "[image answer, 1×1]\n"
	if want := strings.Repeat(label, centurion.MaxFiles) + "[image answer, image/png, " + centurion.Bytes(int64(len(image))) + ": not shown]"; r.Text != want || len(r.Files) != centurion.MaxFiles {
		t.Errorf("%d files\n%s", len(r.Files), r.Text)
	}
	large := append(image, make([]byte, centurion.MaxFilesBytes/8-len(image))...) // eight of these are the most
	for i := range many {
		many[i] = &sdk.ImageContent{MIMEType: "image/png", Data: large}
	}
	if r := resultOf(&sdk.CallToolResult{Content: many}); len(r.Files) != 8 || strings.Count(r.Text, ": not shown]") != len(many)-8 {
		t.Errorf("%d large files\n%s", len(r.Files), r.Text)
	}
	text := func(s string) sdk.Content { return &sdk.TextContent{Text: s} }
	full := strings.Repeat("x", MaxText)
	for name, c := range map[string]struct {
		content []sdk.Content
		want    string
	}{
		"lines":        {[]sdk.Content{text(""), text("a"), text(""), text("b\x1b[1m")}, "a\nb"},
		"blanks":       {[]sdk.Content{text(" \n ")}, "[the answer is empty]"},
		"just fits":    {[]sdk.Content{text(full)}, full},
		"a byte more":  {[]sdk.Content{text(full), text("")}, full},
		"a letter cut": {[]sdk.Content{text(full[1:] + "é")}, full[1:] + "\n[cut here: the answer has " + centurion.Bytes(MaxText+1) + ", and 1 B are left out]"},
		"one too many": {[]sdk.Content{text(full), text("y")}, full + "\n[cut here: the answer has " + centurion.Bytes(MaxText+2) + ", and 2 B are left out]"},
		"no resource":  {[]sdk.Content{&sdk.EmbeddedResource{}, &sdk.ResourceLink{URI: "u\x1b[1m", Description: "d"}}, "[resource u, d]"},
		"a file": {[]sdk.Content{&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "u\x1b[1m", MIMEType: "m\x1b[1m", Blob: []byte("ab")}}},
			"[resource u, m, 2 B: not shown]"},
	} {
		if r := resultOf(&sdk.CallToolResult{Content: c.content}); r.Text != c.want || r.Files != nil {
			t.Errorf("%s: %d bytes, %.100q", name, len(r.Text), r.Text)
		}
	}
}

// ending counts how often a process was told to end for good.
type ending struct {
	Process
	kills *int
}

func (e ending) Kill() { *e.kills++; e.Process.Kill() }

// What a server has started does not outlive it, also when the server ends as it should.
func TestChildrenAreKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, kills := &starter{serve: map[string]func(io.Reader, io.Writer) error{"s": script{}.serve}}, 0
		cs := Open(local("s"), Options{Root: "/", Start: func(ctx context.Context, s Server) (Process, error) {
			p, err := st.start(ctx, s)
			return ending{p, &kills}, err
		}})
		if err := errors.Join(cs.Settle(t.Context()), cs.Close()); err != nil || kills != 1 {
			t.Errorf("killed %d times, %v", kills, err)
		}
		if st := cs.all[0].status; st.State != Failed || st.Err != centurion.ErrShutdown {
			t.Errorf("after the end: %+v", st)
		}
	})
}

// The edges of names and schemas, and what is said of what is not there.
func TestEdges(t *testing.T) {
	fits := strings.Repeat("z", MaxName-2)
	if got := ToolName("a", fits); got != "a_"+fits {
		t.Errorf("a name that fits is %s", got)
	}
	if got := ToolName("aZ09-", "z.y"); got != "aZ09-_z_y" {
		t.Errorf("%s", got)
	}
	s, err := inputSchema(map[string]any{"title": "a\x1b[1mb", "properties": map[string]any{"x": map[string]any{"description": "c\x1b[1m"}}})
	if b, _ := json.Marshal(s); err != nil || string(b) != `{"type":"object","properties":{"x":{"description":"c"}},"title":"ab"}` {
		t.Errorf("%s, %v", b, err)
	}
	if _, err := inputSchema(map[string]any{"properties": map[string]any{"x": map[string]any{"$recursiveRef": "#"}}}); err == nil || err.Error() != "its schema has $recursiveRef, which providers refuse" {
		t.Error(err)
	}
	cs := open(t, Options{})
	if _, err := cs.Call(t.Context(), Tool{Name: "s_x", Server: "s"}, "", nil); !errors.Is(err, ErrNotBegun) || err.Error() != `call s_x: there is no MCP server "s": the call has not begun` {
		t.Error(err)
	}
	if _, err := cs.Prompt(t.Context(), "s:x", nil); err == nil || err.Error() != "mcp: there is no prompt s:x" || centurion.KindOf(err) != centurion.KindNotFound {
		t.Error(err)
	}
}
