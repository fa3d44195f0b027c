package state

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
	"centurion/guard"
	"centurion/store"
	"centurion/tools"
)

// message is one of a session, with a text and a tool call in a state, "" for none.
func message(tx *store.Tx, id, session string, role centurion.Role, text string, call centurion.ToolStatus, change func(*centurion.Message)) error {
	m := centurion.Message{ID: id, SessionID: session, Role: role, Parts: []centurion.Part{{ID: "prt_" + id, MessageID: id, SessionID: session, Type: centurion.PartText, Text: text}}}
	if call != "" {
		m.Parts = append(m.Parts, centurion.Part{ID: "prt_call_" + id, MessageID: id, SessionID: session, Type: centurion.PartTool, Tool: "read", State: &centurion.ToolState{Status: call}})
	}
	if change != nil {
		change(&m)
	}
	if err := tx.PutMessage(&m); err != nil {
		return err
	}
	for _, p := range m.Parts {
		if err := tx.PutPart(&p); err != nil {
			return err
		}
	}
	return nil
}

// What a session said last is its newest text that is neither a summary nor cut off; what it was shown is what it still has.
func TestWordsOfASession(t *testing.T) {
	m := running(t, func(tx *store.Tx) error {
		for _, s := range []string{"ses_1", "ses_2"} {
			if err := tx.PutSession(&centurion.Session{ID: s, Metadata: centurion.SessionMeta{Mission: "msn_1", Task: "tsk_1"}}); err != nil {
				return err
			}
		}
		if err := tx.PutTask(&centurion.Task{ID: "tsk_1", Mission: "msn_1", Session: "ses_1", Status: centurion.TaskRunning}); err != nil {
			return err
		}
		user, assistant := centurion.RoleUser, centurion.RoleAssistant
		return errors.Join(
			message(tx, "msg_1", "ses_1", user, "old words", "", nil),
			message(tx, "msg_2", "ses_1", assistant, "a summary", "", func(m *centurion.Message) { m.Summary = true }),
			message(tx, "msg_3", "ses_1", user, "shown words", "", nil),
			message(tx, "msg_4", "ses_1", assistant, "the answer", centurion.ToolError, nil),
			message(tx, "msg_5", "ses_1", user, "more", "", nil),
			message(tx, "msg_6", "ses_1", assistant, "", centurion.ToolRunning, nil),
			message(tx, "msg_7", "ses_1", assistant, "cut off", "", func(m *centurion.Message) { m.Finish = centurion.FinishError }),
			message(tx, "msg_8", "ses_2", assistant, "looked", centurion.ToolCompleted, nil))
	})
	if got, err := m.LastText(t.Context(), "ses_1"); err != nil || got != "the answer" {
		t.Errorf("the last text: %q, %v", got, err)
	}
	for text, want := range map[string]bool{"shown words": true, "words": true, "more": true, "old words": false, "the answer": false, "never": false} {
		if got := m.Shown(t.Context(), "tsk_1", text); got != want {
			t.Errorf("shown %q: %v", text, got)
		}
	}
	if m.Shown(t.Context(), "tsk_9", "shown words") {
		t.Error("a task that is not there was shown something")
	}
	for _, c := range []struct {
		task centurion.Task
		want string
	}{{centurion.Task{Session: "ses_1", Result: "result"}, "result"}, {centurion.Task{}, ""}, {centurion.Task{Session: "ses_2"}, "looked"}, {centurion.Task{Session: "ses_9"}, ""}} {
		if got, err := m.SaidOf(t.Context(), c.task); err != nil || got != c.want {
			t.Errorf("said of %+v: %q, %v", c.task, got, err)
		}
	}
	saw := func(when string, want map[string]bool) {
		t.Helper()
		for session, nothing := range want {
			if got, err := m.SawNothing(t.Context(), session); err != nil || got != nothing {
				t.Errorf("%s, %s saw nothing: %v, %v", when, session, got, err)
			}
		}
	}
	receipt := func(id string, passed bool) {
		t.Helper()
		if err := m.Store.Update(t.Context(), func(tx *store.Tx) error {
			return tx.PutReceipt(&centurion.Receipt{ID: id, Mission: "msn_1", Passed: passed})
		}); err != nil {
			t.Fatal(err)
		}
	}
	receipt("rcp_1", false)
	saw("without a check that passed", map[string]bool{"ses_1": true, "ses_2": false})
	receipt("rcp_2", true)
	saw("with one", map[string]bool{"ses_1": false, "ses_2": false})
}

// Long texts are shortened to their first lines, or to their last.
func TestLinesOfAText(t *testing.T) {
	for _, c := range []struct {
		got, want string
	}{
		{FirstLines("  one\ntwo \nthree\n", 2, 100), "one\ntwo"}, {FirstLines("one", 2, 100), "one"}, {FirstLines("\n\none\ntwo", 1, 100), "one"},
		{FirstLines(strings.Repeat("x", 50), 1, 10), centurion.Clip(strings.Repeat("x", 50), 10)},
		{LastLine("one\n  two  \n\n"), "two"}, {LastLine("one"), "one"}, {LastLine(""), ""},
		{LastLine("a\n" + strings.Repeat("x", 400)), centurion.Clip(strings.Repeat("x", 400), 300)},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// A review is one of a reviewer that completed it; a PASS of what was not looked at, or of nothing, does not count.
func TestRulings(t *testing.T) {
	for _, c := range []struct {
		task                        centurion.Task
		approves, rejects, nothings bool
	}{
		{centurion.Task{Agent: "reviewer", Status: centurion.TaskCompleted, Result: "PASS"}, true, false, false},
		{centurion.Task{Agent: "reviewer", Status: centurion.TaskCompleted, Result: "FAIL: no"}, false, true, false},
		{centurion.Task{Agent: "reviewer", Status: centurion.TaskCompleted, Result: "hm"}, false, false, true},
		{centurion.Task{Agent: "reviewer", Status: centurion.TaskFailed, Result: "PASS"}, false, false, false},
		{centurion.Task{Agent: "worker", Status: centurion.TaskCompleted, Result: "PASS"}, false, false, false},
		{centurion.Task{Agent: "reviewer", Status: centurion.TaskCompleted, Result: "PASS", Unchanged: true}, false, false, false},
		{centurion.Task{Agent: "reviewer", Status: centurion.TaskCompleted, Result: "PASS", Reason: SawNothing}, false, false, false},
		{centurion.Task{Agent: "reviewer", Status: centurion.TaskCompleted, Result: "PASS", Reason: NoVerdict}, true, false, false},
	} {
		x := c.task
		if a, r, n := Approves(x), Rejects(x.Agent, x.Status, x.Result), JudgesNothing(x.Agent, x.Status, x.Result); a != c.approves || r != c.rejects || n != c.nothings {
			t.Errorf("%+v: approves %v, rejects %v, judges nothing %v", x, a, r, n)
		}
	}
	for _, s := range []centurion.TaskStatus{centurion.TaskQueued, centurion.TaskWaiting, centurion.TaskRunning, centurion.TaskVerifying, centurion.TaskCompleted} {
		if Waits(centurion.Task{Status: s}) != (s == centurion.TaskQueued || s == centurion.TaskWaiting) {
			t.Errorf("%s waits: %v", s, Waits(centurion.Task{Status: s}))
		}
	}
}

// Several tasks are changed in one transaction with what belongs to it, or not at all; a list that they share is not written to.
func TestChangeTasks(t *testing.T) {
	m := running(t, func(tx *store.Tx) error {
		for _, id := range []string{"tsk_1", "tsk_2"} {
			if err := tx.PutTask(&centurion.Task{ID: id, Mission: "msn_1", Status: centurion.TaskCompleted, Landed: []centurion.Landed{{Commit: "a"}}}); err != nil {
				return err
			}
		}
		return nil
	})
	all, err := m.Store.Tasks(t.Context(), "msn_1")
	if err != nil {
		t.Fatal(err)
	}
	land := func(t *centurion.Task) { t.Landed[0].Commit += "!" }
	want := func(when, landed, goal string) {
		t.Helper()
		now, err := m.Store.Tasks(t.Context(), "msn_1")
		rec, merr := m.Store.Mission(t.Context(), "msn_1")
		if err != nil || merr != nil || len(now) != 2 || rec.Goal != goal {
			t.Fatalf("%s: %+v, %v, goal %q, %v", when, now, err, rec.Goal, merr)
		}
		for _, x := range now {
			if len(x.Landed) != 1 || x.Landed[0].Commit != landed || x.Status != centurion.TaskCompleted {
				t.Errorf("%s: %+v", when, x)
			}
		}
	}
	goal := func(tx *store.Tx) error {
		_, err := m.RecordIn(tx, func(rec *centurion.Mission) { rec.Goal = "g" })
		return err
	}
	broken := errors.New("broken")
	if err := ChangeTasks(t.Context(), m.Store, all, land, func(tx *store.Tx) error { return errors.Join(goal(tx), broken) }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	want("when something else fails", "a", "")
	if err := ChangeTasks(t.Context(), m.Store, append(all[:1:1], centurion.Task{ID: "tsk_2", Status: centurion.TaskRunning}), land, goal); centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("%v", err)
	}
	want("when one has another status", "a", "")
	if err := ChangeTasks(t.Context(), m.Store, all, land, goal); err != nil {
		t.Error(err)
	}
	want("changed", "a!", "g")
	if err := ChangeTasks(t.Context(), m.Store, all, land, nil); err != nil {
		t.Error(err)
	}
	want("alone", "a!!", "g")
	if all[0].Landed[0].Commit != "a" {
		t.Error("the caller's own list was written to")
	}
}

// What is taken in is told with the message that has it, and is in the history under the id that its sender gave it, once.
func TestDeliveriesAreTaken(t *testing.T) {
	rec := centurion.Session{ID: "ses_1", Agent: "worker", Metadata: centurion.SessionMeta{Mission: "msn_1"}}
	m := running(t, func(tx *store.Tx) error { return tx.PutSession(&rec) })
	one := store.Delivery{ID: centurion.NewID(centurion.PrefixMessage), Mission: "msn_1", Session: "tsk_1", Task: "tsk_1", Text: "hello", Origin: centurion.OriginPerson}
	task := centurion.Task{ID: "tsk_1", Mission: "msn_1", Title: "title", Status: centurion.TaskCompleted}
	if err := m.Store.Update(t.Context(), func(tx *store.Tx) error { return errors.Join(tx.PutDelivery(&one), Forward(tx, "tsk_1", "ses_1")) }); err != nil {
		t.Fatal(err)
	}
	all, err := m.Store.PendingDeliveries(t.Context(), "ses_1")
	if err != nil || len(all) != 1 || all[0].Text != "hello" {
		t.Fatalf("forwarded %+v, %v", all, err)
	}
	m.told(t, "taken", func(tx *store.Tx) error { return Take(tx, all[0], task, "msg_9") },
		`task.delivered of msn_1, ses_1, tsk_1: {"message":"msg_9","status":"completed","title":"title"}`)
	if all, err := m.Store.PendingDeliveries(t.Context(), "ses_1"); err != nil || len(all) != 0 {
		t.Errorf("pending when it is taken: %+v, %v", all, err)
	}
	say := func(d store.Delivery, id, text string, parts int) {
		t.Helper()
		var got centurion.Message
		if err := m.Store.Update(t.Context(), func(tx *store.Tx) (err error) { got, err = Say(tx, &rec, d); return err }); err != nil {
			t.Fatal(err)
		}
		if (got.ID == d.ID) != (id != "") || got.Text() != text || len(got.Parts) != parts || got.Origin != d.Origin {
			t.Errorf("%+v", got)
		}
	}
	say(one, "its own", "hello", 1)
	say(one, "", "hello", 1)
	one.ID, one.Files = "dlv_1", []centurion.File{{Mime: "text/plain", Name: "a.txt", URL: "data:text/plain,x"}}
	say(one, "", "hello", 2)
	const missed = "This was written to T1 (worker, \"title\"), which had ended before it could read it:\n\n"
	late := one
	late.Missed = "T1 (worker, \"title\")"
	say(late, "", missed+"hello", 3)
	one.Parts = []centurion.Part{{Type: centurion.PartText, Text: "content of a file"}, {Type: centurion.PartText, Text: "parts"}, {Type: centurion.PartFile, File: &one.Files[0]}}
	late.Parts = one.Parts // who reads it instead gets all of it
	say(one, "", "content of a file\n\nparts", 3)
	say(late, "", missed+"content of a file\n\nparts", 4)

	host, person := store.Delivery{Origin: centurion.OriginHost}, store.Delivery{Origin: centurion.OriginPerson}
	wakes, quiet, result := host, person, store.Delivery{Task: "tsk_1", Origin: centurion.OriginHost}
	wakes.Wake, quiet.NoReply = true, true
	asked := result
	asked.Origin = centurion.OriginPerson
	for i, c := range []struct {
		d          store.Delivery
		word, mail bool
	}{{host, true, false}, {wakes, false, false}, {result, false, false}, {person, false, true}, {quiet, false, false}, {asked, false, false}} {
		if IsWord(c.d) != c.word || IsMail(c.d) != c.mail {
			t.Errorf("number %d: a word %v, mail %v", i, IsWord(c.d), IsMail(c.d))
		}
	}
	if a, b := ReceiverOf(centurion.Task{ID: "tsk_1", Session: "ses_1"}), ReceiverOf(centurion.Task{ID: "tsk_1"}); a != "ses_1" || b != "tsk_1" {
		t.Errorf("receivers %s, %s", a, b)
	}
}

// Why something ended, as its callers tell it from other ends.
func TestCausesOfAnEnd(t *testing.T) {
	broken := errors.New("broken")
	for cause, want := range map[error]error{nil: centurion.ErrShutdown, broken: broken, centurion.ErrHandover: centurion.ErrHandover} {
		ctx, end := context.WithCancelCause(t.Context())
		if CauseOf(ctx) != nil || HandedOver(ctx) {
			t.Error("it has not ended")
		}
		if end(cause); CauseOf(ctx) != want || HandedOver(ctx) != (cause == centurion.ErrHandover) {
			t.Errorf("%v: %v", cause, CauseOf(ctx))
		}
	}
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if <-late.Done(); CauseOf(late) != error(centurion.ErrShutdown) {
		t.Errorf("too late: %v", CauseOf(late))
	}
	for _, c := range []struct {
		err  error
		want bool
	}{{nil, false}, {broken, false}, {fmt.Errorf("in it: %w", &guard.PanicError{}), true}, {&centurion.Error{Kind: centurion.KindCrashed}, true}} {
		if Crashed(c.err) != c.want {
			t.Errorf("%v has crashed: %v", c.err, !c.want)
		}
	}
	for cause, later := range map[error]bool{broken: true, centurion.ErrShutdown: true, &centurion.Error{Kind: centurion.KindCancelled}: false} {
		ctx, end := context.WithCancelCause(t.Context())
		m := New(ctx, end, nil, centurion.Mission{}, nil)
		if m.Later(broken) != broken {
			t.Error("it comes later while the mission runs")
		}
		m.End(cause)
		if err := m.Later(broken); !errors.Is(err, broken) || errors.Is(err, tools.ErrLater) != later || m.Later(nil) != nil {
			t.Errorf("%v: %v", cause, err)
		}
	}
	archived := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	gone := centurion.Session{ID: "ses_1"}
	gone.Time.Archived = archived.UnixMilli()
	err := Dropped(gone)
	if want := (&centurion.Error{Op: "open session ses_1", Kind: centurion.KindNotFound, Msg: "the session was dropped at 2026-01-02 03:04:05, some time after its task had ended",
		Hint: "delegate the work as a new task"}); !reflect.DeepEqual(err, error(want)) || Dropped(centurion.Session{}) != nil {
		t.Errorf("%+v", err)
	}
	if !Alone("assistant") || Alone("") || Alone("mission") {
		t.Error("who works alone is not only the assistant")
	}
}

// Who waits for a change hears of it, of the end of its time and of its own end; a mission is quiet when no other task runs.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancelCause(t.Context())
		m := New(ctx, end, nil, centurion.Mission{ElapsedMS: 1000}, nil)
		begun, changed := time.Now(), m.Change()
		time.AfterFunc(time.Minute, m.Notify)
		for i, c := range []struct {
			d    time.Duration
			want time.Duration // since the beginning
		}{{30 * time.Second, 30 * time.Second}, {0, time.Minute}, {time.Hour, time.Minute}} {
			if err := m.Await(ctx, changed, c.d); err != nil || time.Since(begun) != c.want {
				t.Errorf("wait %d: %v after %v", i, err, time.Since(begun))
			}
		}
		if m.Change() == changed || m.Elapsed() != 61_000 {
			t.Errorf("worked %d ms", m.Elapsed())
		}
		broken := errors.New("broken")
		time.AfterFunc(time.Minute, func() { m.End(broken) })
		if err := m.Await(ctx, m.Change(), 0); err != broken {
			t.Errorf("when it ends: %v", err)
		}
	})
	m := running(t, func(tx *store.Tx) error {
		return errors.Join(tx.PutTask(&centurion.Task{ID: "tsk_1", Mission: "msn_1", Status: centurion.TaskRunning}),
			tx.PutTask(&centurion.Task{ID: "tsk_2", Mission: "msn_1", Status: centurion.TaskQueued}))
	})
	if err := m.Quiet(t.Context(), "tsk_1"); err != nil {
		t.Errorf("but for the one that runs: %v", err)
	}
	ended, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := m.Quiet(ended, ""); err == nil {
		t.Error("it is quiet while a task runs")
	}
	var g guard.Group
	g.Go("end", func() error {
		err := m.MoveRun(t.Context(), &Run{ID: "tsk_1"}, centurion.TaskCompleted, nil)
		m.Notify()
		return err
	})
	if err := errors.Join(m.Quiet(t.Context(), ""), g.Wait()); err != nil {
		t.Error(err)
	}
}
