package state

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/store"
)

// running is a mission in a state, changed by f, on which somebody works.
func running(t *testing.T, f func(tx *store.Tx) error) *Mission {
	t.Helper()
	st := stored(t, f)
	rec, err := st.Mission(t.Context(), "msn_1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancelCause(t.Context())
	t.Cleanup(func() { end(nil) })
	return New(ctx, end, st, rec, agents.Default())
}

func nothing(*store.Tx) error { return nil }

// told asserts which events f writes, a line each.
func (m *Mission) told(t *testing.T, what string, f func(tx *store.Tx) error, want ...string) {
	t.Helper()
	before := m.Store.LastSeq()
	if err := m.Store.Update(t.Context(), f); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	m.since(t, what, before, want...)
}

func (m *Mission) since(t *testing.T, what string, before int64, want ...string) {
	t.Helper()
	var got []string
	for _, e := range eventsOf(t, m.Store) {
		if e.Seq > before {
			got = append(got, fmt.Sprintf("%s of %s, %s, %s: %s", e.Type, e.Mission, e.Session, e.Task, e.Data))
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What is asked and what is answered is told whole, of each kind in its form.
func TestAsksAreTold(t *testing.T) {
	ask := store.Ask{ID: "ask_1", Mission: "msn_1", Session: "ses_1", Task: "tsk_1", Message: "msg_1", Call: "call_1", Permission: "bash", Patterns: []string{"rm x"}, Always: []string{"rm *"},
		Title: "title", Text: "which\nway?", Options: []string{"left"}, CostLow: 1, CostHigh: 2, Deadline: centurion.MillisTime(86_400_000), Agent: "worker", Address: "w1", Line: "commander", By: "x"}
	const whole = `{"id":"ask_1","type":"%s","message":"msg_1","call":"call_1","permission":"bash","patterns":["rm x"],"always":["rm *"],"title":"title","text":"which\nway?",` +
		`"options":["left"],"cost_low":1,"cost_high":2,"deadline":"1970-01-02T00:00:00.000Z",%s"by":"%s",%s"agent":"worker","address":"w1","line":"commander"`
	const tool = `,"tool":{"messageID":"msg_1","callID":"call_1"}`
	const question = `,"sessionID":"ses_1","questions":[{"question":"which\nway?","header":"which","options":[{"label":"left","description":""}]}]` + tool
	m := running(t, nothing)
	for kind, want := range map[string][4]string{
		store.AskPermission: {"permission.asked", "permission.replied", tool, ""},
		store.AskPlan:       {"plan.asked", "plan.answered", tool, ""},
		store.AskQuestion:   {"question.asked", "question.answered", question, `,"requestID":"ask_1","answers":[["this"]]`},
	} {
		ask.Type, ask.PID, ask.Command = kind, 0, ""
		line := func(event, answer, by, process, shape string) string {
			return fmt.Sprintf("%s of msn_1, ses_1, tsk_1: "+whole+"%s}", event, kind, answer, by, process, shape)
		}
		m.told(t, kind, func(tx *store.Tx) error { return PutAsk(tx, ask) }, line(want[0], "", "x", "", want[2]))
		ask.PID, ask.Command = 5, "ls"
		m.told(t, kind+", answered", func(tx *store.Tx) error { return PutAnswer(tx, ask, "this", ByPerson) },
			line(want[1], `"answer":"this",`, "person", `"pid":5,"command":"ls",`, want[2]+want[3]))
	}
	ask = store.Ask{ID: "ask_2", Type: store.AskPermission, Mission: "msn_1"}
	m.told(t, "without a message", func(tx *store.Tx) error { return PutAsk(tx, ask) }, `permission.asked of msn_1, , : {"id":"ask_2","type":"permission"}`)
}

// A stale attempt is refused whatever it wants to write of its task, with why, and the refusal is told.
func TestStaleAttempt(t *testing.T) {
	m := running(t, func(tx *store.Tx) error {
		return tx.PutTask(&centurion.Task{ID: "tsk_1", Mission: "msn_1", Session: "ses_1", Status: centurion.TaskRunning, Attempt: 2})
	})
	m.Fences.Raise("tsk_1", 2)
	stale := &Run{ID: "tsk_1", Attempt: 1}
	changed := false
	err := m.MoveRun(t.Context(), stale, centurion.TaskCompleted, func(*centurion.Task) { changed = true })
	var e *centurion.Error
	if !errors.As(err, &e) || !errors.Is(err, ErrSuperseded) || e.Kind != centurion.KindConflict || e.Msg != "attempt 1 of task tsk_1 writes no more: attempt 2 has begun" || changed {
		t.Errorf("%+v, changed %v", err, changed)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel() // it is recorded all the same
	before := m.Store.LastSeq()
	if err := m.RecordRefusal(ended, "tsk_1", "ses_1", 1, "its end"); err != nil {
		t.Error(err)
	}
	m.since(t, "a refusal", before, `task.fenced of msn_1, ses_1, tsk_1: {"attempt":1,"refused":"its end"}`)
	if err := m.MoveRun(t.Context(), &Run{ID: "tsk_1", Attempt: 2}, centurion.TaskFailed, nil); err != nil {
		t.Error(err)
	}
	if now, err := m.Store.Task(t.Context(), "tsk_1"); err != nil || now.Status != centurion.TaskFailed {
		t.Errorf("%+v, %v", now, err)
	}
}

// The first limit that is reached ends the mission, and is the one that is reported.
func TestLimits(t *testing.T) {
	const hint = "continue with a higher limit: centurion resume --max-cost, --max-tokens, --max-duration, --max-rounds or --max-tool-calls"
	options := centurion.MissionOptions{MaxCost: 2.5, MaxTokens: 1000, MaxRounds: 7, MaxToolCalls: 9, MaxDuration: 90_000}
	for _, test := range []struct {
		name  string
		rec   centurion.Mission
		limit func(m *Mission) error
		says  string // "" if nothing is reached
		data  event.BudgetData
	}{
		{"money", centurion.Mission{Usage: centurion.Usage{USD: 2}}, func(m *Mission) error { return m.AtLimit(0) }, "the cost limit of $2.50 is reached", event.BudgetData{Limit: "max_cost", Spent: 2, Max: 2.5}},
		{"tokens", centurion.Mission{Usage: centurion.Usage{Tokens: centurion.Tokens{Input: 900, Output: 50}}}, func(m *Mission) error { return m.AtLimit(1) }, "the token limit (1000) is reached",
			event.BudgetData{Limit: "max_tokens", Spent: 950, Max: 1000}},
		{"requests", centurion.Mission{Rounds: 6}, func(m *Mission) error { return m.AtLimit(2) }, "the request limit (7) is reached", event.BudgetData{Limit: "max_rounds", Spent: 6, Max: 7}},
		{"calls", centurion.Mission{ToolCalls: 9}, (*Mission).WithinTimeAndCalls, "the limit of 9 tool calls is reached", event.BudgetData{Limit: "max_tool_calls", Spent: 9, Max: 9}},
		{"time", centurion.Mission{ElapsedMS: 90_000}, (*Mission).WithinTimeAndCalls, "the time limit of 1m30s is reached", event.BudgetData{Limit: "max_duration", Spent: 90_000, Max: 90_000}},
		{"neither", centurion.Mission{ToolCalls: 8, ElapsedMS: 1000}, (*Mission).WithinTimeAndCalls, "", event.BudgetData{}},
	} {
		ctx, end := context.WithCancelCause(t.Context())
		test.rec.Options = options
		m := New(ctx, end, nil, test.rec, nil)
		err := test.limit(m)
		if test.says == "" {
			if err != nil || ctx.Err() != nil || m.Exceeded() != nil {
				t.Errorf("%s: %v, %v", test.name, err, m.Exceeded())
			}
			end(nil)
			continue
		}
		var e *centurion.Error
		if !errors.As(err, &e) || *e != (centurion.Error{Kind: centurion.KindBudget, Msg: test.says, Hint: hint}) || context.Cause(ctx) != err {
			t.Errorf("%s: %+v, and the mission ended for %v", test.name, err, context.Cause(ctx))
		}
		_ = m.TooLong(5)
		if got := m.Exceeded(); got == nil || *got != test.data {
			t.Errorf("%s: reported as %+v", test.name, got)
		}
	}
	free := New(t.Context(), nil, nil, centurion.Mission{ToolCalls: 9, ElapsedMS: 1}, nil)
	if err := free.WithinTimeAndCalls(); err != nil {
		t.Errorf("without limits: %v", err)
	}
	err := OwnBudgetError("%d requests", 3)
	var e *centurion.Error
	if !errors.As(err, &e) || *e != (centurion.Error{Kind: centurion.KindBudget, Msg: "the task's own budget of 3 requests is used up",
		Hint: "what it has done so far is kept; delegate the rest with a higher budget, or do it another way"}) {
		t.Errorf("%+v", err)
	}
}

// Which model and agent a session has is told when it begins with another and when a message changes it.
func TestModelsAreTold(t *testing.T) {
	model := func(id string) *centurion.SessionModel { return &centurion.SessionModel{Provider: "p", ID: id} }
	rec := centurion.Session{ID: "ses_1", Agent: "worker", Model: model("other"), Metadata: centurion.SessionMeta{Mission: "msn_1", Task: "tsk_1", OwnModel: model("own")}}
	m := running(t, nothing)
	m.told(t, "it begins with another", func(tx *store.Tx) error { return BeganWith(tx, &rec, "busy") },
		`session.model of msn_1, ses_1, tsk_1: {"agent":"worker","from":"p/own","to":"p/other","kind":"rate_limit","reason":"busy"}`)
	m.told(t, "its own", func(tx *store.Tx) error { return Recast(tx, &rec, nil, "p/own") })
	m.told(t, "none", func(tx *store.Tx) error { return Recast(tx, &rec, nil, "") })
	const why = `"reason":"a message of the person names it"}`
	m.told(t, "another model", func(tx *store.Tx) error { return Recast(tx, &rec, nil, "q/a/b") },
		`session.model of msn_1, ses_1, : {"agent":"worker","from":"p/own","to":"q/a/b",`+why)
	m.told(t, "another agent and model", func(tx *store.Tx) error {
		return Recast(tx, &rec, func(s *centurion.Session) { s.Agent, s.Model = "planner", model("planned") }, "")
	}, `session.agent of msn_1, ses_1, : {"agent":"planner","from":"worker","to":"planner",`+why, `session.model of msn_1, ses_1, : {"agent":"planner","from":"q/a/b","to":"p/planned",`+why)
	now, err := m.Store.Session(t.Context(), "ses_1")
	if err != nil || now.Agent != "planner" || *now.Model != *model("planned") {
		t.Errorf("%+v, %v", now, err)
	}
	if err := m.Store.Update(t.Context(), func(tx *store.Tx) error {
		return Remodel(tx, []centurion.Session{{ID: "ses_1", Model: model("planned")}}, "p/planned", "r/new")
	}); err != nil {
		t.Error(err)
	}
	if now, err := m.Store.Session(t.Context(), "ses_1"); err != nil || *now.Model != (centurion.SessionModel{Provider: "r", ID: "new"}) {
		t.Errorf("%+v, %v", now.Model, err)
	}
}

// What happens to a mission that lives is told with all that it is, and its row is changed with it.
func TestMissionIsTold(t *testing.T) {
	m := running(t, nothing)
	const living = `mission.updated of msn_1, ses_0, : {"status":"running",%s"usage":{"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"cost":0}}`
	before := m.Store.LastSeq()
	if err := m.Tell(t.Context(), func(d *event.MissionData) { d.Agent = "commander" }); err != nil {
		t.Error(err)
	}
	m.since(t, "told", before, fmt.Sprintf(living, `"agent":"commander",`))
	m.told(t, "a note", func(tx *store.Tx) error { return m.PutNote(tx, "look") }, fmt.Sprintf(living, `"note":"look",`))
	rec, err := m.Record(t.Context(), func(rec *centurion.Mission) { rec.Branch = "b" })
	now, serr := m.Store.Mission(t.Context(), "msn_1")
	if err != nil || serr != nil || rec.Branch != "b" || now.Branch != "b" {
		t.Errorf("%+v, %v; stored %+v, %v", rec, err, now, serr)
	}
	m.told(t, "it ends", func(tx *store.Tx) error {
		_, err := MoveMission(tx, "msn_1", centurion.MissionCompleted, "why", nil)
		return err
	}, `mission.completed of msn_1, ses_0, : {"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"cost":0,"duration_ms":0,"tasks":{},`+
		`"verified":0,"unverified":0,"evidence":"none","branch":"b","reason":"why"}`)
	err = m.Store.Update(t.Context(), func(tx *store.Tx) error {
		_, err := MoveMission(tx, "msn_1", centurion.MissionPlanning, "", nil)
		return err
	})
	var e *centurion.Error
	if !errors.As(err, &e) || *e != (centurion.Error{Op: "change mission msn_1", Kind: centurion.KindConflict, Msg: "it is completed and cannot become planning"}) {
		t.Errorf("%+v", err)
	}
}
