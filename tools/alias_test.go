package tools

import (
	"encoding/json"
	"strings"
	"testing"

	"centurion"
)

// ORCH-54, ORCH-55, ORCH-56, ORCH-100: the other names of tools, and what a call under one of them means.
func TestOtherNames(t *testing.T) {
	for _, tt := range []struct{ name, tool, in, want string }{
		{"grep_search", "grep", `{"pattern":"x","dir":"src"}`, `{"path":"src","pattern":"x"}`},
		{"grep_search", "grep", `{"pattern":"x","path":"a","directory":"b"}`, `{"directory":"b","path":"a","pattern":"x"}`},
		{"mgrep", "grep", `{"patterns":["x","y"],"directory":"src"}`, `{"path":"src","patterns":["x","y"]}`},
		{"glob_search", "glob", `{"pattern":"*.go"}`, `{"pattern":"*.go"}`},
		{"call_agent", "delegate_task", `{"agent":"worker","prompt":" Look at it.\nThen say."}`,
			`{"agent":"worker","background":false,"description":"Look at it.","prompt":" Look at it.\nThen say."}`},
		{"call_agent", "delegate_task", `{"agent":"worker","prompt":"x","description":"d","background":true}`,
			`{"agent":"worker","background":true,"description":"d","prompt":"x"}`},
		{"call_agent", "delegate_task", `{"agent":1,"prompt":2}`, `{"agent":1,"background":false,"prompt":2}`},
		{"call_agent", "delegate_task", `not json`, `not json`},
		{"call_agent", "delegate_task", `null`, `null`},
		{"grep", "", `{"dir":"src"}`, `{"dir":"src"}`},
		{"Call_Agent", "", `{}`, `{}`},
		{"", "", `{}`, `{}`},
	} {
		if got := Served(tt.name, func(string) bool { return true }); got != tt.tool {
			t.Errorf("%q is served by %q", tt.name, got)
		}
		if got := Adapt(tt.name, json.RawMessage(tt.in)); string(got) != tt.want {
			t.Errorf("%s %s became %s, want %s", tt.name, tt.in, got, tt.want)
		}
	}
	planner := func(tool string) bool { return tool == "delegate_task" || tool == "grep" }
	if Served("call_agent", planner) != "" || Served("grep_search", planner) != "grep" || Served("glob_search", planner) != "" {
		t.Error("a name is served to a role that it is not of")
	}
	// One implementation each, never two in one schema.
	for _, a := range aliases {
		if _, err := Named(a.name); err == nil {
			t.Errorf("%s is a tool of its own", a.name)
		}
		if _, err := Named(a.tool); err != nil {
			t.Error(err)
		}
	}
	long := Adapt("call_agent", mustJSON(t, args{"agent": "worker", "prompt": strings.Repeat("word ", 100)}))
	var in delegateTaskInput
	if err := json.Unmarshal(long, &in); err != nil || len(in.Description) > descriptionLen+len("…") {
		t.Errorf("description %q, %v", in.Description, err)
	}
}

// ORCH-100: several patterns at once: lines that match any of them, each once, and how many each has found.
func TestGrepPatterns(t *testing.T) {
	b := newBench(t)
	b.put("a.go", "alpha\nbeta\nalpha beta\ngamma\n(x)\n")
	b.put("b.go", "Beta\n")
	for _, tt := range []struct {
		in   grepInput
		want string
	}{
		{grepInput{Patterns: []string{"alpha", "(?i)beta", "nothing"}},
			"a.go\n     1| alpha\n     2| beta\n     3| alpha beta\n\nb.go\n     1| Beta\n\n(4 matches in 2 files)\n(alpha: 2 lines)\n((?i)beta: 3 lines)\n(nothing: 0 lines)\n"},
		{grepInput{Pattern: "gamma", Patterns: []string{`^\(x`}}, "a.go\n     4| gamma\n     5| (x)\n\n(2 matches in 1 file)\n(gamma: 1 line)\n(^\\(x: 1 line)\n"},
		{grepInput{Patterns: []string{"gamma"}}, "a.go\n     4| gamma\n\n(1 match in 1 file)\n"},
		{grepInput{Patterns: []string{"no", "nor"}}, "no line matches in 2 files\n"},
	} {
		r, err := runGrep(t.Context(), b.Call, tt.in)
		if err != nil || r.Output != tt.want {
			t.Errorf("%+v: got\n%s\nwant\n%s\n%v", tt.in, r.Output, tt.want, err)
		}
	}
	b.refused("grep", args{}, centurion.KindUsage, "there is no pattern", "several in patterns")
	b.refused("grep", args{"patterns": []string{"a", "b("}}, centurion.KindUsage, `"b(" is not a regular expression`)
	b.must("grep", args{"patterns": "alpha"})
}
