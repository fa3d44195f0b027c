package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"centurion/provider/scripted"
)

// s10Texts control a terminal, lead away by a link, take a notice apart or pretend to be an option.
var s10Texts = []string{"\x1b[2J\x1b[31mred", "\x1b]0;title\x07", "\x1b]8;;http://evil.example\x07link\x1b]8;;\x07", "\x1b]52;c;ZXZpbA==\x07", "\x1bP1$r\x1b\\", "\x1b[?1049h", "\x9b31m", "\u009b2J",
	"\r\x1b[Kfaked line", "\x08\x08\x08over", "\x00nul", "\x7f", "\u202etxt.exe", "\u2066hidden\u2069", "--help", "<b>bold</b><img src=x onerror=alert(1)>", "&amp;", "a\x1b[6n", "\x1b[>c", "\x1b#8", "\x0e\x0f"}

// s10Raw matches what a text must not have: control characters but tabs and line feeds, and those that turn the direction of writing.
var s10Raw = regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u202a-\u202e\u2066-\u2069]")

// s10 has a model, its tools and its plan say what controls terminals. Everything that the program prints about it is searched, as text
// and as a page.
func s10(ctx context.Context, t *T) {
	evil := strings.Join(s10Texts, " ")
	p := t.Project(map[string]string{"evil.txt": evil + "\n", personRules: "{}"})
	b, err := json.Marshal(map[string]any{"permission": map[string]any{"*": "allow", "bash": map[string]string{"*": "allow", "touch *": "ask"}},
		"plugin": []any{[]any{"exec:plug", map[string]any{"command": p.outside(outsidePlugin, "plug", "", "evil.txt")}}},
		"mcp":    map[string]any{"evil": map[string]any{"type": "local", "command": p.outside(outsideServer, "evil", "", "evil.txt")}},
		"agent":  map[string]any{"commander": map[string]any{"tools": map[string]bool{"plug_*": true, "evil_*": true}}}})
	t.Must(err)
	p.put(personRules, string(b))
	p.Env = append(p.Env, "NO_COLOR=1")
	list, listed := p.Run("plugin", "list")
	if list != 0 || strings.Count(listed, " ready ") != 2 {
		t.Fatalf("the programs from outside do not work: %s", listed)
	}
	var mu sync.Mutex
	var outside strings.Builder // what models are told of the tools from outside
	p.Serve(scripted.Config{Pace: -1, Chunk: 3, Func: func(r scripted.Request) scripted.Answer {
		if len(r.Tools()) == 0 {
			return scripted.Answer{Say: evil}
		}
		var given any
		if json.Unmarshal(r.Field("tools"), &given) == nil {
			mu.Lock()
			fmt.Fprint(&outside, given)
			mu.Unlock()
		}
		switch len(history(r)) {
		case 0:
			return scripted.Answer{Say: evil, Reasoning: evil, Calls: []scripted.Call{tool("bash", map[string]any{"command": "cat evil.txt; exit 1", "description": evil}),
				tool("update_todo", map[string]any{"content": "# Plan\n- [ ] T1 Do " + strings.ReplaceAll(evil, "\n", " ") + "\n", "level": 2}),
				tool("read", map[string]any{"filePath": evil}), tool("bash", map[string]any{"command": "touch x # " + evil, "description": evil})}}
		case 4:
			return scripted.Answer{Calls: []scripted.Call{tool("delegate_task", map[string]any{"agent": "worker", "description": evil, "prompt": evil}), tool("no\x1b[31mtool", nil),
				tool("plug_run", map[string]any{"command": "cat evil.txt"}), tool("evil_run", map[string]any{"command": "cat evil.txt"})}}
		}
		return scripted.Answer{Say: evil}
	}})
	c := p.Start("run", "--model", "custom/m", "--ask", "deny", "Print "+strings.ReplaceAll(evil, "\x00", ""))
	c.Wait(t, waitLimit)
	report := filepath.Join(p.Root, "report.html")
	printed := map[string]string{"run": c.Stdout() + c.Stderr(), "plugin list": listed, "a model's tools": outside.String()}
	for _, args := range [][]string{{"show"}, {"show", "--format", "json"}, {"ps"}, {"tasks"}, {"logs"}, {"logs", "--format", "json"}, {"report", "-o", report}, {"context"}, {"diff"}, {"doctor"}, {"asks"}, {"plugin", "list", "--format", "json"}} {
		_, printed[strings.Join(args, " ")] = p.Run(args...)
	}
	bytes, raw := 0, 0
	for what, text := range printed {
		bytes += len(text)
		if at := s10Raw.FindStringIndex(text); at != nil {
			raw++
			t.Failf("%s prints %q", what, text[max(0, at[0]-40):min(len(text), at[1]+20)])
		}
	}
	page := readAll(report)
	if s10Raw.MatchString(page) || strings.Contains(page, "<img src=x") || strings.Contains(page, "<b>bold") {
		raw++
		t.Failf("the page has it raw")
	}
	t.Figure("texts", len(s10Texts))
	t.Figure("bytes searched", bytes+len(page))
	t.Figure("raw", raw)
	if !strings.Contains(printed["run"], "red") || !strings.Contains(outside.String(), "red") || len(page) < 1000 {
		t.Failf("too little was printed: %s", lastLines(printed["run"], 5))
	}
}
