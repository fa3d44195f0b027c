package agent

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/budget"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/state"
	"centurion/recovery"
	"centurion/session"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/workspace"
)

// seen is the surroundings of a conversation: whether its model has seen its status.
type seen struct {
	Around
	n int
}

func (s *seen) Seen()                                             { s.n++ }
func (s *seen) News(context.Context) ([]centurion.Message, error) { return nil, nil }

// conversationOf is the loaded conversation of a mission's own agent or of a task in its first attempt.
func conversationOf(t *testing.T, m centurion.Mission, task *centurion.Task) *Conversation {
	t.Helper()
	st := storetest.Open(t)
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	m.ID, m.Session, m.Status = "msn_1", "ses_0", centurion.MissionRunning
	model := &centurion.SessionModel{Provider: "p", ID: "own"}
	rec := centurion.Session{ID: "ses_0", Agent: "commander", Model: model, Metadata: centurion.SessionMeta{Mission: m.ID, Address: "0/"}}
	ctx, end := context.WithCancelCause(t.Context())
	t.Cleanup(func() { end(nil) })
	sts := state.New(ctx, end, st, m, agents.Default())
	var run *state.Run
	err = st.Update(ctx, func(tx *store.Tx) error {
		err := errors.Join(tx.PutMission(&m), tx.PutSession(&rec))
		if task != nil {
			task.ID, task.Mission, task.Parent, task.Session, task.Attempt, task.Status = "tsk_1", m.ID, rec.ID, "ses_1", 1, centurion.TaskRunning
			child := centurion.Session{ID: "ses_1", ParentID: "ses_0", Agent: "worker", Model: model, Metadata: centurion.SessionMeta{Mission: m.ID, Task: task.ID, Attempt: 1, Address: "0/1"}}
			err = errors.Join(err, tx.PutTask(task), tx.PutSession(&child))
			rec = child
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	reserves := budget.New(m, nil)
	reserves.Open(m.ID)
	if task != nil {
		run = &state.Run{ID: task.ID, Attempt: 1, Name: task.Name(), Agent: "worker", Ctx: ctx, Cancel: func(error) {}, Done: make(chan struct{})}
		run.Now.Store(task)
		run.Account, run.Covered = reserves.Spawn(*task, budget.Amount{})
		sts.Fences.Raise(task.ID, 1)
	}
	models := Models{Model: func(name string) (Model, error) {
		provider, id, _ := strings.Cut(name, "/")
		if id == "gone" {
			return Model{}, errors.New("it is gone")
		}
		return Model{Ref: centurion.ModelRef{Provider: provider, ID: id}}, nil
	}, Fallback: func(string, string) []string { return []string{"p/own", "p/gone", "p/next", "p/last"} }}
	all := New(sts, isolation.New(sts, isolation.NewProject(st, ws, nil, nil), nil), nil, nil, reserves, Config{Models: models}, Above{})
	c, err := all.New(ctx, rec, agents.Agent{Name: rec.Agent, Delegates: []string{"worker"}}, run)
	if err == nil {
		c.around = &seen{}
		err = c.Load(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// in runs f in a transaction of a conversation's mission.
func in(t *testing.T, c *Conversation, f func(tx *store.Tx) error) {
	t.Helper()
	if err := c.m.st.Store.Update(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// rows returns a conversation's mission, session and task as they are stored.
func rows(t *testing.T, c *Conversation) (m centurion.Mission, s centurion.Session, task centurion.Task) {
	t.Helper()
	errs := make([]error, 3)
	m, errs[0] = c.m.st.Store.Mission(t.Context(), "msn_1")
	s, errs[1] = c.m.st.Store.Session(t.Context(), c.id)
	if c.Task != nil {
		task, errs[2] = c.m.st.Store.Task(t.Context(), "tsk_1")
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return m, s, task
}

// told lists the events of a kind with their data.
func told(t *testing.T, c *Conversation, types ...centurion.EventType) string {
	t.Helper()
	events, err := c.m.st.Store.Events(t.Context(), store.EventQuery{Types: types})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range events {
		all = append(all, fmt.Sprint(e.Type, " ", e.Session, " ", e.Task, " ", string(e.Data)))
	}
	return strings.Join(all, "\n")
}

// What an answer cost is the mission's and the task's, once, with the time that was worked; and only an answer has shown the status.
func TestSpent(t *testing.T) {
	t.Parallel()
	u := centurion.Usage{USD: 0.5, Tokens: centurion.Tokens{Input: 3, Output: 4}}
	was := centurion.Usage{USD: 1, Tokens: centurion.Tokens{Input: 10}}
	for _, task := range []*centurion.Task{nil, {Usage: was, Rounds: 2}} {
		c := conversationOf(t, centurion.Mission{Usage: was, Rounds: 7, ElapsedMS: 1000, Reserved: centurion.Reserved{USD: 9}}, task)
		in(t, c, func(tx *store.Tx) error { return host{c}.Spent(tx, u) })
		m, _, now := rows(t, c)
		if m.Usage != was.Plus(u) || m.Rounds != 8 || m.ElapsedMS < 1000 || m.Updated.IsZero() || m.Reserved.USD != 0 || !reflect.DeepEqual(c.m.st.Spent.Load().Usage, m.Usage) || c.around.(*seen).n != 1 {
			t.Errorf("the mission: %+v, seen %d", m, c.around.(*seen).n)
		}
		if task != nil && (now.Usage != was.Plus(u) || now.Rounds != 3 || c.Task.Now.Load().Usage != now.Usage) {
			t.Errorf("the task: %+v", now)
		}
		in(t, c, func(tx *store.Tx) error { return host{c}.Spent(tx, centurion.Usage{}) })
		if m, _, _ := rows(t, c); m.Rounds != 9 || c.around.(*seen).n != 1 {
			t.Errorf("a failed request: %+v, seen %d", m, c.around.(*seen).n)
		}
	}
}

// As many calls of an answer run as the limits of the mission and of the task leave, and those count.
func TestCallsBegun(t *testing.T) {
	t.Parallel()
	const ofMission, ofTask = "the mission's limit of 5 tool calls is reached. Call it again when it has been raised.", "the task's own budget of 4 tool calls is used up."
	for name, c := range map[string]struct {
		most, had       int // of the mission
		own, ownHad     int // of the task, if it has a budget
		task            bool
		n, may          int
		why             string
		refused, ofTask bool
	}{
		"no limit":        {n: 3, may: 3},
		"left":            {most: 5, had: 2, n: 3, may: 3},
		"some left":       {most: 5, had: 4, n: 3, may: 1, why: ofMission},
		"none left":       {most: 5, had: 7, n: 3, may: 0, why: ofMission},
		"a task":          {had: 2, task: true, ownHad: 1, n: 3, may: 3},
		"a task's own":    {had: 2, task: true, own: 4, ownHad: 2, n: 3, may: 2, why: ofTask, refused: true},
		"a task's rest":   {task: true, own: 4, ownHad: 1, n: 3, may: 3},
		"a task's end":    {task: true, own: 4, ownHad: 6, n: 3, may: 0, why: ofTask, refused: true},
		"both, the less":  {most: 5, had: 4, task: true, own: 4, ownHad: 2, n: 3, may: 1, why: ofMission},
		"both, its own":   {most: 5, had: 3, task: true, own: 4, ownHad: 3, n: 3, may: 1, why: ofTask, refused: true},
		"an answer alone": {most: 5, had: 5, n: 0, may: 0},
	} {
		var task *centurion.Task
		if c.task {
			task = &centurion.Task{ToolCalls: c.ownHad, Budget: centurion.TaskBudget{ToolCalls: c.own}}
		}
		cv := conversationOf(t, centurion.Mission{ToolCalls: c.had, Options: centurion.MissionOptions{MaxToolCalls: c.most}}, task)
		var may int
		var why string
		in(t, cv, func(tx *store.Tx) (err error) { may, why, err = host{cv}.begun(tx, c.n); return err })
		m, _, now := rows(t, cv)
		if may != c.may || why != c.why || m.ToolCalls != c.had+c.may || cv.m.st.Spent.Load().ToolCalls != m.ToolCalls {
			t.Errorf("%s: %d may run, %q; the mission has %d", name, may, why, m.ToolCalls)
		}
		if c.task && (now.ToolCalls != c.ownHad+c.may || cv.Task.Refused.Load() != c.refused || cv.Task.Now.Load().ToolCalls != now.ToolCalls) {
			t.Errorf("%s: the task has %d, refused %t", name, now.ToolCalls, cv.Task.Refused.Load())
		}
		if _, err := (host{cv}).Before(t.Context()); c.refused != (centurion.KindOf(err) == centurion.KindBudget && strings.Contains(err.Error(), "own budget of 4 tool calls")) {
			t.Errorf("%s: the next request: %v", name, err)
		}
	}
}

// A result that a call has shown is taken from the session that called, and no other.
func TestConsume(t *testing.T) {
	t.Parallel()
	c := conversationOf(t, centurion.Mission{}, nil)
	in(t, c, func(tx *store.Tx) error {
		var all error
		for i, d := range []store.Delivery{{Task: "tsk_a", Session: "ses_0"}, {Task: "tsk_b", Session: "ses_0"}, {Task: "tsk_a", Session: "ses_9"}, {Session: "ses_0"}, {Task: "tsk_c", Session: "ses_0"}} {
			d.ID, d.Mission = fmt.Sprint("del_", i), "msn_1"
			all = errors.Join(all, tx.PutDelivery(&d))
		}
		for _, id := range []string{"tsk_a", "tsk_b", "tsk_c"} {
			all = errors.Join(all, tx.PutTask(&centurion.Task{ID: id, Mission: "msn_1"}))
		}
		return errors.Join(all, host{c}.Consume(tx, "msg_9", []string{"tsk_a", "tsk_c", "tsk_x"}))
	})
	all, err := c.m.st.Store.Deliveries(t.Context(), "msn_1")
	var taken []string
	for _, d := range all {
		if !d.Taken.IsZero() {
			taken = append(taken, d.ID+" "+d.Message)
		}
	}
	if got := strings.Join(taken, ", "); got != "del_0 msg_9, del_4 msg_9" || err != nil || strings.Count(told(t, c, centurion.EventTaskDelivered), "\n") != 1 {
		t.Errorf("%s, %v, told %s", got, err, told(t, c, centurion.EventTaskDelivered))
	}
}

// What a conversation writes is its task's, each file once; of the mission's own agent it is only known that it has written.
func TestChangedFiles(t *testing.T) {
	t.Parallel()
	c := conversationOf(t, centurion.Mission{}, &centurion.Task{Files: []string{"b"}})
	in(t, c, func(tx *store.Tx) error { return host{c}.changed(tx, []string{"c", "b", "a"}) })
	if _, _, task := rows(t, c); strings.Join(task.Files, " ") != "a b c" || c.m.iso.Wrote.Load() {
		t.Errorf("%s, wrote %t", task.Files, c.m.iso.Wrote.Load())
	}
	c = conversationOf(t, centurion.Mission{}, nil)
	in(t, c, func(tx *store.Tx) error { return host{c}.changed(tx, []string{"a"}) })
	if !c.m.iso.Wrote.Load() {
		t.Error("its own agent has written nothing")
	}
}

// A failed turn waits as long as is decided; what it waits for is recorded and told before, and a host that comes later waits for the rest alone.
func TestFailedTurnWaits(t *testing.T) {
	t.Parallel()
	cut := &centurion.Error{Kind: centurion.KindStreamCut, Msg: "cut"}
	d := recovery.Decision{Action: recovery.Retry, Wait: 90 * time.Second, Reason: "cut off"}
	for name, task := range map[string]*centurion.Task{"its own agent": nil, "a task": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := conversationOf(t, centurion.Mission{}, task)
				c.failures.streak, c.failures.failed = recovery.Streak{Attempts: 2, RateLimits: 1}, []string{"p/x"}
				began := time.Now()
				woken := c.m.st.Change()
				if err := c.failures.pause(t.Context(), d, cut); err != nil || time.Since(began) != 90*time.Second {
					t.Errorf("it waited %s, %v", time.Since(began), err)
				}
				_, rec, now := rows(t, c)
				want := centurion.Retry{At: rec.Metadata.Retry.At, WaitMS: 90_000, Reason: "cut off", Attempts: 2, RateLimits: 1, Failed: []string{"p/x"}}
				if !reflect.DeepEqual(*rec.Metadata.Retry, want) || rec.Metadata.Retry.At.Sub(began).Round(time.Second) != 90*time.Second || !isClosed(woken) {
					t.Errorf("%+v", *rec.Metadata.Retry)
				}
				typ, from := centurion.EventProviderRetry, "ses_0 "
				if task != nil {
					typ, from = centurion.EventTaskRetrying, "ses_1 tsk_1"
				}
				if got, want := told(t, c, centurion.EventProviderRetry, centurion.EventTaskRetrying), string(typ)+" "+from+` {"attempt":2,"wait_ms":90000,"reason":"cut off","error":"cut"}`; got != want {
					t.Errorf("told %s, want %s", got, want)
				}
				if task != nil && now.Status != centurion.TaskRunning {
					t.Errorf("the task is %s", now.Status)
				}
				later := centurion.Retry{At: centurion.Time{Time: time.Now().Add(time.Minute)}, WaitMS: 90_000, Reason: "limit", Attempts: 3, RateLimits: 2, Failed: []string{"p/y"}}
				c.failures.restore(&later)
				began = time.Now()
				over := make(chan error, 1)
				time.AfterFunc(30*time.Second, func() {
					if _, _, now := rows(t, c); task != nil && (now.Status != centurion.TaskWaiting || now.Reason != "retry in 1m: limit") {
						t.Errorf("while it waits, the task is %s: %s", now.Status, now.Reason)
					}
					over <- nil
				})
				if err := c.failures.waitOut(t.Context()); err != nil || time.Since(began) != time.Minute || c.failures.streak.Attempts != 3 || c.failures.streak.RateLimits != 2 || strings.Join(c.failures.failed, " ") != "p/y" {
					t.Errorf("the rest took %s, %v; %+v", time.Since(began), err, c.failures.streak)
				}
				<-over
				if err := c.failures.waitOut(t.Context()); err != nil || time.Since(began) != time.Minute {
					t.Errorf("it waited twice: %s, %v", time.Since(began), err)
				}
				c.m.st.Fences.Raise("tsk_1", 2)
				_, was, _ := rows(t, c)
				if err := c.failures.pause(t.Context(), recovery.Decision{Wait: time.Hour}, cut); task != nil {
					if _, now, _ := rows(t, c); !errors.Is(err, state.ErrSuperseded) || !reflect.DeepEqual(now, was) {
						t.Errorf("a superseded attempt waits: %v, %+v", err, now.Metadata.Retry)
					}
				}
			})
		})
	}
}

// A session that goes on with another model says so and remembers which it gave up; a superseded one changes nothing.
func TestFallBack(t *testing.T) {
	t.Parallel()
	cut := &centurion.Error{Kind: centurion.KindStreamCut, Msg: "cut"}
	c := conversationOf(t, centurion.Mission{}, &centurion.Task{})
	f := &c.failures
	if got := strings.Join(f.fallbacks(), " "); got != "p/next p/last" {
		t.Errorf("it may go on with %s", got)
	}
	f.streak, f.failed = recovery.Streak{Attempts: 3}, []string{"p/before"}
	if err := f.fallBack(t.Context(), recovery.Decision{Model: "p/next", Kind: centurion.KindStreamCut, Reason: "why"}, cut); err != nil {
		t.Fatal(err)
	}
	_, rec, _ := rows(t, c)
	if *rec.Model != (centurion.SessionModel{Provider: "p", ID: "next"}) || rec.Own().String() != "p/own" || strings.Join(rec.Metadata.Retry.Failed, " ") != "p/before p/own" || rec.Metadata.Retry.Attempts != 0 ||
		f.streak != (recovery.Streak{}) || strings.Join(f.failed, " ") != "p/before p/own" || c.cfg.Ref.ID != "next" || strings.Join(f.fallbacks(), " ") != "p/last" {
		t.Errorf("%+v, %+v; %+v, then %s", rec.Model, rec.Metadata.Retry, f.streak, f.fallbacks())
	}
	if got := told(t, c, centurion.EventSessionModel); got != string(centurion.EventSessionModel)+` ses_1 tsk_1 {"agent":"worker","from":"p/own","to":"p/next","kind":"stream_cut","reason":"why","error":"cut"}` {
		t.Errorf("told %s", got)
	}
	c.m.st.Fences.Raise("tsk_1", 2)
	if err := f.fallBack(t.Context(), recovery.Decision{Model: "p/last"}, cut); !errors.Is(err, state.ErrSuperseded) || c.cfg.Ref.ID != "next" || strings.Count(told(t, c, centurion.EventSessionModel), "\n") > 0 {
		t.Errorf("a superseded attempt: %v with %s", err, c.cfg.Ref)
	}
}

// What cannot be recovered is told with its reason, once; the next turn begins without what was counted.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	cut := &centurion.Error{Kind: centurion.KindStreamCut, Msg: "cut"}
	for name, test := range map[string]struct {
		d     recovery.Decision
		want  string
		asks  bool
		stale bool
	}{
		"it fails":       {recovery.Decision{Action: recovery.GiveUp, Kind: centurion.KindStall, Hint: "h", Reason: "why"}, "stall: cut | h", false, false},
		"a person":       {recovery.Decision{Action: recovery.AskPerson, Kind: centurion.KindAuth, Hint: "h", Reason: "why"}, "auth: why: cut | h", true, false},
		"said already":   {recovery.Decision{Action: recovery.AskPerson, Kind: centurion.KindAuth, Hint: "h", Reason: "it was cut"}, "auth: it was cut | h", true, false},
		"it is no more":  {recovery.Decision{Action: recovery.GiveUp, Kind: centurion.KindStall}, "", false, true},
		"nor is a limit": {recovery.Decision{Action: recovery.AskPerson, Kind: centurion.KindAuth}, "", false, true},
	} {
		c := conversationOf(t, centurion.Mission{}, &centurion.Task{})
		in(t, c, func(tx *store.Tx) error { return c.Sess.PutRetry(tx, centurion.Retry{Attempts: 3}) })
		c.failures.streak, c.failures.failed = recovery.Streak{Attempts: 3}, []string{"p/x"}
		if test.stale {
			c.m.st.Fences.Raise("tsk_1", 2)
		}
		err := c.failures.giveUp(t.Context(), test.d, cut)
		_, rec, _ := rows(t, c)
		_, asks := errors.AsType[*AskError](err)
		got := string(centurion.KindOf(err)) + ": " + err.Error() + " | " + centurion.HintOf(err)
		if test.stale && !errors.Is(err, state.ErrSuperseded) || !test.stale && got != test.want || asks != test.asks || (rec.Metadata.Retry == nil) == test.stale || c.failures.streak.Attempts != 0 || c.failures.failed != nil {
			t.Errorf("%s: %s, asks %t, %+v", name, got, asks, rec.Metadata.Retry)
		}
	}
}

// Whoever makes no headway is helped by the person, by who delegated its task, or reports it as a sub-agent.
func TestNoHeadway(t *testing.T) {
	t.Parallel()
	stuck := &session.StuckError{}
	c := conversationOf(t, centurion.Mission{}, nil)
	if b, ok := errors.AsType[*state.Blocked](c.failures.noHeadway(stuck)); !ok || !strings.HasPrefix(b.Question, "The commander ") || !strings.HasSuffix(b.Question, ". What should it do?") {
		t.Errorf("%+v", b)
	}
	c = conversationOf(t, centurion.Mission{}, &centurion.Task{})
	if s, ok := errors.AsType[*StuckError](c.failures.noHeadway(stuck)); !ok || s.Err.Kind != centurion.KindTimeout || s.Err.Hint == "" {
		t.Errorf("%+v", s)
	}
	in(t, c, func(tx *store.Tx) error {
		rec, err := tx.Session("ses_1")
		rec.Metadata.Tools = []string{"read"}
		return errors.Join(err, tx.PutSession(&rec))
	})
	if err := errors.Join(c.Load(t.Context())); err != nil || c.failures.noHeadway(stuck) != error(stuck) {
		t.Errorf("a sub-agent: %v, %v", c.failures.noHeadway(stuck), err)
	}
}

// Who is stopped while it waits for a part of the budget waits for it no more: else it would count as waiting in its next turn, and others who
// wait for what it will give back would be told that the limit is reached.
func TestStoppedWaitForBudget(t *testing.T) {
	t.Parallel()
	for name, task := range map[string]*centurion.Task{"its own agent": nil, "a task": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := conversationOf(t, centurion.Mission{Options: centurion.MissionOptions{MaxTokens: 10_000}}, task)
				other, _ := c.m.reserves.Spawn(centurion.Task{ID: "tsk_2"}, budget.Amount{})
				if _, err := c.m.reserves.Request(t.Context(), other, budget.Need{Input: 8000, MaxOut: 1000}, nil); err != nil {
					t.Fatal(err)
				}
				c.m.reserves.Wake(other)
				c.m.reserves.Wake(c.account)
				before := c.m.reserves.State().Resting
				turn, over := c.Live.begin(t.Context())
				defer over()
				time.AfterFunc(time.Minute, func() {
					if w, now := c.Live.Standing().Waits, c.m.reserves.State(); w != WaitBudget || now.Resting != before+1 {
						t.Errorf("it waits for %q, %+v", w, now)
					}
					c.Live.Abort(Aborted("enough"))
				})
				_, err := host{c}.reserve(turn, session.Need{Input: 5000, MaxOut: 1000})
				if w, now := c.Live.Standing().Waits, c.m.reserves.State(); AbortedIn(t.Context(), err) == nil || w != "" || now.Resting != before || now.Waiting != 0 {
					t.Errorf("%v; it waits for %q, %+v", err, w, now)
				}
			})
		})
	}
}

// A stop by a person is recorded and told once, and a conversation that begins a turn again stands no more.
func TestStands(t *testing.T) {
	t.Parallel()
	c := conversationOf(t, centurion.Mission{}, nil)
	c.Live.Abort(Aborted("enough"))
	for range 2 {
		if stands, err := c.TakeUp(t.Context(), "go on"); !stands || err != nil {
			t.Fatalf("%t, %v", stands, err)
		}
	}
	if _, rec, _ := rows(t, c); rec.Metadata.Aborted != "enough" || told(t, c, centurion.EventSessionAborted) != string(centurion.EventSessionAborted)+` ses_0  {"reason":"enough"}` || c.Live.Standing().Reason != "enough" || c.Live.Standing().Waits != WaitPerson {
		t.Errorf("%q, told %s, %+v", rec.Metadata.Aborted, told(t, c, centurion.EventSessionAborted), c.Live.Standing())
	}
	c.Live.Proceed()
	if stands, err := c.TakeUp(t.Context(), "go on"); !stands || err != nil || c.Heard != 1 {
		t.Errorf("resumed: %t, heard %d, %v", stands, c.Heard, err)
	}
	if _, err := c.TakeUp(t.Context(), "go on"); err != nil || c.Heard != 1 {
		t.Errorf("resumed twice: %d, %v", c.Heard, err)
	}
	if text, _ := c.m.st.Store.Messages(t.Context(), "ses_0"); len(text) != 1 || text[0].Text() != "go on" {
		t.Errorf("%+v", text)
	}
	other := conversationOf(t, centurion.Mission{}, nil)
	if other.StoppedBefore() {
		t.Error("it was stopped before")
	}
	if !c.StoppedBefore() || c.StandsSince().Why() != "enough" {
		t.Error("the stop is forgotten")
	}
	if err := c.goesOn(t.Context()); err != nil || c.StandsSince() != nil {
		t.Errorf("%v, %+v", err, c.StandsSince())
	}
	if _, rec, _ := rows(t, c); rec.Metadata.Aborted != "" {
		t.Errorf("it stands as %q", rec.Metadata.Aborted)
	}
}
