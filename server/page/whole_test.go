package page

import (
	"context"
	"errors"
	"html"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/server"
	"centurion/store"
)

// An ask is shown with who asks, until when, what is asked, why, and each answer with what it means.
func TestAskedWhole(t *testing.T) {
	s := &Site{Token: token}
	deadline := centurion.Time{Time: time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)}
	m := server.Mission{Goal: "a goal"}
	link := func(id string) string { return server.AskLink(token, id) }
	say := choice{noAnswer, "No answer", "the agent decides for itself", false}
	refuse := choice{"reject", "Refuse", "", false}
	once := choice{"once", "Allow once", "only what is shown here", false}
	for _, x := range []struct {
		ask   store.Ask
		above string
		want  asked
	}{
		{store.Ask{ID: "a", Type: store.AskPlan, Title: "limiter", Text: "- T1\n", Line: "0/1", Deadline: deadline}, ".", asked{Goal: "a goal", From: "below 0/1 · waits until 12:30 UTC", Head: "A plan waits for you: limiter", What: "- T1",
			Choices: []choice{{"run", "Run it", "agents carry out this plan and may run its checks", false}, {"quit", "Not now", "the plan stays in the project", false}}}},
		{store.Ask{ID: "b", Type: store.AskPermission, Agent: "worker", Address: "0/2", Permission: "bash", Patterns: []string{"ls", "rm x"}, Always: []string{"ls *", "rm *"}, Title: "clean up", Text: "no rule",
			Metadata: map[string]any{"description": "to begin anew"}}, "..", asked{Head: "worker 0/2 needs your permission: bash", What: "ls\nrm x", More: []string{"clean up", "to begin anew", "Why you are asked: no rule"},
			Choices: []choice{once, {"always", "Always allow", "bash ls *, rm *, for every agent of this mission until it ends", true}, refuse}, Words: "Why you refuse (the agent is told)"}},
		{store.Ask{ID: "c", Type: store.AskPermission, Permission: "edit", Patterns: []string{"a.go"}, Title: "a.go"}, "", asked{Goal: "a goal", Head: "It needs your permission: edit", What: "a.go", Choices: []choice{once, refuse}, Words: "Why you refuse (the agent is told)"}},
		{store.Ask{ID: "d", Type: store.AskQuestion, Agent: "worker", Title: "Store", Text: "Which?", Options: []string{"x", "y"}}, "", asked{Goal: "a goal", Head: "worker asks", What: "Store\nWhich?",
			Choices: []choice{{"1", "x", "", false}, {"2", "y", "", false}, say}, Words: "Or in your own words"}},
		{store.Ask{ID: "e", Type: store.AskQuestion, Title: "Which?", Text: "Which?"}, "", asked{Goal: "a goal", Head: "A question", What: "Which?", Choices: []choice{say}, Words: "Your answer"}},
		{store.Ask{ID: "f", Type: store.AskQuestion, Text: "Which?"}, "", asked{Goal: "a goal", Head: "A question", What: "Which?", Choices: []choice{say}, Words: "Your answer"}},
	} {
		x.want.Ask, x.want.Link, x.want.Above, x.want.Mission = x.ask, link(x.ask.ID), x.above, "mission/m"
		if got := s.asked(x.ask, m, x.above, "mission/m"); !reflect.DeepEqual(got, x.want) {
			t.Errorf("%s:\n%+v, want\n%+v", x.ask.ID, got, x.want)
		}
	}
	for picked, want := range map[string]string{"": "choose one of the answers, or write your own", "3": "choose one of the answers, or write your own"} {
		v := s.asked(question, m, "", "")
		if _, err := v.answer(picked, ""); centurion.KindOf(err) != centurion.KindUsage || err.Error() != want {
			t.Errorf("%q: %v", picked, err)
		}
	}
	v := s.asked(plan, m, "", "")
	if _, err := v.answer("", "run"); centurion.KindOf(err) != centurion.KindUsage || err.Error() != "choose one of the answers first" {
		t.Errorf("a plan in words: %v", err)
	}
}

// A mission stands in the list by what it needs, with its word, its colour and what is known of it.
func TestRowsWhole(t *testing.T) {
	for _, x := range []struct {
		m       server.Mission
		urgency int
		word    string
		tone    string
		facts   string
	}{
		{server.Mission{Status: centurion.MissionRunning, Asks: 1, Tasks: map[string]int{"completed": 1, "running": 2}, DurationMS: 61_000}, 0, "running", "fair", "1 of 3 tasks done · 1m01s · $0.00"},
		{server.Mission{Status: centurion.MissionBlocked}, 0, "blocked", "bad", "$0.00"},
		{server.Mission{Status: centurion.MissionPlanning, Usage: centurion.Usage{USD: 2}}, 1, "planning", "fair", "$2.00"},
		{server.Mission{Status: centurion.MissionPaused}, 2, "paused", "none", "$0.00"},
		{server.Mission{Status: centurion.MissionCancelled}, 2, "cancelled", "none", "$0.00"},
		{server.Mission{Status: centurion.MissionFailed}, 2, "failed", "bad", "$0.00"},
		{server.Mission{Status: centurion.MissionCompleted, Evidence: centurion.EvidenceNone}, 2, "completed, not verified", "fair", "$0.00"},
		{server.Mission{Status: centurion.MissionCompleted, Options: centurion.MissionOptions{Profile: "assistant"}}, 2, "completed", "good", "$0.00"},
	} {
		if r := rowOf(x.m); urgency(x.m) != x.urgency || r.Word != x.word || r.Tone != x.tone || r.Facts != x.facts {
			t.Errorf("%s: urgency %d, %q, %q, %q", x.m.Status, urgency(x.m), r.Word, r.Tone, r.Facts)
		}
	}
	for state, want := range map[centurion.TaskStatus]string{centurion.TaskCompleted: "good", centurion.TaskRunning: "fair", centurion.TaskVerifying: "fair", centurion.TaskQueued: "none", centurion.TaskWaiting: "none",
		centurion.TaskCancelled: "none", centurion.TaskFailed: "bad", centurion.TaskBlocked: "bad"} {
		if got := tones()[string(state)]; got != want {
			t.Errorf("a task that is %s is %q", state, got)
		}
	}
	v := whole{Told: Told{Parts: []Part{{ID: "verdict"}, {ID: "goal"}, {ID: "tasks"}, {ID: "plan"}, {ID: "files"}, {ID: "cost"}}}}
	if rest := v.Rest(); len(rest) != 2 || rest[0].ID != "tasks" || rest[1].ID != "cost" || v.Part("plan").ID != "plan" || v.Part("none").ID != "" {
		t.Errorf("the rest is %+v", v.Rest())
	}
}

// unread is a project that cannot be read.
type unread struct {
	server.API
	err error
}

func (u unread) Missions(context.Context) ([]server.Mission, error) { return nil, u.err }

func (u unread) Mission(context.Context, string) (server.Mission, error) {
	return server.Mission{}, u.err
}

func (u unread) Asks(context.Context) ([]store.Ask, error) { return nil, u.err }

func (u unread) LastSeq(context.Context) (int64, error) { return 9, u.err }

// What is wrong is said with the next step, each with its status and with the headers of every page; no more than is known is shown, and what was opened for
// the request is given back.
func TestWrongWhole(t *testing.T) {
	x := newRig(t)
	projects, opened := x.site.Projects, 0
	x.site.Projects = func(ctx context.Context) ([]*Project, func()) {
		all, _ := projects(ctx)
		opened++
		return all, func() { opened-- }
	}
	link := x.asks(permission)
	ask := func(method, path string) (*httptest.ResponseRecorder, string) {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(method, path, strings.NewReader(url.Values{"answer": {"once"}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		x.site.ServeHTTP(w, r)
		if opened != 0 {
			t.Errorf("%s: %d are still open", path, opened)
		}
		return w, html.UnescapeString(w.Body.String())
	}
	for _, c := range []struct {
		method, path string
		status       int
		says         string
	}{
		{"GET", "/nowhere", 404, "there is no such page"},
		{"GET", "/ask/x", 404, "this is no link of a question"},
		{"GET", "/mission/msn_none", 404, "no open project has the mission msn_none (open the project first, or look for it with: centurion ps --all)"},
		{"PUT", link, 405, "a link of a question is read or answered"},
		{"POST", link, 200, "Answered: once"},
	} {
		w, says := ask(c.method, c.path)
		h := w.Header()
		if w.Code != c.status || !strings.Contains(says, ">"+c.says+"<") || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Type") != "text/html; charset=utf-8" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: %d, %v\n%s", c.method, c.path, w.Code, h, says)
		}
		if c.status == 405 && h.Get("Allow") != "GET, HEAD, POST" {
			t.Errorf("allowed: %s", h.Get("Allow"))
		}
	}
	broken := &Project{Directory: "/home/me/gamma", API: func() server.API {
		return unread{err: &centurion.Error{Kind: centurion.KindDisk, Msg: "no space", Hint: "free some"}}
	}}
	x.site.Projects = func(context.Context) ([]*Project, func()) { return []*Project{broken}, func() {} }
	for path, status := range map[string]int{"/": 200, "/mission/msn_running": 500, link: 500} {
		if w, says := ask("GET", path); w.Code != status || !strings.Contains(says, "no space (free some)") {
			t.Errorf("%s of a project that cannot be read: %d\n%s", path, w.Code, says)
		}
	}
}

// recorder records an answer that is read while it is written.
type recorder struct {
	mu *sync.Mutex
	*httptest.ResponseRecorder
}

func (r *recorder) WriteString(s string) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ResponseRecorder.WriteString(s)
}

func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Body.String()
}

// A stream says at once that it is there, then after each event of its mission what it was asked for, and otherwise that it lives; it ends when a project
// cannot be followed or another was opened.
func TestLiveWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var asked []server.EventQuery
		end := make(chan error)
		p := &Project{API: func() server.API { return unread{} }, Follow: func(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error] {
			asked = append(asked, q)
			return func(yield func(centurion.Event, error) bool) {
				time.Sleep(12 * time.Second)
				yield(centurion.Event{}, nil)
				select {
				case err := <-end:
					yield(centurion.Event{}, err)
				case <-ctx.Done():
				}
			}
		}}
		open := []*Project{p}
		s := &Site{Token: token, Projects: func(context.Context) ([]*Project, func()) {
			mu.Lock()
			defer mu.Unlock()
			return open, func() {}
		}}
		for why, stop := range map[string]func(){"cannot be followed": func() { end <- errors.New("lost") }, "another is open": func() {
			mu.Lock()
			open = append(open, p)
			mu.Unlock()
			time.Sleep(heartbeat)
		}} {
			open, asked = []*Project{p}, nil
			w := &recorder{mu: &mu, ResponseRecorder: httptest.NewRecorder()}
			over := make(chan struct{})
			go func() {
				defer close(over)
				s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/live?mission=msn_1", nil))
			}()
			time.Sleep(15 * time.Second)
			synctest.Wait()
			const alive, changed = ": alive\n\n", "retry: 1000\ndata: changed\n\n"
			if got := w.text(); got != changed+alive+changed || w.Header().Get("Content-Type") != "text/event-stream" || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("told %q, %v", got, w.Header())
			}
			if len(asked) != 1 || asked[0] != (server.EventQuery{Mission: "msn_1", After: 9, Follow: true}) {
				t.Errorf("asked for %+v", asked)
			}
			stop()
			time.Sleep(collects)
			synctest.Wait()
			select {
			case <-over:
			default:
				t.Errorf("it does not end when a project %s", why)
				end <- nil
				<-over
			}
		}
	})
}
