package session

import (
	"slices"
	"strings"
	"testing"

	"centurion"
)

// words is a message of n bytes: of a person, or an answer of the model.
func words(role centurion.Role, n int) centurion.Message {
	m := centurion.Message{Role: role, Parts: []centurion.Part{{Type: centurion.PartText, Text: strings.Repeat("a", n)}}}
	if role == centurion.RoleAssistant {
		m.Finish = centurion.FinishToolCalls
	}
	return m
}

// An answer that was cut off by an error or by a person is none: its calls are not run, and it ends no row of compactions.
func TestAccepted(t *testing.T) {
	t.Parallel()
	for finish, want := range map[string]bool{centurion.FinishStop: true, centurion.FinishToolCalls: true, centurion.FinishLength: true, centurion.FinishError: false, centurion.FinishCancelled: false, "": false} {
		m := centurion.Message{Role: centurion.RoleAssistant, Finish: finish}
		if got := accepted(&m); got != want {
			t.Errorf("%q: %v", finish, got)
		}
		pointed := centurion.Message{Role: centurion.RoleUser, Parts: []centurion.Part{{Type: centurion.PartCompaction, Compaction: &centurion.Compaction{}}}}
		if row := viewOf([]centurion.Message{words(centurion.RoleUser, 1), pointed, m}).row; row != map[bool]int{true: 0, false: 1}[want] {
			t.Errorf("%q: %d compactions in a row", finish, row)
		}
	}
	for name, m := range map[string]centurion.Message{"a person's": {Role: centurion.RoleUser, Finish: centurion.FinishStop}, "a summary": {Role: centurion.RoleAssistant, Finish: centurion.FinishStop, Summary: true}} {
		if accepted(&m) {
			t.Errorf("%s counts as an answer", name)
		}
	}
}

// A conversation is cut where a turn begins. The newest turn may be larger than the rest, up to its own limit; beyond that it is cut where one of
// its steps begins, and the newest step always stays.
func TestBorder(t *testing.T) {
	t.Parallel()
	const user, model = centurion.RoleUser, centurion.RoleAssistant
	turns := []centurion.Message{words(user, 10), words(user, 98), words(model, 100), words(user, 98), words(model, 1000)} // a message of a person has two more bytes
	steps := []centurion.Message{words(user, 10), words(user, 98), words(model, 400), words(model, 400), words(model, 400)}
	for name, c := range map[string]struct {
		history      []centurion.Message
		budget, hard int
		want         int
	}{
		"all of it fits":                {turns, 1300, 1300, 1},
		"all but a byte":                {turns, 1299, 1299, 3},
		"the newest turn as a whole":    {turns, 300, 1100, 3},
		"the newest turn is too large":  {turns, 300, 1099, 4},
		"two steps fit":                 {steps, 800, 1000, 3},
		"one byte less":                 {steps, 799, 1000, 4},
		"not even one step":             {steps, 10, 20, 4},
		"the question itself":           {[]centurion.Message{words(user, 10), words(user, 5000), words(model, 10)}, 100, 200, 1},
		"two questions stay together":   {[]centurion.Message{words(user, 10), words(user, 98), words(model, 500), words(user, 98), words(user, 98), words(model, 100)}, 300, 300, 3},
		"a broken answer has no weight": {append(slices.Clone(turns), centurion.Message{Role: model, Finish: centurion.FinishError, Parts: words(model, 9999).Parts}), 1300, 1300, 1},
	} {
		if got := border(c.history, 1, c.budget, c.hard); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// A message weighs what a provider is sent of it: also thoughts that only the provider can read, calls, their results and files.
func TestWeight(t *testing.T) {
	t.Parallel()
	x := func(n int) string { return strings.Repeat("x", n) }
	answer := func(parts ...centurion.Part) centurion.Message {
		return centurion.Message{Role: centurion.RoleAssistant, Finish: centurion.FinishToolCalls, Parts: parts}
	}
	call := func(st centurion.ToolState) centurion.Part {
		st.Input = []byte(`{"a":1}`)
		return centurion.Part{Type: centurion.PartTool, Tool: "ls", State: &st}
	}
	sealed := map[string]any{"p": map[string]any{"id": x(20), "sealed": x(50)}, "q": map[string]any{"sealed": x(30)}}
	picture := []centurion.File{{Mime: centurion.MimePNG, Data: []byte("x")}}
	tokens := tokensOfFiles(picture)
	withFile := call(centurion.ToolState{Status: centurion.ToolCompleted, Attachments: []centurion.Part{{Type: centurion.PartFile, File: &picture[0]}}})
	summary := answer(centurion.Part{Type: centurion.PartText, Text: x(10)})
	summary.Summary = true
	cancelled := words(centurion.RoleAssistant, 10)
	cancelled.Finish = centurion.FinishCancelled
	open := words(centurion.RoleAssistant, 10)
	open.Finish = ""
	pictured := centurion.Message{Role: centurion.RoleUser, Parts: []centurion.Part{{Type: centurion.PartFile, File: &picture[0]}}}
	for name, c := range map[string]struct {
		m    centurion.Message
		want int
	}{
		"a thought":             {answer(centurion.Part{Type: centurion.PartReasoning, Text: x(10), Metadata: sealed}), 110},
		"a text with a thought": {answer(centurion.Part{Type: centurion.PartText, Text: x(10), Metadata: sealed}), 110},
		"a call":                {answer(call(centurion.ToolState{Status: centurion.ToolCompleted, Output: x(50)})), 2 + 7 + 50},
		"a failed call":         {answer(call(centurion.ToolState{Status: centurion.ToolError, Error: x(50)})), 2 + 7 + 50},
		"a call that runs":      {answer(call(centurion.ToolState{Status: centurion.ToolRunning, Output: x(50)})), 0},
		"a call with a picture": {answer(withFile), 2 + 7 + tokens*perToken},
		"a summary":             {summary, len(headed(x(10), true))},
		"one that was cut off":  {cancelled, 10},
		"one that is written":   {open, 0},
		"a person's picture":    {pictured, len(textOf(&pictured)) + 2 + tokens*perToken},
	} {
		if got := weight(&c.m); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
