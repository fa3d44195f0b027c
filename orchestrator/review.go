package orchestrator

import (
	"context"
	"fmt"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/merge"
	"centurion/orchestrator/state"
)

// unruled asks a review whose answer has no verdict for one. That is done once for a task and is no return of its work; if the next answer
// has none either, whoever has asked for the review is told so.
func (m *mission) unruled(ctx context.Context, c *conversation, said string) (*merge.Rejection, error) {
	if !state.JudgesNothing(c.agent.Name, centurion.TaskCompleted, said) || merge.GivesUp(said) {
		return nil, nil
	}
	t, err := m.h.cfg.Store.Task(ctx, c.task.ID)
	if err != nil || t.RejectedFor(event.ReturnedVerdict) {
		return nil, err
	}
	return &merge.Rejection{Cause: event.ReturnedVerdict, Notice: true, Short: "its answer has no verdict: " + lastLine(said),
		Text: "Your answer has no verdict, so your review would not count. Begin your answer with one word, PASS or FAIL, then each finding in a line. " +
			"If something that you could not check keeps you from saying PASS, say FAIL and name it."}, nil
}

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
	return true, m.root.say(ctx, centurion.OriginHost, "Every item is done, but not every one is proven:\n- "+strings.Join(missing, "\n- ")+
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
