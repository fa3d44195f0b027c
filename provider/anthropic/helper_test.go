package anthropic_test

import (
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"centurion"
	"centurion/provider"
	"centurion/provider/anthropic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ref = centurion.ModelRef{Provider: "anthropic", ID: "claude-test"}

// roundTrip is a transport without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func respond(status int, contentType string, body io.Reader) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(body)}
}

func client(f roundTrip) *provider.Client {
	return provider.New(provider.Endpoint{Model: ref, BaseURL: "http://model.test/v1", APIKey: "sk-ant-secret", KeySource: "ANTHROPIC_API_KEY",
		Wire: anthropic.Wire{}, MaxRetries: -1, HTTP: &http.Client{Transport: f}})
}

// canned returns a client whose every request is answered with a stream.
func canned(body io.Reader) *provider.Client {
	return client(func(*http.Request) (*http.Response, error) { return respond(200, "text/event-stream", body), nil })
}

// refusing returns a client whose every request is refused.
func refusing(status int, h http.Header, body string) *provider.Client {
	return client(func(*http.Request) (*http.Response, error) {
		r := respond(status, "application/json", strings.NewReader(body))
		maps.Copy(r.Header, h)
		return r, nil
	})
}

// sse makes a stream of events with their names.
func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		_, rest, _ := strings.Cut(e, `"type":"`)
		name, _, _ := strings.Cut(rest, `"`)
		b.WriteString("event: " + name + "\ndata: " + e + "\n\n")
	}
	return b.String()
}

const (
	begin = `{"type":"message_start","message":{"id":"msg_a","type":"message","role":"assistant","content":[],"stop_reason":null,"usage":{"input_tokens":7,"cache_read_input_tokens":40,"cache_creation_input_tokens":5,"output_tokens":1}}}`
	stop  = `{"type":"message_stop"}`
	ping  = `{"type":"ping"}`
)

func start(i int, block string) string {
	return `{"type":"content_block_start","index":` + strconv.Itoa(i) + `,"content_block":` + block + `}`
}

func delta(i int, d string) string {
	return `{"type":"content_block_delta","index":` + strconv.Itoa(i) + `,"delta":` + d + `}`
}

func end(i int) string { return `{"type":"content_block_stop","index":` + strconv.Itoa(i) + `}` }

func reason(r string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + r + `","stop_sequence":null},"usage":{"output_tokens":9}}`
}

func say(i int, texts ...string) []string {
	out := []string{start(i, `{"type":"text","text":""}`)}
	for _, s := range texts {
		out = append(out, delta(i, `{"type":"text_delta","text":"`+s+`"}`))
	}
	return append(out, end(i))
}

func call(i int, id, name string, pieces ...string) []string {
	out := []string{start(i, `{"type":"tool_use","id":"`+id+`","name":"`+name+`","input":{}}`), delta(i, `{"type":"input_json_delta","partial_json":""}`)}
	for _, s := range pieces {
		out = append(out, delta(i, `{"type":"input_json_delta","partial_json":`+strconv.Quote(s)+`}`))
	}
	return append(out, end(i))
}

func think(i int, text, signature string) []string {
	return []string{start(i, `{"type":"thinking","thinking":"","signature":""}`), delta(i, `{"type":"thinking_delta","thinking":"`+text+`"}`),
		delta(i, `{"type":"signature_delta","signature":"`+signature+`"}`), end(i)}
}

func events(parts ...any) []string {
	var out []string
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			out = append(out, p)
		case []string:
			out = append(out, p...)
		}
	}
	return out
}

// result is a whole answer.
type result struct {
	text, thinking, finish string
	calls                  []provider.Call
	ended                  int
	closed                 int // ends of thinking
	metadata               []map[string]any
	tokens                 centurion.Tokens
	waits                  []*provider.Wait
	dones                  int
	err                    error
}

// collect reads an answer and checks what must hold for every one.
func collect(t testing.TB, c *provider.Client, req provider.Request) result {
	t.Helper()
	var r result
	ended, ids := map[int]bool{}, map[string]bool{}
	for d, err := range c.Stream(t.Context(), req) {
		if r.err != nil || r.dones > 0 {
			t.Fatalf("a delta after the end: %+v, %v", d, err)
		}
		if err != nil {
			r.err = err
			continue
		}
		if d.Text == "" && (d.Type == provider.Text || d.Type == provider.Reasoning || d.Type == provider.CallInput) {
			t.Fatalf("a piece is empty: %+v", d)
		}
		switch d.Type {
		case provider.Waiting:
			r.waits = append(r.waits, d.Wait)
		case provider.Text:
			r.text += d.Text
		case provider.Reasoning:
			r.thinking += d.Text
		case provider.ReasoningEnd:
			r.closed++
			if d.Metadata != nil {
				r.metadata = append(r.metadata, d.Metadata)
			}
		case provider.CallStart:
			if d.Index != len(r.calls) || d.CallID == "" || ids[d.CallID] {
				t.Fatalf("call %d starts with index %d and id %q", len(r.calls), d.Index, d.CallID)
			}
			ids[d.CallID] = true
			r.calls = append(r.calls, provider.Call{ID: d.CallID, Name: d.Name})
		case provider.CallInput:
			if ended[d.Index] {
				t.Fatalf("input for call %d, which has ended", d.Index)
			}
			r.calls[d.Index].Arguments += d.Text
		case provider.CallEnd:
			ended[d.Index] = true
		case provider.Done:
			r.finish, r.tokens = d.Finish, d.Tokens
			r.dones++
		}
	}
	if r.ended = len(ended); r.dones == 0 && r.err == nil {
		t.Fatal("the answer ended without Done and without an error")
	}
	if r.finish == centurion.FinishToolCalls && r.ended != len(r.calls) {
		t.Fatalf("%d calls would be run, of which %d are whole", len(r.calls), r.ended)
	}
	return r
}
