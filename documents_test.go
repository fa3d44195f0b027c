package centurion_test

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"centurion/agents"
	"centurion/agents/instructions"
	"centurion/config"
)

// TestOwnProject loads what this repository has in .opencode/ for its own missions, as a mission does.
func TestOwnProject(t *testing.T) {
	home := t.TempDir()
	cfg, err := config.Load(config.Options{Dir: ".", Home: home, Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Notices) > 0 {
		t.Errorf("notices: %q", cfg.Notices)
	}
	cast, err := cfg.Cast(agents.ProfileMission)
	if err != nil {
		t.Fatal(err)
	}
	reviewer, err := cast.Get(agents.Reviewer)
	if err != nil || !strings.Contains(reviewer.Prompt, "AGENTS.md") || len(cfg.AgentPermission[agents.Reviewer]) == 0 {
		t.Errorf("the reviewer is not this repository's: %v, %v", reviewer.Description, err)
	}
	for _, name := range []string{"trial", "release"} {
		if c := cfg.Commands[name]; c.Description == "" || !strings.Contains(c.Template, "$1") {
			t.Errorf("/%s: %+v", name, c)
		}
	}
	skills, problems, err := instructions.New(instructions.Config{Dir: "."}).Skills(context.Background(), nil)
	if err != nil || len(problems) > 0 || !slices.ContainsFunc(skills, func(s instructions.Skill) bool { return s.Name == "add-tool" }) {
		t.Errorf("skills: %v, %q, %v", skills, problems, err)
	}
	// What these texts name is there.
	var code strings.Builder
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if b, err := os.ReadFile(e.Name()); err == nil && strings.HasSuffix(e.Name(), "_test.go") {
			code.Write(b)
		}
	}
	transitions, err := os.ReadFile("orchestrator/state/transition.go")
	if err != nil {
		t.Fatal(err)
	}
	code.Write(transitions)
	files, names := regexp.MustCompile("`([a-wyz][a-z]*/[a-wyz][a-z0-9_]*\\.[a-z]+)`"), regexp.MustCompile(`Test[A-Z][A-Za-z]*|\b[Mm]ove[A-Z][a-z]+`)
	for name, text := range documents(t) {
		if !strings.HasPrefix(name, ".opencode/") {
			continue
		}
		for _, m := range files.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(m[1]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, function := range names.FindAllString(text, -1) {
			if !strings.Contains(code.String(), "func "+function+"(") {
				t.Errorf("%s names %s, which is not there", name, function)
			}
		}
	}
}
