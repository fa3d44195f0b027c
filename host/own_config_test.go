package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"centurion/sandbox"
	"centurion/sandbox/confine"
)

// A confined plugin finds the person's configuration without keys, and has room for its own; what it has left in the way is not followed.
func TestOwnConfig(t *testing.T) {
	home, own, other := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", "")
	for _, file := range []string{"git/config", "gh/hosts.yml", "opencode/dcp.jsonc", "opencode/opencode.json", "opencode/agent/a.md"} {
		path := filepath.Join(home, ".config", file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := &sandbox.Runner{Confine: &sandbox.Confinement{Way: confine.Full, Home: home, Hide: sandbox.Hidden(home)}}
	for range 2 {
		env, err := ownConfig(run, own, "plugin x")
		if err != nil || len(env) != 2 {
			t.Fatal(env, err)
		}
		dir, claude := strings.TrimPrefix(env[0], "XDG_CONFIG_HOME="), strings.TrimPrefix(env[1], "CLAUDE_CONFIG_DIR=")
		for _, file := range []string{"git/config", "opencode/dcp.jsonc"} {
			if b, err := os.ReadFile(filepath.Join(dir, file)); string(b) != file {
				t.Errorf("%s: %q, %v", file, b, err)
			}
		}
		for _, file := range []string{"gh", "opencode/opencode.json", "opencode/agent"} {
			if _, err := os.Lstat(filepath.Join(dir, file)); !os.IsNotExist(err) {
				t.Errorf("%s is there: %v", file, err)
			}
		}
		for _, file := range []string{filepath.Join(dir, "opencode/dcp.jsonc"), filepath.Join(dir, "opencode/new"), filepath.Join(claude, "new")} {
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
	if entries, _ := os.ReadDir(other); len(entries) > 0 {
		t.Errorf("a link was followed: %v", entries)
	}
	if env, err := ownConfig(&sandbox.Runner{}, own, "plugin x"); env != nil || err != nil {
		t.Errorf("unconfined: %q, %v", env, err)
	}
}
