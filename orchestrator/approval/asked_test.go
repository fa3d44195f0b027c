package approval

import (
	"errors"
	"reflect"
	"testing"

	"centurion"
	"centurion/guard"
	"centurion/permission"
	"centurion/sandbox"
	"centurion/store"
)

// answered answers the one question that do asks, and returns it as it was asked.
func answered(t *testing.T, m *Approvals, answer string, do func() error) (asked store.Ask, err error) {
	t.Helper()
	var answering guard.Group
	var open []store.Ask
	answering.Go("answer", func() (err error) {
		for err == nil && len(open) == 0 {
			changed := m.st.Change()
			if open, err = m.st.Store.Asks(t.Context(), "msn_1", true); err == nil && len(open) == 0 {
				err = m.st.Await(t.Context(), changed, 0)
			}
		}
		if err != nil {
			return err
		}
		return Answer(t.Context(), m.st.Store, open[0].ID, answer, sandbox.Peer{}, func(string) *Approvals { return m })
	})
	err = do()
	if aerr := answering.Wait(); aerr != nil || len(open) != 1 || open[0].Created.IsZero() {
		t.Fatal(aerr, open)
	}
	asked = open[0]
	asked.ID, asked.Created = "", centurion.Time{}
	return asked, err
}

// Where the rules ask, a person says whether one of the project's own commands runs, and has the network; what they refuse does not run.
func TestPersonDecidesAboutACommand(t *testing.T) {
	t.Parallel()
	rules := map[string][]permission.Level{"worker": level("opencode.json", permission.Ask)}
	for answer, runs := range map[string]bool{"once": true, "always": true, "reject": false, "not that one": false} {
		m := deciding(t, centurion.Mission{Session: "ses_0", Options: centurion.MissionOptions{Ask: "ask"}}, rules)
		asked, err := answered(t, m, answer, func() error { return m.MayCheck(t.Context(), "make", "worker", "tsk_1") })
		want := store.Ask{Type: store.AskPermission, Mission: "msn_1", Session: "ses_0", Task: "tsk_1", Permission: "bash", Patterns: []string{"make"}, Always: []string{"make"}, Title: "make", Text: asked.Text}
		if !reflect.DeepEqual(asked, want) || len(asked.Text) <= len("acceptance command of the plan: ") {
			t.Errorf("%s: asked %+v, want %+v", answer, asked, want)
		}
		var refused error
		if !runs {
			refused = mayNot(acceptance, "make", "a person refused it", "allow it with a permission rule, or run with --ask allow")
		}
		if !reflect.DeepEqual(err, refused) || m.Online("make") != runs {
			t.Errorf("%s: %v, online %v", answer, err, m.Online("make"))
		}
	}
}

// A check that was changed in the plan's file counts only if a person says so; without one nothing is asked.
func TestMayExchange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answer string
		to     []string
		title  string
		counts bool
	}{
		{"once", []string{"a", "b"}, "use the check of todo.md: a; b", true},
		{"always", nil, "continue without a check, as todo.md says", true},
		{"reject", []string{"a"}, "use the check of todo.md: a", false},
	} {
		m := deciding(t, centurion.Mission{Session: "ses_0", Options: centurion.MissionOptions{Ask: "ask"}}, nil)
		counts := false
		asked, err := answered(t, m, c.answer, func() (err error) {
			counts, err = m.MayExchange(t.Context(), centurion.Exchange{Item: "T1", From: []string{"x"}, To: c.to}, "why", "tsk_1")
			return err
		})
		want := store.Ask{Type: store.AskPermission, Mission: "msn_1", Session: "ses_0", Task: "tsk_1", Permission: "todowrite", Patterns: c.to, Title: c.title, Text: "why"}
		if err != nil || counts != c.counts || !reflect.DeepEqual(asked, want) {
			t.Errorf("%s: %v, %v; asked %+v, want %+v", c.answer, counts, err, asked, want)
		}
	}
	for _, policy := range []string{"allow", "deny"} {
		m := deciding(t, centurion.Mission{Options: centurion.MissionOptions{Ask: policy}}, nil)
		counts, err := m.MayExchange(t.Context(), centurion.Exchange{Item: "T1", To: []string{"a"}}, "why", "tsk_1")
		all, aerr := m.st.Store.Asks(t.Context(), "msn_1", false)
		if errors.Join(err, aerr) != nil || counts || len(all) > 0 {
			t.Errorf("%s: %v, %v, %v; asked %+v", policy, counts, err, aerr, all)
		}
	}
}
