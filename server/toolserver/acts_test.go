package toolserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/approval"
	"centurion/orchestrator/mail"
	"centurion/server"
	"centurion/server/rpc"
	"centurion/store"
	"centurion/takeover"
)

// acting is a host that writes down what it is asked to do.
type acting struct {
	*host
	did     []string
	failing error
	working bool // whoever is written to
	diff    takeover.Change
	diffErr error
}

func (a *acting) note(format string, args ...any) error {
	a.did = append(a.did, fmt.Sprintf(format, args...))
	return a.failing
}

func (a *acting) Answer(_ context.Context, id, answer string) error {
	return a.note("answer %s %s", id, answer)
}

func (a *acting) Pause(_ context.Context, id, why string) error {
	return a.note("pause %s: %s", id, why)
}

func (a *acting) Cancel(_ context.Context, id, why string) error {
	return a.note("cancel %s: %s", id, why)
}

func (a *acting) posted(p mail.Post) string {
	id := "no id"
	if centurion.CheckID(centurion.PrefixDelivery, p.ID) == nil {
		id = "an id"
	}
	return fmt.Sprintf("%s to %s of %s from %s, resume %t, with %s", p.Text, p.To, p.Mission, p.Origin, p.Resume, id)
}

func (a *acting) Send(_ context.Context, p mail.Post) (mail.Posted, error) {
	return mail.Posted{Agent: "commander", Working: a.working}, a.note("send %s", a.posted(p))
}

func (a *acting) Prompt(ctx context.Context, p mail.Post) (mail.Reply, error) {
	if err := a.note("prompt %s", a.posted(p)); err != nil {
		return mail.Reply{}, err
	}
	if p.Text == "hang" {
		<-ctx.Done()
		return mail.Reply{}, context.Cause(ctx)
	}
	return mail.Reply{Text: "heard"}, nil
}

func (a *acting) Diff(context.Context, string, takeover.DiffOptions) (takeover.Change, error) {
	return a.diff, a.diffErr
}

func (a *acting) project() *Project {
	p := a.host.project()
	p.Call = func(_ context.Context, f func(server.API) error) error { return f(a) }
	p.Take = func(id string) { _ = a.note("take %s", id) }
	p.Own = func(id string) bool { return id == "msn_1" }
	p.Resume = func(_ context.Context, m server.Mission) (server.Mission, error) { return m, a.note("resume %s", m.ID) }
	p.Begin = func(_ context.Context, s rpc.StartParams) (server.Mission, error) {
		return server.Mission{ID: "msn_1"}, a.note("begin %q agent %q model %q profile %q", s.Prompt, s.Agent, s.Model, s.Profile)
	}
	p.Follow = func(context.Context, server.EventQuery) iter.Seq2[centurion.Event, error] {
		return func(yield func(centurion.Event, error) bool) {
			yield(centurion.Event{Type: centurion.EventMissionResumed}, nil)
		}
	}
	return p
}

func newActing(status centurion.MissionStatus) *acting {
	a := &acting{host: newHost()}
	a.mission.Status = status
	return a
}

// outcome is what a tool returns: its result or its error with the hint.
func outcome(v any, err error) string {
	if err != nil {
		return err.Error() + " | " + centurion.HintOf(err)
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// What a client does reaches the host as it is, with who did it; what it may not do reaches nobody.
func TestActs(t *testing.T) {
	ctx := context.WithoutCancel(t.Context()) // used in bubbles
	req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{}}
	asks := []store.Ask{{ID: "que_1", Mission: "msn_1", Type: store.AskQuestion, Options: []string{"red", "blue"}}, {ID: "per_1", Mission: "msn_1", Type: store.AskPermission}, {ID: "per_2", Mission: "msn_2", Type: store.AskPermission}}
	answer := func(id, said, reason string) func(*Project) string {
		return func(p *Project) string { return outcome(p.answer(ctx, req, answerArgs{id, said, reason})) }
	}
	send := func(in sendArgs) func(*Project) string {
		return func(p *Project) string { return outcome(p.send(ctx, req, in)) }
	}
	cancel := func(id, reason string) func(*Project) string {
		return func(p *Project) string { return outcome(p.cancel(ctx, req, cancelArgs{id, reason})) }
	}
	pause := func(p *Project) string { return outcome(p.pause(ctx, req, named{})) }
	running, paused, done := centurion.MissionRunning, centurion.MissionPaused, centurion.MissionCompleted
	for name, c := range map[string]struct {
		do     func(*Project) string
		status centurion.MissionStatus
		want   string
		did    string
	}{
		"a number":         {answer("que_1", " 2 ", ""), running, `{"mission":"msn_1","said":"answered que_1"}`, "answer que_1 blue"},
		"no such option":   {answer("que_1", "3", ""), running, approval.NoChoice(asks[0].Options, "3").Error() + " | " + centurion.HintOf(approval.NoChoice(asks[0].Options, "3")), ""},
		"words":            {answer("que_1", "green", ""), running, `{"mission":"msn_1","said":"answered que_1"}`, "answer que_1 green"},
		"once":             {answer("per_1", "Once", ""), running, `{"mission":"msn_1","said":"answered per_1"}`, "answer per_1 once"},
		"deny":             {answer("per_1", "DENY", "not now"), running, `{"mission":"msn_1","said":"answered per_1"}`, "answer per_1 " + approval.Refusal("not now")},
		"always":           {answer("per_1", "always", ""), running, `answer: "always" is neither once nor deny; per_1 stays open | only the user can approve for always`, ""},
		"of another":       {answer("per_2", "once", ""), running, "answer: mission msn_2 was not started here: only the user answers for it | ask the user to look at: centurion asks", ""},
		"nearly":           {answer("que_2", "x", ""), running, `answer: nothing with the id "que_2" waits for an answer; the nearest is que_1 | see list_questions`, ""},
		"unknown":          {answer("zzzzzzzz", "x", ""), running, `answer: nothing with the id "zzzzzzzz" waits for an answer | see list_questions`, ""},
		"send":             {send(sendArgs{Text: "t"}), running, `{"mission":"msn_1","said":"delivered to commander"}`, "send t to 0/ of msn_1 from person, resume false, with an id"},
		"send to":          {send(sendArgs{Text: "t", To: "T2"}), running, `{"mission":"msn_1","said":"delivered to commander"}`, "send t to T2 of msn_1 from person, resume false, with an id"},
		"send to a paused": {send(sendArgs{Text: "t"}), paused, `{"mission":"msn_1","said":"delivered to commander"}`, "send t to 0/ of msn_1 from person, resume false, with an id|take msn_1"},
		"prompt":           {send(sendArgs{Text: "t", wait: wait{5}}), running, `{"mission":"msn_1","said":"heard"}`, "prompt t to 0/ of msn_1 from person, resume false, with an id"},
		"prompt a paused":  {send(sendArgs{Text: "t", wait: wait{5}}), paused, `{"mission":"msn_1","said":"heard"}`, "take msn_1|prompt t to 0/ of msn_1 from person, resume true, with an id"},
		"no answer":        {send(sendArgs{Text: "hang", wait: wait{5}}), running, `{"mission":"msn_1","said":"delivered; there is no answer yet, see mission_result"}`, "prompt hang to 0/ of msn_1 from person, resume false, with an id"},
		"pause":            {pause, running, `{"mission":"msn_1","said":"paused msn_1"}`, "pause msn_1: an MCP client has paused it"},
		"cancel":           {cancel("msn_1", ""), running, `{"mission":"msn_1","said":"cancelled msn_1"}`, "cancel msn_1: an MCP client has cancelled it"},
		"cancel with why":  {cancel("msn_1", "why"), paused, `{"mission":"msn_1","said":"cancelled msn_1"}`, "cancel msn_1: why"},
		"cancel the last":  {cancel("", ""), running, "cancel: mission is missing | list_missions tells their ids", ""},
		"cancel an ended":  {cancel("msn_1", ""), done, "cancel: mission msn_1 is completed already | ", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := newActing(c.status)
			a.open, a.working = asks, true
			if got := c.do(a.project()); got != c.want || strings.Join(a.did, "|") != c.did {
				t.Errorf("%s: got\n%s, did %q; want\n%s, %q", name, got, strings.Join(a.did, "|"), c.want, c.did)
			}
			if c.did == "" {
				return
			}
			a.failing, a.did = errors.New("lost"), nil
			if got := c.do(a.project()); got != "lost | " {
				t.Errorf("%s of a host that fails: %s", name, got)
			}
		})
	}
	a := newActing(paused)
	if got := outcome(a.project().send(t.Context(), req, sendArgs{Text: "t"})); got != `{"mission":"msn_1","said":"delivered to commander; it is read when the mission is resumed"}` || len(a.did) != 1 {
		t.Errorf("to one that goes on stopped: %s, did %q", got, a.did)
	}
}

// A mission begins with what is asked for, and goes on if it can; each refusal says what can be done.
func TestBeginsAndResumes(t *testing.T) {
	req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{}}
	synctest.Test(t, func(t *testing.T) {
		a := newActing(centurion.MissionCompleted)
		p := a.project()
		_, err := p.runMission(t.Context(), req, runArgs{Goal: " g\n", Agent: "a", Model: "m"})
		_, derr := p.delegate(t.Context(), req, delegateArgs{Task: "t", Agent: "b", Model: "n"})
		if got := strings.Join(a.did, "|"); err != nil || derr != nil || got != `begin "g" agent "a" model "m" profile ""|begin "t" agent "b" model "n" profile "`+agents.ProfileAssistant+`"` {
			t.Errorf("%v, %v: %s", err, derr, got)
		}
		long := outcome(p.runMission(t.Context(), req, runArgs{Goal: strings.Repeat("x", mail.MaxPost+1)}))
		if long != "the goal is longer than "+centurion.Bytes(mail.MaxPost)+" | put the details into a file of the project and name it in the goal" || len(a.did) != 2 {
			t.Errorf("a long goal: %s", long)
		}
		if _, err := p.runMission(t.Context(), req, runArgs{Goal: strings.Repeat("x", mail.MaxPost)}); err != nil {
			t.Errorf("the longest goal: %v", err)
		}
		if got := outcome(p.resume(t.Context(), req, resultArgs{})); got != "resume: mission msn_1 is completed already | see mission_result" {
			t.Errorf("an ended one: %s", got)
		}
		for status, want := range map[centurion.MissionStatus]string{centurion.MissionPaused: "paused", centurion.MissionRunning: "running", centurion.MissionBlocked: "blocked"} {
			a.mission.Status, a.did = status, nil
			begin := time.Now()
			r, err := p.resume(t.Context(), req, resultArgs{})
			if err != nil || r.Mission.Status != want || strings.Join(a.did, "|") != "resume msn_1" || time.Since(begin) != 0 {
				t.Errorf("%s: %+v, %v, did %q", status, r, err, a.did)
			}
		}
		a.failing = errors.New("lost")
		if _, err := p.resume(t.Context(), req, resultArgs{}); !errors.Is(err, a.failing) {
			t.Errorf("a resume that fails: %v", err)
		}
		if _, err := p.runMission(t.Context(), req, runArgs{Goal: "g"}); !errors.Is(err, a.failing) {
			t.Errorf("a beginning that fails: %v", err)
		}
	})
}

// What can be done next depends on how a mission rests, and on what there is of it.
func TestNext(t *testing.T) {
	m := func(status centurion.MissionStatus, profile, branch string) server.Mission {
		m := server.Mission{ID: "msn_1", Status: status, Branch: branch}
		m.Options.Profile = profile
		return m
	}
	merged := m(centurion.MissionCompleted, "", "b")
	merged.Merged = &centurion.Merged{}
	const merge, nothing = "the user merges the work with: centurion merge msn_1", "nothing is left to do"
	for i, c := range []struct {
		m           server.Mission
		asks, files int
		want        string
	}{
		{m(centurion.MissionRunning, "", ""), 1, 0, "an agent waits for an answer; then call mission_result again"},
		{m(centurion.MissionRunning, "", ""), 0, 1, "it continues; call mission_result with wait_seconds"},
		{m(centurion.MissionCompleted, "assistant", "b"), 0, 1, "continue this conversation with send and wait_seconds"},
		{m(centurion.MissionCompleted, "", "b"), 0, 1, merge}, {m(centurion.MissionCompleted, "", "b"), 0, 0, nothing}, {m(centurion.MissionCompleted, "", ""), 0, 1, nothing}, {merged, 0, 1, nothing},
		{m(centurion.MissionCancelled, "assistant", "b"), 0, 1, nothing},
		{m(centurion.MissionBlocked, "", "b"), 1, 1, "tell it what it needs with send, which continues it"},
		{m(centurion.MissionPaused, "", "b"), 1, 1, "resume continues it; the user raises a limit with: centurion resume msn_1"},
	} {
		if got := next(c.m, c.asks, c.files); got != c.want {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
	for seconds, want := range map[int]time.Duration{-1: 0, 0: 0, 5: 5 * time.Second, 3600: time.Hour, 4000: time.Hour} {
		if got := (wait{seconds}).limit(); got != want {
			t.Errorf("%d s are %v", seconds, got)
		}
	}
}

// The result of a mission is all that is known of it; of its asks only its own, and a change that cannot be read is an error.
func TestResultWhole(t *testing.T) {
	a := newActing(centurion.MissionCompleted)
	a.open = []store.Ask{{ID: "que_1", Mission: "msn_1", Type: store.AskQuestion, Text: "?"}, {ID: "que_2", Mission: "msn_2", Type: store.AskQuestion}}
	a.diff = takeover.Change{Files: []centurion.FileChange{{Path: "a.go", Status: "M", Added: 1, Deleted: 2}}}
	m := &a.mission
	m.Goal, m.Summary, m.Reason, m.Branch, m.Asks, m.USD, m.Unpriced, m.DurationMS = strings.Repeat("x", 201), "It is made.", "r", "b", 2, 0.5, true, 61_999
	m.Tokens = centurion.Tokens{Input: 1000}
	r, err := a.project().result(t.Context(), "msn_1")
	verdict := m.Status.Word(m.Evidence, "")
	evidence, _ := json.Marshal(m.Evidence.Words())
	files, _ := json.Marshal(a.diff.Files)
	plan, _ := a.plan(t.Context(), "")
	open, _ := json.Marshal(plan[1:])
	want := `{"mission":{"id":"msn_1","goal":"` + centurion.Clip(m.Goal, 200) + `","status":"completed","verdict":"` + verdict + `","reason":"r","items_done":1,"items":2,"open_questions":2,"tokens":1000,"cost_usd":0.5,"cost_known":false,"seconds":61,"branch":"b"},` +
		`"summary":"It is made.","evidence":` + string(evidence) + `,"checks":[{"item":"T1","command":"make","passed":true,"proof":"proven"}],"changed_files":` + string(files) + `,"open_items":` + string(open) +
		`,"questions":[{"id":"que_1","type":"question","mission":"msn_1","text":"?","options":[],"answer_with":"a text"}],"next":"the user merges the work with: centurion merge msn_1"}`
	if got := outcome(r, err); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := r.Mission.line(), verdict+" · 1 of 2 items done · 2 open questions · 1k tokens · $?"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	a.mission.Options.Profile = agents.ProfileAssistant
	if r, err := a.project().result(t.Context(), "msn_1"); err != nil || r.Evidence != "" {
		t.Errorf("an answer proves %q, %v", r.Evidence, err)
	}
	a.diffErr = &centurion.Error{Kind: centurion.KindDisk, Msg: "broken"}
	if _, err := a.project().result(t.Context(), "msn_1"); centurion.KindOf(err) != centurion.KindDisk {
		t.Errorf("a change that cannot be read: %v", err)
	}
	a.mission.Status = centurion.MissionRunning
	if r, err := a.project().result(t.Context(), "msn_1"); err != nil || len(r.Files) != 0 {
		t.Errorf("while it runs: %+v, %v", r, err)
	}
	if l, err := a.project().listMissions(t.Context(), nil, struct{}{}); err != nil || len(l.Missions) != 20 || l.More != 2 {
		t.Errorf("%d missions and %d more, %v", len(l.Missions), l.More, err)
	}
	if got := checks([]centurion.Receipt{{Command: "a", Error: "e"}, {Item: "T1", Command: "a", Why: "w", Error: "e"}, {Command: "b"}}); fmt.Sprint(got) != "[{ a false  e} {T1 a false  w} { b false  }]" {
		t.Errorf("checks: %v", got)
	}
}
