package agents

import (
	"strings"
	"testing"

	"centurion"
)

// Step 11, point 1: none of the four holds a tool from outside unasked; a definition gives and takes them by name and by pattern.
func TestExternalTools(t *testing.T) {
	for _, test := range []struct {
		name  string
		cast  *Cast
		tools map[string]bool
		has   string // of linear_find, linear_make, github_find
	}{
		{"nobody asked", Default(), nil, ""},
		{"a server", Default(), map[string]bool{"linear_*": true}, "linear_find linear_make"},
		{"a tool of a server", Default(), map[string]bool{"linear_find": true}, "linear_find"},
		{"all but one", Default(), map[string]bool{"linear_*": true, "linear_make": false}, "linear_find"},
		{"a longer pattern counts", Default(), map[string]bool{"linear_*": false, "linear_f*": true}, "linear_find"},
		{"everything names no server", Default(), map[string]bool{"*": true, "*_find": true}, ""},
		{"none and then one", Default(), map[string]bool{"*": false, "github_*": true}, "github_find"},
		{"the assistant has all", DefaultAssistant(), nil, "linear_find linear_make github_find"},
		{"the assistant without a server", DefaultAssistant(), map[string]bool{"linear_*": false}, "github_find"},
		{"the assistant with one tool", DefaultAssistant(), map[string]bool{"*": false, "linear_make": true, "read": true}, "linear_make"},
	} {
		for _, name := range []string{test.cast.role(true), "own"} {
			cast, notes, err := test.cast.Beside([]string{"linear", "github", "update"}, false).With(Definition{Name: name, Tools: test.tools})
			if err != nil || len(notes) > 0 {
				t.Fatal(test.name, err, notes)
			}
			for _, a := range []Agent{get(t, cast, name), get(t, cast, name).ForTask()} {
				if got := held(a); got != test.has {
					t.Errorf("%s: %s holds %q, want %q", test.name, name, got, test.has)
				}
			}
			if name != test.cast.Owner() && !test.cast.one() && held(get(t, cast, test.cast.Owner())) != "" {
				t.Errorf("%s: the %s holds some, too", test.name, test.cast.Owner())
			}
		}
	}
	if a, _, err := Default().Beside([]string{"update"}, false).With(Definition{Name: Worker, Tools: map[string]bool{"update_context": false}}); err != nil || get(t, a, Worker).Holds("update_context") {
		t.Errorf("a tool of the program is taken for a server's: %v", err)
	}
	_, _, err := Default().Beside([]string{"linear"}, false).With(Definition{Name: Worker, Tools: map[string]bool{"lineer_find": true}, Source: "a.json"})
	if centurion.KindOf(err) != centurion.KindConfig || !strings.Contains(err.Error(), `no tool "lineer_find"`) {
		t.Errorf("a tool of no server: %v", err)
	}
}

// held lists which of three tools from outside an agent has.
func held(a Agent) string {
	var has []string
	for _, name := range []string{"linear_find", "linear_make", "github_find"} {
		if a.HoldsExternal(name) {
			has = append(has, name)
		}
	}
	return strings.Join(has, " ")
}

// A sub-agent has no tool from outside that its starter lacks.
func TestExternalToolsOfSubAgents(t *testing.T) {
	cast, _, err := DefaultAssistant().With(Definition{Name: Assistant, Tools: map[string]bool{"github_*": false}})
	if err != nil {
		t.Fatal(err)
	}
	if got := held(get(t, cast, Assistant).SubAgent([]string{"read", "linear_find", "github_find"}, "")); got != "linear_find" {
		t.Errorf("it holds %q", got)
	}
}

// Who may delegate is told who has which tools from outside.
func TestExternalToolsInTheRoster(t *testing.T) {
	cast, _, err := Default().Beside([]string{"linear"}, false).With(Definition{Name: Worker, Tools: map[string]bool{"linear_*": true, "linear_make": false}},
		Definition{Name: "tester", Description: "tests", Mode: "subagent", Tools: map[string]bool{"linear_find": true}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := cast.Roster(get(t, cast, Commander)), "- worker: also has the tools linear_* !linear_make\n- tester: tests; has the tools linear_find\n"; got != want {
		t.Errorf("got %q", got)
	}
	if got := Default().Roster(get(t, Default(), Commander)); got != "" {
		t.Errorf("without any: %q", got)
	}
}
