package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"centurion/provider/scripted"
	"centurion/server/opencode/v1/contract"
)

// clientLimit ends a test that hangs: a busy machine needs many times longer than usual.
const clientLimit = 2 * time.Minute

// client is one of OpenCode's clients of a project. It holds every answer and event against OpenCode's own API.
type client struct {
	*testing.T
	url, dir string
}

// client makes a client of another project, in which touching asks.
func (s *serveTest) client(t *testing.T) *client {
	t.Helper()
	rules := filepath.Join(s.home, ".config/opencode/opencode.json")
	if err := os.MkdirAll(filepath.Dir(rules), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(rules, []byte(`{"permission": {"bash": {"*": "allow", "touch *": "ask"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return &client{t, s.url, t.TempDir()}
}

var variable = regexp.MustCompile(`/(ses|msg|per|que)_\w+`)

// call makes a request, and returns the status and the answer.
func (c *client) call(method, path, body string) (int, string) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), clientLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.url+path+"?directory="+url.QueryEscape(c.dir), strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.Errorf("%s %s: %v", method, path, err)
		return 0, ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil {
		err = contract.Answer(method+" "+variable.ReplaceAllString(path, "/{}"), resp.StatusCode, b)
	}
	if err != nil {
		c.Error(err)
	}
	return resp.StatusCode, string(b)
}

// open opens a session.
func (c *client) open(agent string) string {
	c.Helper()
	var s struct{ ID string }
	if _, body := c.call("POST", "/session", fmt.Sprintf(`{"agent":%q}`, agent)); json.Unmarshal([]byte(body), &s) != nil || s.ID == "" {
		c.Fatalf("no session: %s", body)
	}
	return s.ID
}

// later makes a request whose answer is waited for later.
func (c *client) later(path, body string) <-chan string {
	answer := make(chan string, 1)
	go func() {
		status, body := c.call("POST", path, body)
		answer <- fmt.Sprintf("%d %s", status, body)
	}()
	return answer
}

// listen reads events until one has all the words; leave ends the stream.
func (c *client) listen() (until func(words ...string) map[string]any, leave func()) {
	c.Helper()
	return c.listenTo("/event")
}

func (c *client) listenTo(stream string) (until func(words ...string) map[string]any, leave func()) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), clientLimit)
	req, err := http.NewRequestWithContext(ctx, "GET", c.url+stream+"?directory="+url.QueryEscape(c.dir), nil)
	if err != nil {
		c.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.Fatal(err)
	}
	lines := bufio.NewReader(resp.Body)
	until = func(words ...string) map[string]any {
		c.Helper()
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				c.Fatalf("no event has %q: %v", words, err)
			}
			data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
			if !ok {
				continue
			}
			if stream == "/global/event" {
				var e struct{ Payload json.RawMessage }
				if json.Unmarshal([]byte(data), &e) != nil || strings.Contains(string(e.Payload), `"server.`) == strings.Contains(data, `"directory"`) {
					c.Errorf("it has %s", data)
				}
				data = string(e.Payload)
			}
			if err := contract.Event([]byte(data)); err != nil {
				c.Error(err)
			}
			has := true
			for _, word := range words {
				has = has && strings.Contains(data, word)
			}
			var e struct{ Properties map[string]any }
			if has && json.Unmarshal([]byte(data), &e) == nil {
				return e.Properties
			}
		}
	}
	until("server.connected")
	return until, func() { cancel(); resp.Body.Close() }
}

// family is the model of a Commander with one task, and of its worker.
func family(worker func(r scripted.Request) scripted.Answer) func(r scripted.Request) scripted.Answer {
	return func(r scripted.Request) scripted.Answer {
		switch {
		case len(r.Tools()) == 0:
			return scripted.Answer{Say: "A summary."}
		case r.Agent() != "commander":
			return worker(r)
		case r.Step() == 1:
			return scripted.Answer{Calls: []scripted.Call{{Name: "delegate_task", Arguments: `{"agent":"worker","description":"Touch","prompt":"Touch it.","background":false}`}}}
		}
		return scripted.Answer{Say: "The Commander has ended."}
	}
}

func touching(r scripted.Request) scripted.Answer {
	if r.Step() == 1 {
		return scripted.Answer{Calls: []scripted.Call{{Name: "bash", Arguments: `{"command":"touch asked-for","description":"Touch"}`}}}
	}
	return scripted.Answer{Say: "It is touched."}
}

// Issue "Real OpenCode clients", hangs: the ask of a child reaches who watches its root, outlives its reader, is listed to the next client,
// and an answer from any client ends it in all of them; the mission's caller is answered.
func TestServeAskOfChild(t *testing.T) {
	c := startServe(t, family(touching)).client(t)
	root := c.open("commander")
	first, leave := c.listen()
	done := c.later("/session/"+root+"/command", `{"command":"task","arguments":"Touch it."}`)
	asked := first(`"permission.asked"`)
	leave() // no client watches: it waits
	child, id := asked["sessionID"].(string), asked["id"].(string)
	if child == root {
		t.Fatal("the root asks, and not its child")
	}
	if _, body := c.call("GET", "/session/"+child, ""); !strings.Contains(body, `"parentID":"`+root+`"`) {
		t.Errorf("the child's parent is not told: %s", body)
	}
	if _, body := c.call("GET", "/session/"+root+"/children", ""); !strings.Contains(body, child) {
		t.Errorf("the child is not listed: %s", body)
	}
	second, leave := c.listen()
	defer leave()
	if _, body := c.call("GET", "/permission", ""); !strings.Contains(body, id) || !strings.Contains(body, "touch asked-for") {
		t.Errorf("the next client is not told of the ask: %s", body)
	}
	if _, body := c.call("GET", "/session/status", ""); !strings.Contains(body, root) || !strings.Contains(body, child) {
		t.Errorf("the states while it asks: %s", body)
	}
	if status, body := c.call("POST", "/permission/"+id+"/reply", `{"reply":"once"}`); status != http.StatusOK {
		t.Errorf("the answer: %d %s", status, body)
	}
	second(`"permission.replied"`, id)
	if status, body := c.call("POST", "/permission/"+id+"/reply", `{"reply":"once"}`); status != http.StatusNotFound {
		t.Errorf("a second answer: %d %s", status, body)
	}
	if got := <-done; !strings.HasPrefix(got, "200 ") || !strings.Contains(got, "The Commander has ended.") {
		t.Errorf("the caller is answered with %s", got)
	}
	second(`"session.idle"`, root)
	if _, body := c.call("GET", "/session/status", ""); strings.TrimSpace(body) != "{}" {
		t.Errorf("the states at the end: %s", body)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "asked-for")); err != nil {
		t.Error(err)
	}
}

// An ask waits when no client has ever watched.
func TestServeAskUnwatched(t *testing.T) {
	c := startServe(t, touching).client(t)
	root := c.open("assistant")
	if status, body := c.call("POST", "/session/"+root+"/prompt_async", `{"parts":[{"type":"text","text":"Touch it."}]}`); status != http.StatusNoContent {
		t.Fatalf("%d %s", status, body)
	}
	var asks []struct{ ID string }
	for end := time.Now().Add(clientLimit); len(asks) == 0; {
		if _, body := c.call("GET", "/permission", ""); json.Unmarshal([]byte(body), &asks) != nil || time.Now().After(end) {
			t.Fatalf("no ask is listed: %s", body)
		}
	}
	until, leave := c.listen()
	defer leave()
	if status, body := c.call("POST", "/permission/"+asks[0].ID+"/reply", `{"reply":"reject","message":"not now"}`); status != http.StatusOK {
		t.Errorf("the answer: %d %s", status, body)
	}
	until(`"session.idle"`, root)
	if _, body := c.call("GET", "/session/"+root+"/message", ""); !strings.Contains(body, "not now") || !strings.Contains(body, "It is touched.") {
		t.Errorf("the agent was not told of the refusal: %s", body)
	}
}

// A parent does not wait for a child that has failed or that a client has aborted.
func TestServeChildEnds(t *testing.T) {
	for name, test := range map[string]struct {
		child scripted.Answer
		abort bool
	}{
		"fails":      {child: scripted.Answer{Error: &scripted.Error{Status: http.StatusBadRequest, Message: "it cannot be done"}}},
		"is aborted": {child: scripted.Answer{Say: "Never.", Delay: time.Hour}, abort: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := startServe(t, family(func(scripted.Request) scripted.Answer { return test.child })).client(t)
			root := c.open("commander")
			until, leave := c.listen()
			defer leave()
			done := c.later("/session/"+root+"/command", `{"command":"task","arguments":"Touch it."}`)
			child := until(`"session.created"`, `"parentID":"`+root+`"`)["sessionID"].(string)
			if test.abort {
				until(`"message.updated"`, child, `"role":"assistant"`)
				if status, body := c.call("POST", "/session/"+child+"/abort", ""); status != http.StatusOK {
					t.Errorf("abort: %d %s", status, body)
				}
			}
			until(`"session.idle"`, child)
			if got := <-done; !strings.HasPrefix(got, "200 ") || !strings.Contains(got, "The Commander has ended.") {
				t.Errorf("the caller is answered with %s", got)
			}
		})
	}
}

// Who waits for an answer that is aborted gets what there is of it, and the session continues.
func TestServeAbort(t *testing.T) {
	c := startServe(t, func(r scripted.Request) scripted.Answer {
		if r.Step() == 1 && !strings.Contains(r.Last(), "again") {
			return scripted.Answer{Say: "Never.", Delay: time.Hour}
		}
		return scripted.Answer{Say: "Here I am."}
	}).client(t)
	root := c.open("assistant")
	until, leave := c.listen()
	defer leave()
	const message = `{"parts":[{"type":"text","text":%q}]}`
	done := c.later("/session/"+root+"/message", fmt.Sprintf(message, "say it"))
	until(`"message.updated"`, root, `"role":"assistant"`)
	if status, body := c.call("POST", "/session/"+root+"/abort", ""); status != http.StatusOK {
		t.Errorf("abort: %d %s", status, body)
	}
	if got := <-done; !strings.HasPrefix(got, "200 ") || !strings.Contains(got, `"MessageAbortedError"`) {
		t.Errorf("the caller is answered with %s", got)
	}
	until(`"session.idle"`, root)
	if got := <-c.later("/session/"+root+"/message", fmt.Sprintf(message, "say it again")); !strings.HasPrefix(got, "200 ") || !strings.Contains(got, "Here I am.") {
		t.Errorf("the next message is answered with %s", got)
	}
}

// The stream of all projects has the events of each that the server has opened, also of one that is opened later.
func TestServeEventsOfAllProjects(t *testing.T) {
	c := startServe(t, func(scripted.Request) scripted.Answer { return scripted.Answer{Say: "Yes."} }).client(t)
	until, leave := c.listenTo("/global/event")
	defer leave()
	own, leaveOwn := c.listen()
	defer leaveOwn()
	other := &client{t, c.url, t.TempDir()}
	there, here := other.open("assistant"), c.open("assistant")
	until(`"session.created"`, there)
	until(`"session.created"`, here)
	if e := own(`"session.created"`); e["sessionID"] != here {
		t.Errorf("the stream of one project has %v", e)
	}
}

// An abort right behind the message ends the turn, which has hardly begun.
func TestServeAbortAtOnce(t *testing.T) {
	c := startServe(t, func(scripted.Request) scripted.Answer { return scripted.Answer{Say: "Never.", Delay: time.Hour} }).client(t)
	until, leave := c.listen()
	defer leave()
	for range 5 {
		root := c.open("assistant")
		c.call("POST", "/session/"+root+"/prompt_async", `{"parts":[{"type":"text","text":"say it"}]}`)
		if status, body := c.call("POST", "/session/"+root+"/abort", ""); status != http.StatusOK {
			t.Errorf("abort: %d %s", status, body)
		}
		until(`"session.idle"`, root)
	}
}
