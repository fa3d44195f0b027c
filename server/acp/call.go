package acp

import (
	"context"
	"path/filepath"
	"strings"
	"sync"

	"centurion"
)

// telling is what was told of a session, as far as the next update depends on it.
type telling struct {
	mu     sync.Mutex        // held while something is told
	gap    bool              // pieces of texts were lost: the rest comes when the message is whole
	sent   map[string]int    // bytes of a text, by part
	last   string            // the kind and part of the newest text, "" after something else
	calls  map[string]string // the told state of a call, by part
	prints map[string]string // what a running command has printed, by part
	names  map[string]string // of tasks
}

// reset forgets what was told.
func (t *telling) reset() {
	t.sent, t.calls, t.prints, t.names = map[string]int{}, map[string]string{}, map[string]string{}, map[string]string{}
}

// toolContent is what a call shows.
type toolContent struct {
	Type    string  `json:"type"` // content or diff
	Content *block  `json:"content,omitempty"`
	Path    string  `json:"path,omitempty"`
	Old     *string `json:"oldText,omitempty"` // nil for a new file
	New     *string `json:"newText,omitempty"`
}

func inner(text string) toolContent {
	b := textBlock(text)
	return toolContent{Type: "content", Content: &b}
}

// fenced is a text that an editor shows as it is.
func fenced(s string) string {
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return fence + "\n" + s + "\n" + fence
}

type location struct {
	Path string `json:"path"`
	Line int    `json:"line,omitempty"`
}

// kinds are the protocol's kinds of tools.
var kinds = map[string]string{"read": "read", "skill": "read", "ls": "search", "glob": "search", "grep": "search", "codesearch": "search", "edit": "edit", "write": "edit",
	"bash": "execute", "run_background": "execute", "webfetch": "fetch", "websearch": "fetch", "update_todo": "think", "update_context": "think"}

// states are the protocol's states of calls.
var states = map[centurion.ToolStatus]string{centurion.ToolPending: "pending", centurion.ToolRunning: "in_progress", centurion.ToolCompleted: "completed", centurion.ToolError: "failed"}

// call is a call as a new one. The calls of tasks name their task. The caller holds the lock of telling.
func (s *session) call(part centurion.Part, session, task string) update {
	st, in := part.State, object(part.State.Input)
	u := update{Kind: "tool_call", Call: part.ID, Tool: kinds[part.Tool], Status: states[st.Status], Title: title(part.Tool, st.Title, in), Input: in}
	if u.Tool == "" {
		u.Tool = "other"
	}
	path, _ := in["filePath"].(string)
	if name := s.nameOf(task); name != "" {
		u.Title = name + ": " + u.Title
	} else if path != "" && session == s.id {
		line, _ := in["offset"].(float64)
		u.Locations = []location{{s.absolute(path), int(line)}}
	}
	text, failed := st.Result()
	diff, _ := st.Metadata["diff"].(string)
	switch {
	case !st.Ended():
		if before, ok := in["oldString"].(string); ok && path != "" {
			after, _ := in["newString"].(string)
			u.Content = []toolContent{{Type: "diff", Path: s.absolute(path), Old: &before, New: &after}}
		}
		return u
	case failed:
		u.Output = map[string]any{"error": text}
	default:
		u.Output = map[string]any{"output": text}
	}
	if u.Tool == "execute" {
		text = fenced(text)
	}
	content := []toolContent{inner(text)}
	if changed := s.diffs(path, diff); !failed && len(changed) > 0 {
		content = changed
		if exists, ok := st.Metadata["exists"].(bool); ok && !exists {
			whole, _ := in["content"].(string)
			content = []toolContent{{Type: "diff", Path: s.absolute(path), New: &whole}}
		}
	}
	u.Content = content
	return u
}

// title says what a call does: its own words, or what its tool is given.
func title(tool, given string, in map[string]any) string {
	if command, _ := in["command"].(string); command != "" {
		return "`" + centurion.Clip(command, 200) + "`"
	}
	for _, key := range []string{"filePath", "path", "pattern", "url", "query", "description", "question", "prompt", "name"} {
		if v, _ := in[key].(string); v != "" && given == "" {
			given = v
		}
	}
	if given, _, _ = strings.Cut(given, "\n"); given == "" {
		return tool
	}
	return tool + " " + centurion.Clip(given, 200)
}

func (s *session) absolute(path string) string {
	if path = filepath.FromSlash(path); !filepath.IsAbs(path) {
		path = filepath.Join(s.Directory, path)
	}
	return path
}

// diffs are the changes of a unified diff, one for each place; the texts are those places, with some lines around them.
func (s *session) diffs(path, unified string) (all []toolContent) {
	var before, after strings.Builder
	end := func() {
		if before.Len()+after.Len() > 0 {
			was, is := before.String(), after.String()
			all = append(all, toolContent{Type: "diff", Path: s.absolute(path), Old: &was, New: &is})
		}
		before.Reset()
		after.Reset()
	}
	inside := false
	for line := range strings.Lines(unified) {
		switch {
		case strings.HasPrefix(line, "@@"):
			end()
			inside = true
		case !inside:
		case line[0] == '-':
			before.WriteString(line[1:])
		case line[0] == '+':
			after.WriteString(line[1:])
		case line[0] == ' ':
			before.WriteString(line[1:])
			after.WriteString(line[1:])
		}
	}
	end()
	return all
}

// nameOf is the name of a task as people know it, "" for none.
func (s *session) nameOf(task string) string {
	t := &s.telling
	if task == "" || t.names[task] != "" {
		return t.names[task]
	}
	rec, err := s.API().Task(context.WithoutCancel(s.ctx), task)
	if err != nil {
		return task
	}
	t.names[task] = rec.Name + " " + rec.Agent
	return t.names[task]
}
