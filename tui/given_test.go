package tui

import (
	"strings"
	"testing"

	"centurion"
)

// R5: show tells what a session was given: its system prompt by name and hash, with Prompt whole, the shared texts, and its
// first message whole, however long that is.
func TestShowGiven(t *testing.T) {
	first := strings.Repeat("a line of the brief\n", 60) + "the last line"
	s := Shown{Task: &centurion.Task{ID: "tsk_1", Number: 1, Agent: "planner", Title: "Plan", Status: centurion.TaskRunning, Session: "ses_1"},
		Session: &centurion.Session{ID: "ses_1", Title: "Plan", Agent: "planner", Metadata: centurion.SessionMeta{Address: "0/1",
			System: "You are the Planner.\n\x1b[2JLook first.\n", AgentFile: ".opencode/agents/planner.md", Given: []centurion.Given{
				{Path: ".opencode/context.md", Version: strings.Repeat("ab", 32), Bytes: 1200, Whole: true},
				{Path: ".opencode/summary.md", Version: strings.Repeat("cd", 32), Bytes: 1}}}},
		Messages: []centurion.Message{{Role: centurion.RoleUser, Origin: centurion.OriginParent, Parts: []centurion.Part{{Type: centurion.PartText, Text: first}}}}}
	var brief, whole strings.Builder
	if err := Show(&brief, s, ShowOptions{Now: curtain, Width: 100}); err != nil {
		t.Fatal(err)
	}
	if err := Show(&whole, s, ShowOptions{Now: curtain, Width: 100, Prompt: true}); err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(brief.String(), "◇ parent")
	all, _, _ := strings.Cut(whole.String(), "◇ parent")
	golden(t, "given", head+"~~~\n"+all)
	if n := strings.Count(brief.String(), "a line of the brief"); n != 60 || !strings.Contains(brief.String(), "the last line") {
		t.Errorf("%d lines of the first message", n)
	}
	for text, want := range map[string]bool{head: false, all: true} {
		if strings.Contains(text, "Look first.") != want || strings.Contains(text, "\x1b") {
			t.Errorf("system prompt shown: %t, want %t\n%s", !want, want, text)
		}
	}
	s.Session.Metadata = centurion.SessionMeta{}
	brief.Reset()
	if err := Show(&brief, s, ShowOptions{Prompt: true}); err != nil || strings.Contains(brief.String(), "sha256") {
		t.Errorf("a session without a prompt: %v\n%s", err, brief.String())
	}
}
