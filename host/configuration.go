package host

import (
	"context"
	"os"

	"centurion"
	"centurion/agents"
	"centurion/config"
	"centurion/event"
	"centurion/orchestrator"
)

// configuration is what the orchestrator works with: what the person has configured, and what belongs to this host.
func (h *Host) configuration(ctx context.Context, cfg *config.Config, how Options) (oc orchestrator.Config, err error) {
	cast, err := cfg.Cast(agents.ProfileMission) // before the rules: it puts those of old names where they belong
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
	oc.Store, oc.Workspace, oc.Cast, oc.Model, oc.Rules, oc.Home, oc.Version = h.store, h.workspace, cast, h.models.Get, rules, home, how.Version
	h.runner = newRunner(h.Place.Mark(), cfg.Own)
	oc.Runner, oc.Mark, oc.Scratch, oc.Web, oc.Publish = h.runner, h.Place.Mark(), h.Place.scratch(), way, h.publisher(how)
	oc.Assistant, oc.Worktrees, oc.Shadow = assistant, worktrees(h.Place, h.workspace, oc.Runner, cfg.Own.CommitsAlone()), shadow(h.Place, h.workspace, oc.Runner)
	oc.Fallback, oc.Concurrency, oc.Policies, oc.Instructions = chains.For, caps, overlap, cfg.Finder()
	return oc, nil
}

// publisher hands what is not written down to whoever watches, and tells the person where nobody draws it.
func (h *Host) publisher(how Options) func(centurion.Event) {
	return func(e centurion.Event) {
		h.hub.Publish(e)
		if e.Type == centurion.EventDelta || how.Note == nil {
			return
		}
		if d, err := event.Decode[event.MissionData](e); err == nil {
			how.Note("mission " + e.Mission + " stands still, " + d.Reason)
		}
	}
}

// startCleaner begins to drop, archive and remove what ended long enough ago, until the host ends.
func (h *Host) startCleaner(how Options) {
	ctx, end := context.WithCancel(context.Background())
	h.stopCleaner = end
	h.group.Go("cleaner", func() error {
		h.missions.Clean(ctx, func(err error) {
			if how.Note != nil {
				how.Note("what ended long ago could not be archived, and is tried again: " + err.Error())
			}
		})
		return nil
	})
}
