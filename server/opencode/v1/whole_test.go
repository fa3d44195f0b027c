package v1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
	"centurion/server"
	"centurion/store"
)

// What clients find of files is all that matches, the shortest path first, and of lines no more than an answer may have.
func TestFoundWhole(t *testing.T) {
	x := newRig(t)
	dir := x.mission.Directory
	for name, text := range map[string]string{"src/a_hello.go": "package hello\r\n// hello hello\n", "hello": "\xff hello", "nul": "a\x00b", "zz": strings.Repeat("many\n", maxFound+3)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	line := func(path, text string, n, offset int, parts string) string {
		return fmt.Sprintf(`{"path":{"text":%q},"lines":{"text":%q},"line_number":%d,"absolute_offset":%d,"submatches":[%s]}`, path, text, n, offset, parts)
	}
	hello := func(start int) string {
		return fmt.Sprintf(`{"match":{"text":"hello"},"start":%d,"end":%d}`, start, start+5)
	}
	for path, want := range map[string]string{
		"/find/file?query=Hello":         `["hello","src/hello.go","src/a_hello.go"]`,
		"/find/file?query=hello&limit=2": `["hello","src/hello.go"]`,
		"/find/file?query=none":          `[]`,
		"/api/fs/find?query=hello": `{"data":[{"path":"hello","type":"file"},{"path":"src/hello.go","type":"file"},{"path":"src/a_hello.go","type":"file"}],"location":{"directory":"` + dir +
			`","project":{"directory":"` + dir + `","id":"global"}}}`,
		"/find?pattern=hello":      "[" + line("src/a_hello.go", "package hello\r\n", 1, 0, hello(8)) + "," + line("src/a_hello.go", "// hello hello\n", 2, 15, hello(3)+","+hello(9)) + "," + line("src/hello.go", "package hello\n", 1, 0, hello(8)) + "]",
		"/find?pattern=hello$":     "[" + line("src/a_hello.go", "package hello\r\n", 1, 0, hello(8)) + "," + line("src/a_hello.go", "// hello hello\n", 2, 15, hello(9)) + "," + line("src/hello.go", "package hello\n", 1, 0, hello(8)) + "]",
		"/find?pattern=none":       `[]`,
		"/file/status":             `[]`,
		"/find/symbol":             `[]`,
		"/file/content?path=nul":   `{"type":"binary","content":"YQBi","encoding":"base64"}`,
		"/file/content?path=hello": `{"type":"binary","content":"/yBoZWxsbw==","encoding":"base64"}`,
	} {
		if status, body := x.ask("GET", path, ""); status != 200 || body != want {
			t.Errorf("GET %s: %d\n%s, want\n%s", path, status, body, want)
		}
	}
	var many []any
	if _, body := x.ask("GET", "/find?pattern=many", ""); json.Unmarshal([]byte(body), &many) != nil || len(many) != maxFound {
		t.Errorf("%d lines", len(many))
	}
	if status, body := x.ask("GET", "/find?pattern=(", ""); status != 400 || !strings.Contains(body, "it is no regular expression: error parsing regexp: missing closing )") {
		t.Errorf("%d %s", status, body)
	}
	resp, err := http.Get(x.url + "/path")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("an answer is %s", got)
	}
}

// unanswered is a host that takes no answer.
type unanswered struct{ server.API }

func (unanswered) Answer(context.Context, string, string) error {
	return &centurion.Error{Kind: centurion.KindConflict, Msg: "it has just been answered"}
}

// An answer that the host does not take is no success.
func TestAnswerFails(t *testing.T) {
	x := newRig(t)
	for _, a := range []store.Ask{{ID: "per_1", Type: store.AskPermission, Message: "msg_1", Call: "c1"}, {ID: "que_1", Type: store.AskQuestion, Text: "which?"}} {
		a.Mission, a.Session = x.mission.ID, x.root.ID
		x.update(func(tx *store.Tx) error { return tx.PutAsk(&a) })
	}
	x.answers(unanswered{x.project.API()})
	for path, body := range map[string]string{"/permission/per_1/reply": `{"reply":"once"}`, "/session/" + x.root.ID + "/permissions/per_1": `{"response":"once"}`,
		"/question/que_1/reply": `{"answers":[["x"]]}`, "/question/que_1/reject": ""} {
		if status, said := x.ask("POST", path, body); status != 400 || !strings.Contains(said, "it has just been answered") {
			t.Errorf("%s: %d %s", path, status, said)
		}
	}
}

// The first message of a session begins its mission with the session's agent and model; who waits is given the answer at its end, of this mission and from then
// on, or the reason why there is none.
func TestFirstMessageWhole(t *testing.T) {
	x := newRig(t)
	_, opened := x.ask("POST", "/session", `{"agent":"assistant"}`)
	var s struct{ ID string }
	if err := json.Unmarshal([]byte(opened), &s); err != nil {
		t.Fatal(err)
	}
	before := x.store.LastSeq()
	answer := centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: x.root.ID, Role: centurion.RoleAssistant, Agent: "assistant", Finish: centurion.FinishStop, ParentID: "msg_1", Time: centurion.MessageTime{Created: 1000}}
	late := answer
	late.ID, late.Time.Created = centurion.NewID(centurion.PrefixMessage), 9_000_000
	x.project.Begin = func(_ context.Context, b Begin) (server.Mission, error) {
		x.begun = append(x.begun, b)
		return server.Mission{ID: x.mission.ID, Session: x.root.ID}, nil
	}
	var asked server.EventQuery
	var tells []centurion.Event
	var broken error
	x.project.Follow = func(_ context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error] {
		asked = q
		return func(yield func(centurion.Event, error) bool) {
			for _, e := range tells {
				if e.Time = (centurion.Time{Time: centurion.Now().Time}); !yield(e, nil) {
					return
				}
			}
			if broken != nil {
				yield(centurion.Event{}, broken)
			}
		}
	}
	ask := func() (int, string) {
		return x.ask("POST", "/session/"+s.ID+"/message", `{"parts":[{"type":"text","text":"go"}]}`)
	}
	x.project.told.Await(t.Context(), before)
	tells = []centurion.Event{{Type: centurion.EventTaskStarted}, {Type: centurion.EventSessionAborted, Session: "ses_other"}, {Type: centurion.EventMissionCompleted}}
	if status, body := ask(); status < 400 || !strings.Contains(body, "there is no answer") {
		t.Errorf("without an answer: %d %s", status, body)
	}
	x.update(func(tx *store.Tx) error { return errors.Join(tx.PutMessage(&answer), tx.PutMessage(&late)) })
	late.Time.Created = centurion.Now().Millis() + 3_600_000
	x.update(func(tx *store.Tx) error { return tx.PutMessage(&late) })
	if status, body := ask(); status != 200 || !strings.Contains(body, `"id":"`+answer.ID+`"`) {
		t.Errorf("%d %s, want %s", status, body, answer.ID)
	}
	if asked.Mission != x.mission.ID || !asked.Follow || asked.After < before || asked.Session != "" {
		t.Errorf("it followed %+v", asked)
	}
	if b := x.begun[0]; b.Model != "custom/m" || b.Agent != "assistant" || b.Profile != "assistant" || b.Goal != "go" {
		t.Errorf("begun with %+v", b)
	}
	tells, broken = nil, &centurion.Error{Kind: centurion.KindConflict, Msg: "the host is gone"}
	if status, body := ask(); status != 400 || !strings.Contains(body, "the host is gone") {
		t.Errorf("events that break off: %d %s", status, body)
	}
}

// A client that leaves while its first message begins a mission does not keep that from being begun.
func TestFirstMessageOutlivesItsClient(t *testing.T) {
	x := newRig(t)
	_, opened := x.ask("POST", "/session", `{"agent":"assistant"}`)
	var s struct{ ID string }
	if err := json.Unmarshal([]byte(opened), &s); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	x.project.Begin = func(ctx context.Context, b Begin) (server.Mission, error) {
		x.begun = append(x.begun, b)
		leave()
		return server.Mission{}, ctx.Err()
	}
	w := httptest.NewRecorder()
	x.project.Handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", "/session/"+s.ID+"/prompt_async", strings.NewReader(`{"parts":[{"type":"text","text":"go"}]}`)))
	if len(x.begun) != 1 || w.Code != http.StatusNoContent {
		t.Errorf("%d begun, %d %s", len(x.begun), w.Code, w.Body)
	}
}
