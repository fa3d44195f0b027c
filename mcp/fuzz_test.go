package mcp

import (
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// What is done about a schema, and the words in its error.
func TestSchema(t *testing.T) {
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, 60) + `{"type":"string"}` + strings.Repeat("}}", 60)
	for name, row := range map[string]struct{ in, out, err string }{
		"plain":           {in: `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, out: `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`},
		"empty":           {in: `{}`, out: `{"type":"object","properties":{}}`},
		"a draft":         {in: `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`, out: `{"type":"object","properties":{}}`},
		"a reference":     {in: `{"type":"object","properties":{"a":{"$ref":"#/$defs/A","description":"an A"}},"$defs":{"A":{"$ref":"#/$defs/B"},"B":{"type":"integer"}}}`, out: `{"type":"object","properties":{"a":{"type":"integer","description":"an A"}}}`},
		"old definitions": {in: `{"type":"object","properties":{"a":{"$ref":"#/definitions/A"}},"definitions":{"A":{"type":"integer"}}}`, out: `{"type":"object","properties":{"a":{"type":"integer"}}}`},
		"a named thing":   {in: `{"type":"object","properties":{"pattern":{"type":"string"},"definitions":{"type":"string"}}}`, out: `{"type":"object","properties":{"definitions":{"type":"string"},"pattern":{"type":"string"}}}`},
		"a dialect":       {in: `{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!x)"}}}`, out: `{"type":"object","properties":{"a":{"type":"string"}}}`},
		"null":            {in: `null`, err: "no object"},
		"a list":          {in: `[]`, err: "no object"},
		"a string":        {in: `{"type":"string"}`, err: "type string"},
		"several types":   {in: `{"type":["object","null"]}`, err: "not object"},
		"a choice":        {in: `{"anyOf":[{"type":"object"}]}`, err: "anyOf at the top"},
		"itself":          {in: `{"type":"object","properties":{"a":{"$ref":"#"}}}`, err: `"#"`},
		"in circles":      {in: `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"object","properties":{"b":{"$ref":"#/$defs/A"}}}}}`, err: "contains itself"},
		"only circles":    {in: `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"$ref":"#/$defs/A"}}}`, err: "contains itself"},
		"laughs": {in: `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"anyOf":[{"$ref":"#/$defs/B"},{"$ref":"#/$defs/B"},{"$ref":"#/$defs/B"},{"$ref":"#/$defs/B"}]},"B":{"anyOf":[{"$ref":"#/$defs/C"},{"$ref":"#/$defs/C"},{"$ref":"#/$defs/C"},{"$ref":"#/$defs/C"}]},
			"C":{"enum":[` + strings.Repeat("1,", 2000) + `2]}}}`, err: "too large"},
		"somewhere else": {in: `{"type":"object","properties":{"a":{"$ref":"https://example.com/s.json"}}}`, err: "no part of it"},
		"nowhere":        {in: `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}}}`, err: "no part of it"},
		"dynamic":        {in: `{"type":"object","properties":{"a":{"$dynamicRef":"#x"}}}`, err: "$dynamicRef"},
		"draft 4":        {in: `{"type":"object","properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`, err: "wrong"},
		"a wrong type":   {in: `{"type":"object","properties":{"a":{"type":"text"}}}`, out: `{"type":"object","properties":{"a":{"type":"text"}}}`},
		"a wrong name":   {in: `{"type":"object","properties":{"größe":{"type":"string"}}}`, err: "a name that providers refuse"},
		"deep":           {in: deep, err: "too large"},
		"long":           {in: `{"type":"object","description":"` + strings.Repeat("x", maxSchema) + `"}`, err: "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			var v any
			if err := json.Unmarshal([]byte(row.in), &v); err != nil {
				t.Fatal(err)
			}
			s, err := inputSchema(v)
			if row.err != "" {
				if err == nil || !strings.Contains(err.Error(), row.err) {
					t.Fatalf("error %v, want %q", err, row.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if out, err := json.Marshal(s); err != nil || string(out) != row.out {
				t.Errorf("%s %v", out, err)
			}
		})
	}
}

// A tool that no model can have, or a second one of the same name, is left out with one notice.
func TestUsable(t *testing.T) {
	c := newClient(Server{Name: "s"}, &Options{})
	ok := map[string]any{"type": "object"}
	tools := c.usable([]*sdk.Tool{{Name: "a b", InputSchema: ok}, {Name: "a.b", InputSchema: ok}, {Name: "x", InputSchema: 7}, {Name: "y", InputSchema: ok, Description: "d\x1b[31m\U000e0041" + strings.Repeat("x", maxDescription)}})
	if len(tools) != 2 || tools[0].Name != "s_a_b" || strings.ContainsAny(tools[1].Description, "\x1b\U000e0041") || !strings.HasSuffix(tools[1].Description, "x\n[cut here]") {
		t.Errorf("%.200v", tools)
	}
	if n := c.untold(); len(n) != 2 || !strings.Contains(n[0], `"a b" and "a.b" would both be called s_a_b`) || !strings.Contains(n[1], "x is left out: its schema is no object") {
		t.Errorf("%q", n)
	}
	for range 2 * maxNotes {
		c.note("again")
	}
	if n := c.untold(); len(n) != 1 {
		t.Errorf("%d notices", len(n))
	}
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func FuzzToolName(f *testing.F) {
	f.Add("linear", "create_issue")
	f.Add("größe", strings.Repeat("x", 100))
	f.Add("", "\x00\xff")
	f.Fuzz(func(t *testing.T, server, tool string) {
		name := ToolName(server, tool)
		if !toolName.MatchString(name) {
			t.Errorf("%q", name)
		}
		if long := strings.Repeat("x", MaxName); ToolName(server+long, tool) == ToolName(server+long, tool+"1") {
			t.Errorf("two long names are one: %q", name)
		}
	})
}

func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"items":{"$ref":"#/$defs/A"}}}}`))
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":["string","null"],"pattern":"^(?!x)","enum":[1,null]}},"additionalProperties":false}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var v any
		if json.Unmarshal(in, &v) != nil {
			return
		}
		s, err := inputSchema(v)
		if err != nil {
			return
		}
		out, err := json.Marshal(s)
		if err != nil || len(out) > 2*maxSchema {
			t.Fatalf("%d bytes, %v", len(out), err)
		}
		r, err := s.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Validate(map[string]any{"a": map[string]any{"a": []any{1.0, "x", nil}}}) // returns
		if _, err := inputSchema(mustJSON(t, out)); err != nil && !strings.Contains(err.Error(), "too large") {
			t.Errorf("%s: not taken again: %v", out, err)
		}
	})
}

func mustJSON(t *testing.T, b []byte) (v any) {
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// A server that answers each message with any lines.
func FuzzServer(f *testing.F) {
	for _, method := range methods {
		f.Add(method, []byte(`{"jsonrpc":"2.0","id":2,"result":{"tools":[null]}}`))
	}
	f.Add("initialize", []byte(`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":null}`))
	f.Fuzz(func(t *testing.T, method string, lines []byte) {
		synctest.Test(t, func(t *testing.T) {
			st := &starter{serve: map[string]func(io.Reader, io.Writer) error{"s": script{method: func(p *player) {
				_, _ = p.out.Write(append(lines, '\n'))
				p.result(ordinary[p.Method])
			}}.serve}}
			cs := Open(local("s"), Options{Start: st.start, Root: "/"})
			began := time.Now()
			_, _ = cs.Call(t.Context(), Tool{Name: "s_do", Server: "s", Remote: "do"}, "", nil)
			_, _ = cs.Prompt(t.Context(), "s:ask", []string{"x"})
			_, _ = cs.Read(t.Context(), "s", "note://1")
			if took := time.Since(began); took > CallTimeout+5*DefaultTimeout {
				t.Error("took", took)
			}
			if err := cs.Close(); err != nil {
				t.Error(err)
			}
		})
	})
}

// A call over pipes, there and back.
func BenchmarkCall(b *testing.B) {
	st := &starter{serve: map[string]func(io.Reader, io.Writer) error{"s": through(newServer())}}
	cs := settled(b, Options{Start: st.start}, local("s")...)
	echo := cs.tool(b, "s_echo")
	for b.Loop() {
		if _, err := cs.Call(b.Context(), echo, "", raw(`{"a":1}`)); err != nil {
			b.Fatal(err)
		}
	}
}

// Open and the first list of 20 servers, with and without 5 that never answer.
func BenchmarkOpen(b *testing.B) {
	for name, silent := range map[string]int{"all answer": 0, "5 of 20 silent": 5} {
		b.Run(name, func(b *testing.B) {
			st := &starter{serve: map[string]func(io.Reader, io.Writer) error{}}
			var names []string
			for i := range 20 {
				n := "s" + string(rune('a'+i))
				names = append(names, n)
				if st.serve[n] = (script{}).serve; i < silent {
					st.serve[n] = script{"initialize": abuses["hangs"]}.serve
				}
			}
			servers := local(names...)
			for b.Loop() {
				cs := Open(servers, Options{Start: st.start, Root: "/"})
				cs.Tools()
				b.StopTimer()
				cs.Close()
				b.StartTimer()
			}
		})
	}
}
