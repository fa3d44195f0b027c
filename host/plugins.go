package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"centurion"
	"centurion/config"
	"centurion/guard"
	"centurion/guard/durable"
	"centurion/plugin"
	"centurion/sandbox"
	v1 "centurion/server/opencode/v1"
	"centurion/text"
	"centurion/tools"
)

// Plugins are the plugins of a project. They are started when the first conversation begins. As of MCP servers, what they offered last is
// kept, so that a conversation need not wait for them to know their tools.
type Plugins struct {
	all     []plugin.Source
	cfg     *config.Config
	modules string // where packages are installed
	state   string
	root    string // the project's directory
	// checkouts is the directory below which the checkouts of its workers are.
	checkouts string
	version   string
	runner    *sandbox.Runner
	project   *v1.Project // what plugins reach of it; nil outside of a host, where nothing is counted either

	group     guard.Group
	life      context.Context // until Close
	end       context.CancelFunc
	following sync.Once

	mu   sync.Mutex // protects what follows
	host *plugin.Host
	kept []centurion.ExternalTool
	had  []had
}

// had are the hooks that a plugin had when it ran last.
type had struct {
	Plugin string   `json:"plugin"`
	Hooks  []string `json:"hooks"`
}

var (
	_ tools.External  = (*Plugins)(nil)
	_ centurion.Hooks = (*Plugins)(nil)
)

// plugins is where `centurion plugin add` installs packages; see config.Config.PluginDir.
func (p Place) plugins() string { return filepath.Join(filepath.Dir(filepath.Dir(p.State)), "plugins") }

// grounds are where plugins may write.
func (p *Plugins) grounds() grounds {
	return grounds{filepath.Join(p.state, "data"), []string{p.root, p.checkouts}}
}

func newPlugins(cfg *config.Config, p Place, dir string, run *sandbox.Runner, version string) *Plugins {
	life, end := context.WithCancel(context.Background())
	return &Plugins{life: life, end: end, all: cfg.Plugins, cfg: cfg, modules: p.plugins(), state: filepath.Join(p.State, "plugins"), root: dir, checkouts: p.checkouts(), version: version, runner: run}
}

// start begins to start the plugins, unless that was done.
func (p *Plugins) start() *plugin.Host {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.host != nil {
		return p.host
	}
	bun, err := plugin.Installed(p.modules)
	sources := slices.Clone(p.all)
	for i := range sources {
		if sources[i].Err == nil && sources[i].Command == nil {
			sources[i].Err = err
		}
	}
	p.kept, p.had = recall[centurion.ExternalTool](p.memory("tools")), recall[had](p.memory("hooks"))
	known := map[string][]string{}
	for _, h := range p.had {
		known[h.Plugin] = h.Hooks
	}
	p.host = plugin.Open(sources, plugin.Options{Known: known, Figures: p.counted().Plugins, Bun: bun.Path, State: filepath.Join(p.modules, "sidecar"), Modules: p.modules, Directory: p.root, Version: p.version, Serve: p.serve(),
		Reserved: text.Each(tools.All(), tools.Tool.Name), Start: p.launch})
	if host := p.host; p.project != nil {
		p.group.Go("count what plugins do", func() error { return p.count(host) })
		p.group.Go("events of plugins", p.tellEvents)
	}
	return p.host
}

// launch starts a process.
func (p *Plugins) launch(ctx context.Context, s plugin.Start) (plugin.Process, error) {
	started, err := serve(ctx, p.runner, served{name: "plugin " + s.Name, command: s.Command, env: s.Env, dir: p.root, grounds: p.grounds()})
	if err != nil {
		return nil, err // a nil program in the interface would not be none
	}
	return started, nil
}

// settle waits until no plugin is starting for the first time, and keeps what they have.
func (p *Plugins) settle(ctx context.Context, host *plugin.Host) error {
	if err := host.Settled(ctx); err != nil {
		return err
	}
	p.Tools()
	return p.offer(ctx, host)
}

// offer lets plugins change the configuration, and keeps what counts of that: for what begins after it, also in other processes.
func (p *Plugins) offer(ctx context.Context, host *plugin.Host) error {
	var wants []plugin.Status
	for _, s := range host.Status() {
		if !slices.Contains(s.Hooks, centurion.HookConfig) {
			continue
		}
		if wants = append(wants, s); s.State != plugin.Ready {
			return nil // what it wanted last stays
		}
	}
	file := filepath.Join(p.state, "config.json")
	had, err := os.ReadFile(file)
	if len(wants) == 0 && err != nil {
		return nil
	}
	made := p.cfg.Shown()
	ran, err := host.Run(ctx, centurion.HookConfig, nil, &made)
	if err != nil {
		return err
	}
	told := map[string]bool{}
	for _, r := range ran {
		host.Note(r.Plugin, noteOf(r.Changed, p.cfg.Offer(r.Output), told))
	}
	offered := p.cfg.Offer(made)
	b, err := json.Marshal(offered)
	if err != nil || bytes.Equal(b, had) || os.MkdirAll(p.state, 0o700) != nil {
		return err
	}
	_ = durable.Replace(file, b, 0o600) // without it the next start does not know of it
	return nil
}

// noteOf says what of a plugin's changes of the configuration counts, and what does not. told are those of the plugins before it.
func noteOf(keys []string, o config.Offered, told map[string]bool) string {
	fresh := func(all []string) []string {
		all = slices.DeleteFunc(all, func(s string) bool { return told[s] })
		for _, s := range all {
			told[s] = true
		}
		return all
	}
	adds := text.Each(slices.Sorted(maps.Keys(o.Agents)), func(s string) string { return "agent " + s })
	adds = fresh(append(adds, text.Each(slices.Sorted(maps.Keys(o.Commands)), func(s string) string { return "/" + s })...))
	keys = slices.DeleteFunc(slices.Clone(keys), func(s string) bool { return s == "agent" || s == "command" })
	not := append(keys, fresh(o.Left)...)
	return strings.Join(text.Filled(text.When(len(adds) > 0, "in the configuration it adds "+strings.Join(adds, ", ")),
		text.When(len(not) > 0, "what it wants of these does not count: "+strings.Join(not, ", "))), "; ")
}

// Close ends the plugins.
func (p *Plugins) Close() error {
	p.mu.Lock()
	host := p.host
	p.mu.Unlock()
	var err error
	if host != nil {
		err = host.Close() // first: when they dispose of what they have they may still ask for something
	}
	p.end()
	return errors.Join(err, p.group.Wait())
}

// Tools implements [tools.External]: what the plugins have, and while one is starting also what they had last.
func (p *Plugins) Tools() []centurion.ExternalTool {
	if len(p.all) == 0 {
		return nil
	}
	host := p.start()
	now, _ := host.Tools() // clashes are listed with the plugins
	p.mu.Lock()
	defer p.mu.Unlock()
	if !host.Starting() {
		p.kept = remember(p.memory("tools"), p.kept, now)
		var hooks []had
		for _, s := range host.Status() {
			hooks = append(hooks, had{s.Name, s.Hooks})
		}
		p.had = remember(p.memory("hooks"), p.had, hooks)
		return now
	}
	for _, t := range p.kept {
		if !slices.ContainsFunc(now, func(o centurion.ExternalTool) bool { return o.Name == t.Name }) {
			now = append(now, t)
		}
	}
	slices.SortFunc(now, func(a, b centurion.ExternalTool) int { return cmp.Compare(a.Name, b.Name) })
	return now
}

// Run implements [tools.External].
func (p *Plugins) Run(ctx context.Context, c *tools.Call, name string, input json.RawMessage) (tools.Result, error) {
	dir := c.Workspace.Dir()
	host, call := p.start(), plugin.Call{Tool: name, Session: c.Session, Message: c.Message, CallID: c.ID, Agent: c.Agent, Directory: dir, Worktree: dir,
		Ask: func(ctx context.Context, request json.RawMessage) error {
			var a struct {
				Permission       string `json:"permission"`
				Patterns, Always []string
				Metadata         map[string]any `json:"metadata"`
			}
			if err := json.Unmarshal(request, &a); err != nil {
				return err
			}
			return c.Gate.Ask(ctx, c, tools.Access{Permission: cmp.Or(a.Permission, name), Patterns: a.Patterns, Always: a.Always, Metadata: a.Metadata})
		}}
	var r plugin.Result
	err := p.grounds().during(p.runner, c, func() (err error) {
		r, err = host.Call(ctx, call, input, c.Progress)
		return err
	})
	if err != nil {
		return tools.Result{}, err
	}
	files := slices.DeleteFunc(r.Files, func(f centurion.File) bool { return !c.Media.Takes(f.Mime) })
	out := tools.Result{Output: r.Text, Title: cmp.Or(r.Title, name), Attachments: files}
	_ = json.Unmarshal(r.Metadata, &out.Metadata) // what is no object is not shown
	return out, nil
}

// Has implements [centurion.Hooks]. One that is starting for the first time ever may have a hook that refuses.
func (p *Plugins) Has(hook string) bool {
	host := p.start()
	return host.Has(hook) || refuses(hook) && host.Starting()
}

func refuses(hook string) bool { return hook == centurion.HookToolBefore || hook == centurion.HookAsk }

// startLimit is how long such a hook waits for it.
const startLimit = 10 * time.Second

// Hook implements [centurion.Hooks].
func (p *Plugins) Hook(ctx context.Context, hook string, input any, output json.RawMessage) (changed json.RawMessage, by []string, err error) {
	host := p.start()
	if refuses(hook) {
		limited, cancel := context.WithTimeout(ctx, startLimit)
		_ = host.Settled(limited) // one that takes longer forbids nothing yet
		cancel()
	}
	ran, err := host.Run(ctx, hook, input, &output)
	if err != nil {
		by = text.Each(ran[max(0, len(ran)-1):], func(r plugin.Ran) string { return r.Plugin })
	}
	for _, r := range ran {
		if err == nil && len(r.Changed) > 0 {
			by = append(by, r.Plugin)
		}
	}
	return output, by, err
}

// memory is where it is kept what the plugins have, as long as they are these.
func (p *Plugins) memory(what string) memory {
	return memory{filepath.Join(p.state, what+".json"), p.cfg.PluginSum()}
}
