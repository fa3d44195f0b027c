package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
	"centurion/provider/scripted"
	"centurion/server"
)

// said is the body of a message, which may name an agent.
func said(text, agent string) string {
	if agent == "" {
		return fmt.Sprintf(`{"parts":[{"type":"text","text":%q}]}`, text)
	}
	return fmt.Sprintf(`{"parts":[{"type":"text","text":%q}],"agent":%q}`, text, agent)
}

// answerOf takes the answer of a message apart: status, id, agent and text.
func answerOf(t *testing.T, got string) (status, id, agent, text string) {
	t.Helper()
	status, body, _ := strings.Cut(got, " ")
	var m struct {
		Info  struct{ ID, Agent string }
		Parts []struct{ Text string }
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	for _, p := range m.Parts {
		text += p.Text
	}
	return status, m.Info.ID, m.Info.Agent, text
}

// looker is a client of a project in which an agent is at hand that only looks.
func (s *serveTest) looker(t *testing.T) *client {
	t.Helper()
	s.model.AllowRecasts()
	c := s.client(t)
	const own = `{"agent": {"looker": {"mode": "primary", "description": "looks", "prompt": "You are the looker.", "tools": {"bash": false}}}}`
	if err := os.WriteFile(filepath.Join(s.home, ".config/opencode/opencode.json"), []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// Issue "Real OpenCode clients": after the first message a client may name another agent. It answers from that message on, clients are told,
// and the person once that nothing of it is cached. What was said before keeps its agent.
func TestServeAnotherAgent(t *testing.T) {
	c := startServe(t, func(r scripted.Request) scripted.Answer {
		return scripted.Answer{Say: r.Agent() + " with bash: " + fmt.Sprint(strings.Contains(strings.Join(r.Tools(), " "), "bash"))}
	}).looker(t)
	root := c.open("assistant")
	until, leave := c.listen()
	defer leave()
	path := "/session/" + root + "/message"
	for _, test := range []struct{ agent, want, said string }{
		{"assistant", "assistant", "assistant with bash: true"}, {"looker", "looker", "looker with bash: false"},
		{"", "looker", "looker with bash: false"}, {"assistant", "assistant", "assistant with bash: true"},
	} {
		status, _, agent, text := answerOf(t, <-c.later(path, said("who", test.agent)))
		if status != "200" || agent != test.want || text != test.said {
			t.Errorf("%+v: %s %s %q", test, status, agent, text)
		}
	}
	for _, agent := range []string{"looker", "assistant"} {
		until(`"session.updated"`, root, `"agent":"`+agent+`"`)
		until(`"tui.toast.show"`, "paid in full", agent+" continues")
	}
	_, body := c.call("GET", path, "")
	var all []struct{ Info struct{ Role, Agent string } }
	var who []string
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		who = append(who, m.Info.Agent)
	}
	if got := strings.Join(who, " "); got != "assistant assistant looker looker looker looker assistant assistant" {
		t.Errorf("agents of the messages: %s", got)
	}
	for _, agent := range []string{"commander", "worker"} {
		if status, body := c.call("POST", path, said("who", agent)); status != http.StatusBadRequest || !strings.Contains(body, "/task GOAL") || !strings.Contains(body, "/fork") {
			t.Errorf("%s: %d %s", agent, status, body)
		}
	}
	mission := c.open("commander")
	c.call("POST", "/session/"+mission+"/message", said("who", ""))
	if status, body := c.call("POST", "/session/"+mission+"/message", said("who", "looker")); status != http.StatusBadRequest || !strings.Contains(body, "/fork") {
		t.Errorf("in a mission: %d %s", status, body)
	}
}

// Issue "Real OpenCode clients": two prompts at once, also if they are the first ones, are both answered with the last answer before the
// session rests, as OpenCode's server does; an abort answers all that wait.
func TestServeTwoAtOnce(t *testing.T) {
	going := make(chan struct{})
	c := startServe(t, func(r scripted.Request) scripted.Answer {
		if strings.Contains(r.Last(), "slow") {
			going <- struct{}{}
			<-going
		}
		return scripted.Answer{Say: "to: " + r.Last()}
	}).client(t)
	api := server.NewPortClient(c.url, "", c.dir)
	defer api.Close()
	root := c.open("assistant")
	path := "/session/" + root + "/message"
	var first []<-chan string
	for range 8 {
		first = append(first, c.later(path, said("one", "")))
	}
	for _, answer := range first {
		got := <-answer
		if status, _, _, text := answerOf(t, got); status != "200" || text == "" {
			t.Errorf("the first ones: %s", got)
		}
	}
	for _, last := range []string{"the next", "abort"} {
		first := c.later(path, said("slow", ""))
		<-going
		if status, body := c.call("POST", "/session/"+root+"/prompt_async", said("aside", "")); status != http.StatusNoContent {
			t.Errorf("%d %s", status, body)
		}
		second := c.later(path, said(last, ""))
		for e, err := range api.Events(t.Context(), server.EventQuery{Follow: true}) {
			if err != nil || e.Type == centurion.EventMessageQueued && strings.Contains(string(e.Data), last) {
				break
			}
		}
		if last == "abort" {
			c.call("POST", "/session/"+root+"/abort", "")
		}
		going <- struct{}{}
		a, b := <-first, <-second
		_, id, _, text := answerOf(t, a)
		status, other, _, _ := answerOf(t, b)
		if status != "200" || id != other || strings.Contains(b, "MessageAbortedError") != (last == "abort") {
			t.Errorf("%s: %s and %s", last, a, b)
		}
		if last != "abort" && !strings.Contains(text, "aside") {
			t.Errorf("the last answer is %q", text)
		}
	}
}

// Who types /plan is asked before anything is written, also by a Commander that does small work by itself.
func TestServePlanFirst(t *testing.T) {
	write := scripted.Answer{Calls: []scripted.Call{{Name: "write", Arguments: `{"filePath":"a.txt","content":"a"}`}}}
	c := startServe(t, func(r scripted.Request) scripted.Answer {
		switch {
		case len(r.Tools()) == 0:
			return scripted.Answer{Say: "A summary."}
		case r.Step() == 1, r.Step() == 3:
			return write
		case r.Step() == 2:
			return scripted.Answer{Calls: []scripted.Call{{Name: "update_todo", Arguments: `{"level":1,"content":"- [ ] T1 Write it\n  - verify: test -f a.txt\n"}`}}}
		case r.Step() == 4:
			return scripted.Answer{Calls: []scripted.Call{{Name: "update_todo", Arguments: `{"items":[{"id":"T1","status":"done"}]}`}}}
		}
		return scripted.Answer{Say: "It is written."}
	}).client(t)
	root := c.open("assistant")
	until, leave := c.listen()
	defer leave()
	done := c.later("/session/"+root+"/command", `{"command":"plan","arguments":"write a.txt"}`)
	ask := until(`"question.asked"`, root, "T1 Write it")
	if _, err := os.Stat(filepath.Join(c.dir, "a.txt")); err == nil {
		t.Error("it was written before the answer")
	}
	if status, body := c.call("POST", "/question/"+ask["id"].(string)+"/reply", `{"answers":[["run"]]}`); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	if got := <-done; !strings.HasPrefix(got, "200 ") || !strings.Contains(got, "It is written.") {
		t.Errorf("the caller is answered with %s", got)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "a.txt")); err != nil {
		t.Error(err)
	}
}
