// Package anthropic implements Anthropic's Messages API as a wire for package provider: it writes its requests and reads its streams.
// Thinking is sent back with its signature, and the beginning of a conversation is read from the provider's cache.
//
// Package provider handles retries, gates, time limits and errors. Server-side tools are not requested; blocks of unknown type in an
// answer are skipped.
package anthropic

import (
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"strings"

	"centurion"
	"centurion/provider"
)

const (
	// Version is the version of the API, sent with every request. It is the only one since 2023.
	Version = "2023-06-01"
	// DefaultMaxTokens is the requested length of an answer, in tokens, for a model with an unknown limit. All models since Claude 3.5
	// support it, and the API refuses a number above the model's limit.
	DefaultMaxTokens = 8192
)

// Metadata keys of a block of thinking: {"anthropic": {"signature": …}} or {"anthropic": {"redactedData": …}}.
const (
	metadataKey  = "anthropic"
	signatureKey = "signature"
	redactedKey  = "redactedData"
)

// Wire implements the Messages API. The zero Wire is ready to use.
type Wire struct {
	MaxTokens int // the model's limit for one answer, requested unless a request says less; 0: DefaultMaxTokens
}

var _ provider.Wire = Wire{}

// Authorize sets x-api-key and anthropic-version.
func (Wire) Authorize(h http.Header, key string) {
	if key != "" {
		h.Set("x-api-key", key)
	}
	h.Set("anthropic-version", Version)
}

type (
	wireRequest struct {
		Model       string        `json:"model"`
		MaxTokens   int           `json:"max_tokens"`
		Stream      bool          `json:"stream"`
		Temperature *float64      `json:"temperature,omitempty"`
		ToolChoice  *wireChoice   `json:"tool_choice,omitempty"`
		Tools       []wireTool    `json:"tools,omitempty"`
		System      []block       `json:"system,omitempty"`
		Messages    []wireMessage `json:"messages"`
	}
	wireChoice struct {
		Type string `json:"type"`
	}
	wireTool struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		InputSchema json.RawMessage `json:"input_schema"`
		Cache       *cacheControl   `json:"cache_control,omitempty"`
	}
	wireMessage struct {
		Role    string  `json:"role"`
		Content []block `json:"content"`
	}
	cacheControl struct {
		Type string `json:"type"`
	}
)

// block is a part of a message. Fields that a type requires even if empty are pointers.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   any             `json:"content,omitempty"` // of a result: a text, or blocks
	Title     string          `json:"title,omitempty"`
	Source    *source         `json:"source,omitempty"`
	Cache     *cacheControl   `json:"cache_control,omitempty"`

	fleeting bool // the next request will not have it
}

var emptySchema = json.RawMessage(`{"type":"object","properties":{}}`)

// Request writes the body of a streaming request. Fields of extra override ours, except those that no wire accepts.
func (w Wire) Request(model centurion.ModelRef, r provider.Request, extra map[string]any) (path string, body []byte, err error) {
	req := wireRequest{Model: model.ID, MaxTokens: w.limit(r.MaxOutput), Stream: true, Messages: messages(r)}
	if t := r.Temperature; t != nil && !math.IsNaN(*t) && extra["thinking"] == nil { // thinking models accept no temperature
		req.Temperature = new(min(max(*t, 0), 1)) // others go up to 2
	}
	for _, t := range r.Tools {
		schema := t.Schema
		if len(schema) == 0 {
			schema = emptySchema
		}
		req.Tools = append(req.Tools, wireTool{Name: t.Name, Description: t.Description, InputSchema: schema})
	}
	if strings.TrimSpace(r.System) != "" {
		req.System = []block{{Type: "text", Text: r.System}}
	}
	if len(req.Tools) > 0 {
		req.ToolChoice = &wireChoice{"auto"}
	}
	mark(&req)
	body, err = marshal(req)
	if err != nil || len(extra) == 0 {
		return "/messages", body, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &fields); err != nil {
		return "", nil, err
	}
	for name, value := range extra {
		switch name {
		case "model", "messages", "input", "tools", "stream":
			continue
		}
		if fields[name], err = marshal(value); err != nil {
			return "", nil, err
		}
	}
	body, err = marshal(fields)
	return "/messages", body, err
}

// limit returns the number of tokens to request for an answer.
func (w Wire) limit(asked int) int {
	limit := cmp.Or(w.MaxTokens, DefaultMaxTokens)
	if asked > 0 {
		return min(asked, limit)
	}
	return limit
}

// mark sets the breakpoints up to which the provider caches a request: the tools, the system prompt, and the two newest messages of the
// user. The newest is written for the next request, the previous one is read by this one. The API allows four; each must end a part
// that the next request repeats exactly.
func mark(req *wireRequest) {
	ephemeral := &cacheControl{"ephemeral"}
	if n := len(req.Tools); n > 0 {
		req.Tools[n-1].Cache = ephemeral
	}
	if n := len(req.System); n > 0 {
		req.System[n-1].Cache = ephemeral
	}
	left := 2
	for i := len(req.Messages) - 1; i >= 0 && left > 0; i-- {
		m := req.Messages[i]
		if m.Role != "user" {
			continue
		}
		last := len(m.Content) - 1
		for last >= 0 && m.Content[last].fleeting {
			last--
		}
		if last >= 0 {
			m.Content[last].Cache = ephemeral
			left--
		}
	}
}
