//go:build published

package plugin

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Six published plugins, unchanged, in one process: each loads, has its tools and hooks, and one of each is exercised.
func TestPublished(t *testing.T) {
	published := []struct {
		spec, tool, hook string
	}{
		{"opencode-skills@0.1.7", "", ""}, // its tools are the skills that it finds
		{"@tarquinen/opencode-dcp@3.1.14", "compress", "experimental.chat.system.transform"},
		{"opencode-wakatime@1.3.9", "", "chat.message"},
		{"opencode-orchestrator@1.7.22", "list_tasks", "tool.execute.before"},
		{"oh-my-opencode@4.19.4", "session_list", "tool.execute.after"},
		{"opencode-pty@0.1.3", "pty_list", "event"},
	}
	var specs []string
	for _, p := range published {
		specs = append(specs, p.spec)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "centurion-test", "published")
	bun, err := Install(t.Context(), dir, specs, npm)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	asked := map[string]bool{}
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.Method+" "+r.URL.Path] = true
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write([]byte(map[bool]string{true: "[]", false: "{}"}[strings.HasPrefix(r.URL.Path, "/session")])); err != nil {
			t.Error(err)
		}
	})
	project := t.TempDir()
	write(t, project, map[string]string{".opencode/skills/count/SKILL.md": "---\nname: count\ndescription: Counts the lines of a file in a project\n---\nRun wc -l.\n"})
	var sources []Source
	for _, spec := range specs {
		entry, _ := json.Marshal(spec)
		sources = append(sources, Find(entry, "", dir))
	}
	s := &starter{}
	h := Open(sources, Options{Start: s.start, Bun: bun.Path, State: t.TempDir(), Modules: dir, Directory: project, Serve: serve})
	defer h.Close()
	defer func() {
		if t.Failed() {
			t.Logf("standard error:\n%s", s.stderr.String())
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := h.Settled(ctx); err != nil {
		t.Fatal(err)
	}
	tools, err := h.Tools()
	if err != nil || len(tools) < 40 {
		t.Errorf("%d tools, %v", len(tools), err)
	}
	ran := map[string]bool{}
	for i, p := range published {
		st := h.Status()[i]
		if st.State != Ready || st.Version != p.spec[strings.LastIndex(p.spec, "@")+1:] || len(st.Tools)+len(st.Hooks) == 0 ||
			p.tool != "" && !slices.Contains(st.Tools, p.tool) || p.hook != "" && !slices.Contains(st.Hooks, p.hook) {
			t.Errorf("%s: %+v", p.spec, st)
		}
		if p.hook != "" && p.hook != "event" {
			out := map[string]any{"system": []string{"You are an agent."}, "args": map[string]any{"command": "ls"}, "title": "t", "output": "o", "metadata": map[string]any{},
				"message": map[string]any{"id": "msg_1", "sessionID": "ses_1", "role": "user"}, "parts": []any{map[string]any{"type": "text", "text": "hello", "id": "prt_1"}}}
			all, err := h.Run(ctx, p.hook, map[string]any{"sessionID": "ses_1", "tool": "bash", "callID": "c1", "args": map[string]any{"command": "ls"},
				"model": map[string]any{"providerID": "x", "id": "y", "limit": map[string]any{"context": 100000}}}, &out)
			for _, r := range all {
				if ran[r.Plugin+" "+p.hook] = r.Err == nil; r.Err != nil {
					t.Errorf("%s: %v", p.hook, r.Err)
				}
			}
			if err != nil || !ran[st.Name+" "+p.hook] {
				t.Errorf("%s: %v, %v", p.spec, err, ran)
			}
		}
		if p.tool != "" && p.tool != "compress" { // that one wants a conversation
			if r, err := call(t, h, p.tool, `{}`); err != nil || r.Text == "" {
				t.Errorf("%s: %+v, %v", p.tool, r, err)
			}
		}
	}
	if r, err := call(t, h, "skills_count", `{}`); err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	h.Event(map[string]any{"type": "session.created", "properties": map[string]any{"info": map[string]any{"id": "ses_1"}}})
	time.Sleep(10 * batch)
	for _, st := range h.Status() {
		if st.Failures > 0 {
			t.Errorf("%+v", st)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(s.starts) != 1 || !asked["POST /log"] {
		t.Errorf("%d processes, requests %v", len(s.starts), asked)
	}
}
