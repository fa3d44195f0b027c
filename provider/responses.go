package provider

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strings"

	"centurion"
)

// The shapes of a request to /responses. The conversation is sent whole and nothing of it is kept at the provider, as with
// chat completions; what a model has thought comes back encrypted and is sent again.
type (
	itemsRequest struct {
		Model        string     `json:"model"`
		Instructions string     `json:"instructions,omitzero"`
		Tools        []itemTool `json:"tools,omitempty"`
		Stream       bool       `json:"stream"`
		Store        *bool      `json:"store,omitzero"`
		Include      []string   `json:"include,omitempty"`
		Temperature  *float64   `json:"temperature,omitzero"`
		MaxOutput    int        `json:"max_output_tokens,omitzero"`
		CacheKey     string     `json:"prompt_cache_key,omitzero"`
		Input        []any      `json:"input"` // the last field: everything before it stays the same from request to request
	}
	itemTool struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description,omitzero"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      bool            `json:"strict"` // always false: strict schemas need every property to be required
	}
	itemMessage struct {
		Role    Role       `json:"role"`
		Content []itemText `json:"content"`
	}
	itemText struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	itemCall struct {
		Type      string `json:"type"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	itemResult struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
		Output string `json:"output"`
	}
	itemThought struct {
		Type      string     `json:"type"`
		ID        string     `json:"id,omitzero"`
		Summary   []itemText `json:"summary"`
		Encrypted string     `json:"encrypted_content"`
	}
)

// The names under which a piece of reasoning keeps what must go back with it. They are those that OpenCode stores.
const (
	metaOwner     = "openai"
	metaItem      = "itemId"
	metaEncrypted = "reasoningEncryptedContent"
)

// thinks reports whether a model reasons: the others refuse to be asked for encrypted reasoning.
func thinks(model string) bool {
	return fixedSampling(model) || strings.HasPrefix(model[strings.LastIndexByte(model, '/')+1:], "codex-")
}

// itemsRequest makes the body; fields of the configuration are put in front of it, see splice.
func (c *Client) itemsRequest(r Request) itemsRequest {
	model := c.end.Model.ID
	q := itemsRequest{Model: model, Instructions: r.System, Stream: true, Input: inputItems(r.Messages)}
	if !c.hasExtra("store") {
		q.Store = new(false)
	}
	if thinks(model) && !c.hasExtra("include") {
		q.Include = []string{"reasoning.encrypted_content"}
	}
	if c.hasExtra("instructions") {
		q.Instructions = ""
	}
	for _, t := range r.Tools {
		schema := t.Schema
		if len(schema) == 0 {
			schema = emptySchema
		}
		q.Tools = append(q.Tools, itemTool{Type: "function", Name: t.Name, Description: t.Description, Parameters: schema})
	}
	if t := r.Temperature; t != nil && !fixedSampling(model) && !c.hasExtra("temperature") && !math.IsNaN(*t) && !math.IsInf(*t, 0) {
		q.Temperature = t
	}
	if !c.hasExtra("max_output_tokens") {
		q.MaxOutput = max(r.MaxOutput, 0)
	}
	// OpenAI sends requests with the same key to the machine that has their beginning in its cache. Others need not know it.
	if c.end.Model.Provider == "openai" && !c.hasExtra("prompt_cache_key") {
		q.CacheKey = r.Session
	}
	return q
}

func inputItems(messages []Message) []any {
	out := make([]any, 0, len(messages))
	for _, m := range messages {
		switch m.Role {
		case Assistant:
			out = appendAnswer(out, m)
		case Tool:
			text := m.Text
			if text == "" {
				text = nothing
			}
			out = append(out, itemResult{Type: "function_call_output", CallID: m.CallID, Output: text})
		default:
			text := m.Text
			if text == "" {
				text = nothing
			}
			out = append(out, itemMessage{m.Role, []itemText{{"input_text", text}}})
		}
	}
	return out
}

// appendAnswer lays an answer out as the items that it was made of: what was thought stands before what came of it. A
// thought that nothing came of is left out, because it is refused.
func appendAnswer(out []any, m Message) []any {
	text, calls, said, called := m.Text, m.Calls, 0, 0
	upTo := func(s, n int) {
		if s = min(s, len(text)); s > said {
			out = append(out, itemMessage{Assistant, []itemText{{"output_text", text[said:s]}}})
			said = s
		}
		for ; called < min(n, len(calls)); called++ {
			args := calls[called].Arguments
			if !json.Valid([]byte(args)) {
				args = "{}"
			}
			out = append(out, itemCall{Type: "function_call", CallID: calls[called].ID, Name: calls[called].Name, Arguments: args})
		}
	}
	for _, t := range m.Thoughts {
		own, _ := t.Metadata[metaOwner].(map[string]any)
		encrypted, _ := own[metaEncrypted].(string)
		if encrypted == "" || t.Said >= len(text) && t.Calls >= len(calls) {
			continue
		}
		upTo(t.Said, t.Calls)
		id, _ := own[metaItem].(string)
		item := itemThought{Type: "reasoning", ID: id, Encrypted: encrypted, Summary: []itemText{}}
		if t.Text != "" {
			item.Summary = append(item.Summary, itemText{"summary_text", t.Text})
		}
		out = append(out, item)
	}
	if text == "" && len(calls) == 0 {
		text = nothing
	}
	upTo(len(text), len(calls))
	return out
}

// openResponses asks for an answer by /responses.
func (c *Client) openResponses(ctx context.Context, x *exchange, r Request) (rawStream, error) {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	err := e.Encode(c.itemsRequest(r))
	var req *http.Request
	if err == nil {
		req, err = http.NewRequestWithContext(ctx, http.MethodPost, c.config.BaseURL+"/responses", bytes.NewReader(body.Bytes()))
	}
	if err != nil {
		return nil, &centurion.Error{Op: c.op(), Kind: centurion.KindInvalidRequest, Err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	if c.end.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+c.end.APIKey)
	}
	x.fields = c.extra
	resp, err := x.Do(req)
	if err != nil {
		return nil, err
	}
	return &dataLines{bufio.NewReaderSize(resp.Body, readBlock), resp.Body}, nil
}

// dataLines reads what a sieve lets through: data lines and nothing else.
type dataLines struct {
	r *bufio.Reader
	io.Closer
}

// RecvRaw returns the payload of the next line, and io.EOF after the last.
func (d *dataLines) RecvRaw() ([]byte, error) {
	line, err := d.r.ReadBytes('\n') // the sieve knows how long a line may be
	if raw, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:")); ok && (err == nil || err == io.EOF) {
		if raw = bytes.TrimSpace(raw); string(raw) != "[DONE]" {
			return raw, nil
		}
		return nil, io.EOF
	}
	if err == nil {
		err = io.EOF // a line that is none does not leave the sieve
	}
	return nil, err
}
