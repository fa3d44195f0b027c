package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"centurion"
)

// A project that contains the person's home directory, as that of settings does, takes nothing of what is hidden there to a command: neither to
// one in a worktree, which may read the project, nor to one that works in the project itself.
func TestProjectAroundTheHome(t *testing.T) {
	for _, way := range ways {
		for name, workspace := range map[string]string{"a worktree": ".local/state/centurion/w1", "the project itself": ""} {
			s := newScene(t, way)
			s.project, s.r.Confine.Read = filepath.Join(s.home, workspace), []string{s.home}
			if err := os.MkdirAll(filepath.Join(s.project, "dir"), 0o755); err != nil {
				t.Fatal(err)
			}
			for script, want := range map[string]bool{
				`cat "$HOME/.bashrc" "$HOME/other/file" && echo new > dir/new && cat dir/new`: true,
				`cat "$HOME/.ssh/id_ed25519"`:         false,
				`cat "$STATE/token"`:                  false,
				`echo x >> "$HOME/.ssh/id_ed25519"`:   false,
				`echo x > "$HOME/.ssh/planted"`:       false,
				`mv "$HOME/.ssh" "$HOME/other/moved"`: false,
			} {
				if res := s.run(t, centurion.Command{Script: script}); (res.ExitCode == 0) != want {
					t.Errorf("%s, %s: %s: exit %d, %q", way, name, script, res.ExitCode, res.Output)
				}
			}
			if b, err := os.ReadFile(filepath.Join(s.home, ".ssh/id_ed25519")); string(b) != "PRIVATE" {
				t.Errorf("%s, %s: the key is %q, %v", way, name, b, err)
			}
			if err := os.RemoveAll(filepath.Join(s.state, "w1")); err != nil {
				t.Fatal(err)
			}
		}
	}
}
