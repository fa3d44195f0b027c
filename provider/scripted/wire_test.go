package scripted

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"
)

const rich = `
rules:
  - say: "Zwei Teile, wie ich es sehe. ✓"
    reasoning: "Let me think about that."
    calls:
      - read: {filePath: "a b.go", limit: 20}
      - bash: {command: "echo <hi> && ls"}
    usage: {input: 1200, output: 80, cached: 1000, reasoning: 10}
`

// An independent client reads what is served.
func TestStreamOnTheWire(t *testing.T) {
	m := scenario(t, rich)
	stream, err := client(m, "ses_a").CreateChatCompletionStream(t.Context(), openai.ChatCompletionRequest{Model: "scripted",
		Stream: true, StreamOptions: &openai.StreamOptions{IncludeUsage: true},
		Messages: []openai.ChatCompletionMessage{{Role: "system", Content: "You are the Worker"}, {Role: "user", Content: "go"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var text, reasoning, finish string
	var usage *openai.Usage
	calls := map[int]openai.ToolCall{}
	chunks := 0
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		chunks++
		if r.Usage != nil {
			usage = r.Usage
		}
		for _, c := range r.Choices {
			text += c.Delta.Content
			reasoning += c.Delta.ReasoningContent
			finish += string(c.FinishReason)
			for _, tc := range c.Delta.ToolCalls {
				call := calls[*tc.Index]
				call.ID += tc.ID
				call.Function.Name += tc.Function.Name
				call.Function.Arguments += tc.Function.Arguments
				calls[*tc.Index] = call
			}
		}
	}
	if text != "Zwei Teile, wie ich es sehe. ✓" || reasoning != "Let me think about that." || finish != "tool_calls" {
		t.Errorf("got text %q, reasoning %q, finish %q", text, reasoning, finish)
	}
	if chunks < 10 {
		t.Errorf("only %d chunks", chunks)
	}
	if len(calls) != 2 || calls[0].Function.Name != "read" || calls[0].Function.Arguments != `{"filePath":"a b.go","limit":20}` ||
		calls[1].Function.Name != "bash" || calls[1].Function.Arguments != `{"command":"echo <hi> && ls"}` {
		t.Errorf("got calls %+v", calls)
	}
	if calls[0].ID == "" || calls[0].ID == calls[1].ID {
		t.Errorf("call ids %q and %q", calls[0].ID, calls[1].ID)
	}
	if usage == nil || usage.PromptTokens != 1200 || usage.CompletionTokens != 80 || usage.PromptTokensDetails.CachedTokens != 1000 ||
		usage.CompletionTokensDetails.ReasoningTokens != 10 {
		t.Errorf("got usage %+v", usage)
	}
	if v := m.Violations(); len(v) != 0 {
		t.Errorf("violations: %v", v)
	}
}

func TestWholeAnswerOnTheWire(t *testing.T) {
	m := scenario(t, rich)
	base, err := m.Serve()
	if err != nil {
		t.Fatal(err)
	}
	cfg := openai.DefaultConfig("sk-test")
	cfg.BaseURL = base
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	cfg.HTTPClient = &http.Client{Transport: tr}
	c := openai.NewClientWithConfig(cfg)
	r, err := c.CreateChatCompletion(t.Context(), openai.ChatCompletionRequest{Model: "scripted",
		Messages: []openai.ChatCompletionMessage{{Role: "system", Content: "s"}, {Role: "user", Content: "go"}}})
	if err != nil {
		t.Fatal(err)
	}
	msg := r.Choices[0].Message
	if msg.Content != "Zwei Teile, wie ich es sehe. ✓" || len(msg.ToolCalls) != 2 || r.Choices[0].FinishReason != "tool_calls" || r.Usage.TotalTokens != 1280 {
		t.Errorf("got %+v", r)
	}
	list, err := c.ListModels(t.Context())
	if err != nil || len(list.Models) != 1 || list.Models[0].ID != "scripted" {
		t.Errorf("got models %+v, %v", list, err)
	}
}

func TestErrors(t *testing.T) {
	m := scenario(t, `
models: [scripted, other]
rules:
  - {when: {last: slow}, error: {status: 429, message: slow down, retry_after: 1.2s}}
  - {when: {last: long}, error: {status: 400, message: too long, code: context_length_exceeded, type: odd}}
  - {when: {last: over}, error: {status: 529}}
  - {when: {last: raw}, raw: '{"error":{"message":"late"}}'}
`)
	tests := []struct {
		last   string
		status int
		body   string
		after  string
	}{
		{"slow", 429, `{"error":{"message":"slow down","type":"requests","param":null,"code":"rate_limit_exceeded"}}`, "2"},
		{"long", 400, `{"error":{"message":"too long","type":"odd","param":null,"code":"context_length_exceeded"}}`, ""},
		{"over", 529, `{"error":{"message":"overloaded","type":"server_error","param":null,"code":null}}`, ""},
		{"raw", 200, `{"error":{"message":"late"}}`, ""},
	}
	for _, tt := range tests {
		status, h, got, err := post(t, m, "ses_"+tt.last, body(true, "system:s", "user:"+tt.last))
		if err != nil || status != tt.status || got != tt.body || h.Get("Retry-After") != tt.after {
			t.Errorf("%s: got %d %q %s, %v", tt.last, status, h.Get("Retry-After"), got, err)
		}
	}
	status, _, got, _ := post(t, m, "ses_m", strings.Replace(body(false, "system:s", "user:x"), "scripted", "absent", 1))
	if status != 404 || !strings.Contains(got, "model_not_found") || !strings.Contains(got, "scripted, other") {
		t.Errorf("unknown model: %d %s", status, got)
	}
	if v := m.Violations(); len(v) != 0 {
		t.Errorf("violations: %v", v)
	}
}

func TestKey(t *testing.T) {
	m := open(t, New(Config{Key: "sk-right", Func: func(Request) Answer { return Answer{Say: "hi"} }}))
	c := m.Client()
	for key, want := range map[string]int{"sk-wrong": 401, "": 401, "sk-right": 200} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, URL+"/models", nil)
		req.Header.Set("Authorization", "Bearer "+key)
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("key %q: got %d, want %d", key, res.StatusCode, want)
		}
	}
}

func TestCuts(t *testing.T) {
	const say = "one two three four five six seven"
	tests := []struct {
		cut    string
		broken bool // the connection
		whole  bool // the text
	}{{"cut: true", false, false}, {"cut: late", false, true}, {"cut: reset", true, false},
		{"error: {stream: true, message: overloaded}", false, false}}
	for _, tt := range tests {
		m := scenario(t, "chunk: 4\nrules:\n  - say: "+say+"\n    calls: [{read: {filePath: a}}]\n    "+tt.cut+"\n")
		status, _, got, err := post(t, m, "a", body(true, "system:s", "user:u"))
		if status != 200 || (err != nil) != tt.broken {
			t.Errorf("%s: status %d, %v", tt.cut, status, err)
		}
		if !strings.Contains(got, "one ") {
			t.Errorf("%s: nothing was sent: %s", tt.cut, got)
		}
		if strings.Contains(got, "[DONE]") || strings.Contains(got, `"finish_reason":"`) || strings.Contains(got, "usage") {
			t.Errorf("%s: the stream has an end: %s", tt.cut, got)
		}
		if whole := strings.Contains(got, `"arguments":"le`); whole != tt.whole {
			t.Errorf("%s: whole is %v: %s", tt.cut, whole, got)
		}
		if strings.Contains(tt.cut, "error") != strings.Contains(got, `data: {"error":{"message":"overloaded"`) {
			t.Errorf("%s: %s", tt.cut, got)
		}
		_, _, _, err = post(t, m, "b", body(false, "system:s", "user:u"))
		if err == nil {
			t.Errorf("%s: an answer that is not streamed arrives whole", tt.cut)
		}
	}
}
