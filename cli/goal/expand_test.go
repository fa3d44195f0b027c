package goal

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
	"centurion/config"
	"centurion/permission"
	"centurion/sandbox"
	"centurion/workspace"
)

// echo is a shell that prints its script's last line, or what is set.
type echo struct {
	result centurion.CommandResult
	got    centurion.Command
}

func (e *echo) Run(_ context.Context, c centurion.Command) (centurion.CommandResult, error) {
	e.got = c
	r := e.result
	if r.Output == "" {
		r.Output = "[" + c.Script[strings.LastIndexByte(c.Script, '\n')+1:] + "]\n"
	}
	return r, nil
}

// newExpansion makes a command of the person's own in a project with a few files.
func newExpansion(t *testing.T, template, args string) (Expansion, *echo) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "A\n", "sub/b.txt": "B", ".env": "KEY=1", "bin.dat": "a\x00b",
		"big.txt": strings.Repeat("ä", maxAttached), "exact.txt": strings.Repeat("x", maxAttached)} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	sh := &echo{}
	return Expansion{Command: config.Command{Name: "x", Template: template, File: "x.md"}, Args: args, Workspace: ws, Run: sh.Run,
		Rules: []permission.Level{{Name: permission.DefaultLevel, Rules: permission.Defaults(false)}}}, sh
}

const attachedA = "\n\n<file path=\"a.txt\">\nA\n</file>"

func TestExpand(t *testing.T) {
	for name, tt := range map[string]struct{ template, args, want string }{
		"nothing":              {"Do it.", "", "Do it."},
		"all":                  {"Do $ARGUMENTS.", "a  b", "Do a  b."},
		"none given":           {"Do $ARGUMENTS and $1.", "", "Do  and ."},
		"words":                {"$1, $2", "a b", "a, b"},
		"the last takes all":   {"$1, $2", "a b c d", "a, b c d"},
		"quotes":               {"$2 of $1!", `"a b" 'c d'`, "c d of a b!"},
		"quotes of nobody":     {"$1 $2 $3", `'tis "x y`, `'tis "x y`},
		"no place":             {"Do it.", "now", "Do it.\n\nnow"},
		"only shell":           {"See !`date`", "now", "See [date]\n\nnow"},
		"money":                {"$100, $10 and $1st cost $ARGUMENTSX", "x", "$100, $10 and $1st cost $ARGUMENTSX\n\nx"},
		"not twice":            {"$1", "$ARGUMENTS", "$ARGUMENTS"},
		"shell is no template": {"$1 !`echo $1`", "x", "x [echo $1]"},
		"arguments no shell":   {"$ARGUMENTS", "!`rm x`", "!`rm x`"},
		"files":                {"See @a.txt, (@./a.txt) and @sub/b.txt.", "", "See @a.txt, (@./a.txt) and @sub/b.txt." + attachedA + "\n\n<file path=\"sub/b.txt\">\nB\n</file>"},
		"file by argument":     {"See @$1", "a.txt", "See @a.txt" + attachedA},
		"file in arguments":    {"See", "@a.txt @none.txt", "See\n\n@a.txt @none.txt" + attachedA},
		"no files":             {"me@a.txt `@a.txt` @sub @worker @ @/etc/passwd @../a.txt", "", "me@a.txt `@a.txt` @sub @worker @ @/etc/passwd @../a.txt"},
		"shell names no file":  {"!`@a.txt` see", "", "[@a.txt] see"},
	} {
		e, _ := newExpansion(t, tt.template, tt.args)
		if got, err := e.Expand(t.Context()); err != nil || got != tt.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, tt.want)
		}
	}
}

// Of mentions that lead nowhere only those are noted that look like a file.
func TestExpandNotes(t *testing.T) {
	e, _ := newExpansion(t, "@none.txt and @worker and @sub", "")
	var notes []string
	e.Note = func(said string) { notes = append(notes, said) }
	if _, err := e.Expand(t.Context()); err != nil || len(notes) != 1 || !strings.Contains(notes[0], "@none.txt is left as it stands") {
		t.Errorf("%q, %v", notes, err)
	}
}

// A file is cut between two letters, and only if it is longer than what is taken.
func TestExpandCuts(t *testing.T) {
	e, _ := newExpansion(t, "@big.txt", "")
	got, err := e.Expand(t.Context())
	if err != nil || !strings.Contains(got, "ä\n[the first 65536 of 131072 bytes]") || strings.Contains(got, "\uFFFD") {
		t.Errorf("%v, %q", err, got[max(0, len(got)-60):])
	}
	if err := e.Workspace.WriteFile("odd.txt", []byte("x"+strings.Repeat("ä", maxAttached))); err != nil {
		t.Fatal(err)
	}
	e.Command.Template = "@odd.txt"
	if got, err = e.Expand(t.Context()); err != nil || !strings.Contains(got, "ä\n[the first 65535 of 131073 bytes]") {
		t.Errorf("%v, %q", err, got[max(0, len(got)-60):])
	}
	e, _ = newExpansion(t, "@exact.txt", "")
	if got, err = e.Expand(t.Context()); err != nil || strings.Contains(got, "first") {
		t.Errorf("%v, %q", err, got[max(0, len(got)-60):])
	}
}

// What is typed reaches a shell as parameters and is never read as shell.
func TestExpandShell(t *testing.T) {
	e, sh := newExpansion(t, "!`run $1`", `it's "a $(b)" c`)
	sh.result = centurion.CommandResult{Output: "out\n\n", ExitCode: 2}
	if got, err := e.Expand(t.Context()); err != nil || got != "out\n(exit code 2)\n\n"+e.Args {
		t.Errorf("%q, %v", got, err)
	}
	if want := `set -- 'it'\''s' 'a $(b)' 'c'` + "\nrun $1"; sh.got.Script != want || sh.got.Env[0] != "ARGUMENTS="+e.Args || sh.got.Dir != e.Workspace.Dir() || sh.got.Keep != 32<<10 {
		t.Errorf("%+v", sh.got)
	}
	e.Run, e.Command.Template = new(sandbox.Runner).Run, "!`printf '<%s>' \"$@\" \"$ARGUMENTS\"`"
	if got, err := e.Expand(t.Context()); err != nil || !strings.HasPrefix(got, "<it's><a $(b)><c><"+e.Args+">") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestExpandRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		template string
		project  bool
		result   centurion.CommandResult
		kind     centurion.Kind
		says     string
	}{
		"a project's shell": {template: "!`id`", project: true, kind: centurion.KindPermission, says: "wants to run `id`"},
		"a secret":          {template: "@.env", kind: centurion.KindPermission, says: ".env"},
		"no text":           {template: "@bin.dat", kind: centurion.KindUsage, says: "bin.dat is no text"},
		"empty":             {template: "$1", kind: centurion.KindUsage, says: "empty"},
		"endless":           {template: "!`sleep`", result: centurion.CommandResult{Output: "x", TimedOut: true}, kind: centurion.KindTimeout, says: "`sleep`"},
		"too much":          {template: strings.Repeat("x", MaxSize+1), kind: centurion.KindUsage, says: "256 KB"},
	} {
		e, sh := newExpansion(t, tt.template, "")
		e.Command.Project, sh.result = tt.project, tt.result
		_, err := e.Expand(t.Context())
		if centurion.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "run /x of x.md: ") ||
			centurion.HintOf(err) == "" {
			t.Errorf("%s: %v, hint %q", name, err, centurion.HintOf(err))
		}
		if tt.project && sh.got.Script != "" {
			t.Errorf("%s: %q was run", name, sh.got.Script)
		}
	}
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"", "$1 $ARGUMENTS", "!`x` @a.txt", "@@a.txt`", "$9$1\xff", "'\"$1"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, template, args string) {
		e := Expansion{Command: config.Command{Template: template, Project: true}, Args: args, Note: func(string) {}}
		ws, err := workspace.Open(".")
		if err != nil {
			t.Fatal(err)
		}
		defer ws.Close()
		e.Workspace = ws
		if got, err := e.Expand(t.Context()); err == nil && (strings.TrimSpace(got) == "" || len(got) > MaxSize) {
			t.Errorf("%q", got)
		}
	})
}
