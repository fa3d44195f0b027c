package control

import (
	"cmp"
	"context"

	"centurion"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/store"
)

// Raise lifts the limits of a stopped mission before it is resumed: every field of opts that is not zero replaces the
// mission's own. To resume a mission that was only to be planned is to accept its plan, which the person has seen.
func (d *Desk) Raise(ctx context.Context, id string, opts centurion.MissionOptions) error {
	rec, err := d.Store.Mission(ctx, id)
	if err != nil {
		return err
	}
	sessions, err := d.Store.Sessions(ctx, id)
	if err != nil {
		return err
	}
	accept, trusted := rec.Options.PlanOnly && rec.HadItems, false
	var lines []string
	if accept || len(rec.Adopted) > 0 {
		doc, _, err := d.Workspace.TodoAt(rec.Todo).Load()
		if err != nil && accept {
			return err
		}
		lines = plan.View{Doc: doc}.VerifyLines()
		trusted = doc != nil && d.TrustedPlan(doc.Bytes())
	}
	return d.Store.Update(ctx, func(tx *store.Tx) error {
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
		takeCommands(o, opts)
		o.ShowPlan = opts.ShowPlan || o.PlanFirst
		o.PlanOnly = false
		o.Level = cmp.Or(opts.Level, o.Level)
		if o.Level != 0 {
			m.Level, m.LevelFrom = o.Level, centurion.LevelByPerson
		}
		if accept {
			m.Accepted, m.Approved = true, lines
		}
		if trusted {
			m.Approved = lines
		}
		return tx.PutMission(&m)
	})
}

// takeCommands replaces a mission's commands. The person's stay when only a file of the project, which an agent may have changed, has
// others or none now.
func takeCommands(o *centurion.MissionOptions, now centurion.MissionOptions) {
	if mine := func(o centurion.MissionOptions) bool { return len(o.Verify) > 0 && !o.AskVerify }; mine(now) || !mine(*o) {
		o.Verify, o.AskVerify = now.Verify, now.AskVerify
	}
	if now.TrustSetup || !o.TrustSetup {
		o.Setup, o.TrustSetup = now.Setup, now.TrustSetup
	}
}

// Resize changes how many sessions of a mission run at once while it is being worked on, in all and of one agent; 0 leaves
// a limit as it is. Raising admits sessions that wait; lowering ends nothing, and admits none until fewer are left. The
// mission keeps the new limits. The error has centurion.KindConflict if it is not being worked on.
func (d *Desk) Resize(ctx context.Context, id string, workers, perAgent int) error {
	m := d.Running(id)
	if m == nil {
		return &centurion.Error{Op: "resize mission", Kind: centurion.KindConflict, Msg: "mission " + id + " is not running",
			Hint: "give the limits when it goes on: centurion resume " + id + " --max-workers N"}
	}
	var rec centurion.Mission
	err := d.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if rec, err = tx.Mission(id); err != nil {
			return err
		}
		rec.Options.MaxWorkers = cmp.Or(workers, rec.Options.MaxWorkers)
		rec.Options.MaxPerAgent = cmp.Or(perAgent, rec.Options.MaxPerAgent)
		return tx.PutMission(&rec)
	})
	if err == nil {
		m.Slots.Resize(d.Width(rec.Options))
	}
	return err
}

// Width is how many sessions of a mission may run at once, in all and of one agent.
func (d *Desk) Width(o centurion.MissionOptions) (workers, perAgent int) {
	return cmp.Or(o.MaxWorkers, d.Workers), cmp.Or(o.MaxPerAgent, d.PerAgent)
}
