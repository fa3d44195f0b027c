package orchestrator

import (
	"cmp"

	"centurion"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/start"
	"centurion/permission"
)

// inForce is the configuration for what begins, and what is made of it. A mission keeps the one with which it began to run.
type inForce struct {
	Config
	briefs  *brief.Desk
	starter *start.Starter
}

// Renew puts another configuration in force for missions that begin to run from now on. What belongs to the host itself stays as [New] got
// it: the store, the workspace, the runner, the slots that missions share, what is kept of ended ones, and the interval of the audit.
func (h *Host) Renew(cfg Config) {
	cfg.complete()
	now := &inForce{Config: cfg}
	now.briefs = &brief.Desk{Confined: cfg.Confined, Rules: func(agent string) []permission.Level { return now.Rules(agent) }, Instructions: cfg.Instructions, Web: cfg.Web, Hooks: cfg.Hooks, External: cfg.External, Workspace: cfg.Workspace, Project: h.Project,
		Window: func(model centurion.ModelRef) int {
			got, _ := now.Model(model.String()) // its error is reported when the model is used
			return got.Context
		}}
	now.starter = &start.Starter{Store: cfg.Store, Workspace: cfg.Workspace, Project: h.Project, Plans: h.desk, Briefs: now.briefs, Models: cfg.models(),
		Cast: cfg.cast, Version: cfg.Version, Confined: cfg.Confinement, Entering: &h.starting}
	h.inForce.Store(now)
}

func (h *Host) cfg() *inForce { return h.inForce.Load() }

// width are a mission's options with the configured limits in place of missing ones.
func (c *inForce) width(o centurion.MissionOptions) centurion.MissionOptions {
	o.MaxWorkers, o.MaxPerAgent = cmp.Or(o.MaxWorkers, c.Workers), cmp.Or(o.MaxPerAgent, c.PerAgent)
	return o
}
