package anthropic

import (
	"bytes"
	"encoding/json"
	"strings"

	"centurion/provider"
)

// nothing replaces the text of an empty message: the API refuses empty or white space texts.
const nothing = "(empty)"

// messages formats the history for the API: with alternating roles, and all results of an answer's calls at the start of the following
// message of the user.
func messages(r provider.Request) []wireMessage {
	var out []wireMessage
	add := func(role string, blocks ...block) {
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			return
		}
		out = append(out, wireMessage{role, blocks})
	}
	for _, m := range r.Messages {
		switch m.Role {
		case provider.Assistant:
			add("assistant", answerBlocks(m)...)
		case provider.Tool:
			add("user", resultBlock(m))
		default:
			add("user", append(fileBlocks(m.Files), textBlocks(m)...)...)
		}
	}
	return out
}

func filled(s string) string {
	if strings.TrimSpace(s) == "" {
		return nothing
	}
	return s
}

// answerBlocks restores an answer with its blocks in their original order.
func answerBlocks(m provider.Message) (out []block) {
	text, calls, said := 0, 0, false
	until := func(t, c int) {
		if t = min(max(t, text), len(m.Text)); strings.TrimSpace(m.Text[text:t]) != "" {
			out = append(out, block{Type: "text", Text: m.Text[text:t]})
			text, said = t, true
		}
		for c = min(c, len(m.Calls)); calls < c; calls++ {
			call := m.Calls[calls]
			out = append(out, block{Type: "tool_use", ID: safeID(call.ID), Name: call.Name, Input: object(call.Arguments)})
			said = true
		}
	}
	for _, t := range m.Thoughts {
		if b, ok := thought(t); ok {
			until(t.Said, t.Calls)
			out = append(out, b)
		}
	}
	until(len(m.Text), len(m.Calls))
	if !said {
		out = append(out, block{Type: "text", Text: nothing})
	}
	return out
}

// thought is a block of thinking as received. Without a signature of this API it cannot be sent back.
func thought(t provider.Thought) (block, bool) {
	ours, _ := t.Metadata[metadataKey].(map[string]any)
	if data, _ := ours[redactedKey].(string); data != "" {
		return block{Type: "redacted_thinking", Data: data}, true
	}
	signature, _ := ours[signatureKey].(string)
	return block{Type: "thinking", Thinking: &t.Text, Signature: signature}, signature != ""
}

// object returns arguments as an object, which the API requires.
func object(arguments string) json.RawMessage {
	if s := strings.TrimSpace(arguments); strings.HasPrefix(s, "{") && json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	return json.RawMessage("{}")
}

// safeID replaces characters that the API does not accept in the id of a call, which may come from another provider.
func safeID(id string) string {
	ok := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
	}
	if id == "" {
		return "call"
	}
	return strings.Map(func(r rune) rune {
		if ok(r) {
			return r
		}
		return '_'
	}, id)
}

// marshal leaves characters such as < unescaped, which is shorter and consistent with the rest of the program.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
