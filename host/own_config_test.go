package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"centurion/sandbox"
	"centurion/sandbox/confine"
)

// A confined program finds the person's configuration, and has room for its own; what it has left in the way is not followed.
func TestOwnConfig(t *testing.T) {
	home, own, other := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	for _, file := range []string{".config/git/config", ".config/opencode/dcp.jsonc", ".claude/todos/a.json"} {
		if err := os.MkdirAll(filepath.Join(home, filepath.Dir(file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, file), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := &sandbox.Runner{Confine: &sandbox.Confinement{Way: confine.Full, Home: home}}
	for range 2 {
		env, err := ownConfig(run, own, "plugin x")
		if err != nil || len(env) != 2 {
			t.Fatal(env, err)
		}
		dir, claude := strings.TrimPrefix(env[0], "XDG_CONFIG_HOME="), strings.TrimPrefix(env[1], "CLAUDE_CONFIG_DIR=")
		for file, want := range map[string]string{"git/config": ".config/git/config", "opencode/dcp.jsonc": ".config/opencode/dcp.jsonc", "../" + filepath.Base(claude) + "/todos/a.json": ".claude/todos/a.json"} {
			if b, err := os.ReadFile(filepath.Join(dir, file)); string(b) != want {
				t.Errorf("%s: %q, %v", file, b, err)
			}
		}
		for _, file := range []string{filepath.Join(dir, "opencode/new"), filepath.Join(claude, "todos/b.json")} {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Error(err)
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(other, dir); err != nil { // it is made anew
			t.Fatal(err)
		}
	}
	if entries, _ := os.ReadDir(filepath.Join(home, ".claude/todos")); len(entries) != 1 {
		t.Errorf("the person's files were added to: %v", entries)
	}
	if entries, _ := os.ReadDir(other); len(entries) > 0 {
		t.Errorf("a link was followed: %v", entries)
	}
	if env, err := ownConfig(&sandbox.Runner{}, own, "plugin x"); env != nil || err != nil {
		t.Errorf("unconfined: %q, %v", env, err)
	}
}
