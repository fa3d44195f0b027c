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
func (m *mission) reviewFirst(ctx context.Context) (again bool, err error) {
	v, err := m.judge.Look(ctx)
	missing := v.Unreviewed()
	if err != nil || len(missing) == 0 {
		return false, err
	}
	if m.sentForReview++; m.sentForReview > m.h.cfg.Returns {
		return false, &state.Blocked{Question: fmt.Sprintf("Every item is done, but a review is missing, and %d times nobody was asked for one: %s. What should be done?",
			m.h.cfg.Returns, state.InWords(missing[0]))}
	}
	return true, m.root.Say(ctx, centurion.OriginHost, "Every item is done, but not every one is proven:\n- "+strings.Join(missing, "\n- ")+
		"\nThe reviewer's word is needed before the mission is complete.")
}

// bare reports whether the mission would end with nothing to show for it, and its own agent was not asked about that yet: without a plan,
// nothing was changed and no check shows anything; or its person wants proof, and there is none.
func (m *mission) bare(ctx context.Context) (bool, error) {
	v, err := m.judge.Look(ctx)
	if err != nil || m.questioned || state.Alone(m.st.Profile) || !v.Bare(m.h.cfg.Workspace.Dir()) {
		return false, err
	}
	changed, err := m.iso.Changed(ctx)
	return v.Mission.Options.RequireProof || !changed, err
}
