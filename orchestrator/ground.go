package orchestrator

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

// ground is what a mission stands on whose writers are kept apart: the repository, the commit that its work starts from,
// and the branch on which that work is put together.
type ground struct {
	repo  *worktree.Repo
	setup []string      // commands that make a fresh checkout usable
	ready chan struct{} // closed when base and err are set
	base  centurion.Base
	err   error
	view  view

	preparing sync.Mutex // held while it is asked whether checkouts may be set up; protects what follows
	prepared  bool       // that was asked, and told
	toldNone  bool       // that a checkout cannot be had was told
	without   string     // why the newest checkout could not be had; "" if it could
}

// isolate decides how the writers of a new mission are kept apart. why is told to the person, if there is something to
// tell. The error has centurion.KindUsage if checkouts are asked for and cannot be had, and inside a git directory.
func (h *Host) isolate(ctx context.Context, opts centurion.MissionOptions) (isolation, why string, err error) {
	const op = "start mission"
	want := cmp.Or(opts.Isolation, centurion.IsolationAuto)
	switch {
	case want != centurion.IsolationAuto && want != centurion.IsolationShared && want != centurion.IsolationWorktree:
		return "", "", &centurion.Error{Op: op, Kind: centurion.KindUsage, Msg: fmt.Sprintf("there is no isolation %q", want),
			Hint: "it is one of auto, shared and worktree"}
	case want == centurion.IsolationShared || want == centurion.IsolationAuto && h.cfg.Worktrees == nil:
		return centurion.IsolationShared, "", nil
	}
	_, err = h.Repository(ctx)
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
func (h *Host) Repository(ctx context.Context) (*worktree.Repo, error) {
	if h.cfg.Worktrees == nil {
		return nil, &centurion.Error{Kind: centurion.KindNotFound, Msg: "this host keeps no checkouts"}
	}
	h.opening.Lock()
	defer h.opening.Unlock()
	if h.repo != nil {
		return h.repo, nil
	}
	repo, err := h.cfg.Worktrees(ctx)
	if err != nil {
		return nil, err
	}
	h.repo = repo
	return repo, nil
}

// stand opens what the mission stands on, before anything of it runs. The snapshot is taken beside the first request.
func (m *mission) stand(ctx context.Context, rec centurion.Mission, beside *guard.Group) error {
	if rec.Isolation != centurion.IsolationWorktree {
		return nil
	}
	repo, err := m.h.Repository(ctx)
	if err != nil {
		return err
	}
	repo.RetrySetups()
	m.ground = &ground{repo: repo, setup: rec.Options.Setup, ready: make(chan struct{})}
	m.claims.Apart = true
	beside.Go("snapshot", func() error {
		defer close(m.ground.ready)
		m.ground.err = guard.Call("snapshot", func() error { return m.found(ctx, rec) })
		if m.ground.err != nil && ctx.Err() == nil {
			m.st.End(m.ground.err) // nobody can read or write anything
		}
		return nil
	})
	return nil
}

// found takes the snapshot that the mission's work starts from and makes its branch there. A mission that goes on has both.
func (m *mission) found(ctx context.Context, rec centurion.Mission) error {
	g := m.ground
	if rec.Base == nil {
		base, err := g.repo.Snapshot(ctx, baseRef(m.st.ID), rec.Options.Dirty != "ignore")
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
	g.base = *rec.Base
	_, err := g.repo.Tip(ctx, m.branch())
	if centurion.KindOf(err) != centurion.KindNotFound {
		return err
	}
	from, err := m.origin(ctx, rec)
	if err != nil {
		return err
	}
	return g.repo.Advance(ctx, m.branch(), "", from)
}

// origin is the commit that the mission's branch begins at: its base, or for a copy of another mission where that one's
// branch is.
func (m *mission) origin(ctx context.Context, rec centurion.Mission) (string, error) {
	s, err := m.h.cfg.Store.Session(ctx, rec.Session)
	if err != nil || s.Metadata.ForkedFrom == nil {
		return rec.Base.Commit, err
	}
	tip, err := m.ground.repo.Tip(ctx, branchOf(s.Metadata.ForkedFrom.Mission))
	if centurion.KindOf(err) == centurion.KindNotFound {
		return rec.Base.Commit, nil
	}
	return tip, err
}

// recordBase keeps what the mission's work starts from and tells of it.
func (m *mission) recordBase(ctx context.Context, base centurion.Base) error {
	return m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		rec, err := tx.Mission(m.st.ID)
		if err != nil {
			return err
		}
		rec.Base, rec.Branch = &base, m.branch()
		if err := tx.PutMission(&rec); err != nil {
			return err
		}
		d := state.Living(rec)
		_, err = tx.Append(centurion.Event{Type: centurion.EventMissionUpdated, Mission: m.st.ID, Session: rec.Session, Data: event.Data(d)})
		return err
	})
}

// isolated reports whether the mission's writers have checkouts of their own.
func (m *mission) isolated() bool { return m.ground != nil }

// base waits for the snapshot and returns it. Only for a mission that is isolated.
func (m *mission) base(ctx context.Context) (centurion.Base, error) {
	select {
	case <-m.ground.ready:
		return m.ground.base, m.ground.err
	case <-ctx.Done():
		return centurion.Base{}, context.Cause(ctx)
	}
}

// branch is the name of the branch on which the mission's work is put together, without refs/heads/.
func (m *mission) branch() string { return branchOf(m.st.ID) }

// tip returns the commit at which the mission's branch stands. It waits for the snapshot.
func (m *mission) tip(ctx context.Context) (string, error) {
	if _, err := m.base(ctx); err != nil {
		return "", err
	}
	return m.ground.repo.Tip(ctx, m.branch())
}

// viewTo says that the mission's branch stands at commit: whoever reads from now on reads that. It does not wait for those
// who read at the moment.
func (m *mission) viewTo(_ context.Context, commit string) error {
	m.ground.view.to(commit)
	return nil
}

func branchOf(mission string) string { return branchPrefix(mission) + "mission" }

// branchPrefix is what all branches of a mission begin with.
func branchPrefix(mission string) string { return "centurion/" + mission + "/" }

// baseRef keeps the snapshot of a mission alive.
func baseRef(mission string) string { return "refs/centurion/" + mission + "/base" }
