package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"centurion"
	"centurion/permission"
)

func TestWrite(t *testing.T) {
	b := newBench(t)
	r := b.must("write", args{"filePath": "neu/Größe 1.txt", "content": "a\nb\n"})
	want(t, "output", r.Output, "created neu/Größe 1.txt, 2 lines")
	want(t, "file", b.get("neu/Größe 1.txt"), "a\nb\n")
	wantList(t, "files", r.Files, "neu/Größe 1.txt")

	// What the session wrote itself it knows.
	r = b.must("write", args{"filePath": "neu/Größe 1.txt", "content": "a\nc\n"})
	want(t, "output", r.Output, "replaced neu/Größe 1.txt, 2 lines")
	says(t, r.Metadata["diff"].(string), "-b\n+c\n")
	b.refused("write", args{"filePath": "neu/Größe 1.txt", "content": "a\nc\n"}, centurion.KindUsage, "exactly this content")

	b.put("crlf.txt", "\xef\xbb\xbfa\r\nb\r\n")
	b.must("read", args{"filePath": "crlf.txt"})
	r = b.must("write", args{"filePath": "crlf.txt", "content": "a\nc\n"})
	want(t, "file", b.get("crlf.txt"), "\xef\xbb\xbfa\r\nc\r\n")
	says(t, r.Output, "CRLF line ends and byte order mark kept")
	b.put("mixed.txt", "a\r\nb\n") // of mixed line ends none is kept
	b.must("read", args{"filePath": "mixed.txt"})
	b.must("write", args{"filePath": "mixed.txt", "content": "a\nc\n"})
	want(t, "file", b.get("mixed.txt"), "a\nc\n")

	r = b.must("write", args{"filePath": "empty.txt", "content": ""})
	says(t, r.Output, "0 lines")
}

// A file that this session has not read, or that has changed since, is not replaced.
func TestStaleFile(t *testing.T) {
	change := func(b *bench) { b.put("a.txt", "somebody else\n") }
	edit := func(b *bench) (string, args) {
		return "edit", args{"filePath": "a.txt", "oldString": "mine", "newString": "new", "replaceAll": true}
	}
	write := func(b *bench) (string, args) { return "write", args{"filePath": "a.txt", "content": "new\n"} }
	for name, call := range map[string]func(*bench) (string, args){"edit": edit, "write": write} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.put("a.txt", "mine\n")
			tool, in := call(b)
			b.refused(tool, in, centurion.KindUsage, "you have not read it", "read it first")
			b.must("read", args{"filePath": "a.txt", "limit": 1})
			b.other().refused(tool, in, centurion.KindUsage, "you have not read it")
			change(b)
			b.refused(tool, in, centurion.KindConflict, "a.txt has changed since you read it; read it again")
			want(t, "file", b.get("a.txt"), "somebody else\n")
			b.put("a.txt", "mine\n") // the same content again is the same version
			b.must(tool, in)

			// A change while a person is asked is noticed as well.
			b.put("b.txt", "mine\n")
			in["filePath"] = "b.txt"
			b.must("read", args{"filePath": "b.txt"})
			b.gate.then = func(a Access) { b.put("b.txt", "meanwhile\n") }
			b.refused(tool, in, centurion.KindConflict, "b.txt has changed since you read it")
			want(t, "file", b.get("b.txt"), "meanwhile\n")
		})
	}
	t.Run("deleted meanwhile", func(t *testing.T) {
		b := newBench(t)
		b.put("a.txt", "mine\n")
		b.must("read", args{"filePath": "a.txt"})
		if err := os.Remove(filepath.Join(b.dir, "a.txt")); err != nil {
			t.Fatal(err)
		}
		b.refused("write", args{"filePath": "a.txt", "content": "x"}, centurion.KindConflict, "a.txt was deleted since you read it")
		if _, err := os.Stat(filepath.Join(b.dir, "a.txt")); err == nil {
			t.Error("it is there again")
		}
	})
	t.Run("created meanwhile", func(t *testing.T) {
		b := newBench(t)
		b.refused("read", args{"filePath": "a.txt"}, centurion.KindNotFound)
		b.put("a.txt", "somebody else\n")
		b.refused("write", args{"filePath": "a.txt", "content": "x"}, centurion.KindConflict, "created by someone else")
		b.gate.then = func(a Access) {
			if a.Permission == "edit" {
				b.put("c.txt", "somebody else\n")
			}
		}
		b.refused("write", args{"filePath": "c.txt", "content": "x"}, centurion.KindConflict, "has changed")
		want(t, "file", b.get("c.txt"), "somebody else\n")
		b.gate.then = func(a Access) {
			if a.Permission == "edit" {
				b.put("lock", "")
			}
		}
		b.refused("write", args{"filePath": "lock", "content": "x"}, centurion.KindConflict, "has changed")
		want(t, "a file that is empty", b.get("lock"), "")
	})
}

// An exact edit loses nothing, so it needs no read, and a change elsewhere in the file does not matter to it. It does not make the
// file known: what would lose something still needs a read.
func TestExactEditNeedsNoRead(t *testing.T) {
	b := newBench(t)
	b.put("a.txt", "mine\nother\n")
	edit := func(from, to string) args { return args{"filePath": "a.txt", "oldString": from, "newString": to} }
	b.must("edit", edit("mine", "new"))
	want(t, "never read", b.get("a.txt"), "new\nother\n")
	write := args{"filePath": "a.txt", "content": "x\n"}
	b.refused("write", write, centurion.KindUsage, "you have not read it")
	b.refused("edit", args{"filePath": "a.txt", "oldString": "e", "newString": "E", "replaceAll": true}, centurion.KindUsage, "you have not read it")
	b.refused("edit", edit("e", "E"), centurion.KindUsage, "you have not read it", "read it first")
	b.refused("edit", edit("gone", "x"), centurion.KindUsage, "you have not read it")
	later := b.other()
	r := b.must("edit", edit("new", "newer"))
	later.Seen.Recall(centurion.Part{State: &centurion.ToolState{Status: centurion.ToolCompleted, Metadata: map[string]any{knows: r.Metadata[knows]}}})
	later.refused("write", write, centurion.KindUsage, "you have not read it")

	b.must("read", args{"filePath": "a.txt"})
	b.put("a.txt", "newer\ntheirs\n")
	b.must("edit", edit("newer", "newest"))
	want(t, "changed since", b.get("a.txt"), "newest\ntheirs\n")
	b.refused("edit", edit("other", "x"), centurion.KindConflict, "a.txt has changed since you read it")
	b.refused("write", write, centurion.KindConflict, "a.txt has changed since you read it")
	b.must("read", args{"filePath": "a.txt"})
	b.must("edit", edit("newest", "mine"))
	b.must("write", write)
}

func TestEdit(t *testing.T) {
	tests := []struct {
		name, before, from, to string
		all                    bool
		after                  string
	}{
		{"once", "a\nb\nc\n", "b", "B", false, "a\nB\nc\n"},
		{"several lines", "a\nb\nc\n", "a\nb\n", "x\n", false, "x\nc\n"},
		{"all", "x y x\n", "x", "z", true, "z y z\n"},
		{"all, one beside the other", "aaaaa\n", "aa", "b", true, "bba\n"},
		{"delete", "a\nb\nc\n", "b\n", "", false, "a\nc\n"},
		{"CRLF kept", "a\r\nb\r\nc\r\n", "a\nb\n", "a\nx\ny\n", false, "a\r\nx\r\ny\r\nc\r\n"},
		{"CRLF within a line", "a\r\nb\r\n", "b", "b\nc", false, "a\r\nb\r\nc\r\n"},
		{"CRLF at the edges", "a\r\nb\r\nc", "\nb\n", "\n", false, "a\r\nc"},
		{"half of them CRLF", "a\r\nb\nc\n", "a\nb\n", "x\ny\n", false, "x\r\ny\r\nc\n"},
		{"CRLF written by the model", "a\r\nb\r\n", "a\r\nb", "x\r\ny", false, "x\r\ny\r\n"},
		{"mixed line ends elsewhere stay", "a\nb\r\nc\nd\r\n", "c", "C", false, "a\nb\r\nC\nd\r\n"},
		{"lone CR stays", "a\rb\nc\n", "c", "d", false, "a\rb\nd\n"},
		{"byte order mark kept", "\xef\xbb\xbfa\nb\n", "a\n", "x\n", false, "\xef\xbb\xbfx\nb\n"},
		{"no final newline", "a\nb", "b", "c", false, "a\nc"},
		{"bytes that are no UTF-8 stay", "der gro\xdfe Rest\nx\n", "x", "y", false, "der gro\xdfe Rest\ny\n"},
		{"no regular expression", "a.b\naxb\n", "a.b", "$1", false, "$1\naxb\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.put("f", tt.before)
			b.must("read", args{"filePath": "f"})
			r := b.must("edit", args{"filePath": "f", "oldString": tt.from, "newString": tt.to, "replaceAll": tt.all})
			if got := b.get("f"); got != tt.after {
				t.Errorf("got %q, want %q", got, tt.after)
			}
			wantList(t, "files", r.Files, "f")
			says(t, r.Output, "edited f", "@@")
			want(t, "places", strings.Contains(r.Output, "edited f, 2 places\n"), tt.all)
			silent(t, r.Output, "\r")
		})
	}
}

func TestEditRefuses(t *testing.T) {
	b := newBench(t)
	b.put("f.go", "func main() {\n\tx := 1\n\ty := 1\n}\n\nfunc other() {\n\tx := 1\n}\n")
	b.put("empty", "")
	b.put("dir/x", "")
	b.must("read", args{"filePath": "f.go"})
	b.must("read", args{"filePath": "empty"})
	edit := func(from, to string) args { return args{"filePath": "f.go", "oldString": from, "newString": to} }

	b.refused("edit", edit("x := 1", "x := 2"), centurion.KindUsage, "2 times", "in lines 2, 7", "replaceAll")
	b.refused("edit", edit("x", "x"), centurion.KindUsage, "nothing would change")
	b.refused("edit", edit("    x := 1\n    y := 1", "z"), centurion.KindUsage, "differs only in whitespace from lines 2-3", "     2| \tx := 1\n     3| \ty := 1\ncopy the spaces")
	b.refused("edit", edit("     2| \tx := 1\n     3| \ty := 1", "z"), centurion.KindUsage, "line numbers")
	b.refused("edit", edit("func othr() {\n\tx := 1", "z"), centurion.KindUsage, "the nearest text", "     7| \tx := 1")
	b.refused("edit", edit("func othr() {", "z"), centurion.KindUsage, "is in line 6:\n     6| func other() {\ncopy that text exactly")
	b.refused("edit", edit("completely different words", "z"), centurion.KindUsage, "nothing in it is like")
	b.refused("edit", edit("", "z"), centurion.KindUsage, `"oldString" is empty`)
	b.refused("edit", args{"filePath": "empty", "oldString": "a", "newString": "b"}, centurion.KindUsage, "empty", "use write")
	b.refused("edit", args{"filePath": "g.go", "oldString": "a", "newString": "b"}, centurion.KindNotFound, "did you mean f.go?")
	b.refused("edit", args{"filePath": "dir", "oldString": "a", "newString": "b"}, centurion.KindUsage, "is a directory")
	want(t, "file", strings.Count(b.get("f.go"), "\n"), 8)
}

func TestProtected(t *testing.T) {
	b := newBench(t)
	b.put(".opencode/todo.md", "# x\n")
	b.put(".git/config", "x\n")
	for _, name := range []string{".opencode/todo.md", ".opencode/new.md", "./.opencode/../.opencode/x", ".OpenCode/x"} {
		b.refused("write", args{"filePath": name, "content": "y"}, centurion.KindPermission, "update_todo")
	}
	b.refused("write", args{"filePath": ".git/hooks/pre-commit", "content": "y"}, centurion.KindPermission, "git")
	b.must("read", args{"filePath": ".opencode/todo.md"})
	b.refused("edit", args{"filePath": ".opencode/todo.md", "oldString": "x", "newString": "y"}, centurion.KindPermission, "update_todo")
	want(t, "file", b.get(".opencode/todo.md"), "# x\n")
}

func TestEditAsks(t *testing.T) {
	b := newBench(t)
	b.put("a.txt", "a\n")
	b.must("read", args{"filePath": "./a.txt"})
	b.must("edit", args{"filePath": b.dir + "/a.txt", "oldString": "a", "newString": "b"})
	wantList(t, "asks", b.gate.permissions(), "read a.txt", "edit a.txt")
	says(t, fmt.Sprint(b.gate.asked[1].Metadata["diff"]), "-a\n+b\n")

	b.gate.rules = []permission.Rule{{Permission: "edit", Pattern: "*.txt", Action: permission.Deny}}
	b.refused("edit", args{"filePath": "a.txt", "oldString": "b", "newString": "c"}, centurion.KindPermission, `"*.txt": deny`)
	b.refused("write", args{"filePath": "new.txt", "content": "c"}, centurion.KindPermission, `"*.txt": deny`)
	want(t, "file", b.get("a.txt"), "b\n")
}

// Twenty sessions that edit one file at the same time lose none of their edits: each goes in, or is told to read again.
func TestConcurrentEdits(t *testing.T) {
	b := newBench(t)
	var s strings.Builder
	for i := range 20 {
		fmt.Fprintf(&s, "line <%d> open\n", i)
	}
	b.put("f", s.String())
	var wg sync.WaitGroup
	for i := range 20 {
		session := b.other()
		wg.Go(func() {
			for range 500 {
				if _, err := session.call("read", args{"filePath": "f"}); err != nil {
					t.Error(err)
					return
				}
				_, err := session.call("edit", args{"filePath": "f", "oldString": fmt.Sprintf("<%d> open", i), "newString": fmt.Sprintf("<%d> done", i)})
				if err == nil {
					return
				}
				if centurion.KindOf(err) != centurion.KindConflict {
					t.Error(err)
					return
				}
			}
			t.Errorf("session %d never got its edit in", i)
		})
	}
	wg.Wait()
	want(t, "edits", strings.Count(b.get("f"), "done"), 20)
}

func TestDiffIsShort(t *testing.T) {
	long := diff("f", strings.Repeat("a\n", 5000), strings.Repeat("b\n", 5000))
	if n := strings.Count(long, "\n"); n > diffMaxLines+1 {
		t.Errorf("%d lines", n)
	}
	says(t, long, "lines more")
	says(t, diff("f", strings.Repeat("a\n", 1<<20), "b\n"), "1048576 lines before, 1 line now")
}

// Whatever is replaced, the bytes around it stay as they are.
func FuzzSubstitute(f *testing.F) {
	f.Add("a\r\nb\nc", "b\n", "x\ny")
	f.Add("\xef\xbb\xbf\r\n\r\n", "\n\n", "\n")
	f.Add("\r\r\n\n", "\r", "z")
	f.Fuzz(func(t *testing.T, text, from, to string) {
		if lf(from) == "" {
			return
		}
		data := []byte(text)
		out, n, err := substitute("f", data, editInput{OldString: from, NewString: to})
		if err != nil || n != 1 {
			return
		}
		head, tail := 0, 0
		for head < min(len(data), len(out)) && data[head] == out[head] {
			head++
		}
		for tail < min(len(data), len(out))-head && data[len(data)-1-tail] == out[len(out)-1-tail] {
			tail++
		}
		if gone := lf(string(data[head : len(data)-tail])); len(gone) > len(lf(from))+1 {
			t.Fatalf("%q with %q for %q gave %q: %q went, too", text, to, from, out, gone)
		}
	})
}

func BenchmarkEdit(b *testing.B) {
	data := []byte(strings.Repeat("a line of an ordinary source file, of ordinary length\n", 2000) + "needle\n")
	for b.Loop() {
		if _, _, err := substitute("f", data, editInput{OldString: "needle", NewString: "pin"}); err != nil {
			b.Fatal(err)
		}
	}
}

// New content is written as the old was: only where the old did so throughout, and the new has anything to change.
func TestLikeBefore(t *testing.T) {
	mark := string(bom)
	for _, c := range []struct{ old, content, want, kept string }{
		{"a\r\nb\r\n", "c\nd\n", "c\r\nd\r\n", "CRLF line ends"},
		{"a\r\nb\r\n", "c", "c", ""},
		{"a\r\nb\r\n", "c\r\nd\n", "c\r\nd\n", ""},
		{"a\r\nb\n", "c\n", "c\n", ""},
		{"a\n", "c\n", "c\n", ""},
		{mark + "a\n", "c\n", mark + "c\n", "byte order mark"},
		{mark + "a\n", mark + "c\n", mark + "c\n", ""},
	} {
		if data, kept := likeBefore([]byte(c.old), []byte(c.content)); string(data) != c.want || !strings.Contains(kept, c.kept) || (kept == "") != (c.kept == "") {
			t.Errorf("%q after %q: %q, kept %q", c.content, c.old, data, kept)
		}
	}
}
