package durable

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// A file is replaced as a whole, with the wanted rights; where that fails, the old one stays and nothing is left beside it.
func TestReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	for _, c := range []struct {
		text string
		perm fs.FileMode
	}{{"a longer text", 0o644}, {"short", 0o600}, {"", 0o666}} {
		if err := Replace(path, []byte(c.text), c.perm); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		info, serr := os.Stat(path)
		if err != nil || serr != nil || string(b) != c.text || runtime.GOOS != "windows" && info.Mode() != c.perm {
			t.Errorf("%q %v %v, want %q %v", b, info.Mode(), err, c.text, c.perm)
		}
	}
	in := filepath.Join(dir, "d")
	if err := os.MkdirAll(filepath.Join(in, "full", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Replace(filepath.Join(in, "full"), nil, 0o600); err == nil {
		t.Error("a directory is replaced")
	}
	if left, err := filepath.Glob(filepath.Join(in, ".new-*")); err != nil || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
	if err := Replace(filepath.Join(dir, "missing", "a"), nil, 0o600); err == nil {
		t.Error("a directory that does not exist is no error")
	}
}
