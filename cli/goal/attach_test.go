package goal

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"centurion"
	"centurion/config"
	"centurion/workspace"
)

// attached are files of a project's directory, given to a text that has so much room left.
func attached(t *testing.T, room int, files map[string]string, paths ...string) (Attached, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range paths {
		paths[i] = filepath.Join(dir, p)
	}
	return attachedAt(t, dir, room, paths...)
}

// attachedAt is attached for files that are there already.
func attachedAt(t *testing.T, dir string, room int, paths ...string) (Attached, error) {
	t.Helper()
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	return Attach(ws, paths, room)
}

// picture is the smallest image.
func picture(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Texts stand in the message by their path in the project, without a byte order mark; images go beside it.
func TestAttach(t *testing.T) {
	got, err := attached(t, MaxSize, map[string]string{"a.txt": "\xef\xbb\xbfA\n", "b.txt": "B", "p.png": picture(t)}, "a.txt", "p.png", "b.txt")
	want := "\n\n<file path=\"a.txt\">\nA\n</file>\n\n<file path=\"b.txt\">\nB\n</file>"
	if err != nil || got.Text != want || len(got.Files) != 1 || got.Files[0].Mime != "image/png" {
		t.Errorf("%q, %d files, %v", got.Text, len(got.Files), err)
	}
}

// What cannot be attached is refused with what there is to do.
func TestAttachRefuses(t *testing.T) {
	many := map[string]string{}
	var names []string
	for i := range centurion.MaxFiles + 1 {
		name := strings.Repeat("p", i+1) + ".png"
		many[name], names = picture(t), append(names, name)
	}
	text := map[string]string{"a.txt": strings.Repeat("a", 60), "b.txt": strings.Repeat("b", 60), "bin": "a\x00b"}
	for name, c := range map[string]struct {
		files map[string]string
		paths []string
		room  int
		says  string
	}{
		"two texts that fit only one by one": {text, []string{"a.txt", "b.txt"}, 120, "more than"},
		"no text":                            {text, []string{"bin"}, 120, "neither a text"},
		"a directory":                        {text, []string{"."}, 120, "is a directory"},
		"a name that is misspelt":            {text, []string{"a.tx"}, 120, "does not exist"},
		"too many images":                    {many, names, 120, "attachments"},
	} {
		if _, err := attached(t, c.room, c.files, c.paths...); centurion.KindOf(err) != centurion.KindUsage || !strings.Contains(err.Error(), c.says) || centurion.HintOf(err) == "" {
			t.Errorf("%s: %v (%s)", name, err, centurion.HintOf(err))
		}
	}
	if _, err := attached(t, 120, text, "a.txt"); err != nil {
		t.Errorf("a text that fits: %v", err)
	}
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for size, fits := range map[int64]bool{centurion.MaxFile: true, centurion.MaxFile + 1: false} {
		if err := os.Truncate(large, size); err != nil {
			t.Fatal(err)
		}
		if got, err := readGiven(large); (err == nil) != fits || fits && int64(len(got)) != size {
			t.Errorf("%d bytes: %d, %v", size, len(got), err)
		}
	}
	if runtime.GOOS != "windows" {
		if _, err := readGiven("/dev/null"); err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("a device: %v", err)
		}
	}
}

// A file is named as agents see it: by its place in the project, also where a link leads there.
func TestProjectPath(t *testing.T) {
	base := t.TempDir()
	if err := os.MkdirAll(filepath.Join(base, "project", "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	ws, err := workspace.Open(filepath.Join(base, "project"))
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	if err := os.Symlink(filepath.Join(base, "project", "sub"), filepath.Join(base, "link")); err != nil {
		if runtime.GOOS != "windows" { // there, links need a right of their own
			t.Fatal(err)
		}
		t.Skip(err)
	}
	outside := filepath.ToSlash(filepath.Join(base, "other.txt"))
	for p, want := range map[string]string{filepath.Join(base, "project", "a.txt"): "a.txt", filepath.Join(base, "link", "b.txt"): "sub/b.txt", outside: outside} {
		if got := projectPath(ws, p); got != want {
			t.Errorf("%s is %s, want %s", p, got, want)
		}
	}
}

// A model that takes images does not take a PDF for that.
func TestCheckTakenBy(t *testing.T) {
	image, pdf := centurion.File{Mime: "image/png", Name: "a.png"}, centurion.File{Mime: centurion.MimePDF, Name: "a.pdf"}
	var r config.Resolved
	r.Media = centurion.Media{Image: true}
	if err := (Attached{Files: []centurion.File{image}}).CheckTakenBy(r, &config.Config{}); err != nil {
		t.Error(err)
	}
	if err := (Attached{Files: []centurion.File{image, pdf}}).CheckTakenBy(r, &config.Config{}); centurion.KindOf(err) != centurion.KindUsage || !strings.Contains(err.Error(), "takes no PDF files") || centurion.HintOf(err) == "" {
		t.Errorf("a PDF: %v", err)
	}
	if got := strings.Join(FileTypes(centurion.Media{Image: true, PDF: true}), ", "); got != "images, PDF" {
		t.Error(got)
	}
}
