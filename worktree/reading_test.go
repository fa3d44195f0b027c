package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// reading are commands of git that count as only reading.
var reading = [][]string{{"status"}, {"diff"}, {"diff", "HEAD"}, {"log", "-p"}, {"show"}, {"blame", "a.txt"}, {"grep", "1"}, {"ls-files", "-m"}, {"describe", "--always", "--dirty"}, {"stash", "list"}}

// S2, S4, issue "Trust" 3: where reading commands of git would run something that a repository brings along, this is noticed before. Real git
// shows that what counts as harmless is: each key and hook is tried.
func TestRunsWhatARepositoryBrings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config map[string]string
		hook   string // its file, from the top
		runs   bool   // git runs it, so it must be noticed
	}{
		"nothing": {}, "fsmonitor": {config: map[string]string{"core.fsmonitor": "EVIL"}, runs: true},
		"a hook": {hook: ".git/hooks/post-index-change", runs: true}, "hooks elsewhere": {config: map[string]string{"core.hooksPath": "tools"}, hook: "tools/post-index-change", runs: true},
		"other hooks": {config: map[string]string{"core.hooksPath": "tools"}, hook: "tools/pre-commit"}, "textconv": {config: map[string]string{"diff.evil.textconv": "EVIL"}, runs: true},
		"a driver": {config: map[string]string{"diff.evil.command": "EVIL"}, runs: true}, "external": {config: map[string]string{"diff.external": "EVIL"}, runs: true},
		"a filter": {config: map[string]string{"filter.evil.clean": "EVIL; cat"}, runs: true}, "a process": {config: map[string]string{"filter.evil.process": "EVIL"}, runs: true},
		"harmless": {config: map[string]string{"core.editor": "EVIL", "core.sshCommand": "EVIL", "core.pager": "EVIL", "alias.status": "!EVIL", "merge.evil.driver": "EVIL", "credential.helper": "!EVIL",
			"submodule.x.update": "!EVIL", "diff.evil.xfuncname": "EVIL", "filter.lfs.clean": "git-lfs clean -- %f", "commit.template": "EVIL"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newRig(t, map[string]string{"a.txt": "1\n", "b.txt": "1\n", ".gitattributes": "*.txt filter=evil diff=evil merge=evil\n"})
			trap := filepath.Join(t.TempDir(), "sprung")
			for key, value := range c.config {
				gitIn(t, x.top, "config", key, strings.ReplaceAll(value, "EVIL", "touch '"+trap+"'"))
			}
			if c.hook != "" {
				put(t, filepath.Join(x.top, c.hook), "#!/bin/sh\ntouch '"+trap+"'\n")
				os.Chmod(filepath.Join(x.top, c.hook), 0o755)
			}
			x.write("a.txt", "2\n")
			os.MkdirAll(filepath.Join(x.top, "sub"), 0o755)
			why := Runs(filepath.Join(x.top, "sub"))
			if (why != "") != c.runs {
				t.Errorf("%q", why)
			}
			for i, args := range reading {
				touched := time.Unix(int64(i), 0) // its content is the same, so that git writes the index anew
				os.Chtimes(filepath.Join(x.top, "b.txt"), touched, touched)
				_, _ = tryGit(t.Context(), x.top, args...)
			}
			if _, err := os.Stat(trap); (err == nil) != c.runs {
				t.Errorf("run: %v, expected %v", err == nil, c.runs)
			}
		})
	}
}

// A repository in the repository, and what only looks like one, count as well; so does every configuration that git would read.
func TestRunsBelowAndAround(t *testing.T) {
	t.Parallel()
	const evil = "[core]\n\tfsmonitor = ./x\n"
	for name, c := range map[string]struct {
		build func(x *rig) (dir string)
		runs  bool
	}{
		"a submodule": {func(x *rig) string {
			gitIn(t, x.top, "init", "-q", "mod")
			gitIn(t, filepath.Join(x.top, "mod"), "commit", "-q", "--allow-empty", "-m", "x")
			x.person("add", "mod")
			put(t, filepath.Join(x.top, "mod/.git/config"), evil)
			return x.top
		}, true},
		"a submodule in an index of version 4": {func(x *rig) string {
			gitIn(t, x.top, "init", "-q", "mod")
			gitIn(t, filepath.Join(x.top, "mod"), "commit", "-q", "--allow-empty", "-m", "x")
			x.person("add", "mod")
			x.person("update-index", "--index-version", "4")
			put(t, filepath.Join(x.top, "mod/.git/config"), evil)
			return x.top
		}, true},
		"a clean submodule": {func(x *rig) string {
			gitIn(t, x.top, "init", "-q", "mod")
			gitIn(t, filepath.Join(x.top, "mod"), "commit", "-q", "--allow-empty", "-m", "x")
			x.person("add", "mod")
			return x.top
		}, false},
		"a bare repository": {func(x *rig) string {
			gitIn(t, x.top, "init", "-q", "--bare", "mod")
			return filepath.Join(x.top, "mod")
		}, true},
		"a .git that is none": {func(x *rig) string {
			put(t, filepath.Join(x.top, "mod/.git/HEAD"), "nothing")
			put(t, filepath.Join(x.top, ".git/config"), evil)
			return filepath.Join(x.top, "mod")
		}, true},
		"an index that cannot be read": {func(x *rig) string {
			put(t, filepath.Join(x.top, ".git/index"), "DIRC\x00\x00\x00\x09\x00\x00\x00\x01")
			return x.top
		}, true},
		"a .git with all but a head": {func(x *rig) string {
			put(t, filepath.Join(x.top, "mod/.git/HEAD"), "nothing")
			put(t, filepath.Join(x.top, "mod/.git/objects/x"), "")
			put(t, filepath.Join(x.top, "mod/.git/refs/x"), "")
			put(t, filepath.Join(x.top, ".git/config"), evil)
			return filepath.Join(x.top, "mod")
		}, true},
		"a worktree's own": {func(x *rig) string {
			x.person("worktree", "add", "-q", "--detach", "../wt")
			x.person("config", "extensions.worktreeConfig", "true")
			dir := filepath.Join(filepath.Dir(x.top), "wt")
			gitIn(t, dir, "config", "--worktree", "core.fsmonitor", "./x")
			return dir
		}, true},
		"a worktree": {func(x *rig) string {
			x.person("worktree", "add", "-q", "--detach", "../wt")
			return filepath.Join(filepath.Dir(x.top), "wt")
		}, false},
		"a checkout": {func(x *rig) string { return x.take("work/T1", x.head()).Where().Dir }, false},
		"none":       {func(x *rig) string { return t.TempDir() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if why := Runs(c.build(newRig(t, map[string]string{"a": "1\n", "ordner/b": "2\n"}))); (why != "") != c.runs {
				t.Errorf("%q", why)
			}
		})
	}
	for _, config := range []string{"[include]\n\tpath = x\n", "[core] fsmonitor = ./x\n", "[core]\n\tfsmonitor = tr\\\nue\n", "[core]\n\thooksPath = h\"oo\"ks\n", "[CORE]\n\tFSMonitor = ./x\n",
		"[core]\n\tworktree = /etc\n", "[blame]\n\tignoreRevsFile = /etc/passwd\n", "[filter.evil]\n\tclean = x\n", "[lfs \"extension.x\"]\n\tclean = y\n", "[gpg]\n\tprogram = ./x\n",
		"[remote \"o\"]\n\tpromisor = true\n", "[extensions]\n\tobjectformat = \"sha256\"\n", "[mailmap]\n\tfile = /etc/passwd\n", "[core]\n\tattributesFile = x\n", "?\n"} {
		if c := (&ownConfig{top: "/p", gitDir: "/p/.git", hooks: "/p/.git/hooks"}); c.read([]byte(config)) == "" {
			t.Errorf("%q counts as harmless", config)
		}
	}
	for _, config := range []string{"[lfs]\n\tlocksverify = true\n", "[lfs \"https://example.com/x.git/info/lfs\"]\n\taccess = basic\n", "[remote \"o\"]\n\turl = /x\n", "[blame]\n\tshowroot = true\n", "[extensions]\n\tobjectformat = sha1\n"} {
		if why := (&ownConfig{top: "/p", gitDir: "/p/.git", hooks: "/p/.git/hooks"}).read([]byte(config)); why != "" {
			t.Errorf("%q: %s", config, why)
		}
	}
}

func FuzzGitlinks(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01"), 20)
	f.Fuzz(func(t *testing.T, data []byte, oid int) {
		gitlinks(data, 20+12*(oid&1))
	})
}
