package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"centurion"
	"centurion/permission"
)

func TestRead(t *testing.T) {
	b := newBench(t)
	b.put("a.txt", "one\ntwo\nthree")
	b.put("crlf.txt", "one\r\ntwo\r\n")
	b.put("bom.txt", "\xef\xbb\xbfone\n")
	b.put("empty", "")
	b.put("latin1.txt", strings.Repeat("ein ganz normaler Satz mit einem \xfc darin\n", 5))
	b.put("ein Ordner/größe ändern.txt", "Maß\n")
	b.put("long.txt", strings.Repeat("ü", 5000)+"\nnext\n")
	b.put("many.txt", strings.Repeat("line\n", 2500))
	b.put("wide.txt", strings.Repeat(strings.Repeat("x", 999)+"\n", 100))

	tests := []struct {
		name   string
		in     args
		says   []string
		silent []string
	}{
		{"whole file", args{"filePath": "a.txt"}, []string{"     1| one\n     2| two\n     3| three\n"}, []string{"offset", "("}},
		{"absolute", args{"filePath": filepath.Join(b.dir, "a.txt")}, []string{"     1| one\n"}, nil},
		{"a part", args{"filePath": "a.txt", "offset": 2, "limit": 1}, []string{"     2| two\n", "lines 2-2 of 3", "offset 3"}, []string{"one", "three"}},
		{"the end", args{"filePath": "a.txt", "offset": 3}, []string{"     3| three\n", "lines 3-3, the end"}, []string{"read on"}},
		{"offset 0 is the first line", args{"filePath": "a.txt", "offset": 0, "limit": 3}, []string{"     1| one"}, []string{"read on"}},
		{"CRLF is shown as LF", args{"filePath": "crlf.txt"}, []string{"     1| one\n     2| two\n", "CRLF"}, []string{"\r"}},
		{"no byte order mark", args{"filePath": "bom.txt"}, []string{"     1| one\n"}, []string{"\ufeff"}},
		{"empty", args{"filePath": "empty"}, []string{"(the file is empty)"}, []string{"1|"}},
		{"single-byte encoding", args{"filePath": "latin1.txt"}, []string{"einem \uFFFD darin"}, nil},
		{"spaces and umlauts", args{"filePath": "ein Ordner/größe ändern.txt"}, []string{"     1| Maß\n"}, nil},
		{"long line", args{"filePath": "long.txt"}, []string{strings.Repeat("ü", 2000) + "… (cut after 2000 characters)\n", "     2| next"},
			[]string{strings.Repeat("ü", 2001)}},
		{"many lines", args{"filePath": "many.txt"}, []string{"  2000| line\n", "lines 1-2000 of 2500; read on with offset 2001"}, []string{"  2001|"}},
		{"many bytes", args{"filePath": "wide.txt"}, []string{"lines 1-50 of 100 (at most 50 KB at once); read on with offset 51"}, []string{"    51|"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := b.must("read", tt.in).Output
			says(t, out, tt.says...)
			silent(t, out, tt.silent...)
			if len(out) > readMaxBytes+300 {
				t.Errorf("%d bytes", len(out))
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	b := newBench(t)
	b.put("src/server.go", "x\n")
	b.put("src/service.go", "x\n")
	b.put("pic.png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	b.put("prog", "\x7fELF\x02\x01\x01\x00")
	b.put("wide.txt", "\xff\xfea\x00b\x00")
	b.put("noise", strings.Repeat("\xfe\xc1\xff", 100))
	b.put("late", strings.Repeat("text\n", 4000)+"\x00\n")
	b.put("short", "one\n")

	b.refused("read", args{"filePath": "src/servr.go"}, centurion.KindNotFound, "src/servr.go does not exist", "did you mean src/server.go or src/service.go?")
	b.refused("read", args{"filePath": "nowhere/x.go"}, centurion.KindNotFound, "there is no directory nowhere")
	b.refused("read", args{"filePath": "src"}, centurion.KindUsage, "src is a directory", `ls{"path": "src"}`)
	b.refused("read", args{"filePath": "pic.png"}, centurion.KindUsage, "pic.png is binary", "image/png", "16 B")
	b.refused("read", args{"filePath": "prog"}, centurion.KindUsage, "ELF")
	b.refused("read", args{"filePath": "wide.txt"}, centurion.KindUsage, "UTF-16")
	for head, want := range map[string]string{"MZ\x00": "a Windows executable", "SQLite format 3\x00": "a SQLite database", "\x89PNG\r\n\x1a\n": "image/png",
		"\xe4\xf6\xfc": "application/octet-stream"} { // letters of another encoding are no text that can be shown
		b.put("some", head)
		b.refused("read", args{"filePath": "some"}, centurion.KindUsage, want)
	}
	b.refused("read", args{"filePath": "noise"}, centurion.KindUsage, "binary")
	b.refused("read", args{"filePath": "late", "offset": 3990}, centurion.KindUsage, "binary")
	b.refused("read", args{"filePath": "short", "offset": 2}, centurion.KindUsage, "past the end", "has 1 line")
	b.refused("read", args{"filePath": "a\x00b"}, centurion.KindUsage, "NUL")
}

// A file of 10 MB and more is read from any line on without being loaded.
func TestReadLargeFile(t *testing.T) {
	b := newBench(t)
	var s strings.Builder
	for i := 1; s.Len() < 11<<20; i++ {
		fmt.Fprintf(&s, "line %d of a long log file with some more text in it\n", i)
	}
	b.put("big.log", s.String())
	total := strings.Count(s.String(), "\n")
	out := b.must("read", args{"filePath": "big.log", "offset": total - 1, "limit": 1}).Output
	says(t, out, fmt.Sprintf("| line %d of", total-1), fmt.Sprintf("of %d; read on with offset %d", total, total))

	b.must("edit", args{"filePath": "big.log", "oldString": "line 7 of", "newString": "LINE 7 of"})
	says(t, b.get("big.log"), "LINE 7 of")

	b.put("one-line.json", strings.Repeat("x", 12<<20))
	if out := b.must("read", args{"filePath": "one-line.json"}).Output; len(out) > 3000 {
		t.Errorf("a line of 12 MB gave %d bytes", len(out))
	}
}

func TestReadOutside(t *testing.T) {
	b := newBench(t)
	out := newBench(t)
	out.put("notes.txt", "outside\n")
	name := filepath.Join(out.dir, "notes.txt")
	if err := os.Chmod(name, 0o751); err != nil {
		t.Fatal(err)
	}

	b.refused("read", args{"filePath": name}, centurion.KindPermission, "external_directory")
	b.refused("read", args{"filePath": "../" + filepath.Base(out.dir) + "/notes.txt"}, centurion.KindPermission, "external_directory")
	wantList(t, "asks", b.gate.permissions()[:1], "external_directory "+filepath.ToSlash(name))
	wantList(t, "what always covers", b.gate.asked[0].Always, filepath.ToSlash(out.dir)+"/*")
	want(t, "directory", b.gate.asked[0].Metadata["parentDir"], any(filepath.ToSlash(out.dir)))

	b.gate.rules = []permission.Rule{{Permission: "external_directory", Pattern: "*", Action: permission.Allow}}
	says(t, b.must("read", args{"filePath": name}).Output, "1| outside")

	// What is read outside may be edited outside, if that is allowed, and by nobody who has not read it.
	r := b.must("edit", args{"filePath": name, "oldString": "outside", "newString": "changed"})
	want(t, "file", out.get("notes.txt"), "changed\n")
	if info, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o751 {
		t.Errorf("its mode has changed: %v, %v", info.Mode(), err)
	}
	want(t, "project files changed", len(r.Files), 0)
	b.other().refused("write", args{"filePath": name, "content": "x"}, centurion.KindUsage, "you have not read it")
	b.must("write", args{"filePath": filepath.Join(out.dir, "new/file.txt"), "content": "new\n"})
	want(t, "file", out.get("new/file.txt"), "new\n")
	if info, err := os.Stat(filepath.Join(out.dir, "new/file.txt")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o644 {
		t.Errorf("a new file: %v, %v", info, err)
	}
	b.gate.rules = append(b.gate.rules, permission.Rule{Permission: "edit", Pattern: "*", Action: permission.Deny})
	b.refused("write", args{"filePath": filepath.Join(out.dir, "other.txt"), "content": "x"}, centurion.KindPermission, "edit")
}

// S1: a link that leads outside needs permission for what is outside, whatever tool follows it.
func TestLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	b := newBench(t)
	out := newBench(t)
	out.put("secret.txt", "outside\n")
	b.put("real/a.txt", "inside\n")
	b.put(".env", "KEY=1\n")
	b.put(".git/config", "[core]\n")
	for link, to := range map[string]string{"out": out.dir, "in": "real", "notes.txt": ".env", "g": ".git", "leaf": filepath.Join(out.dir, "secret.txt")} {
		if err := os.Symlink(to, filepath.Join(b.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	b.refused("read", args{"filePath": "out/secret.txt"}, centurion.KindPermission, "external_directory")
	b.refused("read", args{"filePath": "leaf"}, centurion.KindPermission, "external_directory")
	b.refused("write", args{"filePath": "out/new.txt", "content": "x"}, centurion.KindPermission, "external_directory")
	b.refused("read", args{"filePath": "notes.txt"}, centurion.KindPermission, ".env")
	b.refused("write", args{"filePath": "g/hooks/pre-commit", "content": "x"}, centurion.KindPermission, "git")

	// Both names of a file are one file.
	b.must("read", args{"filePath": "in/a.txt"})
	r := b.must("edit", args{"filePath": "real/a.txt", "oldString": "inside", "newString": "changed"})
	wantList(t, "files", r.Files, "real/a.txt")
	b.must("edit", args{"filePath": "in/a.txt", "oldString": "changed", "newString": "again"})
	want(t, "file", b.get("real/a.txt"), "again\n")

	// A rule for either of its names holds.
	for _, name := range []string{"in/*", "real/*"} {
		b.gate.rules = []permission.Rule{{Permission: "edit", Pattern: name, Action: permission.Deny}}
		b.refused("edit", args{"filePath": "in/a.txt", "oldString": "again", "newString": "no"}, centurion.KindPermission, "edit")
	}
	want(t, "file", b.get("real/a.txt"), "again\n")
}

// S1: no tool waits at a pipe.
func TestSpecialFiles(t *testing.T) {
	b := newBench(t)
	pipe := filepath.Join(b.dir, "pipe")
	if !makePipe(t, pipe) {
		t.Skip("no named pipes")
	}
	b.refused("read", args{"filePath": "pipe"}, centurion.KindUsage, "a pipe") // and does not wait for a writer
	b.refused("write", args{"filePath": "pipe", "content": "x"}, centurion.KindUsage, "a pipe")
	b.refused("grep", args{"pattern": "x", "path": "pipe"}, centurion.KindUsage, "a pipe")
	b.put("a.txt", "x\n")
	says(t, b.must("grep", args{"pattern": "x"}).Output, "1 match in 1 file")
}
