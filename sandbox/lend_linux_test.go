package sandbox

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
	"centurion/sandbox/confine"
)

// A program that serves writes in a directory as long as that is lent, wherever it was started, and never what is protected there or what
// is lent to no one.
func TestLend(t *testing.T) {
	s := newScene(t, confine.Full)
	own, checkouts := filepath.Join(s.state, "own"), filepath.Join(s.state, "checkouts")
	one, two := filepath.Join(checkouts, "1", "p"), filepath.Join(checkouts, "2", "p")
	for _, dir := range []string{own, filepath.Join(one, ".opencode"), two} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(s.project, ".opencode"), filepath.Join(two, ".opencode")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(one, ".git"), []byte("gitdir: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	in, said := io.Pipe()
	out, answers := io.Pipe()
	done := make(chan error, 1)
	serves := centurion.Command{Script: "while read file; do echo changed >\"$file\" && echo yes || echo no; done", Dir: s.project, Workspace: own,
		Lend: []string{s.project, checkouts}, Input: in, Errors: io.Discard, Timeout: centurion.NoTimeout}
	early, err := s.r.Lend(serves, one) // before it runs
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := s.r.RunBackground(t.Context(), serves, answers, nil)
		done <- err
	}()
	lines := bufio.NewReader(out)
	writes := func(file string) bool {
		t.Helper()
		if _, err := io.WriteString(said, file+"\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(answer) == "yes"
	}
	check := func(when string, want map[string]bool) {
		t.Helper()
		for file, may := range want {
			if writes(file) != may {
				t.Errorf("%s: %s: %v", when, file, !may)
			}
		}
	}
	none := map[string]bool{filepath.Join(one, "a"): false, filepath.Join(two, "a"): false, "a": false, filepath.Join(s.project, "a"): false, filepath.Join(own, "a"): true}
	check("from the start", map[string]bool{filepath.Join(one, "a"): true, filepath.Join(two, "a"): false})
	early()
	check("before", none)
	lend := func(dir string) func() {
		t.Helper()
		back, err := s.r.Lend(serves, dir)
		if err != nil {
			t.Fatal(err)
		}
		return back
	}
	back, again := lend(one), lend(one)
	held := map[string]bool{filepath.Join(one, "a"): true, filepath.Join(one, ".git"): false, filepath.Join(one, ".opencode", "a"): false, filepath.Join(two, "a"): false, "a": false,
		filepath.Join(checkouts, "1.json"): false}
	check("a checkout", held)
	back()
	check("a checkout, by another call", held)
	again()
	check("after", none)
	back = lend(two)
	check("another checkout", map[string]bool{filepath.Join(two, "a"): true, filepath.Join(two, ".opencode", "a"): false, filepath.Join(one, "a"): false})
	back()
	if err := os.Remove(filepath.Join(two, "a")); err != nil {
		t.Fatal(err)
	}
	check("after that", none)
	back = lend(s.project)
	check("the project", map[string]bool{"a": true, filepath.Join(s.project, "b"): true, filepath.Join(s.project, ".git", "config"): false, filepath.Join(s.project, ".opencode", "x"): false, filepath.Join(one, "a"): false})
	back()
	check("at the end", none)
	if _, err := s.r.Lend(serves, s.home); err == nil {
		t.Error("something else was lent")
	}
	if b, err := os.ReadFile(filepath.Join(one, "a")); err != nil || string(b) != "changed\n" {
		t.Errorf("%q, %v", b, err)
	}
	said.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
