package host

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/gofrs/flock"

	"centurion/config"
	"centurion/orchestrator"
	"centurion/server"
	"centurion/store"
	"centurion/takeover"
	"centurion/workspace"
)

// Lock takes the project's lock, unless another process hosts the project: then the error says which.
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

// AsHost calls do as the project's host, which this process is for so long. The error has centurion.KindConflict if another process is.
func AsHost(ctx context.Context, p Place, ws *workspace.Workspace, local *server.Local, getenv func(string) string, do func(*server.Local) error) error {
	unlock, err := p.Lock()
	if err != nil {
		return err
	}
	err = errors.Join(local.Store.Own(ctx), ws.Remember(filepath.Join(p.State, "plans"))) // or the next host takes an edit of ours for a stale save
	if err == nil {
		err = do(Visit(local.Store, p, ws, getenv))
	}
	return errors.Join(err, unlock())
}

// Visit serves the API of a project for the time of one command. Nothing works on its missions meanwhile.
func Visit(s *store.Store, p Place, ws *workspace.Workspace, getenv func(string) string) *server.Local {
	cfg, err := config.Load(config.Options{Dir: ws.Dir(), Env: getenv})
	alone := err == nil && cfg.Own.CommitsAlone() // a mistake in the configuration is no reason not to merge
	h := orchestrator.New(orchestrator.Config{Store: s, Workspace: ws, Worktrees: Worktrees(p, ws, nil, alone), Shadow: shadow(p, ws, nil)})
	return &server.Local{Store: s, Host: h, Person: takeover.New(h, s, ws)}
}
