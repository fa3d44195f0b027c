package host

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"centurion"
	"centurion/agents"
	"centurion/config"
	"centurion/provider/scripted"
	"centurion/store"
	"centurion/workspace"
)

// A page of this machine is fetched where the person's own rule names its host, and not for a rule of the project.
func TestPrivateHostIsThePersons(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }))
	defer page.Close()
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	at, err := url.Parse(page.URL + "/x")
	if err != nil {
		t.Fatal(err)
	}
	rule := []byte(`{"webfetch": {"` + page.URL + `/*": "allow"}}`)
	for project, want := range map[bool]bool{false: true, true: false} {
		c, err := newWeb(&config.Config{Permission: []config.PermissionLevel{{Raw: rule, Project: project}}}, ws)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Fetch(t.Context(), at, func(*url.URL) error { return nil })
		if (err == nil) != want {
			t.Errorf("a rule of the project %v: %v", project, err)
		}
	}
}

// Limits of agents are theirs under whatever name they were given, in either profile.
func TestConcurrencyOfAgents(t *testing.T) {
	cfg := &config.Config{Own: config.Own{Concurrency: config.Concurrency{Providers: map[string]int{"p": 1}, Models: map[string]int{"p/m": 2},
		Agents: map[string]int{"Worker": 3, agents.Assistant: 4}}}}
	got, err := concurrency(cfg, agents.Default(), agents.DefaultAssistant())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]int{"worker": 3, agents.Assistant: 4}, got.Agents); d != "" || got.Providers["p"] != 1 || got.Models["p/m"] != 2 {
		t.Errorf("%+v: %s", got, d)
	}
	cfg.Own.Concurrency.Agents = map[string]int{"wroker": 1}
	if _, err := concurrency(cfg, agents.Default(), agents.DefaultAssistant()); centurion.KindOf(err) != centurion.KindConfig || !strings.Contains(centurion.HintOf(err)+err.Error(), "worker") {
		t.Errorf("nobody: %v", err)
	}
}

// A model keeps its price and the files that it takes, and its key is known from then on; another one is found by its name.
func TestModelsAreFound(t *testing.T) {
	x := newProject(t, nil)
	first := config.Resolved{Model: centurion.ModelRef{Provider: "p", ID: "m"}, BaseURL: "http://model.test/v1", APIKey: "zq7-0wn-key", Price: &centurion.Price{Input: 3}, Media: centurion.Media{Image: true}}
	models := NewModels(x.config(), first)
	for _, name := range []string{"", "p/m"} {
		m, err := models.Get(name)
		if err != nil || m.Ref != first.Model || m.Price != first.Price || !m.Media.Image || m.Closed == nil {
			t.Errorf("%q: %+v, %v", name, m, err)
		}
	}
	if got := models.keys.Text("it is zq7-0wn-key"); got != "it is [key p]" {
		t.Errorf("its key is told: %s", got)
	}
	if m, err := models.Get("ollama/x"); err != nil || m.Ref.String() != "ollama/x" {
		t.Errorf("another one: %+v, %v", m, err)
	}
	if _, err := models.Get("nobody/m"); err == nil {
		t.Error("a model of nobody is found")
	}
	if _, err := NewModels(x.config(), config.Resolved{}).Get(""); err == nil {
		t.Error("a host without a mission of its own has a model")
	}
	if fi, err := os.Stat(x.State); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("its state: %v, %v", fi.Mode(), err)
	}
}

// A process that leaves has a background host go on with the missions that are to run in the background, and does not wait for them.
func TestLeavingLeavesDetached(t *testing.T) {
	for name, detached := range map[string]bool{"detached": true, "attached": false} {
		t.Run(name, func(t *testing.T) {
			release, asked := make(chan struct{}), make(chan struct{}, 8)
			x := newProject(t, func(scripted.Request) scripted.Answer {
				asked <- struct{}{}
				<-release
				return scripted.Answer{Say: "It is done already."}
			})
			cfg := x.config()
			conn := &Connection{Place: x.Place, Workspace: x.ws, Config: cfg, Models: NewModels(cfg, config.Resolved{}), Note: x.note}
			if err := conn.ConnectOrOwn(t.Context(), FirstTimeout); err != nil {
				t.Fatal(err)
			}
			m, err := conn.API().Start(t.Context(), "wait", centurion.MissionOptions{Model: "custom/m", Isolation: centurion.IsolationShared, Detached: detached})
			if err != nil {
				t.Fatal(err)
			}
			<-asked
			answer := sync.OnceFunc(func() { close(release) })
			defer answer()
			if !detached {
				answer()
			}
			defer time.AfterFunc(time.Minute, answer).Stop() // a process that waits for the mission is not to hang
			if err := conn.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if got := exists(filepath.Join(x.State, logName)); got != detached {
				t.Errorf("a background host was started: %v", got)
			}
			s, err := store.Open(t.Context(), x.Database())
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if got, err := s.Mission(t.Context(), m.ID); err != nil || got.Status.Alive() != detached {
				t.Errorf("it left a mission that is %s, %v", got.Status, err)
			}
		})
	}
}

// The service tells of each project how its host ended, and fails only where another attempt may help.
func TestRunInterruptedTells(t *testing.T) {
	for name, tt := range map[string]struct {
		how  string // how the host ends
		says string
		kind centurion.Kind
	}{
		"it is done":  {"", ": nothing is left to do", ""},
		"it fails":    {"fail", ": its host has failed: exit status 1", ""},
		"it crashes":  {"crash", ": its host has crashed: ", centurion.KindCrashed},
		"no mission":  {"none", "no mission was interrupted: there is nothing to resume", ""},
		"is stopping": {"stop", ": stopped; unfinished missions resume at the next start", ""},
	} {
		x := newProject(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if tt.how == "stop" {
			tt.how = "wait"
		}
		if tt.how != "none" {
			s, err := store.Open(t.Context(), x.Database())
			if err != nil {
				t.Fatal(err)
			}
			err = s.Update(t.Context(), func(tx *store.Tx) error {
				return tx.PutMission(&centurion.Mission{ID: "msn_1", Status: centurion.MissionRunning, Directory: x.Dir})
			})
			if err = errors.Join(err, s.Close()); err != nil {
				t.Fatal(err)
			}
		}
		var out bytes.Buffer
		note := func(line string) {
			x.note(line)
			if tt.how == "wait" && strings.Contains(line, "resuming") {
				cancel()
			}
		}
		err := RunInterrupted(ctx, x.getenv, &out, append(os.Environ(), "CENTURION_TEST_EXIT="+tt.how), note)
		if centurion.KindOf(err) != tt.kind || !strings.Contains(x.noted(), tt.says) {
			t.Errorf("%s: %v, %q", name, err, x.noted())
		}
		if tt.how != "none" && !strings.Contains(x.noted(), x.Dir+": resuming msn_1") {
			t.Errorf("%s: %q", name, x.noted())
		}
	}
}
