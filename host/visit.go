package host

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/gofrs/flock"

	"centurion/config"
	"centurion/orchestrator"
	"centurion/orchestrator/retention"
	"centurion/server"
	"centurion/takeover"
	"centurion/workspace"
)

// View is a project as seen by one command: through its host, or through the store if there is none.
type View struct {
	API       server.API
	Place     Place
	Workspace *workspace.Workspace

	getenv func(string) string
	close  func() error
}

// Open opens the project in a directory for one command. The error has centurion.KindNotFound if no mission has run there yet.
func Open(ctx context.Context, dir string, getenv func(string) string) (*View, error) {
	p, ws, err := Locate(dir, getenv)
	if err != nil {
		return nil, err
	}
	return p.Open(ctx, ws, getenv)
}

// Open opens the project at a place. The workspace is closed with the view, and also after an error.
func (p Place) Open(ctx context.Context, ws *workspace.Workspace, getenv func(string) string) (v *View, err error) {
	v = &View{Place: p, Workspace: ws, getenv: getenv}
	if v.API, v.close, err = p.API(ctx); err != nil {
		return nil, errors.Join(err, ws.Close())
	}
	if local := v.Local(); local != nil {
		local.Archive = ws
	}
	return v, nil
}

// Close closes what Open opened.
func (v *View) Close() error { return errors.Join(v.close(), v.Workspace.Close()) }

// Local returns the API of the store if no process hosts the project, else nil.
func (v *View) Local() *server.Local {
	local, _ := v.API.(*server.Local)
	return local
}

// AsHost calls do with the API of the project's host. Without one this process takes its place; the error has centurion.KindConflict if
// another process was faster.
func (v *View) AsHost(ctx context.Context, do func(server.API) error) error {
	local := v.Local()
	if local == nil {
		return do(v.API)
	}
	unlock, err := v.Place.Lock()
	if err != nil {
		return err
	}
	err = errors.Join(local.Store.Own(ctx), v.Workspace.Remember(filepath.Join(v.Place.State, "plans"))) // or the next host mistakes an edit of ours for a stale save
	if err == nil {
		err = v.Beside(do)
	}
	return errors.Join(err, unlock())
}

// Beside calls do with an API that can also read the project's repository, and have a conversation shortened. Unlike AsHost it takes no
// lock.
func (v *View) Beside(do func(server.API) error) error {
	local := v.Local()
	if local == nil {
		return do(v.API)
	}
	cfg, err := config.Load(config.Options{Dir: v.Workspace.Dir(), Env: v.getenv})
	alone := err == nil && cfg.Own.CommitsAlone() // a configuration error is no reason not to merge
	h := orchestrator.New(orchestrator.Config{Store: local.Store, Workspace: v.Workspace, Worktrees: worktrees(v.Place, v.Workspace, nil, "", alone),
		Shadow: shadow(v.Place, v.Workspace, nil)})
	h.Shell.Model = func(ref string) (orchestrator.Model, error) {
		if err != nil {
			return orchestrator.Model{}, err
		}
		return NewModels(cfg, config.Resolved{}).Get(ref)
	}
	return do(&server.Local{Store: local.Store, Host: h, Person: takeover.New(h, local.Store, v.Workspace)})
}

// TidyReport is the result of Tidy, and the process that did it.
type TidyReport struct {
	retention.TidyReport
	Before  int64 `json:"bytes_before"` // of the state file; 0 if it was not compacted
	After   int64 `json:"bytes_after"`
	HostPID int   `json:"host_pid,omitempty"` // the hosting process, if it did it
}

// Tidy archives and removes the remains of ended missions. The project's host does it; without one this process does, and compacts the
// state file too.
func (v *View) Tidy(ctx context.Context, o retention.TidyOptions) (rep TidyReport, err error) {
	local := v.Local()
	if local == nil {
		rep.TidyReport, err = v.API.Tidy(ctx, o)
		if client, ok := v.API.(*server.Client); ok && err == nil {
			info, ierr := client.Info(ctx)
			rep.HostPID, err = info.PID, ierr
		}
		return rep, err
	}
	cfg, err := config.Load(config.Options{Dir: v.Workspace.Dir(), Env: v.getenv})
	if err != nil {
		return rep, err
	}
	unlock, err := v.Place.Lock()
	if err != nil {
		return rep, err
	}
	if err := local.Store.Own(ctx); err != nil {
		return rep, errors.Join(err, unlock())
	}
	h := orchestrator.New(orchestrator.Config{Store: local.Store, Workspace: v.Workspace, Retention: cfg.Own.Retention,
		ArchiveAfter: cfg.Own.ArchiveAfter, ArchiveFailedAfter: cfg.Own.ArchiveFailedAfter, KeepTasks: cfg.Own.KeepTasks,
		Worktrees: worktrees(v.Place, v.Workspace, nil, "", cfg.Own.CommitsAlone())})
	if rep.TidyReport, err = h.Keeper.Tidy(ctx, o); err == nil && !o.DryRun {
		rep.Before, rep.After, err = local.Store.Compact(ctx)
	}
	return rep, errors.Join(err, h.Project.Close(), unlock())
}

// Lock takes the project's lock. The error names the process that holds it.
func (p Place) Lock() (unlock func() error, err error) {
	lock := flock.New(p.lockFile())
	got, err := lock.TryLock()
	if err != nil {
		return nil, StateError(p.State, err)
	}
	if !got {
		return nil, HeldBy(p)
	}
	return lock.Unlock, nil
}
