package tui

import (
	"cmp"
	"encoding/json"
	"strings"

	"centurion/event/view"
	"centurion/text"
)

// toolLine says in one line what a tool call does: the tool and its title, or, before it has one, the argument that
// tells most.
func toolLine(p view.Fact) string {
	if p.Tool == "" {
		return ""
	}
	return strings.TrimSpace(text.Clean(p.Tool) + " " + cmp.Or(text.Clean(p.Title), toolSubject(p.Tool, p.Input)))
}

// subjects are the arguments of tools that say what a call is about, best first.
var subjects = [...]string{"command", "file_path", "filePath", "path", "pattern", "description", "title", "item", "task_id", "task", "summary"}

func toolSubject(tool string, input json.RawMessage) string {
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
