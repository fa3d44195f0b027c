package isolation

import (
	"context"
	"strings"

	"centurion"
	"centurion/event"
)

// MayPrepare asks, before the first checkout is made, whether the commands that make it usable may run, and tells the person
// of them. Those that came with the project go by the rules of a shell command. Without any it points out what a fresh checkout
// of the project lacks.
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
				Hint: "worktree.setup needs a permission rule, or --ask allow: say so in your answer"}
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

// TellNoCheckout tells the person once that a checkout cannot be had and why: each write is refused with it, which only its session sees.
func (m *Checkouts) TellNoCheckout(ctx context.Context, cause error) error {
	if ctx.Err() != nil || centurion.KindOf(cause) == centurion.KindDisk { // which ends the mission, and is told by that
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

// hasCheckout says that one could be had: what kept the ones before it back is over.
func (m *Checkouts) hasCheckout() {
	m.Ground.preparing.Lock()
	defer m.Ground.preparing.Unlock()
	m.Ground.without = ""
}

// AskedFor is the question with which a mission is blocked, and why nothing could be written, where that is so: without it the person
// would look for the reason in what the agents say.
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
