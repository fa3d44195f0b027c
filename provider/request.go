package provider

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	openai "github.com/sashabaranov/go-openai"
)

// nothing is the text of an empty message. go-openai omits an empty content, which most endpoints refuse.
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

// request makes the body, and the fields that go-openai does not support.
func (c *Client) request(r Request) (openai.ChatCompletionRequest, []field) {
	model := c.end.Model.ID
	req := openai.ChatCompletionRequest{Model: model, Messages: c.messages(r), Stream: true}
	// Mistral refuses the option, and counts tokens anyway.
	if c.end.Model.Provider != "mistral" && !c.hasExtra("stream_options") {
		req.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	for _, t := range r.Tools {
		schema := t.Schema
		if len(schema) == 0 {
			schema = emptySchema
		}
		req.Tools = append(req.Tools, openai.Tool{Type: openai.ToolTypeFunction,
			Function: &openai.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: schema}})
	}
	// These two bypass go-openai, which omits a temperature of 0 and refuses max_tokens for some model names.
	fields := slices.Clone(c.extra)
	if r.MaxOutput > 0 && !c.hasExtra("max_tokens") && !c.hasExtra("max_completion_tokens") {
		name := "max_tokens"
		if fixedSampling(model) || strings.HasPrefix(model, "gpt-5") {
			name = "max_completion_tokens"
		}
		fields = append(fields, field{name, strconv.AppendInt(nil, int64(r.MaxOutput), 10)})
	}
	if t := r.Temperature; t != nil && !fixedSampling(model) && !c.hasExtra("temperature") && !math.IsNaN(*t) && !math.IsInf(*t, 0) {
		fields = append(fields, field{"temperature", strconv.AppendFloat(nil, *t, 'f', -1, 64)})
	}
	// From GPT-5.6 on OpenAI accepts tools in chat completions only with reasoning disabled; earlier models require the field to be
	// omitted. GPT-6 Astra and 6.1 accept no tools here at all, and go-openai reports that.
	if len(req.Tools) > 0 && !c.hasExtra("reasoning_effort") &&
		(strings.HasPrefix(model, "gpt-5.6") || model == openai.GPT6Sol || model == openai.GPT6Luna) {
		req.ReasoningEffort = openai.ReasoningEffortNone
	}
	return req, fields
}

func (c *Client) messages(r Request) []openai.ChatCompletionMessage {
	out := make([]openai.ChatCompletionMessage, 0, len(r.Messages)+1)
	if r.System != "" {
		out = append(out, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: r.System})
	}
	for _, m := range fromUser(r.Messages) {
		msg := openai.ChatCompletionMessage{Role: string(m.Role), Content: m.Text}
		switch m.Role {
		case Assistant:
			if c.end.EchoReasoning {
				msg.ReasoningContent = m.Reasoning
			}
			for _, call := range m.Calls {
				args := call.Arguments
				if !json.Valid([]byte(args)) {
					args = "{}" // several endpoints parse the arguments of earlier calls and refuse the whole history
				}
				msg.ToolCalls = append(msg.ToolCalls, openai.ToolCall{ID: call.ID, Type: openai.ToolTypeFunction,
					Function: openai.FunctionCall{Name: call.Name, Arguments: args}})
			}
			if msg.Content == "" && len(msg.ToolCalls) == 0 {
				msg.Content = nothing
			}
		case Tool:
			msg.ToolCallID = m.CallID
			fallthrough
		default:
			if !m.bare() {
				msg.Content, msg.MultiContent = "", chatParts(m)
			} else if msg.Content == "" {
				msg.Content = nothing
			}
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

// splice inserts fields at the front of the JSON object in req's body, without parsing the body, which may be a whole conversation.
func splice(req *http.Request, fields []field) {
	if len(fields) == 0 || req.GetBody == nil {
		return
	}
	front := frontOf(fields)
	whole := req.GetBody
	with := func() (io.ReadCloser, error) {
		body, err := whole()
		if err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(body, make([]byte, 1)); err != nil { // the brace, which is part of front
			return nil, err
		}
		return struct {
			io.Reader
			io.Closer
		}{io.MultiReader(strings.NewReader(string(front)), body), body}, nil
	}
	body, err := with()
	if err != nil {
		return
	}
	req.Body, req.GetBody = body, with
	req.ContentLength += int64(len(front)) - 1
}
