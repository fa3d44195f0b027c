package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// S1, S2, issue "Trust" 2: a path of a script leads to where its links lead, also behind patterns, in directories, and behind a link and a "..".
func TestFollow(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "project")
	for _, name := range []string{"project/a.txt", "project/sub/deep/b.txt", "project/[x]", "home/.ssh/id_ed25519", "home/notes"} {
		name = filepath.Join(base, name)
		os.MkdirAll(filepath.Dir(name), 0o755)
		os.WriteFile(name, []byte("x"), 0o644)
	}
	for link, to := range map[string]string{"key": "../home/.ssh/id_ed25519", "home": filepath.Join(base, "home"), "inner": "sub/deep", "sub/to": "../inner", "sub/out": "../../home/notes", "gone": "nowhere",
		"round": "round", "up": ".."} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	w, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, c := range []struct {
		name       string
		glob, deep bool
		want       string
	}{
		{"a.txt", false, false, "a.txt"}, {"key", false, false, "/home/.ssh/id_ed25519"}, {"home/notes", false, false, "/home/notes"}, {"inner/b.txt", false, false, "sub/deep/b.txt"},
		{"inner/../to/b.txt", false, false, "sub/deep/b.txt"}, {"inner/../../key", false, false, "/home/.ssh/id_ed25519"}, {"up/home/notes", false, false, "/home/notes"},
		{"gone", false, false, ""}, {"round", false, false, ""}, {"missing", false, false, ""}, {"k*", true, false, "/home/.ssh/id_ed25519"}, {"[k]ey", true, false, "/home/.ssh/id_ed25519"},
		{"[!x]ey", true, false, "/home/.ssh/id_ed25519"}, {"sub/*", true, false, "/home/notes sub/deep"}, {"*/id_*", true, false, ""}, {"*/.ssh/id_*", true, false, "/home/.ssh/id_ed25519"},
		{"sub", false, true, "/home/notes sub sub/deep"}, {"sub/deep", false, true, "sub/deep"}, {"[x]", true, false, "[x]"},
	} {
		got, ok := w.Follow(dir+"/"+c.name, c.glob, c.deep)
		for i, g := range got {
			got[i] = strings.TrimPrefix(g, filepath.ToSlash(base))
		}
		if slices.Sort(got); !ok {
			t.Errorf("%s: too many", c.name)
		}
		if c.glob { // a looser pattern may match more
			if !slices.ContainsFunc(got, func(g string) bool { return c.want == "" || strings.Contains(c.want, g) }) && c.want != "" {
				t.Errorf("%s: %q, want %q among them", c.name, got, c.want)
			}
		} else if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// What is too much to look at is told, not cut off: a script may reach the rest, too.
func TestFollowTooMany(t *testing.T) {
	t.Parallel()
	w := project(t, "a=", "b=")
	for name, look := range map[string]func(f *follower) error{
		"matches":           func(f *follower) error { return f.match(w.dir, "*", nil, 0) },
		"below a directory": func(f *follower) error { return f.below(w.dir) },
	} {
		for looked, want := range map[int]error{maxFollowed - 2: nil, maxFollowed - 1: errTooMany} {
			f := &follower{ws: w, glob: true, seen: map[string]bool{}, looked: looked}
			if err := look(f); !errors.Is(err, want) {
				t.Errorf("%s, after %d: %v", name, looked, err)
			}
		}
	}
}
