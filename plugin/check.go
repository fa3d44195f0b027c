package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/text"
)

// Finding is one thing at which [Check] has looked.
type Finding struct {
	What  string   `json:"what"`
	Holds bool     `json:"holds"`
	Note  string   `json:"note,omitempty"`
	Wrong string   `json:"wrong,omitempty"`
	Sent  []string `json:"sent,omitempty"` // the lines, where it is wrong
	Got   []string `json:"got,omitempty"`
}

// Lines are what a person is shown of it.
func (f Finding) Lines() string {
	var lines strings.Builder
	said := f.Wrong + f.Note
	fmt.Fprintf(&lines, "%-5s  %s%s\n", text.If(f.Holds, "ok", "wrong"), text.Clean(f.What), text.When(said != "", ": "+text.Clean(said)))
	for _, line := range slices.Concat(text.Each(f.Sent, func(s string) string { return "> " + s }), text.Each(f.Got, func(s string) string { return "< " + s })) {
		fmt.Fprintf(&lines, "       %s\n", text.Clean(centurion.Clip(line, 500)))
	}
	return lines.String()
}

// Check plays each message of the protocol at a native plugin, whose tools it calls, and returns what it found, in that order. Of the time
// limits of o, that for a hook counts for all but the start. The error is that of the start, or the end of ctx.
func Check(ctx context.Context, command []string, o Options) ([]Finding, error) {
	c := &checker{o: o.limited(), command: command, plug: &plug{name: command[0]}}
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	defer c.end()
	c.step(ctx, "init", c.init)
	if c.all[0].Wrong != "" {
		return c.all, context.Cause(ctx)
	}
	c.step(ctx, "ping", func() (string, string) { return "", c.wrongOf(c.ask("ping", nil)) })
	c.step(ctx, "two messages at once", func() (string, string) {
		_, wrong := c.await(c.o.HookLimit, c.send(0, "ping", nil), c.send(0, "ping", nil))
		return "", wrong
	})
	for _, hook := range c.plug.hooks {
		c.step(ctx, "hook "+hook, func() (string, string) { return c.hook(hook) })
	}
	for _, tool := range c.plug.tools {
		good, bad := argumentsFor(tool.Schema)
		c.step(ctx, "tool "+tool.Name, func() (string, string) { return c.tool(tool.Name, good) })
		c.step(ctx, "tool "+tool.Name+" with wrong arguments", func() (string, string) { return c.badTool(tool.Name, bad) })
		c.step(ctx, "abort of tool "+tool.Name, func() (string, string) { return c.abort(tool.Name, good) })
	}
	c.step(ctx, "abort and answer without a call", func() (string, string) {
		c.send(c.n, "abort", nil)
		c.send(c.n, "answer", map[string]any{"n": 1})
		return "", c.wrongOf(c.ask("ping", nil))
	})
	c.step(ctx, "a message that it does not know", c.unknown)
	c.step(ctx, "dispose", func() (string, string) {
		_, wrong := c.await(disposing, c.send(0, "dispose", nil))
		return "", wrong
	})
	c.step(ctx, "the end of its input", c.leave)
	f := Finding{What: "nothing but answers", Holds: len(c.strays) == 0}
	if !f.Holds {
		f.Wrong, f.Got = "lines that are no answer that is awaited: see them", c.strays
	}
	return append(c.all, f), context.Cause(ctx)
}

// checker plays the protocol at one process at a time.
type checker struct {
	o       Options
	command []string
	plug    *plug // what init says
	group   *guard.Group
	proc    Process
	*lines
	heard chan []byte // lines; closed at the end
	gone  chan struct{}
	exit  error // once it is gone
	n     int
	ended map[int]bool // the messages that were answered
	ctx   context.Context

	silent    bool // the last answer did not come in time
	all       []Finding
	strays    []string
	sent, got []string // of one step
}

// start starts a process.
func (c *checker) start(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, c.o.InitLimit)
	defer cancel()
	proc, err := c.o.Start(limited, Start{Name: c.plug.name, Command: c.command})
	if err != nil {
		return err
	}
	heard, gone := make(chan []byte), make(chan struct{})
	c.group, c.proc, c.heard, c.gone, c.ended = &guard.Group{}, proc, heard, gone, map[int]bool{}
	l := newLines(proc, c.group, nil)
	c.lines = l
	c.group.Go("read a plugin", func() error {
		defer close(heard)
		for {
			line, err := l.Next()
			if err == nil {
				err = l.rate.Hit(1)
			}
			if err != nil {
				l.Close(err)
				return nil
			}
			select {
			case heard <- line:
			case <-l.Done:
				return nil
			}
		}
	})
	c.group.Go("wait for a plugin", func() error {
		c.exit = proc.Wait()
		close(gone)
		return nil
	})
	return nil
}

// end ends the process.
func (c *checker) end() {
	c.Close(centurion.ErrShutdown)
	c.proc.Kill()
	_ = c.group.Wait()
}

// step looks at one thing. A process that the one before has ended is started again.
func (c *checker) step(ctx context.Context, what string, look func() (note, wrong string)) {
	if ctx.Err() != nil {
		return
	}
	c.ctx = ctx
	f := Finding{What: what}
	if guard.Closed(c.Done) {
		c.end()
		if err := c.start(ctx); err != nil {
			f.Wrong = err.Error()
			c.all = append(c.all, f)
			return
		}
		_, _ = c.await(c.o.InitLimit, c.send(0, "init", c.params()))
	}
	c.sent, c.got = nil, nil
	f.Note, f.Wrong = look()
	if f.Holds = f.Wrong == ""; !f.Holds {
		f.Sent, f.Got = c.sent, c.got
	}
	c.all = append(c.all, f)
}

func (c *checker) params() initParams { return (&Host{o: c.o}).initParams(&Source{}) }

// send sends a message with an id, or with the next one, and returns it.
func (c *checker) send(id int, do string, params any) int {
	if id == 0 {
		c.n++
		id = c.n
	}
	m := message{ID: id, Do: do, Plugin: c.plug.name, Params: params}
	if line, err := json.Marshal(m); err == nil {
		c.sent = append(c.sent, string(line))
	}
	_, _ = c.lines.send(m) // an answer is missing then
	return id
}

// ask sends a message and waits for its answer.
func (c *checker) ask(do string, params any) (answer, string) {
	id := c.send(0, do, params)
	all, wrong := c.await(c.o.HookLimit, id)
	return all[id], wrong
}

func (c *checker) wrongOf(a answer, wrong string) string {
	if wrong == "" && a.Error != nil {
		return "it answers with an error"
	}
	return wrong
}

// await waits for the answers to messages.
func (c *checker) await(limit time.Duration, ids ...int) (all map[int]answer, wrong string) {
	ctx, cancel := context.WithTimeout(c.ctx, limit)
	defer cancel()
	all, c.silent = map[int]answer{}, false
	for len(all) < len(ids) {
		var line []byte
		var more bool
		select {
		case line, more = <-c.heard:
		case <-ctx.Done():
			c.silent = true
			return all, "no answer in " + text.Took(limit)
		}
		if !more {
			select {
			case <-c.gone:
			case <-time.After(disposing):
			}
			return all, fmt.Sprintf("its process has ended: %v", cmp.Or(c.why(), c.exitOf(), errEnded))
		}
		c.got = append(c.got, centurion.Clip(string(line), 2000))
		a, err := parse(line)
		switch {
		case err != nil && line[0] != '{':
			if err := c.skip(line); err != nil {
				c.Close(err) // as a host does
				return all, err.Error()
			}
		case err != nil:
			var to struct{ ID int }
			if json.Unmarshal(line, &to) == nil && slices.Contains(ids, to.ID) {
				return all, fmt.Sprintf("this is no answer: it needs one of result, error, progress and ask (%v)", err)
			}
			c.strays = append(c.strays, string(line))
		case a.ID == 0 || c.ended[a.ID] || a.ID > c.n || a.ID < 0:
			c.strays = append(c.strays, string(line))
		case a.Ask != nil:
			c.send(a.ID, "answer", map[string]any{"n": a.N})
		case a.Result != nil || a.Error != nil:
			if c.ended[a.ID] = true; slices.Contains(ids, a.ID) {
				all[a.ID] = a
			}
		}
	}
	return all, ""
}

func (c *checker) exitOf() error {
	if guard.Closed(c.gone) {
		return c.exit
	}
	return nil
}

func (c *checker) init() (note, wrong string) {
	id := c.send(0, "init", c.params())
	all, wrong := c.await(c.o.InitLimit, id)
	if wrong = c.wrongOf(all[id], wrong); wrong != "" {
		return "", wrong
	}
	if err := c.plug.take(all[id].Result); err != nil {
		return "", err.Error()
	}
	var said struct{ Hooks []string }
	_ = json.Unmarshal(all[id].Result, &said) // it was read
	for _, hook := range said.Hooks {
		if !slices.Contains(hooks, hook) {
			c.plug.note("it has a hook " + hook + ", which there is not")
		}
	}
	if len(c.plug.notes) > 0 {
		return "", strings.Join(c.plug.notes, "; ")
	}
	return centurion.Count(len(c.plug.hooks), "hook") + ", " + centurion.Count(len(c.plug.tools), "tool"), ""
}

// played has an output of each hook that is called, and what its input has beside what all have.
var played = map[string]struct{ input, output string }{
	centurion.HookToolBefore: {`{"tool":"bash","callID":"call_1"}`, `{"args":{"command":"true"}}`},
	centurion.HookToolAfter:  {`{"tool":"bash","callID":"call_1","args":{"command":"true"}}`, `{"title":"true","output":"","metadata":{}}`},
	centurion.HookShellEnv:   {`{"cwd":"/"}`, `{"env":{}}`},
	centurion.HookAsk:        {`{"type":"bash","pattern":["true"],"title":"true","metadata":{}}`, `{"status":"ask"}`},
	centurion.HookParams:     {`{}`, `{"temperature":0.5,"maxOutputTokens":1000}`},
	centurion.HookHeaders:    {`{}`, `{"headers":{}}`},
	centurion.HookSystem:     {`{}`, `{"system":["You are an agent."]}`},
	centurion.HookMessages:   {`{}`, `{"messages":[{"info":{"id":"msg_1","sessionID":"ses_1","role":"user"},"parts":[{"id":"prt_1","type":"text","text":"hello"}]}]}`},
	centurion.HookCompacting: {`{}`, `{"context":[]}`},
	centurion.HookMessage:    {`{"messageID":"msg_1"}`, `{"message":{"id":"msg_1","sessionID":"ses_1","role":"user"},"parts":[{"id":"prt_1","type":"text","text":"hello"}]}`},
	centurion.HookCommand:    {`{"command":"review","arguments":"all"}`, `{"parts":[{"type":"text","text":"Review all."}]}`},
	centurion.HookDefinition: {`{"toolID":"bash"}`, `{"description":"Runs a command.","parameters":{"type":"object"}}`},
	centurion.HookConfig:     {`{}`, `{"agent":{},"command":{},"permission":{},"instructions":[],"plugin":[]}`},
	centurion.HookText:       {`{"messageID":"msg_2","partID":"prt_2"}`, `{"text":"Done."}`},
}

func (c *checker) hook(hook string) (note, wrong string) {
	if hook == "event" {
		event := json.RawMessage(`{"id":"evt_1","type":"session.idle","properties":{"sessionID":"ses_1"}}`)
		return "", c.wrongOf(c.ask("events", map[string]any{"events": []any{event}}))
	}
	sample, called := played[hook]
	if !called { // dispose, which has a message of its own
		return "", ""
	}
	input := map[string]any{"sessionID": "ses_1", "agent": "worker", "mission": "msn_1", "model": map[string]string{"providerID": "test", "id": "test"}}
	_ = json.Unmarshal([]byte(sample.input), &input) // it is an object
	in, _ := json.Marshal(input)
	a, wrong := c.ask("hook", hookParams{hook, in, json.RawMessage(sample.output)})
	switch {
	case wrong != "":
		return "", wrong
	case a.Error != nil && slices.Contains([]string{centurion.HookToolBefore, centurion.HookAsk}, hook):
		return "it refuses a call: " + text.Clean(centurion.Clip(*a.Error, 200)), ""
	case a.Error != nil:
		return "", "it answers with an error"
	}
	var done struct {
		Output map[string]any `json:"output"`
	}
	var before map[string]any
	if err := errors.Join(json.Unmarshal(a.Result, &done), json.Unmarshal([]byte(sample.output), &before)); err != nil {
		return "", fmt.Sprintf("its output is no object: %v", err)
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if was, is := fmt.Sprintf("%T", before[key]), fmt.Sprintf("%T", done.Output[key]); done.Output != nil && was != is {
			return "", fmt.Sprintf("its output has another shape: %s is missing, or of another type", key)
		}
	}
	return text.When(done.Output != nil, "it changes the output"), ""
}

// call sends a call of a tool and returns its id.
func (c *checker) call(tool string, args json.RawMessage) int {
	return c.send(0, "tool", toolParams{tool, args, toolContext{"ses_1", "msg_1", "call_1", "worker", c.o.Directory, c.o.Worktree}})
}

const noArguments = "not called: no arguments could be made for its schema"

func (c *checker) tool(tool string, args json.RawMessage) (note, wrong string) {
	if args == nil {
		return noArguments, ""
	}
	id := c.call(tool, args)
	all, wrong := c.await(c.o.HookLimit, id)
	switch a := all[id]; {
	case c.silent:
		c.send(id, "abort", nil)
		if _, wrong = c.await(grace, id); wrong != "" {
			return "", "it was aborted after " + text.Took(c.o.HookLimit) + ", and then: " + wrong
		}
		return "it was aborted after " + text.Took(c.o.HookLimit), ""
	case wrong != "":
		return "", wrong
	case a.Error != nil && a.Kind == "arguments":
		return "", "it refuses arguments that its schema allows"
	case a.Error != nil:
		return "it fails: " + text.Clean(centurion.Clip(*a.Error, 200)), ""
	}
	var said struct{ Text *string }
	if _, err := resultOf(all[id].Result); err != nil || json.Unmarshal(all[id].Result, &said) != nil || said.Text == nil {
		return "", `its result has no "text"`
	}
	return "", ""
}

func (c *checker) badTool(tool string, args json.RawMessage) (note, wrong string) {
	if args == nil {
		return "not called: its schema allows whatever was tried", ""
	}
	id := c.call(tool, args)
	all, wrong := c.await(c.o.HookLimit, id)
	switch a := all[id]; {
	case wrong != "":
		return "", wrong
	case a.Error == nil:
		return "", "it takes arguments that its schema does not allow"
	case a.Kind != "arguments":
		return "", `its error has not the kind "arguments": the call counts as one that has run`
	}
	return "", ""
}

func (c *checker) abort(tool string, args json.RawMessage) (note, wrong string) {
	if args == nil {
		return noArguments, ""
	}
	id := c.call(tool, args)
	c.send(id, "abort", nil)
	if _, wrong = c.await(grace, id); wrong == "" {
		wrong = c.wrongOf(c.ask("ping", nil))
	}
	return "", wrong
}

// unknown sends what later versions may send. An answer is allowed.
func (c *checker) unknown() (note, wrong string) {
	c.send(0, "something.new", map[string]any{"what": "it does not matter"})
	return "", c.wrongOf(c.ask("ping", map[string]any{"new": true}))
}

// leave closes the streams and waits for the end of the process.
func (c *checker) leave() (note, wrong string) {
	late := time.NewTimer(200 * time.Millisecond) // for what comes unasked
	defer late.Stop()
	for waiting := true; waiting; {
		select {
		case line, more := <-c.heard:
			if waiting = more; more {
				c.strays = append(c.strays, string(line))
			}
		case <-late.C:
			waiting = false
		}
	}
	c.Close(centurion.ErrShutdown)
	select {
	case <-c.gone:
		return "", ""
	case <-time.After(disposing):
		return "", "it does not end within " + text.Took(disposing)
	}
}
