package retention

import (
	"testing"
	"time"

	"centurion"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/workspace"
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

// ORCH-43: a task that went on after its end was noted, or that was removed meanwhile, is not archived; one that has ended is, once.
func TestOnlyWhatHasEndedIsArchived(t *testing.T) {
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	s := storetest.Open(t)
	m := centurion.Mission{ID: centurion.NewID(centurion.PrefixMission), Status: centurion.MissionRunning}
	var ids []string
	if err := s.Update(t.Context(), func(tx *store.Tx) error {
		if err := tx.PutMission(&m); err != nil {
			return err
		}
		for _, status := range []centurion.TaskStatus{centurion.TaskCompleted, centurion.TaskQueued, centurion.TaskRunning} {
			x := centurion.Task{ID: centurion.NewID(centurion.PrefixTask), Mission: m.ID, Status: status, Created: centurion.Now(), Ended: centurion.Now()}
			if err := tx.PutTask(&x); err != nil {
				return err
			}
			ids = append(ids, x.ID)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	k := New(Config{Store: s, Workspace: ws})
	for _, want := range []int{1, 0} {
		if n, err := k.Archive(t.Context(), append(ids, centurion.NewID(centurion.PrefixTask))); n != want || err != nil {
			t.Errorf("%d are archived, want %d, %v", n, want, err)
		}
	}
	for i, id := range ids {
		if x, err := s.Task(t.Context(), id); err != nil || x.Archived.IsZero() != (i > 0) || x.Archiving {
			t.Errorf("task %d, %s: archived %v, on its way %v, %v", i, x.Status, x.Archived, x.Archiving, err)
		}
	}
}

// What a person asks for decides what is archived and dropped, and without that the configured times.
func TestOlderThan(t *testing.T) {
	day, week := 24*time.Hour, 7*24*time.Hour
	for name, test := range map[string]struct {
		status centurion.TaskStatus
		age    time.Duration
		asked  *time.Duration
		want   bool
	}{
		"young":                    {centurion.TaskCompleted, time.Hour, nil, false},
		"old":                      {centurion.TaskCompleted, 2 * day, nil, true},
		"a failed one stays":       {centurion.TaskFailed, 2 * day, nil, false},
		"an old failed one":        {centurion.TaskFailed, 2 * week, nil, true},
		"running":                  {centurion.TaskRunning, 2 * week, nil, false},
		"blocked":                  {centurion.TaskBlocked, 2 * week, nil, false},
		"asked for all":            {centurion.TaskFailed, time.Hour, new(time.Duration), true},
		"asked for those of weeks": {centurion.TaskCompleted, 2 * day, &week, false},
	} {
		k := &Keeper{Config: Config{ArchiveAfter: day, ArchiveFailedAfter: week}}
		task := centurion.Task{ID: "tsk_1", Status: test.status, Ended: centurion.MillisTime(time.Now().Add(-test.age).UnixMilli())}
		var p tidyPlan
		k.planTask(&p, &taskRows{mission: centurion.Mission{Status: centurion.MissionPaused}}, &task, TidyOptions{OlderThan: test.asked})
		if got := len(p.archive) == 1; got != test.want || p.report.Archived != len(p.archive) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Only what has ended for good is due, its record not before its session.
func TestDueOf(t *testing.T) {
	k := &Keeper{Config: Config{Retention: 2 * time.Hour, ArchiveAfter: time.Hour, ArchiveFailedAfter: 3 * time.Hour}}
	for name, test := range map[string]struct {
		task    centurion.Task
		mission centurion.MissionStatus
		due     bool
		later   time.Duration // the record goes after the session
	}{
		"running":                      {centurion.Task{Status: centurion.TaskRunning}, centurion.MissionRunning, false, 0},
		"archived":                     {centurion.Task{Status: centurion.TaskCompleted, Archived: centurion.Now()}, centurion.MissionRunning, false, 0},
		"blocked, may be resumed":      {centurion.Task{Status: centurion.TaskBlocked}, centurion.MissionPaused, false, 0},
		"blocked, its mission is over": {centurion.Task{Status: centurion.TaskBlocked}, centurion.MissionCompleted, true, time.Hour},
		"completed":                    {centurion.Task{Status: centurion.TaskCompleted}, centurion.MissionRunning, true, 0},
		"failed":                       {centurion.Task{Status: centurion.TaskFailed}, centurion.MissionRunning, true, time.Hour},
	} {
		test.task.Ended = centurion.Now()
		if d, due := k.dueOf(test.task, test.mission); due != test.due || d.archive.Sub(d.drop).Round(time.Minute) != test.later {
			t.Errorf("%s: %v, %+v", name, due, d)
		}
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
	if k.Retention != 10*time.Minute || k.ArchiveAfter != 30*time.Minute || k.ArchiveFailedAfter != 10*time.Minute || k.KeepTasks != 1000 {
		t.Errorf("its defaults: %+v", k.Config)
	}
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
	k.Ended("")
	if ended, all := k.take(); len(ended) > 0 || !all {
		t.Errorf("told of several it has %v %v", ended, all)
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
