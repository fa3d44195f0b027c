package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"centurion"
)

// ORCH-77: a chain of models stands for the project, for one model or for one agent, and the nearest of these counts.
func TestChains(t *testing.T) {
	w := newWorld(t)
	w.global("opencode/opencode.json", `{"provider": {"x": {"options": {"baseURL": "http://127.0.0.1:1/v1"}, "models": {"a": {}, "b": {}, "c": {}}}},
		"agent": {"scout": {"fallback": "x/c"}}}`)
	for _, test := range []struct{ own, agent, model, want string }{
		{`{"fallback": ["x/a", "x/b"]}`, "worker", "x/a", "x/b"},
		{`{"fallback": ["x/a", "x/b"]}`, "worker", "x/c", "x/a x/b"},
		{`{"fallback": ["x/a", "x/b"]}`, "scout", "x/b", "x/c"},
		{`{"fallback": {"x/c": ["x/a"]}}`, "worker", "x/c", "x/a"},
		{`{"fallback": {"x/c": ["x/a"]}}`, "worker", "x/b", ""},
		{`{"fallback": "x/a", "agent": {"scout": {"fallback": []}}}`, "scout", "x/b", ""},
		{`{"fallback": "x/a", "agent": {"Worker": {"fallback": ["x/b"]}}}`, "worker", "x/c", "x/b"},
		{`{}`, "worker", "x/c", ""},
	} {
		w.project(".opencode/centurion.jsonc", test.own)
		w.trust()
		chains, err := w.load().Chains(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(chains.For(test.agent, test.model), " "); got != test.want {
			t.Errorf("%s: for %s with %s: %q, want %q", test.own, test.agent, test.model, got, test.want)
		}
	}
	w.project(".opencode/centurion.jsonc", `{"fallback": ["openai/gpt-5", "x/a"]}`)
	w.trust()
	chains, err := w.load().Chains(t.Context())
	if err != nil || !slices.Equal(chains.For("worker", "x/b"), []string{"x/a"}) || len(chains.Notes) != 1 || !strings.Contains(chains.Notes[0], "OPENAI_API_KEY") {
		t.Errorf("without a key: %q, notes %q, %v", chains.For("worker", "x/b"), chains.Notes, err)
	}
}

// ORCH-77, ORCH-137: a name that nobody knows is told with its key and the nearest, and a form that cannot be with its place.
func TestBadChainsAndCaps(t *testing.T) {
	for own, want := range map[string]string{
		`{"fallback": ["opanai/gpt-5"]}`:                     `unknown provider "opanai" in fallback (.opencode/centurion.jsonc); the nearest is "openai"`,
		`{"fallback": ["anthropic/claude-sonet-4-5"]}`:       `the nearest is "anthropic/claude-sonnet-4-5`,
		`{"fallback": ["/gpt-5"]}`:                           `the model "/gpt-5" in fallback (.opencode/centurion.jsonc) is not of the form provider/model`,
		`{"fallback": ["gpt-5"]}`:                            `the model "gpt-5" in fallback (.opencode/centurion.jsonc) is not of the form provider/model`,
		`{"fallback": {"opanai/gpt-5": ["openai/gpt-5"]}}`:   `unknown provider "opanai" in fallback`,
		`{"fallback": 3}`:                                    `"fallback" must be a list of models or an object`,
		`{"agent": {"worker": {"fallback": ["opanai/x"]}}}`:  `unknown provider "opanai" in agent.worker.fallback`,
		`{"concurrency": {"providers": {"opanai": 3}}}`:      `unknown provider "opanai" in concurrency.providers`,
		`{"concurrency": {"models": {"gpt-5": 3}}}`:          `not of the form provider/model`,
		`{"concurrency": {"provider": {}}}`:                  `the nearest known key is "concurrency.providers"`,
		`{"concurrency": {"providers": {"openai": 0}}}`:      `"concurrency.providers.openai" must be a whole number from 1`,
		`{"concurrency": {"providers": {"openai": "many"}}}`: `"concurrency.providers.openai" must be a whole number from 1`,
	} {
		w := newWorld(t)
		w.project(".opencode/centurion.jsonc", own)
		_, err := Load(w.opts)
		if err == nil {
			w.trust()
			_, err = w.load().Chains(t.Context())
		}
		if centurion.KindOf(err) != centurion.KindConfig || !strings.Contains(err.Error(), want) || centurion.HintOf(err) == "" && !strings.Contains(want, "must be") {
			t.Errorf("%s: got %v (%s), want %s", own, err, centurion.HintOf(err), want)
		}
	}
}

// ORCH-137: caps come from both files of ours, and a project's file cannot loosen the person's.
func TestConcurrency(t *testing.T) {
	w := newWorld(t)
	w.global("centurion/config.jsonc", `{"concurrency": {"providers": {"openai": 4}, "agents": {"worker": 6}}}`)
	w.project(".opencode/centurion.jsonc", `{"concurrency": {"providers": {"openai": 2, "groq": 9}, "models": {"openai/gpt-5": 1}}}`)
	want := Concurrency{Providers: map[string]int{"openai": 2, "groq": 9}, Models: map[string]int{"openai/gpt-5": 1}, Agents: map[string]int{"worker": 6}}
	if diff := cmp.Diff(want, w.load().Own.Concurrency); diff != "" {
		t.Error(diff)
	}
	for _, wider := range []string{`{"providers": {"openai": 5}}`, `{"agents": {"worker": 7}}`} {
		w.project(".opencode/centurion.jsonc", `{"concurrency": `+wider+`}`)
		c := w.load()
		if got := c.Own.Concurrency; got.Providers["openai"] != 4 || got.Agents["worker"] != 6 || strings.Join(withheld(c), "\n") != "setting concurrency: "+strings.ReplaceAll(wider, " ", "") {
			t.Errorf("a project's file with %s lets %+v run; withheld %q", wider, got, withheld(c))
		}
	}
}
