package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"centurion"
	"centurion/agents"
	"centurion/config"
	"centurion/event"
	"centurion/permission"
	"centurion/redact"
	"centurion/session"
	"centurion/workspace"
)

// Where no live view shows it, a mission that waits is told once, and a model's words never are. Both are published.
func TestWaitsAreTold(t *testing.T) {
	var told []string
	hub := &event.Hub{}
	publish := publisher(hub, nil, Options{Note: func(s string) { told = append(told, s) }})
	publish(centurion.Event{Type: centurion.EventDelta, Mission: "msn_1", Data: event.Data(event.DeltaData{Field: "text", Delta: "I"})})
	publish(centurion.Event{Type: centurion.EventMissionUpdated, Mission: "msn_1", Data: event.Data(event.MissionData{Reason: "the disk is full"})})
	if len(told) != 1 || told[0] != "mission msn_1 is stopped: the disk is full" {
		t.Errorf("told %q", told)
	}
	publisher(hub, redact.New(redact.Key{Name: "OWN", Value: "zq7-0wn-key"}), Options{Note: func(s string) { told = append(told, s) }})(
		centurion.Event{Type: centurion.EventMissionUpdated, Mission: "msn_1", Data: event.Data(event.MissionData{Reason: "zq7-0wn-key"})})
	if told[len(told)-1] != "mission msn_1 is stopped: [key OWN]" {
		t.Errorf("told %q", told)
	}
	publisher(hub, nil, Options{})(centurion.Event{Type: centurion.EventMissionUpdated, Data: event.Data(event.MissionData{Reason: "x"})})
}

// S1: whatever a person allows agents outside of the project, what they have trusted, the token and the store are theirs.
func TestStateIsClosed(t *testing.T) {
	x := newProject(t, nil)
	h := x.mustOwn(Options{})
	defer h.Close()
	cfg := x.config()
	cfg.Permission = []config.PermissionLevel{{File: "mine", Raw: []byte(`"allow"`)}}
	oc, err := h.configuration(t.Context(), NewModels(cfg, config.Resolved{}), &event.Hub{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]permission.Action{"trust.json": permission.Deny, "../../token": permission.Deny, "centurion.db": permission.Deny,
		"centurion.db-wal": permission.Deny, "checkouts/1/a.txt": permission.Allow} {
		name := filepath.ToSlash(workspace.FollowLinks(filepath.Join(x.State, filepath.FromSlash(file))))
		if d := permission.Decide(oc.Rules("worker"), "external_directory", []string{name}); d.Action != want {
			t.Errorf("%s: %+v", file, d)
		}
	}
}

// C-1, LOOP-38, OPAL-58: which tool calls of an answer may overlap is a matter of configuration, for all agents and for one
// of them, whatever of its names it goes by; a word that is no policy and an agent that is nobody are told with the nearest.
func TestToolPolicyOfAgents(t *testing.T) {
	load := func(t *testing.T, text string) (*config.Config, error) {
		home := t.TempDir()
		path := filepath.Join(home, ".config", "centurion", "config.jsonc")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return config.Load(config.Options{Dir: t.TempDir(), Home: home, Env: func(string) string { return "" }})
	}
	for _, tt := range []struct {
		name, text string
		want       map[string]session.Policy
		fault      string // words of the error
		hint       string
	}{
		{"nothing", `{}`, map[string]session.Policy{}, "", ""},
		{"two agents", `{"agent": {"worker": {"tool_policy": "concurrent"}, "Reviewer": {"tool_policy": "Sequential"}, "planner": {}}}`,
			map[string]session.Policy{"worker": session.PolicyConcurrent, "reviewer": session.PolicySequential}, "", ""},
		{"no policy", `{"tool_policy": "sequental"}`, nil, `"tool_policy" must be one of auto, sequential, concurrent`, "sequential"},
		{"no policy of an agent", `{"agent": {"worker": {"tool_policy": "concurent"}}}`, nil, `must be one of auto, sequential, concurrent`, "concurrent"},
		{"nobody", `{"agent": {"wroker": {"tool_policy": "auto"}}}`, nil, "agent.wroker.tool_policy", "worker"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got map[string]session.Policy
			cfg, err := load(t, tt.text)
			if err == nil {
				cast, cerr := cfg.Cast(agents.ProfileMission)
				if cerr != nil {
					t.Fatal(cerr)
				}
				got, err = policies(cfg, cast)
			}
			if tt.fault == "" {
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(tt.want, got); d != "" {
					t.Error(d)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.fault) || !strings.Contains(err.Error()+centurion.HintOf(err), tt.hint) || centurion.KindOf(err) != centurion.KindConfig {
				t.Errorf("%v (%s)", err, centurion.HintOf(err))
			}
		})
	}
}
