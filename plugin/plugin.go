// Package plugin runs OpenCode plugins beside the program: those of OpenCode in one process under Bun, native ones in one each, over
// the protocol of docs/plugins.md. It finds and installs them, keeps their processes alive, calls their tools and hooks, and says what
// they cost. It starts no process itself, decides no permission, and knows nothing of missions. Nothing here waits longer than a time
// limit for a plugin, and a broken one costs its own tools and hooks only.
package plugin

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/guard/durable"
	"centurion/text"
)

// The outcome of a call that has no answer; [errors.Is] finds them in the errors of [Host.Call].
var (
	// ErrNotBegun: the plugin did not get the call, or did not take it. It may be repeated.
	ErrNotBegun = errors.New("the call has not begun")
	// ErrMayHaveRun: the plugin got the call, and its outcome is unknown.
	ErrMayHaveRun = errors.New("the call may have run")
)

// State is the state of a plugin.
type State string

// The states of a plugin.
const (
	Starting   State = "starting"
	Ready      State = "ready"
	Restarting State = "restarting" // its process ended; it is started again after a while
	Failed     State = "failed"
)

// Start is a process to start.
type Start struct {
	Name    string   // for a person: the plugin's, or "plugins" for several
	Command []string // the program and its arguments
	Env     []string // added to the environment, as NAME=value
}

// ServerHost is the host of the address that plugins are given. No name server knows it: what plugins fetch there comes over their
// streams and is answered by [Options.Serve].
const ServerHost = "centurion.invalid"

// Options are what the plugins of a project have in common.
type Options struct {
	// Start starts a process, confined as any child, with a directory as its working directory that the plugins may know. ctx limits the
	// start, not the process.
	Start func(ctx context.Context, s Start) (Process, error)
	Bun   string // the runtime, absolute; needed by OpenCode's plugins only
	// State is a directory of this program only, absolute. Open writes the side-car's code there.
	State     string
	Modules   string // the directory where plugins are installed, absolute; its modules can be imported by the files of the project; may be ""
	Directory string // the project's, absolute
	Worktree  string // "" is Directory
	Version   string // of this program
	Project   json.RawMessage
	Serve     http.Handler // answers what plugins fetch from the program; nil answers that there is nothing
	Reserved  []string     // names of tools that plugins cannot have
	// Known are the hooks that plugins had when they ran last, by name: until one has begun, and when it cannot, it is taken to have them.
	Known   map[string][]string
	Figures map[string]Figures // what was counted before, by name
	Changed func()             // called after a state or the tools have changed; must not block; may be nil

	// The time limits; 0 is the default of each.
	InitLimit time.Duration // for a plugin to begin: 10 s. One that comes later is taken then
	HookLimit time.Duration // for a hook: 10 s
	CallLimit time.Duration // for a tool without a sign of progress: 10 minutes
	Silence   time.Duration // after which a process that does not answer is ended: 10 s
	Backoff   time.Duration // before the first restart: 1 s; it doubles
}

// limited returns the options with what is not set.
func (o Options) limited() Options {
	o.Worktree = cmp.Or(o.Worktree, o.Directory)
	if o.Serve == nil {
		o.Serve = http.NotFoundHandler()
	}
	o.InitLimit, o.HookLimit = cmp.Or(o.InitLimit, 10*time.Second), cmp.Or(o.HookLimit, 10*time.Second)
	o.CallLimit, o.Silence, o.Backoff = cmp.Or(o.CallLimit, 10*time.Minute), cmp.Or(o.Silence, 10*time.Second), cmp.Or(o.Backoff, time.Second)
	return o
}

// Status is what is known of a plugin.
type Status struct {
	Name    string
	Spec    string
	File    string
	State   State
	Version string // of its package or its own answer; may be ""
	Hooks   []string
	Tools   []string
	Init    time.Duration // how long it took to begin
	Figures
	Restarts int
	Dropped  int // events that it was too slow for
	Notes    []string
	Err      error // the last failure; of a plugin that has Failed, why
}

// Host runs the plugins of a project.
type Host struct {
	o       Options
	group   guard.Group
	end     context.CancelCauseFunc
	mu      sync.Mutex // protects what is marked so in plug, and what follows
	changed chan struct{}
	plugs   []*plug
}

//go:embed sidecar.js
var sidecar []byte

//go:embed client.js
var client []byte

// Open begins to start plugins, in their order, and returns at once. The caller closes what it returns.
func Open(sources []Source, o Options) *Host {
	o = o.limited()
	ctx, end := context.WithCancelCause(context.Background())
	h := &Host{o: o, end: end, changed: make(chan struct{})}
	var shared []*plug
	for _, s := range sources {
		p := h.add(s)
		if p.state == Failed {
			continue
		}
		if s.Command == nil {
			shared = append(shared, p)
		} else {
			h.group.Go("plugin "+p.name, func() error { return h.keep(ctx, []*plug{p}) })
		}
	}
	if err := h.prepare(shared); err != nil {
		for _, p := range shared {
			p.state, p.err = Failed, err
		}
	} else if len(shared) > 0 {
		h.group.Go("plugins", func() error { return h.keep(ctx, shared) })
	}
	return h
}

// add makes a plugin of a source, with a name of its own.
func (h *Host) add(s Source) *plug {
	p := &plug{source: s, name: cmp.Or(s.Name, s.Spec, s.File), state: Starting, version: s.Version}
	for n, base := 2, p.name; slices.ContainsFunc(h.plugs, func(o *plug) bool { return o.name == p.name }); n++ {
		p.name = fmt.Sprintf("%s#%d", base, n)
	}
	p.hooks, p.f = h.o.Known[p.name], h.o.Figures[p.name]
	if s.Err != nil {
		p.state, p.err = Failed, s.Err
	}
	h.plugs = append(h.plugs, p)
	return p
}

// prepare writes the side-car's code where Bun reads it.
func (h *Host) prepare(shared []*plug) error {
	if len(shared) == 0 {
		return nil
	}
	if _, err := os.Stat(h.o.Bun); h.o.Bun == "" || err != nil {
		return &centurion.Error{Op: "plugins", Kind: centurion.KindConfig, Msg: "Bun, which runs OpenCode's plugins, is not installed", Hint: hintAdd}
	}
	// An empty bunfig.toml: a project's own could make Bun run files of it.
	for name, content := range map[string][]byte{"sidecar.js": sidecar, "client.js": client, "bunfig.toml": nil, "package.json": []byte("{\"type\":\"module\"}\n")} {
		file := filepath.Join(h.o.State, name)
		if had, err := os.ReadFile(file); err == nil && bytes.Equal(had, content) {
			continue
		}
		if err := cmp.Or(os.MkdirAll(h.o.State, 0o700), durable.Replace(file, content, 0o600)); err != nil {
			return &centurion.Error{Op: "plugins", Kind: centurion.KindDisk, Err: err}
		}
	}
	return nil
}

// command is what runs plugins.
func (h *Host) command(members []*plug) Start {
	if len(members) == 1 && members[0].source.Command != nil {
		return Start{Name: members[0].name, Command: members[0].source.Command}
	}
	name := "plugins"
	if len(members) == 1 {
		name = members[0].name
	}
	return Start{Name: name, Command: []string{h.o.Bun, "--config=" + filepath.Join(h.o.State, "bunfig.toml"), "--no-install", "--no-env-file",
		"run", filepath.Join(h.o.State, "sidecar.js")},
		Env: []string{"DO_NOT_TRACK=1", "BUN_RUNTIME_TRANSPILER_CACHE_PATH=0"}} // it reports nothing, and writes nothing beside what plugins do
}

// Close lets plugins dispose of what they have, ends their processes, and waits for them. Calls under way fail.
func (h *Host) Close() error {
	h.end(centurion.ErrShutdown)
	return h.group.Wait()
}

// Settled waits until no plugin is starting for the first time, or ctx ends.
func (h *Host) Settled(ctx context.Context) error {
	return h.wait(ctx, func() bool { return !h.starting() })
}

// wait returns when f, which is called with the lock held, is true.
func (h *Host) wait(ctx context.Context, f func() bool) error {
	for {
		h.mu.Lock()
		ok, changed := f(), h.changed
		h.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// change changes what the lock protects and wakes those who wait.
func (h *Host) change(f func()) {
	h.mu.Lock()
	f()
	close(h.changed)
	h.changed = make(chan struct{})
	h.mu.Unlock()
	if h.o.Changed != nil {
		h.o.Changed()
	}
}

// Tools returns what there is now, by name, without waiting for anything; a plugin that is started again keeps its tools. The error
// names the clashes, each with both owners; of those tools the plugin that is configured first has its, and none if the program has it.
func (h *Host) Tools() ([]centurion.ExternalTool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []centurion.ExternalTool
	var clashes error
	owners := map[string]string{}
	for _, name := range h.o.Reserved {
		owners[name] = "Centurion"
	}
	for _, p := range h.plugs {
		if p.state == Failed {
			continue
		}
		for _, t := range p.tools {
			if owner := owners[t.Name]; owner != "" {
				clashes = errors.Join(clashes, &centurion.Error{Op: "plugins", Kind: centurion.KindConflict, Hint: "remove one of the two from the configuration",
					Msg: fmt.Sprintf("both %s and the plugin %s have a tool %s", owner, p.name, t.Name)})
				continue
			}
			owners[t.Name] = "the plugin " + p.name
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b centurion.ExternalTool) int { return cmp.Compare(a.Name, b.Name) })
	return all, clashes
}

// Has reports whether a plugin has a hook; that of a plugin which has failed counts only where it could refuse something.
func (h *Host) Has(hook string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.plugs, func(p *plug) bool { return p.has(hook) })
}

// Starting reports whether a plugin is starting for the first time.
func (h *Host) Starting() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.starting()
}

// starting is [Host.Starting] with the lock held.
func (h *Host) starting() bool {
	return slices.ContainsFunc(h.plugs, func(p *plug) bool { return p.state == Starting })
}

// Status returns what is known of the plugins, in their order.
func (h *Host) Status() []Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]Status, 0, len(h.plugs))
	for _, p := range h.plugs {
		s := Status{Name: p.name, Spec: p.source.Spec, File: p.source.File, State: p.state, Version: p.version, Hooks: slices.Clone(p.hooks),
			Init: p.init, Figures: p.f, Restarts: p.restarts, Dropped: p.dropped, Notes: slices.Clone(p.notes), Err: p.err}
		s.Took = slices.Clone(s.Took)
		for _, t := range p.tools {
			s.Tools = append(s.Tools, t.Name)
		}
		out = append(out, s)
	}
	return out
}

// plug is a plugin. Its name and source never change; the lock of its host protects the rest.
type plug struct {
	name     string
	source   Source
	state    State
	car      *car // while Ready
	version  string
	hooks    []string
	tools    []centurion.ExternalTool
	init     time.Duration
	f        Figures
	sent     map[string]history // by conversation: see measure
	timeouts int                // hooks without an answer, one after the other
	restarts int
	recent   int // restarts since it last lived long
	dropped  int
	notes    []string
	err      error
	events   []json.RawMessage
	sending  bool // events
}

// has reports whether it takes part in a hook. The lock is held.
func (p *plug) has(hook string) bool {
	return slices.Contains(p.hooks, hook) && (p.state != Failed || slices.Contains(guards, hook))
}

// down is why it does not run, or nil. The lock is held.
func (p *plug) down() error {
	if p.err == nil || p.state == Ready || p.state == Starting {
		return nil
	}
	return p.wrong(centurion.KindNotFound, "is %s: %v", p.state, p.err)
}

// fail notes a failure; why a plugin is off stays. The lock is held.
func (p *plug) fail(err error) {
	if p.f.Failures++; p.state != Failed {
		p.err = err
	}
}

// note keeps something that a person should know, once. The lock is held.
func (p *plug) note(s string) {
	const maxNotes = 20
	if s = text.Clean(centurion.Clip(s, 500)); len(p.notes) < maxNotes && !slices.Contains(p.notes, s) {
		p.notes = append(p.notes, s)
	}
}

// Note keeps something about a plugin that a person should know, once.
func (h *Host) Note(name, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.plugs {
		if p.name == name && text != "" {
			p.note(text)
		}
	}
}

// wrong makes an error about a plugin.
func (p *plug) wrong(kind centurion.Kind, format string, args ...any) *centurion.Error {
	return &centurion.Error{Kind: kind, Msg: fmt.Sprintf("the plugin %s ", p.name) + fmt.Sprintf(format, args...)}
}
