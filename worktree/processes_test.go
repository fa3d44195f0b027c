package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/guard"
)

// counted lets every git of a repository leave a mark, and returns how many have since the last question.
func counted(t *testing.T, r *Repo) func() int {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a script cannot stand in for a program")
	}
	dir := t.TempDir()
	log, script := filepath.Join(dir, "log"), filepath.Join(dir, "git")
	if err := os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\necho \"$*\" >> '%s'\nexec '%s' \"$@\"\n", log, r.prog.path), 0o700); err != nil {
		t.Fatal(err)
	}
	r.prog.path = script
	return func() int {
		b, _ := os.ReadFile(log) // no git, no file
		_ = os.Remove(log)
		n := strings.Count(string(b), "\n")
		t.Logf("%d:\n%s", n, b)
		return n
	}
}

// What is done for each task is to take few processes: fifty tasks do it at once, and the most of a merge's time is theirs.
// The limits are what it takes now.
func TestProcessesOfOneTask(t *testing.T) {
	x := newRig(t, map[string]string{"a.txt": "a\n", "b.txt": "b\n"})
	ctx := context.WithoutCancel(t.Context())
	base, err := x.Tip(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(x.Advance(ctx, "mission", "", base))
	bench, err := x.Take(ctx, Want{Commit: base})
	must(err)
	spent := counted(t, x.Repo)
	within := func(what string, limit int) {
		t.Helper()
		if n := spent(); n > limit {
			t.Errorf("%s takes %d processes of git, more than %d", what, n, limit)
		}
	}

	c, err := x.Take(ctx, Want{Branch: "work", Commit: base})
	must(err)
	within("a new checkout", 5)
	put(t, filepath.Join(c.dir, "b.txt"), "b\nmore\n")
	done, err := c.Commit(ctx, "work")
	must(err)
	within("a commit", 7)

	// Somebody else has landed meanwhile.
	tree, err := x.With(ctx, base, map[string][]byte{"c.txt": []byte("c\n")})
	must(err)
	other, err := x.commitTree(ctx, tree, "other\n", nil, base)
	must(err)
	must(x.Advance(ctx, "mission", base, other))
	spent()

	tip, err := x.Tip(ctx, "mission")
	must(err)
	laid, err := x.Rebase(ctx, done.ID, tip)
	must(err)
	for _, commit := range []string{tip, laid.Commit, laid.Commit} {
		_, err := x.TreeOf(ctx, commit)
		must(err)
	}
	within("laying a commit on the branch", 3)

	_, err = x.Diff(ctx, tip, laid.Commit)
	must(err)
	without, _, err := x.Without(ctx, tip, laid.Commit, func(centurion.FileDiff, *centurion.Hunk) bool { return true })
	must(err)
	within("taking the work out", 2)
	for _, at := range []string{without, laid.Commit, without} {
		must(bench.Clean(ctx, at))
		_, err := bench.Changed(ctx)
		must(err)
	}
	within("bringing a checkout to three states", 10)

	_, err = x.Stat(ctx, tip, laid.Commit)
	must(err)
	must(x.Advance(ctx, "mission", tip, laid.Commit))
	must(c.Move(ctx, laid.Commit))
	within("a merge", 7)
	_, err = c.Release(ctx, laid.Commit)
	must(err)
	within("giving a checkout back", 6)
}

// A git that is cancelled is told to end, so that it removes its locks, and is no failure of git; a signal for the host is none for it.
func TestCancelledGitCleansUp(t *testing.T) {
	x := newRig(t, map[string]string{"a": "1\n"})
	counted(t, x.Repo) // skips where a script is no program
	dir := t.TempDir()
	begun, ended := filepath.Join(dir, "begun"), filepath.Join(dir, "ended")
	script := fmt.Sprintf("#!/bin/sh\ntrap \": > '%s'; exit 1\" TERM\n: > '%s'\nsleep 60 &\nwait\n", ended, begun)
	if err := os.WriteFile(x.prog.path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var g guard.Group
	g.Go("cancel", func() error {
		defer cancel()
		for tick := time.Tick(time.Millisecond); ; <-tick {
			if _, err := os.Stat(begun); err == nil || t.Context().Err() != nil {
				return nil
			}
		}
	})
	_, err := x.prog.exec(ctx, call{Dir: x.top}, found{})
	_ = g.Wait()
	if _, serr := os.Stat(ended); !errors.Is(err, context.Canceled) || serr != nil {
		t.Errorf("%v, %v", err, serr)
	}
}
