package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"centurion"
)

// The host's own record of summarized messages, besides the person's words. A poor summary thus loses neither the changed files nor the
// findings of others.
const (
	recordHead   = "\n\nRecorded by the host of what came before:"
	changedHead  = "Files that you changed with write and edit:"
	childrenHead = "What others did for you:"
	recordLine   = 400 // bytes of one line
)

// record lists, one per line and newest last, the files changed by calls in messages and the results of other agents' work, in about
// limit bytes. Entries of an earlier summary are kept.
func record(gone []centurion.Message, limit int) string {
	var files, children []string
	add := func(to *[]string, line string) {
		line = centurion.Clip(strings.Join(strings.Fields(line), " "), recordLine)
		*to = append(slices.DeleteFunc(*to, func(old string) bool { return old == line }), line)
	}
	for i := range gone {
		m := &gone[i]
		if m.Summary {
			files, children = recorded(m)
			continue
		}
		if m.Role == centurion.RoleUser {
			if line := delivered(m); line != "" {
				add(&children, line)
			}
			continue
		}
		for _, p := range m.Parts {
			if p.Type != centurion.PartTool || !sent(p) {
				continue
			}
			for _, f := range fileOf(p) {
				add(&files, f)
			}
			if line := childOf(p); line != "" {
				add(&children, line)
			}
		}
	}
	var b strings.Builder
	for _, part := range []struct {
		head  string
		lines []string
		limit int
	}{{changedHead, files, limit / 3}, {childrenHead, children, limit * 2 / 3}} {
		from, n := len(part.lines), len(part.head)
		for from > 0 && n+len(part.lines[from-1])+3 <= part.limit {
			from--
			n += len(part.lines[from]) + 3
		}
		if from == len(part.lines) {
			continue
		}
		b.WriteString("\n" + part.head)
		for _, line := range part.lines[from:] {
			b.WriteString("\n- " + line)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return recordHead + b.String()
}

// recorded returns the record in a summary.
func recorded(m *centurion.Message) (files, children []string) {
	for _, p := range m.Parts {
		rest, ok := strings.CutPrefix(p.Text, recordHead)
		if !ok {
			continue
		}
		to := &files
		for line := range strings.Lines(rest) {
			line = strings.TrimSuffix(line, "\n")
			if item, ok := strings.CutPrefix(line, "- "); ok {
				*to = append(*to, item)
			} else if line == childrenHead {
				to = &children
			}
		}
	}
	return files, children
}

// delivered returns a short form of a message that delivered a task's result, or "".
func delivered(m *centurion.Message) string {
	text := m.Text()
	first, _, _ := strings.Cut(text, "\n")
	if m.Origin != centurion.OriginHost || !strings.HasPrefix(text, "Task ") || !strings.Contains(first, " (") {
		return ""
	}
	if _, result, ok := strings.Cut(text, "<result>\n"); ok {
		first += " " + strings.TrimSuffix(result, "\n</result>")
	}
	return first
}

// childOf returns a short form of another agent's result in a call, or "".
func childOf(p centurion.Part) string {
	if !slices.Contains([]string{"sub_agent", "delegate_task", "get_task_result"}, p.Tool) {
		return ""
	}
	how, text := "", ""
	if text, _ = p.State.Result(); p.State.Status == centurion.ToolError {
		how = " failed"
	}
	return fmt.Sprintf("%s%s, %s: %s", p.Tool, how, centurion.Clip(cmp.Or(p.State.Title, string(p.State.Input)), 80), text)
}

// askedOf returns a call's question to the person with the literal answer, or "".
func askedOf(p centurion.Part) string {
	if p.Type != centurion.PartTool || p.Tool != "ask_user" || !sent(p) || p.State.Status != centurion.ToolCompleted {
		return ""
	}
	question, _ := p.State.Metadata["question"].(string)
	return "You asked: " + cmp.Or(question, p.State.Title) + "\nThe answer: " + p.State.Output
}
