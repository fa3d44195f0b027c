package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/config"
	"centurion/event"
	"centurion/mcp"
	"centurion/orchestrator"
	"centurion/permission"
	"centurion/plugin"
	"centurion/recovery"
	"centurion/redact"
	"centurion/sandbox"
	"centurion/sandbox/confine"
	"centurion/server"
	"centurion/session"
	"centurion/trust"
	"centurion/workspace"
	"centurion/worktree"
)

// closed puts a level before all others that no other lifts: agents' tools, which run in this process, do not touch what a person has
// trusted, the token or the store.
func (p Place) closed(rules func(agent string) []permission.Level) func(agent string) []permission.Level {
	own := permission.Level{Name: "centurion"}
	for _, file := range []string{trust.Path(p.State), filepath.Join(p.State, "..", "..", "token"), p.Database() + "*"} {
		own.Rules = append(own.Rules, permission.Rule{Permission: "external_directory", Pattern: filepath.ToSlash(workspace.FollowLinks(filepath.Clean(file))), Action: permission.Deny})
	}
	return func(agent string) []permission.Level { return append([]permission.Level{own}, rules(agent)...) }
}

// configuration returns the orchestrator's configuration: the person's settings and what belongs to this host.
func (h *Host) configuration(ctx context.Context, models *Models, hub *event.Hub, how Options) (oc orchestrator.Config, err error) {
	cfg := models.Config
	cast, err := cfg.Cast(agents.ProfileMission) // before the rules: it moves those of old names to their place
	if err != nil {
		return oc, err
	}
	rules, err := cfg.Rules()
	if err != nil {
		return oc, err
	}
	assistant, err := cfg.Cast(agents.ProfileAssistant)
	if err != nil {
		return oc, err
	}
	caps, err := concurrency(cfg, cast, assistant)
	if err != nil {
		return oc, err
	}
	overlap, err := policies(cfg, cast)
	if err != nil {
		return oc, err
	}
	chains, err := cfg.Chains(ctx)
	if err != nil {
		return oc, err
	}
	way, err := newWeb(cfg, h.workspace)
	if err != nil {
		return oc, err
	}
	home, _ := os.UserHomeDir() // without one, rules with ~ match nothing
	oc = limits(cfg, how)
	oc.Store, oc.Workspace, oc.Cast, oc.Model, oc.Rules, oc.Home, oc.Version = h.store, h.workspace, cast, models.Get, h.closed(rules), home, how.Version
	if how.Shared != nil {
		oc.Process = how.Shared.slots
	}
	if how.Renew != nil {
		oc.Look = func(ctx context.Context) { how.Renew.Models(ctx) }
	}
	confinement := h.runner.Confinement()
	oc.Confinement = &confinement
	oc.Confined = h.runner.Confine != nil && h.runner.Confine.Way == confine.Full
	oc.Runner, oc.Scratch, oc.Web, oc.Publish = h.runner, h.Place.scratch(), way, publisher(hub, models.keys, how)
	oc.Assistant, oc.Worktrees, oc.Shadow = assistant, worktrees(h.Place, h.workspace, oc.Runner, cfg.Own.Workspaces, cfg.Own.CommitsAlone()), shadow(h.Place, h.workspace, oc.Runner)
	oc.TrustedPlan = func(text []byte) bool {
		book, err := trust.Open(h.Place.State)
		return err == nil && book.Holds(trust.Sum(string(text)))
	}
	oc.External = external{h.servers, h.plugins}
	if len(h.models.Config.Plugins) > 0 { // those with which it began
		oc.Hooks = h.plugins
	}
	oc.Fallback, oc.Concurrency, oc.Policies, oc.Instructions, oc.Keys = chains.For, caps, overlap, cfg.Finder(), models.keys
	return oc, nil
}

// publisher publishes events that are not in the journal, and prints waits where no live view does.
func publisher(hub *event.Hub, keys *redact.Keys, how Options) func(centurion.Event) {
	return func(e centurion.Event) {
		e.Data = json.RawMessage(keys.Text(string(e.Data)))
		hub.Publish(e)
		if e.Type == centurion.EventDelta || how.Note == nil {
			return
		}
		if d, err := event.Decode[event.MissionData](e); err == nil {
			how.Note("mission " + e.Mission + " is stopped: " + d.Reason)
		}
	}
}

// startCleaner starts dropping, archiving and removing what ended long enough ago, until the host ends.
func (h *Host) startCleaner(how Options) {
	ctx, end := context.WithCancel(context.Background())
	h.stopCleaner = end
	h.group.Go("cleaner", func() error {
		h.missions.Keeper.Clean(ctx, func(err error) {
			if how.Note != nil {
				how.Note("what ended long ago could not be archived, and is tried again: " + err.Error())
			}
		})
		return nil
	})
}

// limits are the configured limits; zero means the orchestrator's default.
func limits(cfg *config.Config, how Options) orchestrator.Config {
	o := &cfg.Own
	return orchestrator.Config{Workers: o.MaxWorkers, PerAgent: o.MaxPerAgent, Checks: o.MaxChecks, Countdown: o.Countdown, Returns: o.MaxReopened,
		Await: o.WaitTimeout, GateWait: o.GateRelease, NewApproach: o.StuckRounds, GiveUp: o.PauseRounds,
		AskTimeout: o.AskTimeout, Buffer: o.CompactionBuffer, DiskWait: how.DiskWait, TaskBudget: o.TaskBudget,
		PollInterval: o.PollInterval, SessionTTL: o.SessionTTL,
		StallTimeout: beyondSilence(o.StallTimeout, orchestrator.DefaultStallTimeout, o), SubAgentIdle: beyondSilence(o.SubAgentIdle, orchestrator.DefaultSubAgentIdle, o),
		Retention: o.Retention, ArchiveAfter: o.ArchiveAfter, ArchiveFailedAfter: o.ArchiveFailedAfter, KeepTasks: o.KeepTasks,
		Policy: session.Policy(o.ToolPolicy), EveryEvent: o.Persist == "every_event",
		Recovery: recovery.Policy{MaxAttempts: o.MaxAttempts, Cooldown: o.RetryDelay}}
}

// beyondSilence returns a configured limit of silence. Without one, the limit is longer than a provider may be silent, so that a slow
// provider is not mistaken for a hang.
func beyondSilence(own, usual time.Duration, o *config.Own) time.Duration {
	if own == 0 && o.IdleTimeout >= usual {
		return o.IdleTimeout + time.Minute
	}
	return own
}

// newRunner returns the command runner of a host, confined as well as this machine allows unless the person has turned that off.
func (h *Host) newRunner(cfg *config.Config) (*sandbox.Runner, error) {
	home, _ := os.UserHomeDir() // without one, nothing below it is hidden
	dir := filepath.Join(h.State, "sandbox")
	if err := sandbox.RemovePlaces(dir); err != nil { // of a host that died
		return nil, StateError(dir, err)
	}
	how, err := h.Place.confinement(cfg, home, dir)
	r := &sandbox.Runner{Mark: h.Place.Mark(), Slots: cfg.Own.MaxCommands, Checks: cfg.Own.MaxChecks, Confine: how, Redact: h.models.keys}
	if h.how.Shared != nil {
		r.Turns = &h.how.Shared.turns
	}
	return r, err
}

// RunOnce runs a command of the person's outside of a host, confined like those of agents, but with the network.
func (p Place) RunOnce(ctx context.Context, cfg *config.Config, c centurion.Command) (res centurion.CommandResult, err error) {
	c.Network = true
	err = p.withRunner(cfg, func(r *sandbox.Runner) error {
		res, err = r.Run(ctx, c)
		return err
	})
	return res, err
}

// Workspaces says how worktrees are made for missions of a project, by doing it once: see [centurion.Base]. It leaves nothing. The error has
// centurion.KindNotFound if there is no repository.
func (p Place) Workspaces(ctx context.Context, cfg *config.Config, ws *workspace.Workspace) (how string, err error) {
	err = p.withRunner(cfg, func(r *sandbox.Runner) error {
		repo, err := worktrees(p, ws, r, cfg.Own.Workspaces, false)(ctx)
		if err == nil {
			how = repo.Workspaces()
		}
		return err
	})
	_ = os.Remove(p.checkouts()) // unless it is in use, like the others
	_ = os.Remove(filepath.Join(p.State, "cache", "agents"))
	_ = os.Remove(filepath.Join(p.State, "cache"))
	_ = os.Remove(p.State)
	return how, err
}

// Servers connects the MCP servers of a project and lists them, outside of a host.
func (p Place) Servers(ctx context.Context, cfg *config.Config, ws *workspace.Workspace, version string) (out []server.ToolServer, notices []string, err error) {
	err = p.withRunner(cfg, func(r *sandbox.Runner) error {
		s := newServers(cfg.Servers, p, ws.Dir(), r, version)
		out, err = s.Servers(ctx, true)
		if s.clients != nil {
			notices = s.clients.Notices()
		}
		return errors.Join(err, s.Close())
	})
	return out, notices, err
}

// Prompt asks the server that a command of the form server:prompt names for its text, outside of a host; found is false if there is none.
func (p Place) Prompt(ctx context.Context, cfg *config.Config, ws *workspace.Workspace, version, command string, words []string) (text string, found bool, err error) {
	all := slices.DeleteFunc(slices.Clone(cfg.Servers), func(s mcp.Server) bool { return s.Disabled || !strings.HasPrefix(command, fileName(s)+":") })
	if len(all) == 0 {
		return "", false, nil
	}
	err = p.withRunner(cfg, func(r *sandbox.Runner) error {
		s := newServers(all, p, ws.Dir(), r, version)
		_, err := s.Servers(ctx, true)
		if err == nil {
			var got server.ServerContent
			got, err = s.Content(ctx, server.ServerQuery{Prompt: command, Words: words})
			text = got.Text
		}
		return errors.Join(err, s.Close())
	})
	return text, true, err
}

// Plugins starts the plugins of a project and says what became of them, outside of a host, and what was counted of them since when.
func (p Place) Plugins(ctx context.Context, cfg *config.Config, ws *workspace.Workspace, version string) (out []plugin.Status, offered []centurion.ExternalTool, since time.Time, err error) {
	err = p.withRunner(cfg, func(r *sandbox.Runner) error {
		s := newPlugins(cfg, p, ws.Dir(), r, version)
		host := s.start()
		err := s.settle(ctx, host) // what they have is remembered
		offered = s.Tools()
		out = host.Status()
		kept := s.counted() // without what this costs
		since = kept.Since
		for i := range out {
			out[i].Figures = kept.Plugins[out[i].Name]
		}
		return errors.Join(err, s.Close())
	})
	return out, offered, since, err
}

// CheckPlugin plays the protocol at a native plugin of the project, which runs as in a host.
func (p Place) CheckPlugin(ctx context.Context, cfg *config.Config, ws *workspace.Workspace, command []string, version string) (out []plugin.Finding, err error) {
	err = p.withRunner(cfg, func(r *sandbox.Runner) error {
		s := newPlugins(&config.Config{}, p, ws.Dir(), r, version)
		out, err = plugin.Check(ctx, command, plugin.Options{Start: s.launch, Directory: ws.Dir(), Version: version})
		return errors.Join(err, s.Close())
	})
	return out, err
}

// withRunner calls do with a runner that confines like a host's, outside of one.
func (p Place) withRunner(cfg *config.Config, do func(*sandbox.Runner) error) error {
	dir, err := os.MkdirTemp("", "centurion-")
	if err != nil {
		return err
	}
	home, _ := os.UserHomeDir() // without one, nothing below it is hidden
	how, err := p.confinement(cfg, home, dir)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	r := &sandbox.Runner{Confine: how}
	return errors.Join(do(r), r.Close(), os.RemoveAll(dir))
}

// confinement returns how commands are confined, with their temporary directories in dir; nil for not at all.
func (p Place) confinement(cfg *config.Config, home, dir string) (*sandbox.Confinement, error) {
	if cfg.Own.Sandbox == "off" {
		return nil, nil
	}
	way, why := sandbox.Best()
	if cfg.Own.Sandbox == "require" && way != confine.Full {
		return nil, &centurion.Error{Op: "confine commands", Kind: centurion.KindUsage, Msg: "--sandbox require: this machine does not allow it", Err: why,
			Hint: "see what is missing with: centurion doctor; or use --sandbox auto"}
	}
	if way == confine.None {
		return nil, nil
	}
	cache := filepath.Join(p.State, "cache")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return nil, StateError(cache, err)
	}
	if way == confine.Full {
		sandbox.MakeCaches(home)
	}
	limits := sandbox.DefaultLimits()
	limits.Processes = cmp.Or(cfg.Own.MaxProcesses, limits.Processes)
	limits.Memory = cmp.Or(int64(cfg.Own.MaxMemory)<<20, limits.Memory)
	return &sandbox.Confinement{Way: way, Read: append([]string{p.Dir, p.plugins()}, pluginCode(home)...), Hide: append(sandbox.Hidden(home), filepath.Dir(filepath.Dir(p.State))),
		Home: home, Protect: []string{".git", ".opencode"}, Caches: sandbox.Caches(home, os.Getenv), Limits: limits, Cache: cache, Dir: dir}, nil
}

// policies returns which tool calls may overlap, for the agents with their own configuration, under their names in the cast.
func policies(cfg *config.Config, cast *agents.Cast) (map[string]session.Policy, error) {
	out := map[string]session.Policy{}
	for _, name := range slices.Sorted(maps.Keys(cfg.Own.Agents)) {
		policy := cfg.Own.Agents[name].ToolPolicy
		if policy == "" {
			continue
		}
		a, err := cast.Find(name)
		if err != nil {
			file, _ := cfg.Origin("agent")
			return nil, &centurion.Error{Op: "read config", Kind: centurion.KindConfig, Msg: "agent." + name + ".tool_policy (" + file + ")", Err: err, Hint: centurion.HintOf(err)}
		}
		out[a.Name] = session.Policy(policy)
	}
	return out, nil
}

// checkouts is the directory of the checkouts.
func (p Place) checkouts() string { return filepath.Join(p.State, "checkouts") }

// worktrees opens the git repository of a project. Its checkouts are kept next to the project's state. workspaces says
// how they are made; alone omits the Co-Authored-By trailer from commits.
func worktrees(p Place, ws *workspace.Workspace, run centurion.Runner, workspaces string, alone bool) func(context.Context) (*worktree.Repo, error) {
	return func(ctx context.Context) (*worktree.Repo, error) {
		return worktree.Open(ctx, worktree.Options{Dir: ws.Dir(), Home: p.checkouts(), Runner: run, Mark: markOf(p, run), Alone: alone,
			Workspaces: workspaces})
	}
}

// markOf returns the mark of a host's git; without a runner it is a command's own, which no later host may end.
func markOf(p Place, run centurion.Runner) string {
	if run == nil {
		return ""
	}
	return p.Mark()
}

// shadow opens the file history kept next to the project's state.
func shadow(p Place, ws *workspace.Workspace, run centurion.Runner) func(context.Context) (*worktree.Shadow, error) {
	return func(ctx context.Context) (*worktree.Shadow, error) {
		return worktree.OpenShadow(ctx, worktree.Options{Dir: ws.Dir(), Home: filepath.Join(p.State, "shadow"), Mark: markOf(p, run)})
	}
}
