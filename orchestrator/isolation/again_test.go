package isolation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/store"
	"centurion/worktree"
)

// wait is how long a test waits for something that is not to happen.
const wait = 20 * time.Millisecond

// Unmerged work whose checkout somebody has deleted is laid into a new one on top of what was merged since, and what conflicts with that is named.
func TestTakeUpInConflict(t *testing.T) {
	t.Parallel()
	m, next := hosted(t)
	s := m.seatOf(t)
	s.writes(t, "go.txt", "mine\n")
	s.writes(t, "new", "x\n")
	if _, err := s.Checkout().Commit(t.Context(), "mine"); err != nil {
		t.Fatal(err)
	}
	at := s.Checkout().Where()
	own, err := m.Seat(t.Context(), "ses_0", "")
	if err != nil {
		t.Fatal(err)
	}
	own.writes(t, "go.txt", "theirs\n")
	theirs, err := own.Checkout().Commit(t.Context(), "theirs")
	if err == nil {
		err = m.Ground.Repo.Advance(t.Context(), m.Branch(), m.Ground.Base.Commit, theirs.ID)
	}
	m.Leave(centurion.MissionPaused)
	if err := errors.Join(err, os.RemoveAll(at.Dir)); err != nil {
		t.Fatal(err)
	}
	m = next()
	s = m.seatOf(t)
	f, err := s.Where.TakeUp(t.Context(), true)
	if want := (Footing{At: theirs.ID, Left: []string{"go.txt", "new"}, Marked: []string{"go.txt"}}); err != nil || fmt.Sprintf("%+v", f) != fmt.Sprintf("%+v", want) {
		t.Errorf("%+v, %v, want %+v", f, err, want)
	}
	if got := s.reads(t, "go.txt"); !strings.Contains(got, "theirs") || !strings.Contains(got, "mine") {
		t.Errorf("it reads %q", got)
	}
	m.Leave(centurion.MissionPaused)
}

// What ended while no host worked on its mission is given back, its work on its branch; what goes on keeps its checkout, and so does the agent of a
// mission that can be resumed. A checkout that somebody has deleted is given back without it.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	m, next := hosted(t)
	own, err := m.Seat(t.Context(), "ses_0", "")
	if err != nil {
		t.Fatal(err)
	}
	put := func(id, session string, status centurion.TaskStatus) {
		t.Helper()
		if err := m.st.Store.Update(t.Context(), func(tx *store.Tx) error {
			x, err := tx.Task(id)
			if centurion.KindOf(err) == centurion.KindNotFound {
				x, err = centurion.Task{ID: id, Mission: "msn_1", Item: id, Session: session}, nil
			}
			x.Status = status
			return errors.Join(err, tx.PutTask(&x))
		}); err != nil {
			t.Fatal(err)
		}
	}
	put("tsk_2", "ses_2", centurion.TaskRunning)
	put("tsk_3", "ses_3", centurion.TaskRunning)
	seats := map[string]Seat{"": own, "tsk_1": m.seatOf(t)}
	for _, id := range []string{"tsk_2", "tsk_3"} {
		if seats[id], err = m.Seat(t.Context(), "ses_"+id[4:], id); err != nil {
			t.Fatal(err)
		}
	}
	gone := ""
	for id, s := range seats {
		if s.writes(t, "file", "of "+id+"\n"); id == "tsk_3" {
			gone = s.Checkout().Where().Dir
		}
	}
	m.Leave(centurion.MissionPaused)
	m = next()
	put("tsk_1", "", centurion.TaskFailed)
	put("tsk_3", "", centurion.TaskCompleted)
	if err := os.RemoveAll(gone); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		status centurion.MissionStatus
		keep   string
	}{{centurion.MissionPaused, "tsk_2, own"}, {centurion.MissionCancelled, "tsk_2"}} {
		rec, err := m.st.Store.Mission(t.Context(), "msn_1")
		if _, rerr := m.project.Repository(t.Context()); err != nil || rerr != nil {
			t.Fatal(err, rerr)
		}
		rec.Status = c.status
		if err := m.project.LeftBehind(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		var keep []string
		for _, id := range []string{"tsk_1", "tsk_2", "tsk_3", ""} {
			at, err := m.PlaceOf("ses_"+id, id).recorded(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if at != nil {
				keep = append(keep, map[bool]string{true: "own", false: id}[id == ""])
			}
		}
		if got := strings.Join(keep, ", "); got != c.keep {
			t.Errorf("%s: %s are recorded, want %s", c.status, got, c.keep)
		}
	}
	tip, err := m.Ground.Repo.Tip(t.Context(), m.branchFor("tsk_1", 1))
	if same, serr := m.SameTree(t.Context(), tip, m.Ground.Base.Commit); err != nil || serr != nil || same {
		t.Errorf("the work of tsk_1 is lost: %v, %v", err, serr)
	}
}

// A checkout that cannot be given back stays recorded, and that is said; the place is free for the next host.
func TestVacateFails(t *testing.T) {
	t.Parallel()
	m, next := hosted(t)
	s := m.seatOf(t)
	s.writes(t, "a", "one\n")
	at := s.Checkout().Where()
	task, err := m.st.Store.Task(t.Context(), "tsk_1")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	note, record := m.Vacate(ended, task)
	if err != nil || !strings.HasPrefix(note, "its checkout could not be given back: ") || record != nil {
		t.Errorf("%q, %v", note, err)
	}
	if s.Checkout() != nil || m.PlaceOf("ses_1", "tsk_1") == s.Where {
		t.Error("the session still has its place")
	}
	if s = m.seatOf(t); s.Checkout() == nil || s.Checkout().Where() != at {
		t.Errorf("this host has not found it: %+v", s.Checkout())
	}
	m.Leave(centurion.MissionPaused)
	if s = next().seatOf(t); s.Checkout() == nil || s.Checkout().Where().Dir != at.Dir || s.reads(t, "a") != "one\n" {
		t.Errorf("the next host has not found it: %+v", s.Checkout())
	}
}

// Readers of the mission's branch see one state until they leave, and later ones what was merged since, for which they wait.
func TestViewMoves(t *testing.T) {
	t.Parallel()
	m, _ := hosted(t)
	s := m.seatOf(t)
	other, err := m.Seat(t.Context(), "ses_0", "")
	if err != nil {
		t.Fatal(err)
	}
	ws, leave, err := s.Where.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other.writes(t, "go.txt", "new\n")
	commit, err := other.Checkout().Commit(t.Context(), "new")
	if err == nil {
		err = m.Ground.Repo.Advance(t.Context(), m.Branch(), m.Ground.Base.Commit, commit.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	tired := errors.New("tired")
	ctx, cancel := context.WithTimeoutCause(t.Context(), wait, tired)
	defer cancel()
	if _, _, err := s.Where.Read(ctx); !errors.Is(err, tired) {
		t.Errorf("while another reads: %v", err)
	}
	if b, _, err := ws.ReadFile("go.txt", 0); err != nil || string(b) != "go\n" {
		t.Errorf("the files of a reader became %q, %v", b, err)
	}
	leave()
	if got := s.reads(t, "go.txt"); got != "new\n" {
		t.Errorf("then it reads %q", got)
	}
	m.Leave(centurion.MissionPaused)
	if m.Ground.view.checkout != nil {
		t.Error("the view stays")
	}
}

// A reader does not wait long for one that reads on: it gets the state that is there, and who comes after both the new one.
func TestViewWhileAnotherReadsOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, _ := hosted(t)
		s := m.seatOf(t)
		_, leave, err := s.Where.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		base := m.Ground.Base.Commit
		git(t, m.project.ws.Dir(), "rm", "-q", "go.txt")
		git(t, m.project.ws.Dir(), "commit", "-q", "-m", "second")
		git(t, m.project.ws.Dir(), "branch", "second")
		second, err := m.Ground.Repo.Tip(t.Context(), "second")
		if err == nil {
			err = m.Ground.Repo.Advance(t.Context(), m.Branch(), base, second)
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		ws, leaveToo, err := s.Where.Read(ctx)
		if err != nil || time.Since(begun) != viewPatience {
			t.Fatalf("after %v: %v", time.Since(begun), err)
		}
		if b, _, err := ws.ReadFile("go.txt", 0); err != nil || string(b) != "go\n" {
			t.Errorf("it reads %q, %v", b, err)
		}
		leaveToo()
		leave()
		if got := s.reads(t, "go.txt"); got != "" {
			t.Errorf("then it reads %q", got)
		}
		m.Leave(centurion.MissionPaused)
	})
}

// A checkout that could not be recorded is given back: nobody would find it.
func TestCheckoutThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	m, _ := hosted(t)
	own, err := m.Seat(t.Context(), "ses_0", "")
	if err != nil {
		t.Fatal(err)
	}
	m.Ground.prepared = true // that is asked of the store
	if err := m.st.Store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := own.Where.Write(t.Context()); err == nil || own.Checkout() != nil {
		t.Errorf("it has a checkout: %v", err)
	}
	if tip, err := m.Ground.Repo.Tip(t.Context(), m.branchFor("commander", 1)); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("its branch is left at %s, %v", tip, err)
	}
}

// A project without a repository has no checkouts. One that was closed is opened again when it is needed, and only that one is closed.
func TestProjectIsClosed(t *testing.T) {
	t.Parallel()
	m, _ := hosted(t)
	tries, open := 0, m.project.open
	m.project.open = func(ctx context.Context) (*worktree.Repo, error) { tries++; return open(ctx) }
	for range 2 {
		if _, err := m.project.Repository(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(m.project.Close(), m.project.Close()); err != nil {
			t.Error(err)
		}
	}
	if tries != 2 {
		t.Errorf("it was opened %d times", tries)
	}
	_, err := NewProject(nil, nil, nil, nil).Repository(t.Context())
	if centurion.KindOf(err) != centurion.KindNotFound || err.Error() != "this host keeps no checkouts" {
		t.Errorf("without one: %v", err)
	}
}

// A checkout is not exchanged while a call works in it, and no call that has ended, or came to nothing, stands in the way.
func TestExpandWaitsForCalls(t *testing.T) {
	t.Parallel()
	m, _ := hosted(t)
	s := m.seatOf(t)
	expand := func(d time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		return m.Expand(ctx, "tsk_1")
	}
	s.reads(t, "go.txt")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Where.Write(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that has ended: %v", err)
	}
	_, leave, err := s.Where.Write(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := expand(wait); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("during a call: %v", err)
	}
	leave()
	leave()
	s.reads(t, "go.txt")
	if err := expand(time.Minute); err != nil {
		t.Error(err)
	}
	m.Leave(centurion.MissionPaused)
}
