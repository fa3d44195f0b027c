package orchestrator

import (
	"context"
	"fmt"
	"strings"

	"centurion"
	"centurion/orchestrator/state"
)

// reviewFirst sends a mission that is idle with every item done back to its agent as long as a review is missing. After as
// many times as a check may fail, a person is called.
func (l *mainLoop) reviewFirst(ctx context.Context) (again bool, err error) {
	v, err := l.m.judge.Look(ctx)
	missing := v.Unreviewed()
	if err != nil || len(missing) == 0 {
		return false, err
	}
	if l.sentForReview++; l.sentForReview > l.m.h.cfg.Returns {
		return false, &state.Blocked{Question: fmt.Sprintf("Every item is done, but a review is missing, and %d times nobody was asked for one: %s. What should be done?",
			l.m.h.cfg.Returns, state.InWords(missing[0]))}
	}
	return true, l.m.root.Say(ctx, centurion.OriginHost, "Every item is done, but not every one is proven:\n- "+strings.Join(missing, "\n- ")+
		"\nThe reviewer's word is needed before the mission is complete.")
}

// bare reports whether the mission would end with nothing to show for it, and its own agent was not asked about that yet: without a plan,
// nothing was changed and no check shows anything; or its person wants proof, and there is none.
func (l *mainLoop) bare(ctx context.Context) (bool, error) {
	v, err := l.m.judge.Look(ctx)
	if err != nil || l.questioned || state.Alone(l.m.st.Profile) || !v.Bare(l.m.h.cfg.Workspace.Dir()) {
		return false, err
	}
	changed, err := l.m.iso.Changed(ctx)
	return v.Mission.Options.RequireProof || !changed, err
}
