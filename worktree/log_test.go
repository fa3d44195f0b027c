package worktree

import (
	"os"
	"path/filepath"
	"testing"
)

// Issue «The person's side»: what a task is writing can be looked at while it works, and looking changes nothing. The shared directory
// plays no part, whether it is ignored, tracked or new.
func TestLook(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"hidden":  {"a": "a\n", "gone": "g\n", "sub/p/gone": "g\n"},
		"ignored": {"a": "a\n", "gone": "g\n", "sub/p/gone": "g\n", ".gitignore": ".opencode/\n"},
		"tracked": {"a": "a\n", "gone": "g\n", "sub/p/gone": "g\n", ".opencode/agent.md": "agent\n"},
	} {
		for _, prefix := range []string{"", "sub/p"} {
			if name == "tracked" && prefix != "" {
				files = map[string]string{"a": "a\n", "gone": "g\n", "sub/p/a": "a\n", "sub/p/gone": "g\n", "sub/p/.opencode/agent.md": "agent\n"}
			}
			t.Run(name+" "+prefix, func(t *testing.T) {
				t.Parallel()
				x := newRigAt(t, filepath.Join(t.TempDir(), "top"), prefix, files)
				x.write(filepath.Join(prefix, ".opencode/todo.md"), "todo\n")
				c := x.take("centurion/m/t", x.head())
				at := c.Where()
				put(t, filepath.Join(at.Dir, "a"), "changed\n")
				put(t, filepath.Join(at.Dir, "new/ü"), "new\n")
				put(t, filepath.Join(at.Dir, ".opencode/other.md"), "other\n")
				if err := os.Remove(filepath.Join(at.Dir, "gone")); err != nil {
					t.Fatal(err)
				}
				before := gitIn(t, at.Dir, "status", "--porcelain")
				tree, err := x.Look(t.Context(), at)
				if err != nil {
					t.Fatal(err)
				}
				if after := gitIn(t, at.Dir, "status", "--porcelain"); after != before {
					t.Errorf("looking has changed it: %q, before %q", after, before)
				}
				done, err := c.Commit(t.Context(), "it")
				if err != nil || done.Tree != tree {
					t.Errorf("what was seen is %s, what is committed %s, %v", tree, done.Tree, err)
				}
			})
		}
	}
}
