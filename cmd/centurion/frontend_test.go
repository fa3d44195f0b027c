package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"

	"centurion"
	"centurion/event/agent"
)

// frontend plays a front end: it runs the command in its arguments after the first, which names a file with steps, and
// speaks with it over its standard streams. What is said is written to standard output, with ids numbered by their
// appearance, and after it the events, in their order: first those of the session itself, then its children's. The steps, one a line, with
// $NAME for what an answer gave, or the environment:
//
//	send ID METHOD PARAMS      call a method
//	answer ID [NAME=FIELD…]    wait for the answer
//	asked METHOD [NAME=FIELD…] wait for a call of the other side
//	reply RESULT | refuse TEXT answer the newest of those calls, with a result or an error
//	told METHOD TEXT           wait for a notification that holds a text
//	raw TEXT                   send a line as it is
//	big MB                     send a line of that size
//	run COMMAND ARG…           run a command, as another process
//	close                      end the other side's input
func frontend() {
	if err := playFrontEnd(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "frontend:", err)
		os.Exit(1)
	}
}

type rpcLine struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	whole string
}

// player is a front end that follows steps.
type player struct {
	in     io.WriteCloser
	mu     sync.Mutex
	got    []rpcLine
	used   map[int]bool
	more   chan struct{}
	vars   map[string]string
	ids    map[string]string
	counts map[string]int
	asked  json.RawMessage
}

func playFrontEnd(steps string, command []string) error {
	script, err := os.ReadFile(steps)
	if err != nil {
		return err
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	p := &player{used: map[int]bool{}, more: make(chan struct{}, 1), vars: map[string]string{}, ids: map[string]string{}, counts: map[string]int{}}
	if p.in, err = cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var reading sync.WaitGroup
	var bad error
	reading.Go(func() {
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadBytes('\n')
			if len(line) > 0 {
				var l rpcLine
				if jerr := json.Unmarshal(line, &l); jerr != nil {
					bad = fmt.Errorf("not a message: %s", line)
				}
				l.whole = string(line)
				p.mu.Lock()
				p.got = append(p.got, l)
				p.mu.Unlock()
				select {
				case p.more <- struct{}{}:
				default:
				}
			}
			if err != nil {
				return
			}
		}
	})
	for n, step := range strings.Split(string(script), "\n") {
		if step = strings.TrimSpace(step); step == "" || step[0] == '#' {
			continue
		}
		if err := p.step(step); err != nil {
			_ = cmd.Process.Kill()
			return fmt.Errorf("step %d, %s: %w", n+1, step, err)
		}
	}
	_ = p.in.Close()
	reading.Wait()
	err = cmd.Wait()
	for _, nested := range []bool{false, true} { // what comes first of two sessions that work at once is anybody's guess
		for _, line := range p.events(nested) {
			fmt.Println("  " + line)
		}
	}
	return errors.Join(err, bad)
}

func (p *player) step(step string) error {
	step = os.Expand(step, func(name string) string {
		return cmp.Or(p.vars[name], os.Getenv(name), "$"+name)
	})
	word, rest, _ := strings.Cut(step, " ")
	first, more, _ := strings.Cut(rest, " ")
	switch word {
	case "send":
		method, params, _ := strings.Cut(more, " ")
		id := ""
		if first != "-" {
			id = `"id":` + first + ","
		}
		fmt.Println("→", first, method, p.plain(params))
		return p.write(fmt.Sprintf(`{"jsonrpc":"2.0",%s"method":%q,"params":%s}`, id, method, params))
	case "answer":
		l, err := p.await(func(l rpcLine) bool { return string(l.ID) == first && l.Method == "" })
		if err != nil {
			return err
		}
		if l.Error != nil {
			fmt.Println("←", first, "error", l.Error.Code, p.plain(l.Error.Message))
			return nil
		}
		fmt.Println("←", first, p.plain(string(l.Result)))
		return p.keep(l.Result, more)
	case "asked":
		l, err := p.await(func(l rpcLine) bool { return l.Method == first && l.ID != nil })
		if err != nil {
			return err
		}
		p.asked = l.ID
		fmt.Println("←", l.Method, p.plain(string(l.Params)))
		return p.keep(l.Params, more)
	case "reply":
		fmt.Println("→", p.plain(rest))
		return p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, p.asked, rest))
	case "refuse":
		fmt.Println("→ error", rest)
		return p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":%q}}`, p.asked, rest))
	case "told":
		l, err := p.await(func(l rpcLine) bool { return l.Method == first && strings.Contains(string(l.Params), more) })
		if err == nil && first != "session/event" {
			fmt.Println("←", first, p.plain(string(l.Params)))
		}
		return err
	case "raw":
		fmt.Println("→", rest)
		return p.write(rest)
	case "big":
		var mb int
		_, err := fmt.Sscan(rest, &mb)
		return errors.Join(err, p.write(`{"x":"`+strings.Repeat("x", mb<<20)+`"}`))
	case "run":
		args := strings.Fields(rest)
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		fmt.Println("$", p.plain(rest))
		fmt.Print(p.plain(string(out)))
		return err
	case "close":
		return p.in.Close()
	}
	return fmt.Errorf("no such step")
}

func (p *player) write(line string) error {
	_, err := io.WriteString(p.in, line+"\n")
	return err
}

// await returns the first message not yet waited for that matches.
func (p *player) await(match func(rpcLine) bool) (rpcLine, error) {
	late := time.After(patience)
	for {
		p.mu.Lock()
		for i, l := range p.got {
			if !p.used[i] && match(l) {
				p.used[i] = true
				p.mu.Unlock()
				return l, nil
			}
		}
		p.mu.Unlock()
		select {
		case <-p.more:
		case <-late:
			p.mu.Lock()
			defer p.mu.Unlock()
			var all strings.Builder
			for _, l := range p.got {
				all.WriteString(l.whole)
			}
			return rpcLine{}, fmt.Errorf("it did not come; what came is:\n%s", all.String())
		}
	}
}

// keep puts fields of an answer into variables.
func (p *player) keep(result json.RawMessage, names string) error {
	if names == "" {
		return nil
	}
	var m map[string]any
	if err := json.Unmarshal(result, &m); err != nil {
		return err
	}
	for n := range strings.FieldsSeq(names) {
		name, field, _ := strings.Cut(n, "=")
		p.vars[name] = fmt.Sprint(m[field])
	}
	return nil
}

var (
	anID      = regexp.MustCompile(`\b(msn|ses|tsk|per|que|msg|prt|dlv|call)_[0-9A-Za-z_]+`)
	aDir      = regexp.MustCompile(`/[^" ]*/p\b`)
	aNumber   = regexp.MustCompile(`"(input|output|read|seq|max_line|cost)":[0-9.e-]+`)
	aVersion  = regexp.MustCompile(`"version":"[0-9.]+"`)
	aTime     = regexp.MustCompile(`"since":"[^"]*"`)
	someSpace = regexp.MustCompile(`  +`)
)

// plain makes what differs from run to run the same.
func (p *player) plain(s string) string {
	s = anID.ReplaceAllStringFunc(s, func(id string) string {
		if p.ids[id] == "" {
			kind, _, _ := strings.Cut(id, "_")
			p.counts[kind]++
			p.ids[id] = fmt.Sprintf("%s_%d", kind, p.counts[kind])
		}
		return p.ids[id]
	})
	s = aTime.ReplaceAllString(s, `"since":T`)
	s = aNumber.ReplaceAllString(aDir.ReplaceAllString(s, "DIR"), `"$1":N`)
	return someSpace.ReplaceAllString(aVersion.ReplaceAllString(s, `"version":V`), " ")
}

// events are the events that came of the session itself or of its children, in their order; pieces of one text are one line.
func (p *player) events(nested bool) []string {
	var all []string
	for _, l := range p.got {
		var e centurion.Event
		if l.Method != "session/event" || json.Unmarshal(l.Params, &e) != nil || (e.Type == agent.SubAgentEvent) != nested {
			continue
		}
		line := ""
		typ, data := e.Type, e.Data
		for typ == agent.SubAgentEvent {
			var v agent.SubAgentData
			_ = json.Unmarshal(data, &v)
			line += "│ "
			typ, data = v.Event.Type, v.Event.Data
		}
		line += string(typ)
		var v struct{ Name, Delta, Error, Reason string }
		if !bytes.Contains(data, []byte(`"message":{`)) {
			_ = json.Unmarshal(data, &v)
		}
		switch typ {
		case agent.MessageDelta, agent.ThinkingDelta:
			if n := len(all); n > 0 && strings.HasPrefix(all[n-1], line+" ") {
				all[n-1] += v.Delta
				continue
			}
			line += " " + v.Delta
		case agent.ToolStart, agent.ToolEnd:
			line += " " + v.Name
			if v.Error != "" {
				line += ": error"
			}
		case agent.Error:
			line += " " + v.Reason
		}
		all = append(all, line)
	}
	return all
}
