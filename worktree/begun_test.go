package worktree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What an agent has begun with git and left in the middle is over once its work was committed: git says of the checkout what it
// said at the start, and a commit of the next turn is none of a merge. Its files are taken as they are.
func TestCommitEndsWhatTheAgentBegan(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string][]string{
		"merge":       {"merge", "other"},
		"cherry-pick": {"cherry-pick", "main~1..other"}, // of several, so that git has a list of what is left
		"revert":      {"revert", "--no-edit", "HEAD~1"},
		"rebase":      {"rebase", "other"},
		"rebase -i":   {"-c", "sequence.editor=true", "rebase", "-i", "other"},
		"apply":       {"-c", "rebase.backend=apply", "rebase", "--apply", "other"},
		"bisect":      {"bisect", "start", "HEAD", "main~1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newRig(t, map[string]string{"a": "0\n"})
			for _, text := range []string{"1\n", "2\n"} {
				x.write("a", text)
				x.person("commit", "-qam", "main "+text)
			}
			x.person("branch", "other", "main~1")
			c := x.take("work/T1", x.head())
			dir := c.Where().Dir
			clean := gitIn(t, dir, "status")
			own := filesOf(t, c.rec.GitDir)
			x.person("switch", "-q", "other")
			for _, text := range []string{"theirs\n", "theirs, too\n"} {
				x.write("a", text)
				x.person("commit", "-qam", text)
			}
			put(t, filepath.Join(dir, "a"), "mine\n")
			gitIn(t, dir, "commit", "-qam", "own")
			if out, err := tryGit(t.Context(), dir, begin...); err == nil && name != "bisect" {
				t.Fatalf("git %v came to its end: %s", begin, out)
			}
			if gitIn(t, dir, "status") == clean {
				t.Fatal("nothing was begun")
			}
			put(t, filepath.Join(dir, "a"), "mine\n")
			if got := changed(commit(t, c)); !slices.Equal(got, []string{"modified a"}) {
				t.Errorf("changed %q", got)
			}
			if got := gitIn(t, dir, "status"); got != clean {
				t.Errorf("git says:\n%s\nnot:\n%s", got, clean)
			}
			for _, f := range filesOf(t, c.rec.GitDir) {
				left := strings.HasPrefix(f, "MERGE_") || strings.HasPrefix(f, "rebase-") || f == "sequencer" || f == "AUTO_MERGE" || f == "CHERRY_PICK_HEAD" || f == "REVERT_HEAD" || f == "BISECT_LOG"
				if left && !slices.Contains(own, f) {
					t.Errorf("%s is left", f)
				}
			}
			put(t, filepath.Join(dir, "b"), "b\n")
			gitIn(t, dir, "add", "b")
			gitIn(t, dir, "commit", "-qm", "next")
			if got := strings.Fields(gitIn(t, dir, "log", "-1", "--format=%P")); len(got) != 1 {
				t.Errorf("the next commit has the parents %q", got)
			}
		})
	}
}

func filesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
