package orchestrator

import (
	"strings"
	"testing"

	"centurion"
)

// A session in a checkout is told what to do instead, and the person's list of stashes stays as it was.
func TestStashIsRefused(t *testing.T) {
	r := gitRig(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait"), complete()),
		"worker":    steps(do(sh("echo mine > go.txt; git stash")), do(sh("echo mine > go.txt")), do(sh("git stash list")), say("made it")),
	})
	r.write("go.txt", "the person's\n")
	r.git("stash")
	m := r.mission(centurion.MissionOptions{})
	said := r.results(m.ID, "bash")
	has(t, said[0], "not allowed", "git's stash", "one for all checkouts", "git diff > aside.patch", "git apply aside.patch")
	equal(t, "a commit is advised", strings.Contains(said[0], "git commit"), false)
	has(t, said[2], "stash@{0}")
	equal(t, "stashes", len(strings.Split(r.git("stash", "list"), "\n")), 1)
}

// Where all work in the person's own directory the stash is a matter of the rules.
func TestStashInSharedIsolation(t *testing.T) {
	r := realRig(t, map[string]script{"commander": steps(do(sh("git stash list; git stash")), say("done"))})
	has(t, r.results(r.mission(centurion.MissionOptions{}).ID, "bash")[0], "not a git repository")
}
