package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"centurion"
	"centurion/provider"
)

// How much of a window stays free, and how much a request may have of it, for windows of every size.
func TestLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ window, configured, want int }{
		{100_000, 0, 20_000}, {200_000, 0, 40_000}, {200_001, 0, 20_000}, {1_000_000, 0, 20_000}, {100_000, 7, 7}, {100_000, 90_000, 50_000}, {100_000, -1, 20_000}, {0, 7, 0},
	} {
		if got := Buffer(tt.window, tt.configured); got != tt.want {
			t.Errorf("of %d, configured %d: %d, want %d", tt.window, tt.configured, got, tt.want)
		}
	}
	for _, tt := range []struct{ window, out, buffer, want int }{{100_000, 0, 0, 80_000}, {100_000, 30_000, 0, 70_000}, {100_000, 90_000, 0, 50_000}, {100_000, 10, 5, 99_990}, {0, 10, 0, 0}} {
		s := Session{cfg: Config{Window: tt.window, MaxOut: tt.out, Buffer: tt.buffer}}
		if got := s.limit(); got != tt.want {
			t.Errorf("%+v: %d", tt, got)
		}
	}
	for room, want := range map[int]int{400: 100, 48_000: 12_000, 480_000: 12_000} {
		if got := summaryBytes(room); got != want {
			t.Errorf("a summary in %d bytes has %d", room, got)
		}
	}
}

// An error is stored in the shape that clients know, with what tells them whether it is worth another try.
func TestMessageError(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want string
	}{
		{centurion.ErrShutdown, `MessageAbortedError {"message":"interrupted"}`},
		{&centurion.Error{Kind: centurion.KindAuth, Msg: "no"}, `ProviderAuthError {"message":"no","providerID":"p"}`},
		{&centurion.Error{Kind: centurion.KindOverflow, Msg: "long"}, `ContextOverflowError {"message":"long"}`},
		{&centurion.Error{Kind: centurion.KindRefusal, Msg: "no"}, `ContentFilterError {"message":"no"}`},
		{&centurion.Error{Kind: centurion.KindRateLimit, Msg: "slow", Status: 429}, `APIError {"message":"slow","statusCode":429,"isRetryable":true}`},
		{&centurion.Error{Kind: centurion.KindInvalidRequest, Msg: "bad", Status: 400}, `APIError {"message":"bad","statusCode":400,"isRetryable":false}`},
		{&centurion.Error{Kind: centurion.KindNetwork, Msg: "broke"}, `UnknownError {"message":"broke"}`},
		{fmt.Errorf("else"), `UnknownError {"message":"else"}`},
	} {
		e := messageError(tt.err, "p")
		var got, want map[string]any
		name, data, _ := strings.Cut(tt.want, " ")
		b, err := json.Marshal(e.Data)
		if err = errors.Join(err, json.Unmarshal(b, &got), json.Unmarshal([]byte(data), &want)); err != nil {
			t.Fatal(err)
		}
		for _, k := range []string{"message", "providerID", "statusCode", "isRetryable"} {
			if e.Name != name || k != "message" && got[k] != want[k] || !strings.HasPrefix(got["message"].(string), want["message"].(string)) {
				t.Errorf("%v: %s %s, want %s", tt.err, e.Name, b, tt.want)
			}
		}
	}
}

// The journal holds no written file a second time, and says what a call was for all the same.
func TestInputBrief(t *testing.T) {
	t.Parallel()
	short := json.RawMessage(`{"a": "` + strings.Repeat("x", 900) + `"}`)
	if got := inputBrief(short); string(got) != string(short) {
		t.Errorf("a short one is changed: %s", got)
	}
	long := json.RawMessage(`{"filePath":"a.go","n":7,"list":[1,2],"content":"` + strings.Repeat("x", 2000) + `"}`)
	if d := cmp.Diff(`{"content":"`+strings.Repeat("x", 200)+`…","filePath":"a.go","list":"…","n":7}`, string(inputBrief(long))); d != "" {
		t.Error(d)
	}
	if got := inputBrief(json.RawMessage(`["` + strings.Repeat("x", 2000) + `"]`)); got != nil {
		t.Errorf("%s", got)
	}
}

// What is cut keeps its beginning and its end, says how much is gone, and parts no character.
func TestClipMiddle(t *testing.T) {
	t.Parallel()
	if got := clipMiddle("123456789", 9); got != "123456789" {
		t.Error(got)
	}
	if got := clipMiddle("1234567890", 9); got != "123456\n[… 1 bytes left out …]\n890" {
		t.Error(got)
	}
	if got := clipMiddle(strings.Repeat("ü", 10), 8); got != "üü\n[… 14 bytes left out …]\nü" { // both cuts would part a character
		t.Error(got)
	}
	if got := quotes([]centurion.Message{{Role: centurion.RoleUser, Parts: []centurion.Part{{Type: centurion.PartText, Text: "a" + strings.Repeat("ü", 40)}}}, {Role: centurion.RoleUser,
		Parts: []centurion.Part{{Type: centurion.PartText, Text: strings.Repeat("ü", 40)}}}}, false, 81); !utf8.ValidString(got) || !strings.HasPrefix(got, quoteHead+"\n\n…") {
		t.Errorf("quoted as %q", got)
	}
	if got := clipMiddle(strings.Repeat("ü", 10), 9); got != "üüü\n[… 12 bytes left out …]\nü" {
		t.Error(got)
	}
	var b strings.Builder
	section(&b, "Calls", []string{"one", "two", "three"}, 10)
	section(&b, "None", nil, 10)
	if got := b.String(); got != "Calls:\n(1 earlier ones left out)\ntwo\nthree\n\n" {
		t.Errorf("%q", got)
	}
}

// A result that is sent shortened keeps what else is known of its call, and the stored call stays whole.
func TestClippedResults(t *testing.T) {
	t.Parallel()
	for name, meta := range map[string]map[string]any{"nothing": nil, "a title": {"title": "go test"}} {
		st := &centurion.ToolState{Status: centurion.ToolCompleted, Input: json.RawMessage(`{}`), Output: strings.Repeat("x", 5000), Metadata: meta}
		history := []centurion.Message{{Role: centurion.RoleAssistant, Parts: []centurion.Part{{ID: "p", Type: centurion.PartTool, Tool: "bash", State: st}}}}
		cut, changed := clipResults(history, 1000)
		if len(changed) != 1 || len(resultOf(cut[0].Parts[0].State)) > 1100 || cut[0].Parts[0].State.Metadata["title"] != meta["title"] {
			t.Errorf("%s: %d changed, %+v", name, len(changed), cut[0].Parts[0].State.Metadata)
		}
		if history[0].Parts[0].State != st || len(resultOf(st)) != 5000 || len(st.Metadata) != len(meta) {
			t.Errorf("%s: the stored call is cut, too", name)
		}
	}
	open := centurion.Message{Finish: centurion.FinishToolCalls, Parts: []centurion.Part{{Type: centurion.PartTool, State: &centurion.ToolState{Status: centurion.ToolCompleted, Input: json.RawMessage(`{"half`), Output: "out"}}}}
	if n := weight(&open); n != 0 {
		t.Errorf("a call that is not sent counts %d bytes", n)
	}
}

// Without a model the host's own record says what was done and what failed, which files were changed, who said what, and what the summary
// before it knew.
func TestRecordOf(t *testing.T) {
	t.Parallel()
	call := func(tool, input, title string, st centurion.ToolState) centurion.Part {
		st.Input, st.Title = json.RawMessage(input), title
		return centurion.Part{Type: centurion.PartTool, Tool: tool, State: &st}
	}
	text := func(role centurion.Role, origin centurion.Origin, s string) centurion.Message {
		return centurion.Message{Role: role, Origin: origin, Finish: centurion.FinishToolCalls, Parts: []centurion.Part{{Type: centurion.PartText, Text: s}}}
	}
	done := centurion.ToolState{Status: centurion.ToolCompleted, Output: "ok"}
	work := text(centurion.RoleAssistant, "", "I write it.")
	work.Parts = append(work.Parts, call("write", `{"filePath":"b.go"}`, "b.go", done), call("edit", `{"filePath":"a.go"}`, "a.go", done),
		call("bash", `{"command":"make"}`, "", centurion.ToolState{Status: centurion.ToolError, Error: "exit 2"}), call("write", `{"filePath":"d.go"}`, "d.go", centurion.ToolState{Status: centurion.ToolError, Error: "no"}), call("edit", `{"filePath":"c.go"}`, "c.go", centurion.ToolState{Status: centurion.ToolRunning}))
	before := centurion.Message{Role: centurion.RoleAssistant, Summary: true, Parts: []centurion.Part{{Type: centurion.PartText, Text: "It began well."}}}
	got := recordOf([]centurion.Message{before, text(centurion.RoleUser, centurion.OriginPerson, "Faster."), work}, 4000)
	want := "It began well.\n\nFiles changed:\na.go\nb.go\n\nCalls made, the newest last:\n- write b.go: done\n- edit a.go: done\n- bash {\"command\":\"make\"}: failed: exit 2\n- write d.go: failed: no\n\nSaid, the newest last:\n- person: Faster.\n- you: I write it."
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := recordOf(nil, 4000); got != "Nothing of note." {
		t.Error(got)
	}
}

// What a request will cost is estimated of all that it holds.
func TestEstimate(t *testing.T) {
	t.Parallel()
	x := func(n int) string { return strings.Repeat("x", 4*n) }
	req := provider.Request{System: x(1), Messages: []provider.Message{{Text: x(10), Reasoning: x(100), Calls: []provider.Call{{Name: x(1000), Arguments: x(10_000)}},
		Thoughts: []provider.Thought{{Metadata: map[string]any{"p": map[string]any{"sealed": x(100_000)}}}}}},
		Tools: []provider.ToolSpec{{Description: x(1_000_000), Schema: json.RawMessage(x(10_000_000))}}}
	if got := estimate(req, 4*7); got != (centurion.Tokens{Input: 11_111_111, Output: 7}) {
		t.Errorf("%+v", got)
	}
	if got := tokensOfFiles([]centurion.File{{Mime: centurion.MimePNG, Data: []byte("x")}, {Mime: centurion.MimePNG, Data: []byte("y")}}); got != 2*4784 {
		t.Errorf("two pictures are %d tokens", got)
	}
	for bytes, want := range map[int]int64{0: 0, 1: 1, 3: 1, 4: 2} {
		if got := TokensOf(bytes); got != want {
			t.Errorf("%d bytes are %d tokens", bytes, got)
		}
	}
}

// What a model is told of a call that it repeats says when its turn ends.
func TestTold(t *testing.T) {
	t.Parallel()
	for refused, want := range map[bool]string{true: "After 10 times your turn ends.)", false: "After 20 times your turn ends.)"} {
		got := told("no", refused, 3)
		if !strings.HasPrefix(got, "no"+sameNote+"3 times in a row") || !strings.HasSuffix(got, want) || strings.Contains(got, "the refusal says") != refused {
			t.Errorf("refused %v: %s", refused, got)
		}
	}
	for want, e := range map[string]*StuckError{
		"broke off its answer 2 times in a row before it was complete (error)":                                          {Said: centurion.FinishError, Times: 2},
		"was cut off at its output limit 2 times in a row before its answer was complete":                               {Said: centurion.FinishLength, Times: 2},
		"has called ls 9 times in a row with the same arguments and was refused each time: no":                          {Tool: "ls", Said: "no", Times: 9, Refused: true},
		"has called ls 9 times in a row with the same arguments and the same result: " + strings.Repeat("x", 400) + "…": {Tool: "ls", Said: strings.Repeat("x", 401), Times: 9},
	} {
		if got := e.Did(); got != want || e.Error() != "the model "+want || centurion.KindOf(e) != centurion.KindTimeout || centurion.HintOf(e) == "" {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// An agent that begins anew is told the first message whole and once, then what was said and done since.
func TestHandoverOfAHistory(t *testing.T) {
	said := func(role centurion.Role, text string) centurion.Message {
		return centurion.Message{Role: role, Parts: []centurion.Part{{Type: centurion.PartText, Text: text}}}
	}
	call := centurion.Part{Type: centurion.PartTool, Tool: "bash", State: &centurion.ToolState{Status: centurion.ToolError, Title: "make", Error: "no rule"}}
	worked := said(centurion.RoleAssistant, "I build.")
	worked.Parts = append(worked.Parts, call)
	got := handover([]centurion.Message{said(centurion.RoleUser, "build it"), worked, said(centurion.RoleUser, "faster")})
	want := []string{"build it", "You have worked on this before, in a conversation that is not there any more. Your files are as you left them: look at them first. This is what is known of it:",
		"You said: I build.", "You called, and it failed: bash make: no rule", "faster"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := handover([]centurion.Message{said(centurion.RoleUser, "build it")}); !slices.Equal(got, []string{"build it"}) {
		t.Errorf("before any work: %q", got)
	}
}
