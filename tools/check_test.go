package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"centurion"
)

// Check checks an input as [Normalize] does, and repairs nothing.
func Check(t Tool, input json.RawMessage) error {
	v, err := parseInput(t, input)
	if err != nil {
		return err
	}
	return check(t, v)
}

func tool(t testing.TB, name string) Tool {
	t.Helper()
	ts, err := Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return ts[0]
}

func TestNormalize(t *testing.T) {
	tests := []struct{ name, tool, in, want string }{
		{"nothing to do keeps the bytes", "read", `{ "filePath":"a" }`, `{ "filePath":"a" }`},
		{"no input at all", "ls", ``, `{}`},
		{"number as a string", "read", `{"filePath":"a","limit":"12"}`, `{"filePath":"a","limit":12}`},
		{"whole number with a point", "read", `{"filePath":"a","limit":12.0}`, `{"filePath":"a","limit":12}`},
		{"whole number with an exponent", "bash", `{"command":"ls","timeout":6e3}`, `{"command":"ls","timeout":6000}`},
		{"boolean as a string", "edit", `{"filePath":"a","oldString":"x","newString":"y","replaceAll":"True"}`,
			`{"filePath":"a","newString":"y","oldString":"x","replaceAll":true}`},
		{"boolean with blanks around it", "edit", `{"filePath":"a","oldString":"x","newString":"y","replaceAll":" false\n"}`,
			`{"filePath":"a","newString":"y","oldString":"x","replaceAll":false}`},
		{"number for a string", "write", `{"filePath":"a","content":42}`, `{"content":"42","filePath":"a"}`},
		{"null for what can be left out", "read", `{"filePath":"a","offset":null}`, `{"filePath":"a"}`},
		{"other capitals and underscores", "read", `{"file_path":"a"}`, `{"filePath":"a"}`},
		{"list as a string", "update_todo", `{"items":"[{\"id\":\"T1\",\"status\":\"done\"}]"}`, `{"items":[{"id":"T1","status":"done"}]}`},
		{"one object for a list", "update_todo", `{"add":{"title":"x"}}`, `{"add":[{"title":"x"}]}`},
		{"one string for a list", "update_todo", `{"add":[{"title":"x","after":"T1"}]}`, `{"add":[{"after":["T1"],"title":"x"}]}`},
		{"empty string for a list", "update_todo", `{"add":[{"title":"x","after":""}]}`, `{"add":[{"after":[],"title":"x"}]}`},
		{"the whole input as a string", "read", `"{\"filePath\":\"a\"}"`, `{"filePath":"a"}`},
		{"a string that looks like a number stays one", "write", `{"filePath":"1","content":"true"}`, `{"filePath":"1","content":"true"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Normalize(tool(t, tt.tool), json.RawMessage(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			want(t, "input", string(got), tt.want)
			if err := Check(tool(t, tt.tool), got); err != nil {
				t.Errorf("what was repaired does not fit: %v", err)
			}
		})
	}
}

func TestWrongArguments(t *testing.T) {
	tests := []struct {
		name, tool, in string
		words          []string
	}{
		{"missing", "edit", `{"filePath":"a"}`, []string{`"oldString" is missing`, `"newString" is missing`, "{filePath, oldString, newString, replaceAll?}"}},
		{"unknown with a near one", "read", `{"filePath":"a","ofset":3}`, []string{`"ofset" is not a property`, `did you mean "offset"?`}},
		{"many", "read", `{"a1":1,"b2":1,"c3":1,"d4":1,"e5":1,"f6":1}`, []string{`"filePath" is missing`, `"d4" is not a property`, "; and 2 more"}},
		{"unknown", "read", `{"filePath":"a","zzzzzzzz":3}`, []string{`"zzzzzzzz" is not a property`}},
		{"wrong type", "read", `{"filePath":"a","limit":"ten"}`, []string{`"limit" is "ten" and has to be a whole number`}},
		{"fraction", "read", `{"filePath":"a","limit":1.5}`, []string{`"limit" is 1.5 and has to be a whole number`}},
		{"too large", "bash", `{"command":"ls","timeout":600001}`, []string{`"timeout" is 600001 and has to be at most 600000`}},
		{"too small", "read", `{"filePath":"a","limit":0}`, []string{`"limit" is 0 and has to be at least 1`}},
		{"huge exponent", "read", `{"filePath":"a","limit":1e999999999}`, []string{`"limit"`}},
		{"empty", "bash", `{"command":""}`, []string{`"command" is empty`}},
		{"not one of", "update_todo", `{"items":[{"id":"T1","status":"dome"}]}`,
			[]string{`"items[0].status" is "dome"`, "open, done, cancelled, blocked", `did you mean "done"?`}},
		{"nested missing", "update_todo", `{"add":[{"title":"a"},{"agent":"worker"}]}`, []string{`"add[1].title" is missing`}},
		{"not an object", "ls", `[1]`, []string{"the input is [1] and has to be an object"}},
		{"cut off", "write", `{"filePath":"a","content":"x`, []string{"not valid JSON", "{filePath, content}"}},
		{"two objects", "ls", `{} {}`, []string{"not valid JSON"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Normalize(tool(t, tt.tool), json.RawMessage(tt.in))
			if err == nil {
				t.Fatal("it fits")
			}
			want(t, "kind", centurion.KindOf(err), centurion.KindUsage)
			says(t, err.Error()+" "+centurion.HintOf(err), tt.words...)
			if Check(tool(t, tt.tool), json.RawMessage(tt.in)) == nil {
				t.Error("Check lets it through")
			}
		})
	}
}

// wrapped is a tool as a host may hold it, with something around it.
type wrapped struct{ Tool }

func TestWrappedTool(t *testing.T) {
	own := tool(t, "edit")
	if a, b := Spec(own), Spec(wrapped{own}); &a.Schema[0] != &b.Schema[0] {
		t.Error("a wrapped tool's schema is marshalled anew")
	}
	in, err := Normalize(wrapped{own}, json.RawMessage(`{"file_path":"a","oldString":"b","newString":"c"}`))
	if err != nil || !strings.Contains(string(in), `"filePath":"a"`) {
		t.Errorf("%s, %v", in, err)
	}
}

func BenchmarkNormalize(b *testing.B) {
	edit, in := tool(b, "edit"), json.RawMessage(`{"filePath":"a.go","oldString":"some text","newString":"some other text"}`)
	for b.Loop() {
		if _, err := Normalize(edit, in); err != nil {
			b.Fatal(err)
		}
	}
}

func TestRegistry(t *testing.T) {
	_, err := Named("read", "delegate_taks")
	if err == nil {
		t.Fatal("an unknown tool was found")
	}
	says(t, err.Error(), `did you mean "delegate_task"?`)
	got, err := Named("bash", "read")
	if err != nil || len(got) != 2 || got[0].Name() != "bash" || got[1].Name() != "read" {
		t.Fatalf("Named: %v, %v", got, err)
	}
	seen := map[string]bool{}
	for _, tl := range All() {
		if seen[tl.Name()] {
			t.Errorf("two tools are called %s", tl.Name())
		}
		seen[tl.Name()] = true
		spec := Spec(tl)
		var schema struct {
			Type                 string
			Properties           map[string]struct{ Type, Description string }
			Required             []string
			AdditionalProperties *bool
		}
		if err := json.Unmarshal(spec.Schema, &schema); err != nil {
			t.Fatalf("%s: %v", tl.Name(), err)
		}
		if schema.Type != "object" || schema.AdditionalProperties == nil || *schema.AdditionalProperties {
			t.Errorf("%s: schema is not a closed object: %s", tl.Name(), spec.Schema)
		}
		for name, p := range schema.Properties {
			if p.Type == "" || p.Description == "" {
				t.Errorf("%s: property %s has no type or no description", tl.Name(), name)
			}
		}
		if c := compile(tl); c.err != nil {
			t.Errorf("%s: %v", tl.Name(), c.err)
		}
		if n := strings.Count(spec.Description, "\n") + 1; n > 12 || !strings.Contains(spec.Description, "Example: {") {
			t.Errorf("%s: the description has %d lines and must have at most 12, one of them an example", tl.Name(), n)
		}
		checkExample(t, tl)
	}
	if len(seen) != 23 {
		t.Errorf("%d tools, want 23", len(seen))
	}
}

// checkExample holds the example of a description against the schema.
func checkExample(t *testing.T, tl Tool) {
	t.Helper()
	_, after, _ := strings.Cut(tl.Description(), "Example: ")
	line, _, _ := strings.Cut(after, "\n")
	if err := Check(tl, json.RawMessage(line)); err != nil {
		t.Errorf("%s: the example %s: %v", tl.Name(), line, err)
	}
}

func TestEffects(t *testing.T) {
	tests := []struct {
		tool, in string
		readOnly bool
		hosted   bool
		writes   []string
	}{
		{"read", `{"filePath":"a"}`, true, false, nil},
		{"ls", `{}`, true, false, nil},
		{"glob", `{"pattern":"*"}`, true, false, nil},
		{"grep", `{"pattern":"x"}`, true, false, nil},
		{"write", `{"filePath":"b/../a.txt","content":""}`, false, false, []string{"a.txt"}},
		{"edit", `{"filePath":"./a.txt"}`, false, false, []string{"a.txt"}},
		{"write", `{"filePath":"/etc/x"}`, false, false, nil},
		{"write", `{"filePath":"../x"}`, false, false, nil},
		{"write", `{"filePath":"~/x"}`, false, false, nil},
		{"bash", `{"command":"git status && ls -la | head"}`, true, false, nil},
		{"bash", `{"command":"make"}`, false, false, nil},
		{"bash", `{"command":"cat ../secret"}`, false, false, nil},
		{"bash", `{"command":"ls","workdir":"sub"}`, false, false, nil},
		{"bash", `{"command":`, false, false, nil},
		{"update_todo", `{}`, false, true, nil},
		{"delegate_task", `{}`, false, true, nil},
		{"cancel_task", `{}`, false, true, nil},
		{"mission_complete", `{}`, false, true, nil},
		{"get_task_result", `{}`, true, false, nil},
		{"webfetch", `{"url":"https://x"}`, true, false, nil},
		{"websearch", `{"query":"x"}`, true, false, nil},
		{"codesearch", `{"query":"x"}`, true, false, nil},
		{"cache_docs", `{"action":"list"}`, true, false, nil},
		{"cache_docs", `{"action":"get"}`, true, false, nil},
		{"cache_docs", `{"action":"clear"}`, false, true, nil},
		{"list_tasks", `{}`, true, false, nil},
	}
	for _, tt := range tests {
		e := tool(t, tt.tool).Effect(json.RawMessage(tt.in))
		if e.ReadOnly != tt.readOnly || e.Hosted != tt.hosted || !slices.Equal(e.Writes, tt.writes) {
			t.Errorf("%s %s: %+v", tt.tool, tt.in, e)
		}
	}
}

// After a crash, a call that was done once is not done again, and what has to begin before all others is known by its name. What
// cannot be read may do anything.
func TestEffectsOfHostedTools(t *testing.T) {
	got := map[string]string{}
	for _, tl := range append(All(), NotesOnly()) {
		e := tl.Effect(json.RawMessage(`{"action":"clear"}`))
		if e.Once || e.Beside || e.Alike != "" {
			got[tl.Name()] = fmt.Sprintf("once=%v beside=%v %s", e.Once, e.Beside, e.Alike)
		}
		if e := tl.Effect(json.RawMessage(`{`)); e.ReadOnly || e.Hosted || e.Once || e.Beside || e.Alike != "" || e.Writes != nil {
			t.Errorf("%s with half an input: %+v", tl.Name(), e)
		}
		if _, err := tl.Run(t.Context(), newBench(t).Call, json.RawMessage(`{`)); centurion.KindOf(err) != centurion.KindUsage {
			t.Errorf("%s runs with half an input: %v", tl.Name(), err)
		}
	}
	if d := cmp.Diff(map[string]string{
		"ask_user":         "once=true beside=true ask_user",
		"cancel_task":      "once=true beside=false cancel_task",
		"delegate_task":    "once=true beside=false delegate_task",
		"mission_complete": "once=true beside=false ",
		"sub_agent":        "once=true beside=false sub_agent",
		"update_context":   "once=true beside=false ",
	}, got); d != "" {
		t.Error(d)
	}
}

// narrowed is a tool that shows a model less than it takes.
type narrowed struct {
	Tool
	schema json.RawMessage
}

func (n narrowed) Narrowed() json.RawMessage { return n.schema }

func TestNarrowedSpec(t *testing.T) {
	tl := tool(t, "read")
	want(t, "narrowed", string(Spec(narrowed{tl, json.RawMessage(`{"x":1}`)}).Schema), `{"x":1}`)
	want(t, "not narrowed", string(Spec(narrowed{tl, nil}).Schema), string(Spec(tl).Schema))
}

// What Normalize accepts fits the schema, whatever comes in, and is accepted unchanged a second time.
func FuzzNormalize(f *testing.F) {
	for _, s := range []string{`{"filePath":"a","limit":"3"}`, `{"items":"[{}]"}`, `"{}"`, `{"add":{"title":1,"after":"x"}}`, `null`, `{"a`, `1e99`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		for _, name := range []string{"read", "edit", "update_todo", "bash"} {
			tl := tool(t, name)
			out, err := Normalize(tl, json.RawMessage(in))
			if err != nil {
				continue
			}
			if err := Check(tl, out); err != nil {
				t.Fatalf("%s: %q became %q: %v", name, in, out, err)
			}
			again, err := Normalize(tl, out)
			if err != nil || string(again) != string(out) {
				t.Fatalf("%s: %q became %q and then %q, %v", name, in, out, again, err)
			}
		}
	})
}
