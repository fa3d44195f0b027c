package opener

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
	"centurion/acp"
	"centurion/agents"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/pulse"
	"centurion/orchestrator/state"
	"centurion/tools"
	"centurion/workspace"
)

// project is an empty one, and the context of a call in it.
func project(t *testing.T) *tools.Call {
	t.Helper()
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	return &tools.Call{Workspace: ws}
}

// What an agent from outside tells of a call piece by piece is stored as one of our own: with the files of the project that it changed, as they
// are called here, once it has ended well.
func TestForeignCall(t *testing.T) {
	t.Parallel()
	at := project(t)
	in := func(name string) string { return filepath.Join(at.Workspace.Dir(), name) }
	out := filepath.Join(t.TempDir(), "out.txt")
	diff := tools.Diff("a.txt", "old\n", "new\n")
	running := func(tool, title, more string) string {
		return `{"ID":"c1","Tool":"` + tool + `","Title":"` + title + `","Status":"running","Input":null,"Output":"","Metadata":{` + more + `},"Files":null,"Note":false}`
	}
	ended := func(tool, status, output, more, files string) string {
		return fmt.Sprintf(`{"ID":"c1","Tool":%q,"Title":"do it","Status":%q,"Input":{"a":1},"Output":%q,"Metadata":{%s},"Files":%s,"Note":false}`, tool, status, output, more, files)
	}
	quoted, _ := json.Marshal(diff)
	for name, c := range map[string]struct {
		told    []acp.Call
		decided bool
		want    string
	}{
		"only begun":      {[]acp.Call{{ID: "c1"}}, false, running("other", "", "")},
		"a title in rows": {[]acp.Call{{ID: "c1", Title: " a\n  " + strings.Repeat("b", 300), Kind: "read"}}, false, running("read", centurion.Clip("a "+strings.Repeat("b", 300), 200), "")},
		"later words win": {[]acp.Call{{ID: "c1", Title: "one", Kind: "read", Paths: []string{in("a.txt")}}, {ID: "c1", Title: "two", Paths: []string{in("a.txt")}}, {ID: "c1"}}, false, running("read", "two", `"filepath":"a.txt"`)},
		"two files":       {[]acp.Call{{ID: "c1", Kind: "read", Paths: []string{in("a.txt")}}, {ID: "c1", Paths: []string{in("b.txt"), out, ""}}}, false, running("read", "", "")},
		"an edit": {[]acp.Call{{ID: "c1", Title: "do it", Kind: "edit", Input: json.RawMessage(`{"a":1}`), Paths: []string{in("a.txt")}}, {ID: "c1", Diffs: []acp.Diff{{Path: in("a.txt"), Old: "old\n", New: "new\n"}}}, {ID: "c1", Status: "completed", Output: "ok"}}, false,
			ended("edit", "completed", "ok", `"diff":`+string(quoted)+`,"filepath":"a.txt"`, `["a.txt"]`)},
		"a failed edit":        {[]acp.Call{{ID: "c1", Title: "do it", Kind: "edit", Input: json.RawMessage(`{"a":1}`), Paths: []string{in("a.txt")}, Status: "failed", Output: "no"}}, false, ended("edit", "error", "no", `"filepath":"a.txt"`, "null")},
		"a read":               {[]acp.Call{{ID: "c1", Title: "do it", Kind: "search", Input: json.RawMessage(`{"a":1}`), Paths: []string{in("a.txt")}, Status: "completed"}}, false, ended("read", "completed", "", `"filepath":"a.txt"`, "null")},
		"a command that wrote": {[]acp.Call{{ID: "c1", Title: "do it", Kind: "execute", Input: json.RawMessage(`{"a":1}`), Paths: []string{in("a.txt")}, Diffs: []acp.Diff{{Path: in("a.txt"), Old: "old\n", New: "new\n"}}, Status: "completed"}}, true, ended("bash", "completed", "", `"diff":`+string(quoted)+`,"filepath":"a.txt","permission":[{"permission":"bash"}]`, `["a.txt"]`)},
	} {
		h := &hearing{c: &agent.Conversation{Pulse: pulse.New()}, at: at, calls: map[string]*foreign{}}
		var f *foreign
		for _, more := range c.told {
			f = h.merged(more)
		}
		if c.decided {
			f.decided = []tools.Decision{{Permission: "bash"}}
		}
		b, err := json.Marshal(h.stored(f))
		var got map[string]any
		if err == nil {
			err = json.Unmarshal(b, &got)
		}
		if p, ok := got["Metadata"].(map[string]any)["permission"].([]any); ok { // of the decision only which permission it was about
			got["Metadata"].(map[string]any)["permission"] = []any{map[string]any{"permission": p[0].(map[string]any)["permission"]}}
		}
		var want map[string]any
		if werr := json.Unmarshal([]byte(c.want), &want); err != nil || werr != nil {
			t.Fatal(name, err, werr)
		}
		is, _ := json.Marshal(got)
		was, _ := json.Marshal(want)
		if string(is) != string(was) {
			t.Errorf("%s:\n%s; want\n%s", name, is, was)
		}
		h.over()
		if f.ended != nil {
			t.Errorf("%s: the pulse counts it as running", name)
		}
	}
}

// Kinds of calls that agents from outside tell are tools of ours with the same effect.
func TestToolOf(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{"edit": "edit", "delete": "edit", "move": "edit", "search": "read", "read": "read", "execute": "bash", "fetch": "webfetch", "think": "think", "": "other"} {
		if got := toolOf(kind); got != want || changes(kind) != (want == "edit") {
			t.Errorf("%q is %q, changes %t", kind, got, changes(kind))
		}
	}
	for tool, want := range map[string]bool{"read": true, "ls": true, "glob": true, "grep": true, "bash": true, "webfetch": false, "list_tasks": false, "": false} {
		if looksAtFiles(tool) != want {
			t.Errorf("%s looks at files: %t", tool, !want)
		}
	}
}

// Why a program has ended is added to the error of one that broke off, and says more if the program is not there.
func TestEnded(t *testing.T) {
	t.Parallel()
	cut, other := &centurion.Error{Kind: centurion.KindStreamCut, Msg: "cut"}, &centurion.Error{Kind: centurion.KindRateLimit, Msg: "wait"}
	for name, c := range map[string]struct {
		err, why error
		want     string
	}{
		"well":                  {nil, nil, " "},
		"well, then killed":     {nil, errors.New("exit code 1"), " "},
		"another error":         {other, errors.New("exit code 1"), "rate_limit wait"},
		"cut":                   {cut, nil, "stream_cut cut"},
		"cut when it was ended": {cut, &centurion.Error{Kind: centurion.KindCancelled, Msg: "ended"}, "stream_cut cut"},
		"cut by its end":        {cut, errors.New("exit code 1"), "stream_cut cut (exit code 1)"},
		"not there":             {cut, errors.New("exit code 127"), "config cut (exit code 127) | install the program, or correct its command in the agent's definition"},
	} {
		err, got := ended(c.err, c.why), " "
		if err != nil {
			got = string(centurion.KindOf(err)) + " " + err.Error()
			if hint := centurion.HintOf(err); hint != "" {
				got += " | " + hint
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The turn of an agent from outside ends at each limit: of the mission with what it spends in this turn, and of its task.
func TestWithin(t *testing.T) {
	t.Parallel()
	spent := centurion.Usage{USD: 1, Tokens: centurion.Tokens{Input: 100}}
	for name, c := range map[string]struct {
		opts centurion.MissionOptions
		cost float64 // of the conversation, which had cost 2 before
		task *centurion.Task
		want string // the error
		ends string // the mission or the task
	}{
		"no limit":            {centurion.MissionOptions{}, 100, nil, "", ""},
		"below":               {centurion.MissionOptions{MaxCost: 2, MaxTokens: 101, MaxRounds: 6}, 2.9, nil, "", ""},
		"at the cost":         {centurion.MissionOptions{MaxCost: 2}, 3, nil, "the cost limit of $2.00 is reached", "mission"},
		"a cheaper one":       {centurion.MissionOptions{MaxCost: 1.5}, 1, nil, "", ""},
		"cost before it":      {centurion.MissionOptions{MaxCost: 1}, 0, nil, "the cost limit of $1.00 is reached", "mission"},
		"at the tokens":       {centurion.MissionOptions{MaxTokens: 100}, 0, nil, "the token limit (100) is reached", "mission"},
		"at the requests":     {centurion.MissionOptions{MaxRounds: 5}, 0, nil, "the request limit (5) is reached", "mission"},
		"below the task's":    {centurion.MissionOptions{}, 2.4, &centurion.Task{Budget: centurion.TaskBudget{Cost: 1}, Usage: centurion.Usage{USD: 0.5}}, "", ""},
		"at the task's":       {centurion.MissionOptions{}, 2.5, &centurion.Task{Budget: centurion.TaskBudget{Cost: 1}, Usage: centurion.Usage{USD: 0.5}}, "the task's own budget of $1.00 is used up", "task"},
		"a task without one":  {centurion.MissionOptions{}, 9, &centurion.Task{}, "", ""},
		"the mission's first": {centurion.MissionOptions{MaxCost: 2}, 9, &centurion.Task{Budget: centurion.TaskBudget{Cost: 1}}, "the cost limit of $2.00 is reached", "mission"},
	} {
		ctx, end := context.WithCancelCause(t.Context())
		m := state.New(ctx, end, nil, centurion.Mission{ID: "msn_1", Options: c.opts, Usage: spent, Rounds: 5}, nil)
		h := &hearing{Opener: &Opener{Mission: m}, c: &agent.Conversation{}, before: 2}
		ended := ""
		if c.task != nil {
			h.c.Task = &state.Run{Cancel: func(err error) { ended = "task" }}
			h.c.Task.Now.Store(c.task)
		}
		err := h.within(c.cost)
		if ctx.Err() != nil {
			ended = "mission"
		}
		if got := fmt.Sprint(err); err == nil && c.want != "" || err != nil && got != c.want || ended != c.ends {
			t.Errorf("%s: %v, ends %q", name, err, ended)
		}
		end(nil)
	}
}

// Which files a call is going to replace: what the tool says, and what write and edit are given, if it is in the project.
func TestWrites(t *testing.T) {
	t.Parallel()
	at := project(t)
	for _, c := range []struct {
		tool, input string
		effect      tools.Effect
		want        string
	}{
		{"write", `{"filePath":"a.txt"}`, tools.Effect{}, "[a.txt]"},
		{"edit", `{"filePath":"d/../a.txt"}`, tools.Effect{}, "[a.txt]"},
		{"write", `{"filePath":"a.txt"}`, tools.Effect{Writes: []string{"b.txt"}}, "[b.txt]"},
		{"write", `{"filePath":"../a.txt"}`, tools.Effect{}, "[]"},
		{"write", `{`, tools.Effect{}, "[]"},
		{"bash", `{"filePath":"a.txt"}`, tools.Effect{}, "[]"},
	} {
		held, err := tools.Named(c.tool)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(fenced{Tool: held[0]}.writes(at, c.effect, json.RawMessage(c.input))); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.tool, c.input, got, c.want)
		}
	}
}

// What a session's record adds to its tools: who may be called, which skills there are, what plugins say, and what happens to files that
// several agents work on.
func TestWrappedTools(t *testing.T) {
	t.Parallel()
	const roster, shared = "Agents of this project that it takes as well:\n- a: tests", "Items whose `files:` overlap run one after the other. All sessions share one directory"
	const tool = "delegate_task skill update_todo edit bash update_context read"
	meta := centurion.SessionMeta{Roster: "- a: tests", Skills: "- s: says", Offered: []string{"a", "worker"},
		Plugged: &centurion.Plugged{Tools: map[string]centurion.Defined{"read": {Description: "plugged", Parameters: json.RawMessage(`{"type":"object"}`)}, "edit": {Parameters: json.RawMessage(`{"own":1}`)}}}}
	held := func(o *Opener, c *agent.Conversation, meta centurion.SessionMeta) map[string]tools.Tool {
		named, err := tools.Named(strings.Fields(tool)...)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]tools.Tool{}
		for _, w := range o.WrapTools(c, named, centurion.Session{Metadata: meta}) {
			all[w.Name()] = w
		}
		return all
	}
	own := &agent.Conversation{Agent: agents.Agent{Name: "commander"}}
	o := &Opener{Mission: &state.Mission{}, Checkouts: &isolation.Checkouts{}}
	got, bare := held(o, own, meta), held(o, own, centurion.SessionMeta{})
	for name, want := range map[string]string{"delegate_task": "\n\n" + roster, "skill": "\n\nSkills:\n- s: says", "update_todo": shared, "edit": shared, "bash": shared, "read": "plugged"} {
		if text := got[name].Description(); !strings.Contains(text, want) || name == "read" && text != want {
			t.Errorf("%s: %s", name, text)
		}
	}
	narrowed := func(tool tools.Tool) string { return string(tool.(tools.Narrower).Narrowed()) }
	if d := narrowed(got["delegate_task"]); !strings.Contains(d, `"enum":["a","worker"]`) || narrowed(got["read"]) != `{"type":"object"}` || narrowed(got["edit"]) != `{"own":1}` {
		t.Errorf("the schemas are %s, %s and %s", d, narrowed(got["read"]), narrowed(got["edit"]))
	}
	if d := bare["delegate_task"].Description(); strings.Contains(d, "Agents of this project") || strings.Contains(narrowed(bare["delegate_task"]), `"a"`) || bare["read"].Description() == "plugged" {
		t.Errorf("without a record: %s", d)
	}
	alone := held(&Opener{Mission: &state.Mission{Profile: agents.ProfileAssistant}, Checkouts: &isolation.Checkouts{}}, own, meta)
	if strings.Contains(alone["edit"].Description(), shared) {
		t.Error("the assistant is told of items")
	}
	for name, c := range map[string]struct {
		c     *agent.Conversation
		notes bool // it adds notes only
	}{"the mission's own agent": {own, false}, "a worker": {&agent.Conversation{Agent: agents.Agent{Name: "worker"}, Task: &state.Run{}}, true}, "a reviewer": {&agent.Conversation{Agent: agents.Agent{Name: agents.Reviewer}, Task: &state.Run{}}, false}} {
		if notes := held(o, c.c, meta)["update_context"].Description() == tools.NotesOnly().Description(); notes != c.notes || rewrites(c.c) == c.notes {
			t.Errorf("%s adds notes only: %t", name, notes)
		}
	}
	o.Call.Hooks = none{}
	if _, ok := held(o, own, meta)["read"].(hooked); !ok {
		t.Error("the hooks of plugins are not called")
	}
}

// none has no hooks.
type none struct{ centurion.Hooks }
