package approval

import (
	"context"
	"testing"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/state"
	"centurion/permission"
	"centurion/sandbox"
	"centurion/store"
	"centurion/tools"
)

// What an agent's own rules allow, and those of one above it ask about, is asked: no rule answers in the person's place.
func TestThePersonAnswersWhatThoseAboveAsk(t *testing.T) {
	t.Parallel()
	m := deciding(t, centurion.Mission{Session: "ses_0", Options: centurion.MissionOptions{Ask: "ask"}},
		map[string][]permission.Level{"may": level("a", permission.Allow), "asks": level("b", permission.Ask)})
	ctx, over := context.WithCancel(t.Context())
	var answering guard.Group
	answering.Go("answer", func() error {
		for {
			changed := m.st.Change()
			open, err := m.st.Store.Asks(ctx, "msn_1", true)
			if err == nil && len(open) > 0 {
				return Answer(ctx, m.st.Store, open[0].ID, "reject", sandbox.Peer{}, func(string) *Approvals { return m })
			}
			if err != nil || m.st.Await(ctx, changed, 0) != nil {
				return nil // nothing was asked
			}
		}
	})
	d := Desk{Approvals: m, Caller: Caller{Agent: "may", Above: []string{"asks"}, Rest: func(_ context.Context, _ string, wait func() error) error { return wait() }}}
	ask := store.Ask{ID: centurion.NewID(centurion.PrefixPermission), Type: store.AskPermission, Mission: "msn_1", Permission: "bash", Patterns: []string{"make"}, Created: centurion.Now()}
	got, err := d.permitted(ctx, ask, tools.Access{Permission: "bash", Patterns: []string{"make"}, Script: "make"}, m.cfg.Workspace)
	over()
	if werr := answering.Wait(); werr != nil {
		t.Error(werr)
	}
	if got.Answer != "reject" || got.By != state.ByPerson || err == nil {
		t.Errorf("%s by %s, %v", got.Answer, got.By, err)
	}
}
