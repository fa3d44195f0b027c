package config

import (
	"os"
	"path/filepath"
	"testing"

	"centurion"
)

// Whatever a configuration rests on, a change of it is seen, and nothing else is, also while the configuration is faulty.
func TestStamps(t *testing.T) {
	w := newWorld(t)
	w.global("opencode/opencode.json", `{"agent": {"a": {"prompt": "{file:./prompt.txt}"}}}`)
	w.global("opencode/prompt.txt", "one")
	w.project("opencode.json", `{"command": {"b": {"template": "{file:more/b.txt}"}}}`)
	w.project("more/b.txt", "one")
	w.project(".opencode/agents/below/c.md", "You are c.")
	w.project("other.json", "{}")
	state, err := w.opts.stateDir()
	if err != nil {
		t.Fatal(err)
	}
	read := func() error {
		w.opts.Stamps = Stamps{}
		_, err := Load(w.opts)
		return err
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	in := func(path ...string) string { return filepath.Join(append([]string{w.dir}, path...)...) }
	for _, tt := range []struct {
		name, path, text string // an empty text removes it
		same, faulty     bool
	}{
		{name: "a file that was read", path: in("opencode.json"), text: `{"command": {"b": {"template": "{file:more/b.txt} 2"}}}`},
		{name: "a part of it", path: in("more/b.txt"), text: "two and more"},
		{name: "a part of the person's", path: filepath.Join(w.home, ".config/opencode/prompt.txt"), text: "two and more"},
		{name: "an agent", path: in(".opencode/agents/below/c.md"), text: "You are another c."},
		{name: "an agent beside it", path: in(".opencode/agents/below/d.md"), text: "You are d."},
		{name: "an agent in a new directory", path: in(".opencode/agents/e/e.md"), text: "You are e."},
		{name: "the first command", path: in(".opencode/command/f.md"), text: "do f"},
		{name: "an agent that goes", path: in(".opencode/agents/below/d.md")},
		{name: "one that is faulty", path: in(".opencode/agents/g.md"), text: "---\nprompt: \"", faulty: true},
		{name: "and is mended", path: in(".opencode/agents/g.md"), text: "---\nmode: all\n---\n"},
		{name: "the first of our own", path: in(".opencode/centurion.jsonc"), text: `{"max_rounds": `, faulty: true},
		{name: "another fault", path: in(".opencode/centurion.jsonc"), text: `{"max_rounds": "x"}`, faulty: true},
		{name: "a good one", path: in(".opencode/centurion.jsonc"), text: `{"max_rounds": 3}`},
		{name: "what is trusted", path: filepath.Join(ProjectDir(state, w.dir), "trust.json"), text: "[]"},
		{name: "a key", path: filepath.Join(state, "auth.json"), text: "{}"},
		{name: "a file of nobody", path: in("other.json"), text: `{"model": "x/y"}`, same: true},
	} {
		if w.opts.Stamps.Changed() {
			t.Fatalf("before %s: a change is seen", tt.name)
		}
		if tt.text == "" {
			if err := os.Remove(tt.path); err != nil {
				t.Fatal(err)
			}
		} else {
			w.write(tt.path, tt.text)
		}
		if w.opts.Stamps.Changed() == tt.same {
			t.Errorf("%s: seen: %v", tt.name, !tt.same)
		}
		if err := read(); (centurion.KindOf(err) == centurion.KindConfig) != tt.faulty || err != nil && !tt.faulty {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if _, err := Load(Options{Dir: w.dir, Home: w.home, Env: w.opts.Env}); err != nil {
		t.Errorf("without stamps: %v", err)
	}
}
