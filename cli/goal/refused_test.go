package goal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"centurion"
	"centurion/config"
	"centurion/orchestrator/mail"
	"centurion/permission"
)

// said is an error with what it is about and its hint.
func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error() + " | " + centurion.HintOf(err)
}

// A file that cannot be attached is named as it was given, with the reason and the next step.
func TestAttachSays(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{"notes.md": "n", "latin": "\xe4", "nul": "\x00", "image.png": "\x89PNG\r\n\x1a\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate("image.png", centurion.MaxFile+1); err != nil {
		t.Fatal(err)
	}
	const noText = ": it is neither a text nor of a type that a model takes | attach a PNG, JPEG, GIF or WebP image, a PDF or a text"
	near, far := filepath.Join("sub", "notes.md"), filepath.Join("sub", "zzz")
	if err := os.MkdirAll("sub", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(near, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]string{
		"": "--file needs a path | name a file: --file notes.md", "latin": "attach latin" + noText, "nul": "attach nul" + noText,
		near + "x":  "attach " + near + "x: it does not exist | did you mean " + near + "?",
		far:         "attach " + far + ": it does not exist | paths are relative to the current directory",
		"image.png": "attach image.png: it has 3.8 MB; at most 3.8 MB can be sent to a model | make it smaller",
		"sub":       "attach sub: it is a directory | name the files in it, each with --file",
	} {
		if _, err := attachedAt(t, dir, MaxSize, p); said(err) != want {
			t.Errorf("%q: got %s\nwant %s", p, said(err), want)
		}
	}
	const block = "\n\n<file path=\"notes.md\">\nn\n</file>"
	if _, err := attachedAt(t, dir, len(block), "notes.md"); err != nil {
		t.Errorf("what fits exactly: %v", err)
	}
	_, err := attachedAt(t, dir, len(block)-1, "notes.md")
	if want := "attach notes.md: the text would have more than 256 KB with it | name the file in the text instead: agents can read it in parts"; said(err) != want {
		t.Errorf("got %s\nwant %s", said(err), want)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for p, want := range map[string]string{"/dev/null": "attach /dev/null: it is no regular file | write what comes from it to a file first", "notes.md/x": "attach notes.md/x: not a directory | "} {
		if _, err := attachedAt(t, dir, MaxSize, p); said(err) != want {
			t.Errorf("%q: got %s\nwant %s", p, said(err), want)
		}
	}
}

// What a model does not take is told with models that take it, or with the setting that says so.
func TestCheckTakenBySays(t *testing.T) {
	file := Attached{Files: []centurion.File{{Mime: "image/png", Path: "shots/a.png", Name: "a.png"}}}
	var r config.Resolved
	r.Model = centurion.ModelRef{Provider: "local", ID: "m"}
	key := mail.MediaKey(r.Model)
	got := said(file.CheckTakenBy(r, &config.Config{}))
	if want := "attach shots/a.png: the model local/m takes no images | if it does, set " + key; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if KindOf(centurion.File{Mime: centurion.MimePDF}) != "PDF files" || strings.Join(FileTypes(centurion.Media{PDF: true}), ",") != "PDF" || len(FileTypes(centurion.Media{})) != 0 {
		t.Error("the names of the types are wrong")
	}
}

// A command that a plugin has added, one that cannot be run, and one with too much text say why, and nothing of them is sent.
func TestExpandSays(t *testing.T) {
	e, sh := newExpansion(t, "!`id`", "")
	e.Command.File = config.FromPlugins
	_, err := e.Expand(t.Context())
	if want := "run /x of " + config.FromPlugins + ": a plugin has added it, and it wants to run `id` | put the command into a file of your own"; said(err) != want || sh.got.Script != "" {
		t.Errorf("got %s, %q\nwant %s", said(err), sh.got.Script, want)
	}
	e.Command.File = "x.md"
	e.Run = func(context.Context, centurion.Command) (centurion.CommandResult, error) {
		return centurion.CommandResult{Output: "x"}, errors.New("no shell")
	}
	if got, err := e.Expand(t.Context()); got != "" || said(err) != "no shell | " {
		t.Errorf("%q, %v", got, err)
	}
	for template, want := range map[string]string{
		"see @.env":     "run /x of x.md: it may not read .env: " + permission.Decide(e.Rules, "read", []string{".env"}).Reason + " | allow it with a rule under `permission`, or leave @.env out",
		"see @bin.dat.": "run /x of x.md: bin.dat is no text | leave @bin.dat out",
	} {
		e.Command.Template = template
		if got, err := e.Expand(t.Context()); got != "" || said(err) != want {
			t.Errorf("%q, %s\nwant %s", got, said(err), want)
		}
	}
	e, _ = newExpansion(t, strings.Repeat("x", MaxSize), "")
	if got, err := e.Expand(t.Context()); err != nil || len(got) != MaxSize {
		t.Errorf("the longest text: %d bytes, %v", len(got), err)
	}
	e.Command.Template += "x"
	if _, err = e.Expand(t.Context()); said(err) != "run /x of x.md: its text is longer than 256 KB | attach fewer files" {
		t.Errorf("one byte more: %s", said(err))
	}
}

// What stands after a shell command counts; two commands are no word of a file's name together, and a bad byte is marked.
func TestExpandAroundShell(t *testing.T) {
	e, sh := newExpansion(t, "@a!`x`.txt $2 !`y`", "1 2 3")
	sh.result = centurion.CommandResult{Output: "\xffo\n"}
	var notes []string
	e.Note = func(said string) { notes = append(notes, said) }
	if got, err := e.Expand(t.Context()); err != nil || got != "@a\uFFFDo.txt 2 3 \uFFFDo" {
		t.Errorf("%q, %v", got, err)
	}
	e, _ = newExpansion(t, "@a.txt @./a.txt @.", "")
	e.Note = func(said string) { notes = append(notes, said) }
	if got, err := e.Expand(t.Context()); err != nil || got != "@a.txt @./a.txt @."+attachedA || len(notes) != 0 {
		t.Errorf("%q, %v, %q", got, err, notes)
	}
	e, _ = newExpansion(t, "@../no.txt", "")
	e.Note = func(said string) { notes = append(notes, said) }
	if _, err := e.Expand(t.Context()); err != nil || len(notes) != 1 || !strings.Contains(notes[0], "@../no.txt is left as it stands") {
		t.Errorf("%v, %q", err, notes)
	}
}
