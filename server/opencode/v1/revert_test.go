package v1

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/branches"
	"centurion/server"
	"centurion/store"
)

// Issue "Real OpenCode clients", revert: what is reverted stands in the session until it is brought back or removed, and clients are told.
func TestRevert(t *testing.T) {
	x := newRig(t)
	next := x.listen("/event")
	var ids []string
	x.update(func(tx *store.Tx) error {
		var err error
		for _, role := range []centurion.Role{centurion.RoleUser, centurion.RoleAssistant, centurion.RoleUser} {
			m := centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: x.root.ID, Role: role, Origin: centurion.OriginPerson}
			ids, err = append(ids, m.ID), errors.Join(err, tx.PutMessage(&m))
		}
		return err
	})
	path := "/session/" + x.root.ID
	is := func(method, route, body string, status int, says string) {
		t.Helper()
		if got, text := x.ask(method, path+route, body); got != status || !strings.Contains(text, says) {
			t.Errorf("%s %s %s: %d %s, want %d %s", method, route, body, got, text, status, says)
		}
	}
	told := func(want ...string) {
		t.Helper()
		for _, kind := range want {
			if e := next(); e.Type != kind {
				t.Errorf("told %s, want %s", e.Type, kind)
			}
		}
	}
	named := func(id string) string { return fmt.Sprintf(`{"messageID":%q}`, id) }
	standing := fmt.Sprintf(`"revert":{"messageID":%q}`, ids[2])
	is("POST", "/revert", named(ids[2]), 200, standing)
	is("GET", "", "", 200, standing)
	told("session.updated", "session.diff")
	is("POST", "/unrevert", "", 200, `"id":"`+x.root.ID)
	if _, text := x.ask("GET", path, ""); strings.Contains(text, "revert") {
		t.Errorf("a revert remains: %s", text)
	}
	told("session.updated", "session.diff")
	is("POST", "/revert", named(ids[0]), 409, `{"_tag":"SessionBusyError","sessionID":"`+x.root.ID+`","message":"revert: it is the goal`)
	is("POST", "/revert", named("msg_000000000001AAAAAAAAAAAAAA"), 404, `"NotFoundError"`)
	is("POST", "/revert", `{"messageID":"x"}`, 404, `"NotFoundError"`)
	is("GET", "/diff?messageID="+ids[2], "", 200, "[]")
	is("GET", "/diff?messageID=msg_000000000001AAAAAAAAAAAAAA", "", 200, "[]")
	is("GET", "/diff", "", 200, "[]")
	x.fact(centurion.EventRewound, x.root.ID, "", event.RewoundData{From: ids[2], To: ids[0]}, nil)
	for _, id := range ids[1:] {
		if e := next(); e.Type != "message.removed" || e.Properties["messageID"] != id {
			t.Errorf("told %s %v, want %s", e.Type, e.Properties, id)
		}
	}
	told("session.updated")
}

// A difference has OpenCode's shape.
func TestShownDiffs(t *testing.T) {
	t.Parallel()
	diff := func(path, old, status string, hunks ...centurion.Hunk) centurion.FileDiff {
		return centurion.FileDiff{FileChange: centurion.FileChange{Path: path, Old: old, Status: status, Added: 1, Deleted: 2}, Hunks: hunks}
	}
	got := shownDiffs([]centurion.FileDiff{diff("a.txt", "", "modified", centurion.Hunk{Header: "@@ -1,2 +1 @@", Text: "-x\n-y\n+z\n"}), diff("new", "old", "renamed")})
	if want := "Index: a.txt\n" + strings.Repeat("=", 67) + "\n--- a.txt\t\n+++ a.txt\t\n@@ -1,2 +1 @@\n-x\n-y\n+z\n"; got[0].Patch != want || got[0].Additions != 1 || got[0].Deletions != 2 {
		t.Errorf("%+v, want %q", got[0], want)
	}
	if got[1].Status != "modified" || got[1].File != "new" {
		t.Errorf("a renamed file is %+v", got[1])
	}
}

// What could not be reverted is told by a toast, since a session has no place for it.
func TestTellKept(t *testing.T) {
	t.Parallel()
	p := &Project{}
	reader := p.hub.Reader()
	p.tellKept(branches.Reverted{})
	p.tellKept(branches.Reverted{Kept: []string{"a", "b"}})
	text, err := reader.Next(t.Context())
	if err != nil || !strings.Contains(string(text), `"title":"2 files not reverted","message":"changed since, and left as it is: a, b","variant":"warning"`) {
		t.Errorf("told %s, %v", text, err)
	}
}

// written is a host that knows what one message has changed.
type written struct {
	server.API
	message string
}

func (w written) Written(_ context.Context, _, message string) ([]centurion.FileDiff, error) {
	if message != w.message {
		return nil, &centurion.Error{Kind: centurion.KindNotFound}
	}
	return []centurion.FileDiff{{FileChange: centurion.FileChange{Path: "a.go", Status: "renamed", Added: 1, Deleted: 2}, Hunks: []centurion.Hunk{{Header: "@@ -1 +1 @@", Text: "+x\n"}}}}, nil
}

// What a message has changed is told by its id; nothing is told of a session as a whole, or of an answer.
func TestDiffOfAMessage(t *testing.T) {
	x := newRig(t)
	api := x.project.API()
	id := centurion.NewID(centurion.PrefixMessage)
	x.answers(written{api, id})
	for query, want := range map[string]string{
		"?messageID=" + id: `[{"file":"a.go","patch":"Index: a.go\n` + strings.Repeat("=", 67) + `\n--- a.go\t\n+++ a.go\t\n@@ -1 +1 @@\n+x\n","additions":1,"deletions":2,"status":"modified"}]`,
		"?messageID=" + centurion.NewID(centurion.PrefixMessage): "[]",
		"?messageID=x": "[]",
		"":             "[]",
	} {
		if status, body := x.ask("GET", "/session/"+x.root.ID+"/diff"+query, ""); status != 200 || body != want {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
}
