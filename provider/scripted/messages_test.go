package scripted

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// postMessages sends a request of the Messages API.
func postMessages(t testing.TB, m *Model, key, body string) (int, http.Header, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, URL+"/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("x-session-id", "ses_1")
	req.Header.Set("x-api-key", key)
	if !strings.Contains(body, "no version") {
		req.Header.Set("anthropic-version", "2023-06-01")
	}
	c := m.Client()
	defer c.CloseIdleConnections()
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(b), err
}

func messagesBody(msgs ...string) string {
	return `{"model":"m","max_tokens":10,"stream":true,"system":"You are the Worker.","messages":[` + strings.Join(msgs, ",") + `]}`
}

func turn(role string, blocks ...string) string {
	return `{"role":"` + role + `","content":[` + strings.Join(blocks, ",") + `]}`
}

// What the Messages API refuses beyond what chat completions do, each with the words that lead to the fault.
func TestMessagesChecks(t *testing.T) {
	const (
		usr  = `{"role":"user","content":"u"}`
		text = `{"type":"text","text":"t"}`
		mark = `{"type":"text","text":"t","cache_control":{"type":"ephemeral"}}`
	)
	thinking := `{"type":"thinking","thinking":"hm","signature":"` + signatureOf("hm") + `"}`
	use := func(id, input string) string {
		return `{"type":"tool_use","id":"` + id + `","name":"read","input":` + input + `}`
	}
	result := func(id string) string { return `{"type":"tool_result","tool_use_id":"` + id + `","content":"x"}` }
	calls, results := turn("assistant", thinking, text, use("a", "{}"), use("b", "{}")), turn("user", result("a"), result("b"), text)
	tests := []struct{ name, body, want string }{
		{"good", messagesBody(usr), ""},
		{"good with calls", messagesBody(usr, calls, results), ""},
		{"good with redacted thinking", messagesBody(usr, turn("assistant", `{"type":"redacted_thinking","data":"x"}`, text), usr), ""},
		{"good with a signature of somebody else", messagesBody(usr, turn("assistant", `{"type":"thinking","thinking":"hm","signature":"EqQB"}`, text), usr), ""},
		{"good with four marks", messagesBody(turn("user", mark, mark, mark, mark)), ""},

		{"no JSON", `{"model":`, "not a JSON object"},
		{"no version", strings.Replace(messagesBody(usr), "Worker", "Worker, no version", 1), "anthropic-version"},
		{"no limit", strings.Replace(messagesBody(usr), `"max_tokens":10,`, "", 1), "max_tokens: Field required"},
		{"too warm", strings.Replace(messagesBody(usr), `"max_tokens"`, `"temperature":1.5,"max_tokens"`, 1), "between 0 and 1"},
		{"whole", strings.Replace(messagesBody(usr), "true", "false", 1), "only streams"},
		{"no messages", messagesBody(), "first message"},
		{"an answer first", messagesBody(turn("assistant", text), usr), "first message"},
		{"an answer last", messagesBody(usr, turn("assistant", text)), "last message"},
		{"a role twice", messagesBody(usr, usr), "follow each other"},
		{"no content", messagesBody(turn("user")), "no content"},
		{"an empty text", messagesBody(turn("user", `{"type":"text","text":" "}`)), "non-whitespace"},
		{"an empty text of an answer", messagesBody(usr, turn("assistant", `{"type":"text","text":""}`), usr), "non-whitespace"},
		{"five marks", messagesBody(turn("user", mark, mark, mark, mark, mark)), "maximum of 4"},
		{"thinking that is marked", messagesBody(usr, turn("assistant", strings.Replace(thinking, `"hm"`, `"hm","cache_control":{"type":"ephemeral"}`, 1), text), usr), "thinking"},
		{"thinking that was changed", messagesBody(usr, turn("assistant", strings.Replace(thinking, `"hm"`, `"mh"`, 1), text), usr), "Invalid `signature`"},
		{"thinking without a signature", messagesBody(usr, turn("assistant", `{"type":"thinking","thinking":"hm"}`, text), usr), "Invalid `signature`"},
		{"an id of another API", messagesBody(usr, turn("assistant", use("a:1", "{}")), turn("user", result("a:1"))), "pattern"},
		{"an id twice", messagesBody(usr, turn("assistant", use("a", "{}"), use("a", "{}")), turn("user", result("a"))), "unique"},
		{"arguments as text", messagesBody(usr, turn("assistant", use("a", `"{}"`)), turn("user", result("a"))), "no object"},
		{"a result missing", messagesBody(usr, calls, turn("user", result("a"))), "without `tool_result` blocks immediately after: b"},
		{"no results", messagesBody(usr, calls, usr), "without `tool_result` blocks immediately after: a, b"},
		{"a result twice", messagesBody(usr, calls, turn("user", result("a"), result("a"), result("b"))), "unexpected `tool_use_id`"},
		{"a result of nothing", messagesBody(turn("user", result("a"))), "unexpected `tool_use_id`"},
		{"results after text", messagesBody(usr, calls, turn("user", text, result("a"), result("b"))), "must come first"},
		{"no system", strings.Replace(messagesBody(usr), `"system":"You are the Worker.",`, "", 1), "instead of system"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := open(t, Func(func(Request) Answer { return Answer{Say: "ok"} }))
			status, _, body, err := postMessages(t, m, "", tt.body)
			switch {
			case err != nil:
				t.Error(err)
			case tt.want == "" && (status != 200 || len(m.Violations()) != 0):
				t.Errorf("%d %s", status, body)
			case tt.want != "" && (status != 400 || !strings.Contains(body, tt.want) || !strings.HasPrefix(body, `{"type":"error","error":{"type":"invalid_request_error"`) || len(m.Violations()) != 1):
				t.Errorf("%d %s, %v", status, body, m.Violations())
			}
		})
	}
}

// ORCH-81: an answer whose calls came of thinking is taken back only with this thinking in front of them.
func TestMessagesThinking(t *testing.T) {
	m := open(t, Func(func(Request) Answer {
		return Answer{Reasoning: "hm", Say: "I look.", Calls: []Call{{ID: "a", Name: "read"}}}
	}))
	ask := func(answer ...string) (int, string) {
		msgs := []string{`{"role":"user","content":"u"}`}
		if answer != nil {
			msgs = append(msgs, turn("assistant", append(answer, `{"type":"tool_use","id":"a","name":"read","input":{}}`)...), turn("user", `{"type":"tool_result","tool_use_id":"a"}`))
		}
		status, _, body, _ := postMessages(t, m, "", messagesBody(msgs...))
		return status, body
	}
	if status, body := ask(); status != 200 || !strings.Contains(body, `{"type":"signature_delta","signature":"`+signatureOf("hm")+`"}`) {
		t.Fatalf("%d %s", status, body)
	}
	thought := func(s string) string {
		return fmt.Sprintf(`{"type":"thinking","thinking":%q,"signature":%q}`, s, signatureOf(s))
	}
	const text = `{"type":"text","text":"I look."}`
	for _, tt := range []struct {
		answer []string
		want   string
	}{{[]string{thought("hm"), text}, ""}, {[]string{text}, "but found `text`"}, {[]string{text, thought("hm")}, "but found `text`"},
		{[]string{thought("no"), text}, "cannot be modified"}, {[]string{}, "but found `tool_use`"}} {
		if status, body := ask(tt.answer...); (status == 200) != (tt.want == "") || tt.want != "" && !strings.Contains(body, tt.want) {
			t.Errorf("%v: %d %s", tt.answer, status, body)
		}
	}
}

// The same answers and faults over the Messages API: its events, reasons, counts and errors.
func TestMessagesAnswers(t *testing.T) {
	tests := []struct {
		name   string
		answer Answer
		status int
		want   []string
	}{
		{"text", Answer{Say: "Hello.", Usage: &Usage{Input: 10, Cached: 4, Output: 6, Reasoning: 2}}, 200, []string{"event: message_start\n", `"text_delta","text":"Hello."`, `"stop_reason":"end_turn"`,
			`"input_tokens":6,"cache_creation_input_tokens":0,"cache_read_input_tokens":4,"output_tokens":6,"output_tokens_details":{"thinking_tokens":2}`, `{"type":"message_stop"}`}},
		{"calls", Answer{Calls: []Call{{Name: "read", Arguments: `{"p":"a"}`}, {Name: "list"}}}, 200, []string{`"index":0,"content_block":{"type":"tool_use","id":"call_1_0","name":"read","input":{}}`,
			`"partial_json":"{\"p\":\"a\"}"`, `"index":1,"content_block":{"type":"tool_use","id":"call_1_1","name":"list"`, `"stop_reason":"tool_use"`}},
		{"length", Answer{Say: "a", Finish: "length"}, 200, []string{`"stop_reason":"max_tokens"`}},
		{"refusal", Answer{Say: "a", Finish: "content_filter"}, 200, []string{`"stop_reason":"refusal"`}},
		{"its own reason", Answer{Say: "a", Finish: "pause_turn"}, 200, []string{`"stop_reason":"pause_turn"`}},
		{"overloaded", Answer{Error: &Error{Status: 529}}, 529, []string{`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}},
		{"rate limit", Answer{Error: &Error{Status: 429, RetryAfter: 1500 * time.Millisecond}}, 429, []string{"rate_limit_error"}},
		{"an error in the stream", Answer{Say: "a", Error: &Error{Status: 529, Stream: true}}, 200, []string{"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := open(t, Func(func(Request) Answer { return tt.answer }))
			status, h, body, err := postMessages(t, m, "", messagesBody(`{"role":"user","content":"u"}`))
			if err != nil || status != tt.status || tt.answer.Error != nil && tt.answer.Error.RetryAfter > 0 && h.Get("Retry-After") != "2" {
				t.Errorf("%d, %v, %v", status, h, err)
			}
			for _, want := range tt.want {
				if !strings.Contains(body, want) {
					t.Errorf("no %s in %s", want, body)
				}
			}
		})
	}
	for _, cut := range []Cut{CutHalf, CutLate, CutReset} {
		m := open(t, Func(func(Request) Answer { return Answer{Say: "Hello, hello.", Cut: cut} }))
		if _, _, body, err := postMessages(t, m, "", messagesBody(`{"role":"user","content":"u"}`)); strings.Contains(body, "message_stop") || (cut == CutReset) != (err != nil) {
			t.Errorf("%s: %v, %s", cut, err, body)
		}
	}
	m := open(t, New(Config{Key: "sk-ant", Func: func(Request) Answer { return Answer{} }}))
	for key, want := range map[string]int{"sk-ant": 200, "sk-other": 401} {
		if status, _, body, _ := postMessages(t, m, key, messagesBody(`{"role":"user","content":"u"}`)); status != want || want == 401 && !strings.Contains(body, "authentication_error") {
			t.Errorf("with %s: %d %s", key, status, body)
		}
	}
}

// What a script sees of a request is the same on both APIs.
func TestMessagesAreTranslated(t *testing.T) {
	var got []Request
	m := open(t, Func(func(q Request) Answer { got = append(got, q); return Answer{Say: "ok"} }))
	body := strings.Replace(messagesBody(`{"role":"user","content":"Do it."}`, turn("assistant", `{"type":"text","text":"I look."}`, `{"type":"tool_use","id":"a","name":"read","input":{"p":"a"}}`),
		turn("user", `{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"result"}]}`, `{"type":"text","text":"Go on."}`, `{"type":"text","text":"status"}`)),
		`"messages"`, `"tools":[{"name":"read","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}],"messages"`, 1)
	if status, _, text, _ := postMessages(t, m, "", body); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	q := got[0]
	if q.Session != "ses_1" || q.Agent() != "worker" || q.First() != "Do it." || q.Last() != "Go on.\n\nstatus" || q.Step() != 2 || strings.Join(q.Results(), " ") != "result" ||
		strings.Join(q.Tools(), " ") != "read" || string(q.Field("max_tokens")) != "10" || q.Messages()[2].Calls[0].Arguments != `{"p":"a"}` {
		t.Errorf("got %+v", q.Messages())
	}
}
