package server_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"centurion"
	"centurion/server"
	"centurion/store"
)

// OPAL-30: through the socket of the process that hosts a project, conversations are read as trees, taken back and copied as in it;
// errors keep their kinds and the next step.
func TestTreeRoutes(t *testing.T) {
	p := newProject(t)
	c := connect(t, p.local)
	ctx := t.Context()
	answer := centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: p.session.ID, Role: centurion.RoleAssistant,
		Finish: centurion.FinishStop}
	if err := p.store.Update(ctx, func(tx *store.Tx) error { return tx.PutMessage(&answer) }); err != nil {
		t.Fatal(err)
	}
	tree := func(a server.API) string {
		got, err := a.Tree(ctx, p.session.ID)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	want := tree(p.local)
	if got := tree(c); got != want || !strings.Contains(got, `"leaf":"`+answer.ID) || !strings.Contains(got, `"prev":"msg_`) {
		t.Errorf("the tree is\n%s\nthrough the socket\n%s", want, got)
	}
	r, err := c.Rewind(ctx, p.session.ID[:20], server.Rewind{To: "-1", Mark: "here"})
	if err != nil || r.From != answer.ID || r.Mark != "here" || r.Undone != 1 || r.Mission != p.mission.ID {
		t.Fatalf("%+v, %v", r, err)
	}
	if msgs, err := c.Messages(ctx, p.session.ID); err != nil || len(msgs) != 1 || tree(c) == want {
		t.Errorf("%d messages, %v", len(msgs), err)
	}
	f, err := c.Fork(ctx, p.session.ID, "here")
	if err != nil || f.Messages != 2 || f.From.Message != answer.ID {
		t.Fatalf("%+v, %v", f, err)
	}
	if msgs, err := c.Messages(ctx, f.Session); err != nil || len(msgs) != 2 {
		t.Errorf("%d messages, %v", len(msgs), err)
	}
	_, err = c.Rewind(ctx, p.session.ID, server.Rewind{To: "her"})
	if centurion.KindOf(err) != centurion.KindNotFound || !strings.Contains(err.Error(), "the nearest is here") || centurion.HintOf(err) == "" {
		t.Error(err)
	}
	if _, err = c.Fork(ctx, "ses_nosuch", ""); centurion.KindOf(err) != centurion.KindNotFound {
		t.Error(err)
	}
	idle := &server.Local{Store: p.store}
	for what, do := range map[string]func(context.Context) error{
		"rewind": func(ctx context.Context) error {
			_, err := idle.Rewind(ctx, p.session.ID, server.Rewind{To: "-1"})
			return err
		},
		"fork": func(ctx context.Context) error { _, err := idle.Fork(ctx, p.session.ID, ""); return err },
	} {
		if err := do(ctx); centurion.KindOf(err) != centurion.KindConflict {
			t.Errorf("%s without a host: %v", what, err)
		}
	}
}
