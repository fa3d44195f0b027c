package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
)

// strict is the handler of these tests: it says what it was given.
type strict struct{}

func (s strict) Update(Update) error { return nil }

func (s strict) Permit(ctx context.Context, c Call) error {
	if c.Kind == "wait" {
		<-ctx.Done()
	}
	switch c.Kind {
	case "delete":
		return errors.New("no")
	case "think":
		panic("boom")
	}
	return nil
}

func (s strict) Read(_ context.Context, path string) (string, error) {
	if path != "/p/a" {
		return "", &centurion.Error{Kind: centurion.KindNotFound, Msg: "no " + path, Hint: "look"}
	}
	return "1\n2\n3\n", nil
}

func (s strict) Write(_ context.Context, path, content string) error {
	if content != "x" {
		return errors.New(path + " is not written")
	}
	return nil
}

// wired lets do speak with an agent that answers each request by its method; lines with an id, and those that are no JSON, are its own. It returns the
// lines that the agent got.
func wired(t *testing.T, answers map[string]string, do func(c *Client, err error)) []string {
	t.Helper()
	toAgent, ours := io.Pipe()
	theirs, fromAgent := io.Pipe()
	var got []string
	var g guard.Group
	g.Go("agent", func() error {
		in := bufio.NewScanner(toAgent)
		for in.Scan() {
			got = append(got, in.Text())
			var m message
			if err := json.Unmarshal(in.Bytes(), &m); err != nil {
				return err
			}
			for line := range strings.Lines(answers[m.Method]) {
				if line = strings.TrimSpace(line); strings.HasPrefix(line, "{\"id\"") || !strings.HasPrefix(line, "{") {
					_, _ = io.WriteString(fromAgent, line+"\n")
				} else {
					_, _ = io.WriteString(fromAgent, `{"id":`+string(m.ID)+`,`+line[1:]+"\n")
				}
			}
		}
		return fromAgent.Close()
	})
	c, err := Open(t.Context(), struct {
		io.Reader
		io.Writer
		io.Closer
	}{theirs, ours, both{theirs, ours}}, Options{Name: "helper", Command: "helper acp", Version: "7", Dir: "/p", Handler: strict{}})
	do(c, err)
	if c != nil {
		_ = c.Close()
	}
	_ = toAgent.Close()
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	return got
}

type both struct{ a, b io.Closer }

func (b both) Close() error { return errors.Join(b.a.Close(), b.b.Close()) }

const (
	yes     = `{"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true},"authMethods":[{"id":"x","description":"run x"},{"id":"y","name":"Y"}]}}`
	started = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":false},"clientInfo":{"name":"centurion","version":"7"},"protocolVersion":1}}`
)

// Issue "Plugin host", point 7: every message that we send, whole, and everything that the end of a turn says.
func TestMessagesThatAreSent(t *testing.T) {
	answers := map[string]string{"initialize": yes, "session/load": `{"error":{"code":1,"message":"forgotten"}}`, "session/new": `{"result":{"sessionId":"s1"}}`,
		"session/prompt": `{"result":{"stopReason":"max_tokens","usage":{"inputTokens":1,"outputTokens":2,"thoughtTokens":3,"cachedReadTokens":4,"cachedWriteTokens":5}}}`}
	got := wired(t, answers, func(c *Client, err error) {
		id, jerr := c.Join(t.Context(), "old")
		if errors.Join(err, jerr) != nil || id != "s1" {
			t.Fatal(id, err, jerr)
		}
		end, err := c.Prompt(t.Context(), "do <it>")
		want := End{Reason: "max_tokens", Tokens: centurion.Tokens{Input: 1, Output: 2, Reasoning: 3, Cache: centurion.CacheUsage{Read: 4, Write: 5}}}
		if err != nil || !reflect.DeepEqual(end, want) {
			t.Errorf("%+v, %v", end, err)
		}
	})
	want := []string{started, `{"jsonrpc":"2.0","id":2,"method":"session/load","params":{"cwd":"/p","mcpServers":[],"sessionId":"old"}}`,
		`{"jsonrpc":"2.0","id":3,"method":"session/new","params":{"cwd":"/p","mcpServers":[]}}`,
		`{"jsonrpc":"2.0","id":4,"method":"session/prompt","params":{"prompt":[{"text":"do \u003cit\u003e","type":"text"}],"sessionId":"s1"}}`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("sent\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Issue "Plugin host", point 7: what an agent's own requests are answered, whole.
func TestAnswersToRequests(t *testing.T) {
	file := func(text string) string { return `"result":{"content":"` + text + `"}` }
	picked := func(id string) string { return `"result":{"outcome":{"outcome":"selected","optionId":"` + id + `"}}` }
	const all = `"options":[{"optionId":"1","kind":"reject_always"},{"optionId":"2","kind":"reject_once"},{"optionId":"3","kind":"allow_always"},{"optionId":"4","kind":"allow_once"}]`
	for _, x := range [][3]string{
		{"fs/read_text_file", `{"path":"/p/a"}`, file(`1\n2\n3\n`)},
		{"fs/read_text_file", `{"path":"/p/a","line":1}`, file(`1\n2\n3\n`)},
		{"fs/read_text_file", `{"path":"/p/a","line":2,"limit":1}`, file(`2\n`)},
		{"fs/read_text_file", `{"path":"/p/a","line":0,"limit":2}`, file(`1\n2\n`)},
		{"fs/read_text_file", `{"path":"/p/a","line":99}`, file(``)},
		{"fs/read_text_file", `{"path":"/p/a","limit":99}`, file(`1\n2\n3\n`)},
		{"fs/read_text_file", `{"path":"/p/a","limit":0}`, file(``)},
		{"fs/read_text_file", `{"path":"/p/a","limit":-1}`, file(``)},
		{"fs/read_text_file", `{"path":"/p/b"}`, `"error":{"code":-32002,"message":"no /p/b. look"}`},
		{"fs/read_text_file", `{}`, `"error":{"code":-32602,"message":"give the path of a file"}`},
		{"fs/read_text_file", `[]`, `"error":{"code":-32602,"message":"give the path of a file"}`},
		{"fs/write_text_file", `{"path":"/p/b","content":"x"}`, `"result":null`},
		{"fs/write_text_file", `{"path":"/p/b"}`, `"error":{"code":-32603,"message":"/p/b is not written"}`},
		{"terminal/create", `{}`, `"error":{"code":-32601,"message":"Centurion does not offer this method"}`},
		{"session/request_permission", `{"toolCall":{"kind":"edit"},` + all + `}`, picked("4")},
		{"session/request_permission", `{"toolCall":{"kind":"delete"},` + all + `}`, picked("2")},
		{"session/request_permission", `{"toolCall":{"kind":"edit"},"options":[{"optionId":"2","kind":"reject_once"},{"optionId":"3","kind":"allow_always"}]}`, picked("3")},
		{"session/request_permission", `{"toolCall":{"kind":"delete"},"options":[{"optionId":"1","kind":"reject_always"},{"optionId":"3","kind":"allow_always"}]}`, picked("1")},
		{"session/request_permission", `{"toolCall":{"kind":"delete"},"options":[{"optionId":"3","kind":"allow_always"}]}`, `"result":{"outcome":{"outcome":"cancelled"}}`},
		{"session/request_permission", `{"toolCall":{"kind":"think"},` + all + `}`, `"error":{"code":-32603,"message":`}, // the handler has crashed
		{"session/request_permission", `{"options":7}`, `"error":{"code":-32602,"message":`},
	} {
		synctest.Test(t, func(t *testing.T) {
			answers := map[string]string{"initialize": yes + "\n" + `{"id":"u","method":"` + x[0] + `","params":` + x[1] + `}`}
			got := wired(t, answers, func(c *Client, err error) { synctest.Wait() })
			if len(got) != 2 || !strings.HasPrefix(got[1], `{"jsonrpc":"2.0","id":"u",`+x[2]) || !strings.HasSuffix(x[2], ":") && len(got[1]) != len(`{"jsonrpc":"2.0","id":"u",}`+x[2]) {
				t.Errorf("%s %s:\n%q, want %s", x[0], x[1], got, x[2])
			}
		})
	}
}

// What an agent tells is read as the protocol has it, and by the habits of those that go their own way.
func TestUpdates(t *testing.T) {
	half := 0.5
	for in, want := range map[string]Update{
		`"agent_message_chunk","content":{"type":"text","text":"a"}`:              {Text: "a"},
		`"agent_thought_chunk","content":{"type":"text","text":"a"}`:              {Thought: "a"},
		`"agent_message_chunk","content":{"type":"image","data":"a"}`:             {},
		`"plan","entries":[{"content":"a","priority":"high","status":"pending"}]`: {Plan: []Step{{"a", "high", "pending"}}},
		`"usage_update","cost":{"amount":0.5,"currency":"usd"}`:                   {Cost: &half},
		`"usage_update","cost":{"amount":0.5}`:                                    {Cost: &half},
		`"usage_update","cost":{"amount":0.5,"currency":"EUR"}`:                   {},
		`"usage_update"`:        {},
		`"current_mode_update"`: {},
		`"tool_call","toolCallId":"1","title":"t","kind":"edit","status":"pending"`:            {First: true, Call: &Call{ID: "1", Title: "t", Kind: "edit", Status: "pending"}},
		`"tool_call_update","toolCallId":"1","rawInput":{"a":1},"locations":[{"path":"/p/a"}]`: {Call: &Call{ID: "1", Input: json.RawMessage(`{"a":1}`), Paths: []string{"/p/a"}}},
		`"tool_call_update","toolCallId":"1","content":[{"type":"diff","path":"/p/a","oldText":"o","newText":"n"},{"type":"diff","path":"/p/b","newText":"n"},{"type":"content","content":{"type":"text","text":"x"}},{"type":"content","content":{"text":""}},{"type":"content","content":{"text":"y"}}],"rawOutput":"z"`: {Call: &Call{ID: "1", Output: "x\ny", Paths: []string{"/p/a", "/p/b"}, Diffs: []Diff{{"/p/a", "o", "n"}, {"/p/b", "", "n"}}}},
		`"tool_call_update","rawOutput":"said"`:                 {Call: &Call{Output: "said"}},
		`"tool_call_update","rawOutput":{"output":"said"}`:      {Call: &Call{Output: "said"}},
		`"tool_call_update","rawOutput":{"o":1}`:                {Call: &Call{Output: `{"o":1}`}},
		`"tool_call_update","rawOutput":null`:                   {Call: &Call{}},
		`"tool_call_update","status":"failed","content":"none"`: {Call: &Call{Status: "failed"}},
	} {
		var w wireUpdate
		if err := json.Unmarshal([]byte(`{"sessionUpdate":`+in+`}`), &w); err != nil {
			t.Fatal(in, err)
		}
		if got := w.read(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v %+v, want %+v %+v", in, got, got.Call, want, want.Call)
		}
	}
	for status, want := range map[string]bool{"pending": false, "in_progress": false, "completed": true, "failed": true, "": false} {
		if (Call{Status: status}).Ended() != want {
			t.Errorf("a call that is %q has ended: %v", status, !want)
		}
	}
}

// Issue "Plugin host", point 7: an agent that says nothing, or nothing right, is left after a time, and the error says what it did.
func TestSilentAgents(t *testing.T) {
	const nobody = "agent helper: "
	for name, x := range map[string]struct {
		answers map[string]string
		took    time.Duration
		want    string
	}{
		"no start":       {nil, 2 * time.Minute, nobody + "it has not answered to initialize within 2m0s"},
		"no session":     {map[string]string{"initialize": yes}, time.Minute, nobody + "it has not answered to session/new within 1m0s"},
		"no load":        {map[string]string{"initialize": yes, "session/new": `{"result":{"sessionId":"s"}}`}, time.Minute, nobody + "it has not answered to session/load within 1m0s"},
		"no id":          {map[string]string{"initialize": yes, "session/new": `{"result":{}}`}, 0, nobody + "it has opened a conversation without an id"},
		"no version":     {map[string]string{"initialize": `{"result":{}}`}, 0, nobody + "it speaks version none of the protocol, not 1"},
		"nonsense":       {map[string]string{"initialize": yes, "session/new": strings.Repeat(strings.Repeat("w", 90)+"\n", 101)}, 0, nobody + `it writes what is no message of the protocol, such as "` + strings.Repeat("w", 80) + `…"`},
		"a little of it": {map[string]string{"initialize": yes, "session/new": strings.Repeat("npm warn\n[1]\n", 50) + `{"result":{"sessionId":"s"}}`}, 0, ""},
		"a wrong id":     {map[string]string{"initialize": yes, "session/new": `{"result":{"sessionId":7}}`}, 0, nobody + "its answer is not what the protocol says: json: cannot unmarshal number into Go struct field .sessionId of type string"},
		"a long line":    {map[string]string{"initialize": yes, "session/new": "x" + strings.Repeat("x", maxLine)}, 0, nobody + "a message has more than 32 MB"},
		"many requests":  {map[string]string{"initialize": yes, "session/new": strings.Repeat(`{"id":"a","method":"session/request_permission","params":{"toolCall":{"kind":"wait"}}}`+"\n", maxRequests+1)}, 0, nobody + "it has more than 64 requests open"},
		"refuses":        {map[string]string{"initialize": yes, "session/new": `{"error":{"code":-32603,"message":"Internal error","data":{"why":"x"}}}`}, 0, nobody + `Internal error {"why":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wired(t, x.answers, func(c *Client, err error) {
					if err == nil {
						_, err = c.Join(t.Context(), map[string]string{"no load": "old"}[name])
					}
					if took := time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)); took != x.took {
						t.Errorf("after %v, want %v", took, x.took)
					}
					if got := fmt.Sprint(err); x.want == "" && err != nil || x.want != "" && got != x.want {
						t.Errorf("%s, want %s", got, x.want)
					}
				})
			})
		})
	}
}

// What an error of an agent means to a person.
func TestErrorsOfAgents(t *testing.T) {
	const again = "log in with the agent itself, outside of Centurion%s; its definition must name the files and variables that keep the login. It is started with: helper acp"
	c := &Client{options: Options{Name: "helper", Command: "helper acp"}}
	for said, want := range map[string]string{"Auth_Required": "auth", "Authentication required": "auth", "Not logged in": "auth", "please log in": "auth", "run /login": "auth",
		"Invalid API key": "auth", "it broke": "internal", "too many requests": "rate_limit"} {
		e, _ := c.explain(&wireError{Code: -32603, Message: said}).(*centurion.Error)
		hint := ""
		if want == "auth" {
			hint = fmt.Sprintf(again, "")
		}
		if string(e.Kind) != want || e.Error() != "agent helper: "+said || e.Hint != hint {
			t.Errorf("%s: %s %v (%s)", said, e.Kind, e, e.Hint)
		}
	}
	c.login = []string{"a", "b"}
	if e := c.explain(&wireError{Code: authRequired, Message: "who?"}); centurion.KindOf(e) != centurion.KindAuth || centurion.HintOf(e) != fmt.Sprintf(again, " (it offers: a; b)") {
		t.Errorf("%v (%s)", e, centurion.HintOf(e))
	}
	wired(t, map[string]string{"initialize": yes}, func(c *Client, err error) {
		if err != nil || !reflect.DeepEqual(c.login, []string{"x run x", "Y"}) || !c.loads {
			t.Errorf("%q, %v", c.login, err)
		}
	})
	if c.explain(nil) != nil {
		t.Error("no error is one")
	}
	broken := &conn{err: io.EOF}
	for _, err := range []error{nil, io.EOF, io.ErrClosedPipe} {
		if broken.err = err; broken.broken().Error() != "the agent's program has ended" || centurion.KindOf(broken.broken()) != centurion.KindStreamCut {
			t.Errorf("%v is told as %v", err, broken.broken())
		}
	}
	if broken.err = io.ErrNoProgress; !errors.Is(broken.broken(), io.ErrNoProgress) {
		t.Errorf("got %v", broken.broken())
	}
}

// Every way to say when a limit is over.
func TestWordsOfLimits(t *testing.T) {
	now := time.Date(2026, 11, 28, 14, 30, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"rate limit, try in 2 days":               48 * time.Hour,
		"rate limit, try after 5s":                5 * time.Second,
		"rate limit, try in 1h, 2m and 3s":        time.Hour + 2*time.Minute + 3*time.Second,
		"usage limit|1796052600000":               time.Unix(1796052600, 0).Sub(now),
		"usage limit|1000000000":                  time.Second, // it is over already
		"session limit, resets_in_seconds: 9":     9 * time.Second,
		"weekly limit, resets 12am":               9*time.Hour + 30*time.Minute,
		"weekly limit, resets 12pm":               21*time.Hour + 30*time.Minute,
		"weekly limit, resets at 14:30":           24 * time.Hour,
		"weekly limit, resets at 14:31":           time.Minute,
		"weekly limit, resets 2:31pm":             time.Minute,
		"quota limit, resets 4pm (Europe/Berlin)": 30 * time.Minute,
		"resource_exhausted":                      0,
		"quota is exhausted":                      0,
		"you reached your monthly quota":          0,
		"rateLimitExceeded":                       0,
	} {
		if got, limited := Limit(text, now); !limited || got != want {
			t.Errorf("%s: %v, %v, want %v", text, got, limited, want)
		}
	}
	notice := "Claude usage limit reached."
	if !IsLimit(" "+notice+strings.Repeat("x", maxNotice-len(notice))+" ") || IsLimit(notice+strings.Repeat("x", maxNotice-len(notice)+1)) {
		t.Errorf("a notice may have %d bytes", maxNotice)
	}
}

// A turn that is cancelled is cancelled by its conversation; an answer that comes twice, or just before the agent leaves, is taken once.
func TestAnswersThatComeOddly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		twice := strings.Repeat(`{"id":2,"result":{"sessionId":"s1"}}`+"\n", 3)
		answers := map[string]string{"initialize": yes, "session/new": twice, "session/prompt": `{"id":"x","method":"session/request_permission","params":{"toolCall":{"kind":"wait"},"options":[]}}`, "session/cancel": ""}
		got := wired(t, answers, func(c *Client, err error) {
			if _, jerr := c.Join(t.Context(), ""); err != nil || jerr != nil {
				t.Fatal(err, jerr)
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, centurion.ErrBudget)
			defer cancel()
			if _, err := c.Prompt(ctx, "go"); err != centurion.ErrBudget {
				t.Errorf("it ends with %v", err)
			}
		})
		if want := `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}}`; len(got) < 4 || got[3] != want {
			t.Errorf("sent %q, want %s", got, want)
		}
	})
	for range 20 { // which of two ready channels is read is chance
		c := newConn(t.Context(), nil)
		answer := make(chan message, 1)
		answer <- message{Result: json.RawMessage(`"said"`)}
		close(c.gone)
		var said string
		if err := c.result(t.Context(), answer, &said); err != nil || said != "said" {
			t.Fatalf("an agent that answered and left: %q, %v", said, err)
		}
		c.end()
	}
}
