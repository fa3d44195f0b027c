package main

import (
	"bufio"
	"centurion"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"centurion/guard"
	"centurion/provider/scripted"
	"centurion/server"
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

// stream is an open event stream.
type stream struct {
	t     *testing.T
	lines *bufio.Scanner
}

func (s *serveTest) stream(dir string) *stream {
	s.t.Helper()
	resp, err := http.Get(s.url + "/event?directory=" + url.QueryEscape(dir))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return &stream{s.t, lines}
}

// until reads until an event has all of these texts.
func (s *stream) until(texts ...string) {
	s.t.Helper()
	for s.lines.Scan() {
		missing := func(text string) bool { return !strings.Contains(s.lines.Text(), text) }
		if !slices.ContainsFunc(texts, missing) {
			return
		}
	}
	s.t.Fatalf("the stream ends before %q: %v", texts, s.lines.Err())
}

// post posts to the project in a directory, and returns the answer.
func (s *serveTest) post(path, dir, body string) map[string]any {
	s.t.Helper()
	resp, err := http.Post(s.url+path+"?directory="+url.QueryEscape(dir), "application/json", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var got map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&got); resp.StatusCode >= 300 || err != nil && !errors.Is(err, io.EOF) {
		s.t.Fatalf("%s: %s, %v, %v", path, resp.Status, got, err)
	}
	return got
}

// A server is the client of the process that hosts a project. When that process is killed, the server takes its place: the missions that it
// hosted go on, and an open stream tells of them.
func TestServeTakesOver(t *testing.T) {
	asked, killed := make(chan struct{}, 9), make(chan struct{})
	s := startServe(t, func(r scripted.Request) scripted.Answer {
		if strings.Contains(r.Last(), "long") {
			asked <- struct{}{}
			<-killed
			return scripted.Answer{Say: "the long one is done"}
		}
		return scripted.Answer{Say: "the short one is done"}
	})
	kill := sync.OnceFunc(func() { close(killed) })
	t.Cleanup(kill)
	dir := t.TempDir()
	owner := exec.Command("centurion", "run", "--model", "openai/gpt-5", "--profile", "assistant", "--format", "json", "--dir", dir, "long work")
	owner.Env = append(s.cli.env, "PATH="+os.Getenv("PATH"))
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = owner.Process.Kill(), owner.Wait() })
	<-asked
	events := s.stream(dir)
	events.until("server.connected")
	session, _ := s.post("/session", dir, `{"title": "mine"}`)["id"].(string)
	s.post("/session/"+session+"/prompt_async", dir, `{"parts": [{"type": "text", "text": "be short"}]}`)
	events.until("message.part.updated", "the short one is done", session)
	status, got := s.get("/centurion/v1", dir)
	if status != http.StatusOK {
		t.Errorf("our own API: %d, %v", status, got)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait()
	if status, got := s.get("/session/"+session, dir); status != http.StatusOK || got["title"] != "mine" {
		t.Errorf("a request after the kill: %d, %v", status, got)
	}
	kill()
	events.until("message.part.updated", "the long one is done")
	s.post("/session/"+session+"/prompt_async", dir, `{"parts": [{"type": "text", "text": "and again"}]}`)
	events.until("message.part.updated", "the short one is done", session)
}

// The typed client of our own API reaches every project over the port, with the token in the address or beside it.
func TestServeOwnAPI(t *testing.T) {
	s := startServe(t, func(scripted.Request) scripted.Answer { return scripted.Answer{Say: "It is done already."} })
	dir := t.TempDir()
	base, token, _ := strings.Cut(s.url, server.TokenPath)
	for name, c := range map[string]*server.Client{"in the address": server.NewPortClient(s.url, "", dir), "beside it": server.NewPortClient(base, token, dir)} {
		info, err := c.Info(t.Context())
		if err != nil || info.Directory != dir || info.Version != Version {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
		m, err := c.Start(t.Context(), "go", centurion.MissionOptions{Model: "openai/gpt-5", Profile: "assistant"})
		if err != nil {
			t.Fatal(err)
		}
		done := false
		for e, err := range c.Events(t.Context(), server.EventQuery{Mission: m.ID, Follow: true}) {
			if done = done || e.Type == centurion.EventMissionCompleted; done || err != nil {
				break
			}
		}
		if all, err := c.Missions(t.Context()); !done || err != nil || all[0].ID != m.ID || all[0].Status != centurion.MissionCompleted {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
		c.Close()
	}
	c := server.NewPortClient(base, "wrong", dir)
	defer c.Close()
	if _, err := c.Missions(t.Context()); centurion.KindOf(err) != centurion.KindAuth {
		t.Errorf("with a wrong token: %v", err)
	}
}
