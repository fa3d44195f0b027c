package agents

import (
	"slices"
	"strings"
	"testing"
)

// seedMatrix is the table of the system that this program was grown from: its names of the tools, and who had them.
//
//	c commander, p planner, w worker, r reviewer
var seedMatrix = []struct{ name, ours, holders string }{
	{"delegate_task", "delegate_task", "cp"},
	{"get_task_result", "get_task_result", "c"},
	{"list_tasks", "list_tasks", "c"},
	{"cancel_task", "cancel_task", "c"},
	{"webfetch", "webfetch", "pw"},
	{"websearch", "websearch", "pw"},
	{"codesearch", "codesearch", "pw"},
	{"cache_docs", "cache_docs", "pr"},
	{"run_background", "run_background", "wr"},
	{"check_background", "check_background", "wr"}, // the reviewer's alone there; see matrix
	{"grep_search", "grep", "cpwr"},
	{"glob_search", "glob", "cpwr"},
	{"call_agent", "delegate_task", "c"}, // the planner holds the tool under its own name only
}

// ORCH-54, ORCH-55, ORCH-56, ORCH-57, ORCH-100: the seed's thirteen tools by role, under the names that they have here; each
// is there once, and no role holds one by a second name.
func TestSeedMatrix(t *testing.T) {
	if len(seedMatrix) != 13 {
		t.Fatalf("%d rows", len(seedMatrix))
	}
	for _, a := range Default().All() {
		for _, row := range seedMatrix {
			want := strings.Contains(row.holders, a.Name[:1])
			if row.name == "call_agent" {
				want = want || a.Name == Planner
			}
			if a.Holds(row.ours) != want {
				t.Errorf("%s holds %s: %v", a.Name, row.ours, !want)
			}
			if row.name != row.ours && a.Holds(row.name) {
				t.Errorf("%s holds %s beside %s", a.Name, row.name, row.ours)
			}
		}
		if slices.Contains(a.Tools, "mgrep") || len(slices.Compact(slices.Sorted(slices.Values(a.Tools)))) != len(a.Tools) {
			t.Errorf("%s holds a tool twice: %v", a.Name, a.Tools)
		}
	}
}

// ORCH-54, ORCH-55, ORCH-56, ORCH-100: a definition that names tools as the seed does gets, or loses, the ones that they are.
func TestSeedNamesInDefinitions(t *testing.T) {
	for _, row := range append(slices.Clone(seedMatrix), struct{ name, ours, holders string }{"mgrep", "grep", "cpwr"}) {
		c, _ := with(t, Definition{Name: "lead", Mode: "primary", Prompt: "You lead.", Tools: map[string]bool{"*": false, row.name: true}})
		if a := get(t, c, "lead"); !slices.Equal(a.Tools, []string{row.ours}) {
			t.Errorf("with %s an agent holds %v, want %s", row.name, a.Tools, row.ours)
		}
		c, _ = with(t, Definition{Name: "lead", Mode: "primary", Prompt: "You lead.", Tools: map[string]bool{row.name: false}})
		if a := get(t, c, "lead"); a.Holds(row.ours) {
			t.Errorf("without %s an agent holds %s", row.name, row.ours)
		}
	}
	// A role is not widened by another name either.
	c, notes := with(t, Definition{Name: Worker, Tools: map[string]bool{"call_agent": true}, Source: "w.md"})
	if a := get(t, c, Worker); a.Holds("delegate_task") || !strings.Contains(strings.Join(notes, "\n"), "its role does not hold delegate_task") {
		t.Errorf("the worker holds %v; notes %q", a.Tools, notes)
	}
}

// ORCH-1, ORCH-2, ORCH-3, ORCH-4, ORCH-5: four agents, and what each one's prompt makes it: the Commander thinks, plans,
// delegates and monitors; the planner also researches, the worker also documents, the reviewer judges on evidence.
func TestFourAgents(t *testing.T) {
	says := map[string][]string{
		Commander: {"THINK", "Level 1", "Level 2", "Level 3", "PLAN", "update_todo", "DELEGATE", "delegate_task", "MONITOR", "mission_complete"},
		Planner:   {"Look first", "update_todo", "You do not write product code"},
		Worker:    {"document"},
		Reviewer:  {"evidence", "FAIL", "update_context"},
	}
	all := Default().All()
	var names []string
	for _, a := range all {
		names = append(names, a.Name+" "+a.Mode)
	}
	if !slices.Equal(names, []string{"commander primary", "planner subagent", "worker subagent", "reviewer subagent"}) {
		t.Errorf("the agents are %q", names)
	}
	for _, a := range all {
		rest := a.Prompt
		for _, s := range says[a.Name] {
			if a.Name != Commander && !strings.Contains(a.Prompt, s) {
				t.Errorf("the %s is not told of %q", a.Name, s)
			} else if a.Name == Commander {
				_, after, ok := strings.Cut(rest, s)
				if rest = after; !ok {
					t.Fatalf("the commander is not told of %q in its place", s)
				}
			}
		}
	}
	if p := get(t, Default(), Planner); p.Holds("write") || p.Holds("edit") || p.Holds("bash") || !p.Holds("webfetch") || !p.Holds("cache_docs") {
		t.Errorf("the planner holds %v", p.Tools)
	}
	if w := get(t, Default(), Worker); !w.Holds("write") || !w.Holds("edit") || !w.Holds("bash") || w.Holds("update_todo") ||
		!strings.Contains(w.Description, "code") || !strings.Contains(w.Description, "documents") {
		t.Errorf("the worker (%s) holds %v", w.Description, w.Tools)
	}
	if r := get(t, Default(), Reviewer); r.Holds("write") || r.Holds("edit") || !r.Holds("bash") || !r.Holds("update_context") {
		t.Errorf("the reviewer holds %v", r.Tools)
	}
}
