package workspace_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/workspace"
)

func walk(t testing.TB, w *workspace.Workspace, opts workspace.WalkOptions) string {
	t.Helper()
	var out []string
	for e, err := range w.Walk(t.Context(), opts) {
		if err != nil {
			t.Fatalf("%s: %v", e.Path, err)
		}
		if e.IsDir() {
			e.Path += "/"
		}
		out = append(out, e.Path)
	}
	return strings.Join(out, " ")
}

func TestWalk(t *testing.T) {
	w := open(t, map[string]string{
		".git/config": "", ".gitignore": "*.log\r\n/build/\n!keep.log\n", ".git/info/exclude": "local\n",
		"a.txt": "12", "b/x.log": "", "b/keep.log": "", "b/c/ü.go": "", "build/out": "", "sub/build/x": "", "local": "", ".env": "",
		"b/.gitignore": "c/*.tmp\n", "b/c/n.tmp": "", "sub/.git": "gitdir: elsewhere", "sub/z": "",
	})
	put(t, filepath.Join(w.Dir(), "b/c/.gitignore"), "!back.log\n")
	put(t, filepath.Join(w.Dir(), "b/c/d/back.log"), "")
	put(t, filepath.Join(w.Dir(), "b/c/d/gone.log"), "")
	link(t, "b", filepath.Join(w.Dir(), "ln"))
	for want, opts := range map[string]workspace.WalkOptions{
		"a.txt b/ b/c/ b/c/d/ b/c/d/back.log b/c/ü.go b/keep.log ln sub/ sub/build/ sub/build/x sub/z": {},
		"b/c/d/back.log":   {Dir: "b/c/d"}, // what stands nearer to a file decides
		"a.txt b/ ln sub/": {MaxDepth: 1},
		"b/c/ b/c/d/ b/c/d/back.log b/c/ü.go b/keep.log": {Dir: "b"},
		"b/c/d/ b/c/d/back.log b/c/ü.go":                 {Dir: w.Dir() + "/b/c"},
		"b/.gitignore b/c/ b/c/.gitignore b/c/d/ b/c/d/back.log b/c/d/gone.log b/c/n.tmp b/c/ü.go b/keep.log b/x.log": {Dir: "b", Hidden: true, Ignored: true},
		".env .gitignore a.txt b/ ln sub/": {MaxDepth: 1, Hidden: true},
		"a.txt b/ build/ ln local sub/":    {MaxDepth: 1, Ignored: true},
	} {
		if got := walk(t, w, opts); got != want {
			t.Errorf("%+v:\n got %s\nwant %s", opts, got, want)
		}
	}
	for e := range w.Walk(t.Context(), workspace.WalkOptions{}) {
		if e.Path == "a.txt" && (e.Size != 2 || e.ModTime.IsZero() || !e.IsFile()) {
			t.Errorf("entry %+v", e)
		}
		if e.Path == "b" {
			break // a reader may stop
		}
	}
}

func TestWalkErrors(t *testing.T) {
	w := open(t, map[string]string{"a/b": "", "c": ""})
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(centurion.ErrShutdown)
	for name, tt := range map[string]struct {
		ctx  context.Context
		dir  string
		kind centurion.Kind
	}{
		"missing":   {t.Context(), "d", centurion.KindNotFound},
		"file":      {t.Context(), "c", centurion.KindUsage},
		"outside":   {t.Context(), "..", centurion.KindPermission},
		"cancelled": {cancelled, "", centurion.KindInterrupted},
	} {
		n := 0
		for _, err := range w.Walk(tt.ctx, workspace.WalkOptions{Dir: tt.dir}) {
			if n++; centurion.KindOf(err) != tt.kind {
				t.Errorf("%s: %v (%s), want %s", name, err, centurion.KindOf(err), tt.kind)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d entries", name, n)
		}
	}
}

// git itself says what is ignored.
func TestIgnoreLikeGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal("git is needed: what it ignores is compared with it")
	}
	rules := []string{
		"*.o", "/top", "dir/", "a/b", "**/deep/x", "p/**/q", "r/**", "!r/keep", "[!a]z", "keep/*", "!keep/me", "*.tmp", "!keep.tmp",
		`\!bang`, `\#hash`, "# comment", "sp ", "**/n/m/o", "v**w", "x?y", "!keepdir",
	}
	files := []string{
		"a.o", "s/a.o", "top", "s/top", "dir/x", "s/dir/x", "t/dir", "a/b", "s/a/b", "deep/x", "s/deep/x", "s/t/deep/x/y", "p/q", "p/1/q", "p/1/2/q",
		"p/qq", "r/1", "r/keep", "s/r/1", "az", "bz", "keep/me", "keep/you", "1.tmp", "keep.tmp", "keepdir/1.tmp", "keepdir/x", "!bang",
		"#hash", "sp", "n/m/o", "n/n/m/o", "n/x/n/m/o", "vw", "v1w", "v/w", "x1y", "x/y", "sub/only", "sub/in/only", "sub/back.o", "other/only",
		"of-the-repository", "of-the-middle", "excluded", "deep/excluded",
	}
	for _, nested := range []string{"", "outer/mono repo"} {
		repo := t.TempDir()
		dir := filepath.Join(repo, filepath.FromSlash(nested))
		put(t, filepath.Join(repo, ".gitignore"), strings.Join(rules[:3], "\n")+"\nof-the-repository\n")
		put(t, filepath.Join(repo, "outer", ".gitignore"), "of-the-middle\n")
		put(t, filepath.Join(dir, ".gitignore"), strings.Join(rules, "\n"))
		put(t, filepath.Join(dir, "sub", ".gitignore"), "/only\n!*.o\n")
		for _, f := range files {
			put(t, filepath.Join(dir, filepath.FromSlash(f)), "")
		}
		run := func(stdin string, args ...string) string {
			cmd := exec.CommandContext(t.Context(), git, args...)
			cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
			cmd.Env = append(os.Environ(), "HOME="+repo, "GIT_CONFIG_NOSYSTEM=1")
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, os.Stderr
			_ = cmd.Run() // check-ignore exits 1 when nothing is ignored
			return out.String()
		}
		run("", "init", "-q", repo)
		put(t, filepath.Join(repo, ".git", "info", "exclude"), "# c\n\n  \nexcluded\n")
		ignored := strings.Split(run(strings.Join(files, "\x00")+"\x00", "check-ignore", "-z", "--stdin"), "\x00")
		w, err := workspace.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		found := strings.Split(walk(t, w, workspace.WalkOptions{}), " ")
		for _, f := range files {
			if got, want := !slices.Contains(found, f), slices.Contains(ignored, f); got != want {
				t.Errorf("in %q: %s ignored: %v, git says %v", nested, f, got, want)
			}
		}
		w.Close()
	}
}

func BenchmarkWalk(b *testing.B) {
	files := map[string]string{".gitignore": "*.o\n/build/\n**/tmp/x\n"}
	for i := range 2000 {
		files[fmt.Sprintf("d%d/e%d/f%d.go", i%10, i%50, i)] = ""
	}
	w := open(b, files)
	for b.Loop() {
		n := 0
		for range w.Walk(b.Context(), workspace.WalkOptions{}) {
			n++
		}
		if n < 2000 {
			b.Fatal(n)
		}
	}
}
