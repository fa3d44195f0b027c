package isolation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"centurion"
	"centurion/event"
	"centurion/failpoint"
	"centurion/guard"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/worktree"
)

// Ground is what a mission stands on whose writers are kept apart: the repository, the commit that its work starts from,
// and the branch on which that work is put together.
type Ground struct {
	Repo  *worktree.Repo
	Setup []string      // commands that make a fresh checkout usable
	Ready chan struct{} // closed when base and err are set
	Base  centurion.Base
	err   error
	view  view

	preparing sync.Mutex // held while it is asked whether checkouts may be set up; protects what follows
	prepared  bool       // that was asked, and told
	toldNone  bool       // that a checkout cannot be had was told
	without   string     // why the newest checkout could not be had; "" if it could
}

// Isolate decides how the writers of a new mission are kept apart. why is told to the person, if there is something to
// tell. The error has centurion.KindUsage if checkouts are asked for and cannot be had, and inside a git directory.
func (p *Project) Isolate(ctx context.Context, opts centurion.MissionOptions) (isolation, why string, err error) {
	const op = "start mission"
	want := cmp.Or(opts.Isolation, centurion.IsolationAuto)
	switch {
	case want != centurion.IsolationAuto && want != centurion.IsolationShared && want != centurion.IsolationWorktree:
		return "", "", &centurion.Error{Op: op, Kind: centurion.KindUsage, Msg: fmt.Sprintf("there is no isolation %q", want),
			Hint: "it is one of auto, shared and worktree"}
	case want == centurion.IsolationShared || want == centurion.IsolationAuto && p.open == nil:
		return centurion.IsolationShared, "", nil
	}
	_, err = p.Repository(ctx)
	_, insideGit := errors.AsType[worktree.InsideGitError](err)
	switch {
	case want == centurion.IsolationAuto && insideGit: // agents would write among git's own files
		return "", "", &centurion.Error{Op: op, Kind: centurion.KindUsage, Msg: "no agent is to write here", Err: err,
			Hint: centurion.HintOf(err) + ", or say --isolation shared if it is meant"}
	case want == centurion.IsolationAuto && state.Alone(opts.Profile):
		return centurion.IsolationShared, "", nil
	case err == nil:
		return centurion.IsolationWorktree, "", nil
	case ctx.Err() != nil:
		return "", "", context.Cause(ctx)
	case want == centurion.IsolationWorktree:
		return "", "", &centurion.Error{Op: op, Kind: centurion.KindUsage, Msg: "--isolation worktree is not possible here",
			Hint: cmp.Or(centurion.HintOf(err), "make it a git repository with `git init`, or use --isolation shared"), Err: err}
	}
	why = err.Error()
	if e, ok := errors.AsType[*centurion.Error](err); ok && e.Kind == centurion.KindNotFound && e.Msg != "" {
		why = e.Msg // what git said of it tells nobody more
	}
	return centurion.IsolationShared, "all sessions write in the project's own directory: " + why, nil
}

// Repository opens the project's repository, once a host. What is not there is looked for again the next time: the error has
// centurion.KindNotFound for a host that keeps no checkouts, else it is that of [Config].Worktrees.
func (p *Project) Repository(ctx context.Context) (*worktree.Repo, error) {
	if p.open == nil {
		return nil, &centurion.Error{Kind: centurion.KindNotFound, Msg: "this host keeps no checkouts"}
	}
	p.opening.Lock()
	defer p.opening.Unlock()
	if p.repo != nil {
		return p.repo, nil
	}
	repo, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	p.repo = repo
	return repo, nil
}

// Open opens what the mission stands on, before anything of it runs. The snapshot is taken beside the first request.
func (m *Checkouts) Open(ctx context.Context, rec centurion.Mission, beside *guard.Group) error {
	if rec.Isolation != centurion.IsolationWorktree {
		return nil
	}
	repo, err := m.project.Repository(ctx)
	if err != nil {
		return err
	}
	repo.RetrySetups()
	m.Ground = &Ground{Repo: repo, Setup: rec.Options.Setup, Ready: make(chan struct{})}
	beside.Go("snapshot", func() error {
		defer close(m.Ground.Ready)
		m.Ground.err = guard.Call("snapshot", func() error { return m.found(ctx, rec) })
		if m.Ground.err != nil && ctx.Err() == nil {
			m.st.End(m.Ground.err) // nobody can read or write anything
		}
		return nil
	})
	return nil
}

// found takes the snapshot that the mission's work starts from and makes its branch there. A mission that goes on has both.
func (m *Checkouts) found(ctx context.Context, rec centurion.Mission) error {
	g := m.Ground
	if rec.Base == nil {
		base, err := g.Repo.Snapshot(ctx, baseRef(m.st.ID), rec.Options.Dirty != "ignore")
		if err != nil {
			return err
		}
		rec.Base = &base
		failpoint.Hit(failpoint.SnapshotTaken)
	}
	ctx = context.WithoutCancel(ctx) // what is recorded is there: a mission may end before anybody has read a file
	if rec.Branch == "" {
		if err := m.recordBase(ctx, *rec.Base); err != nil {
			return err
		}
	}
	g.Base = *rec.Base
	_, err := g.Repo.Tip(ctx, m.Branch())
	if centurion.KindOf(err) != centurion.KindNotFound {
		return err
	}
	from, err := m.origin(ctx, rec)
	if err != nil {
		return err
	}
	return g.Repo.Advance(ctx, m.Branch(), "", from)
}

// origin is the commit that the mission's branch begins at: its base, or for a copy of another mission where that one's
// branch is.
func (m *Checkouts) origin(ctx context.Context, rec centurion.Mission) (string, error) {
	s, err := m.st.Store.Session(ctx, rec.Session)
	if err != nil || s.Metadata.ForkedFrom == nil {
		return rec.Base.Commit, err
	}
	tip, err := m.Ground.Repo.Tip(ctx, BranchOf(s.Metadata.ForkedFrom.Mission))
	if centurion.KindOf(err) == centurion.KindNotFound {
		return rec.Base.Commit, nil
	}
	return tip, err
}

// recordBase keeps what the mission's work starts from and tells of it.
func (m *Checkouts) recordBase(ctx context.Context, base centurion.Base) error {
	return m.st.Store.Update(ctx, func(tx *store.Tx) error {
		rec, err := tx.Mission(m.st.ID)
		if err != nil {
			return err
		}
		rec.Base, rec.Branch = &base, m.Branch()
		if err := tx.PutMission(&rec); err != nil {
			return err
		}
		d := state.Living(rec)
		_, err = tx.Append(centurion.Event{Type: centurion.EventMissionUpdated, Mission: m.st.ID, Session: rec.Session, Data: event.Data(d)})
		return err
	})
}

// Isolated reports whether the mission's writers have checkouts of their own.
func (m *Checkouts) Isolated() bool { return m.Ground != nil }

// Base waits for the snapshot and returns it. Only for a mission that is isolated.
func (m *Checkouts) Base(ctx context.Context) (centurion.Base, error) {
	select {
	case <-m.Ground.Ready:
		return m.Ground.Base, m.Ground.err
	case <-ctx.Done():
		return centurion.Base{}, context.Cause(ctx)
	}
}

// Branch is the name of the branch on which the mission's work is put together, without refs/heads/.
func (m *Checkouts) Branch() string { return BranchOf(m.st.ID) }

// Tip returns the commit at which the mission's branch stands. It waits for the snapshot.
func (m *Checkouts) Tip(ctx context.Context) (string, error) {
	if _, err := m.Base(ctx); err != nil {
		return "", err
	}
	return m.Ground.Repo.Tip(ctx, m.Branch())
}

// ViewTo says that the mission's branch stands at commit: whoever reads from now on reads that. It does not wait for those
// who read at the moment.
func (m *Checkouts) ViewTo(_ context.Context, commit string) error {
	m.Ground.view.to(commit)
	return nil
}

func BranchOf(mission string) string { return BranchPrefix(mission) + "mission" }

// BranchPrefix is what all branches of a mission begin with.
func BranchPrefix(mission string) string { return "centurion/" + mission + "/" }

// baseRef keeps the snapshot of a mission alive.
func baseRef(mission string) string { return "refs/centurion/" + mission + "/base" }
