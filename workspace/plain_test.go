package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/workspace/todo"
)

// What is made has the usual modes, less the umask, wherever it is made.
func TestModesOfWhatIsMade(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	w := project(t)
	at := func(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }
	if err := errors.Join(os.Mkdir(at("dir"), 0o755), os.WriteFile(at("file"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	_, _, err := w.Context().Note(t.Context(), "a", nil)
	_, rerr := w.Context().Replace(t.Context(), "b", nil)
	if err := errors.Join(err, rerr, w.WriteFile("n/m/a.txt", nil), w.AppendJSON("l/b.jsonl"), operations["edit"](w, "")); err != nil {
		t.Fatal(err)
	}
	mode := func(name string) fs.FileMode {
		fi, err := os.Stat(at(name))
		if err != nil {
			t.Fatal(err)
		}
		return fi.Mode()
	}
	for name, like := range map[string]string{"n": "dir", "n/m": "dir", "n/m/a.txt": "file", "l": "dir", "l/b.jsonl": "file", ".opencode": "dir",
		".opencode/archive": "dir", ".opencode/todo.md": "file", ".opencode/context.md": "file"} {
		if mode(name) != mode(like) {
			t.Errorf("%s has the mode %v, not %v", name, mode(name), mode(like))
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	w := project(t, "d/b.md=", "d/a.md=x", "d/c.txt=")
	if err := os.Mkdir(filepath.Join(w.dir, "e"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"d": `"" "" dir`, "none": `"" "" `, "d/a.md": fmt.Sprintf(`"x" %q file`, VersionOf([]byte("x"))), "d/b.md": fmt.Sprintf(`"" %q file`, VersionOf(nil)),
	} {
		f, _ := w.Read(name, 1)
		what := map[bool]string{true: "dir"}[f.Mode.IsDir()] + map[bool]string{true: "file"}[f.Mode.IsRegular() && f.Version != ""]
		if got := fmt.Sprintf("%q %q %s", f.Data, f.Version, what); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for _, tt := range []struct {
		dir, ending string
		want        []string
	}{
		{"d", "", []string{"a.md", "b.md", "c.txt"}}, {"d", ".md", []string{"a.md", "b.md"}}, {"e", "", []string{}}, {"d", ".go", []string{}}, {"none", "", nil},
	} {
		if got, err := w.Names(tt.dir, tt.ending); err != nil || !slices.Equal(got, tt.want) || (got == nil) != (tt.want == nil) {
			t.Errorf("%s*%s: %#v, %v; want %#v", tt.dir, tt.ending, got, err, tt.want)
		}
	}
}

func TestOpenSays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "project"), 0o755), os.WriteFile(filepath.Join(dir, "file"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	w := &Workspace{dir: dir}
	for name, want := range map[string]string{
		"zzzzzzzz": "not_found: open project: directory $DIR/zzzzzzzz does not exist | make it first, or name another directory with --dir",
		"projekt":  "not_found: open project: directory $DIR/projekt does not exist | did you mean $DIR/project?",
		"file":     "usage: open project: $DIR/file is not a directory | name the project's directory, not a file in it",
		"file/x":   "usage: open project: directory $DIR/file/x: not a directory | check the path, or name another directory with --dir",
		"a\x00":    "usage: open project: the directory's name holds a NUL character | ",
	} {
		if runtime.GOOS == "windows" {
			t.Skip("other texts of the system")
		}
		_, err := Open(filepath.Join(dir, name))
		wantSaid(t, w, name, err, want)
	}
}

// The rules of a .gitignore, where the careless reading of one would differ.
func TestRulesOfIgnore(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ rules, want string }{
		{"", "'q ' a/b/x a/x d/x q x"},
		{"\ufeffx\n", "'q ' q"},
		{"q  \r\n", "'q ' a/b/x a/x d/x x"},
		{"q\\ \n", "a/b/x a/x d/x q x"},
		{"#x\n \n/x\n", "'q ' a/b/x a/x d/x q"},
		{"a/**\n", "'q ' d/x q x"},
		{"**/b/\n", "'q ' a/x d/x q x"},
		{"a/*\n!a/x\n", "'q ' a/x d/x q x"},
		{"[!q]\n!d\n", "'q ' q"},
		{"x**\n", "'q ' q"},
		{"**/**/x\n", "'q ' q"},
		{"a/**/x\n", "'q ' d/x q x"},
		{"x/\n", "'q ' a/b/x a/x d/x q x"},
		{"x\n" + strings.Repeat("#", maxIgnoreFile-2), "'q ' q"},
		{"x\n" + strings.Repeat("#", maxIgnoreFile-1), "'q ' a/b/x a/x d/x q x"},
	} {
		w := project(t, "q=", "q =", "x=", "a/x=", "a/b/x=", "d/x=", ".gitignore="+tt.rules)
		var got []string
		for e, err := range w.Walk(t.Context(), WalkOptions{}) {
			if err != nil {
				t.Error(err)
			}
			if e.IsFile() {
				got = append(got, strings.Replace(e.Path, "q ", "'q '", 1))
			}
		}
		slices.Sort(got)
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%.20q leaves %s, want %s", tt.rules, s, tt.want)
		}
	}
}

// A directory that was named on purpose shows what is ignored in it, but only if there is nothing else.
func TestWalkNamed(t *testing.T) {
	t.Parallel()
	w := project(t, ".gitignore=all/\n*.log\n", "all/a=", "all/s/b=", "some/x.log=", "some/y=", "dirs/x.log=", "dirs/s/z.log=", "top.log=")
	if err := os.Mkdir(filepath.Join(w.dir, "none"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		opts WalkOptions
		want string
	}{
		{WalkOptions{Dir: "all", Named: true}, "all/a all/s all/s/b"},
		{WalkOptions{Dir: "some", Named: true}, "some/y"},
		{WalkOptions{Dir: "some/../dirs", Named: true}, "dirs/s"},
		{WalkOptions{Dir: "dirs/s", Named: true, MaxDepth: 1}, "dirs/s/z.log"},
		{WalkOptions{Dir: "dirs"}, "dirs/s"},
		{WalkOptions{Dir: "none", Named: true}, ""},
	} {
		var got []string
		for e, err := range w.Walk(t.Context(), tt.opts) {
			if err != nil {
				t.Error(err)
			}
			got = append(got, e.Path)
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%+v: %s, want %s", tt.opts, s, tt.want)
		}
	}
	for e, err := range w.Walk(t.Context(), WalkOptions{Dir: "all", Named: true}) {
		if err != nil || e.Path != "all/a" {
			t.Errorf("%s, %v", e.Path, err)
		}
		break
	}
}

// A walk ends where its reader does, however deep that is, and at the end of its context, which it tells once. It shows neither a git
// directory nor the files that exist only during an edit.
func TestWalkEnds(t *testing.T) {
	t.Parallel()
	w := project(t, "a/b/c=", "a/b/d=", "a/e=", "f=", "g/.GIT/x=", "g/"+lockName+"=", ".opencode/"+lockName+"=", ".opencode/"+tempName+"=", ".opencode/x=")
	all := []string{".opencode", ".opencode/x", "a", "a/b", "a/b/c", "a/b/d", "a/e", "f", "g", "g/" + lockName}
	for n, last := range all {
		for _, cancelled := range []bool{false, true} {
			ctx, cancel := context.WithCancelCause(t.Context())
			var got, errs []string
			for e, err := range w.Walk(ctx, WalkOptions{Hidden: true, Ignored: true}) {
				if err != nil {
					errs = append(errs, string(centurion.KindOf(err)))
				} else if got = append(got, e.Path); e.Path == last && cancelled {
					cancel(centurion.ErrShutdown)
				} else if e.Path == last {
					break
				}
			}
			deepest := "g/" + lockName // what is in a directory that was read is known already
			if !cancelled && (!slices.Equal(got, all[:n+1]) || errs != nil) || cancelled && last != deepest && (!slices.Equal(errs, []string{"interrupted"}) || slices.Contains(got, deepest)) {
				t.Errorf("to %s, cancelled %v: %v, %v", last, cancelled, got, errs)
			}
			cancel(nil)
		}
	}
}

func TestWithNote(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                         "## Notes\n\n- n\n",
		"\n\n":                     "## Notes\n\n- n\n",
		"a":                        "a\n\n## Notes\n\n- n\n",
		"## Notes":                 "## Notes\n\n- n\n",
		"## Notes\n\n\n\n":         "## Notes\n\n- n\n",
		"## Notes  \n- a\n\n## B":  "## Notes  \n- a\n- n\n\n## B",
		"## Notes\n\n\n# B\n":      "## Notes\n\n- n\n\n\n# B\n",
		"## Notes\n- a\n \n\t\n":   "## Notes\n- a\n- n\n",
		"## Notes\r\n- n\r\n":      "## Notes\r\n- n\r\n",
		"## Notes\n## B\n- n\n":    "## Notes\n\n- n\n## B\n- n\n",
		"- n\n## Notes\n- nn\n":    "- n\n## Notes\n- nn\n- n\n",
		"##  Notes\n## Notes B\n#": "##  Notes\n## Notes B\n#\n\n## Notes\n\n- n\n",
	} {
		if got := withNote(text, "- n"); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestAttribute(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"  - after: T1": "after", "\t* Verify: `a:b`": "verify", "+ files:x": "files", "  - note: a": "", "  - Note:": "", "  - a b: c": "",
		"  - `x`: y": "", "  - no colon": "", "after": "", "  - a\tb: c": "",
	} {
		if got := attribute(line); got != want {
			t.Errorf("%q is %q, want %q", line, got, want)
		}
	}
}

// A plan keeps every byte when it is divided and put together again, and what is added gets its line ends.
func TestBlocksKeepAPlan(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "\n\n", "# P\r\n\r\n- [ ] T1 a\r\n  - after: T2\r\n\r\n\r\n", "# P\n- [ ] T1 a\r\n- [x] T1 a\n- [ ] b\n- [ ] b\ntext\ntext\n", "- [~] T1 [x] y",
		"\ufeff- [ ] T1 a\n    more\n\n  - [ ] T2 b\n", "one\r\ntwo\n- [ ] T1 x",
	} {
		doc, err := todo.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		p := cut(doc)
		if got := string(p.text()); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
		first, _, _ := strings.Cut(text, "\n")
		if want := "x" + map[bool]string{true: "\r\n", false: "\n"}[strings.HasSuffix(first, "\r")]; p.ending("x\r\n") != want {
			t.Errorf("%q: a new line is %q", text, p.ending("x\r\n"))
		}
	}
	b := &block{item: true, head: "  - [X] T1 a [b] c\r\n"}
	if lead, mark, rest := b.parts(); lead != "  - [" || mark != "X" || rest != "] T1 a [b] c\r\n" || b.mark() != "x" || b.rest() != "T1 a [b] c" {
		t.Errorf("%q %q %q, %q, %q", lead, mark, rest, b.mark(), b.rest())
	}
	b.setMark("~")
	b.setRest("T2 d")
	if b.head != "  - [~] T2 d\r\n" {
		t.Errorf("%q", b.head)
	}
}
