package v1

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/store"
)

// Plugins read what clients read and write to conversations. Whatever else there is, also what comes later, is refused before it is looked
// at: that an agent's plugin answers for the person, above all.
func TestPluginHandler(t *testing.T) {
	x := newRig(t)
	ask := store.Ask{ID: centurion.NewID(centurion.PrefixPermission), Type: store.AskPermission, Mission: x.mission.ID, Session: x.root.ID, Message: "msg_1", Call: "c", Permission: "bash", Patterns: []string{"rm x"}}
	x.update(func(tx *store.Tx) error { return tx.PutAsk(&ask) })
	handler := x.project.PluginHandler()
	do := func(method, path, body string) (int, string) {
		t.Helper()
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
		return w.Code, w.Body.String()
	}
	fill := strings.NewReplacer("{session}", x.root.ID, "{id}", x.root.ID, "{message}", "msg_1")
	patterns := slices.Sorted(maps.Keys(x.project.routes()))
	refused := 0
	for _, pattern := range append(patterns, "PUT /auth/x", "POST /instance/dispose", "PATCH /config", "POST /question/"+ask.ID+"/reply") {
		method, path, _ := strings.Cut(pattern, " ")
		decides := regexp.MustCompile("permission|question|shell|revert|DELETE|publish|append").MatchString(pattern)
		if method == http.MethodGet || slices.Contains(forPlugins, pattern) && !decides {
			continue
		}
		path = fill.Replace(strings.Replace(path, "permission/{id}", "permission/"+ask.ID, 1))
		path = strings.Replace(path, "/permissions/"+x.root.ID, "/permissions/"+ask.ID, 1)
		if code, body := do(method, path, `{"reply":"always","response":"always","answers":[["yes"]],"agent":"assistant","command":"touch x"}`); code != http.StatusBadRequest || !strings.Contains(body, "that is up to a person") {
			t.Errorf("%s %s: %d %s", method, path, code, body)
		}
		refused++
	}
	if refused < 12 {
		t.Errorf("only %d routes were tried", refused)
	}
	if open, err := x.store.Asks(t.Context(), x.mission.ID, true); err != nil || len(open) != 1 {
		t.Errorf("open asks %+v, %v", open, err)
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"GET", "/permission", "", 200, ask.ID},
		{"GET", "/session/" + x.root.ID, "", 200, "a goal"},
		{"GET", "/session?directory=" + x.project.Directory, "", 200, "a goal"},
		{"GET", "/session?directory=/another", "", 400, "a plugin reaches its own project only"},
		{"POST", "/session?directory=/another", "{}", 400, "a plugin reaches its own project only"},
		{"POST", "/session", `{"agent":"assistant"}`, 200, `"ses_`},
		{"GET", "/nothing", "", 404, "no route"},
	} {
		if status, body := do(c.method, c.path, c.body); status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s %s: %d %s", c.method, c.path, status, body)
		}
	}
}

// The reader of a plugin's message learns whose it is, and a mission that was stopped does not continue by it.
func TestPluginMessages(t *testing.T) {
	x := newRig(t)
	handler := x.project.PluginHandler()
	say := func(session string) (int, string) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/session/"+session+"/prompt_async", strings.NewReader(`{"parts":[{"type":"text","text":"go on"}]}`)))
		return w.Code, w.Body.String()
	}
	if code, body := say(x.root.ID); code != http.StatusNoContent {
		t.Fatalf("%d %s", code, body)
	}
	got, err := x.store.PendingDeliveries(t.Context(), x.root.ID)
	if err != nil || len(got) != 1 || len(got[0].Parts) != 2 || got[0].Parts[1].Text != "A plugin of this project has sent this message, not the person." || !got[0].Parts[1].Synthetic {
		t.Errorf("%+v, %v", got, err)
	}
	x.mission.Status, x.mission.Reason = centurion.MissionPaused, "the cost limit"
	x.update(func(tx *store.Tx) error { return tx.PutMission(&x.mission) })
	if code, body := say(x.root.ID); code != http.StatusBadRequest || !strings.Contains(body, "the mission is paused, and only a person continues it") {
		t.Errorf("%d %s", code, body)
	}
	_, body := x.ask("POST", "/session", `{"agent":"assistant"}`)
	if say(regexp.MustCompile(`ses_\w+`).FindString(body)); len(x.begun) != 1 || len(x.begun[0].Parts) != 2 {
		t.Errorf("%+v", x.begun)
	}
}
