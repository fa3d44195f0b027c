package centurion_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"centurion"
	"centurion/server/opencode/v1/contract"
)

// shape returns a check of JSON against one of OpenCode's shapes.
func shape(_ testing.TB, name string) func(b []byte) error {
	return func(b []byte) error { return contract.Shape(name, b) }
}

// conforms marshals v, checks it against a shape, and reads it back.
func conforms[T any](t *testing.T, check func([]byte) error, name string, v T) T {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := check(b); err != nil {
		t.Errorf("%s: %s: %v", name, b, err)
	}
	var back T
	if err := json.Unmarshal(b, &back); err != nil {
		t.Errorf("%s cannot be read back: %v", name, err)
	}
	return back
}

// same compares two values; nil and empty are not the same.
func same(t *testing.T, name string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s comes back differently (-want +got):\n%s", name, d)
	}
}

const (
	sesID = "ses_0123456789abABCDEFGHIJKLMN"
	msgID = "msg_0123456789abABCDEFGHIJKLMN"
	prtID = "prt_0123456789abABCDEFGHIJKLMN"
)

var (
	tokens = centurion.Tokens{Input: 12, Output: 34, Reasoning: 5, Cache: centurion.CacheUsage{Read: 7, Write: 8}}
	model  = centurion.ModelRef{Provider: "openai", ID: "gpt-5"}
)

// LOOP-64
func TestSessionShape(t *testing.T) {
	check := shape(t, "Session")
	for name, s := range map[string]centurion.Session{
		"zero but for the id": {ID: sesID},
		"root": {ID: sesID, Slug: "0", ProjectID: "global", Directory: "/p", Title: "Do it", Version: "0.1.0",
			Metadata: centurion.SessionMeta{Mission: "msn_1", Address: "0/"}, Time: centurion.Span{Created: 1, Updated: 2}},
		"child": {ID: sesID, Slug: "0-3", ProjectID: "p", Directory: "/p q/ü", ParentID: sesID, Cost: 0.25, Tokens: tokens, Title: "T",
			Agent: "worker", Model: &centurion.SessionModel{ID: "gpt-5", Provider: "openai"}, Version: "0.1.0",
			Metadata: centurion.SessionMeta{Mission: "m", Task: "tsk", Attempt: 2, Address: "0/3", System: "You are", Unpriced: true},
			Time:     centurion.Span{Created: 1, Updated: 2}},
	} {
		same(t, name, s, conforms(t, check, name, s))
	}
}

// A program of another kind may have put anything beside what is ours.
func TestSessionMetadataIsFree(t *testing.T) {
	b := []byte(`{"id":"` + sesID + `","slug":"s","projectID":"p","directory":"/","title":"t","version":"1","time":{"created":1,"updated":1},` +
		`"metadata":{"address":"0/","theirs":{"deep":[1,2]}}}`)
	if err := shape(t, "Session")(b); err != nil {
		t.Error(err)
	}
	var s centurion.Session
	if err := json.Unmarshal(b, &s); err != nil || s.Metadata.Address != "0/" {
		t.Errorf("%+v, %v", s.Metadata, err)
	}
}

// LOOP-70, LOOP-71
func TestMessageShapes(t *testing.T) {
	user, assistant := shape(t, "UserMessage"), shape(t, "AssistantMessage")
	for name, m := range map[string]centurion.Message{
		"zero but for ids": {ID: msgID, SessionID: sesID, Role: centurion.RoleUser},
		"full":             {ID: msgID, SessionID: sesID, Role: centurion.RoleUser, Time: centurion.MessageTime{Created: 1}, Agent: "commander", Model: model},
	} {
		same(t, name, m, conforms(t, user, name, m))
	}
	stored := centurion.Message{ID: msgID, SessionID: sesID, Role: centurion.RoleUser, Origin: centurion.OriginPerson, ParentID: msgID,
		Time: centurion.MessageTime{Created: 1, Completed: 2}, Usage: centurion.Usage{USD: 1}, Finish: "stop",
		Parts: []centurion.Part{{ID: prtID, Type: centurion.PartText, Text: "hi"}}}
	same(t, "what has no place in a user message", centurion.Message{ID: msgID, SessionID: sesID, Role: centurion.RoleUser,
		Time: centurion.MessageTime{Created: 1}}, conforms(t, user, "a user message with what only others have", stored))

	base := centurion.Message{ID: msgID, SessionID: sesID, Role: centurion.RoleAssistant, ParentID: msgID,
		Time: centurion.MessageTime{Created: 1}, Agent: "worker", Model: model, Path: centurion.MessagePath{Cwd: "/p", Root: "/p"}}
	same(t, "streaming", base, conforms(t, assistant, "streaming", base))
	done := base
	done.Time.Completed, done.Usage = 9, centurion.Usage{Tokens: tokens, USD: 0.5}
	for _, finish := range []string{centurion.FinishStop, centurion.FinishToolCalls, centurion.FinishLength, centurion.FinishFilter,
		centurion.FinishCancelled, centurion.FinishUnknown} {
		done.Finish = finish
		same(t, finish, done, conforms(t, assistant, finish, done))
	}
	done.Summary = true
	same(t, "summary", done, conforms(t, assistant, "summary", done))
	done.Summary, done.Finish = false, centurion.FinishError
	for _, e := range []centurion.MessageError{
		{Name: "UnknownError", Data: centurion.MessageErrorData{Message: "x"}},
		{Name: "MessageAbortedError", Data: centurion.MessageErrorData{Message: ""}},
		{Name: "ContextOverflowError", Data: centurion.MessageErrorData{Message: "x"}},
		{Name: "ContentFilterError", Data: centurion.MessageErrorData{Message: "x"}},
		{Name: "ProviderAuthError", Data: centurion.MessageErrorData{Message: "x", ProviderID: "openai"}},
		{Name: "APIError", Data: centurion.MessageErrorData{Message: "x", IsRetryable: new(false)}},
		{Name: "APIError", Data: centurion.MessageErrorData{Message: "x", StatusCode: 500, IsRetryable: new(true)}},
	} {
		done.Error = &e
		same(t, e.Name, done, conforms(t, assistant, e.Name, done))
	}
	done.Error = &centurion.MessageError{Name: "UnknownError", Data: centurion.MessageErrorData{Message: "x", StatusCode: 500}}
	if b, _ := json.Marshal(done); assistant(b) == nil {
		t.Error("a status stands in an error that has none: the schema is too wide to show anything")
	}
}

func TestMessageText(t *testing.T) {
	m := centurion.Message{Parts: []centurion.Part{{Type: centurion.PartReasoning, Text: "no"}, {Type: centurion.PartText, Text: "a"},
		{Type: centurion.PartTool, Tool: "ls"}, {Type: centurion.PartText, Text: "b"}}}
	if got := m.Text(); got != "ab" {
		t.Errorf("got %q", got)
	}
}

var toolStates = map[string]centurion.ToolState{
	"pending, nothing yet":   {Status: centurion.ToolPending},
	"pending, half arrived":  {Status: centurion.ToolPending, Raw: `{"filePath":"ma`},
	"running":                {Status: centurion.ToolRunning, Input: json.RawMessage(`{"a":[1]}`), Time: centurion.PartTime{Start: 1}},
	"running with a title":   {Status: centurion.ToolRunning, Input: json.RawMessage(`{}`), Title: "ls", Time: centurion.PartTime{Start: 1}},
	"completed with nothing": {Status: centurion.ToolCompleted},
	"completed": {Status: centurion.ToolCompleted, Input: json.RawMessage(`{"a":"ü"}`), Output: "o", Title: "t",
		Metadata: map[string]any{"n": 1.0}, Time: centurion.PartTime{Start: 1, End: 2}},
	"error with nothing": {Status: centurion.ToolError},
	"error": {Status: centurion.ToolError, Input: json.RawMessage(`{}`), Error: "no such file", Metadata: map[string]any{"exit": 1.0},
		Time: centurion.PartTime{Start: 1, End: 2}},
}

// filled is what a state comes back as: without input it has an empty object, and a completed one has metadata.
func filled(s centurion.ToolState) centurion.ToolState {
	if s.Input == nil {
		s.Input = json.RawMessage("{}")
	}
	if s.Metadata == nil && s.Status == centurion.ToolCompleted {
		s.Metadata = map[string]any{}
	}
	return s
}

// LOOP-75: the result of a call is its output, or what went wrong and that it did.
func TestToolStateShapes(t *testing.T) {
	union := shape(t, "ToolState")
	own := map[centurion.ToolStatus]func([]byte) error{
		centurion.ToolPending: shape(t, "ToolStatePending"), centurion.ToolRunning: shape(t, "ToolStateRunning"),
		centurion.ToolCompleted: shape(t, "ToolStateCompleted"), centurion.ToolError: shape(t, "ToolStateError"),
	}
	for name, s := range toolStates {
		conforms(t, union, name, s)
		same(t, name, filled(s), conforms(t, own[s.Status], name, s))
		if ended := s.Status == centurion.ToolCompleted || s.Status == centurion.ToolError; s.Ended() != ended {
			t.Errorf("%s: ended is %v", name, s.Ended())
		}
		text, isError := s.Result()
		if isError != (s.Status == centurion.ToolError) || isError && text != s.Error || !isError && text != s.Output {
			t.Errorf("%s: result %q, %v", name, text, isError)
		}
	}
	for _, input := range []string{"null", "[1]", `"a"`, "1", " "} {
		s := centurion.ToolState{Status: centurion.ToolRunning, Input: json.RawMessage(input)}
		if got := conforms(t, union, "input "+input, s); string(got.Input) != "{}" {
			t.Errorf("input %s comes back as %s", input, got.Input)
		}
	}
	if b, err := json.Marshal(centurion.ToolState{}); err == nil {
		t.Errorf("a state without a status was written as %s", b)
	}
}

// parts returns a part of every kind in every state.
func parts() map[string]centurion.Part {
	head := centurion.Part{ID: prtID, SessionID: sesID, MessageID: msgID}
	of := func(t centurion.PartType, set func(*centurion.Part)) centurion.Part {
		p := head
		p.Type = t
		if set != nil {
			set(&p)
		}
		return p
	}
	all := map[string]centurion.Part{
		"TextPart empty": of(centurion.PartText, nil),
		"TextPart streaming": of(centurion.PartText, func(p *centurion.Part) {
			p.Text, p.Time.Start = "héllo\n", 1
		}),
		"TextPart by the host": of(centurion.PartText, func(p *centurion.Part) {
			p.Text, p.Synthetic, p.Time = "notice", true, centurion.PartTime{Start: 1, End: 2}
		}),
		"ReasoningPart empty": of(centurion.PartReasoning, nil),
		"ReasoningPart": of(centurion.PartReasoning, func(p *centurion.Part) {
			p.Text, p.Time = "hm", centurion.PartTime{Start: 1, End: 2}
		}),
		"ReasoningPart signed": of(centurion.PartReasoning, func(p *centurion.Part) {
			p.Text, p.Metadata = "hm", map[string]any{"anthropic": map[string]any{"signature": "c2ln"}}
		}),
		"StepStartPart":        of(centurion.PartStepStart, nil),
		"StepFinishPart empty": of(centurion.PartStepFinish, nil),
		"StepFinishPart": of(centurion.PartStepFinish, func(p *centurion.Part) {
			p.Reason, p.Usage = "stop", centurion.Usage{Tokens: tokens, USD: 0.125}
		}),
		"CompactionPart": of(centurion.PartCompaction, func(p *centurion.Part) {
			p.Compaction = &centurion.Compaction{Auto: true, Overflow: true, Tail: msgID}
		}),
		"CompactionPart empty": of(centurion.PartCompaction, func(p *centurion.Part) { p.Compaction = &centurion.Compaction{} }),
	}
	for name, s := range toolStates {
		all["ToolPart "+name] = of(centurion.PartTool, func(p *centurion.Part) {
			p.CallID, p.Tool, p.State = "call_0", "read", new(filled(s))
		})
	}
	return all
}

// LOOP-72, LOOP-73, LOOP-74
func TestPartShapes(t *testing.T) {
	union := shape(t, "Part")
	kinds := map[string]bool{}
	for name, p := range parts() {
		kind, _, _ := strings.Cut(name, " ")
		kinds[kind] = true
		conforms(t, union, name, p)
		same(t, name, p, conforms(t, shape(t, kind), name, p))
	}
	if b, err := json.Marshal(parts()["TextPart empty"]); err != nil || strings.Contains(string(b), "time") {
		t.Errorf("a text that was never begun has a time: %s, %v", b, err)
	}
	if got := slices.Sorted(maps.Keys(kinds)); len(got) != 6 {
		t.Errorf("only %v were tried", got)
	}
	for name, p := range map[string]centurion.Part{
		"without a type":       {ID: prtID},
		"of an unknown type":   {ID: prtID, Type: "snapshot"},
		"call without a state": {ID: prtID, Type: centurion.PartTool, Tool: "ls"},
	} {
		if b, err := json.Marshal(p); err == nil {
			t.Errorf("a part %s was written as %s", name, b)
		}
	}
}

// The checks of this file mean something only if the schemas refuse what OpenCode's clients would.
func TestShapesRefuse(t *testing.T) {
	const head = `"id":"` + prtID + `","sessionID":"` + sesID + `","messageID":"` + msgID + `"`
	for _, bad := range []string{
		`{` + head + `,"type":"text","text":"x","extra":1}`,
		`{` + head + `,"type":"text"}`,
		`{` + head + `,"type":"reasoning","text":"x"}`,
		`{` + head + `,"type":"reasoning","text":"x","time":{"start":-1}}`,
		`{` + head + `,"type":"reasoning","text":"x","time":{"start":1.5}}`,
		`{` + strings.Replace(head, "prt_", "x_", 1) + `,"type":"text","text":"x"}`,
		`{` + strings.Replace(head, "ses_", "x_", 1) + `,"type":"text","text":"x"}`,
		`{` + strings.Replace(head, "msg_", "x_", 1) + `,"type":"text","text":"x"}`,
		`{` + head + `,"type":"tool","callID":"c","tool":"t","state":null}`,
		`{` + head + `,"type":"tool","callID":"c","tool":"t","state":{"status":"running","input":{}}}`,
		`{` + head + `,"type":"tool","callID":"c","tool":"t","state":{"status":"pending","input":null,"raw":""}}`,
		`{` + head + `,"type":"step-finish","reason":"stop","cost":1}`,
	} {
		if shape(t, "Part")([]byte(bad)) == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

// Whatever a part is read from, it is written in a form that is read as the same, and one of OpenCode's if what names it
// is.
func FuzzPart(f *testing.F) {
	for _, p := range parts() {
		b, err := json.Marshal(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"type":"tool","state":{"status":"running","input":null}}`))
	f.Add([]byte(`{"type":"text","text":"\ud800","time":{"end":3}}`))
	f.Add([]byte(`{"type":"step-finish","cost":1e300}`))
	check := shape(f, "Part")
	f.Fuzz(func(t *testing.T, b []byte) {
		var first, second centurion.Part
		if json.Unmarshal(b, &first) != nil {
			return
		}
		once, err := json.Marshal(first)
		if err != nil {
			return
		}
		if err := json.Unmarshal(once, &second); err != nil {
			t.Fatalf("%s was written as %s: %v", b, once, err)
		}
		twice, err := json.Marshal(second)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%s was written as %s and then as %s: %v", b, once, twice, err)
		}
		second.ID, second.SessionID, second.MessageID = prtID, sesID, msgID
		second.Time.Start, second.Time.End = max(second.Time.Start, 0), max(second.Time.End, 0)
		if second.Compaction != nil {
			second.Compaction.Tail = msgID
		}
		if s := second.State; s != nil {
			s.Time.Start, s.Time.End = max(s.Time.Start, 0), max(s.Time.End, 0)
		}
		if third, err := json.Marshal(second); err != nil || check(third) != nil {
			t.Fatalf("%s: %v, %v", third, err, check(third))
		}
	})
}

func BenchmarkPartMarshal(b *testing.B) {
	p := parts()["ToolPart completed"]
	for b.Loop() {
		if _, err := json.Marshal(p); err != nil {
			b.Fatal(err)
		}
	}
}
