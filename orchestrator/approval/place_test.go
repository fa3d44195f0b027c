package approval

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"centurion/permission"
	"centurion/tools"
	"centurion/workspace"
)

// S1, S2, issue "Trust" 2 and 3: by default a link that the project ships is not read by a command, and git does not run what the
// project's own configuration names.
func TestScriptsSeeTheProject(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir := filepath.Join(base, "project")
	os.MkdirAll(filepath.Join(base, ".ssh"), 0o700)
	os.WriteFile(filepath.Join(base, ".ssh/id_ed25519"), []byte("key"), 0o600)
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Symlink("../.ssh/id_ed25519", filepath.Join(dir, "link")); err != nil {
		if runtime.GOOS != "windows" { // there, links need a right of their own
			t.Fatal(err)
		}
		t.Skip(err)
	}
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	rules := func(string) []permission.Level {
		return []permission.Level{{Name: permission.DefaultLevel, Rules: permission.Defaults(false)}}
	}
	m := New(nil, nil, nil, Config{Rules: rules, Home: base, Workspace: ws})
	decide := func(script string) permission.Action {
		return m.Decide("worker", tools.Access{Permission: "bash", Script: script}).Action
	}
	for script, want := range map[string]permission.Action{"cat link": permission.Ask, "cat l*": permission.Ask, "grep -R x .": permission.Ask, "grep -r x .": permission.Allow, "git status": permission.Allow, "git diff && ls": permission.Allow} {
		if got := decide(script); got != want {
			t.Errorf("%s: %s, want %s", script, got, want)
		}
	}
	if out, err := exec.Command("git", "-C", dir, "config", "core.fsmonitor", "./x").CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	for script, want := range map[string]permission.Action{"git status": permission.Ask, "ls && git diff": permission.Ask, "ls": permission.Allow} {
		if got := decide(script); got != want {
			t.Errorf("%s with a hostile configuration: %s, want %s", script, got, want)
		}
	}
}
