package isolation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"centurion"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/workspace"
	"centurion/worktree"
)

// hosted is a mission of a repository with the file go.txt, and a task tsk_1 of the session ses_1. next gives it to another host.
func hosted(t *testing.T) (m *Checkouts, next func() *Checkouts) {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	git(t, dir, "init", "-q")
	if err := os.WriteFile(filepath.Join(dir, "go.txt"), []byte("go\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "first")
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	ws, werr := workspace.Open(dir)
	if err != nil || werr != nil {
		t.Fatal(err, werr)
	}
	t.Cleanup(func() { _, _ = s.Close(), ws.Close() })
	rec := centurion.Mission{ID: "msn_1", Session: "ses_0", Status: centurion.MissionRunning, Isolation: centurion.IsolationWorktree}
	if err := s.Update(t.Context(), func(tx *store.Tx) error {
		return errors.Join(tx.PutMission(&rec), tx.PutSession(&centurion.Session{ID: "ses_0"}),
			tx.PutTask(&centurion.Task{ID: "tsk_1", Mission: "msn_1", Item: "T1", Session: "ses_1", Status: centurion.TaskRunning}))
	}); err != nil {
		t.Fatal(err)
	}
	next = func() *Checkouts {
		t.Helper()
		repo, err := worktree.Open(t.Context(), worktree.Options{Dir: dir, Home: home, Workspaces: worktree.WorkspacesCheckout})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = repo.Close() })
		m := New(state.New(t.Context(), nil, s, rec, nil), NewProject(s, ws, func(context.Context) (*worktree.Repo, error) { return repo, nil }, nil), nil)
		ready := make(chan struct{})
		close(ready)
		m.Ground = &Ground{Repo: repo, Ready: ready}
		now, err := s.Mission(t.Context(), "msn_1")
		if err == nil {
			err = m.found(t.Context(), now)
		}
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	return next(), next
}

func (m *Checkouts) seatOf(t *testing.T) Seat {
	t.Helper()
	s, err := m.Seat(t.Context(), "ses_1", "tsk_1")
	if err != nil || s.Holder != "T1" || s.HoldsFor != "tsk_1" || s.Where == nil || !s.ownPlace {
		t.Fatalf("%+v, %v", s, err)
	}
	return s
}

// writes changes a file of the session.
func (s Seat) writes(t *testing.T, name, text string) {
	t.Helper()
	ws, leave, err := s.Where.Write(t.Context())
	if err == nil {
		err = ws.WriteFile(name, []byte(text))
		leave()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// reads is a file as the session sees it, "" if there is none.
func (s Seat) reads(t *testing.T, name string) string {
	t.Helper()
	ws, leave, err := s.Where.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	b, _, err := ws.ReadFile(name, 0)
	if err != nil && centurion.KindOf(err) != centurion.KindNotFound {
		t.Fatal(err)
	}
	return string(b)
}

// A session reads the mission's branch until it writes; then it has a checkout of its own, which the next host finds with all in it. One that
// somebody has deleted is made again on a branch of its own, with the work that was committed.
func TestCheckoutIsFoundAgain(t *testing.T) {
	t.Parallel()
	m, next := hosted(t)
	s := m.seatOf(t)
	if s.reads(t, "go.txt") != "go\n" || s.Checkout() != nil {
		t.Error("it reads in a checkout of its own")
	}
	s.writes(t, "a", "one\n")
	if s.reads(t, "a") != "one\n" || s.Checkout() == nil {
		t.Error("it does not read what it has written")
	}
	at := s.Checkout().Where()
	if rec, err := s.Where.recorded(t.Context()); err != nil || rec == nil || *rec != at || at.Branch != "centurion/msn_1/tsk_1" {
		t.Errorf("recorded %+v, %v, it is at %+v", rec, err, at)
	}
	m.Leave(centurion.MissionPaused)
	m = next()
	if s = m.seatOf(t); s.reads(t, "a") != "one\n" || s.Checkout().Where() != at {
		t.Error("the next host has not found it")
	}
	if _, err := s.Checkout().Commit(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	m.Leave(centurion.MissionPaused)
	m = next()
	if err := os.RemoveAll(at.Dir); err != nil {
		t.Fatal(err)
	}
	s = m.seatOf(t)
	if s.Checkout() == nil || s.Checkout().Where().Branch != "centurion/msn_1/tsk_1-2" || s.reads(t, "a") != "one\n" {
		t.Fatalf("it is at %+v", s.Checkout())
	}
	if f, err := s.Where.TakeUp(t.Context(), true); err != nil || fmt.Sprintf("%+v", f) != fmt.Sprintf("%+v", Footing{At: s.Checkout().Where().Start, Left: []string{"a"}}) {
		t.Errorf("%+v, %v", f, err)
	}
	task, err := m.st.Store.Task(t.Context(), "tsk_1")
	if err != nil {
		t.Fatal(err)
	}
	note, record := m.Vacate(t.Context(), task)
	if note != "what it changed and what was not merged stands on the branch centurion/msn_1/tsk_1-2" || record == nil {
		t.Errorf("%q", note)
	}
	if err := m.st.Store.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	if rec, err := s.Where.recorded(t.Context()); err != nil || rec != nil {
		t.Errorf("recorded %+v, %v", rec, err)
	}
	m.Leave(centurion.MissionPaused)
}

// A checkout follows the mission's branch once all of its work is there, and stays where it is before that, which is no error.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	m, _ := hosted(t)
	s := m.seatOf(t)
	if err := m.CatchUp(t.Context(), &s); err != nil {
		t.Error(err)
	}
	s.writes(t, "a", "one\n")
	commit, err := s.Checkout().Commit(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	base := m.Ground.Base.Commit
	if same, err := m.SameTree(t.Context(), base, commit.ID); err != nil || same {
		t.Errorf("the same files: %v, %v", same, err)
	}
	if changed, err := m.Changed(t.Context()); err != nil || changed {
		t.Errorf("the mission has changed something: %v, %v", changed, err)
	}
	if err := m.Ground.Repo.Advance(t.Context(), m.Branch(), base, commit.ID); err != nil {
		t.Fatal(err)
	}
	if changed, err := m.Changed(t.Context()); err != nil || !changed {
		t.Errorf("the mission has changed something: %v, %v", changed, err)
	}
	if err := m.CatchUp(t.Context(), &s); err != nil || s.Checkout().Where().Start != base { // its branch has a commit that it does not stand on
		t.Errorf("with work of its own: %+v, %v", s.Checkout().Where(), err)
	}
	if err := errors.Join(s.Checkout().Move(t.Context(), commit.ID), s.KeepPlace(t.Context())); err != nil {
		t.Fatal(err)
	}
	own, err := m.Seat(t.Context(), "ses_0", "")
	if err != nil {
		t.Fatal(err)
	}
	own.writes(t, "b", "two\n")
	other, err := own.Checkout().Commit(t.Context(), "two")
	if err == nil {
		err = m.Ground.Repo.Advance(t.Context(), m.Branch(), commit.ID, other.ID)
	}
	if err := errors.Join(err, m.CatchUp(t.Context(), &s)); err != nil {
		t.Fatal(err)
	}
	if s.Checkout().Where().Start != other.ID || s.reads(t, "b") != "two\n" {
		t.Errorf("it has not followed: %+v", s.Checkout().Where())
	}
	if rec, err := s.Where.recorded(t.Context()); err != nil || rec.Start != other.ID {
		t.Errorf("recorded %+v, %v", rec, err)
	}
	s.writes(t, "c", "not committed\n")
	if err := errors.Join(m.Ground.Repo.Advance(t.Context(), m.Branch(), other.ID, commit.ID), m.CatchUp(t.Context(), &s)); err != nil {
		t.Errorf("with work that is not committed: %v", err)
	}
	if s.Checkout().Where().Start != other.ID || s.reads(t, "c") != "not committed\n" {
		t.Errorf("with work that is not committed it is at %+v", s.Checkout().Where())
	}
	m.Leave(centurion.MissionPaused)
}

// The repository of a project is opened once; a failure is no answer for the next caller.
func TestRepositoryIsOpenedOnce(t *testing.T) {
	t.Parallel()
	tries, broken := 0, errors.New("no git today")
	p := NewProject(nil, nil, func(context.Context) (*worktree.Repo, error) {
		if tries++; tries == 1 {
			return nil, broken
		}
		return new(worktree.Repo), nil
	}, nil)
	if _, err := p.Repository(t.Context()); !errors.Is(err, broken) {
		t.Error(err)
	}
	first, err := p.Repository(t.Context())
	again, err2 := p.Repository(t.Context())
	if err != nil || err2 != nil || first != again || tries != 2 {
		t.Errorf("it was opened %d times: %v, %v", tries, err, err2)
	}
}
