package trial

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"

	"centurion/provider/scripted"
)

// s7Canaries are keys by where they are kept, each of a shape that only its place tells.
var s7Canaries = map[string]string{
	"environment":        "zq7own1environment2canary",
	"key of the model":   "zq7own2model3key4canary5",
	"configured key":     "zq7own3configured4canary",
	"header":             "zq7own4header5canary6of7",
	"file of keys":       "zq7own5auth6file7canary8",
	"password in an URL": "zq7own6password7canary8x",
	"shape of a key":     "ghp_0123456789abcdefghijABCDEFGHIJ012345",
}

// s7 has keys in every place where a person keeps them. Agents print them, and the provider's errors repeat them. Then everything that
// the program has written, printed or sent is searched.
func s7(ctx context.Context, t *T) {
	p := t.Project(map[string]string{"keys.txt": strings.Join(s7All(), "\n") + "\n"})
	p.put("~/.config/opencode/opencode.json", `{"permission": "allow", "provider": {"other": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "https://user:`+
		s7Canaries["password in an URL"]+`@example.com/v1", "apiKey": "`+s7Canaries["configured key"]+`", "headers": {"X-Api-Key": "`+s7Canaries["header"]+`"}}, "models": {"m": {}}}}}`)
	p.put("~/.local/share/opencode/auth.json", `{"third": {"type": "api", "key": "`+s7Canaries["file of keys"]+`"}}`)
	p.Env = append(p.Env, "SERVICE_API_KEY="+s7Canaries["environment"], "OPENAI_API_KEY="+s7Canaries["key of the model"])
	all := strings.Join(s7All(), " ")
	step := 0
	model := p.Serve(scripted.Config{Pace: -1, Chunk: -1, Key: s7Canaries["key of the model"], Func: func(r scripted.Request) scripted.Answer {
		if len(r.Tools()) == 0 {
			return scripted.Answer{Say: "It is " + all}
		}
		if step++; step == 1 {
			return scripted.Answer{Error: &scripted.Error{Status: 503, Message: "overloaded, key " + all}}
		}
		switch len(history(r)) {
		case 0:
			return scripted.Answer{Say: "I look for " + all, Reasoning: "It is " + all, Calls: []scripted.Call{tool("bash", map[string]any{"command": "cat keys.txt; env; cat keys.txt >&2; echo " + all})}}
		case 1:
			return scripted.Answer{Calls: []scripted.Call{tool("read", map[string]any{"filePath": "keys.txt"}), tool("grep", map[string]any{"pattern": "."}),
				tool("update_todo", map[string]any{"content": "# Keys\n- [ ] T1 Use " + all + "\n"}), tool("update_context", map[string]any{"note": "The keys are " + all}),
				tool("bash", map[string]any{"command": "exit 3 # " + all, "description": all})}}
		}
		return scripted.Answer{Say: "They are " + all}
	}})
	c := p.Start("run", "--format", "json", "--model", "custom/m", "--sandbox", "off", "--ask", "allow", "Use "+all)
	c.Wait(t, waitLimit)
	var told strings.Builder
	told.WriteString(c.Stdout() + c.Stderr())
	for _, args := range [][]string{{"show"}, {"show", "--format", "json"}, {"logs"}, {"report", "-o", filepath.Join(p.Dir, "report.html")}, {"doctor"}, {"ps"}, {"tasks"}} {
		_, out := p.Run(args...)
		told.WriteString(out)
	}
	files := 0
	found := s7Found("what it printed", told.String())
	for _, root := range []string{p.State, p.Dir} {
		t.Must(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && d.Name() != "keys.txt" {
				files++
				found = append(found, s7Found(path, readAll(path))...)
			}
			return nil
		}))
	}
	requests := 0
	for _, r := range model.Requests() {
		requests++
		for _, m := range r.Messages() {
			found = append(found, s7Found("a request to the model", m.Text)...)
		}
	}
	if !strings.Contains(told.String(), "[key ") || requests < 3 || files < 4 {
		t.Failf("nothing was replaced, or too little happened: %d requests, %d files: %s", requests, files, lastLines(told.String(), 3))
	}
	t.Figure("keys", len(s7Canaries))
	t.Figure("files searched", files)
	t.Figure("requests searched", requests)
	t.Figure("found", len(found))
	for _, f := range found {
		t.Failf("%s", f)
	}
}

// s7All are the canaries.
func s7All() (all []string) {
	for _, key := range s7Canaries {
		all = append(all, key)
	}
	return all
}

// s7Found names the keys in a text.
func s7Found(where, text string) (found []string) {
	for name, key := range s7Canaries {
		if strings.Contains(text, key) {
			found = append(found, name+" in "+where)
		}
	}
	return found
}
