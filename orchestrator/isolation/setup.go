package isolation

import (
	"context"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/trust"
)

// MayPrepare asks, before the first checkout is made, whether its setup commands may run, and notifies the person. Commands from an
// untrusted file of the project need a rule or an answer of a person's. Without any command it points out what a fresh checkout of the project
// lacks.
func (m *Checkouts) MayPrepare(ctx context.Context) error {
	g := m.Ground
	g.preparing.Lock()
	defer g.preparing.Unlock()
	if g.prepared {
		return nil
	}
	rec, err := m.st.Store.Mission(ctx, m.st.ID)
	if err != nil {
		return err
	}
	note := ""
	for _, command := range g.Setup {
		if rec.Options.TrustSetup || rec.Options.TrustVerify {
			break
		}
		err := m.mayRun(ctx, rec, command, "commander", "", "setup command")
		if centurion.KindOf(err) == centurion.KindPermission {
			return &centurion.Error{Kind: centurion.KindPermission, Err: err, Msg: "no checkout can be set up",
				Hint: "worktree.setup needs the person's trust (`" + trust.Command + "`) or a permission rule: say so in your answer"}
		}
		if err != nil {
			return err
		}
	}
	if len(g.Setup) > 0 {
		note = "each fresh checkout is set up with: " + strings.Join(g.Setup, "; ")
	} else {
		needs, err := g.Repo.NeedsSetup(ctx, g.Base.Commit)
		if err != nil {
			return err
		}
		if len(needs) > 0 {
			note = strings.Join(needs, ", ") + ": what it lists is not installed in a fresh checkout; say how with worktree.setup in the configuration, such as \"npm ci\""
		}
	}
	if note != "" {
		if err := m.st.Tell(ctx, func(d *event.MissionData) { d.Note = note }); err != nil {
			return err
		}
	}
	g.prepared = true
	return nil
}

// TellNoCheckout notifies the person once why there is no checkout. Otherwise only the session sees it, whose writes are refused.
func (m *Checkouts) TellNoCheckout(ctx context.Context, cause error) error {
	if ctx.Err() != nil || centurion.KindOf(cause) == centurion.KindDisk { // a full disk ends the mission, with its own notice
		return nil
	}
	g := m.Ground
	g.preparing.Lock()
	told := g.toldNone
	g.toldNone = true
	note := "nothing can be written: " + centurion.Clip(cause.Error(), 1000)
	if hint := centurion.HintOf(cause); hint != "" {
		note += "; " + hint
	}
	g.without = note
	g.preparing.Unlock()
	if told {
		return nil
	}
	return m.st.Tell(ctx, func(d *event.MissionData) { d.Note = note })
}

// hasCheckout clears the failure of earlier checkouts.
func (m *Checkouts) hasCheckout() {
	m.Ground.preparing.Lock()
	defer m.Ground.preparing.Unlock()
	m.Ground.without = ""
}

// AskedFor is the question that blocks a mission, with the reason why nothing could be written, if so. Otherwise the person would look
// for the reason in the agents' messages.
func (m *Checkouts) AskedFor(question string) string {
	if m.Ground == nil {
		return question
	}
	m.Ground.preparing.Lock()
	defer m.Ground.preparing.Unlock()
	if why := m.Ground.without; why != "" && !strings.Contains(question, why) {
		return strings.ToUpper(why[:1]) + why[1:] + ". " + question
	}
	return question
}
