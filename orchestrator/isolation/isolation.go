// Package isolation keeps the writers of a mission apart. It owns the snapshot that the work starts from, the branch that collects the
// work, a checkout for each writing session, and a view for readers. Where all sessions write in the project's own directory, it
// records the trees before and after each task. Other packages decide what is merged.
package isolation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"centurion"
	"centurion/event"
	"centurion/failpoint"
	"centurion/guard"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/text"
	"centurion/workspace"
	"centurion/worktree"
)

// Project is the repository and the file history that all missions of a host share.
type Project struct {
	store      *store.Store
	ws         *workspace.Workspace
	open       func(context.Context) (*worktree.Repo, error)   // nil where there is no repository
	openShadow func(context.Context) (*worktree.Shadow, error) // nil keeps no history

	trees   trees
	opening sync.Mutex                                // held while the repository is opened; protects the fields below
	repo    *worktree.Repo                            // nil until it is needed
	parked  map[centurion.Checkout]*worktree.Checkout // of stopped missions, by location without Start
}

// NewProject returns a project that opens its repository and history on first use.
func NewProject(st *store.Store, ws *workspace.Workspace, open func(context.Context) (*worktree.Repo, error),
	openShadow func(context.Context) (*worktree.Shadow, error)) *Project {
	return &Project{store: st, ws: ws, open: open, openShadow: openShadow}
}

// MayRun asks whether one of the project's own commands may run; what describes the command, since no agent called it.
type MayRun func(ctx context.Context, rec centurion.Mission, command, agent, task, what string) error

// Checkouts are the places where the sessions of one mission work.
type Checkouts struct {
	st      *state.Mission
	project *Project
	mayRun  MayRun
	Ground  *Ground // nil unless the mission is isolated; set before any session runs

	// Wrote is set once the mission's own agent has changed a named file, since this host took over the mission.
	Wrote atomic.Bool

	mu     sync.Mutex            // protects places
	places map[string]*Workplace // by session id
}

// New returns the places of a mission, before any session uses one.
func New(st *state.Mission, project *Project, mayRun MayRun) *Checkouts {
	return &Checkouts{st: st, project: project, mayRun: mayRun, places: map[string]*Workplace{}}
}

// Ground is the base of an isolated mission: the repository, the commit its work starts from, and the branch that collects the work.
type Ground struct {
	Repo  *worktree.Repo
	Setup []string      // commands that make a fresh checkout usable
	Ready chan struct{} // closed when Base and err are set
	Base  centurion.Base
	err   error
	view  view

	preparing sync.Mutex // held while preparing checkouts is approved; protects the fields below
	prepared  bool       // approved, and the person was notified
	toldNone  bool       // the person was notified that there is no checkout
	without   string     // why the last checkout failed; "" if it did not
}

// Isolate decides how the writers of a new mission are isolated. why is a note for the person, or "". The error has centurion.KindUsage
// if requested checkouts are not possible, and inside a git directory.
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
		why = e.Msg // git's own message adds nothing for the person
	}
	return centurion.IsolationShared, "all sessions write in the project's own directory: " + why, nil
}

// Repository opens the project's repository, once per host; a failure is retried at the next call. The error has centurion.KindNotFound
// for a host without checkouts, otherwise it is that of [Config].Worktrees.
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

// Open opens the mission's repository before any session runs. The snapshot is taken in parallel with the first request.
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
			m.st.End(m.Ground.err) // no agent can read or write anything
		}
		return nil
	})
	beside.Go("prepare workspaces", func() error {
		if base, err := m.Base(ctx); err == nil {
			_ = repo.Prepare(ctx, base.Commit) // the first workspace meets the same error
		}
		return nil
	})
	return nil
}

// found takes the snapshot that the mission's work starts from and creates its branch there. A resumed mission has both.
func (m *Checkouts) found(ctx context.Context, rec centurion.Mission) error {
	g := m.Ground
	if rec.Base == nil {
		base, err := g.Repo.Snapshot(ctx, baseRef(m.st.ID), rec.Options.Dirty != "ignore")
		if err != nil {
			return err
		}
		base.Workspaces = g.Repo.Workspaces()
		rec.Base = &base
		failpoint.Hit(failpoint.SnapshotTaken)
	}
	ctx = context.WithoutCancel(ctx) // recorded state must exist: a mission may end before any file is read
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

// origin is the commit at which the mission's branch starts: its base, or the tip of the original mission's branch for a fork.
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

// recordBase stores the base of the mission's work and publishes it.
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

// Base waits for the snapshot and returns it. Only for isolated missions.
func (m *Checkouts) Base(ctx context.Context) (centurion.Base, error) {
	select {
	case <-m.Ground.Ready:
		return m.Ground.Base, m.Ground.err
	case <-ctx.Done():
		return centurion.Base{}, context.Cause(ctx)
	}
}

// Branch is the name of the branch that collects the mission's work, without refs/heads/.
func (m *Checkouts) Branch() string { return BranchOf(m.st.ID) }

// Tip returns the tip of the mission's branch. It waits for the snapshot. Agents can reach the branch through git: if another program has
// moved it since this host did, Tip moves it back and tells the person.
func (m *Checkouts) Tip(ctx context.Context) (string, error) {
	if _, err := m.Base(ctx); err != nil {
		return "", err
	}
	tip, was, err := m.Ground.Repo.Held(ctx, m.Branch())
	if err != nil || was == tip {
		return tip, err
	}
	did := text.If(was == "", "deleted "+m.Branch(), "moved "+m.Branch()+" to "+was+", which is kept under "+worktree.KeptRefs)
	return tip, m.st.Tell(ctx, func(d *event.MissionData) { d.Note = "another program " + did + "; it is back at " + tip })
}

// ViewTo makes commit visible to all later readers, as the tip of the mission's branch. It does not wait for current readers.
func (m *Checkouts) ViewTo(_ context.Context, commit string) error {
	m.Ground.view.to(commit)
	return nil
}

func BranchOf(mission string) string { return BranchPrefix(mission) + "mission" }

// BranchPrefix is the common prefix of all branches of a mission.
func BranchPrefix(mission string) string { return "centurion/" + mission + "/" }

// baseRef is the ref that keeps a mission's snapshot.
func baseRef(mission string) string { return "refs/centurion/" + mission + "/base" }

// InProject turns paths of the repository into paths of the project. Paths outside the project are unchanged.
func (m *Checkouts) InProject(files []string) []string {
	prefix := m.Ground.Repo.Prefix()
	if prefix == "" {
		return files
	}
	out := make([]string, len(files))
	for i, f := range files {
		out[i] = strings.TrimPrefix(f, path.Clean(prefix)+"/")
	}
	return out
}

func (m *Checkouts) SameTree(ctx context.Context, a, b string) (bool, error) {
	one, err := m.Ground.Repo.TreeOf(ctx, a)
	if err != nil {
		return false, err
	}
	other, err := m.Ground.Repo.TreeOf(ctx, b)
	return one == other, err
}

// Changed reports whether the mission has changed any file of the project.
func (m *Checkouts) Changed(ctx context.Context) (bool, error) {
	if m.Isolated() {
		base, err := m.Base(ctx)
		if err != nil {
			return false, err
		}
		tip, err := m.Tip(ctx)
		if err != nil {
			return false, err
		}
		same, err := m.SameTree(ctx, base.Commit, tip)
		return !same, err
	}
	rec, err := m.st.Store.Mission(ctx, m.st.ID)
	if err != nil || m.Wrote.Load() || len(rec.Wrote) > 0 {
		return err == nil, err
	}
	tasks, err := m.st.Store.Tasks(ctx, m.st.ID)
	return slices.ContainsFunc(tasks, func(t centurion.Task) bool { return len(t.Files)+len(t.Landed) > 0 }), err
}
