package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"centurion"
	"centurion/agents"
	"centurion/config"
	"centurion/event"
	"centurion/host"
	"centurion/orchestrator/plan"
	"centurion/server"
	"centurion/text"
	"centurion/tui"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// prepare reads the configuration and finds the project and the model. The caller connects.
func (c *runner) prepare(ctx context.Context) (*host.Connection, error) {
	if c.f.format != "" && c.f.format != "text" && c.f.format != "json" {
		return nil, badValue("format", c.f.format, []string{"text", "json"})
	}
	given := *c.f
	p, ws, err := c.locate(c.f.dir)
	if err != nil {
		return nil, err
	}
	renew, err := c.configure(ctx, ws)
	if err != nil {
		return nil, errors.Join(err, ws.Close())
	}
	models := renew.Models(ctx)
	conn := &host.Connection{Place: p, Workspace: ws, Note: c.note, Config: models.Config, Models: models, Options: c.hostOptions()}
	conn.Options.Renew, conn.Options.Front = renew, (&frontEnd{c: c.cli, conn: conn, given: given}).forPlugins
	if c.live() && c.f.format != "json" {
		conn.Options.Note, conn.Options.DiskWait, renew.Note = nil, -1, nil // the live view shows the wait, and what is told
	}
	return conn, nil
}

// configure reads the configuration of a project, settles the flags by it, and finds the model. What is returned does that again for work
// that begins later, with the flags as they were given, and asks nobody.
func (c *runner) configure(ctx context.Context, ws *workspace.Workspace) (*host.Renewer, error) {
	if fi, err := os.Stat(filepath.Join(ws.Dir(), workspace.Directory)); err == nil && !fi.IsDir() {
		return nil, ws.CheckWritable() // says so better than what fails to read it
	}
	given := *c.f
	read := func(ctx context.Context, run *runner, stamps config.Stamps, say func(string)) (cfg *config.Config, first config.Resolved, err error) {
		if cfg, err = config.Load(config.Options{Dir: ws.Dir(), Env: c.getenv, Stamps: stamps}); err == nil {
			first, err = run.settle(ctx, ws, cfg, say)
		}
		return cfg, first, err
	}
	renew := &host.Renewer{Note: c.note, Read: func(ctx context.Context, stamps config.Stamps, say func(string)) (*config.Config, config.Resolved, error) {
		return read(ctx, c, stamps, say)
	}}
	err := renew.Begin(ctx)
	if need, ok := errors.AsType[*config.Untrusted](err); ok {
		yes, failed := c.offerTrust(ctx, ws, need)
		if yes {
			*c.f = given
			return c.configure(ctx, ws)
		}
		err = errors.Join(err, failed)
	}
	renew.Read = func(ctx context.Context, stamps config.Stamps, say func(string)) (*config.Config, config.Resolved, error) {
		f := given
		return read(ctx, &runner{c.cli, &f}, stamps, say)
	}
	return renew, err
}

// settle settles the flags by a configuration, finds the model, and looks at all else that a start looks at.
func (c *runner) settle(ctx context.Context, ws *workspace.Workspace, cfg *config.Config, say func(string)) (first config.Resolved, err error) {
	flagged := c.f.model != ""
	if err = c.f.settle(cfg.Own); err == nil {
		err = ws.CheckWritable()
	}
	if err == nil {
		first, err = c.findModel(ctx, cfg, flagged, say)
	}
	if err != nil {
		return first, err
	}
	if first.Default {
		say(fmt.Sprintf("model %s (%s)", first.Model, cmp.Or(first.From, first.Address())))
	}
	cfg.Own.Sandbox = c.f.sandbox
	cfg.Own.MaxWorkers = cmp.Or(c.f.maxWorkers, cfg.Own.MaxWorkers)
	cfg.Own.MaxPerAgent = cmp.Or(c.f.maxPerAgent, cfg.Own.MaxPerAgent)
	if _, err := cfg.Rules(); err != nil { // also to learn which need trust
		return first, err
	}
	chains, err := cfg.Chains(ctx)
	if err != nil {
		return first, err
	}
	for _, note := range chains.Notes {
		say(note)
	}
	tellNotices(cfg, say)
	return first, cfg.Started()
}

// findModel finds the agent and the model of settled flags. flagged says that the model was given for this run.
func (c *runner) findModel(ctx context.Context, cfg *config.Config, flagged bool, say func(string)) (config.Resolved, error) {
	if err := c.f.cast(cfg, flagged); err != nil {
		tellNotices(cfg, say) // the agent may be one that needs trust
		return config.Resolved{}, err
	}
	first, err := cfg.ResolveModel(ctx, c.f.model)
	if first.Warning != "" && !c.f.modelKnown {
		say(first.Warning)
	}
	return first, err
}

// cast finds the agent that a mission starts with, and the model of its own that the agent has, which only one that was
// given for this run replaces.
func (f *runFlags) cast(cfg *config.Config, modelGiven bool) error {
	cast, err := cfg.Cast(f.profile)
	if err != nil {
		return err
	}
	if f.agent == "" && cfg.DefaultAgent != "" {
		if _, err := cast.Find(cfg.DefaultAgent); err == nil {
			f.agent = cfg.DefaultAgent
		} else { // OpenCode has agents that are none here
			cfg.Notices = append(cfg.Notices, fmt.Sprintf("centurion: default_agent %q is not available here; using %s", cfg.DefaultAgent, cast.Owner()))
		}
	}
	a, err := cast.Find(cmp.Or(f.agent, cast.Owner()))
	if e, ok := errors.AsType[*centurion.Error](err); ok && e.Hint == "" {
		e.Hint = "see: centurion agents --profile " + f.profile
	}
	if !modelGiven {
		f.model = cmp.Or(a.Model, f.model)
	}
	return err
}

// offerTrust shows a person on a terminal what needs trust so that a model can be used, and reports whether they trust it.
func (c *runner) offerTrust(ctx context.Context, ws *workspace.Workspace, need *config.Untrusted) (bool, error) {
	if c.f.detach || c.f.format != "text" || !c.live() {
		return false, nil
	}
	c.note(text.Clean(need.Error()))
	p, again, err := c.locate(ws.Dir())
	if err != nil {
		return false, err
	}
	defer again.Close()
	return c.trustProject(ctx, p, again, "", "text", false)
}

// missionOptions turns flags into what a mission is started with.
func (c *runner) missionOptions(models *host.Models) (centurion.MissionOptions, error) {
	live := c.live()
	foreign := func(key string) bool {
		_, foreign := models.Config.Origin(key)
		return foreign
	}
	o := centurion.MissionOptions{Agent: c.f.agent, Model: models.First.Model.String(), Level: c.f.level, MaxTokens: c.f.maxTokens,
		MaxDuration: c.f.maxDuration.Milliseconds(), MaxRounds: c.f.maxRounds, MaxWorkers: c.f.maxWorkers, MaxPerAgent: c.f.maxPerAgent, MaxToolCalls: c.f.maxToolCalls,
		Isolation: c.f.isolation, Dirty: c.f.dirty, Setup: models.Config.Own.WorktreeSetup,
		Verify: models.Config.Own.Verify, AskVerify: foreign("verify"), ShowPlan: live && !c.f.yes && !c.f.detach && c.f.format == "text"}
	o.TrustSetup = len(o.Setup) > 0 && !foreign("worktree.setup")
	if c.f.profile == agents.ProfileAssistant {
		o.Profile, o.Verify, o.ShowPlan = c.f.profile, nil, false
	}
	o.Merge, o.RequireProof = c.f.merge, c.f.requireProof
	o.Ask = c.f.ask
	if o.Ask == "" {
		o.Ask = "deny"
		if live && c.f.format == "text" { // also in the background: the person can answer from any terminal
			o.Ask = "ask"
		}
	}
	o.Unattended = o.Ask == "ask" && !(live && c.f.format == "text")
	switch {
	case models.First.Price != nil:
		o.MaxCost = c.f.maxCost
		if !c.f.costSet {
			o.MaxCost = defaultMaxCost
		}
	case c.f.costSet:
		return o, &centurion.Error{Kind: centurion.KindConfig, Msg: fmt.Sprintf("--max-cost needs a price, and %s has none", models.First.Model),
			Hint: fmt.Sprintf("give its price under provider.%s.models.%s.cost in opencode.json (of the project, or in ~/.config/opencode), in USD for a million tokens: \"cost\": {\"input\": 1, \"output\": 4}; or use --max-tokens",
				models.First.Model.Provider, models.First.Model.ID)}
	case o.MaxTokens == 0:
		o.MaxTokens = fallbackTokens
	}
	return o, nil
}

// startWith starts a mission. On a terminal it first asks whether to carry out a plan that no mission owns. Otherwise such a plan is put
// aside, and a note says where.
func (c *runner) startWith(ctx context.Context, conn *host.Connection, goal string, opts centurion.MissionOptions) (server.Mission, error) {
	if opts.Plan == "" && c.f.profile == agents.ProfileMission && c.f.format != "json" && c.live() {
		var err error
		if opts.Plan, err = c.askAdopt(ctx, conn); err != nil {
			return server.Mission{}, err
		}
	}
	m, err := host.Call(ctx, conn, func(api server.API) (server.Mission, error) { return api.Start(ctx, goal, opts) })
	if err == nil && m.PutAside != "" {
		c.note(plan.PutAsideNote(m.Todo, m.PutAside))
	}
	return m, err
}

// askAdopt asks whether the plan that lies in the project is to be carried out, unless there is none or a mission owns it. It returns the
// plan's file if it is.
func (c *runner) askAdopt(ctx context.Context, conn *host.Connection) (string, error) {
	b, _, err := conn.Workspace.ReadFile(workspace.TodoPath, 0)
	if err != nil || len(bytes.TrimSpace(b)) == 0 {
		return "", nil // the start of the mission reports an unreadable plan
	}
	all, err := host.Call(ctx, conn, func(api server.API) ([]server.Mission, error) { return api.Missions(ctx) })
	if err != nil {
		return "", err
	}
	if i := slices.IndexFunc(all, func(m server.Mission) bool { return m.Todo == workspace.TodoPath }); i >= 0 && all[i].HasPlan {
		return "", nil
	}
	what := "it cannot be read as a plan"
	if doc, err := todo.Parse(b); err == nil {
		what = centurion.Count(doc.Counts().Total(), "item")
	}
	if _, err := fmt.Fprintf(c.out, "No mission of this project wrote the plan in %s (%s).\n", workspace.TodoPath, what); err != nil {
		return "", err
	}
	key, err := c.choose(ctx, "carry it out? (y/n/Q, n puts it aside, q quits)", "ynq", "q")
	switch {
	case err != nil || key == "n":
		return "", err
	case key == "y":
		return workspace.TodoPath, nil
	}
	return "", &centurion.Error{Op: "start mission", Kind: centurion.KindInterrupted, Msg: "you quit", Hint: "look at the plan in " + workspace.TodoPath + ", then run it again"}
}

// planFile returns the path of a mission's plan at this moment: a newer mission of the project may take the name.
func planFile(api missionAPI, id string) tui.PlanFile {
	return func(ctx context.Context) (string, error) {
		m, err := api.Mission(ctx, id)
		if err == nil && m.Todo == "" {
			err = &centurion.Error{Op: "find plan", Kind: centurion.KindNotFound, Msg: "mission " + id + " has no plan file"}
		}
		return filepath.Join(m.Directory, filepath.FromSlash(m.Todo)), err
	}
}

// planReader reads the items of the plan in a file.
func planReader(file tui.PlanFile) tui.PlanReader {
	return func(ctx context.Context) ([]tui.Item, error) {
		path, err := file(ctx)
		if err != nil {
			return nil, err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, &centurion.Error{Op: "read plan", Kind: centurion.KindNotFound, Err: err}
		}
		doc, err := todo.Parse(b)
		if err != nil {
			return nil, err
		}
		return planItems(doc), nil
	}
}

// planItems are the items of a plan without its groups.
func planItems(doc *todo.Doc) (items []event.PlanItem) {
	for _, it := range doc.Items() {
		if !it.Group {
			items = append(items, event.PlanItem{ID: it.ID, Title: it.Shown(), Agent: it.Agent, After: it.After, Files: it.Files, Verify: it.Verify,
				Status: doc.Status(it.ID).String()})
		}
	}
	return items
}
