package v1

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"

	"centurion"
	"centurion/orchestrator"
	"centurion/provider"
	"centurion/server"
	"centurion/store"
)

// writer is a model that writes one text, or fails.
type writer struct {
	text string
	err  error
}

func (w writer) Stream(context.Context, provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		if w.err != nil {
			yield(provider.Delta{}, w.err)
			return
		}
		_ = yield(provider.Delta{Type: provider.Text, Text: w.text}, nil) &&
			yield(provider.Delta{Type: provider.Done, Finish: centurion.FinishStop}, nil)
	}
}

// A client that asks for a summary of a session at rest is answered when it is there, was told all that its screen needs, and sees the
// session work meanwhile. What is wrong is told in the answer.
func TestSummarize(t *testing.T) {
	x := newRig(t)
	next := x.listen("/event")
	expect := func(want ...string) (all []told) {
		t.Helper()
		var got []string
		for range want {
			e := next()
			got, all = append(got, brief(e)), append(all, e)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("told\n%v, want\n%v", strings.Join(got, ", "), strings.Join(want, ", "))
		}
		return all
	}
	x.fact(centurion.EventMissionPaused, x.root.ID, "", nil, func(tx *store.Tx) error {
		x.mission.Status = centurion.MissionPaused
		goal := centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: x.root.ID, Role: centurion.RoleUser}
		said := centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: x.root.ID, Role: centurion.RoleAssistant, ParentID: goal.ID, Finish: centurion.FinishStop}
		part := centurion.Part{ID: centurion.NewID(centurion.PrefixPart), SessionID: x.root.ID, MessageID: said.ID, Type: centurion.PartText, Text: "done"}
		return errors.Join(tx.PutMission(&x.mission), tx.PutMessage(&goal), tx.PutMessage(&said), tx.PutPart(&part))
	})
	expect("status idle", "session.idle")
	var asked string
	model := writer{err: &centurion.Error{Kind: centurion.KindAuth, Msg: "the key is refused", Hint: "see to it"}}
	x.project.API().(*server.Local).Host.Shell.Model = func(ref string) (orchestrator.Model, error) {
		asked = ref
		return orchestrator.Model{Ref: centurion.ModelRef{Provider: "custom", ID: "n"}, Client: model}, nil
	}
	path := "/session/" + x.root.ID + "/summarize"
	for body, test := range map[string]struct {
		status int
		says   string
	}{
		`{"providerID":"custom","modelID":"nn"}`: {http.StatusBadRequest, `did you mean \"custom/n\"?`},
		`{"modelID":"n"}`:                        {http.StatusBadRequest, "there is no model"},
		`{"providerID":7}`:                       {http.StatusBadRequest, "read request"},
	} {
		if status, said := x.ask("POST", path, body); status != test.status || !strings.Contains(said, test.says) {
			t.Errorf("%s: %d %s", body, status, said)
		}
	}
	if status, said := x.ask("POST", path, `{"providerID":"custom","modelID":"n"}`); status != http.StatusInternalServerError || !strings.Contains(said, "the key is refused (see to it)") {
		t.Errorf("a model that fails: %d %s", status, said)
	}
	expect("status busy", "status idle", "session.idle")

	model = writer{text: "All was read."}
	if status, said := x.ask("POST", path, `{"providerID":"custom","modelID":"n","auto":false}`); status != http.StatusOK || strings.TrimSpace(said) != "true" || asked != "custom/n" {
		t.Fatalf("%d %s of %s", status, said, asked)
	}
	all := expect("status busy", "message user", "part compaction", "part text", "message assistant whole", "session.compacted", "status idle", "session.idle")
	if info := fmt.Sprint(all[4].Properties["info"]); !strings.Contains(info, "summary:true") || !strings.Contains(fmt.Sprint(all[3].Properties["part"]), "All was read.") {
		t.Errorf("the summary is told as %s", info)
	}
	if status, said := x.ask("POST", path, `{}`); status != http.StatusBadRequest || !strings.Contains(said, "nothing to shorten") {
		t.Errorf("once more: %d %s", status, said)
	}
	expect("status busy", "status idle", "session.idle")
}
