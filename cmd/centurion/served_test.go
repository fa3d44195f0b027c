package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"centurion/guard"
	"centurion/provider/scripted"
)

// serveTest is a server with a home and a model of its own.
type serveTest struct {
	t     *testing.T
	home  string
	url   string // with the token
	model *scripted.Model
	cli   *cli
}

// startServe serves a new project until the test ends.
func startServe(t *testing.T, answer func(scripted.Request) scripted.Answer, flags ...string) *serveTest {
	t.Helper()
	s := &serveTest{t: t, home: t.TempDir(), model: scripted.Func(answer)}
	address, err := s.model.Serve()
	if err != nil {
		t.Fatal(err)
	}
	out, in := io.Pipe()
	s.cli = &cli{in: strings.NewReader(""), out: in, err: t.Output(), env: []string{"HOME=" + s.home, "CENTURION_HOME=" + filepath.Join(s.home, "state"),
		"OPENAI_API_KEY=x", "OPENAI_BASE_URL=" + address}}
	ctx, cancel := context.WithCancel(t.Context())
	var g guard.Group
	g.Go("serve", func() error {
		defer in.Close()
		if code := s.cli.run(ctx, append([]string{"serve", "--port", "0", "--model", "openai/gpt-5", "--dir", t.TempDir()}, flags...)); code != 0 {
			t.Errorf("serve exits with %d", code)
		}
		return nil
	})
	t.Cleanup(func() {
		cancel()
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		_ = s.model.Close()
	})
	line := make([]byte, 200)
	n, err := out.Read(line)
	if s.url = strings.TrimSpace(strings.TrimPrefix(string(line[:n]), "opencode server listening on ")); err != nil || !strings.HasPrefix(s.url, "http://") {
		t.Fatalf("serve prints %q: %v", line[:n], err)
	}
	return s
}

// get gets a path of the project in a directory, and returns the status and the answer.
func (s *serveTest) get(path, dir string) (int, map[string]any) {
	s.t.Helper()
	resp, err := http.Get(s.url + path + "?directory=" + url.QueryEscape(dir))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var got map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		s.t.Errorf("%s of %s: %v", path, dir, err)
	}
	return resp.StatusCode, got
}

// A directory that cannot be opened is told as JSON in the form of the API that was asked, and is opened when that has changed.
func TestServeBadDirectory(t *testing.T) {
	s := startServe(t, nil)
	dir := t.TempDir()
	file, missing := filepath.Join(dir, "file"), filepath.Join(dir, "missing")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		dir, says string
		status    int
	}{
		"missing":     {missing, "does not exist", http.StatusNotFound},
		"a file":      {file, "is not a directory", http.StatusBadRequest},
		"in a file":   {filepath.Join(file, "x"), "directory", http.StatusBadRequest},
		"the home":    {s.home, "is your home directory", http.StatusBadRequest},
		"a long name": {filepath.Join(dir, strings.Repeat("x", 300)), "directory", http.StatusBadRequest},
	} {
		status, got := s.get("/path", tt.dir)
		if data, _ := got["data"].(map[string]any); status != tt.status || !strings.Contains(data["message"].(string), tt.says) {
			t.Errorf("%s: %d, %v", name, status, got)
		}
		status, got = s.get("/centurion/v1", tt.dir)
		if e, _ := got["error"].(map[string]any); status != tt.status || !strings.Contains(e["message"].(string), tt.says) {
			t.Errorf("%s in our own API: %d, %v", name, status, got)
		}
	}
	if err := os.Mkdir(missing, 0o700); err != nil {
		t.Fatal(err)
	}
	if status, got := s.get("/path", missing); status != http.StatusOK || got["directory"] != missing {
		t.Errorf("made since: %d, %v", status, got)
	}
}
