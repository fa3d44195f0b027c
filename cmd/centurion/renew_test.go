package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"centurion/guard"
	"centurion/provider/scripted"
)

// reconfigured is a client of a server whose models say which of them answers, or touch a file first.
type reconfigured struct {
	*client
	s *serveTest
}

func startReconfigured(t *testing.T, hold <-chan struct{}) *reconfigured {
	s := startServe(t, func(r scripted.Request) scripted.Answer {
		switch {
		case len(r.Results()) > 0:
			return scripted.Answer{Say: r.Model + " touches: " + strings.Join(r.Results(), "; ")}
		case strings.Contains(r.Last(), "wait"):
			<-hold
			fallthrough
		case strings.Contains(r.Last(), "touch"):
			return scripted.Answer{Calls: []scripted.Call{{Name: "bash", Arguments: `{"command":"touch it","description":"Touch"}`}}}
		}
		poet := strings.Contains(r.System(), "You are a poet.")
		return scripted.Answer{Say: fmt.Sprintf("%s, a poet: %v, hears %s", r.Model, poet, r.Last())}
	}, "--model", "")
	return &reconfigured{s.client(t), s}
}

func (c *reconfigured) write(path, text string) {
	c.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		c.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.Fatal(err)
	}
}

// person writes the person's file, and project one of the project.
func (c *reconfigured) person(text string) {
	c.write(filepath.Join(c.s.home, ".config/opencode/opencode.json"), text)
}
func (c *reconfigured) project(name, text string) { c.write(filepath.Join(c.dir, name), text) }

// lists requires words in what a path lists.
func (c *reconfigured) lists(path string, words ...string) {
	c.Helper()
	status, body := c.call("GET", path, "")
	for _, word := range words {
		if status != http.StatusOK || !strings.Contains(body, word) {
			c.Errorf("%s has no %s: %d %s", path, word, status, body)
		}
	}
}

// says requires words in the answer of a new session.
func (c *reconfigured) says(agent, text string, words ...string) {
	c.Helper()
	c.answers(c.later("/session/"+c.open(agent)+"/message", said(text, "")), words...)
}

func (c *reconfigured) answers(answer <-chan string, words ...string) {
	c.Helper()
	got := <-answer
	for _, word := range words {
		if !strings.HasPrefix(got, "200 ") || !strings.Contains(got, word) {
			c.Errorf("no %q in the answer %s", word, got)
		}
	}
}

const (
	mine  = `{"model": "openai/gpt-5", "permission": {"bash": {"touch *": "ask"}}}`
	other = `{"model": "openai/gpt-5-mini", "permission": {"bash": "allow"}, "command": {"greet": {"template": "say good day to $ARGUMENTS"}},
		"agent": {"poet": {"mode": "primary", "description": "writes", "prompt": "You are a poet."}}}`
)

// A served project reads its configuration again when a file has changed: what begins then uses it, and what works keeps what it began with.
func TestServeReadsConfigurationAgain(t *testing.T) {
	hold := make(chan struct{})
	c := startReconfigured(t, hold)
	c.person(mine)
	until, leave := c.listen()
	defer leave()
	root := c.open("assistant")
	working := c.later("/session/"+root+"/message", said("wait and touch", ""))
	until(`"session.status"`, `"busy"`, root)
	c.person(other)
	for path, word := range map[string]string{"/config": `"openai/gpt-5-mini"`, "/agent": `"poet"`, "/command": `"greet"`, "/provider": `"gpt-5-mini"`, "/config/providers": `"gpt-5-mini"`} {
		c.lists(path, word)
	}
	c.says("assistant", "hello", "gpt-5-mini, a poet: false")
	c.says("poet", "hello", "gpt-5-mini, a poet: true")
	c.says("assistant", "touch", "gpt-5-mini touches: ")
	c.answers(c.later("/session/"+c.open("assistant")+"/command", `{"command":"greet","arguments":"you"}`), "gpt-5-mini", "say good day to you")
	c.project(".opencode/commands/local.md", "say it to $1")
	c.lists("/command", `"local"`, `"greet"`)
	close(hold)
	id := until(`"permission.asked"`, root)["id"].(string)
	if status, body := c.call("POST", "/permission/"+id+"/reply", `{"reply":"once"}`); status != http.StatusOK {
		t.Errorf("the answer: %d %s", status, body)
	}
	c.answers(working, "gpt-5 touches: ")
	c.person(strings.Replace(mine, "ask", "deny", 1))
	c.answers(c.later("/session/"+root+"/message", said("touch", "")), "gpt-5 touches: ", "denied") // when it goes on, the rules are those of now
}

// A faulty file is told once, with its line, and changes nothing until it is mended; what counts from the next start only is told once, too.
func TestServeFaultyConfiguration(t *testing.T) {
	c := startReconfigured(t, nil)
	c.person(mine)
	c.lists("/config", `"openai/gpt-5"`)
	until, leave := c.listen()
	defer leave()
	c.person(`{"model": "openai/gpt-5-mini",` + "\n" + `"permission": }`)
	c.lists("/config", `"openai/gpt-5"`)
	toast := until(`"tui.toast.show"`, "opencode.json:2: not valid JSON", "check the commas", "stays as it was")
	if toast["variant"] != "warning" {
		t.Errorf("told as %v", toast)
	}
	c.says("assistant", "hello", "gpt-5, a poet")
	own := filepath.Join(c.s.home, ".config/centurion/config.jsonc")
	c.write(own, `{"agent": {"nobody": {"tool_policy": "sequential"}}}`) // what only a host finds
	c.person(other)
	c.lists("/config", `"openai/gpt-5"`)
	until(`"tui.toast.show"`, "agent.nobody.tool_policy")
	c.write(own, `{"max_commands": 3}`)
	c.lists("/config", `"openai/gpt-5-mini"`)
	until(`"tui.toast.show"`, "started again", "max_commands")
	c.says("poet", "hello", "gpt-5-mini, a poet: true")
}

// What a file of the project allows, chooses or sends counts when the person trusts it and not before, and what it forbade stays forbidden.
func TestServeUntrustedConfiguration(t *testing.T) {
	c := startReconfigured(t, nil)
	c.person(mine)
	c.project(".opencode/centurion.jsonc", `{"max_cost": 1}`)
	c.project("opencode.json", `{"permission": {"webfetch": "deny", "bash": {"touch *": "deny"}}}`)
	c.says("assistant", "touch", "gpt-5 touches: ", "denied")
	until, leave := c.listen()
	defer leave()
	c.project("opencode.json", `{"model": "openai/gpt-5-mini", "permission": {"bash": "allow"}, "agent": {"poet": {"mode": "primary", "prompt": "You are a poet."}}}`)
	c.says("assistant", "touch", "gpt-5 touches: ", "denied")
	until(`"tui.toast.show"`, "opencode.json came with the project and is not trusted", "is gone", "poet")
	if _, err := os.Stat(filepath.Join(c.dir, "it")); err == nil {
		t.Fatal("it was touched")
	}
	trusting := &cli{in: strings.NewReader(""), out: io.Discard, err: t.Output(), env: c.s.cli.env}
	var g guard.Group
	g.Go("trust", func() error {
		if code := trusting.run(t.Context(), []string{"trust", "--yes", "--dir", c.dir}); code != 0 {
			t.Errorf("trust exits with %d", code)
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	c.lists("/config", `"openai/gpt-5-mini"`)
	c.says("poet", "hello", "gpt-5-mini, a poet: true")
	c.project(".opencode/centurion.jsonc", `{}`)
	c.project(".opencode/commands/local.md", "say it")
	if _, body := c.call("GET", "/command", ""); strings.Contains(body, `"local"`) {
		t.Errorf("something else of a configuration without its limit counts: %s", body)
	}
	until(`"tui.toast.show"`, "centurion.jsonc: max_cost is gone")
	c.project(".opencode/centurion.jsonc", `{"max_cost": 0.5}`)
	c.lists("/command", `"local"`)
}
