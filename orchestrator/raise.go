package orchestrator

import (
	"cmp"
	"context"

	"centurion"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/store"
)

// Raise lifts the limits of a stopped mission before it is resumed: every field of opts that is not zero replaces the
// mission's own. Resuming a mission that was only to be planned accepts its plan, which the person has seen.
func (h *Host) Raise(ctx context.Context, id string, opts centurion.MissionOptions) error {
	rec, err := h.cfg.Store.Mission(ctx, id)
	if err != nil {
		return err
	}
	sessions, err := h.cfg.Store.Sessions(ctx, id)
	if err != nil {
		return err
	}
	accept := rec.Options.PlanOnly && rec.HadItems
	var lines []string
	if accept {
		doc, _, err := h.cfg.Workspace.TodoAt(rec.Todo).Load()
		if err != nil {
			return err
		}
		lines = plan.View{Doc: doc}.VerifyLines()
	}
	return h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		m, err := tx.Mission(id)
		if err != nil {
			return err
		}
		o := &m.Options
		if opts.Model != "" && opts.Model != o.Model {
			if err := state.Remodel(tx, sessions, o.Model, opts.Model); err != nil {
				return err
			}
			o.Model = opts.Model
		}
		o.MaxCost = cmp.Or(opts.MaxCost, o.MaxCost)
		o.MaxTokens = cmp.Or(opts.MaxTokens, o.MaxTokens)
		o.MaxDuration = cmp.Or(opts.MaxDuration, o.MaxDuration)
		o.MaxRounds = cmp.Or(opts.MaxRounds, o.MaxRounds)
		o.MaxToolCalls = cmp.Or(opts.MaxToolCalls, o.MaxToolCalls)
		o.MaxWorkers = cmp.Or(opts.MaxWorkers, o.MaxWorkers)
		o.MaxPerAgent = cmp.Or(opts.MaxPerAgent, o.MaxPerAgent)
		o.Detached = opts.Detached
		o.Merge = o.Merge || opts.Merge
		o.RequireProof = o.RequireProof || opts.RequireProof
		o.Ask = cmp.Or(opts.Ask, o.Ask)
		o.Unattended = opts.Unattended
		o.Verify, o.AskVerify = opts.Verify, opts.AskVerify
		o.ShowPlan = opts.ShowPlan
		o.PlanOnly = false
		if o.Level = cmp.Or(opts.Level, o.Level); o.Level != 0 {
			m.Level, m.LevelFrom = o.Level, centurion.LevelByPerson
		}
		if accept {
			m.Accepted, m.Approved = true, lines
		}
		return tx.PutMission(&m)
	})
}
