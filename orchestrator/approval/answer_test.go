package approval

import (
	"testing"

	"centurion"
	"centurion/orchestrator/state"
	"centurion/sandbox"
	"centurion/store"
	"centurion/store/storetest"
)

// A question of a stopped mission is answered with a text or the number of a choice, once; anything else is refused and leaves it open.
func TestAnswerWithoutAHost(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t)
	asks := []store.Ask{
		{ID: "que_1", Type: store.AskQuestion, Mission: "msn_1", Session: "ses_1", Call: "c1", Options: []string{"red", "blue"}},
		{ID: "que_2", Type: store.AskQuestion, Mission: "msn_1", Session: "ses_1"}, // no call waits for it
		{ID: "per_1", Type: store.AskPermission, Mission: "msn_1", Session: "ses_1", Call: "c2"},
	}
	err := st.Update(t.Context(), func(tx *store.Tx) error {
		if err := tx.PutMission(&centurion.Mission{ID: "msn_1", Status: centurion.MissionPaused}); err != nil {
			return err
		}
		for _, a := range asks {
			if err := tx.PutAsk(&a); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		ask, answer string
		kind        centurion.Kind
		stands      string
	}{
		{"que_1", " ", centurion.KindUsage, ""},
		{"que_2", "", centurion.KindUsage, ""},
		{"que_1", "2", "", "blue"},
		{"que_1", "red", centurion.KindNotFound, "blue"},
		{"que_2", "red", centurion.KindConflict, ""},
		{"per_1", "once", centurion.KindConflict, ""},
		{"que_9", "red", centurion.KindNotFound, ""},
	} {
		err := Answer(t.Context(), st, test.ask, test.answer, sandbox.Peer{PID: 7, Command: "node x.js"}, func(string) *Approvals { return nil })
		if centurion.KindOf(err) != test.kind {
			t.Errorf("%s to %s: %v", test.answer, test.ask, err)
		}
		all, err := st.Asks(t.Context(), "", false)
		for _, a := range all {
			if a.ID == test.ask && (a.Answer != test.stands || a.Answered.IsZero() != (test.stands == "")) {
				t.Errorf("%s stands as %q", a.ID, a.Answer)
			}
			if a.Answer != "" && (a.By != state.ByProgram || a.PID != 7 || a.Command != "node x.js") {
				t.Errorf("answered by %s, process %d, %q", a.By, a.PID, a.Command)
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// A program that is not known to act for a person answers once at most.
func TestAlwaysIsAPersons(t *testing.T) {
	for by, want := range map[string]int{state.ByPerson: 1, state.ByProgram: 0, state.ByPolicy: 0} {
		var g grants
		g.add(store.Ask{Type: store.AskPermission, Call: "c", Permission: "bash", Always: []string{"rm *"}, Answer: "always", By: by})
		if g.size() != want {
			t.Errorf("%s: %+v", by, g)
		}
	}
}
