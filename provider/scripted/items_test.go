package scripted

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// What a strict provider refuses of a request to /responses, and that it says why.
func TestChecksItems(t *testing.T) {
	const (
		usr     = `{"role":"user","content":[{"type":"input_text","text":"u"}]}`
		say     = `{"role":"assistant","content":[{"type":"output_text","text":"a"}]}`
		call    = `{"type":"function_call","call_id":"A","name":"read","arguments":"{}"}`
		result  = `{"type":"function_call_output","call_id":"A","output":"x"}`
		thought = `{"type":"reasoning","id":"r","summary":[],"encrypted_content":"sealed by m: 1"}`
	)
	body := func(input ...string) string {
		return `{"model":"m","stream":true,"store":false,"instructions":"s","input":[` + strings.Join(input, ",") + `]}`
	}
	for _, tt := range []struct{ name, body, want string }{
		{"good", body(usr), ""},
		{"good with everything", body(usr, thought, say, thought, call, result, usr), ""},
		{"a seal of somebody else", body(usr, strings.Replace(thought, "sealed by m: 1", "gAAAA", 1), say, usr), ""},
		{"kept", strings.Replace(body(usr), "false", "true", 1), "store is not false"},
		{"not a stream", strings.Replace(body(usr), `"stream":true,`, "", 1), "as a stream only"},
		{"messages", strings.Replace(body(usr), `"input"`, `"messages":[],"input"`, 1), "unknown parameter"},
		{"a strict tool", strings.Replace(body(usr), `"input"`, `"tools":[{"type":"function","name":"f","strict":true}],"input"`, 1), "is strict"},
		{"no result", body(usr, call), `"A" has no result`},
		{"no call", body(usr, result), "answers no open tool call"},
		{"thought of another model", body(usr, strings.Replace(thought, "by m", "by n", 1), say, usr), "could not be verified"},
		{"thought without its seal", body(usr, `{"type":"reasoning","summary":[]}`, say, usr), "could not be verified"},
		{"nothing came of the thought", body(usr, thought, usr), "without the item that followed it"},
		{"the wrong content", body(`{"role":"user","content":[{"type":"output_text","text":"u"}]}`), `type "output_text"`},
		{"an unknown item", body(usr, `{"type":"image"}`), `unknown type "image"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := New(Config{Func: func(Request) Answer {
				return Answer{Reasoning: "r", Say: "Hello there, you.", Calls: []Call{{Name: "f", Arguments: `{"a":1}`}}}
			}})
			resp, err := m.Client().Post(URL+"/responses", "application/json", strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			m.Client().CloseIdleConnections()
			if err := m.Close(); err != nil {
				t.Error(err)
			}
			if tt.want != "" {
				if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(b), strings.ReplaceAll(tt.want, `"`, `\"`)) || len(m.Violations()) != 1 {
					t.Errorf("%d %s, %d violations", resp.StatusCode, b, len(m.Violations()))
				}
				return
			}
			text, args, last := "", "", ""
			for line := range strings.Lines(string(b)) {
				raw, ok := strings.CutPrefix(line, "data: ")
				if !ok {
					continue
				}
				var e struct{ Type, Delta string }
				if err := json.Unmarshal([]byte(raw), &e); err != nil {
					t.Fatal(err)
				}
				last = e.Type
				switch e.Type {
				case "response.output_text.delta":
					text += e.Delta
				case "response.function_call_arguments.delta":
					args += e.Delta
				}
			}
			if resp.StatusCode != http.StatusOK || text != "Hello there, you." || args != `{"a":1}` || last != "response.completed" {
				t.Errorf("%d: %q, %q, %s", resp.StatusCode, text, args, last)
			}
		})
	}
}
