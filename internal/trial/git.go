package trial

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"centurion"
	"centurion/worktree"
)

// gitPool is how many checkouts centurion gc keeps for later.
const gitPool = 8

// workspaces are the kinds of worktrees.
var workspaces = []string{worktree.WorkspacesOverlay, worktree.WorkspacesCheckout}

// gitInitWith is gitInit for missions whose worktrees are of a kind, with more keys of the person's own configuration.
func (p *project) gitInitWith(kind, more string) {
	p.put("~/.config/centurion/config.jsonc", fmt.Sprintf(`{"worktree": {"workspaces": %q}%s}`, kind, more))
	p.gitInit()
}

// gitInit makes the project a repository with one commit of its files. This machine's git configuration is ignored, here and in the
// program.
func (p *project) gitInit() {
	p.Env = append(p.Env, "GIT_CONFIG_NOSYSTEM=1")
	p.t.Must(os.WriteFile(filepath.Join(p.Home, ".gitconfig"), []byte("[user]\n\tname = Person\n\temail = person@example.com\n[init]\n\tdefaultBranch = main\n"), 0o600))
	p.git("init", "-q")
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "Before")
}

// tryGit runs git in the project as a person would.
func (p *project) tryGit(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = p.Dir, append(p.environ(), "GIT_OPTIONAL_LOCKS=0")
	out, err := cmd.CombinedOutput()
	return strings.TrimRight(string(out), "\n"), err
}

// git is tryGit for commands that must succeed.
func (p *project) git(args ...string) string {
	out, err := p.tryGit(args...)
	if err != nil {
		p.t.Failf("git %s: %v: %s", strings.Join(args, " "), err, centurion.Clip(out, 300))
	}
	return out
}

// addsNothing reports whether all changes of a ref are in another one.
func (p *project) addsNothing(ref, to string) bool {
	laid, err := p.tryGit("merge-tree", "--write-tree", to, ref)
	return err == nil && strings.TrimSpace(laid) == strings.TrimSpace(p.git("rev-parse", to+"^{tree}"))
}

// missionBranch is the name of the branch of the project's only mission, empty if it has none yet.
func (p *project) missionBranch() string {
	out, err := p.tryGit("for-each-ref", "--format=%(refname)", "refs/heads/centurion/*/mission")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(out, "\n")
	return first
}

// export writes a commit's files to a separate directory, replacing its contents.
func (p *project) export(commit string) string {
	dir := filepath.Join(p.Root, "export")
	p.t.Must(os.RemoveAll(dir))
	p.t.Must(os.MkdirAll(dir, 0o700))
	tar := filepath.Join(p.Root, "export.tar")
	p.git("archive", "--output="+tar, commit)
	if out, err := exec.Command("tar", "-xf", tar, "-C", dir).CombinedOutput(); err != nil {
		p.t.Failf("tar -xf %s: %v: %s", tar, err, out)
	}
	return dir
}

// leftInGit runs centurion gc and reports what needlessly stays in the repository: locks, checkouts beyond the pool and, if all work
// was merged into the person's branch, branches and other refs.
func (p *project) leftInGit(merged bool) []string {
	var all []string
	if code, out := p.Run("gc"); code != 0 {
		all = append(all, "gc failed: "+lastLines(out+p.children[len(p.children)-1].Stderr(), 3))
	}
	held := 0
	for line := range strings.Lines(p.git("worktree", "list", "--porcelain")) {
		switch {
		case strings.HasPrefix(line, "branch refs/heads/centurion/"):
			all = append(all, "a checkout still holds a branch: "+strings.TrimSpace(line))
		case strings.HasPrefix(line, "prunable"), strings.HasPrefix(line, "locked"):
			all = append(all, "git worktree list says: "+strings.TrimSpace(line))
		case strings.HasPrefix(line, "worktree "):
			held++
		}
	}
	if held > gitPool+1 {
		all = append(all, "git worktree list has more than what is kept for later")
	}
	mission := p.missionBranch()
	for ref := range strings.FieldsSeq(p.git("for-each-ref", "--format=%(refname)", "refs/heads/centurion", "refs/centurion")) {
		switch {
		// A host killed between a merge and the end of its task leaves the branch as it was before the merge rebased it. It is no
		// ancestor, so it stays until the mission itself is on the person's branch.
		case !merged && ref != mission && p.addsNothing(ref, mission):
		case merged && !strings.HasPrefix(ref, "refs/centurion/kept/"), !merged && strings.HasPrefix(ref, "refs/heads/") && !strings.HasSuffix(ref, "/mission"):
			all = append(all, "a ref is left: "+ref)
		}
	}
	if out, err := p.tryGit("fsck", "--connectivity-only", "--no-dangling"); err != nil {
		all = append(all, "git fsck: "+lastLines(out, 3))
	}
	for _, lock := range []string{"index.lock", "HEAD.lock", "packed-refs.lock", "centurion-merge.json"} {
		if _, err := os.Lstat(filepath.Join(p.Dir, ".git", lock)); err == nil {
			all = append(all, "left behind: .git/"+lock)
		}
	}
	return all
}
