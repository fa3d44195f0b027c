package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
)

// ORCH-43: lines are added behind whole lines only: what a crash has cut off goes, what only lacks its end gets it.
func TestAppendJSON(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", 200<<10) + `"}`
	for name, test := range map[string]struct{ was, want string }{
		"missing":          {"", "1\n2\n"},
		"whole":            {"0\n", "0\n1\n2\n"},
		"cut off":          {"0\n" + `{"a":`, "0\n1\n2\n"},
		"only a part":      {`{"a":`, "1\n2\n"},
		"without its end":  {"0\n" + `{"a":1}`, "0\n" + `{"a":1}` + "\n1\n2\n"},
		"long":             {"0\n" + long + "\n", "0\n" + long + "\n1\n2\n"},
		"long, no end":     {"0\n" + long, "0\n" + long + "\n1\n2\n"},
		"long and cut off": {"0\n" + long[:150<<10], "0\n1\n2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			path := filepath.Join(dir, "a", "b.jsonl")
			if test.was != "" {
				if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(test.was), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.AppendJSON("a/b.jsonl", []byte("1"), []byte("2")); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil || string(got) != test.want {
				t.Errorf("got %.100q (%d bytes), %v", got, len(got), err)
			}
			n := 0
			for line, err := range w.Lines("a/b.jsonl") {
				if n++; err != nil || len(line) == 0 {
					t.Errorf("line %q, %v", line, err)
				}
			}
			if n != strings.Count(test.want, "\n") {
				t.Errorf("%d lines", n)
			}
			if names, err := w.Names("a", ".jsonl"); err != nil || len(names) != 1 || names[0] != "b.jsonl" {
				t.Errorf("names: %v, %v", names, err)
			}
		})
	}
}

func TestAppendJSONRefused(t *testing.T) {
	dir := t.TempDir()
	w, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.AppendJSON("../out.jsonl", []byte("1")); centurion.KindOf(err) != centurion.KindPermission {
		t.Errorf("outside: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "d.jsonl"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := w.AppendJSON("d.jsonl", []byte("1")); centurion.KindOf(err) != centurion.KindUsage {
		t.Errorf("a directory: %v", err)
	}
	for line, err := range w.Lines("none.jsonl") {
		t.Errorf("a missing file has %q, %v", line, err)
	}
	if names, err := w.Names("none", ""); len(names) > 0 || err != nil {
		t.Errorf("a missing directory: %v, %v", names, err)
	}
}
