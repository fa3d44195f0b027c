package scripted

import (
	"centurion"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strings"
)

// The parts of a request of the Messages API.
type (
	messagesRequest struct {
		MaxTokens   int               `json:"max_tokens"`
		Stream      bool              `json:"stream"`
		Temperature *float64          `json:"temperature"`
		System      messagesContent   `json:"system"`
		Messages    []messagesMessage `json:"messages"`
		Tools       []messagesTool    `json:"tools"`
	}
	messagesMessage struct {
		Role    string          `json:"role"`
		Content messagesContent `json:"content"`
	}
	messagesTool struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
		Cache       json.RawMessage `json:"cache_control"`
	}
	messagesBlock struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
		ToolUseID string          `json:"tool_use_id"`
		Content   messagesContent `json:"content"`
		Cache     json.RawMessage `json:"cache_control"`
		Title     string          `json:"title"`
		Source    *messagesSource `json:"source"`
	}
)

// messagesContent is a list of blocks, or a text, which is one block.
type messagesContent []messagesBlock

// UnmarshalJSON accepts both forms.
func (c *messagesContent) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*c = messagesContent{{Type: "text", Text: s}}
		return nil
	}
	return json.Unmarshal(b, (*[]messagesBlock)(c))
}

func (c messagesContent) text() string {
	var texts []string
	for _, b := range c {
		if b.Type == "text" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// fromMessages translates a request of the Messages API. The error is what a strict provider would refuse about it; the demands of chat
// completions are checked later.
func (m *Model) fromMessages(h http.Header, body []byte) ([]byte, error) {
	var in messagesRequest
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, errJSON
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("the request cannot be read: %w", err)
	}
	if !m.cfg.NoCheck {
		fault := cmp.Or(checkMessages(h, &in), m.checkThinking(in.Messages))
		if fault != "" {
			return nil, errors.New(fault)
		}
	}
	var tools []chatTool
	for _, t := range in.Tools {
		tools = append(tools, chatTool{"function", chatFunction{Name: t.Name, Description: t.Description, Parameters: t.InputSchema}})
	}
	if delete(fields, "system"); len(tools) > 0 {
		fields["tools"], _ = json.Marshal(tools) // it was JSON a moment ago
	}
	fields["messages"], _ = json.Marshal(chatMessages(&in))
	return json.Marshal(fields)
}

func chatMessages(in *messagesRequest) []chatMessage {
	out := []chatMessage{}
	if s := in.System.text(); s != "" {
		out = append(out, chatMessage{Role: "system", Content: s})
	}
	for _, m := range in.Messages {
		next := chatMessage{Role: m.Role, Content: m.Content.text(), Files: m.Content.files()}
		for _, b := range m.Content {
			switch b.Type {
			case "thinking":
				next.Reasoning += b.Thinking
			case "tool_use":
				next.ToolCalls = append(next.ToolCalls, chatCall{b.ID, "function", chatFunction{Name: b.Name, Arguments: new(string(b.Input))}})
			case "tool_result":
				out = append(out, chatMessage{Role: "tool", ToolCallID: b.ToolUseID, Content: b.Content.text(), Files: b.Content.files()})
			}
		}
		if m.Role == "assistant" || next.Content != "" || len(next.Files) > 0 {
			out = append(out, next)
		}
	}
	return out
}

const maxCacheControls = 4 // in one request

var blockID = centurion.Pattern(`^[a-zA-Z0-9_-]+$`)

// checkMessages returns what only the Messages API would refuse about a request, or "".
func checkMessages(h http.Header, in *messagesRequest) string {
	switch {
	case h.Get("anthropic-version") != "2023-06-01":
		return "anthropic-version: header is required"
	case in.MaxTokens < 1:
		return "max_tokens: Field required"
	case in.Temperature != nil && (*in.Temperature < 0 || *in.Temperature > 1):
		return "temperature: Input should be between 0 and 1"
	case !in.Stream:
		return "stream: the scripted model only streams here"
	case len(in.Messages) == 0 || in.Messages[0].Role != "user":
		return "messages: first message must use the user role"
	case in.Messages[len(in.Messages)-1].Role != "user":
		return "messages: the last message must use the user role"
	}
	marks := cached(in.System)
	for _, t := range in.Tools {
		marks += cached(messagesContent{{Cache: t.Cache}})
	}
	var open []string // calls of the previous message
	for i, m := range in.Messages {
		marks += cached(m.Content)
		if i > 0 && m.Role == in.Messages[i-1].Role {
			return fmt.Sprintf("messages.%d: two messages of role %s follow each other", i, m.Role)
		}
		var fault string
		if m.Role == "assistant" {
			open, fault = checkAnswer(m.Content)
		} else {
			fault = checkUser(m.Content, open)
			open = nil
		}
		if len(m.Content) == 0 {
			fault = "it has no content"
		}
		if fault != "" {
			return fmt.Sprintf("messages.%d: %s", i, fault)
		}
	}
	if marks > maxCacheControls {
		return fmt.Sprintf("a maximum of %d blocks with cache_control may be provided, found %d", maxCacheControls, marks)
	}
	return ""
}

func cached(c messagesContent) (n int) {
	for _, b := range c {
		if len(b.Cache) > 0 && string(b.Cache) != "null" {
			n++
		}
	}
	return n
}

// checkAnswer checks a message of the assistant and returns the ids of its calls.
func checkAnswer(c messagesContent) (calls []string, fault string) {
	for i, b := range c {
		switch {
		case b.Type == "text" && strings.TrimSpace(b.Text) == "":
			return nil, "text content blocks must contain non-whitespace text"
		case b.Type == "thinking" && (b.Signature == "" || strings.HasPrefix(b.Signature, signed) && b.Signature != signatureOf(b.Thinking)):
			return nil, fmt.Sprintf("content.%d: Invalid `signature` in `thinking` block", i)
		case strings.HasSuffix(b.Type, "thinking") && len(b.Cache) > 0:
			return nil, fmt.Sprintf("content.%d: cache_control cannot be set for thinking blocks", i)
		case b.Type == "tool_use" && !blockID().MatchString(b.ID):
			return nil, fmt.Sprintf("content.%d.tool_use.id: %q does not match the pattern", i, b.ID)
		case b.Type == "tool_use" && !isObject(string(b.Input)):
			return nil, fmt.Sprintf("content.%d.tool_use.input: it is no object", i)
		case b.Type == "tool_use" && slices.Contains(calls, b.ID):
			return nil, "`tool_use` ids must be unique"
		case b.Type == "tool_use":
			calls = append(calls, b.ID)
		case !slices.Contains([]string{"text", "thinking", "redacted_thinking"}, b.Type):
			return nil, fmt.Sprintf("content.%d: unexpected type %q", i, b.Type)
		}
	}
	return calls, ""
}

// checkUser checks a user message that follows an answer with these calls.
func checkUser(c messagesContent, open []string) string {
	others := false
	open = slices.Clone(open)
	for i, b := range c {
		switch b.Type {
		case "tool_result":
			n := slices.Index(open, b.ToolUseID)
			if n < 0 {
				return fmt.Sprintf("content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s", i, b.ToolUseID)
			}
			if open = slices.Delete(open, n, n+1); others {
				return "`tool_result` blocks must come first"
			}
			if fault := b.Content.checkResult(); fault != "" {
				return fmt.Sprintf("content.%d: %s", i, fault)
			}
		case "image", "document":
			others = true
			if _, fault, _ := b.file(); fault != "" {
				return fmt.Sprintf("content.%d: %s", i, fault)
			}
		case "text":
			if others = true; strings.TrimSpace(b.Text) == "" {
				return "text content blocks must contain non-whitespace text"
			}
		default:
			return fmt.Sprintf("content.%d: unexpected type %q", i, b.Type)
		}
	}
	if len(open) > 0 {
		return "`tool_use` ids were found without `tool_result` blocks immediately after: " + strings.Join(open, ", ")
	}
	return ""
}

// signed starts every signature of ours. Other signatures cannot be checked.
const signed = "signed by script: "

// signatureOf signs thinking, as far as a scripted model can: other text gets another signature.
func signatureOf(thinking string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(thinking))
	return fmt.Sprintf(signed+"%016x==", h.Sum64())
}

// think remembers the thinking with which calls were made.
func (m *Model) think(e *encoder) {
	if e.a.Reasoning == "" || len(e.a.Calls) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.thoughts == nil {
		m.thoughts = map[string]string{}
	}
	for i := range e.a.Calls {
		m.thoughts[e.callID(i)] = signatureOf(e.a.Reasoning)
	}
}

// checkThinking checks that the newest answer of a conversation still has the thinking its calls were made with: while they are being
// answered it must precede them.
func (m *Model) checkThinking(msgs []messagesMessage) string {
	last := len(msgs) - 2
	if last < 0 {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range msgs[last].Content {
		want := m.thoughts[b.ID]
		if b.Type != "tool_use" || want == "" {
			continue
		}
		if first := msgs[last].Content[0]; first.Type != "thinking" {
			return fmt.Sprintf("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`", last, first.Type)
		} else if first.Signature != want {
			return fmt.Sprintf("messages.%d.content.0: `thinking` blocks in the latest assistant message cannot be modified", last)
		}
	}
	return ""
}

// appendMessagesError writes an error in the Messages API's form.
func appendMessagesError(b []byte, e Error) []byte {
	kind := map[int]string{400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
		404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error", 529: "overloaded_error"}[e.Status]
	b = appendText(append(b, `{"type":"error","error":{"type":`...), cmp.Or(e.Type, kind, "api_error"))
	b = appendText(append(b, `,"message":`...), cmp.Or(e.Message, http.StatusText(e.Status), "Overloaded"))
	return append(b, "}}"...)
}
