package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"regexp"
	"strings"

	"centurion"
)

// The shapes of a request for a chat completion.
type (
	chatRequest struct {
		Model         string        `json:"model"`
		Stream        bool          `json:"stream"`
		StreamOptions *chatStream   `json:"stream_options,omitzero"`
		MaxTokens     int           `json:"max_tokens,omitzero"`
		MaxCompletion int           `json:"max_completion_tokens,omitzero"`
		Temperature   *float64      `json:"temperature,omitzero"`
		Effort        string        `json:"reasoning_effort,omitzero"`
		Tools         []chatTool    `json:"tools,omitempty"`
		Messages      []chatMessage `json:"messages"` // the last field: everything before it stays the same from request to request
	}
	chatStream struct {
		Usage bool `json:"include_usage"`
	}
	chatTool struct {
		Type     string       `json:"type"`
		Function chatFunction `json:"function"`
	}
	chatFunction struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitzero"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	chatMessage struct {
		Role      Role       `json:"role"`
		Content   any        `json:"content,omitempty"` // a text, or a list of chatPart
		Reasoning string     `json:"reasoning_content,omitzero"`
		Calls     []chatCall `json:"tool_calls,omitempty"`
		CallID    string     `json:"tool_call_id,omitzero"`
	}
	chatCall struct {
		ID       string     `json:"id"`
		Type     string     `json:"type"`
		Function chatCalled `json:"function"`
	}
	chatCalled struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	chatPart struct {
		Type  string     `json:"type"`
		Text  string     `json:"text,omitzero"`
		Image *chatImage `json:"image_url,omitzero"`
	}
	chatImage struct {
		URL string `json:"url"`
	}
)

// nothing is the text of an empty message: most endpoints refuse an empty content.
const nothing = "(empty)"

var emptySchema = json.RawMessage(`{"type":"object","properties":{}}`)

// fixedSampling reports whether a model is one of OpenAI's reasoning models, which refuse a temperature and limit completion tokens.
func fixedSampling(model string) bool {
	name := model[strings.LastIndexByte(model, '/')+1:]
	for _, prefix := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && (rest == "" || rest[0] == '-' || rest[0] == '.') {
			return !strings.Contains(name, "-chat") // gpt-5-chat-latest does not reason
		}
	}
	return false
}

// completionsOnly are OpenAI's models from before there were chats.
var completionsOnly = regexp.MustCompile(`^(?:text-|code-)?(?:davinci|curie|babbage|ada|cushman)(?:-instruct-beta)?(?:-00[1-3])?$`)

// bearer sends a key as OpenAI takes it.
type bearer struct{}

// Authorize puts the key into the header.
func (bearer) Authorize(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

// chat speaks OpenAI's chat completions, which every other endpoint knows.
type chat struct {
	bearer
	echo bool // hands the reasoning of earlier answers back
}

// Decoder returns what reads one answer.
func (chat) Decoder(emit func(Delta)) Decoder { return &decoder{emit: emit} }

// Request writes the body. From GPT-5.6 on OpenAI takes tools here only from a model that is told not to reason, and from some none at
// all; the models before want the field left out.
func (w chat) Request(ref centurion.ModelRef, r Request, extra map[string]any) (path string, body []byte, err error) {
	has := func(name string) bool { _, ok := extra[name]; return ok }
	model := ref.ID
	req := chatRequest{Model: model, Stream: true, Messages: w.messages(r)}
	if ref.Provider != "mistral" && !has("stream_options") { // Mistral refuses the option, and counts tokens without being asked
		req.StreamOptions = &chatStream{true}
	}
	for _, t := range r.Tools {
		schema := t.Schema
		if len(schema) == 0 {
			schema = emptySchema
		}
		req.Tools = append(req.Tools, chatTool{"function", chatFunction{t.Name, t.Description, schema}})
	}
	if !has("max_tokens") && !has("max_completion_tokens") {
		if fixedSampling(model) || strings.HasPrefix(model, "gpt-5") {
			req.MaxCompletion = max(r.MaxOutput, 0)
		} else {
			req.MaxTokens = max(r.MaxOutput, 0)
		}
	}
	if t := r.Temperature; t != nil && !fixedSampling(model) && !has("temperature") && !math.IsNaN(*t) && !math.IsInf(*t, 0) {
		req.Temperature = t
	}
	switch tools := len(req.Tools) > 0; {
	case completionsOnly.MatchString(model):
		return "", nil, errors.New("this model is not supported by chat completions")
	case tools && (model == "gpt-6-astra" || model == "gpt-6.1-sol"):
		return "", nil, errors.New("tool calling with this model requires the Responses API")
	case tools && !has("reasoning_effort") && (strings.HasPrefix(model, "gpt-5.6") || model == "gpt-6-sol" || model == "gpt-6-luna"):
		req.Effort = "none"
	}
	body, err = encode(req, extra)
	return "/chat/completions", body, err
}

func (w chat) messages(r Request) []chatMessage {
	out := make([]chatMessage, 0, len(r.Messages)+1)
	if r.System != "" {
		out = append(out, chatMessage{Role: "system", Content: r.System})
	}
	for _, m := range fromUser(r.Messages) {
		msg := chatMessage{Role: m.Role}
		if m.Role == Tool {
			msg.CallID = m.CallID
		}
		if m.Role == Assistant {
			if w.echo {
				msg.Reasoning = m.Reasoning
			}
			for _, call := range m.Calls {
				args := call.Arguments
				if !json.Valid([]byte(args)) {
					args = "{}" // several endpoints parse the arguments of earlier calls and refuse the whole history
				}
				msg.Calls = append(msg.Calls, chatCall{call.ID, "function", chatCalled{call.Name, args}})
			}
		}
		switch {
		case m.Role != Assistant && !m.bare():
			msg.Content = chatParts(m)
		case m.Text != "":
			msg.Content = m.Text
		case len(msg.Calls) == 0:
			msg.Content = nothing
		}
		out = append(out, msg)
	}
	return out
}

// frontOf formats fields as an object's beginning, to be continued by a body without its first brace.
func frontOf(fields []field) []byte {
	front := []byte{'{'}
	for _, f := range fields {
		name, _ := json.Marshal(f.name)
		front = append(append(append(append(front, name...), ':'), f.value...), ',')
	}
	return front
}

// encode writes a body with the fields of extra in front of it, so that its last field, the conversation, stays the last.
func encode(body any, extra map[string]any) ([]byte, error) {
	fields, bad := fieldsOf(extra)
	if bad != nil {
		return nil, bad
	}
	b := bytes.NewBuffer(frontOf(fields))
	own := b.Len()
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(body); err != nil {
		return nil, err
	}
	all := b.Bytes()
	copy(all[1:], all[:own])
	return all[1:], nil // one brace is enough
}
