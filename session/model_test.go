package session_test

import (
	"strings"
	"testing"

	"centurion"
	"centurion/provider"
	"centurion/provider/scripted"
	"centurion/store"
)

// ORCH-81, ORCH-77: after a change of the model the new one gets the conversation without what the other one has thought, and
// with everything else; its own thoughts it gets back. The session keeps the model that it was given.
func TestModelIsChanged(t *testing.T) {
	r := newRig(t, func(q scripted.Request) scripted.Answer {
		return scripted.Answer{Reasoning: "Thought of " + q.Model + ".", Say: "Said by " + q.Model + "."}
	})
	echo := func(m centurion.ModelRef) *provider.Client {
		return provider.New(provider.Endpoint{Model: m, BaseURL: scripted.URL, HTTP: r.model.Client(), EchoReasoning: true})
	}
	turn := func(text string) {
		t.Helper()
		if err := r.Say(t.Context(), centurion.OriginPerson, text); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Turn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	change := func(to centurion.ModelRef) {
		t.Helper()
		if err := r.store.Update(t.Context(), func(tx *store.Tx) error {
			return r.PutModel(tx, to, centurion.Retry{Failed: []string{"test/scripted"}})
		}); err != nil {
			t.Fatal(err)
		}
		r.cfg.Ref, r.cfg.Model = to, echo(to)
		r.reopen()
	}
	r.cfg.Model = echo(ref)
	r.reopen()
	turn("one")
	other := centurion.ModelRef{Provider: "other", ID: "two"}
	change(other)
	if got := r.Record(); got.Own() != ref || got.Model.Provider != "other" || len(got.Metadata.Retry.Failed) != 1 {
		t.Errorf("the session after the change: %+v, own %s", got, got.Own())
	}
	turn("two")
	if r.Record().Metadata.Retry != nil {
		t.Error("after a good answer a row of failures is left")
	}
	turn("three")
	var asked []string // by the model that each message was for
	for _, m := range r.messages() {
		if m.Role == centurion.RoleUser {
			asked = append(asked, m.Model.String())
		}
	}
	if got := strings.Join(asked, " "); got != "test/scripted test/scripted other/two other/two" {
		t.Errorf("the person's messages were for %s", got)
	}
	thoughts := func(q scripted.Request) string {
		var all []string
		for _, m := range q.Messages() {
			if m.Role == "assistant" {
				all = append(all, m.Text+m.Reasoning)
			}
		}
		return strings.Join(all, " ")
	}
	all := r.model.Requests()
	if got := thoughts(all[1]); got != "Said by scripted." {
		t.Errorf("the other model was sent %q", got)
	}
	if got := thoughts(all[2]); got != "Said by scripted. Said by two.Thought of two." {
		t.Errorf("then it was sent %q", got)
	}
	change(ref)
	if got := r.Record(); got.Metadata.OwnModel != nil || got.Own() != ref {
		t.Errorf("back at its own model: %+v", got.Metadata)
	}
}
