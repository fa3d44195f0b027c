package scripted

import (
	"centurion"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

var toolName = centurion.Pattern(`^[a-zA-Z0-9_-]{1,64}$`)

// check returns what a strict provider would refuse about a request, or "".
func check(r Request, rewinds, recasts bool) string {
	in := r.in
	in.read()
	if in.fault != "" {
		return in.fault
	}
	if r.Model == "" {
		return "the request names no model"
	}
	if len(in.fields["stream_options"]) > 0 && !r.Stream {
		return "stream_options is only allowed when stream is true"
	}
	if fault := cmp.Or(checkOrder(in.msgs), checkFiles(in.msgs)); fault != "" {
		return fault
	}
	s := in.sess
	s.mu.Lock()
	defer s.mu.Unlock()
	tools := in.fields["tools"]
	if summary := summaryIn(in.msgs); s.known && summary != s.summary {
		s.summary, s.tools = summary, append([]byte(nil), tools...)
		s.names, s.fault = readTools(tools)
		if summary != "" {
			s.system = in.msgs[0].Text
			s.prompted(in.msgs[0])
		}
	}
	if recasts && s.known && agentIn(s.system) != r.Agent() {
		s.known = false
		s.prompted(in.msgs[0])
	}
	if !s.known {
		s.known, s.system, s.tools, s.summary = true, in.msgs[0].Text, append([]byte(nil), tools...), summaryIn(in.msgs)
		if s.names, s.fault = readTools(tools); s.fault != "" {
			return s.fault
		}
	}
	switch {
	case s.fault != "":
		return s.fault
	case s.system != in.msgs[0].Text:
		return "the system prompt is not that of the session's first request: it differs at " + difference(s.system, in.msgs[0].Text)
	case string(s.tools) != string(tools):
		return "the tools are not those of the session's first request: they differ at " + difference(string(s.tools), string(tools))
	}
	return s.goOn(r, in.msgs, rewinds)
}

// summaryIn returns the first message of the user if it holds a summary: with a new one, a program may also offer other tools, and begin with
// another system prompt.
func summaryIn(msgs []Message) string {
	if len(msgs) > 1 && strings.Contains(msgs[1].Text, summaryOpen) {
		return msgs[1].Text
	}
	return ""
}

// prompted lets the session continue with another system prompt, and with its history.
func (s *session) prompted(system Message) {
	for i, l := range s.lines {
		s.lines[i].msgs = slices.Concat([]Message{system}, l.msgs[1:])
	}
}

// checkOrder checks the order of the messages.
func checkOrder(msgs []Message) string {
	if len(msgs) == 0 {
		return "messages is empty"
	}
	var open []Call // calls without a result so far
	for i, m := range msgs {
		at := func(format string, a ...any) string {
			return fmt.Sprintf("messages[%d]: ", i) + fmt.Sprintf(format, a...)
		}
		if m.fault != "" {
			return at("%s", m.fault)
		}
		prev := ""
		if i > 0 {
			prev = msgs[i-1].Role
		}
		if len(open) > 0 && m.Role != "tool" {
			return at("tool call %q has no result: a message of role %s follows instead", open[0].ID, m.Role)
		}
		switch m.Role {
		case "system":
			if i > 0 {
				return at("only the first message may be the system prompt")
			}
		case "user":
		case "assistant":
			if prev != "user" && prev != "tool" {
				return at("an assistant message follows one of role %s", prev)
			}
			open = m.Calls
		case "tool":
			if len(open) == 0 {
				return at("the result for %q answers no open tool call", m.CallID)
			}
			if open[0].ID != m.CallID {
				return at("the result for %q stands where the one for %q is due", m.CallID, open[0].ID)
			}
			open = open[1:]
		default:
			return at("unknown role %q", m.Role)
		}
		if i == 0 && m.Role != "system" {
			return at("the first message is of role %s instead of system", m.Role)
		}
	}
	last := msgs[len(msgs)-1].Role
	switch {
	case len(open) > 0:
		return fmt.Sprintf("tool call %q has no result: the messages end", open[0].ID)
	case last != "user" && last != "tool":
		return "the last message is of role " + last + " instead of user or tool"
	}
	return ""
}

// readTools returns the names of the offered tools, and any fault of them.
func readTools(b []byte) (names []string, fault string) {
	if len(b) == 0 || string(b) == "null" {
		return nil, ""
	}
	var tools []struct {
		Type     string `json:"type"`
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	}
	if err := json.Unmarshal(b, &tools); err != nil {
		return nil, "tools cannot be read: " + err.Error()
	}
	if len(tools) == 0 {
		return nil, "tools is an empty list; leave it out instead"
	}
	seen := map[string]bool{}
	for i, t := range tools {
		name := t.Function.Name
		names = append(names, name)
		var schema struct {
			Type string `json:"type"`
		}
		switch {
		case fault != "":
		case t.Type != "function":
			fault = fmt.Sprintf("tools[%d] has the type %q instead of function", i, t.Type)
		case !toolName().MatchString(name):
			fault = fmt.Sprintf("tools[%d] has the name %q; only letters, digits, _ and - are allowed, 64 at most", i, name)
		case seen[name]:
			fault = fmt.Sprintf("two tools have the name %q", name)
		case len(t.Function.Parameters) > 0 && (json.Unmarshal(t.Function.Parameters, &schema) != nil || schema.Type != "object"):
			fault = fmt.Sprintf("the parameters of tool %q are no schema of type object", name)
		}
		seen[name] = true
	}
	return names, fault
}

// difference quotes the place where two texts differ.
func difference(a, b string) string {
	n := commonPrefix([]byte(a), []byte(b))
	from := max(0, n-20)
	end := func(s string) string {
		return strings.ToValidUTF8(s[min(from, len(s)):min(n+20, len(s))], "")
	}
	return fmt.Sprintf("byte %d: %q then, %q now", n, end(a), end(b))
}
