package config

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"centurion"
)

// A project that lies in no repository has its own files only: what stands above it may be anybody's.
func TestProjectWithoutARepository(t *testing.T) {
	w := newWorld(t)
	above := filepath.Dir(w.dir)
	w.opts.Dir = filepath.Join(above, "plain", "deep")
	w.write(filepath.Join(above, "opencode.json"), `{"model":"a/above"}`)
	w.write(filepath.Join(above, "plain", ".opencode", "centurion.json"), `{"max_workers":3}`)
	w.write(filepath.Join(w.opts.Dir, "opencode.json"), `{"default_agent":"own"}`)
	w.trust()
	if c := w.load(); c.Model != "" || c.Own.MaxWorkers != 0 || c.DefaultAgent != "own" || len(c.Sources) != 1 {
		t.Errorf("model %q, %d workers, agent %q from %q", c.Model, c.Own.MaxWorkers, c.DefaultAgent, c.Sources)
	}
}

// A file counts once, and at its first place, however often it is named.
func TestFileThatIsNamedTwice(t *testing.T) {
	w := newWorld(t)
	w.global("opencode/opencode.json", `{"model":"a/1"}`)
	w.global("opencode/opencode.jsonc", `{"model":"a/2"}`)
	w.env["OPENCODE_CONFIG"] = filepath.Join(w.home, ".config", "opencode", "opencode.json")
	c := w.load()
	if sorted := slices.Compact(slices.Sorted(slices.Values(c.Sources))); c.Model != "a/2" || len(sorted) != len(c.Sources) {
		t.Errorf("model %q from %q", c.Model, c.Sources)
	}
}

// S4: a file that OPENCODE_CONFIG names is the person's own, unless it lies in the project, also by links: the repository brought it. What it
// says counts with trust.
func TestNamedFileInTheProject(t *testing.T) {
	const text = `{"permission":{"bash":"allow"},"provider":{"openai":{"options":{"apiKey":"{env:KEY}","headers":{"X-Key":"{env:KEY}"}}}}}`
	for name, test := range map[string]struct {
		named, at string // relative to the home, in which the project is a directory
		link      string // to at
		theirs    bool
	}{
		"outside":                      {"extra.json", "extra.json", "", true},
		"in the project":               {"src/p/extra.json", "src/p/extra.json", "", false},
		"in the repository":            {"src/extra.json", "src/extra.json", "", false},
		"the project's own":            {"src/p/opencode.json", "src/p/opencode.json", "", false},
		"by a link into the project":   {"link.json", "src/p/extra.json", "link.json", false},
		"by a directory":               {"link/extra.json", "src/p/extra.json", "link", false},
		"by a link out of the project": {"src/p/link.json", "extra.json", "src/p/link.json", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.opts.Dir = filepath.Join(w.home, "src", "p")
			w.write(filepath.Join(w.home, "src", ".git", "HEAD"), "")
			w.write(filepath.Join(w.opts.Dir, "main.go"), "")
			w.env["KEY"] = "secret"
			w.env["OPENCODE_CONFIG"] = filepath.Join(w.home, test.named)
			w.write(filepath.Join(w.home, test.at), text)
			if test.link != "" {
				to := filepath.Join(w.home, test.at)
				if filepath.Ext(test.link) == "" {
					to = filepath.Dir(to)
				}
				if err := os.Symlink(to, filepath.Join(w.home, test.link)); err != nil {
					if runtime.GOOS != "windows" { // there links need a right of their own
						t.Fatal(err)
					}
					t.Skip(err)
				}
			}
			c := w.load()
			if len(c.Permission) != 1 || c.Permission[0].Project == test.theirs {
				t.Errorf("the rules are %+v", c.Permission)
			}
			counts := func(c *Config, want bool) {
				r, err := c.ResolveModel(t.Context(), "openai/gpt-5")
				if got := err == nil && r.APIKey.Reveal() == "secret" && r.Headers["X-Key"] == "secret"; got != want {
					t.Errorf("key and header count: %v, %v", got, err)
				}
			}
			counts(c, test.theirs)
			if !test.theirs {
				w.trust()
				counts(w.load(), true)
			}
		})
	}
	// A home that is a repository: what lies in the person's own directory is theirs.
	w := newWorld(t)
	w.opts.Dir = filepath.Join(w.home, "p")
	w.write(filepath.Join(w.home, ".git", "HEAD"), "")
	w.write(filepath.Join(w.opts.Dir, "main.go"), "")
	w.env["OPENCODE_CONFIG"] = filepath.Join(w.home, ".config", "opencode", "extra.json")
	w.write(w.env["OPENCODE_CONFIG"], text)
	if c := w.load(); len(c.Permission) != 1 || c.Permission[0].Project {
		t.Errorf("the rules are %+v", c.Permission)
	}
}

// An agent of a project's file whose permission is null has none of its own, and one with rules has them apart from the person's.
func TestPermissionOfAProjectsAgent(t *testing.T) {
	w := newWorld(t)
	w.global("opencode/opencode.json", `{"agent":{"Worker":{"permission":{"edit":"ask"}}}}`)
	w.project("opencode.json", `{"agent":{"worker":{"permission":null},"reviewer":{"permission":"deny"},"planner":{"model":"a/b"}}}`)
	c := w.load()
	if len(c.AgentPermission) != 1 || len(c.AgentPermission["reviewer"]) != 1 || !c.AgentPermission["reviewer"][0].Project {
		t.Errorf("%+v", c.AgentPermission)
	}
	if len(c.Agents["worker"].Permission) == 0 || len(c.Agents["reviewer"].Permission) > 0 {
		t.Errorf("of the person: %s; of the project: %s", c.Agents["worker"].Permission, c.Agents["reviewer"].Permission)
	}
	w.project("opencode.json", `{"agent":{"worker":{"permission":3}}}`)
	_, err := Load(w.opts)
	fails(t, err, centurion.KindConfig, "agent.worker.permission", "allow, ask, deny")
}

// A null is as if nothing were there: no file that came with the project takes away with it what the person has limited.
func TestNullTakesNothingAway(t *testing.T) {
	const own = `{"ask":"deny","max_cost":1,"max_tokens":5,"max_duration":"1h","max_rounds":6,"max_tool_calls":7,"isolation":"worktree","sandbox":"require",
		"require_proof":true,"task_budget":{"cost":1},"concurrency":{"providers":{"openai":1}}}`
	const open = `{"model":"a/b","permission":{"bash":"deny"},"agent":{"worker":{"permission":{"edit":"deny"},"model":"a/c"}},"provider":{"p":{"options":{"baseURL":"https://p.example/v1"}}}}`
	w := newWorld(t)
	w.global("centurion/config.jsonc", own)
	w.global("opencode/opencode.json", open)
	before := w.load()
	for _, text := range []string{`{"ask":null}`, `{"max_cost":null}`, `{"max_tokens":null,"max_duration":null}`, `{"max_rounds":null,"max_tool_calls":null}`, `{"isolation":null}`,
		`{"sandbox":null,"require_proof":null}`, `{"task_budget":null}`, `{"task_budget":{"cost":null}}`, `{"concurrency":null}`, `{"concurrency":{"providers":null}}`} {
		w.project(".opencode/centurion.json", text)
		if diff := cmp.Diff(before.Own, w.load().Own); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	for _, text := range []string{`{"model":null,"provider":null}`, `{"agent":null}`, `{"agent":{"worker":null}}`, `{"agent":{"worker":{"permission":null,"model":null}}}`} {
		w.project("opencode.json", text)
		c := w.load()
		if a := c.Agents["worker"]; string(a.Permission) != `{"edit":"deny"}` || a.Model != "a/c" || c.Model != "a/b" || c.Providers["p"].BaseURL == "" || len(c.Permission) != 1 {
			t.Errorf("%s: %s, %s, %s", text, a.Permission, a.Model, c.Model)
		}
	}
}
