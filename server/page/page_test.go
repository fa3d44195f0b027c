package page

import (
	"bufio"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"centurion"
	"centurion/server"
	"centurion/store"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Issue "Real OpenCode clients" 10: a browser gets the page, and everybody else what they got before.
func TestServes(t *testing.T) {
	x := newRig(t)
	for _, test := range []struct {
		method, path, accept string
		page                 bool
	}{
		{"GET", "", "text/html,*/*", true}, {"HEAD", "", "text/html", true}, {"GET", "", "*/*", false}, {"GET", "", "application/json", false}, {"POST", "", "text/html", false},
		{"GET", "mission/msn_running", "text/html", true}, {"GET", "mission/msn_running", "*/*", false}, {"GET", "session", "text/html", false},
		{"GET", "centurion/v1/missions", "text/html", false}, {"GET", "live", "*/*", false}, {"POST", "live", "text/event-stream", false}, {"GET", "project/current", "text/html", false},
	} {
		req, err := http.NewRequestWithContext(t.Context(), test.method, x.base+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", test.accept)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if page := resp.StatusCode == http.StatusOK && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html"); page != test.page {
			t.Errorf("%s /%s for %s: %s, %s", test.method, test.path, test.accept, resp.Status, resp.Header.Get("Content-Type"))
		}
	}
	if resp, text := x.get(strings.TrimSuffix(x.base, "/")); resp.Request.URL.Path != server.TokenPath+token+"/" || !strings.Contains(text, "<h1") {
		t.Errorf("the address that was printed leads to %s", resp.Request.URL)
	}
	if resp, text := x.get(x.base + "mission/msn_none"); resp.StatusCode != http.StatusNotFound || !strings.Contains(text, "no open project has the mission msn_none") {
		t.Errorf("a mission that is not there: %s %s", resp.Status, text)
	}
	if resp, _ := x.get(x.origin + "/mission/msn_running"); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the token: %s", resp.Status)
	}
}

// Issue "Real OpenCode clients" 10: missions that wait for a person come first, then those that run; each project has its own.
func TestList(t *testing.T) {
	x := newRig(t)
	x.begin("msn_blocked", "Needs a key", centurion.MissionBlocked, centurion.Now())
	removed := x.begin("msn_removed", "Never mind", centurion.MissionCancelled, centurion.Now())
	removed.Removed = centurion.Now()
	x.update(centurion.EventMissionUpdated, nil, func(tx *store.Tx) error { return tx.PutMission(&removed) })
	x.asks(permission)
	resp, text := x.get(x.base)
	in := func(parts ...string) {
		at := 0
		for _, p := range parts {
			i := strings.Index(text[at:], p)
			if i < 0 {
				t.Fatalf("there is no %q after %d in:\n%s", p, at, text)
			}
			at += i
		}
	}
	in("<title>(1) Centurion", `id="per_1"`, ">alpha</h2>", "msn_blocked", "Needs a key", "msn_running", "waits for you", "1 of 2 tasks done · 2m05s", "msn_ended", "completed, not verified", ">beta</h2>", "No mission has run here yet.")
	if strings.Contains(text, "Never mind") {
		t.Error("a mission that was removed is listed")
	}
	policy := resp.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'", "connect-src 'self'", "script-src 'sha256-"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy has no %s: %s", want, policy)
		}
	}
	if strings.Contains(policy, "unsafe") || resp.Header.Get("Cache-Control") != "no-store" || resp.Header.Get("Referrer-Policy") != "same-origin" {
		t.Errorf("headers: %v", resp.Header)
	}
}

// Issue "Real OpenCode clients" 10: what agents and repositories write is text, and what a person is asked to allow hides nothing.
func TestHostile(t *testing.T) {
	x := newRig(t)
	evil := "<script>alert(1)</script>\u202egnp.\"'><img src=x onerror=alert(2)> {{.Token}}"
	x.mission.Goal = evil
	x.mission.Reason = "javascript:alert(3) </style><style>*{display:none}" + strings.Repeat("long", 99)
	x.update(centurion.EventMissionUpdated, nil, func(tx *store.Tx) error { return tx.PutMission(&x.mission) })
	x.task(centurion.Task{ID: "tsk_1", Number: 1, Title: evil, Agent: evil, Status: centurion.TaskFailed, Reason: evil})
	x.asks(store.Ask{ID: "per_1", Type: store.AskPermission, Agent: evil, Line: evil, Permission: evil, Patterns: []string{"echo ok\n# " + evil + "\x1b[8m"}, Always: []string{evil}, Title: evil, Text: evil, Metadata: map[string]any{"description": evil}})
	x.asks(store.Ask{ID: "que_1", Type: store.AskQuestion, Call: "c", Text: evil, Title: "one\n" + evil, Options: []string{evil}})
	var got strings.Builder
	for _, path := range []string{"", "mission/msn_running"} {
		_, text := x.get(x.base + path)
		body := text[strings.Index(text, "<body>"):]
		if path != "" { // the report has golden files of its own
			body = body[:strings.Index(body, `<div class="verdict`)] + body[strings.Index(body, `<section aria-labelledby="board"`):strings.Index(body, `<section aria-labelledby="plan"`)]
		}
		body, _, _ = strings.Cut(body, `<script>"use strict"`)
		body = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`).ReplaceAllString(body, "2026-01-01 00:00:00")
		got.WriteString("== /" + path + "\n" + body + "\n")
	}
	if s := got.String(); regexp.MustCompile(`<(script|img|style)|\x{202e}|\x1b`).MatchString(s) {
		t.Error("something hostile is not neutralised")
	}
	golden := filepath.Join("testdata", "hostile.html")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || string(want) != got.String() {
		t.Errorf("%s differs (%v); look at what -update makes of it:\n%s", golden, err, got.String())
	}
}

// Issue "Real OpenCode clients" 10: a link shows its ask alone and takes one answer, without the token.
func TestLink(t *testing.T) {
	x := newRig(t)
	for name, test := range map[string]struct {
		ask           store.Ask
		picked, words string
		status        int
		answer        string
	}{
		"allowed":             {permission, "once", "", 200, "once"},
		"always":              {permission, "always", "", 200, "always"},
		"refused":             {permission, "reject", "", 200, "reject"},
		"refused in words":    {permission, "reject", " too risky ", 200, "too risky"},
		"refused as always":   {permission, "reject", "always", 200, "no: always"},
		"not chosen":          {permission, "", "once", 400, ""},
		"no such choice":      {permission, "forever", "", 400, ""},
		"plan":                {plan, "run", "", 200, "run"},
		"plan not now":        {plan, "quit", "", 200, "quit"},
		"plan always":         {plan, "always", "", 400, ""},
		"option":              {question, "2", "", 200, "Postgres"},
		"own words":           {question, "", "a file", 200, "a file"},
		"own words first":     {question, "1", "a file", 200, "a file"},
		"an option's number":  {question, "", "1", 200, "SQLite"},
		"a number of nothing": {question, "", "7", 400, ""},
		"an option too many":  {question, "3", "", 400, ""},
		"no answer":           {question, "none", "", 200, "(the person did not answer)"},
		"empty":               {question, "", " ", 400, ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.ask.ID = string(centurion.NewID(centurion.PrefixPermission))
			link := x.origin + x.asks(test.ask)
			resp, text := x.get(link)
			if resp.StatusCode != http.StatusOK || !strings.Contains(text, `id="`+test.ask.ID+`"`) || strings.Contains(text, "mission/") || strings.Contains(text, token) || strings.Contains(text, "<script") {
				t.Fatalf("it shows %s: %s", resp.Status, text)
			}
			if resp, text = x.do(http.MethodPost, link, url.Values{"answer": {test.picked}, "words": {test.words}}); resp.StatusCode != test.status || x.answered(test.ask.ID) != test.answer {
				t.Fatalf("%s, answered with %q: %s", resp.Status, x.answered(test.ask.ID), text)
			}
			if test.status != 200 {
				if !strings.Contains(text, `role="alert" data-keep>`) || !strings.Contains(text, `id="`+test.ask.ID+`"`) {
					t.Errorf("it does not say what is wrong: %s", text)
				}
				return
			}
			for method, form := range map[string]url.Values{http.MethodPost: {"answer": {"once"}, "words": {"again"}}, http.MethodGet: nil} {
				if resp, text = x.do(method, link, form); resp.StatusCode != http.StatusGone || !strings.Contains(text, "Nothing waits for an answer here any more") || x.answered(test.ask.ID) != test.answer {
					t.Errorf("%s again: %s, answered with %q: %s", method, resp.Status, x.answered(test.ask.ID), text)
				}
			}
		})
	}
}

// Issue "Real OpenCode clients" 10: an ask on the page is answered below the token, and leads back; a link that nobody made is none.
func TestAnswerOnPage(t *testing.T) {
	x := newRig(t)
	link := strings.TrimPrefix(x.asks(permission), "/")
	for page, action := range map[string]string{"": "./" + link, "mission/msn_running": "../" + link} {
		if _, text := x.get(x.base + page); !strings.Contains(text, `method="post" action="`+action+`"`) || !strings.Contains(text, `href="/`+link+`"`) {
			t.Errorf("/%s has no form for %s: %s", page, action, text)
		}
	}
	if resp, text := x.get(x.base + link + "x"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("a link that nobody made: %s %s", resp.Status, text)
	}
	if resp, _ := x.do(http.MethodPut, x.base+link, url.Values{"answer": {"once"}}); resp.StatusCode != http.StatusMethodNotAllowed || x.answered("per_1") != "" {
		t.Errorf("PUT: %s", resp.Status)
	}
	resp, text := x.do(http.MethodPost, x.base+link, url.Values{"answer": {"once"}})
	if resp.StatusCode != http.StatusOK || !strings.Contains(text, `href="../mission/msn_running"`) {
		t.Errorf("%s %s", resp.Status, text)
	}
}

// Issue "Real OpenCode clients" 10: the page is told at once, and after each event of its mission.
func TestLive(t *testing.T) {
	x := newRig(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, x.base+"live?mission=msn_running", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	told := func() string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		return ""
	}
	if got := told(); got != "changed" {
		t.Fatalf("it begins with %q: %v", got, lines.Err())
	}
	x.asks(permission)
	if got := told(); got != "changed" {
		t.Errorf("after an ask it tells %q: %v", got, lines.Err())
	}
}

// A mission's page has what its own agents ask, and nothing of others.
func TestAsksOfOneMission(t *testing.T) {
	x := newRig(t)
	x.asks(permission)
	for mission, want := range map[string]bool{"msn_running": true, "msn_ended": false} {
		if resp, text := x.get(x.base + "mission/" + mission); resp.StatusCode != http.StatusOK || strings.Contains(text, `id="per_1"`) != want {
			t.Errorf("%s: %s, shows the ask: %v", mission, resp.Status, !want)
		}
	}
}

// Of very many missions the list has those that come first, and says how many it leaves out.
func TestListIsLimited(t *testing.T) {
	x := newRig(t)
	if err := x.Update(t.Context(), func(tx *store.Tx) error {
		for i := range mostRows {
			m := x.mission
			m.ID, m.Goal, m.Status = fmt.Sprintf("msn_%d", i), "One of many", centurion.MissionPaused
			if err := tx.PutMission(&m); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	_, text := x.get(x.base)
	if many := strings.Count(text, "One of many"); many > mostRows-1 || many < mostRows-2 || !strings.Contains(text, "2 older") || !strings.Contains(text, "msn_running") {
		t.Errorf("%d of them are listed: %.2000s", many, text)
	}
}

// An answer that is too long is none: what asked still waits.
func TestAnswerIsTooLong(t *testing.T) {
	x := newRig(t)
	link := x.asks(permission)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, link, strings.NewReader(url.Values{"answer": {"reject"}, "words": {strings.Repeat("x", maxForm)}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	if x.site.ServeHTTP(w, r); w.Code != http.StatusBadRequest || x.answered("per_1") != "" {
		t.Errorf("%d, answered with %.20q", w.Code, x.answered("per_1"))
	}
}
