package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// The scanner below finds the bounds of JSON values without decoding them, because most of a request is history that has been read
// before. It accepts some invalid JSON; encoding/json decodes its results where the content matters.

var errJSON = errors.New("the body is not a JSON object")

// eachField calls f with every field of the JSON object b, in order. Keys are raw, without their quotes.
func eachField(b []byte, f func(key string, value []byte)) error {
	i := space(b, 0)
	if i >= len(b) || b[i] != '{' {
		return errJSON
	}
	i = space(b, i+1)
	if i < len(b) && b[i] == '}' {
		return atEnd(b, i+1)
	}
	for {
		end, ok := value(b, i)
		if !ok || b[i] != '"' {
			return errJSON
		}
		key := string(b[i+1 : end-1])
		i = space(b, end)
		if i >= len(b) || b[i] != ':' {
			return errJSON
		}
		i = space(b, i+1)
		if end, ok = value(b, i); !ok {
			return errJSON
		}
		f(key, b[i:end])
		i = space(b, end)
		switch {
		case i < len(b) && b[i] == ',':
			i = space(b, i+1)
		case i < len(b) && b[i] == '}':
			return atEnd(b, i+1)
		default:
			return errJSON
		}
	}
}

// eachElement calls f with every element of the JSON array b that starts at or after the offset from, which is 0 or the end of an
// element, and with the element's end.
func eachElement(b []byte, from int, f func(element []byte, end int) error) error {
	i := from
	if from == 0 {
		i = space(b, 0)
		if i >= len(b) || b[i] != '[' {
			return errors.New("messages is not an array")
		}
		if i = space(b, i+1); i < len(b) && b[i] == ']' {
			return nil
		}
	} else {
		i = space(b, i)
		if i < len(b) && b[i] == ']' {
			return nil
		}
		if i >= len(b) || b[i] != ',' {
			return errJSON
		}
		i = space(b, i+1)
	}
	for {
		end, ok := value(b, i)
		if !ok {
			return errJSON
		}
		if err := f(b[i:end], end); err != nil {
			return err
		}
		i = space(b, end)
		switch {
		case i < len(b) && b[i] == ',':
			i = space(b, i+1)
		case i < len(b) && b[i] == ']':
			return nil
		default:
			return errJSON
		}
	}
}

func atEnd(b []byte, i int) error {
	if space(b, i) != len(b) {
		return errJSON
	}
	return nil
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// value returns the end of the value that begins at i.
func value(b []byte, i int) (end int, ok bool) {
	if i >= len(b) {
		return 0, false
	}
	switch b[i] {
	case '"':
		return quoted(b, i)
	case '{', '[':
		for depth := 0; i < len(b); {
			switch b[i] {
			case '"':
				if i, ok = quoted(b, i); !ok {
					return 0, false
				}
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1, true
				}
			}
			i++
		}
		return 0, false
	}
	start := i
	for i < len(b) && !strings.ContainsRune(",]} \n\r\t:", rune(b[i])) {
		i++
	}
	return i, i > start
}

// quoted returns the end of the string that begins at i.
func quoted(b []byte, i int) (end int, ok bool) {
	i++
	for {
		n := bytes.IndexByte(b[min(i, len(b)):], '"')
		if n < 0 {
			return 0, false
		}
		i += n
		escapes := 0
		for b[i-1-escapes] == '\\' {
			escapes++ // stops at the opening quote at the latest
		}
		i++
		if escapes%2 == 0 {
			return i, true
		}
	}
}

// commonPrefix returns the length of the common prefix of a and b.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	if bytes.Equal(a[:n], b[:n]) {
		return n
	}
	lo, hi := 0, n // equal up to lo, different before hi
	for lo+1 < hi {
		mid := (lo + hi) / 2
		if bytes.Equal(a[lo:mid], b[lo:mid]) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// Message is one message of a request.
type Message struct {
	Role      string // system, user, assistant or tool
	Text      string
	Reasoning string
	Calls     []Call // of an assistant
	CallID    string // of a tool
	Files     []File // of a user or a tool

	fault string // its fault on its own
}

type wireMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Reasoning  string          `json:"reasoning_content"`
	ToolCallID string          `json:"tool_call_id"`
	Files      []File          `json:"scripted_files"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string  `json:"name"`
			Arguments *string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// readMessage decodes one message and checks it on its own.
func readMessage(b []byte) Message {
	var w wireMessage
	if err := json.Unmarshal(b, &w); err != nil {
		return Message{fault: "it cannot be read: " + err.Error()}
	}
	m := Message{Role: w.Role, Reasoning: w.Reasoning, CallID: w.ToolCallID}
	var present bool
	m.Text, m.Files, present, m.fault = readContent(w.Role, w.Content)
	m.Files = withRole(append(m.Files, w.Files...), m.Role)
	ids := map[string]bool{}
	for i, c := range w.ToolCalls {
		call := Call{ID: c.ID, Name: c.Function.Name}
		if c.Function.Arguments != nil {
			call.Arguments = *c.Function.Arguments
		}
		m.Calls = append(m.Calls, call)
		switch {
		case m.fault != "":
		case c.ID == "":
			m.fault = fmt.Sprintf("tool call %d has no id", i)
		case ids[c.ID]:
			m.fault = fmt.Sprintf("two tool calls have the id %q", c.ID)
		case c.Type != "function":
			m.fault = fmt.Sprintf("tool call %q has the type %q instead of function", c.ID, c.Type)
		case c.Function.Name == "":
			m.fault = fmt.Sprintf("tool call %q names no function", c.ID)
		case !isObject(call.Arguments):
			m.fault = fmt.Sprintf("the arguments of tool call %q are no JSON object: %.80s", c.ID, call.Arguments)
		}
		ids[c.ID] = true
	}
	switch {
	case m.fault != "":
	case m.Role != "assistant" && len(m.Calls) > 0:
		m.fault = "a message of role " + m.Role + " has tool calls"
	case m.Role != "tool" && m.CallID != "":
		m.fault = "a message of role " + m.Role + " has a tool_call_id"
	case m.Role == "tool" && m.CallID == "":
		m.fault = "a tool result has no tool_call_id"
	case m.Role == "assistant" && m.Text == "" && len(m.Calls) == 0:
		m.fault = "an assistant message has neither text nor tool calls"
	case m.Role == "tool" && !present:
		m.fault = "a tool result has no content"
	case (m.Role == "system" || m.Role == "developer" || m.Role == "user") && m.Text == "" && len(m.Files) == 0:
		m.fault = "a message of role " + m.Role + " is empty"
	}
	if m.Role == "developer" {
		m.Role = "system"
	}
	return m
}

// readContent returns a content's text and files, whether there is any content, and its fault.
func readContent(role string, b json.RawMessage) (text string, files []File, present bool, fault string) {
	switch {
	case len(b) == 0 || string(b) == "null":
		return "", nil, false, ""
	case b[0] == '"':
		if err := json.Unmarshal(b, &text); err != nil {
			return "", nil, true, "its content cannot be read: " + err.Error()
		}
		return text, nil, true, ""
	}
	text, files, fault = readParts(role, b)
	return text, files, true, fault
}

func isObject(s string) bool {
	s = strings.TrimSpace(s)
	return strings.HasPrefix(s, "{") && json.Valid([]byte(s))
}
