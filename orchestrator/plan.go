package orchestrator

import (
	"context"
	"fmt"
	"strings"

	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
)

// obstacle says what keeps a task from being launched, or "" if nothing does. Its files are claimed then.
func (m *mission) obstacle(ctx context.Context, r *state.Run) (string, error) {
	rec, err := m.h.cfg.Store.Mission(ctx, m.st.ID)
	if err != nil {
		return "", err
	}
	if r.Item == "" && !rec.Options.ShowPlan {
		return "", nil
	}
	p, err := m.plan.Read()
	if err != nil {
		return "the plan cannot be read", nil
	}
	if p.Held(rec, r.Agent) {
		return "the plan waits to be accepted", m.approvals.AskPlan(ctx, rec, p)
	}
	if r.Item == "" {
		return "", nil
	}
	if p.Doc == nil {
		return "the plan has vanished", nil
	}
	if t := r.Now.Load(); t != nil && t.Reviews { // what it judges is there, and it changes no file
		return "", nil
	}
	it, ok := p.Doc.Item(r.Item)
	switch t := r.Now.Load(); {
	case ok:
	case p.IsGone(r.Item):
		return "", plan.Removed(r.Item)
	case t != nil && t.Attempt > 0: // it has begun: a slip in the plan does not end it
		return "", nil
	default:
		return fmt.Sprintf("line %d of the plan, which is not read as item %s", p.Doc.Misread(r.Item), r.Item), nil
	}
	for _, other := range m.st.Runs() {
		if other.Item == r.Item && other.ID != r.ID {
			return "after its earlier task", nil // it has ended, and its mark is still to be set
		}
	}
	if unmet := p.Doc.Unmet(r.Item); len(unmet) > 0 {
		return "after " + strings.Join(unmet, ", "), nil
	}
	holder, ok := m.claims.Take(r.Item, it.Files)
	if !ok {
		above, err := m.iso.Ancestors(ctx, r.ID)
		if err != nil {
			return "", err
		}
		holder, ok = m.claims.Take(r.Item, it.Files, above...)
	}
	if !ok {
		return "files of " + holder, nil
	}
	return "", nil
}
