package start

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/roots"
	"centurion/permission"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/tools"
	"centurion/workspace"
)

// newStarter is one for an empty project without a repository.
func newStarter(t *testing.T) *Starter {
	t.Helper()
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	st := storetest.Open(t)
	t.Cleanup(func() { _ = ws.Close() })
	project := isolation.NewProject(st, ws, nil, nil)
	rules := func(string) []permission.Level {
		return []permission.Level{{Name: "test", Rules: []permission.Rule{{Permission: "task", Pattern: "reviewer", Action: permission.Deny}}}}
	}
	return &Starter{Store: st, Workspace: ws, Project: project, Plans: plan.NewDesk(st, ws, func(string) *plan.File { return nil }, nil), Version: "1.2", Entering: &sync.Mutex{},
		Briefs:   &brief.Desk{Rules: rules, Workspace: ws, Project: project},
		Confined: &centurion.Confinement{Way: "full"},
		Models:   agent.Models{Model: model},
		Cast: func(profile string) *agents.Cast {
			if profile == agents.ProfileAssistant {
				return agents.DefaultAssistant()
			}
			return agents.Default()
		}}
}

// model knows each model of p, with m for none. One of them takes files.
func model(name string) (agent.Model, error) {
	provider, id, found := strings.Cut(name, "/")
	if name == "" {
		provider, id, found = "p", "m", true
	}
	if !found || provider != "p" {
		return agent.Model{}, &centurion.Error{Kind: centurion.KindUsage, Msg: "there is no model " + name}
	}
	return agent.Model{Ref: centurion.ModelRef{Provider: provider, ID: id}, Context: 1000, Media: centurion.Media{PDF: id == "pdf"}}, nil
}

var pdf = centurion.File{Mime: centurion.MimePDF, Path: "a.pdf", Data: []byte("%PDF-1.4\n")}

// write puts a file into the project.
func write(t *testing.T, s *Starter, name, text string) {
	t.Helper()
	path := filepath.Join(s.Workspace.Dir(), filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// refusal is a whole error as a person sees it.
func refusal(err error) string {
	if err == nil {
		return ""
	}
	return string(centurion.KindOf(err)) + ": " + err.Error() + " | " + centurion.HintOf(err)
}

// What cannot be started is refused with the whole reason, and leaves neither a mission nor a claimed plan.
func TestRefused(t *testing.T) {
	t.Parallel()
	const alone = agents.ProfileAssistant
	s := newStarter(t)
	write(t, s, ".opencode/todo.md", "- [ ] T1 One\n")
	for _, c := range []struct {
		goal string
		opts centurion.MissionOptions
		want string
	}{
		{"", centurion.MissionOptions{}, `usage: start mission: the goal is empty | say what is to be done: centurion run "add a rate limit to the API"`},
		{"x", centurion.MissionOptions{Profile: "asistant"}, `usage: start mission: there is no profile "asistant"; the profiles are mission, assistant | did you mean "assistant"?`},
		{"x", centurion.MissionOptions{Profile: "zzzzzz"}, `usage: start mission: there is no profile "zzzzzz"; the profiles are mission, assistant | `},
		{"x", centurion.MissionOptions{Profile: alone, PlanOnly: true}, `usage: start mission: the profile assistant makes no plans | take --profile mission, or ask it for a plan in words`},
		{"x", centurion.MissionOptions{Profile: alone, Plan: "p.md"}, `usage: start mission: the profile assistant carries out no plans | leave out --plan, or use --profile mission`},
		{"x", centurion.MissionOptions{Profile: alone, Level: 1}, `usage: start mission: the profile assistant knows no levels | leave out --level, or take --profile mission`},
		{"x", centurion.MissionOptions{Model: "q/m"}, "usage: there is no model q/m | "},
		{"x", centurion.MissionOptions{Plan: "gone.md"}, "usage: read plan: read file: gone.md does not exist | name a file of the project: --plan .opencode/todo.md"},
		{"x", centurion.MissionOptions{Isolation: "own"}, `usage: start mission: there is no isolation "own" | it is one of auto, shared and worktree`},
		{"x", centurion.MissionOptions{Files: []centurion.File{pdf}}, "usage: attach a.pdf: the model p/m takes no application/pdf | take a model that does (`centurion models` lists them), or describe it in words; if it does, say so: " + `provider.p.models."m".modalities in opencode.json, {"input": ["text", "image", "pdf"]}`},
		{"x", centurion.MissionOptions{Parts: []centurion.Part{{Type: centurion.PartFile, File: &pdf}}}, "usage: attach a.pdf: the model p/m takes no application/pdf | take a model that does (`centurion models` lists them), or describe it in words; if it does, say so: " + `provider.p.models."m".modalities in opencode.json, {"input": ["text", "image", "pdf"]}`},
	} {
		m, err := s.Start(t.Context(), c.goal, c.opts)
		if got := refusal(err); got != c.want || m.ID != "" {
			t.Errorf("%+v: mission %q,\n%s; want\n%s", c.opts, m.ID, got, c.want)
		}
		all, err := s.Store.Missions(t.Context())
		if _, _, left := s.Workspace.Todo().Load(); len(all) > 0 || err != nil || left != nil {
			t.Errorf("%+v: %d missions, %v; the plan: %v", c.opts, len(all), err, left)
		}
	}
	if _, err := s.Start(t.Context(), "x", centurion.MissionOptions{Agent: "nobody"}); centurion.KindOf(err) != centurion.KindUsage || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("an unknown agent: %v", err)
	}
}

// begun is what the store has of a mission that was started.
type begun struct {
	mission centurion.Mission
	session centurion.Session
	parts   []centurion.Part
	events  []centurion.Event
}

func start(t *testing.T, s *Starter, goal string, opts centurion.MissionOptions) (b begun) {
	t.Helper()
	m, err := s.Start(t.Context(), goal, opts)
	if err != nil {
		t.Fatal(err)
	}
	var messages []centurion.Message
	errs := make([]error, 4)
	b.mission, errs[0] = s.Store.Mission(t.Context(), m.ID)
	b.session, errs[1] = s.Store.Session(t.Context(), m.Session)
	messages, errs[2] = s.Store.Messages(t.Context(), m.Session)
	b.events, errs[3] = s.Store.Events(t.Context(), store.EventQuery{Mission: m.ID})
	if err := errors.Join(errs...); err != nil || len(messages) != 1 || messages[0].Role != centurion.RoleUser || messages[0].Origin != centurion.OriginPerson {
		t.Fatalf("%+v, %v", messages, err)
	}
	b.parts = messages[0].Parts
	return b
}

// said is what a first message holds: each text in quotes, with * before the host's own words.
func said(parts []centurion.Part) string {
	var all []string
	for _, p := range parts {
		mark := ""
		if p.Synthetic {
			mark = "*"
		}
		if p.File != nil {
			all = append(all, mark+p.File.Path)
			continue
		}
		b, _ := json.Marshal(p.Text)
		all = append(all, mark+string(b))
	}
	return strings.Join(all, " ")
}

// A mission is recorded whole: as it was asked for, less what its first message keeps, with its session and what it began with.
func TestRecorded(t *testing.T) {
	t.Parallel()
	s := newStarter(t)
	write(t, s, ".opencode/todo.md", "- [ ] T1 One\n")
	write(t, s, ".opencode/context.md", "# Context\n\nIt is Go.\n")
	write(t, s, "main.go", "package main\n")
	b := start(t, s, "build it", centurion.MissionOptions{Level: 2, Model: "p/pdf", PlanOnly: true, Files: []centurion.File{pdf}, Attached: "a.txt:\nhello", Request: "r1", MaxCost: 2})
	m := b.mission
	if m.Started.IsZero() || m.Updated != m.Started || m.PutAside == "" {
		t.Errorf("%+v", m)
	}
	want := centurion.Mission{ID: m.ID, Session: b.session.ID, Goal: "build it", Directory: s.Workspace.Dir(), Status: centurion.MissionPlanning, Level: 2,
		LevelFrom: centurion.LevelByPerson, Isolation: centurion.IsolationShared, Confinement: s.Confined, Started: m.Started, Updated: m.Started,
		Todo: ".opencode/todo.md", PutAside: m.PutAside, Options: centurion.MissionOptions{Level: 2, PlanOnly: true, Model: "p/pdf", Request: "r1", MaxCost: 2}}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("the mission is\n%+v; want\n%+v", m, want)
	}
	r := b.session
	if r.ID == "" || r.Time.Created != m.Started.UnixMilli() || r.Title != "build it" || r.Agent != "commander" || r.Directory != m.Directory || r.ProjectID != "global" || r.Slug != "0" || r.Version != "1.2" ||
		*r.Model != (centurion.SessionModel{Provider: "p", ID: "pdf"}) || r.Metadata.OwnModel != nil || r.Metadata.Mission != m.ID || r.Metadata.Address != "0/" || r.Metadata.Task != "" {
		t.Errorf("the session is %+v", r)
	}
	d := r.Metadata
	if !strings.HasPrefix(d.System, "You are the Commander") || strings.Join(d.Offered, " ") != "planner worker" || len(d.Given) != 1 || d.Given[0].Path != ".opencode/context.md" {
		t.Errorf("it was given %q, %+v and the prompt %q", d.Offered, d.Given, d.System)
	}
	const head = `"build it\n\n---\nOnly a plan is wanted now: look, write the todo list with update_todo, then end your turn. Start no work and change no file.\nThe person has set level 2 for this mission.\n\n---\n# Notes of earlier work in this project`
	if got := said(b.parts); !strings.HasPrefix(got, head) || !strings.Contains(got, `It is Go.`) ||
		!strings.Contains(got, ` a.pdf "\n\na.txt:\nhello" *"\n\n---\n`) || !strings.Contains(got, "main.go") {
		t.Errorf("the first message is %s", got)
	}
	var data event.MissionData
	if len(b.events) < 2 || b.events[0].Type != centurion.EventMissionStarted || b.events[0].Session != r.ID || json.Unmarshal(b.events[0].Data, &data) != nil ||
		data.Note != plan.PutAsideNote(m.Todo, m.PutAside) || data.Goal != "build it" || data.Level != 2 {
		t.Errorf("told %+v, %+v", b.events, data)
	}
	if got, err := s.Start(t.Context(), "another", centurion.MissionOptions{Request: "r1"}); err != nil || got.ID != m.ID {
		t.Errorf("the same request began %q, %v", got.ID, err)
	}
	if got := start(t, s, "another", centurion.MissionOptions{Request: "r2"}); got.mission.ID == m.ID || got.mission.LevelFrom != "" || got.mission.Options.Model != "p/m" {
		t.Errorf("another request began %+v", got.mission)
	}
}

// The assistant has no plan, and its request need not concern the project: it is given neither notes nor files, and leaves the plan alone.
func TestRecordedAlone(t *testing.T) {
	t.Parallel()
	s := newStarter(t)
	write(t, s, ".opencode/todo.md", "- [ ] T1 One\n")
	write(t, s, ".opencode/context.md", "It is Go.\n")
	write(t, s, "main.go", "package main\n")
	b := start(t, s, strings.Repeat("long ", 40), centurion.MissionOptions{Profile: agents.ProfileAssistant, Model: "p/other", Message: "msg_1"})
	m, r := b.mission, b.session
	if m.Status != centurion.MissionRunning || m.Todo != "" || m.PutAside != "" || m.Options.Model != "p/other" || m.Options.Message != "" {
		t.Errorf("the mission is %+v", m)
	}
	if r.Agent != "assistant" || r.Model.ID != "other" || len(r.Metadata.Given) > 0 || r.Title != centurion.Clip(m.Goal, 80) || b.parts[0].MessageID != "msg_1" {
		t.Errorf("the session is %+v", r)
	}
	if got, want := said(b.parts), `"`+strings.Repeat("long ", 40)+`"`; got != want {
		t.Errorf("the first message is %s", got)
	}
	if _, _, err := s.Workspace.Todo().Load(); err != nil {
		t.Error(err)
	}
}

// A mission whose model is refused begins with another one, remembers its own and says why. What is told has that, too.
func TestRecordedWithAnotherModel(t *testing.T) {
	t.Parallel()
	s := newStarter(t)
	for _, closed := range []bool{true, false} {
		s.Models.Model = func(name string) (agent.Model, error) {
			m, err := model(name)
			if m.Ref.ID == "m" && closed {
				m.Closed = func() time.Duration { return 5 * time.Hour }
			}
			return m, err
		}
		s.Models.Fallback = func(agent, own string) []string { return []string{"p/" + agent} }
		b := start(t, s, "x", centurion.MissionOptions{})
		var told []string
		for _, e := range b.events {
			if e.Type == centurion.EventSessionModel {
				var d event.ModelData
				if err := json.Unmarshal(e.Data, &d); err != nil {
					t.Fatal(err)
				}
				told = append(told, d.From+" "+d.To+" "+d.Reason)
			}
		}
		r, want := b.session, "p/m p/commander the provider accepts no requests for p/m for 5h; using p/commander"
		if closed && (r.Model.ID != "commander" || r.Own().String() != "p/m" || strings.Join(told, "|") != want) || !closed && (r.Model.ID != "m" || len(told) > 0) {
			t.Errorf("closed %t: %+v of %s, told %q", closed, r.Model, r.Own(), told)
		}
	}
}

// An opened session keeps its own title, when it was opened, and below which one; without a title it has the goal's.
func TestRecordedInOpenedSession(t *testing.T) {
	t.Parallel()
	s := newStarter(t)
	for title, want := range map[string]string{"Mine": "Mine", roots.Untitled + "now": "build it"} {
		opened := centurion.Session{ID: "ses_" + want[:1], Title: title, Metadata: centurion.SessionMeta{Below: "ses_0"}}
		opened.Time.Created = 7
		if err := s.Store.Update(t.Context(), func(tx *store.Tx) error { return tx.PutSession(&opened) }); err != nil {
			t.Fatal(err)
		}
		b := start(t, s, "build it", centurion.MissionOptions{Session: opened.ID})
		if b.session.ID != opened.ID || b.session.Time.Created != 7 || b.mission.Below != "ses_0" || cmp.Or(b.mission.Title, b.session.Title) != want {
			t.Errorf("%q: %+v, %+v", title, b.mission, b.session)
		}
	}
}

// saying is a plugin that puts a text in place of those of a command's message, unless it has none.
type saying struct {
	text string
	in   *string // what it was asked
}

func (s saying) Has(hook string) bool { return hook == centurion.HookCommand }

func (s saying) Hook(_ context.Context, _ string, input any, out json.RawMessage) (json.RawMessage, []string, error) {
	b, err := json.Marshal(input)
	*s.in = string(b) + string(out)
	if s.text != "" {
		out = json.RawMessage(`{"parts":[{"type":"text","text":"` + s.text + `"}]}`)
		return out, []string{"shout"}, err
	}
	return out, nil, err
}

// What plugins make of a slash command is the first message, with the files that came with it, and the journal says who did that.
func TestRecordedAsPluginsWant(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ says, want, told string }{
		{"LOUD", `"LOUD" a.pdf`, `{"hook":"command.execute.before","by":"plugin shout"}`},
		{"", `"quiet" a.pdf`, ""},
	} {
		s := newStarter(t)
		in, told := "", ""
		s.Briefs.Hooks = saying{c.says, &in}
		b := start(t, s, "quiet", centurion.MissionOptions{Profile: agents.ProfileAssistant, Model: "p/pdf", Files: []centurion.File{pdf}, Typed: &centurion.Typed{Command: "shout", Arguments: "now"}})
		for _, e := range b.events {
			if e.Type == centurion.EventPluginActed {
				told += string(e.Data)
			}
		}
		if got := said(b.parts); got != c.want || told != c.told {
			t.Errorf("%q: the first message is %s; told %s", c.says, got, told)
		}
		const asked = `{"agent":"assistant","command":"shout","arguments":"now"}{"parts":[{"id":"","sessionID":"","messageID":"","type":"text","text":"quiet"},{"id":"","sessionID":"","messageID":"","type":"file",`
		if !strings.HasPrefix(in, asked) {
			t.Errorf("it was asked %s", in)
		}
	}
}

// A message with parts of its own has the host's words behind them.
func TestFirstParts(t *testing.T) {
	t.Parallel()
	own := []centurion.Part{{Type: centurion.PartText, Text: "a"}, {Type: centurion.PartText, Text: "b"}}
	for _, c := range []struct {
		opts            centurion.MissionOptions
		earlier, listed string
		want            string
	}{
		{centurion.MissionOptions{}, "", "", `"goal"`},
		{centurion.MissionOptions{}, " notes", " files", `"goal notes" *"\n\n--- files"`},
		{centurion.MissionOptions{Parts: own}, "", "", `"a" "b"`},
		{centurion.MissionOptions{Parts: own, Attached: "x"}, " notes", " files", `"a" "b" *" notes" "\n\nx" *"\n\n--- files"`},
	} {
		if got := said(firstParts("goal", c.opts, c.earlier, c.listed)); got != c.want {
			t.Errorf("%+v: %s, want %s", c.opts, got, c.want)
		}
	}
}

// one is a tool from outside.
type one struct{ tools.External }

func (one) Tools() []centurion.ExternalTool {
	return []centurion.ExternalTool{{Name: "db_query", Schema: json.RawMessage(`{"type":"object"}`)}}
}

// An agent of the project leads a mission with its own model, the tools that it holds, and the agents of the project that it may hand work to.
func TestRecordedForOwnAgent(t *testing.T) {
	t.Parallel()
	s := newStarter(t)
	cast, notes, err := agents.Default().Beside([]string{"db"}, false).With(
		agents.Definition{Name: "lead", Mode: "primary", Prompt: "You lead.", Model: "p/lead", Source: "lead.md", Tools: map[string]bool{"delegate_task": true, "db_*": true}},
		agents.Definition{Name: "tester", Mode: "subagent", Description: "Tests.", Prompt: "You test.", Source: "tester.md"})
	if err != nil {
		t.Fatal(notes, err)
	}
	s.Cast = func(string) *agents.Cast { return cast }
	s.Briefs.External = one{}
	b := start(t, s, "x", centurion.MissionOptions{Agent: "Lead"})
	d := b.session.Metadata
	if b.session.Agent != "lead" || b.session.Model.ID != "lead" || d.AgentFile != "lead.md" || d.Roster != "- tester: Tests.\n" || len(d.External) != 1 || d.External[0].Name != "db_query" || !strings.HasPrefix(d.System, "You lead.") {
		t.Errorf("%+v, model %+v", d, b.session.Model)
	}
	if b = start(t, s, "x", centurion.MissionOptions{Agent: "lead", Model: "p/other"}); b.session.Model.ID != "other" || b.mission.Options.Model != "p/other" {
		t.Errorf("with the model of the request: %+v", b.session.Model)
	}
}
