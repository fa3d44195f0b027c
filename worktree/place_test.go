package worktree

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"centurion"
)

// A file that was written since it was looked at stays as it is, also one of the same length, and what was replaced before it comes back.
func TestPlaceWrittenMeanwhile(t *testing.T) {
	t.Parallel()
	p, infos := placer{top: t.TempDir()}, map[string]fs.FileInfo{}
	at := func(name string) string { return filepath.Join(p.top, name) }
	for _, name := range []string{"a", "b"} {
		put(t, at(name), "1\n")
		info, err := os.Lstat(at(name))
		if err != nil {
			t.Fatal(err)
		}
		infos[name] = info
	}
	put(t, at("b"), "2\n")
	later := infos["b"].ModTime().Add(time.Second)
	if err := os.Chtimes(at("b"), later, later); err != nil {
		t.Fatal(err)
	}
	old := entry{Mode: "100644", ID: "1"}
	err := p.place(t.TempDir(), []step{{Path: "a", Old: old}, {Path: "b", Old: old}}, infos)
	if centurion.KindOf(err) != centurion.KindConflict || get(t, at("a")) != "1\n" || get(t, at("b")) != "2\n" {
		t.Errorf("%v", err)
	}
}
