package worktree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Nothing that a repository brings along is run: hooks, fsmonitor, filters, drivers.
func TestNothingOfTheRepositoryRuns(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a.txt": "1\n", "b.txt": "1\n", ".gitattributes": "*.txt filter=evil=1 merge=evil diff=evil\n*.bin filter=lfs diff=lfs merge=lfs -text\n",
		"big.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"})
	trap := filepath.Join(t.TempDir(), "sprung")
	evil := "touch '" + trap + "'; cat"
	for _, hook := range []string{"pre-commit", "post-checkout", "post-commit", "reference-transaction", "post-index-change", "fsmonitor-watchman", "post-merge"} {
		put(t, filepath.Join(x.top, ".git/hooks", hook), "#!/bin/sh\n"+evil+"\n")
		os.Chmod(filepath.Join(x.top, ".git/hooks", hook), 0o755)
	}
	pointer := get(t, filepath.Join(x.top, "big.bin"))
	head := x.head()
	for key, v := range map[string]string{"filter.evil=1.clean": evil, "filter.evil=1.smudge": evil, "filter.evil=1.process": evil, "filter.evil=1.required": "true",
		"core.fsmonitor": filepath.Join(x.top, ".git/hooks/fsmonitor-watchman"), "merge.evil.driver": evil + " %A", "diff.evil.command": evil, "diff.evil.textconv": evil,
		"diff.external": evil, "core.sshCommand": evil, "core.pager": evil, "filter.lfs.smudge": evil, "filter.lfs.clean": evil} {
		cfg := filepath.Join(x.top, ".git/config")
		gitIn(t, x.top, "config", "--file", cfg, key, v)
	}
	os.Remove(trap)
	x.write("a.txt", "2\n")
	if b := x.snapshotOnly(); b.Dirty != 1 {
		t.Errorf("%+v", b)
	}
	c := x.take("work/T1", head)
	dir := c.Where().Dir
	if got := get(t, filepath.Join(dir, "big.bin")); got != pointer {
		t.Errorf("an LFS pointer became %q", got)
	}
	put(t, filepath.Join(dir, "a.txt"), "3\n")
	done := commit(t, c)
	if got := changed(done); !slices.Equal(got, []string{"modified a.txt"}) {
		t.Errorf("changed %q", got)
	}
	if _, err := c.Changed(t.Context()); err != nil {
		t.Error(err)
	}
	theirs, err := x.With(t.Context(), head, map[string][]byte{"a.txt": []byte("4\n")})
	if err != nil {
		t.Fatal(err)
	}
	out, err := x.git(t.Context(), call{Args: []string{"commit-tree", theirs, "-p", head, "-m", "theirs"}})
	if err != nil {
		t.Fatal(err)
	}
	if re, err := x.Rebase(t.Context(), done.ID, line(out)); err != nil || len(re.Conflicts) != 1 {
		t.Errorf("%+v, %v", re, err)
	}
	if _, err := c.Release(t.Context(), head); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(trap); err == nil {
		t.Error("something of the repository's was run")
	}
}

// A filter that the person has set up for all their repositories stays.
func TestUntrusted(t *testing.T) {
	t.Parallel()
	entries := parseConfig([]byte("global\x00file:/home/p/.gitconfig\x00filter.mine.clean\nclean %f\x00local\x00file:.git/config\x00filter.mine.clean\nevil\x00" +
		"local\x00file:.git/config\x00filter.lfs.process\ngit-lfs filter-process\x00local\x00file:.git/config\x00filter.x.smudge\nevil\x00local\x00file:.git/config\x00core.bare\nfalse\x00"))
	want := []pair{{"filter.mine.clean", "clean %f"}, {"filter.x.smudge", ""}}
	if got := untrusted(entries); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// Each setting by which a repository's own configuration would have git run a program, or need one, is taken back; one that makes a filter
// necessary is switched off with it, so that its files can still be checked out.
func TestEverySettingThatRuns(t *testing.T) {
	t.Parallel()
	const driver = "git merge-file --marker-size=%L -L ours -L base -L theirs %A %O %B"
	for key, want := range map[string]string{"diff.external": "", "diff.x.command": "", "diff.x.textconv": "", "filter.x.clean": "", "filter.x.process": "", "filter.x.required": "false",
		"filter.x.smudge": "", "merge.x.driver": driver, "lfs.extension.x.clean": "", "lfs.extension.a.b.smudge": ""} {
		for _, scope := range []string{"local", "worktree"} {
			if got := untrusted([]setting{{scope, "file:.git/config", key, "evil"}}); !slices.Equal(got, []pair{{key, want}}) {
				t.Errorf("%s %s: %q", scope, key, got)
			}
		}
		if got := untrusted([]setting{{"global", "file:/home/p/.gitconfig", key, "theirs"}}); len(got) != 0 {
			t.Errorf("the person's %s: %q", key, got)
		}
	}
	for _, key := range []string{"core.bare", "diff.renames", "merge.x.name", "filter.x.other", "user.name"} {
		if got := untrusted([]setting{{"local", "file:.git/config", key, "x"}}); len(got) != 0 {
			t.Errorf("%s: %q", key, got)
		}
	}
}

// git-lfs, whose filter may run, reads its configuration through git: it finds no program of the repository's for its extensions.
func TestNoExtensionOfLFS(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	for _, key := range []string{"clean", "smudge"} {
		x.person("config", "lfs.extension.evil."+key, "touch sprung")
	}
	x.person("config", "lfs.extension.evil.priority", "0")
	out, err := x.git(t.Context(), call{Args: []string{"config", "--get-regexp", "^lfs\\.extension"}})
	got := map[string]string{}
	for l := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(strings.TrimSpace(l), " ")
		got[key] = value // as in git-lfs, the last one counts
	}
	if len(got) != 3 || got["lfs.extension.evil.clean"] != "" || got["lfs.extension.evil.smudge"] != "" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// A repository that an agent makes by the way (cargo new) is work like any other; the .git that it writes is never asked.
func TestRepositoryInACheckout(t *testing.T) {
	t.Parallel()
	x := newRig(t, map[string]string{"a": "1\n"})
	c := x.take("work/T1", x.head())
	dir := c.Where().Dir
	put(t, filepath.Join(dir, "new/crate/src/main.rs"), "fn main() {}\n")
	put(t, filepath.Join(dir, "new/crate/.gitignore"), "target\n")
	put(t, filepath.Join(dir, "new/crate/target/out"), "x")
	gitIn(t, filepath.Join(dir, "new/crate"), "init", "-q")
	done := commit(t, c)
	if got := changed(done); !slices.Equal(got, []string{"added new/crate/.gitignore", "added new/crate/src/main.rs"}) {
		t.Errorf("changed %q", got)
	}
	if kept := release(t, c, done.ID); kept != "" {
		t.Errorf("kept %q", kept)
	}
	c = x.take("work/T2", x.head())
	if got := gitIn(t, c.Where().Dir, "status", "--porcelain"); got != "" {
		t.Errorf("status %q", got)
	}
}

// Links, modes, line ends and odd names come through as they are; the project lies in a linked worktree of the person's.
func TestFilesAsTheyAre(t *testing.T) {
	t.Parallel()
	main := newRig(t, map[string]string{".gitattributes": "*.crlf text eol=crlf\n", "dos.txt": "1\r\n2\r\n", "x.crlf": "1\n", "run.sh": "#!/bin/sh\n"})
	main.person("config", "core.autocrlf", "input")
	linked := filepath.Join(filepath.Dir(main.top), "linked ü")
	main.person("worktree", "add", "-q", "-b", "side", linked)
	x := &rig{t: t, top: linked, dir: linked}
	x.Repo = x.open()
	if h, err := x.Head(t.Context()); err != nil || h.Branch != "side" {
		t.Errorf("%+v, %v", h, err)
	}
	c := x.take("work/T1", x.head())
	dir := c.Where().Dir
	if done := commit(t, c); done.ID != "" {
		t.Errorf("nothing was changed but %q", changed(done))
	}
	os.Chmod(filepath.Join(dir, "run.sh"), 0o755)
	os.Symlink("run.sh", filepath.Join(dir, "li nk"))
	put(t, filepath.Join(dir, "-n\t\"q\"\n:x"), "1")
	done := commit(t, c)
	if got := changed(done); len(got) != 3 {
		t.Errorf("changed %q", got)
	}
	if tree := x.person("ls-tree", done.ID); !strings.Contains(tree, "100755 blob") || !strings.Contains(tree, "120000 blob") {
		t.Errorf("tree %s", tree)
	}
	if got := x.person("status", "--porcelain") + main.person("status", "--porcelain"); got != "" {
		t.Errorf("the person's status %q", got)
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte("local\x00file:.git/config\x00filter.a.clean\nx\x00"))
	f.Add([]byte("local\x00a\x00"))
	f.Fuzz(func(t *testing.T, out []byte) {
		for _, p := range untrusted(parseConfig(out)) {
			if !runs(p.key) {
				t.Errorf("%q runs nothing", p.key)
			}
		}
	})
}
