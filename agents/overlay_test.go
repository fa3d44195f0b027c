package agents

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"centurion"
)

// with lays definitions over the four.
func with(t *testing.T, defs ...Definition) (*Cast, []string) {
	t.Helper()
	c, notes, err := Default().With(defs...)
	if err != nil {
		t.Fatal(err)
	}
	return c, notes
}

func get(t *testing.T, c *Cast, name string) Agent {
	t.Helper()
	a, err := c.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// C-13: the older casts' seven names are aliases of the four; an agent of the person's own with such a name is that agent.
func TestAliases(t *testing.T) {
	for old, now := range map[string]string{"architect": Planner, "Researcher": Planner, "builder": Worker, "librarian": Worker,
		"INSPECTOR": Reviewer, "recorder": Reviewer} {
		if a, err := Default().Find(old); err != nil || a.Name != now {
			t.Errorf("%s is %q, %v", old, a.Name, err)
		}
		if _, err := Default().Get(old); centurion.KindOf(err) != centurion.KindUsage {
			t.Errorf("%s is taken for a name: %v", old, err)
		}
	}
	if _, err := Default().Find("architct"); centurion.HintOf(err) != `did you mean "architect"?` {
		t.Errorf("hint %q", centurion.HintOf(err))
	}
	c, _ := with(t, Definition{Name: "Librarian", Prompt: "You find books.", Source: "l.md"})
	if a, err := c.Find("librarian"); err != nil || a.Name != "librarian" || !a.Custom {
		t.Errorf("the own librarian is %+v, %v", a, err)
	}
	c, _ = with(t, Definition{Name: Worker, Disable: true})
	if _, err := c.Find("builder"); err == nil {
		t.Error("the alias of a disabled agent is found")
	}
}

// ORCH-57: what tools an agent of the person's own holds, as a task and as the owner of a mission.
func TestOwnTools(t *testing.T) {
	worker := get(t, Default(), Worker).Tools
	commander := get(t, Default(), Commander).Tools
	looking := []string{"read", "ls", "glob", "grep"}
	web, shell := []string{"webfetch", "websearch", "codesearch", "update_context", "skill"}, []string{"bash", "run_background", "check_background"}
	for name, tt := range map[string]struct {
		mode  string
		tools map[string]bool
		own   []string // nil: none but as a task
		task  []string
		note  string
	}{
		"plain subagent":      {mode: "subagent", task: worker},
		"without shell":       {mode: "subagent", tools: map[string]bool{"bash": false}, task: slices.Concat(looking, web, []string{"write", "edit"})},
		"edit means write":    {mode: "subagent", tools: map[string]bool{"edit": false}, task: slices.Concat(looking, web, shell)},
		"write means edit":    {mode: "subagent", tools: map[string]bool{"write": false}, task: slices.Concat(looking, web, shell)},
		"patch is edit":       {mode: "subagent", tools: map[string]bool{"patch": false}, task: slices.Concat(looking, web, shell)},
		"only edit":           {mode: "subagent", tools: map[string]bool{"write": false, "edit": true}, task: slices.Concat(looking, web, shell, []string{"edit"})},
		"foreign name":        {mode: "subagent", tools: map[string]bool{"list": false}, task: slices.DeleteFunc(slices.Clone(worker), func(s string) bool { return s == "ls" })},
		"nothing but one":     {mode: "subagent", tools: map[string]bool{"*": false, "Read": true}, task: []string{"read"}},
		"pattern then name":   {mode: "subagent", tools: map[string]bool{"*": true, "bash": false, "g*": false}, task: []string{"read", "ls", "write", "edit", "update_todo", "update_context", "webfetch", "websearch", "codesearch", "cache_docs", "skill"}},
		"one more":            {mode: "subagent", tools: map[string]bool{"todowrite": true}, task: slices.Concat(worker, []string{"update_todo"})},
		"may ask":             {mode: "subagent", tools: map[string]bool{"ask_user": true}, task: slices.Concat(worker, []string{"ask_user"})},
		"may ask, as else":    {mode: "subagent", tools: map[string]bool{"question": true, "a*": true}, task: slices.Concat(worker, []string{"ask_user"})},
		"owner may ask":       {mode: "primary", tools: map[string]bool{"ask_user": true}, own: slices.Concat(commander, []string{"ask_user"}), task: slices.Concat(commander, []string{"ask_user"})},
		"not there":           {mode: "subagent", tools: map[string]bool{"skill": true, "mcp_*": true}, task: worker},
		"no delegating":       {mode: "subagent", tools: map[string]bool{"task": true}, task: worker, note: "does not hold delegate_task"},
		"no ending":           {mode: "subagent", tools: map[string]bool{"mission_complete": true, "task": true}, task: worker, note: "delegate_task, mission_complete"},
		"both":                {mode: "all", own: commander, task: worker},
		"both by default":     {own: commander, task: worker},
		"both without shell":  {tools: map[string]bool{"bash": false}, own: slices.DeleteFunc(slices.Clone(commander), func(s string) bool { return s == "bash" }), task: slices.Concat(looking, web, []string{"write", "edit"})},
		"only the mission's":  {mode: "primary", own: commander, task: commander},
		"a task holds none":   {tools: map[string]bool{"task": true, "list_tasks": true}, own: commander, task: worker},
		"a primary agent may": {mode: "primary", tools: map[string]bool{"task": false}, own: slices.DeleteFunc(slices.Clone(commander), func(s string) bool { return s == "delegate_task" }), task: slices.DeleteFunc(slices.Clone(commander), func(s string) bool { return s == "delegate_task" })},
	} {
		c, notes := with(t, Definition{Name: "x", Mode: tt.mode, Tools: tt.tools, Prompt: "You are x.", Source: "x.md"})
		a := get(t, c, "x")
		if tt.own == nil {
			tt.own = tt.task
		}
		if d := cmp.Diff(sorted(tt.own), sorted(a.Tools)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if d := cmp.Diff(sorted(tt.task), sorted(a.ForTask().Tools)); d != "" {
			t.Errorf("%s, as a task: %s", name, d)
		}
		if all := strings.Join(notes, "\n"); (tt.note == "") != (all == "") || !strings.Contains(all, tt.note) {
			t.Errorf("%s: notes %q", name, notes)
		}
	}
}

// C-2, ORCH-57: an agent of the person's own carries out tasks and hands none on; an agent that is built in never gets
// what its role does not hold.
func TestDelegates(t *testing.T) {
	c, notes := with(t,
		Definition{Name: "tester", Mode: "subagent", Description: "runs\ntests", Prompt: "You test.", Source: "t.md"},
		Definition{Name: "lead", Mode: "primary", Prompt: "You lead.", Source: "l.md"},
		Definition{Name: "both", Prompt: "You do both.", Source: "b.md"},
		Definition{Name: "WORKER", Mode: "primary", Model: "p/m", Prompt: "You are the worker here.", Temperature: new(0.0), Steps: 7,
			Tools: map[string]bool{"task": true, "bash": false, "*": true}, Source: "w.md"})
	for name, want := range map[string][]string{
		Commander: {Planner, Worker, Reviewer, "both", "tester"}, Planner: {Planner}, Worker: nil, Reviewer: nil,
		"tester": nil, "lead": {Planner, Worker, Reviewer, "both", "tester"}, "both": {Planner, Worker, Reviewer, "tester"},
	} {
		if got := get(t, c, name).Delegates; !slices.Equal(got, want) {
			t.Errorf("%s may delegate to %v, want %v", name, got, want)
		}
	}
	if a := get(t, c, "both").ForTask(); len(a.Delegates) > 0 || a.Holds("delegate_task") || a.Holds("mission_complete") {
		t.Errorf("a task may delegate: %+v", a)
	}
	if a := get(t, c, "both"); !strings.HasPrefix(a.ForTask().Prompt, "You do both.\n\nYou were handed one task") || a.Prompt != "You do both." {
		t.Errorf("prompts %q and %q", a.Prompt, a.ForTask().Prompt)
	}
	w := get(t, c, Worker)
	if w.Mode != "subagent" || w.Model != "p/m" || w.Prompt != "You are the worker here." || *w.Temperature != 0 || w.Steps != 7 ||
		w.Custom || w.Source != "w.md" || !slices.Equal(sorted(w.Tools), sorted([]string{"read", "ls", "glob", "grep", "write", "edit", "update_context", "skill", "webfetch", "websearch", "codesearch"})) {
		t.Errorf("the worker is %+v", w)
	}
	if all := strings.Join(notes, "\n"); len(notes) != 2 || !strings.Contains(all, "agent worker (w.md): its role does not hold delegate_task") ||
		!strings.Contains(all, "its mode stays subagent") {
		t.Errorf("notes %q", notes)
	}
	if got, want := c.Roster(get(t, c, Commander)), "- both: You do both.\n- tester: runs\n"; got != want {
		t.Errorf("roster %q, want %q", got, want)
	}
	if got := c.Roster(get(t, c, Planner)); got != "" {
		t.Errorf("the planner is told of %q", got)
	}
	// The cast that it was made of has not changed.
	if d := cmp.Diff(Default().All(), func() []Agent { d := Default(); _, _, _ = d.With(Definition{Name: Worker, Steps: 3}); return d.All() }(),
		cmp.AllowUnexported(Agent{})); d != "" {
		t.Errorf("With changes its cast: %s", d)
	}
}

func TestDisabled(t *testing.T) {
	c, notes := with(t, Definition{Name: Reviewer, Disable: true}, Definition{Name: "x", Disable: true}, Definition{Name: Commander, Disable: true})
	if _, err := c.Find(Reviewer); err == nil || get(t, c, Commander).MayDelegate(Reviewer) || len(c.All()) != 3 || len(notes) != 1 {
		t.Errorf("%v, %+v, %q", err, c.All(), notes)
	}
}

func TestBadDefinitions(t *testing.T) {
	for name, tt := range map[string]struct {
		def  Definition
		says []string
	}{
		"tool":       {Definition{Name: "x", Tools: map[string]bool{"bsh": true}, Source: "x.md"}, []string{`agent "x" of x.md`, `no tool "bsh"`, `did you mean "bash"?`}},
		"tool off":   {Definition{Name: Worker, Tools: map[string]bool{"delegate_tsk": false}, Source: "w.md"}, []string{"w.md", `did you mean "delegate_task"?`}},
		"far":        {Definition{Name: "x", Tools: map[string]bool{"frobnicate": true}, Source: "x.md"}, []string{"the tools are read, ls", "under `tools`"}},
		"name":       {Definition{Name: "my agent", Source: "my agent.md"}, []string{"my agent.md", "cannot be the name"}},
		"first":      {Definition{Name: "1st", Source: "1st.md"}, []string{"1st.md", "begin with a letter"}},
		"empty name": {Definition{Source: ".md"}, []string{"cannot be the name"}},
	} {
		_, _, err := Default().With(tt.def)
		if centurion.KindOf(err) != centurion.KindConfig {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, s := range tt.says {
			if !strings.Contains(err.Error()+"\n"+centurion.HintOf(err), s) {
				t.Errorf("%s: %v, hint %q, without %q", name, err, centurion.HintOf(err), s)
			}
		}
	}
}

func sorted(tools []string) []string { return slices.Sorted(slices.Values(tools)) }
