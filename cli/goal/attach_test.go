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
	"centurion/workspace"
)

// attached are files of a project's directory, given to a text that has so much room left.
func attached(t *testing.T, room int, files map[string]string, paths ...string) (Attached, error) {
	t.Helper()
	dir := t.TempDir()
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range paths {
		paths[i] = filepath.Join(dir, p)
	}
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
	if runtime.GOOS != "windows" {
		if _, err := readGiven("/dev/null"); err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("a device: %v", err)
		}
	}
}
