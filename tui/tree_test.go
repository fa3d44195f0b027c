package tui

import (
	"strings"
	"testing"

	"centurion"
	"centurion/text"
)

// OPAL-30, C-17: a tree as a person reads it: a line goes straight down, what was left stands as a branch beside the current
// one, which comes last; who said what, what was called, marks, and where the conversation stands.
func TestTree(t *testing.T) {
	t.Parallel()
	b := Branches{Session: centurion.Session{ID: "ses_1", Title: "Port the parser", Agent: "commander",
		Metadata: centurion.SessionMeta{Address: "0/", ForkedFrom: &centurion.ForkedFrom{Session: "ses_0", Message: "msg_9"},
			Marks: map[string]string{"before-rewind-1": "msg_4", "good": "msg_2", "also-good": "msg_2"}}}, Leaf: "msg_9"}
	add := func(id, prev string, m centurion.Message, said string, calls ...string) {
		m.ID, m.Prev = id, prev
		m.Parts = append(m.Parts, centurion.Part{Type: centurion.PartText, Text: said})
		for _, c := range calls {
			m.Parts = append(m.Parts, centurion.Part{Type: centurion.PartTool, Tool: c})
		}
		b.Messages = append(b.Messages, m)
	}
	user := func(o centurion.Origin) centurion.Message {
		return centurion.Message{Role: centurion.RoleUser, Origin: o}
	}
	answer := centurion.Message{Role: centurion.RoleAssistant, Agent: "commander", Finish: centurion.FinishStop}
	broken, summary, pointer := answer, answer, user(centurion.OriginHost)
	broken.Finish, summary.Summary = centurion.FinishError, true
	pointer.Parts = []centurion.Part{{Type: centurion.PartCompaction, Compaction: &centurion.Compaction{Auto: true}}}
	add("msg_1", "", user(centurion.OriginPerson), "Port the parser to Go,\n\tand keep \x1b[31mits tests\x1b[0m green")
	add("msg_2", "msg_1", answer, "I look at it.", "read", "grep", "grep")
	add("msg_3", "msg_2", answer, "", "delegate_task")
	add("msg_4", "msg_3", user(centurion.OriginHost), "Task completed: a result that is much longer than the line has cells for and is cut where the line ends")
	add("msg_5", "msg_2", user(centurion.OriginPerson), "By hand, please.")
	add("msg_6", "msg_5", broken, "I wr")
	add("msg_7", "msg_5", pointer, "")
	add("msg_8", "msg_7", summary, "The goal is to port it.")
	add("msg_9", "msg_8", answer, "Done.")
	add("msg_a", "msg_lost", answer, "Behind a gap.")
	var out strings.Builder
	if err := Tree(&out, b, ShowOptions{Width: 80}); err != nil {
		t.Fatal(err)
	}
	golden(t, "tree", out.String())
	for line := range strings.Lines(out.String()) {
		if n := text.Width(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("%d cells: %s", n, line)
		}
	}
}

// A message in few cells keeps what it called, and cuts what it said.
func TestMessageWords(t *testing.T) {
	said := func(finish string, parts ...centurion.Part) centurion.Message {
		return centurion.Message{Role: centurion.RoleAssistant, Finish: finish, Parts: parts}
	}
	long := centurion.Part{Type: centurion.PartText, Text: strings.Repeat("word ", 20)}
	read, bash := centurion.Part{Type: centurion.PartTool, Tool: "read"}, centurion.Part{Type: centurion.PartTool, Tool: "bash"}
	for want, m := range map[string]centurion.Message{
		"word word … → read, bash": said(centurion.FinishToolCalls, long, read, bash),
		"→ read":                   said(centurion.FinishToolCalls, read),
		"(broke off) → read":       said("", read),
		"word word word word wor…": said(centurion.FinishStop, long),
	} {
		if got := MessageWords(m, 24); got != want || text.Width(got) > 24 {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
