package tools

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/permission"
)

func TestLs(t *testing.T) {
	b := newBench(t)
	b.put("main.go", strings.Repeat("x", 2048))
	b.put("src/ein Ordner/größe.go", "x")
	b.put("src/a/b/c/deep.go", "x")
	b.put(".gitignore", "node_modules/\n*.log\n")
	b.put("node_modules/x/index.js", "x")
	b.put("debug.log", "x")
	b.put(".git/config", "x")
	out := b.must("ls", args{}).Output
	says(t, out, "main.go  2 KB", "src/\n", "  größe.go  1 B", "ein Ordner/\n", "b/  (1 inside)")
	silent(t, out, "deep.go", "node_modules", "debug.log", ".git/", "config")
	b.put("logs/a.log", "x")
	says(t, b.must("ls", args{"path": "logs"}).Output, "a.log") // all of it is ignored, so it was named on purpose
	says(t, b.must("ls", args{"path": "src/a/b"}).Output, "src/a/b/\n", "deep.go")
	says(t, b.must("ls", args{"path": filepath.Join(b.dir, "src", "a", "b")}).Output, "src/a/b/\n", "deep.go")
	says(t, b.must("ls", args{"path": "node_modules"}).Output, "index.js") // named on purpose
	b.refused("ls", args{"path": "main.go"}, centurion.KindUsage, "main.go is not a directory", "read{")
	b.refused("ls", args{"path": "scr"}, centurion.KindNotFound, "did you mean src?")
	b.refused("ls", args{"path": ".."}, centurion.KindPermission, "external_directory")
	out = newBench(t).must("ls", args{}).Output
	says(t, out, "empty")
	silent(t, out, "not shown")
}

// One large directory does not hide the others.
func TestLsLarge(t *testing.T) {
	b := newBench(t)
	for i := range 300 {
		b.put(fmt.Sprintf("a-large/f%03d", i), "")
	}
	for i := range 10 {
		b.put(fmt.Sprintf("z/f%03d", i), "")
	}
	r := b.must("ls", args{})
	says(t, r.Output, "a-large/  (300 inside)", "z/\n", "f009", "(300 not shown")
	if n := strings.Count(r.Output, "\n"); n > lsEntries+5 {
		t.Errorf("%d lines", n)
	}
	r = b.must("ls", args{"path": "a-large"})
	says(t, r.Output, "f199", "… 100 more", "(100 not shown")
	silent(t, r.Output, "f200")
}

// ORCH-55
func TestGlob(t *testing.T) {
	b := newBench(t)
	names := []string{"a.go", "src/x/c_test.go", "src/b.go", "docs/größe.txt", "docs/ein Text.md", ".github/ci.yml"} // the newest first
	for i, n := range names {
		b.put(n, "x")
		b.age(n, time.Duration(i+1)*time.Hour)
	}
	b.put(".gitignore", "gen/\n")
	b.put("gen/d.go", "x")
	b.age(".gitignore", 100*time.Hour)
	tests := []struct {
		in   args
		want []string
	}{
		{args{"pattern": "*.go"}, []string{"a.go", "src/x/c_test.go", "src/b.go"}},
		{args{"pattern": "**/*.go"}, []string{"a.go", "src/x/c_test.go", "src/b.go"}},
		{args{"pattern": "./*.go"}, []string{"a.go"}},
		{args{"pattern": "src/**/*_test.go"}, []string{"src/x/c_test.go"}},
		{args{"pattern": "src/"}, []string{"src/x/c_test.go", "src/b.go"}},
		{args{"pattern": "docs/*.{md,txt}"}, []string{"docs/größe.txt", "docs/ein Text.md"}},
		{args{"pattern": "*.go", "path": "src"}, []string{"src/x/c_test.go", "src/b.go"}},
		{args{"pattern": filepath.ToSlash(b.dir) + "/src/*.go"}, []string{"src/b.go"}},
		{args{"pattern": "*.yml"}, []string{".github/ci.yml"}},
	}
	for _, tt := range tests {
		wantList(t, fmt.Sprint(tt.in), strings.Split(strings.TrimSpace(b.must("glob", tt.in).Output), "\n"), tt.want...)
	}
	says(t, b.must("glob", args{"pattern": "*.rs"}).Output, "no file matches")
	b.refused("glob", args{"pattern": "{a,b"}, centurion.KindUsage, "is not a pattern")
	b.refused("glob", args{"pattern": "/*"}, centurion.KindPermission, "external_directory")

	for i := range 120 {
		if i == globMatches {
			if r := b.must("glob", args{"pattern": "many/*"}); strings.Contains(r.Output, "newest") || r.Metadata["count"] != globMatches || r.Metadata["truncated"] != false {
				t.Errorf("all that may be shown: %v, %s", r.Metadata, r.Output)
			}
		}
		b.put(fmt.Sprintf("many/%03d.txt", i), "")
	}
	says(t, b.must("glob", args{"pattern": "many/*"}).Output, "(the newest 100 of 120;")
}

// ORCH-54
func TestGrep(t *testing.T) {
	b := newBench(t)
	b.put("a.go", "package a\n\nfunc Limit() {}\nfunc other() {}\n")
	b.put("src/ein Ordner/größe.go", "package b\r\nfunc Limit(n int) {}\r\n")
	b.put("-e", "func Limit dash\n")
	b.put("x.txt", "\xef\xbb\xbffunc Limit text\n")
	b.put("bin", "func Limit\x00\n")
	b.put(".gitignore", "gen/\n")
	b.put("gen/c.go", "func Limit\n")
	b.put(".env", "func Limit\n")
	b.put("deny/d.go", "func Limit\n")
	b.put(".hidden/e.go", "func Limit hidden\n")
	b.put("long.js", strings.Repeat("y", 1000)+"needle"+strings.Repeat("z", 1000)+"\n")
	b.put("umlaut.txt", "äb1\n")
	b.gate.rules = []permission.Rule{{Permission: "read", Pattern: "deny/*", Action: permission.Deny}}
	tests := []struct {
		name string
		in   grepInput
		want string
	}{
		{"by file, with numbers", grepInput{Pattern: `^func Limit`}, `-e
     1| func Limit dash

.hidden/e.go
     1| func Limit hidden

a.go
     3| func Limit() {}

src/ein Ordner/größe.go
     2| func Limit(n int) {}

x.txt
     1| func Limit text

(5 matches in 5 files)
(not searched, because such files usually hold secrets: 1 file; name one in path to ask for it)
`},
		{"end of line before CRLF", grepInput{Pattern: `int\) \{\}$`}, "src/ein Ordner/größe.go\n     2| func Limit(n int) {}\n\n(1 match in 1 file)\n(not searched, because such files usually hold secrets: 1 file; name one in path to ask for it)\n"},
		{"include", grepInput{Pattern: `func`, Include: "*.txt"}, "x.txt\n     1| func Limit text\n\n(1 match in 1 file)\n"},
		{"path", grepInput{Pattern: `package`, Path: "src"}, "src/ein Ordner/größe.go\n     1| package b\n\n(1 match in 1 file)\n"},
		{"one file", grepInput{Pattern: `other`, Path: "a.go"}, "a.go\n     4| func other() {}\n\n(1 match in 1 file)\n"},
		{"an ignored directory by name", grepInput{Pattern: `Limit`, Path: "gen"}, "gen/c.go\n     1| func Limit\n\n(1 match in 1 file)\n"},
		{"letters as Go has them", grepInput{Pattern: `\bb\d`, Include: "umlaut.txt"}, "umlaut.txt\n     1| äb1\n\n(1 match in 1 file)\n"},
		{"what only Go knows", grepInput{Pattern: `\Qother()\E`, Include: "*.go"}, "a.go\n     4| func other() {}\n\n(1 match in 1 file)\n"},
		{"more than a line", grepInput{Pattern: `Limit.*\n`, Include: "*.txt"}, "no line matches in 2 files; a pattern is matched against one line at a time\n"},
		{"a pattern that looks like a flag", grepInput{Pattern: `--dash`, Include: "*.txt"}, "no line matches in 2 files\n"},
		{"at the beginning of a long line", grepInput{Pattern: `^yy`, Include: "*.js"}, "long.js\n     1| " + strings.Repeat("y", 300) + "…\n\n(1 match in 1 file)\n"},
		{"around the match in a long line", grepInput{Pattern: `needle`, Include: "*.js"},
			"long.js\n     1| …" + strings.Repeat("y", 100) + "needle" + strings.Repeat("z", 193) + "…\n\n(1 match in 1 file)\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := runGrep(t.Context(), b.Call, tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if r.Output != tt.want {
				t.Errorf("got\n%s\nwant\n%s", r.Output, tt.want)
			}
		})
	}
	b.refused("grep", args{"pattern": "foo("}, centurion.KindUsage, "not a regular expression", `put \ before`)
	b.refused("grep", args{"pattern": "KEY", "path": ".env"}, centurion.KindPermission)
	b.refused("grep", args{"pattern": "Limit", "path": "deny/d.go"}, centurion.KindPermission, "deny")
	b.refused("grep", args{"pattern": "x", "path": "a.og"}, centurion.KindNotFound, "did you mean a.go?")
	b.refused("grep", args{"pattern": "x", "path": "/"}, centurion.KindPermission, "external_directory")
}

// A file whose directory makes it a secret stays one when the search begins in that directory.
func TestGrepBesideSecrets(t *testing.T) {
	b := newBench(t)
	b.put("x/.ssh/config", "Host limit\n")
	for _, path := range []string{"", "x", "x/.ssh"} {
		r, err := runGrep(t.Context(), b.Call, grepInput{Pattern: "limit", Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(r.Output, "usually hold secrets: 1 file") || strings.Contains(r.Output, "Host") {
			t.Errorf("in %q: %s", path, r.Output)
		}
	}
}

func TestGrepLimit(t *testing.T) {
	b := newBench(t)
	for i := range 150 {
		b.put(fmt.Sprintf("f%03d.txt", i), "match\nmatch\n")
	}
	b.put("g.txt", strings.Repeat("hit\n", 500))
	b.put("h.txt", strings.Repeat("hundred\n", 100))
	for pattern, said := range map[string]string{"match": "the first 100 matches", "hit": "the first 100 matches", "hundred": "(100 matches in 1 file)"} {
		r, err := runGrep(t.Context(), b.Call, grepInput{Pattern: pattern})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "matches", r.Metadata["matches"], any(100))
		want(t, "truncated", r.Metadata["truncated"], any(pattern != "hundred"))
		want(t, "lines", strings.Count(r.Output, "| "), 100)
		says(t, r.Output, said)
	}
	r, err := runGrep(t.Context(), b.Call, grepInput{Pattern: "match"})
	if err != nil {
		t.Fatal(err)
	}
	says(t, r.Output, "f000.txt\n", "f049.txt\n")
	silent(t, r.Output, "f050.txt")
}

// Outside the project all but .git is looked at, also what would be ignored.
func TestSearchOutside(t *testing.T) {
	b, out := newBench(t), newBench(t)
	b.gate.rules = []permission.Rule{{Permission: "external_directory", Pattern: "*", Action: permission.Allow}}
	out.put("sub/a/b/notes.txt", "a limit\n")
	out.put(".gitignore", "*.log\n")
	out.put("x.log", "no limit\n")
	out.put(".git/config", "limit\n")
	r := b.must("ls", args{"path": out.dir})
	says(t, r.Output, "x.log  9 B", ".gitignore  6 B", "sub/\n", "a/\n", "b/  (1 inside)")
	silent(t, r.Output, "config", "notes")
	want(t, "glob", b.must("glob", args{"path": out.dir, "pattern": "**/*.txt"}).Output, filepath.ToSlash(out.dir)+"/sub/a/b/notes.txt\n")
	r = b.must("grep", args{"path": out.dir, "pattern": "limit"})
	says(t, r.Output, "/sub/a/b/notes.txt\n     1| a limit", "/x.log\n     1| no limit", "(2 matches in 2 files)")
	b.refused("grep", args{"path": filepath.Join(out.dir, "nowhere"), "pattern": "x"}, centurion.KindNotFound, "nowhere does not exist")
}

func BenchmarkGrep(b *testing.B) {
	bn := newBench(b)
	for i := range 200 {
		bn.put(fmt.Sprintf("d%d/f%d.go", i%10, i), strings.Repeat("an ordinary line of an ordinary file\n", 300)+"needle\n")
	}
	for b.Loop() {
		if _, err := runGrep(b.Context(), bn.Call, grepInput{Pattern: "needl[e]"}); err != nil {
			b.Fatal(err)
		}
	}
}

// The title of a script is its first line, and shows once that there is more.
func TestFirstLine(t *testing.T) {
	long := strings.Repeat("x", 100)
	for script, want := range map[string]string{"": "", " a \n": "a", "a\nb": "a …", "a\n\n": "a", long: headRunes(long, 80), long + "\nb": headRunes(long, 80)} {
		if got := firstLine(script); got != want {
			t.Errorf("%q: %q, want %q", script, got, want)
		}
	}
}
