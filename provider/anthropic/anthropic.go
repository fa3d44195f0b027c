// Package anthropic is Anthropic's own API, the Messages API, as a wire for package provider: it writes its requests and
// reads its streams. Over it a model's thinking is handed back with its signature, and what a conversation begins with is
// read from the provider's cache.
//
// Retries, gates, time limits and the meaning of errors are package provider's. Tools that run at the provider are not asked for; blocks of an unknown type in an answer are passed over.
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
	// Version is the version of the API, sent with every request. It is the only one there is since 2023.
	Version = "2023-06-01"
	// DefaultMaxTokens is the longest answer, in tokens, that is asked of a model whose limit is not known. Every model
	// since Claude 3.5 gives that much, and the API refuses a number that is higher than the model's.
	DefaultMaxTokens = 8192
)

// Metadata keys of a block of thinking: {"anthropic": {"signature": …}} or {"anthropic": {"redactedData": …}}.
const (
	metadataKey  = "anthropic"
	signatureKey = "signature"
	redactedKey  = "redactedData"
)

// Wire speaks the Messages API. The zero Wire is ready for use.
type Wire struct {
	MaxTokens int // the model's limit for one answer, which is asked for unless a request says less; 0: DefaultMaxTokens
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

// block is a part of a message. The fields that a type needs even if they are empty are pointers.
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

// Request writes the body of a request for an answer that streams. Fields of extra win over fields of ours, except those
// that no wire takes.
func (w Wire) Request(model centurion.ModelRef, r provider.Request, extra map[string]any) (path string, body []byte, err error) {
	req := wireRequest{Model: model.ID, MaxTokens: w.limit(r.MaxOutput), Stream: true, Messages: messages(r)}
	if t := r.Temperature; t != nil && !math.IsNaN(*t) && extra["thinking"] == nil { // who thinks takes no temperature
		req.Temperature = new(min(max(*t, 0), 1)) // others count it up to 2
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

// limit returns the tokens of an answer to ask for.
func (w Wire) limit(asked int) int {
	limit := cmp.Or(w.MaxTokens, DefaultMaxTokens)
	if asked > 0 {
		return min(asked, limit)
	}
	return limit
}

// mark lays the borders up to which the provider keeps a request in its cache: the tools, the system prompt, and the two
// newest messages of the user. The newest is written for the next request, the one before it is read by this one. The API
// takes four; each must end what the next request repeats word by word.
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
