package retention

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/workspace"
)

// keeping returns a keeper of an empty state, for which no mission is being worked on.
func keeping(t *testing.T) *Keeper {
	t.Helper()
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	s := storetest.Open(t)
	return New(Config{Store: s, Workspace: ws, Working: func(string) bool { return false }, Forget: func(centurion.Task) {}})
}

func (k *Keeper) put(t *testing.T, f func(tx *store.Tx) error) {
	t.Helper()
	if err := k.Store.Update(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// A task is removed only when nobody needs it: it is over and archived, what it has delegated is gone, and its result was read or
// nobody can read it any more.
func TestRemovable(t *testing.T) {
	t.Parallel()
	now := centurion.Now()
	done := centurion.Task{ID: "one", Session: "s", Status: centurion.TaskCompleted, Ended: now, Archived: now}
	changed := func(f func(*centurion.Task)) centurion.Task { x := done; f(&x); return x }
	read, unread := store.Delivery{Task: "one", Taken: now}, store.Delivery{Task: "one"}
	for name, c := range map[string]struct {
		task       centurion.Task
		mission    centurion.MissionStatus
		others     []centurion.Task
		deliveries []store.Delivery
		want       bool
	}{
		"of an ended mission":              {done, centurion.MissionCompleted, nil, nil, true},
		"unread, of an ended mission":      {done, centurion.MissionCompleted, nil, []store.Delivery{unread}, true},
		"read":                             {done, centurion.MissionRunning, nil, []store.Delivery{read}, true},
		"unread":                           {done, centurion.MissionRunning, nil, []store.Delivery{unread}, false},
		"read, and told once more":         {done, centurion.MissionRunning, nil, []store.Delivery{read, unread}, false},
		"never told":                       {done, centurion.MissionRunning, nil, nil, false},
		"another one was read":             {done, centurion.MissionRunning, nil, []store.Delivery{{Task: "two", Taken: now}}, false},
		"runs":                             {changed(func(t *centurion.Task) { t.Status = centurion.TaskRunning }), centurion.MissionCompleted, nil, nil, false},
		"not archived":                     {changed(func(t *centurion.Task) { t.Archived = centurion.Time{} }), centurion.MissionCompleted, nil, nil, false},
		"its delegation is there":          {done, centurion.MissionCompleted, []centurion.Task{{ID: "two", Parent: "s"}}, nil, false},
		"another's delegation is there":    {done, centurion.MissionCompleted, []centurion.Task{{ID: "two", Parent: "o"}}, nil, true},
		"without a session, as the oldest": {changed(func(t *centurion.Task) { t.Session = "" }), centurion.MissionCompleted, []centurion.Task{{ID: "two"}}, nil, true},
	} {
		r := &taskRows{mission: centurion.Mission{Status: c.mission}, tasks: append(c.others, c.task), deliveries: c.deliveries}
		if got := r.removable("one"); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A session goes with the last task that uses it.
func TestSessionGoesWithItsLastTask(t *testing.T) {
	t.Parallel()
	r := &taskRows{tasks: []centurion.Task{{ID: "none"}, {ID: "first", Session: "s"}, {ID: "other", Session: "o"}, {ID: "second", Session: "s"}}}
	for _, step := range []struct {
		id   string
		want bool
	}{{"first", false}, {"none", false}, {"second", true}} {
		if got := r.remove(step.id); got != step.want {
			t.Errorf("the session goes with %s: %v, want %v", step.id, got, step.want)
		}
	}
	if len(r.tasks) != 1 || r.tasks[0].ID != "other" {
		t.Errorf("left: %+v", r.tasks)
	}
	if dirs := (&taskRows{mission: centurion.Mission{Aside: []centurion.Aside{{Dir: "/a"}}}}).keptFor([]centurion.Aside{{Dir: "/a"}, {Dir: "/b"}}); !slices.Equal(dirs, []string{"/b"}) {
		t.Errorf("removed although the mission's own agent names it: %v", dirs)
	}
}

// Only the sessions of tasks that are over are dropped, each once.
func TestDropSessions(t *testing.T) {
	t.Parallel()
	k := keeping(t)
	var forgotten []string
	k.Forget = func(t centurion.Task) { forgotten = append(forgotten, t.ID) }
	tasks := []centurion.Task{{ID: "tsk_1", Session: "ses_1", Status: centurion.TaskCompleted}, {ID: "tsk_2", Session: "ses_2", Status: centurion.TaskRunning},
		{ID: "tsk_3", Status: centurion.TaskCancelled}}
	k.put(t, func(tx *store.Tx) error {
		if err := tx.PutMission(&centurion.Mission{ID: "msn_1", Status: centurion.MissionRunning}); err != nil {
			return err
		}
		for _, x := range tasks {
			x.Mission, x.Ended = "msn_1", centurion.Now()
			if err := tx.PutTask(&x); err != nil {
				return err
			}
			if x.Session != "" {
				if err := tx.PutSession(&centurion.Session{ID: x.Session, Agent: "worker", Title: "title", Metadata: centurion.SessionMeta{Mission: "msn_1", Task: x.ID, Address: "0/1"}}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	for _, want := range []int{1, 0} {
		if n, err := k.dropSessions(t.Context(), []string{"tsk_1", "tsk_2", "tsk_3", "tsk_gone"}); n != want || err != nil {
			t.Errorf("%d are dropped, want %d, %v", n, want, err)
		}
	}
	told, err := k.Store.Events(t.Context(), store.EventQuery{Types: []centurion.EventType{centurion.EventSessionDeleted}})
	if err != nil || len(told) != 1 || told[0].Mission != "msn_1" || told[0].Session != "ses_1" || told[0].Task != "tsk_1" {
		t.Errorf("told: %+v, %v", told, err)
	} else if d, err := event.Decode[event.SessionData](told[0]); err != nil || d.Agent != "worker" || d.Address != "0/1" || d.Title != "title" {
		t.Errorf("told: %+v, %v", d, err)
	}
	if !slices.Equal(forgotten, []string{"tsk_1"}) {
		t.Errorf("forgotten: %v", forgotten)
	}
	for id, dropped := range map[string]bool{"ses_1": true, "ses_2": false} {
		if s, err := k.Store.Session(t.Context(), id); err != nil || (s.Time.Archived > 0) != dropped {
			t.Errorf("%s: dropped %d, want %v, %v", id, s.Time.Archived, dropped, err)
		}
	}
}

// A session with which a later task has gone on is kept as long as that task's.
func TestTidyKeepsContinuedSessions(t *testing.T) {
	t.Parallel()
	k := keeping(t)
	k.put(t, func(tx *store.Tx) error {
		return tx.PutSession(&centurion.Session{ID: "ses_1", Metadata: centurion.SessionMeta{Mission: "msn_1"}})
	})
	task := func(id string, ended time.Duration) centurion.Task {
		return centurion.Task{ID: id, Session: "ses_1", Status: centurion.TaskCompleted, Ended: centurion.Time{Time: time.Now().Add(-ended)}}
	}
	r := &taskRows{mission: centurion.Mission{ID: "msn_1", Status: centurion.MissionCompleted}, tasks: []centurion.Task{task("tsk_1", time.Hour), task("tsk_2", time.Minute)}}
	p := tidyPlan{}
	if err := k.planSessions(t.Context(), &p, r, TidyOptions{OlderThan: new(30 * time.Minute)}); err != nil || len(p.drop) > 0 {
		t.Errorf("dropped with %v: %v", p.drop, err)
	}
}

// A tidying leaves missions alone that go on, and what is needed of the others.
func TestTidyPlan(t *testing.T) {
	t.Parallel()
	k := keeping(t)
	k.Working = func(mission string) bool { return mission == "msn_worked" }
	old, aside := centurion.Time{Time: time.Now().Add(-time.Hour)}, func(dir string) []centurion.Aside { return []centurion.Aside{{Dir: dir}} }
	k.put(t, func(tx *store.Tx) error {
		for id, status := range map[string]centurion.MissionStatus{"msn_over": centurion.MissionCompleted, "msn_worked": centurion.MissionCompleted,
			"msn_failed": centurion.MissionFailed, "msn_paused": centurion.MissionPaused} {
			if err := tx.PutMission(&centurion.Mission{ID: id, Status: status, Updated: old, Aside: aside("/" + id)}); err != nil {
				return err
			}
			for end, x := range map[string]centurion.Task{"_done": {Status: centurion.TaskCompleted}, "_blocked": {Status: centurion.TaskBlocked},
				"_kept": {Status: centurion.TaskCompleted, Archived: old}, "_runs": {Status: centurion.TaskRunning}} {
				x.ID, x.Mission, x.Session, x.Ended = id+end, id, "ses_"+id+end, old
				if end == "_kept" {
					x.Ended = centurion.Time{Time: old.Add(-time.Minute)}
				}
				s := centurion.Session{ID: x.Session, Metadata: centurion.SessionMeta{Mission: id, Task: x.ID}}
				if !x.Archived.IsZero() {
					s.Time.Archived = old.Millis()
				}
				if err := tx.PutTask(&x); err != nil {
					return err
				}
				if err := tx.PutSession(&s); err != nil {
					return err
				}
			}
		}
		return nil
	})
	p, err := k.plan(t.Context(), TidyOptions{OlderThan: new(time.Duration)})
	if err != nil {
		t.Fatal(err)
	}
	var removed []string
	for _, x := range p.remove {
		removed = append(removed, x.ID)
	}
	for what, c := range map[string]struct{ got, want []string }{
		"archived": {p.archive, []string{"msn_failed_done", "msn_over_blocked", "msn_over_done"}},
		"dropped":  {p.drop, []string{"msn_failed_done", "msn_over_blocked", "msn_over_done"}},
		"removed":  {removed, []string{"msn_over_blocked", "msn_over_done", "msn_over_kept"}},
		"own":      {p.own, []string{"msn_over"}},
		"aside":    {p.report.Aside, []string{"/msn_over"}},
	} {
		slices.Sort(c.got)
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
	k.KeepTasks = 15
	if p, err := k.plan(t.Context(), TidyOptions{DryRun: true}); err != nil || len(p.remove) != 1 || p.remove[0].ID != "msn_over_kept" || !p.report.DryRun {
		t.Errorf("of one too many: %+v, %v", p.remove, err)
	}
	if r := p.report; r.Missions != 2 || r.Sessions != 3 || r.Archived != 3 || r.Removed != 3 {
		t.Errorf("%+v", r)
	}
}

// A record comes back from the archive as it was, with where it is from, and only for its own id and mission.
func TestFromTheArchive(t *testing.T) {
	t.Parallel()
	k := keeping(t)
	at := centurion.MillisTime(time.Now().UnixMilli())
	one := centurion.Task{ID: "tsk_1aa", Mission: "msn_1", Parent: "ses_0", Agent: "worker", Title: "title", Status: centurion.TaskFailed, Reason: "why",
		Attempt: 2, Returns: 3, Session: "ses_1", Item: "T1", Number: 7, Prompt: "prompt", Result: "result", Error: &centurion.TaskError{Kind: centurion.KindVerify},
		Files: []string{"a.go"}, Created: at, Started: at, Ended: at, Usage: centurion.Usage{USD: 0.5, Unpriced: true, Tokens: centurion.Tokens{Input: 5}}}
	_, line, err := Line(one, []centurion.Receipt{{ID: "rcp_1"}, {ID: "rcp_2"}})
	if err != nil || !bytes.Contains(line, []byte(`"receipts":["rcp_1","rcp_2"]`)) {
		t.Errorf("%s, %v", line, err)
	}
	file, other, _ := Line(centurion.Task{ID: "tsk_1ab", Mission: "msn_2", Ended: at, Prompt: "of msn_1"}, nil)
	if err := k.Workspace.AppendJSON(file, other, line, []byte(`{"foreign":"tsk_1aa msn_1"}`), []byte(`{"foreign":"once more"}`)); err != nil {
		t.Fatal(err)
	}
	got, err := FromArchive(k.Workspace, "1aa")
	want := one
	want.Reason = "why, from the archive"
	if err != nil || got.Error == nil || *got.Error != *one.Error {
		t.Fatalf("%+v, %v", got, err)
	}
	if want.Error = got.Error; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if _, err := FromArchive(k.Workspace, "tsk_1a"); centurion.KindOf(err) != centurion.KindUsage || !strings.Contains(err.Error(), "begin with tsk_1a") {
		t.Errorf("of two: %v", err)
	}
	any := func(centurion.Task) bool { return true }
	for mission, id := range map[string]string{"msn_1": one.ID, "msn_2": "tsk_1ab", "msn_3": "", "": ""} {
		if got, err := Removed(k.Workspace, mission, any); got.ID != id || err != nil {
			t.Errorf("of mission %q: %q, want %q, %v", mission, got.ID, id, err)
		}
	}
	if got, err := Removed(k.Workspace, "msn_1", func(t centurion.Task) bool { return t.Item == "T2" }); got.ID != "" || err != nil {
		t.Errorf("one that is not wanted: %s, %v", got.ID, err)
	}
	has, err := healArchive(k.Workspace, file)
	if err != nil || len(has) != 2 || !has["tsk_1aa"] || !has["tsk_1ab"] {
		t.Errorf("the file has %v, %v", has, err)
	}
	lines := 0
	for range k.Workspace.Lines(file) {
		lines++
	}
	if lines != 4 {
		t.Errorf("%d lines, want all, also foreign ones", lines)
	}
}

// A task goes with those that it has delegated, which are older: they do not keep it.
func TestDelegatedTasksGoFirst(t *testing.T) {
	t.Parallel()
	k := keeping(t)
	ended := func(sec int) centurion.Time { return centurion.Time{Time: time.Unix(int64(sec), 0)} }
	k.put(t, func(tx *store.Tx) error {
		task := func(id, session, parent string, sec int) error {
			return tx.PutTask(&centurion.Task{ID: id, Mission: "msn_1", Session: session, Parent: parent, Status: centurion.TaskCompleted, Created: ended(sec), Ended: ended(sec), Archived: ended(sec)})
		}
		return errors.Join(tx.PutMission(&centurion.Mission{ID: "msn_1", Session: "ses_0", Status: centurion.MissionCompleted}),
			task("tsk_parent", "ses_p", "ses_0", 9), task("tsk_child", "ses_c", "ses_p", 5))
	})
	var none time.Duration
	p, err := k.plan(t.Context(), TidyOptions{OlderThan: &none, DryRun: true})
	var ids []string
	for _, task := range p.remove {
		ids = append(ids, task.ID)
	}
	if err != nil || !slices.Equal(ids, []string{"tsk_child", "tsk_parent"}) || p.report.Removed != 2 {
		t.Errorf("%q, %+v, %v", ids, p.report, err)
	}
}
