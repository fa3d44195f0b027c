package isolation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/tools"
	"centurion/worktree"
)

// kept returns the checkouts of a mission msn_1 without a repository, and its store.
func kept(t *testing.T, rec centurion.Mission, tasks ...centurion.Task) (*Checkouts, *store.Store) {
	t.Helper()
	s := storetest.Open(t)
	rec.ID, rec.Session = "msn_1", "ses_0"
	if err := s.Update(t.Context(), func(tx *store.Tx) error {
		err := tx.PutMission(&rec)
		for _, task := range tasks {
			task.Mission = "msn_1"
			err = errors.Join(err, tx.PutTask(&task))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return New(state.New(t.Context(), nil, s, rec, nil), NewProject(s, nil, nil, nil), nil), s
}

// notes are what the person was notified of, with whose it is.
func notes(t *testing.T, s *store.Store) string {
	t.Helper()
	events, err := s.Events(t.Context(), store.EventQuery{Mission: "msn_1", Types: []centurion.EventType{centurion.EventMissionUpdated}})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range events {
		d, err := event.Decode[event.MissionData](e)
		if err != nil || e.Session != "ses_0" {
			t.Errorf("%+v, %v", e, err)
		}
		out = append(out, strings.TrimSpace(e.Task+" "+d.Note))
	}
	return strings.Join(out, "\n")
}

// What git ignores is kept aside once, in the record of who wrote it, and the person is notified while the mission lives. Who is recorded there
// works in no checkout any more.
func TestPutLeft(t *testing.T) {
	t.Parallel()
	old := centurion.Aside{Dir: "/old", Files: []string{"o"}}
	left := []centurion.Aside{{Dir: "/old", Files: []string{"other"}}, {Dir: "/new", Files: []string{"n"}}, {Dir: "/more", Files: []string{"m"}}}
	at := &centurion.Checkout{Dir: "/x", Branch: "b", Start: "s"}
	for name, c := range map[string]struct {
		task   string
		status centurion.MissionStatus
		who    string // begins the notice; "" if there is none
	}{
		"a task":          {"tsk_1", centurion.MissionRunning, "tsk_1 T1: "},
		"of no item":      {"tsk_2", centurion.MissionRunning, "tsk_2 worker: "},
		"its own agent":   {"", centurion.MissionRunning, "commander: "},
		"when it is over": {"", centurion.MissionCompleted, ""},
		"a task after it": {"tsk_1", centurion.MissionCancelled, ""},
	} {
		_, s := kept(t, centurion.Mission{Status: c.status, Options: centurion.MissionOptions{Agent: "commander"}, Aside: []centurion.Aside{old}, Checkout: at},
			centurion.Task{ID: "tsk_1", Item: "T1", Agent: "worker", Aside: []centurion.Aside{old}, Checkout: at}, centurion.Task{ID: "tsk_2", Agent: "worker", Aside: []centurion.Aside{old}, Checkout: at})
		if err := s.Update(t.Context(), func(tx *store.Tx) error { return putLeft(tx, "msn_1", c.task, left) }); err != nil {
			t.Fatal(err)
		}
		want := ""
		if c.who != "" {
			want = c.who + left[1].String() + "\n" + c.who + left[2].String()
		}
		if got := notes(t, s); got != want {
			t.Errorf("%s: told %s, want %s", name, got, want)
		}
		m, err := s.Mission(t.Context(), "msn_1")
		have := map[string]string{"": fmt.Sprint(m.Checkout == nil, m.Aside)}
		for _, id := range []string{"tsk_1", "tsk_2"} {
			task, terr := s.Task(t.Context(), id)
			if err = errors.Join(err, terr); err != nil {
				t.Fatal(err)
			}
			have[id] = fmt.Sprint(task.Checkout == nil, task.Aside)
		}
		for id, got := range have {
			want := fmt.Sprint(false, []centurion.Aside{old})
			if id == c.task {
				want = fmt.Sprint(true, []centurion.Aside{old, left[1], left[2]})
			}
			if got != want {
				t.Errorf("%s: of %q: %s, want %s", name, id, got, want)
			}
		}
	}
}

// Where somebody works is recorded with its task, or with the mission for its own agent.
func TestRecordPlace(t *testing.T) {
	t.Parallel()
	m, s := kept(t, centurion.Mission{}, centurion.Task{ID: "tsk_1"})
	for _, task := range []string{"", "tsk_1"} {
		w := m.PlaceOf("ses_"+task, task)
		if at, err := w.recorded(t.Context()); err != nil || at != nil {
			t.Errorf("%q: at first %+v, %v", task, at, err)
		}
		want := centurion.Checkout{Dir: "/x" + task, Branch: "b", Start: "s"}
		if err := w.Record(t.Context(), &want); err != nil {
			t.Fatal(err)
		}
		if at, err := w.recorded(t.Context()); err != nil || at == nil || *at != want {
			t.Errorf("%q: %+v, %v", task, at, err)
		}
	}
	rec, err := s.Mission(t.Context(), "msn_1")
	if err != nil || rec.Checkout == nil || rec.Checkout.Dir != "/x" {
		t.Errorf("%+v, %v", rec.Checkout, err)
	}
	if w := m.PlaceOf("ses_tsk_1", "tsk_1"); w != m.PlaceOf("ses_tsk_1", "tsk_1") || w == m.PlaceOf("ses_tsk_1", "tsk_2") || w == m.PlaceOf("ses_", "") {
		t.Error("places are mixed up")
	}
}

// A task may write what the tasks above it hold, up to the mission's own agent.
func TestAncestors(t *testing.T) {
	t.Parallel()
	m, s := kept(t, centurion.Mission{}, centurion.Task{ID: "tsk_1", Item: "T1", Parent: "ses_0"}, centurion.Task{ID: "tsk_2", Number: 7, Parent: "ses_1"}, centurion.Task{ID: "tsk_3", Item: "T3", Parent: "ses_2"})
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		var err error
		for id, task := range map[string]string{"ses_0": "", "ses_1": "tsk_1", "ses_2": "tsk_2"} {
			err = errors.Join(err, tx.PutSession(&centurion.Session{ID: id, Metadata: centurion.SessionMeta{Mission: "msn_1", Task: task}}))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for task, want := range map[string]string{"": "[]", "tsk_1": "[]", "tsk_2": "[T1]", "tsk_3": "[w7 T1]"} {
		if above, err := m.Ancestors(t.Context(), task); err != nil || fmt.Sprint(above) != want {
			t.Errorf("above %q: %v, %v, want %s", task, above, err, want)
		}
	}
}

// A mission in the project's own directory has changed something if one of its agents has.
func TestChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rec   centurion.Mission
		task  centurion.Task
		wrote bool
		want  bool
	}{
		"nothing":       {centurion.Mission{}, centurion.Task{ID: "tsk_1"}, false, false},
		"a task":        {centurion.Mission{}, centurion.Task{ID: "tsk_1", Files: []string{"a"}}, false, true},
		"its command":   {centurion.Mission{}, centurion.Task{ID: "tsk_1", Landed: []centurion.Landed{{Commit: "x"}}}, false, true},
		"its own agent": {centurion.Mission{Wrote: []centurion.Landed{{Commit: "x"}}}, centurion.Task{ID: "tsk_1"}, false, true},
		"since then":    {centurion.Mission{}, centurion.Task{ID: "tsk_1"}, true, true},
	} {
		m, _ := kept(t, c.rec, c.task)
		m.Wrote.Store(c.wrote)
		if got, err := m.Changed(t.Context()); err != nil || got != c.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// Why nothing can be written is told once, and stands before the question that blocks the mission until there is a checkout. A full disk and an end
// have notices of their own.
func TestTellNoCheckout(t *testing.T) {
	t.Parallel()
	m, s := kept(t, centurion.Mission{Status: centurion.MissionRunning})
	if got := m.AskedFor("What now?"); got != "What now?" {
		t.Error(got)
	}
	m.Ground = &Ground{}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	cause := &centurion.Error{Kind: centurion.KindConflict, Msg: "no branch", Hint: "make one"}
	err := errors.Join(m.TellNoCheckout(ended, cause), m.TellNoCheckout(t.Context(), &centurion.Error{Kind: centurion.KindDisk, Msg: "full"}))
	if err != nil || notes(t, s) != "" || m.AskedFor("What now?") != "What now?" {
		t.Errorf("%v: told %q", err, notes(t, s))
	}
	if err := errors.Join(m.TellNoCheckout(t.Context(), cause), m.TellNoCheckout(t.Context(), errors.New("another"))); err != nil {
		t.Fatal(err)
	}
	if got := notes(t, s); got != "nothing can be written: no branch; make one" {
		t.Errorf("told %q", got)
	}
	if got := m.AskedFor("What now?"); got != "Nothing can be written: another. What now?" {
		t.Error(got)
	}
	if got := m.AskedFor("I saw: nothing can be written: another"); got != "I saw: nothing can be written: another" {
		t.Error(got)
	}
	m.hasCheckout()
	if got := m.AskedFor("What now?"); got != "What now?" {
		t.Error(got)
	}
}

// What the history skips is told once for each file, and of many only some are named.
func TestTellPassedOver(t *testing.T) {
	t.Parallel()
	m, s := kept(t, centurion.Mission{Status: centurion.MissionRunning})
	for _, files := range [][]string{nil, {"a", "b"}, {"a", "b"}, {"b", "c", "d", "e", "f", "g"}, {"1", "2", "3", "4", "5", "6"}} {
		if err := m.tellPassedOver(t.Context(), slices.Clone(files)); err != nil {
			t.Fatal(err)
		}
	}
	rest := ": larger than " + centurion.Bytes(worktree.MaxShadow) + ", or not to be read"
	want := "undo will not bring back a, b" + rest + "\nundo will not bring back c, d, e, f, g" + rest + "\nundo will not bring back 1, 2, 3, 4, 5 and 1 more file" + rest
	if got := notes(t, s); got != want {
		t.Errorf("told %s, want %s", got, want)
	}
}

// A newer change of a file replaces the older one, in the order of the names; what was known stays as it was.
func TestJoinChanges(t *testing.T) {
	t.Parallel()
	have := []centurion.FileChange{{Path: "b", Status: "added"}, {Path: "c", Status: "added"}}
	got := joinChanges(have, []centurion.FileChange{{Path: "d", Status: "deleted"}, {Path: "b", Status: "modified"}, {Path: "a", Status: "added"}})
	want := []centurion.FileChange{{Path: "a", Status: "added"}, {Path: "b", Status: "modified"}, {Path: "c", Status: "added"}, {Path: "d", Status: "deleted"}}
	if !slices.Equal(got, want) || have[0].Status != "added" {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := modified([]string{"x"}); !slices.Equal(got, []centurion.FileChange{{Path: "x", Status: "modified"}}) {
		t.Errorf("%+v", got)
	}
}

// A session whose files were moved is told where they are and what that means.
func TestMoved(t *testing.T) {
	t.Parallel()
	got := Moved(tools.Result{Output: "done\n\n", Title: "x"}, "/place")
	want := "done\n\n(Your files are now in /place, where programs can rename directories; commands start there. What they ran in the background has ended. Git's index is the host's there: use mv instead of git mv, and leave commits to the host.)"
	if got.Output != want || got.Title != "x" {
		t.Errorf("%q, want %q", got.Output, want)
	}
}
