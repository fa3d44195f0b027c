package v1

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/mail"
	"centurion/session"
	"centurion/store"
)

// Issue "Real OpenCode clients", bad input: what is wrong is refused in the shape that clients know, and names what would be right.
func TestBadRequests(t *testing.T) {
	x := newRig(t)
	_, opened := x.ask("POST", "/session", `{"agent":"assistant"}`)
	var s struct{ ID string }
	if err := json.Unmarshal([]byte(opened), &s); err != nil {
		t.Fatal(err)
	}
	var worker string
	x.update(func(tx *store.Tx) error {
		task := session.New(centurion.Session{Agent: "worker", ParentID: x.root.ID, Metadata: centurion.SessionMeta{Mission: x.mission.ID, Task: "tsk_1"}}, centurion.Now())
		worker = task.ID
		return errors.Join(tx.PutSession(&task), tx.PutMessage(&centurion.Message{ID: "msg_taken", SessionID: x.root.ID, Role: centurion.RoleUser}),
			tx.PutMessage(&centurion.Message{ID: "msg_other", SessionID: "ses_1", Role: centurion.RoleUser}))
	})
	id, unknown := s.ID, "/session/"+centurion.NewID(centurion.PrefixSession)
	for name, test := range map[string]struct {
		method, path, body string
		status             int
		says               string
	}{
		"no such route":              {"GET", "/session/" + id + "/share", "", 404, `"NotFoundError"`},
		"the second dialect":         {"GET", "/api/session", "", 404, `"NotFoundError"`},
		"no such session":            {"GET", unknown, "", 404, `"NotFoundError"`},
		"no session id":              {"GET", "/session/x", "", 404, `"NotFoundError"`},
		"a message to no session":    {"POST", unknown + "/message", `{"parts":[{"type":"text","text":"go"}]}`, 404, `"NotFoundError"`},
		"no JSON":                    {"POST", "/session", `{`, 400, `"BadRequest"`},
		"another shape":              {"POST", "/session", `{"title":3}`, 400, "title"},
		"unknown agent":              {"POST", "/session", `{"agent":"asistant"}`, 400, `did you mean \"assistant\"?`},
		"unknown model":              {"POST", "/session", `{"model":{"providerID":"custom","id":"mm"}}`, 400, `did you mean \"custom/m\"?`},
		"a child of nothing":         {"POST", "/session", `{"parentID":"ses_1"}`, 404, `"NotFoundError"`},
		"tools of an unknown model":  {"GET", "/experimental/tool?provider=custom&model=x", "", 400, "no model"},
		"no command":                 {"POST", "/session/" + id + "/shell", `{"agent":"assistant","command":""}`, 400, "the command is empty"},
		"a command in a task":        {"POST", "/session/" + worker + "/shell", `{"agent":"assistant","command":"true"}`, 409, `"_tag":"SessionBusyError"`},
		"a command for nobody":       {"POST", "/session/" + id + "/shell", `{"agent":"nobody","command":"true"}`, 400, "no agent"},
		"an empty message":           {"POST", "/session/" + id + "/message", `{"parts":[]}`, 400, "empty"},
		"nothing, without an answer": {"POST", "/session/" + id + "/message", `{"parts":[],"noReply":true}`, 400, "empty"},
		"unknown type of part":       {"POST", "/session/" + id + "/message", `{"parts":[{"type":"song"}]}`, 400, `parts[0]: there is no type \"song\"`},
		"two unknown types":          {"POST", "/session/" + id + "/message", `{"parts":[{"type":"song"},{"type":"poem"}]}`, 400, `parts[1]: there is no type \"poem\"`},
		"a file from anywhere":       {"POST", "/session/" + id + "/message", `{"parts":[{"type":"file","mime":"text/plain","url":"file:///etc/passwd"}]}`, 400, "not in the project"},
		"no base64":                  {"POST", "/session/" + id + "/message", `{"parts":[{"type":"file","mime":"text/plain","url":"data:text/plain;base64,%"}]}`, 400, "base64"},
		"no picture":                 {"POST", "/session/" + id + "/message", `{"parts":[{"type":"file","mime":"image/png","url":"data:image/png;base64,/w=="}]}`, 400, "parts[0]"},
		"too long a text":            {"POST", "/session/" + id + "/message", `{"parts":[{"type":"text","text":"` + strings.Repeat("x", mail.MaxPost+1) + `"}]}`, 400, "longer than 256 KB"},
		"an agent that is not there": {"POST", "/session/" + id + "/message", `{"parts":[{"type":"agent","name":"workr"}]}`, 400, `did you mean \"worker\"?`},
		"work without a prompt":      {"POST", "/session/" + id + "/message", `{"parts":[{"type":"subtask","agent":"worker","description":"x"}]}`, 400, "a prompt"},
		"work for nobody":            {"POST", "/session/" + id + "/message", `{"parts":[{"type":"subtask","description":"x","prompt":"y"}]}`, 400, "an agent"},
		"work without a name":        {"POST", "/session/" + id + "/message", `{"parts":[{"type":"subtask","agent":"worker","prompt":"y"}]}`, 400, "a description"},
		"an id that is no message's": {"POST", "/session/" + id + "/message", `{"parts":[{"type":"text","text":"go"}],"messageID":"prt_1"}`, 400, "does not begin with msg"},
		"an id with a path":          {"POST", "/session/" + id + "/message", `{"parts":[{"type":"text","text":"go"}],"messageID":"msg_/x"}`, 400, "messageID"},
		"a message id given twice":   {"POST", "/session/" + x.root.ID + "/message", `{"parts":[{"type":"text","text":"go"}],"messageID":"msg_taken"}`, 400, "there is a message msg_taken already"},
		"an id of another session":   {"POST", "/session/" + x.root.ID + "/prompt_async", `{"parts":[{"type":"text","text":"go"}],"messageID":"msg_other"}`, 400, "there is a message msg_other already"},
		"a file from the network":    {"POST", "/session/" + id + "/message", `{"parts":[{"type":"file","mime":"text/plain","url":"http://127.0.0.1/x"}]}`, 400, "parts[0]: url"},
		"unknown model of a message": {"POST", "/session/" + id + "/message", `{"parts":[{"type":"text","text":"go"}],"model":{"providerID":"x","modelID":"y"}}`, 400, `no model`},
		"unknown agent of a message": {"POST", "/session/" + id + "/message", `{"parts":[{"type":"text","text":"go"}],"agent":"nobody"}`, 400, `no agent`},
		"no word of a reply":         {"POST", "/permission/per_1/reply", `{"reply":"perhaps"}`, 400, "once, always or reject"},
		"no such ask":                {"POST", "/permission/per_1/reply", `{"reply":"once"}`, 404, `{"_tag":"PermissionNotFoundError","requestID":"per_1"`},
		"no such question":           {"POST", "/question/que_1/reply", `{"answers":[["x"]]}`, 404, `"QuestionNotFoundError"`},
		"a bad expression":           {"GET", "/find?pattern=(", "", 400, "pattern"},
		"a file outside":             {"GET", "/file/content?path=../p.db", "", 400, "outside the project"},
		"no such file":               {"GET", "/file/content?path=no.txt", "", 404, `"NotFoundError"`},
		"messages before nonsense":   {"GET", "/session/" + id + "/message?before=x", "", 400, "before"},
		"a toast without a kind":     {"POST", "/tui/show-toast", `{"message":"x"}`, 400, "variant"},
		"an event that agents send":  {"POST", "/tui/publish", `{"type":"permission.replied","properties":{}}`, 400, "terminal client"},
		"summary of nothing":         {"POST", "/session/" + id + "/summarize", `{"providerID":"custom","modelID":"m"}`, 400, "no message"},
	} {
		t.Run(name, func(t *testing.T) {
			if status, body := x.ask(test.method, test.path, test.body); status != test.status || !strings.Contains(body, test.says) {
				t.Errorf("%d %s, want %d and %s", status, body, test.status, test.says)
			}
		})
	}
	if len(x.begun) > 0 {
		t.Errorf("missions are begun: %+v", x.begun)
	}
}

// A list has the roots, the last changed first, and then the sessions of tasks in the order of their roots.
func TestListOrder(t *testing.T) {
	x := newRig(t)
	var opened struct{ ID string }
	if _, body := x.ask("POST", "/session", `{"agent":"assistant"}`); json.Unmarshal([]byte(body), &opened) != nil {
		t.Fatal(body)
	}
	want := []string{opened.ID, x.root.ID}
	var tasks []string
	x.update(func(tx *store.Tx) error {
		for i := range 3 {
			s, m := x.root, x.mission
			s.ID, m.ID, m.Status = centurion.NewID(centurion.PrefixSession), centurion.NewID(centurion.PrefixMission), centurion.MissionCompleted
			m.Session, m.Goal, s.Metadata.Mission, m.Updated = s.ID, fmt.Sprint("goal ", i), m.ID, centurion.Time{Time: m.Updated.Add(time.Duration(i-5) * time.Hour)}
			child := s
			child.ID, child.ParentID = centurion.NewID(centurion.PrefixSession), s.ID
			if err := errors.Join(tx.PutMission(&m), tx.PutSession(&s), tx.PutSession(&child)); err != nil {
				return err
			}
			want, tasks = slices.Insert(want, 2, s.ID), slices.Insert(tasks, 0, child.ID)
		}
		return nil
	})
	for query, want := range map[string][]string{"": append(slices.Clone(want), tasks...), "?roots=true": want, "?limit=2": want[:2], "?roots=true&limit=3": want[:3],
		"?search=GOAL%202": want[2:3], "?limit=9": append(slices.Clone(want), tasks...)} {
		var list []struct{ ID, Title string }
		if _, body := x.ask("GET", "/session"+query, ""); json.Unmarshal([]byte(body), &list) != nil {
			t.Errorf("%s: %s", query, body)
		}
		var got []string
		for _, s := range list {
			got = append(got, s.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s lists %q, want %q", query, got, want)
		}
	}
}

// A session lives from its opening to its removal, and its first message begins a mission with what the client wants.
func TestSessions(t *testing.T) {
	x := newRig(t)
	next := x.listen("/event")
	status, body := x.ask("POST", "/session", `{"title":"Mine","agent":"assistant","someday":true}`)
	var s map[string]any
	if err := json.Unmarshal([]byte(body), &s); err != nil || status != http.StatusOK || s["title"] != "Mine" {
		t.Fatalf("opened: %d %s", status, body)
	}
	path := fmt.Sprint("/session/", s["id"])
	if e := next(); e.Type != "session.created" {
		t.Errorf("opening is told as %s", e.Type)
	}
	if status, body = x.ask("PATCH", path, `{"title":"Ours","time":{"archived":7}}`); status != 200 || !strings.Contains(body, `"title":"Ours"`) || !strings.Contains(body, `"archived":7`) {
		t.Errorf("changed: %d %s", status, body)
	}
	if e := next(); e.Type != "session.updated" {
		t.Errorf("a change is told as %s", e.Type)
	}
	for query, want := range map[string]int{"": 2, "?limit=1": 1, "?search=OURS": 1, "?search=nothing": 0, "?roots=true": 2, "?start=99999999999999": 0} {
		var list []map[string]any
		if _, body := x.ask("GET", "/session"+query, ""); json.Unmarshal([]byte(body), &list) != nil || len(list) != want {
			t.Errorf("list %s: %s, want %d", query, body, want)
		}
	}
	picture := base64.StdEncoding.EncodeToString([]byte("plain text"))
	message := fmt.Sprintf(`{"messageID":"msg_mine","parts":[{"type":"text","text":"look"},{"type":"text","text":"at this","ignored":true},{"type":"file","mime":"text/plain","filename":"a.txt","url":"data:text/plain;base64,%s"}],
		"model":{"providerID":"custom","modelID":"n"}}`, picture)
	x.ask("POST", path+"/message", message)
	x.ask("POST", path+"/command", fmt.Sprintf(`{"command":"task","arguments":"all of it","parts":[{"type":"file","mime":"text/plain","filename":"b.txt","url":"data:text/plain;base64,%s"}]}`, picture))
	if len(x.begun) != 2 {
		t.Fatalf("begun: %+v", x.begun)
	}
	if b := x.begun[0]; b.Session != s["id"] || b.Model != "custom/n" || b.Agent != "assistant" || b.Profile != "assistant" || b.Goal != "look" || b.Message != "msg_mine" || len(b.Parts) != 4 {
		t.Errorf("the first message begins %+v", b)
	}
	if b := x.begun[1]; b.Goal != "task: all of it" || len(b.Parts) != 3 || b.Profile != "mission" || b.Agent != "" {
		t.Errorf("/task begins %+v", b)
	}
	if status, body = x.ask("DELETE", path, ""); status != 200 || body != "true" {
		t.Errorf("removed: %d %s", status, body)
	}
	if e := next(); e.Type != "session.deleted" {
		t.Errorf("a removal is told as %s", e.Type)
	}
	if status, _ = x.ask("GET", path, ""); status != 404 {
		t.Errorf("a removed session is there: %d", status)
	}
}

// An answer names a hundred files at most, however many are asked for.
func TestFoundFilesAreLimited(t *testing.T) {
	x := newRig(t)
	for i := range maxFound + 5 {
		if err := os.WriteFile(filepath.Join(x.mission.Directory, fmt.Sprintf("found%d", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, limit := range []string{"", "&limit=103", "&limit=-1", "&limit=1e300", "&limit=Infinity"} {
		var got []string
		if status, body := x.ask("GET", "/find/file?query=found"+limit, ""); status != 200 || json.Unmarshal([]byte(body), &got) != nil || len(got) != maxFound {
			t.Errorf("%s: %d, %d files", limit, status, len(got))
		}
	}
}

// What clients read at their start, about files and about asks.
func TestReads(t *testing.T) {
	x := newRig(t)
	ask := store.Ask{ID: centurion.NewID(centurion.PrefixPermission), Type: store.AskPermission, Mission: x.mission.ID, Session: x.root.ID, Message: "msg_1", Call: "c", Permission: "bash", Patterns: []string{"rm x"}}
	plan := store.Ask{ID: centurion.NewID(centurion.PrefixQuestion), Type: store.AskPlan, Mission: x.mission.ID, Session: x.root.ID, Text: "# The plan"}
	for _, a := range []store.Ask{ask, plan} {
		x.fact(centurion.EventPermissionAsked, a.Session, "", event.AskData{ID: a.ID}, func(tx *store.Tx) error { return tx.PutAsk(&a) })
	}
	for path, says := range map[string]string{
		"/global/health":                  `{"healthy":true,"version":"9"}`,
		"/path":                           `"directory":"` + x.mission.Directory + `"`,
		"/project/current":                `"id":"global"`,
		"/config":                         `{"model":"custom/m"}`,
		"/config/providers":               `"default":{"custom":"m"}`,
		"/provider":                       `"connected":["custom"]`,
		"/agent":                          `{"name":"worker","mode":"subagent"`,
		"/command":                        `"hints":["$1","$2","$ARGUMENTS"]`,
		"/experimental/tool/ids":          `["bash"]`,
		"/file?path=src":                  `"path":"src/hello.go"`,
		"/file/content?path=README.md":    `{"type":"text","content":"# A\n\nA needle.\n"}`,
		"/find/file?query=HELLO":          `["src/hello.go"]`,
		"/api/fs/find?query=hello":        `{"data":[{"path":"src/hello.go","type":"file"}],"location":{"directory":"` + x.mission.Directory,
		"/find/file?query=e&limit=1":      `["README.md"]`,
		"/find?pattern=need.e":            `"line_number":3,"absolute_offset":5,"submatches":[{"match":{"text":"needle"},"start":2,"end":8}]`,
		"/permission":                     `[{"id":"` + ask.ID + `"`,
		"/question":                       `"question":"# The plan"`,
		"/session/status":                 `{"` + x.root.ID + `":{"type":"busy"}}`,
		"/session/" + x.root.ID:           `"id":"` + x.root.ID + `"`,
		"/session/" + x.root.ID + "/todo": `[{"content":"T0 Earlier","status":"completed"`,
	} {
		if status, body := x.ask("GET", path, ""); status != 200 || !strings.Contains(body, says) {
			t.Errorf("GET %s: %d %s, want %s", path, status, body, says)
		}
	}
}

// Issue "Real OpenCode clients" 11: a client learns which dialects are served.
func TestDialects(t *testing.T) {
	x := newRig(t)
	for path, want := range map[string]string{"/global/health": "v1", "/path": ""} {
		resp, err := http.Get(x.url + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := resp.Header.Get(DialectsHeader); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
}

// A page of a list names the next one as OpenCode's clients follow it, with what was asked for; the last page names none.
func TestPagesAreLinked(t *testing.T) {
	at, err := url.Parse("/session/ses_1/message?limit=2&before=old")
	if err != nil {
		t.Fatal(err)
	}
	for cursor, want := range map[string]string{"msg_9": `msg_9 </session/ses_1/message?before=msg_9&limit=2>; rel="next"`, "": " "} {
		h := http.Header{}
		paged{cursor: cursor, url: at}.head(h)
		if got := h.Get("X-Next-Cursor") + " " + h.Get("Link"); got != want {
			t.Errorf("%q: %s, want %s", cursor, got, want)
		}
	}
}

// A conversation with an assistant continues with another one; any other session keeps its agent.
func TestMayTake(t *testing.T) {
	x := newRig(t)
	given := x.project.Catalog
	x.project.Catalog = func(ctx context.Context) (Catalog, error) {
		c, err := given(ctx)
		c.Agents = append(c.Agents, Agent{Name: "helper", Profile: "assistant"})
		return c, err
	}
	talk := centurion.Session{Agent: "assistant", Metadata: centurion.SessionMeta{Profile: "assistant"}}
	below, mission := talk, centurion.Session{Agent: "commander"}
	below.ParentID = "ses_1"
	for _, c := range []struct {
		name string
		s    centurion.Session
		b    Begin
		kind centurion.Kind
	}{
		{"nobody is named", talk, Begin{}, ""},
		{"its own", talk, Begin{Agent: "Assistant"}, ""},
		{"another assistant", talk, Begin{Agent: "helper"}, ""},
		{"another assistant, without an answer", talk, Begin{Agent: "helper", noReply: true}, centurion.KindConflict},
		{"an agent of missions", talk, Begin{Agent: "commander"}, centurion.KindConflict},
		{"nobody of that name", talk, Begin{Agent: "nobody"}, centurion.KindUsage},
		{"a mission", talk, Begin{Profile: "mission"}, centurion.KindConflict},
		{"a helper's session", below, Begin{Agent: "helper"}, centurion.KindConflict},
		{"a mission's own", mission, Begin{Agent: "commander"}, ""},
		{"an assistant in a mission", mission, Begin{Agent: "helper"}, centurion.KindConflict},
		{"nobody in a mission", mission, Begin{Agent: "nobody"}, centurion.KindUsage},
	} {
		if err := x.project.mayTake(t.Context(), c.s, c.b); centurion.KindOf(err) != c.kind {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
