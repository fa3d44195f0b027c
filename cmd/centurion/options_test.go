package main

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/cli/goal"
	"centurion/config"
	"centurion/event"
	"centurion/host"
	"centurion/orchestrator/control"
	"centurion/server"
	"centurion/trust"
	"centurion/workspace/todo"
)

// A flag counts more than the configuration, which counts more than the default, for each of them.
func TestFlagsAreSettled(t *testing.T) {
	cost := 3.5
	own := config.Own{Model: "p/m", Format: "json", Isolation: "shared", Ask: "deny", Dirty: "ignore", Profile: "mission", Sandbox: "require", Agent: "own",
		MaxWorkers: 2, MaxPerAgent: 3, MaxTokens: 4, MaxDuration: 5, MaxRounds: 6, MaxToolCalls: 7, Level: 2, RequireProof: true, MaxCost: &cost}
	configured := runFlags{model: "p/m", format: "json", isolation: "shared", ask: "deny", dirty: "ignore", profile: "mission", sandbox: "require", agent: "own",
		maxWorkers: 2, maxPerAgent: 3, maxTokens: 4, maxDuration: 5, maxRounds: 6, maxToolCalls: 7, level: 2, requireProof: true, maxCost: cost, costSet: true}
	given := runFlags{model: "q/n", format: "text", isolation: "worktree", ask: "allow", dirty: "include", profile: "mission", sandbox: "off", agent: "else",
		maxWorkers: 12, maxPerAgent: 13, maxTokens: 14, maxDuration: 15, maxRounds: 16, maxToolCalls: 17, level: 3, requireProof: true, maxCost: 9, costSet: true}
	assistant := configured
	assistant.profile, assistant.level = "assistant", 0
	for name, tt := range map[string]struct {
		f    runFlags
		own  config.Own
		want runFlags
	}{
		"nothing":        {runFlags{}, config.Own{}, runFlags{format: "text", isolation: "auto", dirty: "include", profile: "mission", sandbox: "auto"}},
		"configured":     {runFlags{}, own, configured},
		"given":          {given, own, given},
		"free":           {runFlags{costSet: true}, config.Own{MaxCost: &cost}, runFlags{costSet: true, format: "text", isolation: "auto", dirty: "include", profile: "mission", sandbox: "auto"}},
		"without levels": {runFlags{profile: "assistant"}, own, assistant},
	} {
		got := tt.f
		if err := got.settle(tt.own); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// A value that means nothing here is refused with its flag, before anything is done.
func TestFlagsAreChecked(t *testing.T) {
	for words, f := range map[string]runFlags{
		`--format cannot be "xml"; it is one of text, json`:           {format: "xml"},
		`--isolation cannot be "none"; it is one of auto`:             {isolation: "none"},
		`--ask cannot be "never"; it is one of ask, deny, allow`:      {ask: "never"},
		`--dirty cannot be "keep"; it is one of include, ignore`:      {dirty: "keep"},
		`--profile cannot be "team"; it is one of mission, assistant`: {profile: "team"},
		`--sandbox cannot be "on"; it is one of auto, require, off`:   {sandbox: "on"},
		`--level cannot be "4"; it is one of 1, 2, 3`:                 {level: 4},
		`--level cannot be "-1"; it is one of 1, 2, 3`:                {level: -1},
		"`--profile solo` is not in version " + Version:               {profile: "solo"},
		"a limit cannot be negative: --max-cost -1":                   {maxCost: -1},
		"a limit cannot be negative: --max-tokens -1":                 {maxTokens: -1},
		"a limit cannot be negative: --max-rounds -1":                 {maxRounds: -1},
		"a limit cannot be negative: --max-tool-calls -1":             {maxToolCalls: -1},
		"a limit cannot be negative: --max-duration -1s":              {maxDuration: -time.Second},
		"a limit cannot be negative: --max-workers -1":                {maxWorkers: -1},
		"a limit cannot be negative: --max-per-agent -1":              {maxPerAgent: -1},
	} {
		err := f.settle(config.Own{})
		if err == nil || !strings.Contains(err.Error(), words) || exitCode(err) != exitUsage || centurion.HintOf(err) == "" {
			t.Errorf("%s: %v (%s)", words, err, centurion.HintOf(err))
		}
	}
	for value, want := range map[string]bool{"1": true, "50": true, "0": false, "-1": false, "x": false} {
		var n sessionCap
		if err := n.Set(value); (err == nil) != want || want && n.String() != value {
			t.Errorf("%s: %v, %v", value, n, err)
		}
	}
}

// What a mission may spend and do without a person is what the flags say, and otherwise little: ten dollars, or tokens where there is no
// price, and nothing that needs permission where nobody can be asked.
func TestOptionsOfAMission(t *testing.T) {
	priced := config.Resolved{Model: centurion.ModelRef{Provider: "p", ID: "m"}, Price: &centurion.Price{Input: 1}}
	unpriced := config.Resolved{Model: priced.Model}
	base := centurion.MissionOptions{Model: "p/m", Ask: "deny", MaxCost: defaultMaxCost}
	with := func(change func(*centurion.MissionOptions)) centurion.MissionOptions {
		o := base
		change(&o)
		return o
	}
	for name, tt := range map[string]struct {
		f     runFlags
		own   config.Own
		model config.Resolved
		want  centurion.MissionOptions
	}{
		"nothing": {runFlags{}, config.Own{}, priced, base},
		"limits": {runFlags{agent: "a", level: 2, maxTokens: 3, maxDuration: 4 * time.Second, maxRounds: 5, maxWorkers: 6, maxPerAgent: 7, maxToolCalls: 8, isolation: "shared", dirty: "ignore",
			merge: true, maxCost: 9, costSet: true}, config.Own{}, priced,
			centurion.MissionOptions{Model: "p/m", Ask: "deny", Agent: "a", Level: 2, MaxTokens: 3, MaxDuration: 4000, MaxRounds: 5, MaxWorkers: 6, MaxPerAgent: 7, MaxToolCalls: 8, Isolation: "shared",
				Dirty: "ignore", Merge: true, MaxCost: 9}},
		"without a limit of cost": {runFlags{costSet: true}, config.Own{}, priced, with(func(o *centurion.MissionOptions) { o.MaxCost = 0 })},
		"without a price":         {runFlags{}, config.Own{}, unpriced, with(func(o *centurion.MissionOptions) { o.MaxCost, o.MaxTokens = 0, fallbackTokens })},
		"tokens instead":          {runFlags{maxTokens: 7}, config.Own{}, unpriced, with(func(o *centurion.MissionOptions) { o.MaxCost, o.MaxTokens = 0, 7 })},
		"nobody to ask":           {runFlags{ask: "ask"}, config.Own{}, priced, with(func(o *centurion.MissionOptions) { o.Ask, o.Unattended = "ask", true })},
		"everything allowed":      {runFlags{ask: "allow"}, config.Own{}, priced, with(func(o *centurion.MissionOptions) { o.Ask = "allow" })},
		"checks of the person": {runFlags{requireProof: true}, config.Own{Verify: []string{"make"}, WorktreeSetup: []string{"npm ci"}}, priced,
			with(func(o *centurion.MissionOptions) {
				o.Verify, o.Setup, o.TrustSetup, o.RequireProof = []string{"make"}, []string{"npm ci"}, true, true
			})},
		"an assistant": {runFlags{profile: "assistant"}, config.Own{Verify: []string{"make"}}, priced, with(func(o *centurion.MissionOptions) { o.Profile = "assistant" })},
	} {
		c := &runner{&cli{in: strings.NewReader(""), out: &strings.Builder{}, err: &strings.Builder{}}, &tt.f}
		got, err := c.missionOptions(host.NewModels(&config.Config{Own: tt.own}, tt.model))
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s:\n%+v, %v, want\n%+v", name, got, err, tt.want)
		}
	}
	c := &runner{&cli{in: strings.NewReader(""), out: &strings.Builder{}}, &runFlags{maxCost: 1, costSet: true}}
	if _, err := c.missionOptions(host.NewModels(&config.Config{}, unpriced)); centurion.KindOf(err) != centurion.KindConfig || !strings.Contains(err.Error(), "--max-cost needs a price") {
		t.Errorf("a limit that could not be kept: %v", err)
	}
}

// A goal is what was written, as long as it may be and no longer, whether it is an argument or comes on standard input.
func TestReadGoal(t *testing.T) {
	long := strings.Repeat("x", goal.MaxSize)
	for name, tt := range map[string]struct {
		args []string
		in   string
		want string
	}{
		"words":            {[]string{"do", "it"}, "", "do it"},
		"standard input":   {[]string{"-"}, "\n do it\n", "do it"},
		"as long as it is": {[]string{"-"}, long, long},
		"too long":         {[]string{"-"}, long + "x", ""},
		"a long argument":  {[]string{long + "x"}, "", ""},
		"nothing":          {[]string{" "}, "", ""},
		"no argument":      {nil, "do it", ""},
	} {
		got, err := (&cli{in: strings.NewReader(tt.in)}).readGoal(tt.args)
		if got != tt.want || (err == nil) != (tt.want != "") || err != nil && exitCode(err) != exitUsage {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	c := &cli{env: []string{"A=1", "AB=2", "A=3"}}
	if c.getenv("A") != "3" || c.getenv("B") != "" {
		t.Errorf("the last of two values does not count: %q", c.getenv("A"))
	}
}

// A refusal has the exit code of a wrong use, and each error without a next step of its own gets one.
func TestRefusalsExitAsUsage(t *testing.T) {
	for kind, want := range map[centurion.Kind]int{centurion.KindPermission: 2, centurion.KindModelNotFound: 2, centurion.KindAuth: 2, centurion.KindInterrupted: 130,
		centurion.KindState: 1, centurion.KindTimeout: 1} {
		if got := exitCode(&centurion.Error{Kind: kind}); got != want {
			t.Errorf("%s: %d, want %d", kind, got, want)
		}
	}
	for want, err := range map[string]error{"see: centurion --help": &centurion.Error{Kind: centurion.KindUsage}, "continue with: centurion resume": centurion.ErrShutdown,
		"see what was found on this machine with: centurion doctor": errors.New("x")} {
		if got := generalHint(err); got != want {
			t.Errorf("%v: %s", err, got)
		}
	}
}

// Of a mission that stopped, another code than 0 is explained with what to do next where only events were printed.
func TestExitIsExplained(t *testing.T) {
	for status, next := range map[centurion.MissionStatus]string{
		centurion.MissionPaused:    "centurion resume msn_1",
		centurion.MissionBlocked:   "centurion answer que_1 TEXT, then centurion resume msn_1",
		centurion.MissionCancelled: "centurion show msn_1",
		centurion.MissionFailed:    "centurion show msn_1, then centurion resume msn_1",
		centurion.MissionCompleted: "",
	} {
		for format, told := range map[string]bool{"json": next != "", "text": false} {
			var e strings.Builder
			c := &runner{&cli{out: &strings.Builder{}, err: &e}, &runFlags{format: format}}
			c.setExitCode(centurion.Mission{ID: "msn_1", Status: status, Reason: "worker asks: so? (centurion answer que_1 TEXT)"})
			if (e.Len() > 0) != told || told && !strings.HasSuffix(e.String(), "\nnext: "+next+"\n") || c.code != missionExit(status, "x") {
				t.Errorf("%s in %s: code %d, %q", status, format, c.code, e.String())
			}
		}
	}
}

// A demonstration that lost something fails, however its mission ended.
func TestDemoExit(t *testing.T) {
	for ended, want := range map[centurion.EventType]map[bool]int{
		centurion.EventMissionCompleted: {true: exitComplete, false: exitFailed},
		centurion.EventMissionFailed:    {true: exitFailed, false: exitFailed},
		centurion.EventMissionCancelled: {true: exitCancelled, false: exitCancelled},
	} {
		for ok, code := range want {
			if got := demoExit(centurion.Event{Type: ended, Data: event.Data(event.MissionEnd{})}, ok); got != code {
				t.Errorf("%s, %v: %d, want %d", ended, ok, got, code)
			}
		}
	}
}

// The checks of a plan are shown with the lines that they stand in, and its sum is that of its text.
func TestPlanToTrust(t *testing.T) {
	text := "# P\n\n- [ ] T1 One\n  - verify: make one\n- [ ] T2 Two\n"
	doc, err := todo.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	f := planFileOf("todo.md", []byte(text), doc)
	if f.Name != "todo.md" || f.Sum != trust.Sum(text) || !slices.Equal(f.Items, []trust.Item{{Line: 3, Kind: trust.Verify, Text: "make one"}}) {
		t.Errorf("%+v", f)
	}
	if items := planItems(doc); len(items) != 2 || items[0].ID != "T1" || items[0].Verify[0] != "make one" || items[0].Status != doc.Status("T1").String() {
		t.Errorf("%+v", items)
	}
}

// ending is a host whose session is in a state, of a mission and a task.
type ending struct {
	server.API
	state   control.State
	mission server.Mission
	task    server.Task
}

func (e ending) State(context.Context, string) (control.State, error)    { return e.state, nil }
func (e ending) Mission(context.Context, string) (server.Mission, error) { return e.mission, nil }
func (e ending) Task(context.Context, string) (server.Task, error)       { return e.task, nil }

// What ends an agent says how to go on with it, and nothing is ended twice.
func TestEndingSaysHowToGoOn(t *testing.T) {
	commander, worker := control.State{Mission: "msn_1"}, control.State{Mission: "msn_1", Task: "tsk_1"}
	read := commander
	read.Queued = 1
	m := func(s centurion.MissionStatus, ask string) server.Mission {
		return server.Mission{ID: "msn_1", Status: s, Options: centurion.MissionOptions{Ask: ask}}
	}
	for _, tt := range []struct {
		name, typed string
		e           ending
		over        string
		abort, stop string
	}{
		{"a commander", "ses_1", ending{state: commander, mission: m(centurion.MissionRunning, "ask")}, "", "; it is idle; continue with: centurion send ses_1 \"TEXT\"  or: centurion resume msn_1",
			"; its mission is paused; continue with: centurion resume msn_1"},
		{"by its address", "0/", ending{state: commander, mission: m(centurion.MissionRunning, "ask")}, "", "; it is idle; continue with: centurion send 0/ \"TEXT\"  or: centurion resume msn_1",
			"; its mission is paused; continue with: centurion resume msn_1"},
		{"without a person", "0/", ending{state: commander, mission: m(centurion.MissionRunning, "deny")}, "", "; its mission pauses; continue with: centurion resume msn_1",
			"; its mission is paused; continue with: centurion resume msn_1"},
		{"with a message unread", "0/", ending{state: read, mission: m(centurion.MissionRunning, "ask")}, "", "", "; its mission is paused; continue with: centurion resume msn_1"},
		{"of an ended mission", "0/", ending{state: commander, mission: m(centurion.MissionCompleted, "ask")}, "nothing to stop: mission msn_1 is completed", "",
			"; its mission is paused; continue with: centurion resume msn_1"},
		{"a worker", "T2", ending{state: worker, task: server.Task{ID: "tsk_1", Status: centurion.TaskRunning}}, "", "", ""},
		{"a worker that ended", "T2", ending{state: worker, task: server.Task{ID: "tsk_1", Status: centurion.TaskFailed}}, "nothing to stop: task tsk_1 is failed", "", ""},
	} {
		over, abort, stop := overAlready(t.Context(), tt.e, "ses_1"), afterAbort(t.Context(), tt.e, tt.typed, "ses_1"), afterStop(t.Context(), tt.e, "ses_1")
		if over != tt.over || abort != tt.abort || stop != tt.stop {
			t.Errorf("%s: %q, %q, %q", tt.name, over, abort, stop)
		}
	}
	interrupted := m(centurion.MissionPaused, "ask")
	interrupted.Reason = server.Interrupted
	if got := overAlready(t.Context(), ending{state: commander, mission: interrupted}, "ses_1"); got != "" {
		t.Errorf("a mission that the next host resumes: %q", got)
	}
}
