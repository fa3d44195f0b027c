package provider

import (
	"encoding/json"
	"math"
	"strings"

	"centurion"
)

// The format of a request to /responses. The whole conversation is sent and nothing is stored at the provider, as in chat completions;
// a model's thoughts come encrypted and are sent back.
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
		Input        []any      `json:"input"` // last, so that everything before it is the same in each request
	}
	itemTool struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description,omitzero"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      bool            `json:"strict"` // always false: strict schemas require every property
	}
	itemMessage struct {
		Role    Role  `json:"role"`
		Content []any `json:"content"` // of itemText and itemFile
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
		Output any    `json:"output"` // a text, or a list of itemText and itemFile
	}
	itemThought struct {
		Type      string     `json:"type"`
		ID        string     `json:"id,omitzero"`
		Summary   []itemText `json:"summary"`
		Encrypted string     `json:"encrypted_content"`
	}
)

// The metadata keys of a piece of reasoning, as stored by OpenCode.
const (
	metaOwner     = "openai"
	metaItem      = "itemId"
	metaEncrypted = "reasoningEncryptedContent"
)

// thinks reports whether a model reasons: others refuse requests for encrypted reasoning.
func thinks(model string) bool {
	return fixedSampling(model) || strings.HasPrefix(model[strings.LastIndexByte(model, '/')+1:], "codex-")
}

// Responses implements OpenAI's responses, required by its newer models. Nothing is stored at the provider. The zero Responses is ready
// to use.
type Responses struct{ bearer }

var _ Wire = Responses{}

// Request writes the body. extra comes first, so that the conversation stays the last field.
func (Responses) Request(model centurion.ModelRef, r Request, extra map[string]any) (path string, body []byte, err error) {
	body, err = encode(responsesBody(model, r, extra), extra)
	return "/responses", body, err
}

// Decoder returns the decoder for one answer.
func (Responses) Decoder(emit func(Delta)) Decoder { return newItems(&decoder{emit: emit}) }

// responsesBody makes the body without extra.
func responsesBody(model centurion.ModelRef, r Request, extra map[string]any) itemsRequest {
	has := func(name string) bool { _, ok := extra[name]; return ok }
	q := itemsRequest{Model: model.ID, Instructions: r.System, Stream: true, Input: inputItems(r.Messages, model.Provider == "openai")}
	if !has("store") {
		q.Store = new(false)
	}
	if thinks(model.ID) && !has("include") {
		q.Include = []string{"reasoning.encrypted_content"}
	}
	if has("instructions") {
		q.Instructions = ""
	}
	for _, t := range r.Tools {
		schema := t.Schema
		if len(schema) == 0 {
			schema = emptySchema
		}
		q.Tools = append(q.Tools, itemTool{Type: "function", Name: t.Name, Description: t.Description, Parameters: schema})
	}
	if t := r.Temperature; t != nil && !fixedSampling(model.ID) && !has("temperature") && !math.IsNaN(*t) && !math.IsInf(*t, 0) {
		q.Temperature = t
	}
	if !has("max_output_tokens") {
		q.MaxOutput = max(r.MaxOutput, 0)
	}
	// OpenAI routes requests with the same key to the machine with their prefix in its cache. Other providers may not know the field.
	if model.Provider == "openai" && !has("prompt_cache_key") {
		q.CacheKey = r.Session
	}
	return q
}

// inputItems formats the history. With inResults, results contain their files, which OpenAI supports; others may not.
func inputItems(messages []Message, inResults bool) []any {
	out := make([]any, 0, len(messages))
	laid := make([]moved, len(messages))
	for i, m := range messages {
		laid[i].Message = m
	}
	if !inResults {
		laid = fromUser(messages)
	}
	for _, m := range laid {
		switch m.Role {
		case Assistant:
			out = appendAnswer(out, m.Message)
		case Tool:
			text := m.Text
			if text == "" {
				text = nothing
			}
			result := itemResult{Type: "function_call_output", CallID: m.CallID, Output: text}
			if len(m.Files) > 0 {
				result.Output = resultParts(text, m.Files)
			}
			out = append(out, result)
		default:
			if !m.bare() {
				out = append(out, itemMessage{m.Role, itemParts(m)})
				continue
			}
			text := m.Text
			if text == "" {
				text = nothing
			}
			out = append(out, itemMessage{m.Role, []any{itemText{"input_text", text}}})
		}
	}
	return out
}

// appendAnswer formats an answer as its original items, thoughts before their results. It omits thoughts without a result, which would
// be refused.
func appendAnswer(out []any, m Message) []any {
	text, calls, said, called := m.Text, m.Calls, 0, 0
	upTo := func(s, n int) {
		if s = min(s, len(text)); s > said {
			out = append(out, itemMessage{Assistant, []any{itemText{"output_text", text[said:s]}}})
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
