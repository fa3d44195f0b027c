package scripted

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A strict provider's refusals, each with the words that lead to the fault.
func TestChecks(t *testing.T) {
	msgs := func(list string) string { return `{"model":"m","messages":[` + list + `]}` }
	const (
		sys  = `{"role":"system","content":"s"}`
		usr  = `{"role":"user","content":"u"}`
		call = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"read","arguments":"{}"}}]}`
		resA = `{"role":"tool","tool_call_id":"a","content":"x"}`
		resB = `{"role":"tool","tool_call_id":"b","content":""}`
		text = `{"role":"assistant","content":"t"}`
	)
	oneCall := func(id, kind, name, args string) string {
		return `{"role":"assistant","tool_calls":[{"id":` + id + `,"type":` + kind + `,"function":{"name":` + name + `,"arguments":` + args + `}}]}`
	}
	join := func(s ...string) string { return msgs(strings.Join(s, ",")) }
	tests := []struct{ name, body, want string }{
		{"good", join(sys, usr), ""},
		{"good with calls", join(sys, usr, call, resA, resB), ""},
		{"good with steering", join(sys, usr, call, resA, resB, usr, usr), ""},
		{"good with parts", join(sys, `{"role":"user","content":[{"type":"text","text":"u"}]}`), ""},
		{"good with a developer", join(`{"role":"developer","content":"s"}`, usr), ""},
		{"good with spaces", "{ \"model\" : \"m\" ,\n\"messages\" : [ " + sys + " , " + usr + " ] } ", ""},

		{"no JSON", `{"model":`, "not a JSON object"},
		{"an array", `[]`, "not a JSON object"},
		{"rest", join(sys, usr) + "x", "not a JSON object"},
		{"no model", `{"messages":[` + sys + `,` + usr + `]}`, "names no model"},
		{"no messages", `{"model":"m"}`, "messages is not an array"},
		{"empty messages", msgs(""), "messages is empty"},
		{"no system", join(usr), "first message is of role user"},
		{"system later", join(sys, usr, sys), "only the first"},
		{"no user", join(sys, text), "follows one of role system"},
		{"two answers", join(sys, usr, text, text), "follows one of role assistant"},
		{"ends with an answer", join(sys, usr, text), "last message is of role assistant"},
		{"unknown role", join(sys, usr, `{"role":"function","content":"x"}`), "unknown role"},
		{"empty user", join(sys, `{"role":"user","content":""}`), "is empty"},
		{"user without content", join(sys, `{"role":"user"}`), "is empty"},
		{"odd content", join(sys, `{"role":"user","content":7}`), "neither a text nor a list"},
		{"empty answer", join(sys, usr, `{"role":"assistant","content":""}`, usr), "neither text nor tool calls"},
		{"not an object", join(sys, `"hello"`), "cannot be read"},

		{"result missing", join(sys, usr, call, resA), `call "b" has no result: the messages end`},
		{"result missing, user", join(sys, usr, call, resA, usr), `call "b" has no result: a message of role user`},
		{"result missing, answer", join(sys, usr, call, text), `call "a" has no result`},
		{"orphan result", join(sys, usr, resA), `answers no open tool call`},
		{"result twice", join(sys, usr, call, resA, resA, resB), `result for "a" stands where the one for "b" is due`},
		{"results swapped", join(sys, usr, call, resB, resA), `result for "b" stands where the one for "a"`},
		{"result after text", join(sys, usr, call, resA, resB, text, resA), "answers no open"},
		{"result without id", join(sys, usr, call, `{"role":"tool","content":"x"}`), "no tool_call_id"},
		{"result without content", join(sys, usr, call, `{"role":"tool","tool_call_id":"a"}`), "no content"},
		{"call without id", join(sys, usr, oneCall(`""`, `"function"`, `"read"`, `"{}"`)), "has no id"},
		{"call with a type", join(sys, usr, oneCall(`"a"`, `"tool"`, `"read"`, `"{}"`)), "type"},
		{"call without name", join(sys, usr, oneCall(`"a"`, `"function"`, `""`, `"{}"`)), "names no function"},
		{"arguments empty", join(sys, usr, oneCall(`"a"`, `"function"`, `"read"`, `""`)), "no JSON object"},
		{"arguments broken", join(sys, usr, oneCall(`"a"`, `"function"`, `"read"`, `"{\"a\":"`)), "no JSON object"},
		{"arguments a list", join(sys, usr, oneCall(`"a"`, `"function"`, `"read"`, `"[]"`)), "no JSON object"},
		{"arguments no text", join(sys, usr, oneCall(`"a"`, `"function"`, `"read"`, `{}`)), "cannot be read"},
		{"ids twice", join(sys, usr, strings.ReplaceAll(call, `"b"`, `"a"`), resA), "two tool calls"},
		{"calls of a user", join(sys, strings.Replace(call, "assistant", "user", 1)), "role user has tool calls"},

		{"stream options", `{"model":"m","stream_options":{},"messages":[` + sys + `,` + usr + `]}`, "stream_options"},
		{"tools empty", `{"model":"m","tools":[],"messages":[` + sys + `,` + usr + `]}`, "empty list"},
		{"tool name", `{"model":"m","tools":[{"type":"function","function":{"name":"a b"}}],"messages":[` + sys + `,` + usr + `]}`, "only letters"},
		{"tool twice", `{"model":"m","tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"a"}}],"messages":[` + sys + `,` + usr + `]}`, "two tools"},
		{"tool schema", `{"model":"m","tools":[{"type":"function","function":{"name":"a","parameters":{"type":"array"}}}],"messages":[` + sys + `,` + usr + `]}`, "no schema of type object"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := open(t, Func(func(Request) Answer { return Answer{Say: "ok"} }))
			status, _, got, err := post(t, m, "ses_x", tt.body)
			if err != nil {
				t.Fatal(err)
			}
			v := m.Violations()
			if tt.want == "" {
				if status != 200 || len(v) != 0 {
					t.Errorf("refused: %d %s %v", status, got, v)
				}
				return
			}
			if status != 400 || len(v) != 1 || !strings.Contains(v[0].Message, tt.want) {
				t.Errorf("got %d, %v; want %q", status, v, tt.want)
			}
			if e := (struct{ Error struct{ Message string } }{}); json.Unmarshal([]byte(got), &e) != nil || e.Error.Message == "" {
				t.Errorf("the body is no error: %s", got)
			}
		})
	}
}

func TestSystemAndToolsStayTheSame(t *testing.T) {
	tool := func(name string) string {
		return strings.Replace(body(false, "system:abc", "user:u"), "{", `{"tools":[{"type":"function","function":{"name":"`+name+`"}}],`, 1)
	}
	shortened := func(body, summary string) string {
		return strings.Replace(body, `"u"`, `"u\n\n<summary>\n`+summary+`\n</summary>"`, 1)
	}
	m := open(t, Func(func(Request) Answer { return Answer{Say: "ok"} }))
	for i, tt := range []struct{ session, body, want string }{
		{"a", tool("read"), ""},
		{"a", tool("read"), ""},
		{"a", strings.Replace(tool("read"), "abc", "abd", 1), "system prompt is not that"},
		{"a", tool("write"), "tools are not those"},
		{"a", body(false, "system:abc", "user:u"), "tools are not those"},
		{"b", tool("write"), ""},
		{"a", tool("read"), ""},
		{"a", shortened(tool("write"), "one"), ""},
		{"a", shortened(tool("read"), "one"), "tools are not those"},
		{"a", shortened(tool("read"), "two"), ""},
		{"a", strings.Replace(shortened(tool("read"), "two"), "abc", "abd", 1), "system prompt is not that"},
		{"a", strings.Replace(shortened(tool("read"), "three"), "abc", "abd", 1), ""},
		{"a", shortened(tool("read"), "three"), "system prompt is not that"},
	} {
		before := len(m.Violations())
		_, _, got, _ := post(t, m, tt.session, tt.body)
		v := m.Violations()[before:]
		if tt.want == "" && len(v) > 0 || tt.want != "" && (len(v) != 1 || !strings.Contains(v[0].Message, tt.want)) {
			t.Errorf("request %d: got %v, want %q (%s)", i+1, v, tt.want, got)
		}
	}
	m.AllowRecasts()
	for _, tt := range []struct {
		system, tool string
		violations   int
	}{{"You are the one.", "read", 0}, {"You are the other.", "write", 0}, {"You are the other. Now.", "write", 1}, {"You are the other.", "read", 1}, {"You are the one.", "read", 0}} {
		before := len(m.Violations())
		post(t, m, "c", strings.Replace(tool(tt.tool), "abc", tt.system, 1))
		if v := m.Violations()[before:]; len(v) != tt.violations {
			t.Errorf("%s %s: %v", tt.system, tt.tool, v)
		}
	}
	if names := m.Requests()[0].Tools(); !reflect.DeepEqual(names, []string{"read"}) {
		t.Errorf("tools %v", names)
	}
}

// However a history grows, shrinks and changes, what is taken over from the previous request is what decoding everything gives.
func TestReadingIsIncremental(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &session{}
		var history []string
		for range rapid.IntRange(1, 6).Draw(t, "requests") {
			history = history[:len(history)-rapid.IntRange(0, len(history)).Draw(t, "drop")]
			for i := range rapid.IntRange(0, 4).Draw(t, "add") {
				role := rapid.SampledFrom([]string{"user", "assistant", "system"}).Draw(t, "role")
				b, _ := json.Marshal(map[string]string{"role": role, "content": rapid.StringN(0, 12, -1).Draw(t, fmt.Sprint("text", i))})
				history = append(history, string(b))
			}
			raw := "[" + strings.Join(history, ",") + "]"
			in := &input{sess: s, messages: []byte(raw)}
			in.read()
			if in.fault != "" {
				t.Fatalf("%s: %s", raw, in.fault)
			}
			var want []Message
			for _, h := range history {
				want = append(want, readMessage([]byte(h)))
			}
			if len(want) != len(in.msgs) || len(want) > 0 && !reflect.DeepEqual(want, in.msgs) {
				t.Fatalf("%s: got %+v, want %+v", raw, in.msgs, want)
			}
		}
	})
}

// The scanner agrees with encoding/json on every object, and survives everything else.
func FuzzScan(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1}`, `{"a":"x\"y\\","b":[1,{"c":"]}"}],"d":null}`, ` { "a" : { } , "b" : -1.5e3 } `,
		`{"a":`, `{"a"}`, `{"a":1,}`, `{"\u0061":true}`, `[`, ``, `{"a":"`, `{"a":"\`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got := map[string]json.RawMessage{}
		err := eachField(b, func(k string, v []byte) { got[k] = v })
		_ = eachElement(b, 0, func([]byte, int) error { return nil })
		var want map[string]json.RawMessage
		if json.Unmarshal(b, &want) != nil || want == nil || strings.Contains(string(b), `\`) || strings.ToValidUTF8(string(b), "") != string(b) {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: got %s, want %s", b, got, want)
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add("plain")
	f.Add("quote \" back \\ line \n tab \t bell \a ✓ \xff\x80 \u2028")
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(appendText(nil, s), &got); err != nil {
			t.Fatal(err)
		}
		if want := string([]rune(s)); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func TestCommonPrefix(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "a", 0}, {"a", "a", 1}, {"ab", "a", 1}, {"abc", "abd", 2}, {"xbc", "abc", 0}, {"abcdefgh", "abcdefgX", 7}, {"aXcdefgh", "abcdefgh", 1}} {
		if got := commonPrefix([]byte(tt.a), []byte(tt.b)); got != tt.want {
			t.Errorf("%q, %q: got %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
