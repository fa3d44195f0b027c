package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// checked plays the protocol at a process that answers with reply, and returns what is wrong, in a line for each.
func checked(t *testing.T, reply func(m sent) string) []string {
	t.Helper()
	all, err := Check(t.Context(), []string{"p"}, Options{Directory: "/p", Start: script(func(_ int, m sent) string { return reply(m) })})
	if err != nil {
		t.Fatal(err)
	}
	var wrong []string
	for _, f := range all {
		if f.Holds != (f.Wrong == "") || f.Holds && f.Sent != nil || !f.Holds && f.Sent == nil && f.Got == nil {
			t.Errorf("%+v", f)
		}
		if !f.Holds {
			wrong = append(wrong, f.What+": "+f.Wrong)
		}
	}
	return wrong
}

const begun = `{"id":%d,"result":{"hooks":["shell.env","event","tool.execute.before","config"],"tools":[{"name":"t","schema":{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}}]}}`

// Every hook that there is is played, but those that have messages of their own.
func TestPlayed(t *testing.T) {
	for _, hook := range hooks {
		if _, has := played[hook]; has == slices.Contains([]string{"event", "dispose"}, hook) {
			t.Errorf("%s is played: %t", hook, has)
		}
	}
}

// right answers everything as it is to be.
func right(m sent) string {
	switch {
	case m.Do == "init":
		return fmt.Sprintf(begun, m.ID)
	case m.Do == "abort" || m.Do == "answer" || m.Do == "something.new":
		return " "
	case m.Do == "tool" && m.Params.Args["q"] != "text":
		return fmt.Sprintf(`{"id":%d,"error":"q is missing","kind":"arguments"}`, m.ID)
	case m.Params.Hook == "tool.execute.before":
		return fmt.Sprintf(`{"id":%d,"error":"never"}`, m.ID)
	case m.Params.Hook == "shell.env":
		return fmt.Sprintf(`{"id":%d,"result":{"output":{"env":{"A":"b"}}}}`, m.ID)
	}
	return fmt.Sprintf(`{"id":%d,"result":{"text":"fine"}}`, m.ID)
}

// Each way of being wrong is found where it is, and nothing else is.
func TestCheck(t *testing.T) {
	on := func(do string, lie func(m sent) string) func(m sent) string {
		return func(m sent) string {
			if m.Do == do || m.Params.Hook == do {
				return lie(m)
			}
			return right(m)
		}
	}
	with := func(format string) func(m sent) string {
		return func(m sent) string { return fmt.Sprintf(format, m.ID) }
	}
	silent, ends := func(sent) string { return " " }, func(sent) string { return "" }
	bad := func(answer func(m sent) string) func(m sent) string {
		return on("tool", func(m sent) string {
			if m.Params.Args["q"] == "text" {
				return right(m)
			}
			return answer(m)
		})
	}
	var waiting int
	for name, test := range map[string]struct {
		reply func(m sent) string
		want  []string
	}{
		"nothing":               {right, nil},
		"no answer to init":     {on("init", silent), []string{"init: no answer in 10s"}},
		"ends at init":          {on("init", ends), []string{"init: its process has ended"}},
		"an error to init":      {on("init", with(`{"id":%d,"error":"no"}`)), []string{"init: it answers with an error"}},
		"an unknown hook":       {on("init", with(`{"id":%d,"result":{"hooks":["nonsense"]}}`)), []string{"init: it has a hook nonsense, which there is not"}},
		"a wrong schema":        {on("init", with(`{"id":%d,"result":{"tools":[{"name":"t","schema":{"type":"string"}}]}}`)), []string{"init: its tool t was left out"}},
		"another key":           {on("ping", with(`{"id":%d,"results":{}}`)), []string{"ping: this is no answer", "two messages at once: this is no answer", "abort and answer without a call: this", "abort of tool t: this", "a message that it does not know: this", "nothing but answers"}},
		"another id":            {on("dispose", func(m sent) string { return fmt.Sprintf(`{"id":%d,"result":{}}`, m.ID+9) }), []string{"dispose: no answer in 2s", "nothing but answers"}},
		"an answer again":       {on("dispose", func(m sent) string { return right(m) + "\n" + right(m) }), []string{"nothing but answers"}},
		"a fault":               {on("dispose", func(m sent) string { return `{"fault":"oh"}` + "\n" + right(m) }), []string{"nothing but answers"}},
		"a greeting":            {on("init", func(m sent) string { return "Welcome!\n\n" + right(m) }), nil},
		"a flood":               {on("ping", func(m sent) string { return strings.Repeat("x\n", 200) + right(m) }), []string{"ping: it sent more than 100 lines", "two messages at once: it", "abort of tool t: it", "abort and answer without a call: it", "a message that it does not know: it"}},
		"a hook that fails":     {on("shell.env", with(`{"id":%d,"error":"no"}`)), []string{"hook shell.env: it answers with an error"}},
		"a hook that hangs":     {on("shell.env", silent), []string{"hook shell.env: no answer in 10s"}},
		"a hook with a list":    {on("shell.env", with(`{"id":%d,"result":{"output":{"env":[]}}}`)), []string{"hook shell.env: its output has another shape: env"}},
		"a hook without a part": {on("tool.execute.before", with(`{"id":%d,"result":{"output":{}}}`)), []string{"hook tool.execute.before: its output has another shape: args"}},
		"a hook with a number":  {on("shell.env", with(`{"id":%d,"result":{"output":7}}`)), []string{"hook shell.env: its output is no object"}},
		"no answer to events":   {on("events", silent), []string{"hook event: no answer in 10s"}},
		"a tool without text": {on("tool", func(m sent) string {
			if m.Params.Args["q"] == "text" {
				return fmt.Sprintf(`{"id":%d,"result":{"output":"x"}}`, m.ID)
			}
			return right(m)
		}), []string{`tool t: its result has no "text"`}},
		"arguments not checked": {bad(with(`{"id":%d,"result":{"text":"fine"}}`)), []string{"tool t with wrong arguments: it takes arguments"}},
		"an error of no kind":   {bad(with(`{"id":%d,"error":"no"}`)), []string{`tool t with wrong arguments: its error has not the kind "arguments"`}},
		"good ones refused":     {on("tool", with(`{"id":%d,"error":"no","kind":"arguments"}`)), []string{"tool t: it refuses arguments that its schema allows"}},
		"a tool that asks": {on("tool", func(m sent) string {
			if m.Params.Args["q"] == "text" {
				return fmt.Sprintf(`{"id":%d,"progress":{"title":"x"}}`+"\n"+`{"id":%d,"ask":{"permission":"x"},"n":1}`+"\n%s", m.ID, m.ID, right(m))
			}
			return right(m)
		}), nil},
		"a tool that hangs": {func(m sent) string {
			if m.Do == "tool" && m.Params.Args["q"] == "text" {
				return " "
			}
			return right(m)
		}, []string{"tool t: it was aborted after 10s, and then: no answer", "abort of tool t: no answer in 2s"}},
		"a tool that waits": {func(m sent) string {
			switch {
			case m.Do == "tool" && m.Params.Args["q"] == "text":
				waiting = m.ID
				return " "
			case m.Do == "abort" && m.ID == waiting:
				waiting = 0
				return fmt.Sprintf(`{"id":%d,"error":"aborted"}`, m.ID)
			}
			return right(m)
		}, nil},
		"abort is answered":     {on("abort", with(`{"id":%d,"result":{}}`)), []string{"nothing but answers"}},
		"ends at an abort":      {on("abort", ends), []string{"abort of tool t: its process has ended", "abort and answer without a call: its process has ended"}},
		"ends at what is new":   {on("something.new", ends), []string{"a message that it does not know: its process has ended"}},
		"no answer to dispose":  {on("dispose", silent), []string{"dispose: no answer in 2s"}},
		"an answer to the new":  {on("something.new", with(`{"id":%d,"error":"what?"}`)), nil},
		"a line that is broken": {on("dispose", func(m sent) string { return "{\n" + right(m) }), []string{"nothing but answers"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				waiting = 0
				got := checked(t, test.reply)
				for _, g := range got {
					if !containsPrefix(test.want, g) {
						t.Errorf("it finds %s", g)
					}
				}
				if len(got) != len(test.want) {
					t.Errorf("it finds %q, not %q", got, test.want)
				}
			})
		})
	}
}

func containsPrefix(all []string, s string) bool {
	for _, p := range all {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// stays is a process that does not end with its input.
type stays struct{ Process }

func (s stays) Close() error { return nil }
func (s stays) Kill()        { _ = s.Process.Close(); s.Process.Kill() }

func TestCheckEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := script(func(_ int, m sent) string { return right(m) })
		all, err := Check(t.Context(), []string{"p"}, Options{Start: func(ctx context.Context, s Start) (Process, error) {
			p, err := start(ctx, s)
			return stays{p}, err
		}})
		if f := all[len(all)-2]; err != nil || f.What != "the end of its input" || f.Holds || !strings.Contains(f.Wrong, "does not end within 2s") {
			t.Errorf("%+v, %v", f, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := Check(ctx, []string{"p"}, Options{Start: script(func(int, sent) string { return " " })}); err == nil {
			t.Error("the end of the context is no error")
		}
	})
}

func TestArguments(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object"}`: `{} `,
		`{"type":"object","properties":{"q":{"type":"string","minLength":6}},"required":["q"]}`:                                                                            `{"q":"textxx"} {}`,
		`{"type":"object","properties":{"n":{"type":"integer","minimum":3},"b":{"type":"boolean"}}}`:                                                                       `{} {"b":{"no":true}}`,
		`{"type":"object","properties":{"a":{"type":"array","minItems":1,"items":{"type":"object","properties":{"x":{"enum":["y"]}},"required":["x"]}}},"required":["a"]}`: `{"a":[{"x":"y"}]} {}`,
		`{"type":"object","additionalProperties":false}`:                                                                                                                   `{} {"no such argument":true}`,
		`{"type":"object","properties":{"q":{"pattern":"^[0-9]{9}$","type":"string"}},"required":["q"]}`:                                                                   ` {}`,
		`{"type":"object","properties":{"q":{"$ref":"#"}},"required":["q"]}`:                                                                                               ` `,
		`{"type":"object","properties":{"q":{"anyOf":[{"type":"number"},{"type":"null"}]}},"required":["q"]}`:                                                              `{"q":1} {}`,
		`{"type":"object","properties":{"q":{"const":7},"r":{"default":[1]}},"required":["q","r"]}`:                                                                        `{"q":7,"r":[1]} {}`,
	} {
		if good, bad := argumentsFor(json.RawMessage(schema)); string(good)+" "+string(bad) != want {
			t.Errorf("%s: %s %s, not %s", schema, good, bad, want)
		}
	}
}
