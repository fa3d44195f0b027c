package centurion_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/verify"
	"centurion/worktree"
)

// repoTrees are the trees of a repository, with the one checkout in which checks run.
type repoTrees struct {
	*worktree.Repo
	*worktree.Checkout
}

func (t repoTrees) Lay(ctx context.Context, tree string) (centurion.Place, error) {
	if err := t.Clean(ctx, tree); err != nil {
		return centurion.Place{}, err
	}
	_, at, err := t.Checkout.Files(ctx)
	return at, err
}

func (t repoTrees) Close() error { return t.Repo.Close() }

type shell struct{}

func (shell) Run(ctx context.Context, c centurion.Command) (centurion.CommandResult, error) {
	cmd := exec.CommandContext(ctx, "bash", "-c", c.Script)
	cmd.Dir = c.Dir
	start := time.Now()
	out, _ := cmd.CombinedOutput()
	return centurion.CommandResult{Output: string(out), ExitCode: cmd.ProcessState.ExitCode(), Duration: time.Since(start)}, nil
}

// A proof on a real repository: what git lays, takes out and puts together.
func TestProofWithGit(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	dir := filepath.Join(home, "p")
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	commit := func(files map[string]string) string {
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		git("add", "-A")
		git("commit", "-qm", "x")
		return git("rev-parse", "HEAD")
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	git("init", "-q")
	before := commit(map[string]string{"add.sh": "echo 0\n", "go.mod": "module x\n"})
	honest := commit(map[string]string{"add.sh": "echo $(($1 + $2))\n", "add_test.sh": "[ \"$(bash add.sh 1 2)\" = 3 ] || { echo 'FAIL: add'; exit 1; }\n"})
	hollow := commit(map[string]string{"add.sh": "echo $(($1 * $2))\n", "add_test.sh": "bash add.sh 1 2\n"})
	ctx := t.Context()
	repo, err := worktree.Open(ctx, worktree.Options{Dir: dir, Home: filepath.Join(home, "state")})
	if err != nil {
		t.Fatal(err)
	}
	checkout, err := repo.Take(ctx, worktree.Want{Commit: before})
	if err != nil {
		t.Fatal(err)
	}
	trees := repoTrees{repo, checkout}
	t.Cleanup(func() { _ = trees.Close() })
	c := verify.Checker{Runner: shell{}}
	r, err := c.Prove(ctx, trees, verify.Work{Command: "bash add_test.sh", Before: before, After: honest}, nil)
	if err != nil || r.Proof != centurion.ProofProven || r.FailureLine != "FAIL: add" || len(r.Runs) != 3 || !strings.Contains(r.Removed, "+echo $(($1 + $2))") || strings.Contains(r.Removed, "add_test") {
		t.Errorf("%v, %+v", err, r)
	}
	r, err = c.Prove(ctx, trees, verify.Work{Command: "bash add_test.sh", Before: before, After: hollow}, nil)
	if err != nil || r.Proof != centurion.ProofUnproven || r.Why != "the check is green without the work too" {
		t.Errorf("%v, %+v", err, r)
	}
	if r, err = c.Prove(ctx, trees, verify.Work{Command: "echo >> go.mod", Before: before, After: honest}, nil); err != nil || r.Passed || r.Error != "it changed tracked files: go.mod" {
		t.Errorf("%v, %+v", err, r)
	}
}
