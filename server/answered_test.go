package server_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"

	"centurion/sandbox"
	"centurion/server"
	"centurion/store"
)

// An answer is recorded with who gave it. What this very program answers is a person's word, unless it says for which program it answers;
// another program's word about that counts for nothing.
func TestWhoAnswersIsRecorded(t *testing.T) {
	for body, want := range map[string]map[sandbox.Peer]string{
		`{"answer":"x"}`: {{PID: 7, Command: "centurion answer", Own: true}: "person 7 centurion answer", {PID: 8, Command: "python"}: "program 8 python"},
		`{"answer":"x","client":"the client"}`: {{PID: 7, Command: "centurion mcp", Own: true}: "program 7 the client", {PID: 8, Command: "python"}: "program 8 python",
			{PID: 9, Command: "sh", Terminal: true}: "person 9 sh"},
	} {
		for peer, want := range want {
			p := newProject(t)
			p.ask.Call, p.ask.Session = "call_1", p.session.ID
			if err := p.store.Update(t.Context(), func(tx *store.Tx) error { return tx.PutAsk(&p.ask) }); err != nil {
				t.Fatal(err)
			}
			req := mustRequest(t, "POST", "/asks/"+p.ask.ID, body)
			req.Header.Set("Authorization", "Bearer "+token)
			rec := httptest.NewRecorder()
			server.Handler(p.local, token, server.Info{}, nil).ServeHTTP(rec, req.WithContext(server.WithPeer(t.Context(), peer)))
			all, err := p.store.Asks(t.Context(), "", false)
			if err == nil && (len(all) != 1 || rec.Code != 200) {
				err = errors.New(rec.Body.String())
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%s %d %s", all[0].By, all[0].PID, all[0].Command); got != want {
				t.Errorf("%s of %+v is recorded as %q, want %q", body, peer, got, want)
			}
		}
	}
}
