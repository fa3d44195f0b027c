package commander

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/event"
	"centurion/loop"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/workspace/todo"
)

// A task runs until its item is marked, and waits while it is queued; its item is taken until it has ended.
func TestSortTasks(t *testing.T) {
	t.Parallel()
	task := func(id, item string, s centurion.TaskStatus) centurion.Task {
		return centurion.Task{ID: id, Item: item, Status: s}
	}
	tasks := []centurion.Task{task("a", "T1", centurion.TaskRunning), task("b", "T2", centurion.TaskQueued), task("c", "T3", centurion.TaskWaiting), task("d", "T4", centurion.TaskCompleted), task("e", "T5", centurion.TaskFailed), task("f", "", centurion.TaskRunning)}
	var f loop.Facts
	waiting, alive := sortTasks(&f, tasks, []*state.Run{{ID: "a"}, {ID: "d"}})
	var ids []string
	for _, w := range waiting {
		ids = append(ids, w.ID)
	}
	if got := fmt.Sprint(f.RunningTasks, ids, slices.Sorted(maps.Keys(alive))); got != "3 [b c] [T1 T2 T3]" {
		t.Error(got)
	}
}

// A verdict has the words, the hint and the cause of what ended the mission; a question is that alone, and what only a person can mend blocks it.
func TestVerdictIsWhole(t *testing.T) {
	t.Parallel()
	broken := &centurion.Error{Kind: centurion.KindInternal, Msg: "why", Hint: "do that"}
	cancelled := &centurion.Error{Kind: centurion.KindCancelled, Msg: "enough", Hint: "h"}
	for name, c := range map[string]struct {
		cause, err error
		want       Verdict
	}{
		"broken":        {nil, broken, Verdict{Status: centurion.MissionFailed, Reason: "why", Hint: "do that", Err: broken}},
		"cancelled":     {cancelled, broken, Verdict{Status: centurion.MissionCancelled, Reason: "enough", Hint: "h", Err: cancelled}},
		"a question":    {nil, &state.Blocked{Question: "which?"}, Verdict{Status: centurion.MissionBlocked, Reason: "which?"}},
		"the host ends": {context.Canceled, broken, Verdict{Status: centurion.MissionPaused, Reason: centurion.ErrShutdown.Error(), Hint: centurion.HintOf(centurion.ErrShutdown), Err: centurion.ErrShutdown}},
	} {
		ctx, end := context.WithCancelCause(t.Context())
		if c.cause != nil {
			end(c.cause)
		}
		if got := VerdictOf(ctx, c.err); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		end(nil)
	}
}

// What is held back begins when its time has come, counted from the first look and told once; a change is looked at earlier.
func TestCountDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, end := loopOf(t, centurion.Mission{Status: centurion.MissionRunning})
		began := time.Now()
		var until time.Time
		d := loop.Decision{After: 10 * time.Second, Reason: "why"}
		step := func(changed <-chan struct{}) (over bool) {
			t.Helper()
			over, err := l.countDown(t.Context(), changed, &until, d)
			if err != nil {
				t.Fatal(err)
			}
			return over
		}
		changed := l.Mission.Change()
		time.AfterFunc(4*time.Second, l.Mission.Notify)
		if step(changed) || time.Since(began) != 4*time.Second {
			t.Errorf("over after %s", time.Since(began))
		}
		if step(l.Mission.Change()) || time.Since(began) != 10*time.Second || !step(l.Mission.Change()) || time.Since(began) != 10*time.Second {
			t.Errorf("over after %s", time.Since(began))
		}
		events, err := l.Mission.Store.Events(t.Context(), store.EventQuery{Types: []centurion.EventType{centurion.EventMissionUpdated}})
		if err != nil || len(events) != 1 {
			t.Fatalf("told %d times, %v", len(events), err)
		}
		if data, err := event.Decode[event.MissionData](events[0]); err != nil || data.Countdown != 10_000 || data.Reason != "why" {
			t.Errorf("%+v, %v", data, err)
		}
		until = time.Time{}
		ctx, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { stop(centurion.ErrShutdown) })
		if over, err := l.hold(ctx, l.Mission.Change(), &until, time.Minute); over || err != error(centurion.ErrShutdown) {
			t.Errorf("stopped: %t, %v", over, err)
		}
		end(nil)
	})
}

// Failed final checks open the items that have them again, and only those; after as many rounds as allowed, a person is asked.
func TestReopen(t *testing.T) {
	t.Parallel()
	l, _ := loopOf(t, centurion.Mission{Status: centurion.MissionRunning, HadItems: true, Todo: ".opencode/todo.md"})
	l.Returns, l.checked = 2, true
	text := "- [x] T1 One\n  - verify: `make`\n- [x] T2 Two\n  - verify: `true x`\n- [-] T3 Three\n  - verify: `make`\n"
	write := func() plan.View {
		_, _, err := l.Plan.File.Replace(t.Context(), text, false, func(_, _ *todo.Doc) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		doc, err := l.Plan.File.Edit(t.Context(), func(d *todo.Doc) error { return d.SetMark("T1", todo.Done) })
		if err != nil {
			t.Fatal(err)
		}
		return plan.View{Doc: doc}
	}
	failed := []centurion.Receipt{{Command: "make", ExitCode: 2, Millis: 7}, {Command: "own", ExitCode: 1, Millis: 8}}
	missing, err := l.reopen(t.Context(), write(), failed)
	want := "the final check failed: `make` ended with exit code 2 after 7 ms. It printed nothing.\nOpen again: T1.|the final check failed: `own` ended with exit code 1 after 8 ms. It printed nothing."
	v, _ := l.Plan.Read()
	var marks []string
	for _, it := range v.Items() {
		marks = append(marks, it.ID+string(rune(it.Mark)))
	}
	if got := strings.Join(missing, "|"); got != want || err != nil || strings.Join(marks, " ") != "T1  T2x T3-" || l.checked {
		t.Errorf("%s, %v; %s, checked %t", got, err, marks, l.checked)
	}
	if _, err := l.reopen(t.Context(), write(), failed); err != nil {
		t.Error(err)
	}
	_, err = l.reopen(t.Context(), write(), failed[1:])
	if b, ok := errors.AsType[*state.Blocked](err); !ok || b.Question != "The final checks have failed 3 times: the final check failed: `own` ended with exit code 1 after 8 ms. It printed nothing. What should be done?" {
		t.Error(err)
	}
	if m, err := l.Mission.Store.Mission(t.Context(), "msn_1"); err != nil || m.Reopened != 3 {
		t.Errorf("%d, %v", m.Reopened, err)
	}
}

// What the state refuses is an error of the beginning and of the end of a mission.
func TestRefusedByTheState(t *testing.T) {
	t.Parallel()
	begin := func(l *Loop) error { _, err := l.Begin(t.Context()); return err }
	finish := func(l *Loop) error {
		_, err := l.Finish(Verdict{Status: centurion.MissionPaused, Reason: "x"})
		return err
	}
	for name, c := range map[string]struct {
		table string
		write bool
		do    func(l *Loop) error
	}{
		"a mission that begins": {"mission", true, begin}, "one that is told": {"journal", true, begin}, "its asks": {"ask", true, begin}, "the asks": {"ask", false, begin},
		"one that ends": {"mission", true, finish}, "one that is told to end": {"journal", true, finish}, "its open asks": {"ask", false, finish}, "its tasks": {"task", false, finish},
	} {
		l, _ := loopOf(t, centurion.Mission{Status: centurion.MissionRunning, Runs: 1})
		mend, err := storetest.Fail(t.Context(), l.Mission.Store, c.table, c.write)
		if err != nil {
			t.Fatal(err)
		}
		err = c.do(l)
		if merr := mend(); err == nil || merr != nil {
			t.Errorf("%s: %v, %v", name, err, merr)
		}
	}
}
