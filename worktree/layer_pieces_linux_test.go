package worktree

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"centurion"
)

// What the upper layer of a workspace says: what is new, what went, what hides all below it, and what is not looked into.
func TestWalkOfAnUpperLayer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"a/b.txt", "a/c/d", "hidden/x", "module/.git", "module/f", "skipped/y", "z"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(at(name)), 0o755), os.WriteFile(at(name), []byte(name), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(whiteout(at("gone")), whiteout(at("a/gone too")), os.Symlink("z", at("link")), syscall.Mkfifo(at("pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	opaque := syscall.Setxattr(at("hidden"), "user.overlay.opaque", []byte("y"), 0) == nil
	if opaque {
		if err := errors.Join(syscall.Setxattr(at("a"), "user.overlay.opaque", []byte("x"), 0), syscall.Setxattr(at("a/c"), "user.overlay.opaque", []byte("yy"), 0)); err != nil {
			t.Fatal(err)
		}
	}
	shown := func(u upper) string {
		var files []string
		for _, f := range u.files {
			files = append(files, fmt.Sprint(f.path, " ", f.info.Size()))
		}
		return fmt.Sprintf("files %q gone %q opaque %q nested %q dirs %q left %q", files, u.gone, u.opaque, u.nested, u.dirs, u.left)
	}
	hides := map[bool]string{true: `"hidden"`}[opaque]
	for below, want := range map[string]string{
		"":  `files ["a/b.txt 7" "a/c/d 5" "hidden/x 8" "link 1" "pipe 0" "z 1"] gone ["a/gone too" "gone"] opaque [` + hides + `] nested ["module"] dirs ["a" "a/c" "hidden" "module"] left ["skipped"]`,
		"a": `files ["a/b.txt 7" "a/c/d 5"] gone ["a/gone too"] opaque [] nested [] dirs ["a/c"] left []`,
	} {
		var u upper
		err := u.walk(dir, below, func(p string) bool { return p == "skipped" || p == "z" })
		if got := shown(u); err != nil || got != want {
			t.Errorf("below %q: %v\n got %s\nwant %s", below, err, got, want)
		}
	}
	var u upper
	if err := u.walk(at("none"), "", nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a layer that is not there: %v", err)
	}
}

// A file keeps its number, and the time of its last change is not one that a program sets.
func TestIdentityOfFiles(t *testing.T) {
	t.Parallel()
	z := filepath.Join(t.TempDir(), "z")
	if err := os.WriteFile(z, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(z)
	past := time.Now().Add(-time.Hour)
	if err := errors.Join(err, os.Chtimes(z, past, past)); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(z)
	if err != nil {
		t.Fatal(err)
	}
	was, when := identityOf(before)
	is, now := identityOf(after)
	if was != is || was == 0 || now.Before(when) || time.Since(now) > time.Minute || !after.ModTime().Before(now) {
		t.Errorf("%d of %v is now %d of %v", was, when, is, now)
	}
	_, err = os.Stat(z + "/x")
	if _, missing := os.Stat(z + "x"); !isNotDirectory(err) || isNotDirectory(missing) || isNotDirectory(nil) {
		t.Errorf("%v, %v", err, missing)
	}
	for path, want := range map[string]bool{"a": true, "a/b": true, "a/b/c": true, "ab": false, "b": false, "": false} {
		if under(path, "a") != want {
			t.Errorf("%q is under a: %t", path, !want)
		}
	}
}

// A layer is there once it is complete, and as long as it is what was recorded of it.
func TestLayersAreWhatWasRecorded(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	open := func() *layers {
		return &layers{repo: &checkouts{snapshots: &snapshots{&objects{repository: &repository{opts: Options{Home: home}}}}}}
	}
	l := open()
	past := time.Now().Add(-time.Hour)
	fill := func(dir string) (layer, error) {
		f := filepath.Join(dir, "files", "sub", "f")
		return layer{Tree: "t", Outputs: []string{"o"}}, errors.Join(os.MkdirAll(filepath.Dir(f), 0o755), os.WriteFile(f, []byte("text"), 0o644), os.Chtimes(f, past, past))
	}
	broken := errors.New("broken")
	err := l.make("one", func(dir string) (layer, error) { made, _ := fill(dir); return made, broken })
	if left, _ := os.ReadDir(filepath.Dir(l.dir("one"))); !errors.Is(err, broken) || len(left) > 0 || l.has("one") {
		t.Errorf("a layer that was not completed: %v, %v", err, left)
	}
	if err := errors.Join(os.MkdirAll(l.dir("one")+unmade+"/files/rest", 0o700), l.make("one", fill)); err != nil {
		t.Fatal(err)
	}
	made, ok := l.read("one")
	if hash, err := hashFiles(l.files("one")); !ok || err != nil || made.id != "one" || made.Tree != "t" || !slices.Equal(made.Outputs, []string{"o"}) || made.Files != hash || len(hash) != 64 {
		t.Errorf("%+v, %v", made, err)
	}
	if _, err := os.Stat(l.files("one") + "/rest"); err == nil {
		t.Error("it has what an earlier attempt had left")
	}
	if err := l.present([]string{"one"}); err != nil {
		t.Error(err)
	}
	err = open().present([]string{"one", "two"})
	if want := "use layers: the layer " + l.dir("two") + " was changed or removed"; centurion.KindOf(err) != centurion.KindNotFound || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	f := filepath.Join(l.files("one"), "sub", "f")
	for what, change := range map[string]func() error{
		"its text":  func() error { return errors.Join(os.WriteFile(f, []byte("longer"), 0o644), os.Chtimes(f, past, past)) },
		"its time":  func() error { return os.Chtimes(f, past, past.Add(1)) },
		"its mode":  func() error { return os.Chmod(f, 0o600) },
		"its name":  func() error { return os.Rename(f, f+"2") },
		"one more":  func() error { return os.Mkdir(filepath.Join(l.files("one"), "more"), 0o755) },
		"no record": func() error { return os.Remove(filepath.Join(l.dir("one"), "layer.json")) },
	} {
		l := open()
		if err := l.make("one", fill); err != nil {
			t.Fatal(err)
		}
		if !open().has("one") || !l.has("one") {
			t.Errorf("%s: it is not there before", what)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if open().has("one") {
			t.Errorf("%s was changed, and nobody noticed", what)
		}
	}
}

// The entries of a tree that is described by another and the differences, and the state that a setup in it depends on.
func TestStackOfEntries(t *testing.T) {
	t.Parallel()
	e := func(id string) entry { return entry{Mode: "100644", ID: id} }
	s := &stack{base: map[string]entry{"a": e("1"), "b": e("2"), "go.sum": e("3"), "sub/go.sum": e("4")}, diff: map[string]entry{"b": {}, "c": e("5"), "sub/Cargo.lock": e("6")}}
	want := map[string]entry{"a": e("1"), "go.sum": e("3"), "sub/go.sum": e("4"), "c": e("5"), "sub/Cargo.lock": e("6")}
	if got := maps.Collect(s.all); !maps.Equal(got, want) {
		t.Errorf("all are %v", got)
	}
	for _, p := range []string{"a", "b", "c", "d"} {
		if s.at(p) != want[p] {
			t.Errorf("%s is %v", p, s.at(p))
		}
	}
	for range s.all {
		break
	}
	state := func(prefix string, s *stack, commands ...string) string {
		cs := &checkouts{snapshots: &snapshots{&objects{repository: &repository{prefix: prefix}}}}
		return cs.stateOf(s, commands)
	}
	with := func(path, id string) *stack {
		other := &stack{base: s.base, diff: maps.Clone(s.diff)}
		other.diff[path] = e(id)
		return other
	}
	all := []string{state("", s), state("sub", s), state("", s, "a"), state("", s, "a", "b"), state("", s, "a b"), state("", with("go.sum", "9")), state("sub", with("sub/go.sum", "9")),
		state("", with("Cargo.lock", "3")), state("sub", with("sub/Cargo.lock", "9"))}
	if distinct := slices.Compact(slices.Sorted(slices.Values(all))); len(distinct) != len(all) {
		t.Errorf("%d states are the same", len(all)-len(distinct))
	}
	for _, same := range []string{state("", with("sub/go.sum", "9")), state("", with("main.go", "9")), state("", s)} {
		if same != all[0] {
			t.Error("the state depends on other files")
		}
	}
	if id := setupID(all[0]); id != "setup-"+all[0][:16] || setupID("abc") != "setup-abc" {
		t.Error(id)
	}
}

// A long file with conflicts is shown from shortly before the first, in whole lines.
func TestExcerptOfConflicts(t *testing.T) {
	t.Parallel()
	lines := func(n int) string { return strings.Repeat("0123456789 12345\n", n) } // 17 bytes each
	const conflict = "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n"
	short := lines(100) + conflict
	if got := excerpt([]byte(short)); got != short {
		t.Errorf("a short one is %d bytes of %d", len(got), len(short))
	}
	if exact := lines(1)[:16384%17] + lines(16384/17); excerpt([]byte(exact)) != exact || len(exact) != maxConflict {
		t.Error("one of the greatest length is cut")
	}
	long := lines(1000) + conflict + lines(2000)
	got := excerpt([]byte(long))
	body := strings.TrimSuffix(strings.TrimPrefix(got, "[…]\n"), "\n[…]\n")
	if len(body) != maxConflict || !strings.HasPrefix(got, "[…]\n0123456789 12345\n") || !strings.HasSuffix(got, "\n[…]\n") || !strings.Contains(long, body) ||
		strings.Index(body, "<<<<<<<") != 2000/17*17 {
		t.Errorf("%d bytes, the conflict at %d: %.40q ... %q", len(body), strings.Index(body, "<<<<<<<"), got, got[len(got)-20:])
	}
	if got := excerpt([]byte(conflict + lines(1000))); got != (conflict + lines(1000))[:maxConflict]+"\n[…]\n" {
		t.Errorf("a conflict at the beginning: %.60q", got)
	}
	if got, want := excerpt([]byte(lines(1000)+conflict)), "[…]\n"+lines(2000/17)+conflict; got != want {
		t.Errorf("a conflict at the end: %d bytes, want %d", len(got), len(want))
	}
}
