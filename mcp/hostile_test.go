package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"centurion"
)

// methods are the messages of the protocol that a client sends.
var methods = []string{"initialize", "notifications/initialized", "tools/list", "prompts/list", "resources/list", "tools/call", "prompts/get", "resources/read"}

var errEnded = errors.New("exit status 2")

// abuses are what a broken or hostile server does with a message.
var abuses = map[string]func(p *player){
	"hangs":              func(*player) {},
	"stops reading":      func(p *player) { <-p.gone },
	"dies":               func(p *player) { p.end = errEnded },
	"dies in the middle": func(p *player) { fmt.Fprintf(p.out, `{"jsonrpc":"2.0","id":%s,"res`, p.ID); p.end = errEnded },
	"answers twice":      func(p *player) { p.result(ordinary[p.Method]); p.result(ordinary[p.Method]) },
	"answers another":    func(p *player) { p.line(`{"jsonrpc":"2.0","id":4711,"result":{}}`) },
	"answers null":       func(p *player) { p.result("null") },
	"answers nothing":    func(p *player) { p.result("{}") },
	"answers a number":   func(p *player) { p.result("7") },
	"answers neither":    func(p *player) { p.line(`{"jsonrpc":"2.0","id":%s}`, p.ID) },
	"answers nulls": func(p *player) {
		p.result(`{"tools":[null],"prompts":[null],"resources":[null],"content":[null],"messages":[null],"contents":[null],"capabilities":null}`)
	},
	"answers strange types": func(p *player) {
		p.result(`{"tools":{"a":1},"prompts":"x","resources":3,"content":"x","messages":7,"contents":true,"protocolVersion":1}`)
	},
	"answers an error": func(p *player) {
		p.line(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no\u001b[31m"}}`, p.ID)
	},
	"answers a wrong error": func(p *player) { p.line(`{"jsonrpc":"2.0","id":%s,"error":"no"}`, p.ID) },
	"answers in a batch":    func(p *player) { p.line(`[{"jsonrpc":"2.0","id":%s,"result":{}}]`, p.ID) },
	"answers JSON-RPC 1":    func(p *player) { p.line(`{"id":%s,"result":{}}`, p.ID) },
	"writes nonsense":       func(p *player) { p.line("listening on 8080\x00\xff\n\n}{"); p.result(ordinary[p.Method]) },
	"nests deeply":          func(p *player) { p.result(strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)) },
	"answers no UTF-8": func(p *player) {
		p.result(`{"content":[{"type":"text","text":"` + strings.Repeat("\xff", MaxText) + `"},{"type":"text","text":"again"}]}`)
	},
	"asks back": func(p *player) {
		for i, m := range []string{"sampling/createMessage", "elicitation/create", "roots/list", "ping", "no/such", "tools/list"} {
			p.line(`{"jsonrpc":"2.0","id":"s%d","method":%q,"params":null}`, i, m)
			p.line(`{"jsonrpc":"2.0","id":"s%d","method":%q,"params":{"requestedSchema":7,"messages":[null]}}`, i, m)
		}
		p.result(ordinary[p.Method])
	},
	"notifies nonsense": func(p *player) {
		for _, m := range []string{"message", "progress", "cancelled", "tools/list_changed", "resources/updated", "elicitation/complete", "initialized", "no/such"} {
			for _, params := range []string{"null", "7", "{}", `{"requestId":null,"progressToken":[],"elicitationId":3,"data":null}`} {
				p.line(`{"jsonrpc":"2.0","method":"notifications/%s","params":%s}`, m, params)
			}
		}
		p.result(ordinary[p.Method])
	},
	"floods": func(p *player) {
		for range 2 * maxRate {
			p.line(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
		p.result(ordinary[p.Method])
	},
	"floods with questions": func(p *player) {
		for i := range 2 * maxRate {
			p.line(`{"jsonrpc":"2.0","id":"f%d","method":"no/such"}`, i)
		}
	},
}

// Whatever a server does at whichever message: nothing panics, nothing waits for ever, everything ends with Close, and its neighbour works.
func TestHostile(t *testing.T) {
	for name, abuse := range abuses {
		for _, method := range methods {
			t.Run(strings.ReplaceAll(name+" at "+method, "/", "."), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					st := &starter{serve: map[string]func(io.Reader, io.Writer) error{"bad": script{method: abuse}.serve, "good": script{}.serve}}
					cs := Open(local("bad", "good"), Options{Start: st.start, Root: "/"})
					began := time.Now()
					bad, good := Tool{Name: "bad_do", Server: "bad", Remote: "do"}, Tool{Name: "good_do", Server: "good", Remote: "do"}
					r, err := cs.Call(t.Context(), bad, "", nil)
					if err != nil && r.Text != "" && centurion.KindOf(err) != centurion.KindUsage {
						t.Errorf("%q and %v", r.Text, err)
					}
					if err != nil && errors.Is(err, ErrNotBegun) && errors.Is(err, ErrMayHaveRun) {
						t.Error("both:", err)
					}
					if _, err := cs.Read(t.Context(), "bad", "note://1"); errors.Is(err, ErrMayHaveRun) {
						t.Error(err)
					}
					_, _ = cs.Prompt(t.Context(), "bad:ask", []string{"x"})
					if took := time.Since(began); took > CallTimeout+5*DefaultTimeout {
						t.Error("took", took)
					}
					if r, err := cs.Call(t.Context(), good, "", nil); err != nil || r.Text != "done" {
						t.Error("the neighbour:", r, err)
					}
					cs.Tools()
					for _, n := range cs.Notices() {
						if strings.ContainsAny(n, "\x00\x1b\n") || len(n) > 2000 {
							t.Errorf("notice %q", n)
						}
					}
					began = time.Now()
					if err := cs.Close(); err != nil || time.Since(began) > 2*endLimit {
						t.Error(time.Since(began), err)
					}
				})
			})
		}
	}
}

// What is told of a call whose server went away depends on what it had got.
func TestOutcome(t *testing.T) {
	for name, row := range map[string]struct {
		script   script
		readOnly bool
		want     error
		kind     centurion.Kind
		text     string
	}{
		"dies":                {script: script{"tools/call": abuses["dies"]}, want: ErrMayHaveRun, kind: centurion.KindInterrupted, text: "closed the connection"},
		"dies, reading only":  {script: script{"tools/call": abuses["dies"]}, readOnly: true, kind: centurion.KindInterrupted},
		"hangs":               {script: script{"tools/call": abuses["hangs"]}, want: ErrMayHaveRun, kind: centurion.KindTimeout, text: "did not answer in time"},
		"hangs, reading only": {script: script{"tools/call": abuses["hangs"]}, readOnly: true, kind: centurion.KindTimeout},
		"refuses":             {script: script{"tools/call": abuses["answers an error"]}, kind: centurion.KindUsage, text: "answers: no"},
		"never connects":      {script: script{"initialize": abuses["dies"]}, want: ErrNotBegun, kind: centurion.KindNetwork, text: "its process has ended: exit status 2"},
		"floods":              {script: script{"tools/call": abuses["floods"]}, want: ErrMayHaveRun, kind: centurion.KindInterrupted, text: "more than 2000 messages in a second"},
		"asks for the version": {script: script{"initialize": func(p *player) {
			p.result(`{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
		}}, want: ErrNotBegun, text: `unsupported protocol version: "1999-01-01"`},
		"reads nothing":      {script: script{"notifications/initialized": func(p *player) { <-p.gone }}, want: ErrNotBegun, kind: centurion.KindNetwork, text: "does not take what it is sent"},
		"answers in the end": {script: script{"tools/call": func(p *player) { p.result(ordinary["tools/call"]); p.end = errEnded }}},
		"a line without an end": {script: script{"tools/call": func(p *player) {
			block := bytes.Repeat([]byte("x"), 1<<20)
			for range 70 {
				_, _ = p.out.Write(block)
			}
		}}, want: ErrMayHaveRun, kind: centurion.KindInterrupted, text: "a message of more than 64 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := &starter{serve: map[string]func(io.Reader, io.Writer) error{"s": row.script.serve}}
				cs := Open(local("s"), Options{Start: st.start, Root: "/"})
				defer cs.Close()
				_, err := cs.Call(t.Context(), Tool{Name: "s_do", Server: "s", Remote: "do", ReadOnly: row.readOnly}, "", nil)
				if name == "answers in the end" {
					if err != nil {
						t.Error(err)
					}
					return
				}
				if err == nil || row.kind != "" && centurion.KindOf(err) != row.kind || !strings.Contains(err.Error(), row.text) {
					t.Fatalf("%v (%s)", err, centurion.KindOf(err))
				}
				for _, e := range []error{ErrNotBegun, ErrMayHaveRun} {
					if errors.Is(err, e) != (row.want == e) {
						t.Errorf("%v: is %v", err, e)
					}
				}
			})
		})
	}
}

// A call that is ended by its caller, and calls while the server is away: one waits for the next connection.
func TestCancelledAndAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		st := &starter{serve: map[string]func(io.Reader, io.Writer) error{"s": script{"tools/call": func(p *player) {
			if first {
				first = false
				time.Sleep(time.Minute)
				p.end = errEnded
				return
			}
			p.result(ordinary["tools/call"])
		}}.serve}}
		cs := Open(local("s"), Options{Start: st.start, Root: "/"})
		defer cs.Close()
		synctest.Wait()
		do := cs.tool(t, "s_do")
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := cs.Call(t.Context(), do, "", nil); !errors.Is(err, ErrMayHaveRun) {
				t.Error(err)
			}
			if _, err := cs.Call(t.Context(), do, "", nil); err != nil || st.starts("s") != 2 {
				t.Error(st.starts("s"), err)
			}
		})
		wg.Wait()
		if s := cs.Tools().Servers[0]; s.State != Ready || s.Err != nil {
			t.Errorf("%+v", s)
		}
	})
}

// The process of a server that does not end with its input is killed.
func TestKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		killed := make(chan struct{})
		st := script{}
		start := func(in io.Reader, out io.Writer) error {
			_ = st.serve(in, out)
			<-killed
			return errors.New("signal: killed")
		}
		cs := Open(local("s"), Options{Root: "/", Start: (&stubborn{killed, start}).start})
		synctest.Wait()
		began := time.Now()
		if err := cs.Close(); err != nil || time.Since(began) != endLimit {
			t.Error(time.Since(began), err)
		}
	})
}

type stubborn struct {
	killed chan struct{}
	serve  func(io.Reader, io.Writer) error
}

// What a server logs, and what it writes that is no message, goes to the log at debug level, without escape sequences.
func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		st := &starter{serve: map[string]func(io.Reader, io.Writer) error{"s": script{"tools/call": func(p *player) {
			p.line(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"a\u001b[31m word"}}`)
			p.line("listening\x1b[31m on 8080")
			p.result(ordinary["tools/call"])
		}}.serve}}
		cs := Open(local("s"), Options{Start: st.start, Root: "/", Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		if _, err := cs.Call(t.Context(), Tool{Name: "s_do", Server: "s", Remote: "do"}, "", nil); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		cs.Close()
		if s := log.String(); strings.Count(s, "level=DEBUG") != 2 || !strings.Contains(s, `level=error text="a word"`) || !strings.Contains(s, `line="listening on 8080"`) {
			t.Errorf("log %s", s)
		}
	})
}

// A server that only speaks the version of 2026, which has no handshake, is connected at the second attempt.
func TestModern(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &starter{serve: map[string]func(io.Reader, io.Writer) error{"s": script{
			"initialize": abuses["answers an error"],
			"server/discover": func(p *player) {
				p.result(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}`)
			},
			"tools/call": func(p *player) {
				if !strings.Contains(string(p.Params), `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`) {
					t.Errorf("params %s", p.Params)
				}
				if strings.Contains(string(p.Params), `"wants"`) {
					p.result(`{"resultType":"input_required","inputRequests":{"a":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}}}`)
					return
				}
				p.result(ordinary["tools/call"])
			},
		}.serve}}
		cs := Open(local("s"), Options{Start: st.start, Root: "/"})
		defer cs.Close()
		if r, err := cs.Call(t.Context(), Tool{Name: "s_do", Server: "s", Remote: "do"}, "", nil); err != nil || r.Text != "done" || st.starts("s") != 2 {
			t.Error(r, err, st.starts("s"))
		}
		if r, err := cs.Call(t.Context(), Tool{Name: "s_wants", Server: "s", Remote: "wants"}, "", nil); err == nil {
			t.Error(r)
		} else if !strings.Contains(err.Error(), "client does not support CreateMessage") {
			t.Error(err)
		}
	})
}

// A call whose caller gives up: its cause, and that it may have run.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &starter{serve: map[string]func(io.Reader, io.Writer) error{"s": script{"tools/call": abuses["hangs"]}.serve, "away": script{"initialize": abuses["hangs"]}.serve}}
		cs := Open(local("s", "away"), Options{Start: st.start, Root: "/"})
		defer cs.Close()
		for server, want := range map[string]error{"s": ErrMayHaveRun, "away": ErrNotBegun} {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(centurion.ErrCancelled) })
			began := time.Now()
			_, err := cs.Call(ctx, Tool{Name: "do", Server: server, Remote: "do"}, "", nil)
			if !errors.Is(err, want) || centurion.KindOf(err) != centurion.KindCancelled || time.Since(began) != time.Second {
				t.Error(server, time.Since(began), err)
			}
		}
	})
}

// A request that finds its connection closed is made once more, and not for ever.
func TestConnectionClosedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &starter{serve: map[string]func(io.Reader, io.Writer) error{"s": script{}.serve}}
		cs := Open(local("s"), Options{Start: st.start, Root: "/"})
		if err := cs.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, closed := range []int{0, 1, 2, 100} {
			sent := 0
			err := cs.request(t.Context(), request{op: "look", server: "s"}, func(context.Context, *sdk.ClientSession) error {
				if sent++; sent > closed {
					return nil
				}
				return fmt.Errorf("send: %w", sdk.ErrConnectionClosed)
			})
			if sent != min(closed+1, 2) || (closed < 2) != (err == nil) || closed >= 2 && !errors.Is(err, ErrNotBegun) {
				t.Errorf("closed %d times: %d requests, %v", closed, sent, err)
			}
		}
		if err := cs.Close(); err != nil {
			t.Error(err)
		}
	})
}
