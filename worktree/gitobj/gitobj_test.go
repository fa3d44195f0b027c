package gitobj

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"centurion"
)

// rig is a repository with one commit.
type rig struct {
	*Repo
	t     *testing.T
	dir   string
	stale bool // the configuration has changed

	mu      sync.Mutex
	started []*exec.Cmd
}

func newRig(t *testing.T) *rig {
	t.Helper()
	x := &rig{t: t, dir: t.TempDir()}
	x.git("", "init", "-q", "-b", "main")
	x.git("", "commit", "-q", "--allow-empty", "-m", "first")
	x.Repo = &Repo{Temp: filepath.Join(t.TempDir(), "tmp"),
		Command: func(_ context.Context, args []string) (*exec.Cmd, func() bool, error) {
			cmd := exec.CommandContext(context.Background(), "git", args...)
			cmd.Dir = x.dir
			x.mu.Lock()
			defer x.mu.Unlock()
			x.started = append(x.started, cmd)
			return cmd, func() bool { return !x.stale }, nil
		},
		Failed: func(args []string, stderr string, err error) error {
			return fmt.Errorf("%s: %s: %w", args[0], stderr, err)
		}}
	t.Cleanup(func() {
		x.Close()
		if left, _ := os.ReadDir(x.Temp); len(left) > 0 {
			t.Errorf("%d temporary files are left", len(left))
		}
	})
	return x
}

// git runs git as a person would.
func (x *rig) git(stdin string, args ...string) string {
	x.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=P", "-c", "user.email=p@localhost"}, args...)...)
	cmd.Dir, cmd.Stdin = x.dir, strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		x.t.Fatalf("git %s: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestResolve(t *testing.T) {
	x := newRig(t)
	head := x.git("", "rev-parse", "HEAD")
	for _, test := range []struct{ name, id, kind string }{
		{"HEAD", head, "commit"},
		{"refs/heads/main^{commit}", head, "commit"},
		{"HEAD^{tree}", x.git("", "rev-parse", "HEAD^{tree}"), "tree"},
		{"refs/heads/none^{commit}", "", ""},
		{"HEAD:none", "", ""},
		{"two words", "", ""},
		{"a\nHEAD", "", ""},
		{strings.Repeat("1", 40), "", ""},
	} {
		id, kind, err := x.Resolve(t.Context(), test.name)
		if id != test.id || kind != test.kind || (centurion.KindOf(err) == centurion.KindNotFound) != (test.id == "") {
			t.Errorf("%q: %q, %q, %v", test.name, id, kind, err)
		}
	}
	if n := len(x.started); n != 1 {
		t.Errorf("%d processes answered", n)
	}
}

// What another program has stored or moved meanwhile is seen.
func TestOthersAreSeen(t *testing.T) {
	x := newRig(t)
	ctx := t.Context()
	if _, _, err := x.Resolve(ctx, "refs/heads/other"); centurion.KindOf(err) != centurion.KindNotFound {
		t.Fatal(err)
	}
	x.git("", "branch", "other")
	x.git("", "pack-refs", "--all")
	x.git("", "commit", "-q", "--allow-empty", "-m", "second")
	if id, _, err := x.Resolve(ctx, "refs/heads/main"); err != nil || id != x.git("", "rev-parse", "HEAD") {
		t.Error(id, err)
	}
	if _, _, err := x.Resolve(ctx, "refs/heads/other"); err != nil {
		t.Error(err)
	}
	x.git("", "repack", "-a", "-d", "-q")
	if b, err := x.Object(ctx, x.git("", "rev-parse", "HEAD"), "commit"); err != nil || !bytes.HasSuffix(b, []byte("second\n")) {
		t.Errorf("%s, %v", b, err)
	}
	if _, err := x.Object(ctx, x.git("", "rev-parse", "HEAD"), "tree"); centurion.KindOf(err) != centurion.KindNotFound {
		t.Error("a commit is a tree", err)
	}
}

func TestMoveRef(t *testing.T) {
	x := newRig(t)
	ctx := t.Context()
	first := x.git("", "rev-parse", "HEAD")
	x.git("", "commit", "-q", "--allow-empty", "-m", "second")
	second, none := x.git("", "rev-parse", "HEAD"), strings.Repeat("0", 40)
	for i, test := range []struct {
		to, from, at string
		ok           bool
	}{
		{first, none, first, true}, {second, none, first, false}, {second, first, second, true}, {first, first, second, false},
		{first, "", first, true}, {"", second, first, false}, {"", first, "", true}, {second, "", second, true},
	} {
		err := x.MoveRef(ctx, "refs/heads/moved", test.to, test.from)
		at, _, _ := x.Resolve(ctx, "refs/heads/moved")
		if (err == nil) != test.ok || at != test.at {
			t.Errorf("%d: %v, at %q", i, err, at)
		}
		if !test.ok && !strings.Contains(fmt.Sprint(err), "cannot lock ref") {
			t.Errorf("%d: git's reason is missing: %v", i, err)
		}
	}
	for _, name := range []string{"refs/heads/a b", "refs/heads/a\ndelete refs/heads/main", "refs/heads/a..b"} {
		if err := x.MoveRef(ctx, name, first, ""); err == nil {
			t.Errorf("%q is a ref", name)
		}
	}
	if at, _, err := x.Resolve(ctx, "refs/heads/main"); at != second || err != nil {
		t.Error(at, err)
	}
}

func TestCompare(t *testing.T) {
	x := newRig(t)
	ctx := t.Context()
	from, err := x.Edit(ctx, x.git("", "rev-parse", "HEAD^{tree}"), map[string]Entry{"a": x.file("a\n")})
	if err != nil {
		t.Fatal(err)
	}
	to, err := x.Edit(ctx, from, map[string]Entry{"a": x.file("b\nend of it\n"), "line\nfeed": x.file("")})
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"diff-tree", "-r", "-z", "--raw"}, {"diff-tree", "-r", "-p", "--raw", "-z"}, {"diff-tree", "-r", "-p", "--", "none"}} {
		for range 2 {
			got, err := x.Compare(ctx, from, to, args...)
			want := slices.Insert(slices.Clone(args), len(args), from, to)
			if i := slices.Index(args, "--"); i >= 0 {
				want = slices.Insert(slices.Clone(args), i, from, to)
			}
			if plain := x.git("", want...); err != nil || strings.TrimSpace(string(got)) != plain {
				t.Errorf("%s: %q, not %q, %v", args, got, plain, err)
			}
		}
	}
}

// file stores a file.
func (x *rig) file(content string) Entry {
	x.t.Helper()
	id, err := x.Put(x.t.Context(), "blob", []byte(content))
	if err != nil {
		x.t.Fatal(err)
	}
	return Entry{Mode: ModeFile, ID: id}
}

// A process that has died while it rested is replaced, one whose configuration has changed, too; a cancelled question ends its own.
func TestProcesses(t *testing.T) {
	x := newRig(t)
	ctx := t.Context()
	ask := func() { t.Helper(); x.file("a") }
	ask()
	ask()
	if n := len(x.started); n != 1 {
		t.Fatalf("%d processes answered", n)
	}
	_ = x.started[0].Process.Kill()
	ask()
	if n := len(x.started); n != 2 {
		t.Errorf("%d processes have answered after one has died", n)
	}
	x.stale = true
	ask()
	if n := len(x.started); n != 3 || x.started[1].ProcessState == nil {
		t.Errorf("%d processes have answered, with an old configuration", n)
	}
	x.stale = false
	over, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("it is over"))
	if _, _, err := x.Resolve(over, "HEAD"); err == nil || err.Error() != "it is over" {
		t.Error(err)
	}
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			if _, _, err := x.Resolve(ctx, "HEAD"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(x.started); n > 3+maxProcesses {
		t.Errorf("%d processes have answered", n)
	}
	x.Close()
	for _, c := range x.started {
		if c.ProcessState == nil {
			t.Errorf("%s goes on", c)
		}
	}
	ask() // without one that stays
	if last := x.started[len(x.started)-1]; last.ProcessState == nil {
		t.Errorf("%s goes on", last)
	}
}

// A process that nobody asks ends.
func TestRest(t *testing.T) {
	x := newRig(t)
	x.file("a")
	for deadline := time.Now().Add(4 * rest); ; time.Sleep(rest / 50) {
		x.Repo.mu.Lock()
		n := 0
		for _, all := range x.idle {
			n += len(all)
		}
		x.Repo.mu.Unlock()
		if n == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("it goes on to wait")
		}
	}
}

// Random edits make the trees that git's index makes.
func TestEdit(t *testing.T) {
	x := newRig(t)
	ctx := t.Context()
	r := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "a/b", "a/b/c", "a/b/d", "a.b", "a-", "e", "e/f", "é ü/x\ty", "z/.gitignore"}
	blob := x.file("content")
	tree := x.git("", "rev-parse", "HEAD^{tree}")
	for n := range 400 {
		changes := map[string]Entry{}
		for range 1 + r.IntN(3) {
			e := Entry{Mode: []string{ModeFile, ModeExec, ModeLink, ModeSubmodule}[r.IntN(4)], ID: blob.ID}
			if e.Mode == ModeSubmodule {
				e.ID = strings.Repeat("5", 40) // of another repository
			}
			if r.IntN(3) == 0 {
				e = Entry{}
			}
			changes[names[r.IntN(len(names))]] = e
		}
		if blocked(changes) {
			continue // which of both stays is nobody's business
		}
		index := filepath.Join(t.TempDir(), "index")
		var info strings.Builder
		for _, p := range slices.Sorted(maps.Keys(changes)) {
			if changes[p] == (Entry{}) {
				fmt.Fprintf(&info, "0 %s\t%s\x00", strings.Repeat("0", 40), p)
			}
		}
		for _, p := range slices.Sorted(maps.Keys(changes)) {
			if e := changes[p]; e != (Entry{}) {
				fmt.Fprintf(&info, "%s %s\t%s\x00", e.Mode, e.ID, p)
			}
		}
		t.Setenv("GIT_INDEX_FILE", index)
		x.git("", "read-tree", tree)
		x.git(info.String(), "update-index", "-z", "--index-info")
		want := x.git("", "write-tree", "--missing-ok")
		os.Unsetenv("GIT_INDEX_FILE")
		got, err := x.Edit(ctx, tree, changes)
		if err != nil {
			t.Fatalf("%d: %v: %v", n, changes, err)
		}
		if got != want {
			t.Fatalf("%d: %v of %s: %s, not %s", n, changes, x.git("", "ls-tree", "-r", "-t", tree), x.git("", "ls-tree", "-r", "-t", got), x.git("", "ls-tree", "-r", "-t", want))
		}
		tree = got
	}
}

// blocked reports whether one new file lies below another.
func blocked(changes map[string]Entry) bool {
	for p, e := range changes {
		for q, f := range changes {
			if e != (Entry{}) && f != (Entry{}) && strings.HasPrefix(q, p+"/") {
				return true
			}
		}
	}
	return false
}

func TestEditRemovesDirectories(t *testing.T) {
	x := newRig(t)
	ctx := t.Context()
	empty := x.git("", "rev-parse", "HEAD^{tree}")
	one := map[string]Entry{"a/x": x.file("x")}
	tree, err := x.Edit(ctx, empty, map[string]Entry{"a/x": one["a/x"], "a/.opencode/b/c": one["a/x"], "d/.opencode": one["a/x"]})
	if err != nil {
		t.Fatal(err)
	}
	got, err := x.Edit(ctx, tree, map[string]Entry{"a/.opencode": Nothing, "d/.opencode": Nothing, "none/.opencode": Nothing})
	want, _ := x.Edit(ctx, empty, one)
	if err != nil || got != want {
		t.Errorf("%s, %v", x.git("", "ls-tree", "-r", got), err)
	}
	if got, err := x.Edit(ctx, want, map[string]Entry{"a": Nothing}); got != empty || err != nil {
		t.Error(got, err)
	}
}

func TestStorable(t *testing.T) {
	x := newRig(t)
	for path, ok := range map[string]bool{"a": true, "a/.gitignore": true, ".gitx": true, "git": true, ".git": false, "a/.GIT/config": false, "GIT~1/x": false,
		".git./x": false, ".git /x": false, ".git:stream": false, ".g\u200cit/config": false, "a//b": false, "../a": false, "a/./b": false, "": false, "/a": false} {
		if storable(path) != ok {
			t.Errorf("%q is %v", path, !ok)
		}
		if _, err := x.Edit(t.Context(), x.git("", "rev-parse", "HEAD^{tree}"), map[string]Entry{path: x.file("x")}); (err == nil) != ok {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestIndex(t *testing.T) {
	x := newRig(t)
	id := x.file("x").ID
	want := map[string]Entry{"a": {ModeFile, id}, "b/c d": {ModeExec, id}, "link": {ModeLink, id}, "sub": {ModeSubmodule, id}, strings.Repeat("long/", 900) + "x": {ModeFile, id}}
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8} { // every length of padding
		want[strings.Repeat("n", n)] = Entry{ModeFile, id}
	}
	for _, version := range []string{"2", "3", "4", "4 with flags"} { // in a sparse checkout entries have more flags: version 3, or 4
		at := filepath.Join(x.dir, ".git", "index")
		if err := os.WriteFile(at, NewIndex(want), 0o600); err != nil {
			t.Fatal(err)
		}
		listed := x.git("", "ls-files", "-s", "-z")
		if version != "2" && version != "4" {
			x.git("a\x00b/c d\x00nnn\x00", "update-index", "-z", "--skip-worktree", "--stdin")
		}
		x.git("", "update-index", "--force-write-index", "--index-version", version[:1])
		if again := x.git("", "ls-files", "-s", "-z"); again != listed || strings.Count(listed, "\x00") != len(want) {
			t.Errorf("git reads %q", listed)
		}
		data, err := os.ReadFile(at)
		got := map[string]Entry{}
		if !EachIndexed(data, 20, func(name string, e Entry) { got[name] = e }) || err != nil || !maps.Equal(got, want) || data[7] != version[0]-'0' {
			t.Errorf("version %s: %v", version, got)
		}
	}
	if b := NewIndex(nil); EachIndexed(b, 20, func(string, Entry) { t.Error("an empty one has entries") }) != true {
		t.Error("an empty one cannot be read")
	}
}

func FuzzEachIndexed(f *testing.F) {
	f.Add(NewIndex(map[string]Entry{"a": {ModeFile, strings.Repeat("1", 40)}, "b/c": {ModeLink, strings.Repeat("2", 40)}}))
	f.Add([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, oid := range []int{20, 32} {
			EachIndexed(data, oid, func(name string, e Entry) {
				if len(e.ID) != 2*oid {
					t.Errorf("%q has the object %q", name, e.ID)
				}
			})
		}
	})
}

func FuzzReadTree(f *testing.F) {
	f.Add([]byte("100644 a\x00" + strings.Repeat("1", 20)))
	f.Add([]byte("40000 dir\x00" + strings.Repeat("1", 20) + "120000 link\x00" + strings.Repeat("2", 20)))
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := parseTree(data, 20)
		if (tree == nil) != (err != nil) {
			t.Errorf("%v, %v", tree, err)
		}
		for name, e := range tree {
			if len(e.ID) != 40 || len(e.Mode) < 6 || strings.Contains(name, "\x00") {
				t.Errorf("%q is %v", name, e)
			}
		}
	})
}
