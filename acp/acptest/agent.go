// Package acptest is an agent of the Agent Client Protocol that does what a script says, also what no agent should.
package acptest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Agent is a scripted agent. A script has one step a line:
//
//	version 2 | load | auth | on TEXT          before the turns: what it says of itself; a turn for prompts that contain TEXT, the first
//	                                           that fits, or any without TEXT. A turn "once TEXT" is taken once, also by later processes
//	say TEXT | think TEXT | plan A|B | cost N  tells it; \n is a new line, $PROMPT the prompt, $CWD the directory
//	call ID KIND TITLE                         begins a call; done ID TEXT and fail ID TEXT end it; diff ID PATH|OLD|NEW has a change
//	permit KIND TITLE | JSON                   asks, and says which option was chosen; JSON are more fields of the call
//	read PATH | write PATH TEXT                by the client; the content or the error is said
//	sh SCRIPT                                  runs it in the directory, and says what it printed
//	raw LINE | flood N | sleep DURATION        writes a line as it is; N messages of 1 MB; nothing
//	hang | die CODE | error CODE TEXT          never answers; ends the process; fails
//	stop REASON | twice | silent | late        answers with that reason; twice; without a reason; without one, and goes on with the steps
type Agent struct {
	Script string
	State  string // a directory in which it remembers which turns were taken once; "" forgets with the process
	Exit   func(code int)

	in   *bufio.Scanner
	out  io.Writer
	cwd  string
	id   int
	took map[string]bool
}

// turn is a part of a script.
type turn struct {
	on    string
	once  bool
	steps []string
}

func (a *Agent) parse() (about []string, turns []turn) {
	for line := range strings.Lines(a.Script) {
		line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || line[0] == '#':
		case word == "on" || word == "once":
			turns = append(turns, turn{on: rest, once: word == "once"})
		case len(turns) == 0:
			about = append(about, line)
		default:
			turns[len(turns)-1].steps = append(turns[len(turns)-1].steps, line)
		}
	}
	return about, turns
}

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Serve speaks until in ends.
func (a *Agent) Serve(in io.Reader, out io.Writer) {
	a.in, a.out, a.took = bufio.NewScanner(in), out, map[string]bool{}
	a.in.Buffer(nil, 64<<20)
	about, turns := a.parse()
	says := func(what string) bool {
		return slices.Contains(about, what)
	}
	for {
		m, ok := a.next()
		if !ok {
			return
		}
		var p struct {
			Cwd    string `json:"cwd"`
			ID     string `json:"sessionId"`
			Prompt []struct {
				Text string `json:"text"`
			} `json:"prompt"`
		}
		_ = json.Unmarshal(m.Params, &p)
		switch m.Method {
		case "initialize":
			version := 1
			if says("version 2") {
				version = 2
			}
			a.answer(m.ID, map[string]any{"protocolVersion": version, "agentCapabilities": map[string]any{"loadSession": says("load")},
				"authMethods": []any{map[string]string{"id": "login", "name": "Log in", "description": "run: agent login"}}})
		case "session/new", "session/load":
			a.cwd = p.Cwd
			switch {
			case says("auth"):
				a.fail(m.ID, -32000, "Authentication required")
			case m.Method == "session/new":
				a.answer(m.ID, map[string]any{"sessionId": fmt.Sprintf("own-%d", time.Now().UnixNano())})
			case says("forgets"):
				a.fail(m.ID, -32002, "no such session")
			default:
				a.update(p.ID, "agent_message_chunk", map[string]any{"content": text("said before")})
				a.answer(m.ID, nil)
			}
		case "session/prompt":
			if len(p.Prompt) > 0 && !a.turn(m.ID, p.ID, p.Prompt[0].Text, turns) {
				return
			}
		}
	}
}

func (a *Agent) next() (m request, ok bool) {
	for a.in.Scan() {
		if json.Unmarshal(a.in.Bytes(), &m) == nil {
			return m, true
		}
	}
	return m, false
}

// turn takes the first turn that fits.
func (a *Agent) turn(id json.RawMessage, session, prompt string, turns []turn) bool {
	for _, t := range turns {
		mark := strconv.Quote(t.on)
		if !strings.Contains(prompt, t.on) || t.once && a.done(mark) {
			continue
		}
		return a.play(id, session, prompt, t.steps)
	}
	a.answer(id, map[string]string{"stopReason": "end_turn"})
	return true
}

// done reports whether a turn was taken, and takes it.
func (a *Agent) done(mark string) bool {
	if a.State != "" {
		f, err := os.OpenFile(filepath.Join(a.State, fmt.Sprintf("%x", mark)), os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return true
		}
		return f.Close() != nil
	}
	was := a.took[mark]
	a.took[mark] = true
	return was
}

func (a *Agent) play(id json.RawMessage, session, prompt string, steps []string) bool {
	tell := func(kind string, more map[string]any) { a.update(session, kind, more) }
	for _, step := range steps {
		word, rest, _ := strings.Cut(step, " ")
		rest = strings.NewReplacer(`\n`, "\n", "$CWD", a.cwd, "$PROMPT", prompt).Replace(rest)
		first, second, _ := strings.Cut(rest, " ")
		switch word {
		case "say":
			tell("agent_message_chunk", map[string]any{"content": text(rest)})
		case "think":
			tell("agent_thought_chunk", map[string]any{"content": text(rest)})
		case "plan":
			var entries []any
			for line := range strings.SplitSeq(rest, "|") {
				entries = append(entries, map[string]string{"content": line, "priority": "medium", "status": "pending"})
			}
			tell("plan", map[string]any{"entries": entries})
		case "cost":
			amount, _ := strconv.ParseFloat(rest, 64)
			tell("usage_update", map[string]any{"used": 1, "size": 2, "cost": map[string]any{"amount": amount, "currency": "USD"}})
		case "call":
			kind, title, _ := strings.Cut(second, " ")
			tell("tool_call", map[string]any{"toolCallId": first, "kind": kind, "title": title, "status": "in_progress"})
		case "done", "fail":
			status := map[string]string{"done": "completed", "fail": "failed"}[word]
			tell("tool_call_update", map[string]any{"toolCallId": first, "status": status, "content": []any{map[string]any{"type": "content", "content": text(second)}}})
		case "diff":
			f := append(strings.Split(second, "|"), "", "")
			tell("tool_call_update", map[string]any{"toolCallId": first, "content": []any{map[string]any{"type": "diff", "path": f[0], "oldText": f[1], "newText": f[2]}}})
		case "permit":
			title, more, _ := strings.Cut(second, "|")
			call := map[string]any{"toolCallId": fmt.Sprintf("asked-%d", a.id), "kind": first, "title": strings.TrimSpace(title)}
			var fields map[string]any
			_ = json.Unmarshal([]byte(more), &fields)
			maps.Copy(call, fields)
			m := a.ask("session/request_permission", map[string]any{"sessionId": session, "toolCall": call, "options": []any{
				map[string]string{"optionId": "yes", "name": "Yes", "kind": "allow_once"}, map[string]string{"optionId": "no", "name": "No", "kind": "reject_once"}}})
			var got struct {
				Outcome struct {
					Option string `json:"optionId"`
				} `json:"outcome"`
			}
			_ = json.Unmarshal(m.Result, &got)
			tell("agent_message_chunk", map[string]any{"content": text("[" + title + ": " + got.Outcome.Option + "]")})
		case "read", "write":
			m := a.ask("fs/"+word+"_text_file", map[string]any{"sessionId": session, "path": first, "content": second})
			var got struct{ Content string }
			_ = json.Unmarshal(m.Result, &got)
			if m.Error != nil {
				got.Content = m.Error.Message
			}
			tell("agent_message_chunk", map[string]any{"content": text("[" + word + ": " + got.Content + "]")})
		case "sh":
			cmd := exec.Command("sh", "-c", rest)
			cmd.Dir = a.cwd
			b, err := cmd.CombinedOutput()
			tell("agent_message_chunk", map[string]any{"content": text(fmt.Sprintf("[sh: %s%v]", b, err))})
		case "raw":
			_, _ = io.WriteString(a.out, rest+"\n")
		case "flood":
			n, _ := strconv.Atoi(rest)
			for range n {
				tell("agent_message_chunk", map[string]any{"content": text(strings.Repeat("x", 1<<20))})
			}
		case "sleep":
			d, _ := time.ParseDuration(rest)
			time.Sleep(d)
		case "hang":
			for {
				if m, ok := a.next(); !ok || m.Method == "session/cancel" {
					a.answer(id, map[string]string{"stopReason": "cancelled"})
					return ok
				}
			}
		case "die":
			code, _ := strconv.Atoi(rest)
			if a.Exit != nil {
				a.Exit(code)
			}
			return false
		case "error":
			code, _ := strconv.Atoi(first)
			a.fail(id, code, second)
			return true
		case "stop":
			a.answer(id, map[string]string{"stopReason": rest})
			return true
		case "twice":
			a.answer(id, map[string]string{"stopReason": "end_turn"})
			a.answer(id, map[string]string{"stopReason": "refusal"})
			return true
		case "silent":
			a.answer(id, map[string]any{})
			return true
		case "late":
			a.answer(id, map[string]any{})
		}
	}
	a.answer(id, map[string]string{"stopReason": "end_turn"})
	return true
}

func text(s string) map[string]string { return map[string]string{"type": "text", "text": s} }

func (a *Agent) send(m map[string]any) {
	m["jsonrpc"] = "2.0"
	b, _ := json.Marshal(m)
	_, _ = a.out.Write(append(b, '\n'))
}

func (a *Agent) answer(id json.RawMessage, result any) {
	a.send(map[string]any{"id": id, "result": result})
}

func (a *Agent) fail(id json.RawMessage, code int, why string) {
	a.send(map[string]any{"id": id, "error": map[string]any{"code": code, "message": why}})
}

func (a *Agent) update(session, kind string, fields map[string]any) {
	fields["sessionUpdate"] = kind
	a.send(map[string]any{"method": "session/update", "params": map[string]any{"sessionId": session, "update": fields}})
}

// ask makes a request and waits for its answer.
func (a *Agent) ask(method string, params any) request {
	a.id++
	a.send(map[string]any{"id": fmt.Sprintf("q%d", a.id), "method": method, "params": params})
	for {
		m, ok := a.next()
		if !ok || m.Method == "" && string(m.ID) == fmt.Sprintf(`"q%d"`, a.id) {
			return m
		}
	}
}
