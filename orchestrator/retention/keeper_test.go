package retention

import (
	"testing"
	"time"

	"centurion"
)

// A session that another task went on with is kept for as long as that one's time lasts.
func TestLaterTaskOfASession(t *testing.T) {
	at := func(sec int64) centurion.Time { return centurion.MillisTime(sec * 1000) }
	rows := taskRows{tasks: []centurion.Task{{ID: "first", Session: "s", Status: centurion.TaskCompleted, Ended: at(10)},
		{ID: "second", Session: "s", Status: centurion.TaskFailed, Ended: at(20)}, {ID: "other", Session: "o", Status: centurion.TaskRunning}}}
	if !rows.later(rows.tasks[0]) || rows.later(rows.tasks[1]) {
		t.Error("the session lasts as long as its second task, not its first")
	}
	if rows.tasks[2].Session = "s"; !rows.later(rows.tasks[1]) {
		t.Error("the session was dropped while a third task works in it")
	}
}

// What was put aside for a task stays while a resumed task, which has the same session, names it.
func TestAsideOfAResumedTask(t *testing.T) {
	aside := []centurion.Aside{{Dir: "/aside/1"}}
	if dirs := (&taskRows{tasks: []centurion.Task{{ID: "tsk_2", Aside: aside}}}).keptFor(aside); len(dirs) != 0 {
		t.Errorf("%v would be removed", dirs)
	}
	if dirs := (&taskRows{}).keptFor(aside); len(dirs) != 1 {
		t.Errorf("%v would be removed, want the one that nobody names", dirs)
	}
}

// ORCH-108: a keeper remembers only what has ended since it last looked, and nothing while nobody cleans.
func TestKeeperRemembersNothing(t *testing.T) {
	k := New(Config{})
	k.Ended("tsk_1")
	k.Ended("")
	if ended, all := k.take(); len(ended) > 0 || all {
		t.Errorf("nobody cleans, and it has %v %v", ended, all)
	}
	k.set(true)
	k.take()
	k.Ended("tsk_1")
	if ended, all := k.take(); len(ended) != 1 || all {
		t.Errorf("told of one task it has %v %v", ended, all)
	}
	if len(k.ended) > 0 || k.all {
		t.Errorf("it keeps %v %v", k.ended, k.all)
	}
}

// R15: whatever the clocks say, nothing is due later than the whole of its time, and while a host runs never earlier.
func TestLeft(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct{ ago, want time.Duration }{
		"just now": {0, time.Hour}, "half of it": {30 * time.Minute, 30 * time.Minute}, "long ago": {1000 * time.Hour, 0},
		"in the future": {-1000 * time.Hour, time.Hour},
	} {
		if got := left(centurion.Time{Time: now.Add(-test.ago)}, time.Hour, now).Round(time.Second); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
