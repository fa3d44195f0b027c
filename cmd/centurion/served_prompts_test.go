package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"centurion/provider/scripted"
)

// OpenCode's client sees the prompts of an MCP server as commands and adds its resources to messages: the model gets what the server says,
// and a plugin changes it as it does that of any command.
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
	write(t, filepath.Join(s.home, ".config", "opencode", "opencode.json"), `{"mcp": {"work": {"type": "local", "command": ["./toolserver"]}},
		"plugin": [["exec:typed", {"command": ["sh", "typed.sh"]}]]}`)
	write(t, filepath.Join(dir, "typed.sh"), `while read -r line; do
  id=${line#*:}; id=${id%%,*}
  case $line in
  *'"do":"init"'*) echo '{"id":'$id',"result":{"hooks":["command.execute.before"]}}';;
  *'"command":"work:review"'*) echo '{"id":'$id',"result":{"output":{"parts":[{"type":"text","text":"'"$(printf %s "$line" | sed 's/.*"text":"\([^"]*\)".*/\1/')"' And hurry."}]}}}';;
  *) echo '{"id":'$id',"result":{}}';;
  esac
done
`)
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
		said := func() string {
			session := s.post("/session", dir, "{}")["id"]
			return fmt.Sprint(s.post(fmt.Sprintf("/session/%s/%s", session, path), dir, body)["parts"])
		}
		got := said()
		for n := 0; n < 100 && path == "command" && !strings.Contains(got, "hurry"); n++ { // nothing waits for the plugin
			got = said()
		}
		if want := map[string]string{"command": "Review it with great care. $1 @a.txt And hurry.", "message": "Resource note://1 of work:\n\nIt is noted."}[path]; !strings.Contains(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// Of 20 MCP servers 5 never answer, and the others not before the model was asked: the first request waits for none of them.
func TestServersDelayNothing(t *testing.T) {
	asked, gone := make(chan struct{}), make(chan struct{})
	ask := sync.OnceFunc(func() { close(asked) })
	model := scripted.Func(func(scripted.Request) scripted.Answer { ask(); return scripted.Answer{Say: "hello"} })
	address, err := model.Serve()
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	servers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		open := asked
		if r.URL.Path == "/silent" {
			open = gone
		}
		select {
		case <-open:
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer servers.Close()
	defer close(gone)
	all := map[string]any{}
	for i := range 20 {
		all[fmt.Sprint("s", i)] = map[string]string{"type": "remote", "url": servers.URL + map[bool]string{true: "/silent", false: "/late"}[i < 5]}
	}
	configuration, err := json.Marshal(map[string]any{"mcp": all})
	if err != nil {
		t.Fatal(err)
	}
	c := &cli{in: strings.NewReader(""), out: io.Discard, err: t.Output(), env: []string{"HOME=" + t.TempDir(), "CENTURION_HOME=" + t.TempDir(), "OPENAI_API_KEY=x",
		"OPENAI_BASE_URL=" + address, "OPENCODE_CONFIG_CONTENT=" + string(configuration)}}
	late := time.AfterFunc(20*time.Second, ask) // a server has 30
	code := c.run(t.Context(), []string{"run", "--profile", "assistant", "--model", "openai/gpt-5", "--format", "json", "--dir", t.TempDir(), "hello"})
	if n := len(model.Requests()); code != 0 || n != 1 || !late.Stop() {
		t.Errorf("it exits with %d after %d requests, in time: %t", code, n, late.Stop())
	}
}
