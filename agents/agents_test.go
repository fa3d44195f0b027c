package agents

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"centurion"
)

// matrix is who holds which tool, in the order in which the model sees them.
//
//	c commander, p planner, w worker, r reviewer
var matrix = []struct{ tool, holders string }{
	{"read", "cpwr"},
	{"ls", "cpwr"},
	{"glob", "cpwr"},
	{"grep", "cpwr"},
	{"write", "c w "},
	{"edit", "c w "},
	{"bash", "c wr"},
	{"run_background", "  wr"},
	{"check_background", "  wr"}, // the seed gives it to the reviewer alone, but who starts one has to see what became of it
	{"webfetch", " pw "},
	{"websearch", " pw "},
	{"codesearch", " pw "},
	{"cache_docs", " p r"},
	{"update_todo", "cp r"},
	{"update_context", "cpwr"}, // planners and workers are offered its notes only
	{"skill", "cpwr"},          // for sessions that have skills
	{"delegate_task", "cp  "},
	{"get_task_result", "c   "},
	{"list_tasks", "c   "},
	{"cancel_task", "c   "},
	{"mission_complete", "c   "},
}

// ORCH-44, ORCH-45, ORCH-46, ORCH-47, ORCH-48, ORCH-49, ORCH-50, ORCH-51, ORCH-52, ORCH-53, ORCH-54, ORCH-55, ORCH-57
func TestToolMatrix(t *testing.T) {
	for _, a := range Default().All() {
		var want []string
		for _, row := range matrix {
			holds := strings.Contains(row.holders, a.Name[:1])
			if holds {
				want = append(want, row.tool)
			}
			if a.Holds(row.tool) != holds {
				t.Errorf("%s holds %s: %v", a.Name, row.tool, !holds)
			}
		}
		if !slices.Equal(a.Tools, want) {
			t.Errorf("%s holds\n%v, want\n%v", a.Name, a.Tools, want)
		}
		if a.Holds("") || a.Holds("BASH") || a.Holds("call_agent") {
			t.Errorf("%s holds what is no tool", a.Name)
		}
	}
}

func TestRoles(t *testing.T) {
	cast := Default().All()
	names := []string{Commander, Planner, Worker, Reviewer}
	delegates := map[string][]string{Commander: {Planner, Worker, Reviewer}, Planner: {Planner}, Worker: nil, Reviewer: nil}
	for i, a := range cast {
		if a.Name != names[i] || a.Description == "" || strings.Contains(a.Description, "\n") {
			t.Errorf("agent %d: %q, %q", i, a.Name, a.Description)
		}
		if mode := map[bool]string{true: "primary", false: "subagent"}[a.Name == Commander]; a.Mode != mode {
			t.Errorf("%s is %s", a.Name, a.Mode)
		}
		for _, to := range append(names, "", "nobody") {
			if want := slices.Contains(delegates[a.Name], to); a.MayDelegate(to) != want || a.MayDelegate(strings.ToUpper(to)) != want {
				t.Errorf("%s may delegate to %q: %v", a.Name, to, !want)
			}
		}
		if a.Holds("delegate_task") != (len(a.Delegates) > 0) {
			t.Errorf("%s holds delegate_task: %v, and may delegate to %v", a.Name, a.Holds("delegate_task"), a.Delegates)
		}
	}
	if len(cast) != len(names) {
		t.Errorf("there are %d agents", len(cast))
	}
}

// ORCH-57: a prompt speaks of no tool that its role does not hold. "read", "write" and "edit" are words of English, too:
// these are tools only between backquotes.
func TestPromptsNameOnlyTheirTools(t *testing.T) {
	var tools []string
	for _, row := range matrix {
		tools = append(tools, row.tool)
	}
	english := []string{"read", "write", "edit"}
	word := regexp.MustCompile("`?[A-Za-z]+(?:_[A-Za-z]+)*`?")
	for _, a := range Default().All() {
		named := 0
		for _, w := range word.FindAllString(a.Prompt, -1) {
			name := strings.Trim(w, "`")
			quoted := len(w) == len(name)+2
			switch tool := slices.Contains(tools, name); {
			case tool && !quoted && slices.Contains(english, name):
			case tool && !a.Holds(name):
				t.Errorf("the %s is told of %s, which it does not hold", a.Name, name)
			case tool:
				named++
			case strings.Contains(name, "_"):
				t.Errorf("the %s is told of %s, which is no tool", a.Name, name)
			}
		}
		if a.Name == Commander && named < 3 {
			t.Errorf("only %d tools were found in the %s's prompt: the test does not see them", named, a.Name)
		}
	}
}

func TestPrompts(t *testing.T) {
	const limit = 2816 // bytes; it stands before every request of a mission
	for _, a := range Default().All() {
		if n := len(a.Prompt); n > limit || n < 200 {
			t.Errorf("the %s's prompt has %d bytes", a.Name, n)
		}
		if !strings.Contains(strings.ToLower(a.Prompt), "you are the "+a.Name) && !strings.Contains(strings.ToLower(a.Prompt), "you are a "+a.Name) {
			t.Errorf("the %s's prompt does not say who it is", a.Name)
		}
		if strings.ContainsAny(a.Prompt, "\r\t") || !strings.HasSuffix(a.Prompt, ".\n") {
			t.Errorf("the %s's prompt does not end with a sentence or has odd blanks", a.Name)
		}
		// What one may be handed to must be known to whom hands on, by the name that delegate_task takes.
		for _, to := range a.Delegates {
			if !strings.Contains(strings.ToLower(a.Prompt), to) {
				t.Errorf("the %s's prompt does not speak of the %s", a.Name, to)
			}
		}
	}
}

func TestFind(t *testing.T) {
	c := Default()
	for _, name := range []string{"worker", "Worker", "WORKER"} {
		if a, err := c.Find(name); err != nil || a.Name != Worker {
			t.Errorf("%s: %q, %v", name, a.Name, err)
		}
	}
	for given, near := range map[string]string{"wroker": Worker, "Comander": Commander, "reviewr": Reviewer, "plannner": Planner} {
		a, err := c.Find(given)
		if a.Name != "" || centurion.KindOf(err) != centurion.KindUsage || !strings.Contains(centurion.HintOf(err), `"`+near+`"`) {
			t.Errorf("%s: %q, %v, hint %q", given, a.Name, err, centurion.HintOf(err))
		}
	}
	for _, given := range []string{"", "banana", " worker", "worker\x00"} {
		a, err := c.Find(given)
		if a.Name != "" || centurion.KindOf(err) != centurion.KindUsage {
			t.Fatalf("%q: %q, %v", given, a.Name, err)
		}
		for _, name := range []string{Commander, Planner, Worker, Reviewer} {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%q: %v does not name the %s", given, err, name)
			}
		}
	}
	if _, err := c.Find("banana"); centurion.HintOf(err) != "" {
		t.Errorf("banana is taken for something: %s", centurion.HintOf(err))
	}
}

// A caller that changes what it got changes nothing for the next one.
func TestAllIsACopy(t *testing.T) {
	c := Default()
	c.All()[0].Name = "changed"
	if a, err := c.Find(Commander); err != nil || c.All()[0].Name != Commander || a.Name != Commander {
		t.Error("the cast has changed")
	}
}
