package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"centurion/provider/scripted"
)

// OpenCode's client sees the prompts of an MCP server as commands and adds its resources to messages: the model gets what the server says.
func TestServeServers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the server is found by its name")
	}
	s := startServe(t, func(r scripted.Request) scripted.Answer { return scripted.Answer{Say: "I read: " + r.Last()} })
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "toolserver"), program, 0o700) // confined, it reads its project only
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(s.home, ".config", "opencode"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(s.home, ".config", "opencode", "opencode.json"), `{"mcp": {"work": {"type": "local", "command": ["./toolserver"]}}}`)
	list := func(path string) string {
		resp, err := http.Get(s.url + path + "?directory=" + url.QueryEscape(dir))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := list("/command"); !strings.Contains(got, `{"name":"work:review","description":"Reviews a thing","source":"mcp","template":"","hints":["$1","$2"]}`) {
		t.Error(got)
	}
	if got := list("/experimental/resource"); strings.TrimSpace(got) != `{"work:note":{"name":"note","uri":"note://1","client":"work"}}` {
		t.Error(got)
	}
	for path, body := range map[string]string{
		"command": `{"command":"work:review","arguments":"it \"great care\""}`,
		"message": `{"parts":[{"type":"text","text":"see @note"},{"type":"file","mime":"text/plain","filename":"note","url":"note://1","source":{"type":"resource","clientName":"work","uri":"note://1","text":{"value":"@note","start":4,"end":9}}}]}`,
	} {
		session := s.post("/session", dir, "{}")["id"]
		got := fmt.Sprint(s.post(fmt.Sprintf("/session/%s/%s", session, path), dir, body)["parts"])
		if want := map[string]string{"command": "Review it with great care. $1 @a.txt", "message": "Resource note://1 of work:\n\nIt is noted."}[path]; !strings.Contains(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
}
