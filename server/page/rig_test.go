package page

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"centurion"
	"centurion/event"
	"centurion/orchestrator"
	"centurion/orchestrator/agent"
	"centurion/report"
	"centurion/server"
	"centurion/store"
	"centurion/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "let-me-in"

// rig is a server with the page of two projects, whose state the test writes.
type rig struct {
	testing.TB
	*store.Store
	base, origin string // with the token, and without
	mission      centurion.Mission
	site         *Site
}

// answering takes answers to asks of missions that only the store knows.
type answering struct{ *server.Local }

func (a answering) Answer(ctx context.Context, ask, answer string) error {
	all, err := a.Store.Asks(ctx, "", true)
	for _, open := range all {
		if open.ID == ask && open.Type != store.AskQuestion {
			open.Answer, open.Answered = answer, centurion.Now()
			return a.Store.Update(ctx, func(tx *store.Tx) error {
				_, err := tx.Append(centurion.Event{Type: centurion.EventPermissionReplied, Mission: open.Mission, Data: event.Data(event.AskData{ID: ask})})
				return errors.Join(err, tx.PutAsk(&open))
			})
		}
	}
	return errors.Join(err, a.Local.Answer(ctx, ask, answer))
}

func newRig(t testing.TB) *rig {
	t.Helper()
	x := &rig{TB: t}
	first, second := x.project("alpha"), x.project("beta")
	x.Store = first.API().(answering).Store
	x.site = &Site{Token: token, Style: report.Style(), Projects: func(context.Context) ([]*Project, func()) { return []*Project{first, second}, func() {} }}
	srv := httptest.NewServer(server.Guard(token, "127.0.0.1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if x.site.Serves(r) {
			x.site.ServeHTTP(w, r)
			return
		}
		http.Error(w, `{"error":"no route"}`, http.StatusNotFound)
	})))
	x.origin, x.base = srv.URL, srv.URL+server.TokenPath+token+"/"
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	now := centurion.Now()
	x.mission = x.begin("msn_running", "Add a rate limiter to the API", centurion.MissionRunning, now)
	x.begin("msn_ended", "Port the parser", centurion.MissionCompleted, centurion.Time{Time: now.Add(time.Second)})
	x.task(centurion.Task{ID: "tsk_1", Number: 1, Item: "T1", Title: "Count requests", Agent: "worker", Status: centurion.TaskCompleted, ElapsedMS: 61_000})
	x.task(centurion.Task{ID: "tsk_2", Number: 2, Item: "T2", Title: "Refuse what is too much", Agent: "worker", Status: centurion.TaskRunning, Attempt: 2, Reason: "its check was red"})
	return x
}

func (x *rig) project(name string) *Project {
	dir := filepath.Join(x.TempDir(), name)
	s, err := store.Open(x.Context(), dir+".db")
	if err != nil {
		x.Fatal(err)
	}
	ws, err := workspace.Open(filepath.Dir(dir))
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() {
		if err := errors.Join(ws.Close(), s.Close()); err != nil {
			x.Error(err)
		}
	})
	local := &server.Local{Store: s, Host: orchestrator.New(orchestrator.Config{Store: s, Workspace: ws, Model: func(string) (orchestrator.Model, error) {
		return agent.Model{Ref: centurion.ModelRef{Provider: "custom", ID: "m"}}, nil
	}})}
	return &Project{Directory: "/home/me/" + name, API: func() server.API { return answering{local} }, Follow: local.Events,
		Tell: func(ctx context.Context, id string) (t Told, err error) {
			m, err := local.Mission(ctx, id)
			if err != nil {
				return t, err
			}
			parts, err := report.New(report.Data{Mission: m.Noun(), Now: m.Started, Items: []report.PlanItem{{ID: "T1", Title: "Count requests", Status: "done"}, {ID: "T2", Title: "Refuse what is too much", Status: "running", Verify: []string{"go test ./limit"}}}}).Parts()
			for _, p := range parts {
				t.Parts = append(t.Parts, Part(p))
			}
			t.Log = "12:00:01 · the mission has begun: " + m.Goal + "\n"
			return t, err
		}}
}

func (x *rig) update(kind centurion.EventType, data any, put func(tx *store.Tx) error) {
	x.Helper()
	if err := x.Update(x.Context(), func(tx *store.Tx) error {
		_, err := tx.Append(centurion.Event{Type: kind, Mission: x.mission.ID, Data: event.Data(data)})
		return errors.Join(err, put(tx))
	}); err != nil {
		x.Fatal(err)
	}
}

func (x *rig) begin(id, goal string, status centurion.MissionStatus, at centurion.Time) centurion.Mission {
	m := centurion.Mission{ID: id, Goal: goal, Status: status, Directory: "/home/me/alpha", Session: "ses_" + id, Started: at, Updated: at, ElapsedMS: 125_000, Evidence: centurion.EvidenceNone}
	x.update(centurion.EventMissionStarted, nil, func(tx *store.Tx) error { return tx.PutMission(&m) })
	return m
}

func (x *rig) task(t centurion.Task) {
	t.Mission, t.Created, t.Call = x.mission.ID, centurion.Now(), "c-"+t.ID
	x.update(centurion.EventTaskUpdated, nil, func(tx *store.Tx) error { return tx.PutTask(&t) })
}

// asks records an open ask and returns the path of its link.
func (x *rig) asks(a store.Ask) string {
	a.Mission, a.Created = x.mission.ID, centurion.Now()
	x.update(centurion.EventPermissionAsked, event.AskData{ID: a.ID, Type: a.Type}, func(tx *store.Tx) error { return tx.PutAsk(&a) })
	return server.AskLink(token, a.ID)
}

var (
	permission = store.Ask{ID: "per_1", Type: store.AskPermission, Task: "tsk_2", Agent: "worker", Address: "0/2", Permission: "bash", Patterns: []string{"git push\nrm -rf build"}, Always: []string{"git push *"}, Title: "publish it", Text: "no rule allows it"}
	question   = store.Ask{ID: "que_1", Type: store.AskQuestion, Call: "m/c", Agent: "worker", Text: "Which store?", Options: []string{"SQLite", "Postgres"}}
	plan       = store.Ask{ID: "que_2", Type: store.AskPlan, Title: "rate limiter", Text: "# rate limiter\n- [ ] T1 Count\n      verify: go test ./limit", Options: []string{"run", "quit"}}
)

// answered is the answer that the store has.
func (x *rig) answered(id string) string {
	x.Helper()
	all, err := x.Store.Asks(x.Context(), "", false)
	if err != nil {
		x.Fatal(err)
	}
	for _, a := range all {
		if a.ID == id {
			return a.Answer
		}
	}
	return ""
}

// get asks for a page as a browser does.
func (x *rig) get(address string) (*http.Response, string) {
	x.Helper()
	return x.do(http.MethodGet, address, nil)
}

func (x *rig) do(method, address string, form url.Values) (*http.Response, string) {
	x.Helper()
	req, err := http.NewRequestWithContext(x.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		x.Fatal(err)
	}
	req.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		x.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		x.Fatal(err)
	}
	return resp, string(b)
}
