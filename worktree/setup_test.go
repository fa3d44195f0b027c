package worktree

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"centurion"
)

// shell runs commands without any confinement and counts them.
type shell struct {
	mu  sync.Mutex
	ran []string
}

func (s *shell) Run(ctx context.Context, c centurion.Command) (centurion.CommandResult, error) {
	s.mu.Lock()
	s.ran = append(s.ran, c.Script)
	s.mu.Unlock()
	cmd := exec.CommandContext(ctx, "sh", "-c", c.Script)
	cmd.Dir = c.Dir
	out, err := cmd.CombinedOutput()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return centurion.CommandResult{ExitCode: e.ExitCode(), Output: string(out)}, nil
	}
	return centurion.CommandResult{Output: string(out)}, err
}

func (s *shell) times() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.ran) }

// withShell opens the rig's repository once more, with a runner.
func (x *rig) withShell() *shell {
	s := &shell{}
	x.opts.Runner = s
	return s
}

// An npm project: dependencies are installed once for a checkout, and again when the lock file has changed.
func TestNpmProject(t *testing.T) {
	t.Parallel()
	lock := `{"name":"p","version":"1.0.0","lockfileVersion":3,"requires":true,"packages":{"":{"name":"p","version":"1.0.0","dependencies":{"dep":"file:dep"}},` +
		`"dep":{"version":"1.0.0"},"node_modules/dep":{"resolved":"dep","link":true}}}`
	x := newRig(t, map[string]string{
		"package.json": `{"name":"p","version":"1.0.0","dependencies":{"dep":"file:dep"}}`, "package-lock.json": lock,
		"dep/package.json": `{"name":"dep","version":"1.0.0","main":"index.js"}`, "dep/index.js": "module.exports = 42\n",
		"test.js": "if (require('dep') !== 42) process.exit(1)\n", ".gitignore": "node_modules\n"})
	if need, err := x.NeedsSetup(t.Context(), x.head()); err != nil || !slices.Equal(need, []string{"package-lock.json"}) {
		t.Errorf("needs a setup for %q, %v", need, err)
	}
	sh := x.withShell()
	npm := "npm ci --offline --no-audit --no-fund --ignore-scripts --cache=.npm-cache >&2 && rm -rf .npm-cache"
	c := x.take("work/T1", x.head(), npm)
	dir := c.Where().Dir
	test := exec.CommandContext(t.Context(), "node", "test.js")
	test.Dir = dir
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("the project's test: %v\n%s", err, out)
	}
	release(t, c, x.head())
	c = x.take("work/T2", x.head(), npm)
	if c.Where().Dir != dir || sh.times() != 1 {
		t.Errorf("the setup ran %d times", sh.times())
	}
	x.write("package-lock.json", strings.Replace(lock, `"requires":true,`, `"requires":true, `, 1))
	x.person("commit", "-qam", "another lock file")
	if err := c.Move(t.Context(), x.head()); err != nil || sh.times() != 2 {
		t.Errorf("the setup ran %d times, %v", sh.times(), err)
	}
	if done := commit(t, c); done.ID != "" {
		t.Errorf("the setup left %q", changed(done))
	}
}

// A Python project whose virtual environment is not ignored: it is nobody's work, and stays.
func TestPythonProject(t *testing.T) {
	t.Parallel()
	x := newRigAt(t, filepath.Join(t.TempDir(), "repo"), "py", map[string]string{"py/requirements.txt": "", "py/app.py": "print('ok')\n", "a": "1\n"})
	sh := x.withShell()
	venv := "python3 -m venv --without-pip .venv && rm -f .venv/.gitignore && echo touched >> app.py"
	c := x.take("work/T1", x.head(), venv)
	dir := c.Where().Dir
	run := exec.CommandContext(t.Context(), filepath.Join(dir, ".venv/bin/python"), "app.py")
	run.Dir = dir
	if out, err := run.CombinedOutput(); err != nil || string(out) != "ok\n" {
		t.Errorf("python: %v\n%s", err, out)
	}
	put(t, filepath.Join(dir, "new.py"), "1\n")
	if got := changed(commit(t, c)); !slices.Equal(got, []string{"added py/new.py"}) {
		t.Errorf("changed %q", got)
	}
	put(t, filepath.Join(dir, "..", ".gitignore"), ".venv\n") // git refuses to leave out what it ignores
	if got := changed(commit(t, c)); !slices.Equal(got, []string{"added .gitignore", "added py/new.py"}) {
		t.Errorf("changed %q", got)
	}
	release(t, c, "")
	c = x.take("work/T2", x.head(), venv)
	if sh.times() != 1 {
		t.Errorf("the setup ran %d times", sh.times())
	}
	if _, err := os.Stat(filepath.Join(c.Where().Dir, ".venv/bin/python")); err != nil {
		t.Error(err)
	}
	x.opts.Runner = nil
	release(t, c, x.head())
	if _, err := x.Take(t.Context(), Want{Branch: "work/T3", Commit: x.head(), Setup: []string{"true"}}); centurion.KindOf(err) != centurion.KindConfig {
		t.Errorf("without a runner: %v", err)
	}
}

// A checkout that was given back is set up where it never was, and again when the commands or a lock file have changed.
func TestSetupOfUsedCheckout(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n", "package-lock.json": "1\n"})
	sh := x.withShell()
	next := func(want int, setup ...string) {
		t.Helper()
		c := x.take("work/T1", x.head(), setup...)
		if got := c.Where().Dir; slotIn(got) != "w1" || sh.times() != want {
			t.Errorf("%d commands ran, in %s", sh.times(), got)
		}
		put(t, filepath.Join(c.Where().Dir, "new"), "1\n")
		if got := changed(commit(t, c)); !slices.Equal(got, []string{"added new"}) {
			t.Errorf("changed %q", got)
		}
		release(t, c, "")
	}
	next(0)
	next(1, "echo >> a; echo > made")
	next(1, "echo >> a; echo > made")
	next(2, "echo another")
	x.write("package-lock.json", "2\n")
	x.person("commit", "-qam", "another lock file")
	next(3, "echo another")
}

func TestSetupFails(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	sh := x.withShell()
	_, err := x.Take(t.Context(), Want{Branch: "work/T1", Commit: x.head(), Setup: []string{"echo first", "echo it broke; exit 3", "echo never"}})
	if err == nil || centurion.KindOf(err) != centurion.KindConfig || !strings.Contains(err.Error(), "exit code 3: it broke") || sh.times() != 2 {
		t.Errorf("%d ran, %v", sh.times(), err)
	}
	// What was half made is taken up, and the setup is run again.
	c := x.take("work/T1", x.head(), "echo first")
	if slotIn(c.Where().Dir) != "w1" || sh.times() != 3 {
		t.Errorf("%d ran, in %s", sh.times(), c.Where().Dir)
	}
}

// What has failed twice is not run again for the same commands and lock files before a mission begins or goes on.
func TestSetupThatFailsAgain(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "a\n", "requirements.txt": "one\n"})
	sh := x.withShell()
	take := func(commit string) error {
		_, err := x.Take(t.Context(), Want{Branch: "work/T1", Commit: commit, Setup: []string{"echo no such package; exit 1"}})
		if centurion.KindOf(err) != centurion.KindConfig || !strings.Contains(err.Error(), "no such package") {
			t.Fatalf("taken: %v", err)
		}
		return err
	}
	for i := range 5 {
		if err := take(x.head()); i > 1 && (!strings.Contains(err.Error(), "worktree.setup failed 2 times") || !strings.Contains(centurion.HintOf(err), "resume")) {
			t.Errorf("the %d. time: %v (%s)", i+1, err, centurion.HintOf(err))
		}
	}
	if sh.times() != 2 {
		t.Errorf("it was run %d times", sh.times())
	}
	x.RetrySetups()
	if take(x.head()); sh.times() != 3 {
		t.Errorf("it was not run again for another mission")
	}
	take(x.head())
	x.write("requirements.txt", "two\n")
	x.person("commit", "-qam", "other lock file")
	if take(x.head()); sh.times() != 5 {
		t.Errorf("it was not run again for other lock files")
	}
}

// A setup that failed halfway has spoilt what an earlier one had made ready: that one is run again.
func TestSetupAfterOneThatFailed(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	sh := x.withShell()
	release(t, x.take("work/T1", x.head(), "echo good"), "")
	if _, err := x.Take(t.Context(), Want{Branch: "work/T2", Commit: x.head(), Setup: []string{"echo spoils; exit 3"}}); err == nil || sh.times() != 2 {
		t.Errorf("%d ran, %v", sh.times(), err)
	}
	c := x.take("work/T3", x.head(), "echo good")
	if slotIn(c.Where().Dir) != "w1" || sh.times() != 3 {
		t.Errorf("%d ran, in %s", sh.times(), c.Where().Dir)
	}
}

// A setup is run again after a change of any lock file, also of those whose dependencies need none.
func TestLockFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := []string{"Cargo.lock", "Gemfile.lock", "Pipfile.lock", "bun.lock", "bun.lockb", "composer.lock", "go.sum", "mix.lock", "npm-shrinkwrap.json",
		"package-lock.json", "pdm.lock", "pnpm-lock.yaml", "poetry.lock", "requirements-dev.txt", "requirements.txt", "uv.lock", "yarn.lock"}
	for _, name := range append(want, "go.mod", "package.json", "notes.txt") {
		put(t, filepath.Join(dir, name), "1\n")
	}
	if got := locks(dir); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	before, err := setupState(dir, []string{"true"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range want {
		put(t, filepath.Join(dir, name), "2\n")
		after, err := setupState(dir, []string{"true"})
		if err != nil || after == before {
			t.Errorf("%s has changed, and nothing is run again: %v", name, err)
		}
		before = after
	}
}

// A repository that the setup has made is no part of anybody's work.
func TestRepositoryOfTheSetup(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	x.withShell()
	c := x.take("work/T1", x.head(), "git init -q dep && echo 1 > dep/f")
	if done := commit(t, c); done.ID != "" {
		t.Errorf("committed %q", changed(done))
	}
	put(t, filepath.Join(c.Where().Dir, "new"), "1\n")
	if got := changed(commit(t, c)); !slices.Equal(got, []string{"added new"}) {
		t.Errorf("changed %q", got)
	}
}

func TestNeedsSetup(t *testing.T) {
	t.Parallel()
	x := newRigAt(t, filepath.Join(t.TempDir(), "repo"), "p", map[string]string{"p/go.sum": "", "p/Cargo.lock": "", "p/requirements-dev.txt": "", "p/uv.lock": "", "yarn.lock": ""})
	if need, err := x.NeedsSetup(t.Context(), x.head()); err != nil || !slices.Equal(need, []string{"requirements-dev.txt", "uv.lock"}) {
		t.Errorf("%q, %v", need, err)
	}
	empty := x.person("commit-tree", "-m", "empty", "4b825dc642cb6eb9a060e54bf8d69288fbee4904")
	if need, err := x.NeedsSetup(t.Context(), empty); err != nil || len(need) != 0 {
		t.Errorf("%q, %v", need, err)
	}
}

// .worktreeinclude brings ignored files along, and nothing that is not ignored, is tracked or leads out.
func TestInclude(t *testing.T) {
	t.Parallel()
	x := newRigAt(t, filepath.Join(t.TempDir(), "repo"), "p", map[string]string{
		".gitignore": ".env*\nsecret\n*.link\n", "p/.worktreeinclude": ".env*\n!.env.no\nother\n/secret/**\n*.link\nmissing\n", "p/a": "1\n"})
	// The commit has a file that the person tracks no longer: it is the commit's in a checkout.
	x.write("p/.env.both", "committed")
	x.person("add", "-f", "p/.env.both")
	x.person("commit", "-qm", "both")
	x.person("rm", "-q", "--cached", "p/.env.both")
	x.write("p/.env.both", "the person's")
	outside := filepath.Join(t.TempDir(), "outside")
	put(t, outside, "outside")
	for name, content := range map[string]string{"p/.env": "1", "p/sub/.env.local": "2", "p/.env.no": "3", "p/other": "4", "p/secret/key": "5", ".env": "6"} {
		x.write(name, content)
	}
	os.Chmod(filepath.Join(x.dir, ".env"), 0o600)
	os.Symlink(outside, filepath.Join(x.dir, "out.link"))
	os.Symlink("../../..", filepath.Join(x.dir, "up.link"))
	os.Symlink(".env", filepath.Join(x.dir, "in.link"))
	c := x.take("work/T1", x.head())
	dir := c.Where().Dir
	for name, want := range map[string]bool{".env": true, "sub/.env.local": true, "secret/key": true, "in.link": true,
		".env.no": false, "other": false, "out.link": false, "up.link": false, "../.env": false} {
		if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := get(t, filepath.Join(dir, ".env.both")); got != "committed" {
		t.Errorf("a tracked file: %q", got)
	}
	if info, err := os.Stat(filepath.Join(dir, ".env")); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info, err)
	}
	if done := commit(t, c); done.ID != "" {
		t.Errorf("committed %q", changed(done))
	}
	release(t, c, x.head())
	x.write("p/.env", "changed")
	c = x.take("work/T2", x.head())
	if got := get(t, filepath.Join(c.Where().Dir, ".env")); got != "changed" {
		t.Errorf(".env: %q", got)
	}
}
