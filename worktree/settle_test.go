package worktree

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"centurion"
)

// interrupted is a landing that was killed right after its branch had moved, or right before it: nothing of the files or the index is touched.
func interrupted(t *testing.T, moved bool) (x *rig, base centurion.Base, tip string) {
	t.Helper()
	x = newRig(t, map[string]string{"a": long, "b": "b\n"})
	base = x.begin()
	tip = x.commitOf(base.Commit, map[string][]byte{"a": []byte(nine(long)), "n": []byte("n\n")}, "b")
	p, err := x.plan(t.Context(), base.Head, tip, mine{snapshot: base.Commit})
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if err := x.writeJournal(journal{p.before, p.after, p.tree, p.steps, p.change}); err != nil {
		t.Fatal(err)
	}
	if !moved {
		return x, base, tip
	}
	if err := x.moveHead(t.Context(), base.Head, tip); err != nil {
		t.Fatal(err)
	}
	return x, base, tip
}

func (x *rig) journal() bool {
	_, err := os.Lstat(filepath.Join(x.top, ".git", journalName))
	return err == nil
}

// A landing that was killed before its branch moved has not happened: it is forgotten, so that the person's next commit does not pass for
// a move in the middle of it.
func TestSettleForgetsWhatNeverWas(t *testing.T) {
	t.Parallel()
	x, base, _ := interrupted(t, false)
	if err := x.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if x.journal() {
		t.Error("its record stays")
	}
	x.want(map[string]string{"a": long, "b": "b\n", "n": ""}, "")
	x.person("commit", "-q", "--allow-empty", "-m", "mine")
	if err := x.Settle(t.Context()); err != nil {
		t.Error(err)
	}
	if x.person("rev-parse", "HEAD^") != base.Head {
		t.Error("the branch has moved")
	}
}

// Where the branch has gone on since, nobody knows what the files should be: nothing is touched, and the record stays until somebody has looked.
func TestSettleAfterAMove(t *testing.T) {
	t.Parallel()
	x, _, _ := interrupted(t, true)
	x.person("commit", "-q", "--allow-empty", "-m", "mine")
	before := x.state()
	if err := x.Settle(t.Context()); centurion.KindOf(err) != centurion.KindConflict || centurion.HintOf(err) == "" {
		t.Errorf("%v", err)
	}
	if x.state() != before || !x.journal() {
		t.Error("something was touched")
	}
}

// A file that was away when the landing was killed, between the old content and the new one, gets the new one.
func TestSettleFillsAGap(t *testing.T) {
	t.Parallel()
	x, _, _ := interrupted(t, true)
	if err := os.Remove(filepath.Join(x.top, "a")); err != nil {
		t.Fatal(err)
	}
	if err := x.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.want(map[string]string{"a": nine(long), "b": "", "n": "n\n"}, "")
}

// A lock that names a living process is not broken: that one is at work. One of a process that has gone is.
func TestLockOfWhoLives(t *testing.T) {
	t.Parallel()
	x, _, _ := interrupted(t, true)
	lock := filepath.Join(x.top, ".git", "index.lock")
	other := exec.Command("git", "cat-file", "--batch") // it lives until its input ends
	other.Dir = x.top
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		if err := other.Wait(); err != nil {
			t.Error(err)
		}
	}()
	put(t, lock, fmt.Sprintf("%s%d\n", lockMark, other.Process.Pid))
	before := x.state()
	if err := x.Settle(t.Context()); centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("%v", err)
	}
	if x.state() != before {
		t.Error("something was touched")
	}
	put(t, lock, fmt.Sprintf("%s%d\n", lockMark, 1<<30)) // no system counts so far
	if err := x.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.want(map[string]string{"a": nine(long), "b": "", "n": "n\n"}, "")
	put(t, lock, fmt.Sprintf("%s%d\n", lockMark, os.Getpid())) // of one that had our number before us, as in a container
	if err := x.Settle(t.Context()); err != nil {
		t.Errorf("a lock with our own number: %v", err)
	}
	if _, err := os.Lstat(lock); err == nil {
		t.Error("a lock with our own number stays")
	}
}

// Whatever the person is in the middle of, a merge waits for its end.
func TestMergeInTheMiddleOfAnything(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "0\n"})
	for _, text := range []string{"1\n", "2\n"} {
		x.write("a", text)
		x.person("commit", "-qam", text)
	}
	x.person("branch", "other", "HEAD~1")
	x.person("switch", "-q", "other")
	x.write("a", "theirs\n")
	x.person("commit", "-qam", "theirs")
	x.person("switch", "-q", "main")
	base := x.begin()
	o := MergeOptions{Base: base, Tip: x.commitOf(base.Commit, map[string][]byte{"n": []byte("1\n")})}
	for _, begin := range [][]string{{"merge", "other"}, {"cherry-pick", "other"}, {"revert", "--no-edit", "HEAD~1"}, {"rebase", "other"}, {"rebase", "--apply", "other"},
		{"bisect", "start", "HEAD", "HEAD~1"}} {
		tryGit(t.Context(), x.top, begin...) // which stops at a conflict
		if begin[0] != "bisect" {
			x.write("a", "both\n")
			x.person("add", "a") // resolved, and not ended
		}
		before := x.state()
		if m, err := x.Merge(t.Context(), o); centurion.KindOf(err) != centurion.KindConflict || m.After != "" {
			t.Errorf("in the middle of %q: %+v, %v", begin, m, err)
		}
		if x.state() != before {
			t.Errorf("in the middle of %q: something was touched", begin)
		}
		if begin[0] == "bisect" {
			x.person("bisect", "reset")
		} else {
			x.person(begin[0], "--abort")
		}
	}
	x.merged(o)
	x.want(map[string]string{"a": "2\n", "n": "1\n"}, "")
}

// A checkout that is being moved is moved to the end, whoever is cancelled meanwhile: half of it would pass for somebody's work.
func TestMoveIsNotCutOff(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	base := x.begin()
	tip := x.commitOf(base.Commit, map[string][]byte{"a": []byte("2\n")}, "b")
	c := x.take("centurion/m/t", base.Commit)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.shift(ctx, tip, tip); err != nil || c.rec.Next != "" || c.rec.Start != tip {
		t.Errorf("%v, %+v", err, c.rec)
	}
	if b, err := os.ReadFile(filepath.Join(c.dir, "a")); err != nil || string(b) != "2\n" {
		t.Errorf("a says %q, %v", b, err)
	}
}
