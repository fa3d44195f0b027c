package view

import (
	"cmp"
	"encoding/json"
	"strings"

	"centurion/text"
)

// ToolLine describes a tool call in one line: the tool and its title or, before it has one, its most telling argument.
func ToolLine(p Fact) string {
	if p.Tool == "" {
		return ""
	}
	return strings.TrimSpace(text.Clean(p.Tool) + " " + cmp.Or(text.Clean(p.Title), ToolSubject(p.Tool, p.Input)))
}

// subjects are the tool arguments that say what a call is about, best first.
var subjects = [...]string{"command", "file_path", "filePath", "path", "pattern", "description", "title", "item", "task_id", "task", "summary"}

// ToolSubject returns the most telling argument of a tool call.
func ToolSubject(tool string, input json.RawMessage) string {
	var args map[string]any
	if json.Unmarshal(input, &args) != nil {
		return ""
	}
	for _, k := range subjects {
		if s, ok := args[k].(string); ok && s != "" {
			if k == "pattern" && tool == "grep" {
				return "/" + text.Clean(s) + "/"
			}
			return text.Clean(s)
		}
	}
	return ""
}

// Words spells an error's kind for people: rate_limit is "rate limit".
func Words(kind string) string {
	return text.If(kind == "gate", "a rate limit that another session met", strings.ReplaceAll(kind, "_", " "))
}

// set stores a cleaned text if there is one.
func set(to *string, s string) {
	if s = text.Clean(s); s != "" {
		*to = s
	}
}

// setIf stores a value that is not zero.
func setIf[T comparable](to *T, v T) {
	var zero T
	if v != zero {
		*to = v
	}
}
