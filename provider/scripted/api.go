package scripted

import (
	"encoding/json"
	"net/http"
	"strings"
)

// api is the API of a request. Requests are translated to chat completions on arrival and answers are written in their API's form;
// everything in between knows only one form of conversation.
type api int

const (
	apiNone api = iota
	apiChat
	apiResponses
	apiMessages
)

func apiOf(path string) api {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return apiChat
	case strings.HasSuffix(path, "/responses"):
		return apiResponses
	case strings.HasSuffix(path, "/messages"):
		return apiMessages
	}
	return apiNone
}

// asChat translates a request to chat completions, so that scripts and checks are the same for every API. The error is what only the
// request's own API refuses.
func (m *Model) asChat(api api, h http.Header, body []byte) ([]byte, error) {
	switch api {
	case apiResponses:
		return fromItems(body)
	case apiMessages:
		return m.fromMessages(h, body)
	}
	return body, nil
}

// The forms of a chat completion that others are translated to.
type (
	chatTool struct {
		Type     string       `json:"type"`
		Function chatFunction `json:"function"`
	}
	chatFunction struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Arguments   *string         `json:"arguments,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	}
	chatMessage struct {
		Role       string     `json:"role"`
		Content    string     `json:"content"`
		Reasoning  string     `json:"reasoning_content,omitempty"`
		ToolCalls  []chatCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
		Files      []File     `json:"scripted_files,omitempty"` // those translated, and checked in their API's form
	}
	chatCall struct {
		ID       string       `json:"id"`
		Type     string       `json:"type"`
		Function chatFunction `json:"function"`
	}
)
