package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"centurion"
	"centurion/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open makes a project in a directory whose name has spaces and umlauts.
func open(t testing.TB, files map[string]string) *workspace.Workspace {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "Mein Gerät ü")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		put(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	w, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func put(t testing.TB, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, w *workspace.Workspace, rel string) string {
	t.Helper()
	b, _, err := w.ReadFile(rel, 0)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func link(t testing.TB, to, from string) {
	t.Helper()
	if err := os.Symlink(to, from); err != nil {
		t.Skipf("no links here: %v", err)
	}
}

// wantError checks an error's kind and what it and its hint say.
func wantError(t testing.TB, err error, kind centurion.Kind, says string) {
	t.Helper()
	if centurion.KindOf(err) != kind || err == nil || !strings.Contains(err.Error()+" | "+centurion.HintOf(err), says) {
		t.Errorf("got %v (%s), hint %q; want %s and %q", err, centurion.KindOf(err), centurion.HintOf(err), kind, says)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "project", "file"), "x")
	_, err := workspace.Open(filepath.Join(dir, "projetc"))
	wantError(t, err, centurion.KindNotFound, filepath.Join(dir, "project")+"?")
	_, err = workspace.Open(filepath.Join(dir, "project", "file"))
	wantError(t, err, centurion.KindUsage, "not a directory")
	_, err = workspace.Open(filepath.Join(dir, "project", "file", "below"))
	wantError(t, err, centurion.KindUsage, "not a directory")
	_, err = workspace.Open("a\x00b")
	wantError(t, err, centurion.KindUsage, "NUL")
	if os.Getuid() > 0 {
		if err := os.Chmod(filepath.Join(dir, "project"), 0); err != nil {
			t.Fatal(err)
		}
		_, err = workspace.Open(filepath.Join(dir, "project"))
		wantError(t, err, centurion.KindPermission, "cannot be read")
	}
	t.Chdir(dir)
	w, err := workspace.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if real, _ := filepath.EvalSymlinks(dir); w.Dir() != real {
		t.Errorf("Dir = %s, want %s", w.Dir(), real)
	}
}

func TestRel(t *testing.T) {
	real := filepath.Join(t.TempDir(), "a b", "prö")
	put(t, filepath.Join(real, "sub", "x"), "")
	short := filepath.Join(t.TempDir(), "short")
	link(t, real, short)
	other := filepath.Join(t.TempDir(), "other")
	link(t, real, other)
	w, err := workspace.Open(short)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for name, want := range map[string]string{
		".": ".", "x": "x", "./sub//x": "sub/x", "sub/../y": "y", "sub/": "sub", "...": "...", "..x": "..x",
		w.Dir():                                 ".",
		filepath.Join(w.Dir(), "sub", "x"):      "sub/x",
		filepath.Join(short, "sub", "new ü"):    "sub/new ü",
		filepath.Join(other, "sub", "not", "y"): "sub/not/y",
	} {
		if got, err := w.Rel(name); err != nil || got != want {
			t.Errorf("Rel(%q) = %q, %v; want %q", name, got, err, want)
		}
	}
	for name, kind := range map[string]centurion.Kind{
		"": centurion.KindUsage, "a\x00": centurion.KindUsage,
		"..": centurion.KindPermission, "../x": centurion.KindPermission, "sub/../../x": centurion.KindPermission,
		filepath.Dir(w.Dir()): centurion.KindPermission, w.Dir() + "x": centurion.KindPermission,
		filepath.Join(w.Dir(), "..", "x"): centurion.KindPermission,
	} {
		if got, err := w.Rel(name); centurion.KindOf(err) != kind {
			t.Errorf("Rel(%q) = %q, %v; want %s", name, got, err, kind)
		} else if kind == centurion.KindPermission {
			wantError(t, err, kind, name)
		}
	}
}

func FuzzRel(f *testing.F) {
	dir := f.TempDir()
	w, err := workspace.Open(dir)
	if err != nil {
		f.Fatal(err)
	}
	defer w.Close()
	for _, s := range []string{"a/../b", "/", "..", "//x", w.Dir() + "/..", "a/./..//..", `..\x`, "C:x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		rel, err := w.Rel(name)
		if err != nil {
			if k := centurion.KindOf(err); k != centurion.KindUsage && k != centurion.KindPermission {
				t.Fatalf("%q: %v", name, err)
			}
			return
		}
		if !filepath.IsLocal(filepath.FromSlash(rel)) {
			t.Fatalf("Rel(%q) = %q leads out", name, rel)
		}
		if again, err := w.Rel(rel); err != nil || again != rel {
			t.Fatalf("Rel(%q) = %q, then %q, %v", name, rel, again, err)
		}
	})
}

// S1: the file tools must not reach the plan or git's own files, under no name.
func TestProtected(t *testing.T) {
	w := open(t, map[string]string{".opencode/todo.md": "", ".git/config": "", "sub/x": "", "mod/x": ""})
	link(t, ".opencode", filepath.Join(w.Dir(), "oc"))
	link(t, filepath.Join("..", ".git", "config"), filepath.Join(w.Dir(), "sub", "cfg"))
	link(t, filepath.Join("..", "sub"), filepath.Join(w.Dir(), "mod", ".git")) // as a name it is git's, wherever that is
	for _, p := range []string{"mod/.git", "mod/.git/x", ".opencode", ".opencode/todo.md", ".opencode/new/x", ".git", ".git/hooks/x", "sub/.git/config", ".GIT/x",
		".OpenCode/x", "x/../.git/y", "oc/todo.md", "oc/new", "sub/cfg", "../x", "", "git~1/config", ".git./x", w.Dir() + "/.git/x"} {
		if !w.Protected(p) {
			t.Errorf("%q is not protected", p)
		}
	}
	for _, p := range []string{".", "x", ".gitignore", ".github/x", "sub/x", "sub/.opencode/x", "opencode.json", "git/x"} {
		if w.Protected(p) {
			t.Errorf("%q is protected", p)
		}
	}
}

// S1: no absolute path, no way up, no link, NUL or pipe leads a read out of the project, and nothing blocks.
func TestReadFile(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	put(t, outside, "secret")
	w := open(t, map[string]string{"a/main.go": "package a", "a/b.txt": "12345", "a/c/d": "", "ünï cöde.md": "ü"})
	link(t, outside, filepath.Join(w.Dir(), "abs"))
	link(t, filepath.Join("..", "..", filepath.Base(filepath.Dir(outside)), "secret"), filepath.Join(w.Dir(), "a", "up"))
	link(t, filepath.Join("a", "b.txt"), filepath.Join(w.Dir(), "in"))
	link(t, "loop", filepath.Join(w.Dir(), "loop"))
	if runtime.GOOS == "linux" {
		link(t, "/dev/zero", filepath.Join(w.Dir(), "zero"))
		if err := exec.Command("mkfifo", filepath.Join(w.Dir(), "pipe")).Run(); err != nil {
			t.Fatal(err)
		}
		_, _, err := w.ReadFile("pipe", 0)
		wantError(t, err, centurion.KindUsage, "named pipe")
		_, err = w.Version("pipe")
		wantError(t, err, centurion.KindUsage, "named pipe")
		_, err = w.Names("pipe", "")
		wantError(t, err, centurion.KindUsage, "not a directory")
	}
	for name, want := range map[string]string{"a/b.txt": "12345", "ünï cöde.md": "ü", "in": "12345", "a/c/d": ""} {
		if got := get(t, w, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
		if v, err := w.Version(name); err != nil || v != workspace.VersionOf([]byte(want)) {
			t.Errorf("Version(%s) = %q, %v", name, v, err)
		}
	}
	if b, fi, err := w.ReadFile("a/b.txt", 5); err != nil || string(b) != "12345" || fi.Size() != 5 {
		t.Errorf("exactly the limit: %q, %v", b, err)
	}
	if v, err := w.Version("a/none"); v != "" || err != nil {
		t.Errorf("Version of nothing = %q, %v", v, err)
	}
	for name, tt := range map[string]struct {
		kind centurion.Kind
		says string
	}{
		"a/man.go":     {centurion.KindNotFound, "a/main.go?"},
		"zzzzzzzz":     {centurion.KindNotFound, "list the directory"},
		"q/w":          {centurion.KindNotFound, "its directory q does not exist either"},
		"a":            {centurion.KindUsage, "a is a directory"},
		"a/b.txt/x":    {centurion.KindUsage, "a/b.txt/x"},
		"abs":          {centurion.KindPermission, "abs leads outside"},
		"a/up":         {centurion.KindPermission, "a/up leads outside"},
		"../x":         {centurion.KindPermission, "outside the project"},
		"loop":         {centurion.KindUsage, "loop"},
		"a/b\x00":      {centurion.KindUsage, "NUL"},
		"a/toolong.md": {centurion.KindUsage, "has 6 bytes, more than the 5"},
	} {
		if name == "a/toolong.md" {
			put(t, filepath.Join(w.Dir(), "a", "toolong.md"), "123456")
		}
		_, _, err := w.ReadFile(name, 5)
		wantError(t, err, tt.kind, tt.says)
	}
	if _, err := w.Stat("none"); !errors.As(err, new(*centurion.Error)) {
		t.Errorf("Stat: %v", err)
	}
	if fi, err := w.Stat("a"); err != nil || !fi.IsDir() {
		t.Errorf("Stat of a directory: %v", err)
	}
}

// S1: nor a write.
func TestWriteFile(t *testing.T) {
	outside := t.TempDir()
	w := open(t, map[string]string{"run.sh": "old", "ro": "old", "d/t.txt": "old", "plain": ""})
	at := func(rel string) string { return filepath.Join(w.Dir(), filepath.FromSlash(rel)) }
	for name, mode := range map[string]fs.FileMode{"run.sh": 0o750, "ro": 0o444} {
		if err := os.Chmod(at(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	link(t, filepath.Join("d", "t.txt"), at("in"))
	link(t, outside, at("out"))
	link(t, filepath.Join(outside, "f"), at("outfile"))
	link(t, "nowhere", at("dangling"))
	link(t, "d", at("dd"))

	for name, target := range map[string]string{"run.sh": "run.sh", "new dir/ü/x.txt": "new dir/ü/x.txt", "in": "d/t.txt", "dd/new": "d/new"} {
		if err := w.WriteFile(name, []byte("new\r\n")); err != nil {
			t.Errorf("WriteFile(%s): %v", name, err)
		} else if got := get(t, w, target); got != "new\r\n" {
			t.Errorf("%s holds %q", target, got)
		}
	}
	if fi, err := os.Lstat(at("in")); err != nil || fi.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v", fi.Mode())
	}
	if fi, err := w.Stat("run.sh"); runtime.GOOS != "windows" && (err != nil || fi.Mode().Perm() != 0o750) {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	for name, tt := range map[string]struct {
		kind centurion.Kind
		says string
	}{
		"ro":         {centurion.KindPermission, "read-only"},
		"out/x":      {centurion.KindPermission, "leads outside"},
		"outfile":    {centurion.KindPermission, "outside"},
		"../x":       {centurion.KindPermission, "outside"},
		"dangling":   {centurion.KindNotFound, "dangling"},
		"d":          {centurion.KindUsage, "directory"},
		".":          {centurion.KindUsage, "directory"},
		"plain/x":    {centurion.KindUsage, "plain"},
		"plain/x/yy": {centurion.KindUsage, "plain"},
	} {
		wantError(t, w.WriteFile(name, []byte("x")), tt.kind, tt.says)
	}
	if left, _ := os.ReadDir(outside); len(left) != 0 {
		t.Errorf("written outside: %v", left)
	}
	if left, _ := filepath.Glob(at(".*[0-9a-f][0-9a-f]*")); len(left) != 0 {
		t.Errorf("temporary files left: %v", left)
	}
}

func TestDiskFull(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full")
	}
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = f.Write([]byte("x"))
	if k := workspace.KindOfOS(err); k != centurion.KindDisk {
		t.Errorf("%v is %s", err, k)
	}
}

func TestCheckWritable(t *testing.T) {
	w := open(t, nil)
	if err := w.CheckWritable(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(filepath.Join(w.Dir(), ".opencode")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	wantError(t, open(t, map[string]string{".opencode": "a file"}).CheckWritable(), centurion.KindUsage, ".opencode")
	out := open(t, nil)
	link(t, t.TempDir(), filepath.Join(out.Dir(), ".opencode"))
	wantError(t, out.CheckWritable(), centurion.KindPermission, "outside")
	_, err := out.Todo().Edit(t.Context(), nil)
	wantError(t, err, centurion.KindPermission, "outside")
}

// S1: while a racing process turns a link to a directory of the project into one that leads outside, and back, no read and no write
// gets out.
func TestSwappedLink(t *testing.T) {
	outside := t.TempDir()
	put(t, filepath.Join(outside, "f"), "secret")
	w := open(t, map[string]string{"d/f": "inside"})
	way, next := filepath.Join(w.Dir(), "way"), filepath.Join(w.Dir(), "next")
	link(t, "d", way)
	stop := make(chan struct{})
	var g sync.WaitGroup
	defer g.Wait()
	defer close(stop)
	g.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := errors.Join(os.Symlink([]string{outside, "d"}[n%2], next), os.Rename(next, way)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	inside, refused := 0, 0
	for (inside < 300 || refused < 300) && !t.Failed() {
		if b, _, err := w.ReadFile("way/f", 0); err != nil {
			refused++
		} else if string(b) == "secret" {
			t.Error("it read a file outside of the project")
		}
		if err := w.WriteFile("way/f", []byte("inside")); err == nil {
			inside++
		}
		if b, err := os.ReadFile(filepath.Join(outside, "f")); err != nil || string(b) != "secret" {
			t.Errorf("outside stands %q, %v", b, err)
		}
	}
	if left, _ := os.ReadDir(outside); len(left) != 1 {
		t.Errorf("written outside: %v", left)
	}
}
