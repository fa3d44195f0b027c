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
	for _, file := range []string{".config/git/config", ".config/opencode/dcp.jsonc"} {
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
		if err != nil || len(env) != 1 {
			t.Fatal(env, err)
		}
		dir := strings.TrimPrefix(env[0], "XDG_CONFIG_HOME=")
		for _, file := range []string{"git/config", "opencode/dcp.jsonc"} {
			if b, err := os.ReadFile(filepath.Join(dir, file)); string(b) != ".config/"+file {
				t.Errorf("%s: %q, %v", file, b, err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "opencode/new"), nil, 0o600); err != nil {
			t.Error(err)
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
