package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/text"
)

const (
	// MaxText limits the text of an answer, in bytes: as much as a model gets of a file at once.
	MaxText   = 50 << 10
	grace     = 2 * time.Second // for a tool to end after it was aborted
	samples   = 256
	impatient = 3                     // hooks without an answer, one after the other, until a plugin is started again
	batch     = 20 * time.Millisecond // events are collected this long
	maxEvents = 2000                  // that wait for one plugin
)

// Ran is what one plugin did in a hook.
type Ran struct {
	Plugin  string
	Took    time.Duration
	Changed []string        // the keys of the output that it changed, sorted
	Output  json.RawMessage // after it, if it changed something
	Err     error           // why it did nothing: it threw, did not answer in time, is not running, or left an output of another shape
}

// guards are the hooks by which a plugin refuses something: without its answer nothing goes on.
var guards = []string{"tool.execute.before", "permission.ask"}

// Run lets all plugins that have a hook change output in turn, a pointer to what becomes a JSON object; what JSON does not have is lost
// when one changes it. It waits for one that is starting. An error in tool.execute.before or permission.ask refuses what is asked about and
// ends the round, also that of a plugin which cannot be asked; one anywhere else costs that plugin this call. Run's own error is that
// refusal, which names the plugin, or the end of ctx; output is not changed then.
func (h *Host) Run(ctx context.Context, hook string, input, output any) ([]Ran, error) {
	h.mu.Lock()
	all := slices.DeleteFunc(slices.Clone(h.plugs), func(p *plug) bool { return !p.has(hook) })
	h.mu.Unlock()
	if len(all) == 0 {
		return nil, nil
	}
	in, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	out, err := json.Marshal(output)
	if err != nil {
		return nil, err
	}
	var result reflect.Value // set once somebody has changed the output
	ran := make([]Ran, 0, len(all))
	for _, p := range all {
		a := h.ask(ctx, p, hook, in, out)
		r := Ran{Plugin: p.name, Took: a.took, Err: a.err}
		if a.err == nil && a.changed != nil && output != nil {
			fresh := reflect.New(reflect.TypeOf(output).Elem())
			if err := json.Unmarshal(a.changed, fresh.Interface()); err != nil {
				r.Err = p.wrong(centurion.KindInvalidRequest, "left an output of %s that has another shape: %v", hook, err)
			} else {
				r.Changed, result = differences(out, a.changed), fresh
			}
		}
		had := out
		if r.Changed != nil {
			out, r.Output = a.changed, a.changed
		}
		if hook == transform {
			h.measure(p, in, had, out)
		}
		h.account(p, &a, &r)
		ran = append(ran, r)
		if ctx.Err() != nil {
			return ran, context.Cause(ctx)
		}
		if r.Err != nil && slices.Contains(guards, hook) {
			return ran, p.refuses(&a, r.Err)
		}
		if hook == "permission.ask" && denied(out) { // no other lifts it
			break
		}
	}
	if result.IsValid() {
		reflect.ValueOf(output).Elem().Set(result.Elem())
	}
	return ran, nil
}

func denied(output json.RawMessage) bool {
	var a struct {
		Status string `json:"status"`
	}
	return json.Unmarshal(output, &a) == nil && a.Status == "deny"
}

// ask calls one plugin. It waits for one that is starting and, where that may refuse something, also while it is started again; then it
// is called once more if its process has ended.
func (h *Host) ask(ctx context.Context, p *plug, hook string, in, out json.RawMessage) (a asked) {
	refuses := slices.Contains(guards, hook)
	for again := refuses; ; again = false {
		var c *car
		limited, cancel := context.WithTimeout(ctx, h.o.InitLimit)
		_ = h.wait(limited, func() bool {
			if c = p.car; c != nil && guard.Closed(c.Done) {
				c = nil
			}
			return c != nil || p.state == Failed || p.state == Restarting && !refuses
		})
		cancel()
		began := time.Now()
		a = asked{car: c}
		a.changed, a.refusal, a.err = h.hook(ctx, p, c, hook, in, out)
		a.took, a.refusal = time.Since(began), a.refusal && refuses
		if kind := centurion.KindOf(a.err); !again || ctx.Err() != nil || kind != centurion.KindNotFound && kind != centurion.KindInterrupted {
			return a
		}
	}
}

// asked is how one plugin answered in a hook.
type asked struct {
	car     *car
	changed json.RawMessage // the output, if it was
	took    time.Duration
	refusal bool // the plugin itself has refused
	err     error
}

// refuses is the error for what does not happen because of a plugin.
func (p *plug) refuses(a *asked, err error) error {
	if a.refusal {
		return err
	}
	return &centurion.Error{Kind: centurion.KindPermission, Msg: fmt.Sprintf("the plugin %s has a say in this, and cannot be asked", p.name), Err: err,
		Hint: "continue without it, and say so; a person sees the plugin with `centurion plugin list`, and repairs it or removes it from the configuration"}
}

// hook calls one plugin and returns the output if it was changed. refusal means that the plugin itself threw the error.
func (h *Host) hook(ctx context.Context, p *plug, c *car, hook string, in, out json.RawMessage) (changed json.RawMessage, refusal bool, err error) {
	if c == nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		return nil, false, cmp.Or(p.down(), error(p.wrong(centurion.KindNotFound, "is not running")))
	}
	ctx, cancel := context.WithTimeout(ctx, h.o.HookLimit)
	defer cancel()
	r, err := c.request(p, "hook", hookParams{hook, in, out}, nil)
	if err != nil {
		return nil, false, p.wrong(centurion.KindNotFound, "was not asked in %s: %v", hook, err)
	}
	a, err := c.wait(ctx, r)
	var done struct {
		Output json.RawMessage `json:"output"`
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, false, p.wrong(centurion.KindTimeout, "did not answer in %s within %s", hook, text.Took(h.o.HookLimit))
	case err != nil:
		return nil, false, p.wrong(centurion.KindInterrupted, "did not answer in %s: %v", hook, err)
	case a.Error != nil:
		e := p.wrong(centurion.KindPermission, "says in %s: %s", hook, text.CleanText(centurion.Clip(*a.Error, 4<<10)))
		return nil, true, e
	}
	if err := json.Unmarshal(a.Result, &done); err != nil {
		return nil, false, p.wrong(centurion.KindInvalidRequest, "gave no usable answer in %s: %v", hook, err)
	}
	if string(done.Output) == "null" {
		done.Output = nil
	}
	return done.Output, false, nil
}

type hookParams struct {
	Hook   string          `json:"hook"`
	Input  json.RawMessage `json:"input"`
	Output json.RawMessage `json:"output"`
}

// account notes how long a hook took and how it ended. A plugin that does not answer again and again is started again.
func (h *Host) account(p *plug, a *asked, r *Ran) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.car == nil {
		return
	}
	if p.f.Hooked++; r.Err != nil && !a.refusal && centurion.KindOf(r.Err) != centurion.KindNotFound {
		p.fail(r.Err)
	}
	if centurion.KindOf(r.Err) != centurion.KindTimeout {
		p.timeouts = 0
		p.f.took(r.Took)
		return
	}
	if p.timeouts++; p.timeouts >= impatient {
		a.car.mu.Lock()
		a.car.blamed = p
		a.car.mu.Unlock()
		a.car.Close(r.Err)
	}
}

// differences returns the keys whose values differ in two JSON objects.
func differences(a, b json.RawMessage) (keys []string) {
	var x, y map[string]any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return nil
	}
	for key := range x {
		if _, has := y[key]; !has {
			y[key] = nil
		}
	}
	for key, v := range y {
		if !reflect.DeepEqual(v, x[key]) {
			keys = append(keys, key)
		}
	}
	return slices.Sorted(slices.Values(keys))
}

// Event passes an event to the plugins that have a hook for them, in batches. It never blocks: a plugin that is too slow loses events.
func (h *Host) Event(e any) {
	if !h.Has("event") {
		return
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.plugs {
		switch {
		case p.car == nil || !p.has("event"):
		case len(p.events) >= maxEvents:
			p.dropped++
		default:
			p.events = append(p.events, raw)
			if !p.sending {
				p.sending = true
				h.group.Go("events for "+p.name, func() error { h.pass(p); return nil }) // its car holds the group open
			}
		}
	}
}

// pass sends a plugin its events until there are none.
func (h *Host) pass(p *plug) {
	for {
		time.Sleep(batch)
		h.mu.Lock()
		c, events := p.car, p.events
		p.events = nil
		if c == nil || len(events) == 0 {
			p.sending = false
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		if r, err := c.request(p, "events", map[string]any{"events": events}, nil); err == nil {
			_, _ = c.wait(context.Background(), r) // the heart beat ends it at the latest
		}
	}
}

// Call is a call of a tool.
type Call struct {
	Tool      string
	Session   string
	Message   string
	CallID    string
	Agent     string
	Directory string // where the worker works that calls, absolute
	Worktree  string
	// Ask asks for a permission, as OpenCode's tools do with {permission, patterns, always, metadata}; an error refuses. Nil refuses all.
	Ask func(ctx context.Context, request json.RawMessage) error
}

// Result is what a tool answered.
type Result struct {
	Text     string // for a model; never empty
	Title    string // may be ""
	Metadata json.RawMessage
	Files    []centurion.File
}

// Call calls a tool with a JSON object. It waits for a plugin that is starting. The end of ctx aborts the call. progress gets lines for
// a person; it may be nil. What the tool throws is an error with its text; where there is no answer, the error is [ErrNotBegun] or
// [ErrMayHaveRun].
func (h *Host) Call(ctx context.Context, call Call, args json.RawMessage, progress func(line string)) (Result, error) {
	fail := func(kind centurion.Kind, outcome error, format string, a ...any) (Result, error) {
		return Result{}, &centurion.Error{Op: "call " + call.Tool, Kind: kind, Msg: fmt.Sprintf(format, a...), Err: outcome}
	}
	p, c, err := h.holder(ctx, call.Tool)
	if err != nil {
		return fail(centurion.KindOf(err), ErrNotBegun, "%v", err)
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := &centurion.Error{Kind: centurion.KindTimeout, Msg: fmt.Sprintf("the plugin %s did not answer within %s", p.name, text.Took(h.o.CallLimit))}
	patience := time.AfterFunc(h.o.CallLimit, func() { cancel(silent) })
	defer patience.Stop()
	asks := &asks{ctx: ctx, c: c, call: &call}
	r, err := c.request(p, "tool", toolParams{call.Tool, args, toolContext{call.Session, call.Message, call.CallID, call.Agent, call.Directory, call.Worktree}}, func(a *answer) {
		patience.Reset(h.o.CallLimit)
		if a.Ask != nil {
			asks.answer(a)
		} else if progress != nil && a.Progress.Title != "" {
			progress(text.Clean(centurion.Clip(a.Progress.Title, 500)))
		}
	})
	if err != nil {
		return fail(centurion.KindInterrupted, ErrNotBegun, "the plugin %s was not called: %v", p.name, err)
	}
	h.mu.Lock()
	p.f.Called++
	h.mu.Unlock()
	a, err := c.wait(ctx, r)
	if err != nil && ctx.Err() != nil {
		cause, outcome := context.Cause(ctx), ErrMayHaveRun
		_, _ = c.send(message{ID: r.id, Do: "abort"})
		late, end := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer end()
		if _, err := c.wait(late, r); err == nil {
			outcome = nil // it has ended, and knows how
		}
		return fail(centurion.KindOf(cause), outcome, "%v", cause)
	}
	switch {
	case err != nil:
		h.noteFailure(p, err)
		return fail(centurion.KindInterrupted, ErrMayHaveRun, "the plugin %s ended during the call: %v", p.name, err)
	case a.Error != nil && a.Kind == "arguments":
		return fail(centurion.KindUsage, ErrNotBegun, "%s", text.CleanText(centurion.Clip(*a.Error, 4<<10)))
	case a.Error != nil:
		h.noteFailure(p, errors.New(*a.Error))
		return fail(centurion.KindUsage, nil, "%s", text.CleanText(centurion.Clip(*a.Error, 4<<10)))
	}
	return resultOf(a.Result)
}

func (h *Host) noteFailure(p *plug, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.fail(p.wrong(centurion.KindOf(err), "failed in a tool: %s", text.Clean(centurion.Clip(err.Error(), 500))))
}

// holder returns the plugin that has a tool, with its process. It waits for one that is starting.
func (h *Host) holder(ctx context.Context, tool string) (p *plug, c *car, err error) {
	ctx, cancel := context.WithTimeout(ctx, h.o.InitLimit)
	defer cancel()
	err = h.wait(ctx, func() bool {
		i := slices.IndexFunc(h.plugs, func(p *plug) bool {
			return slices.ContainsFunc(p.tools, func(t centurion.ExternalTool) bool { return t.Name == tool })
		})
		if i < 0 {
			return !slices.ContainsFunc(h.plugs, func(p *plug) bool { return p.state == Starting })
		}
		p = h.plugs[i]
		if c = p.car; c != nil && guard.Closed(c.Done) {
			c = nil
		}
		return c != nil || p.state == Failed
	})
	switch {
	case p == nil:
		return nil, nil, &centurion.Error{Kind: centurion.KindNotFound, Msg: "no plugin of this project has that tool now"}
	case c == nil && err == nil:
		h.mu.Lock()
		defer h.mu.Unlock()
		return nil, nil, cmp.Or(p.err, error(p.wrong(centurion.KindNotFound, "is not running")))
	case err != nil:
		return nil, nil, p.wrong(centurion.KindOf(err), "is not running: %v", err)
	}
	return p, c, nil
}

type toolParams struct {
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args"`
	Context toolContext     `json:"context"`
}

type toolContext struct {
	Session   string `json:"sessionID"`
	Message   string `json:"messageID"`
	CallID    string `json:"callID"`
	Agent     string `json:"agent"`
	Directory string `json:"directory"`
	Worktree  string `json:"worktree"`
}

// asks answers the questions of one call.
type asks struct {
	ctx  context.Context
	c    *car
	call *Call
	n    int
}

func (q *asks) answer(a *answer) {
	const most = 100 // of one call
	id, n, request := a.ID, a.N, a.Ask
	if q.n++; q.n > most || q.call.Ask == nil {
		_, _ = q.c.send(message{ID: id, Do: "answer", Params: map[string]any{"n": n, "error": "permissions cannot be asked for here"}})
		return
	}
	q.c.group.Go("ask for a plugin", func() error {
		params := map[string]any{"n": n}
		if err := guard.Call("ask for a plugin", func() error { return q.call.Ask(q.ctx, request) }); err != nil {
			params["error"] = err.Error()
		}
		_, _ = q.c.send(message{ID: id, Do: "answer", Params: params})
		return nil
	})
}

// resultOf reads the answer of a tool.
func resultOf(raw json.RawMessage) (Result, error) {
	var r struct {
		Text        string            `json:"text"`
		Title       string            `json:"title"`
		Metadata    json.RawMessage   `json:"metadata"`
		Attachments []json.RawMessage `json:"attachments"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return Result{}, &centurion.Error{Op: "plugin", Kind: centurion.KindInvalidRequest, Msg: "the tool has run, but its answer cannot be read", Err: err}
	}
	out := Result{Title: text.Clean(centurion.Clip(r.Title, 200)), Metadata: r.Metadata}
	total := 0
	var labels []string
	for _, raw := range r.Attachments {
		var f centurion.File
		err := json.Unmarshal(raw, &f)
		if err == nil {
			f, err = centurion.NewFile(cmp.Or(f.Name, "answer"), f.Data)
		}
		if total += len(f.Data); err == nil && len(out.Files) < centurion.MaxFiles && total <= centurion.MaxFilesBytes {
			out.Files = append(out.Files, f)
			labels = append(labels, f.Label())
		} else {
			labels = append(labels, "[attachment not shown: no model takes it]")
		}
	}
	all := text.Printed(text.Whole(r.Text[:min(len(r.Text), MaxText)]))
	if over := len(r.Text) - MaxText; over > 0 {
		all += fmt.Sprintf("\n[cut here: the answer has %s, and %s are left out]", centurion.Bytes(int64(len(r.Text))), centurion.Bytes(int64(over)))
	}
	out.Text = strings.Join(text.Filled(append([]string{all}, labels...)...), "\n")
	if strings.TrimSpace(out.Text) == "" {
		out.Text = "[the answer is empty]"
	}
	return out, nil
}
