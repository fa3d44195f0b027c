package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"centurion"
	"centurion/config"
	"centurion/guard"
	"centurion/host"
	"centurion/provider/scripted"
	"centurion/workspace"
	"centurion/worktree"
)

// Stage is the place of a demonstration.
type Stage struct {
	Dir     string // holds everything
	Project string
	State   string
	URL     string // of the model
	Model   *scripted.Model
}

// StageIn returns the stage of a demonstration in dir.
func StageIn(dir string) Stage {
	project := filepath.Join(dir, "pocket")
	return Stage{Dir: dir, Project: project, State: config.ProjectDir(filepath.Join(dir, "home"), project)}
}

// NewStage unpacks the sample project into a new directory and starts the scripted model. conf overrides the scenario. It prints on out
// where everything is, unless that is nil.
func NewStage(ctx context.Context, out io.Writer, hurry bool, conf scripted.Config) (Stage, error) {
	dir, err := os.MkdirTemp("", "centurion-demo-")
	if err != nil {
		return Stage{}, &centurion.Error{Op: "make the sample project", Kind: centurion.KindDisk, Err: err, Hint: "set TMPDIR to a directory that can be written"}
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil { // as seen by a command run there
		dir = real
	}
	s := StageIn(dir)
	if err := Unpack(s.Project); err != nil {
		return s, &centurion.Error{Op: "make the sample project", Kind: centurion.KindDisk, Err: err}
	}
	// Without git the writers share the directory, and checks are not tested for their worth.
	if err := worktree.Init(ctx, s.Project, "The sample project"); err != nil && centurion.KindOf(err) != centurion.KindNotFound {
		return s, err
	}
	if conf.Scenario, err = Scenario(hurry); err != nil {
		return s, err
	}
	s.Model = scripted.New(conf)
	if s.URL, err = s.Model.Serve(); err != nil {
		return s, errors.Join(err, s.Model.Close())
	}
	if out != nil {
		fmt.Fprintf(out, "A sample project: %s\nIts model is scripted and answers over %s; the rest is real.\n", s.Project, s.URL)
	}
	return s, nil
}

// parentPoll is how often a child checks whether its parent is alive: nothing announces the death of a killed parent, and an orphan
// should not work on unwatched for long.
const parentPoll = 200 * time.Millisecond

// WhileParent runs f with a context that ends when this process's parent changes.
func WhileParent(ctx context.Context, parent int, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch guard.Group
	watch.Go("watch parent", func() error {
		tick := time.NewTicker(parentPoll)
		defer tick.Stop()
		for os.Getppid() == parent {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return nil
			}
		}
		cancel(centurion.ErrShutdown)
		return nil
	})
	err := f(ctx)
	cancel(nil)
	return errors.Join(err, watch.Wait())
}

func (s Stage) place() host.Place {
	return host.Place{Dir: s.Project, State: s.State, Token: "demo"}
}

// Open opens the demonstration's project, as a command does.
func (s Stage) Open(ctx context.Context, getenv func(string) string) (*host.View, error) {
	ws, err := workspace.Open(s.Project)
	if err != nil {
		return nil, err
	}
	return s.place().Open(ctx, ws, getenv)
}

// Host becomes the host of the demonstration and returns the id of its mission, which it starts, or resumes if a host was killed.
// notify overrides the setting for desktop notices. The caller closes the connection's workspace.
func (s Stage) Host(ctx context.Context, how host.Options, notify *bool) (*host.Connection, string, error) {
	p := s.place()
	ws, err := workspace.Open(p.Dir)
	if err != nil {
		return nil, "", err
	}
	conn, id, err := s.host(ctx, p, ws, how, notify)
	if err != nil {
		err = errors.Join(err, ws.Close())
	}
	return conn, id, err
}

func (s Stage) host(ctx context.Context, p host.Place, ws *workspace.Workspace, how host.Options, notify *bool) (*host.Connection, string, error) {
	if err := os.MkdirAll(p.State, 0o700); err != nil {
		return nil, "", host.StateError(p.State, err)
	}
	// An empty environment and home make the demonstration independent of the person's configuration.
	cfg, err := config.Load(config.Options{Dir: ws.Dir(), Home: p.State, Env: func(string) string { return "" }})
	if err != nil {
		return nil, "", err
	}
	if notify != nil {
		cfg.Own.Notify = notify
	}
	models := host.NewModels(cfg, config.Resolved{Model: centurion.ModelRef{Provider: "scripted", ID: "demo"}, BaseURL: s.URL,
		Limit: config.Limit{Context: 128_000, Output: 16_000}, Price: &centurion.Price{Input: 1.25, Output: 10, CacheRead: 0.125}})
	// A host that was killed while starting a command leaves its lock to that command for some milliseconds.
	conn := &host.Connection{Place: p, Workspace: ws, Config: cfg, Models: models, Options: how, Note: func(string) {}}
	if err := conn.ConnectOrOwn(ctx, host.FirstTimeout); err != nil {
		return nil, "", err
	}
	h := conn.Host()
	if h == nil {
		return nil, "", host.HeldBy(p)
	}
	m, err := conn.API().Mission(ctx, "")
	switch {
	case centurion.KindOf(err) == centurion.KindNotFound:
		// The sample project is ours, so its commands need no asking.
		m, err = conn.API().Start(ctx, Goal, centurion.MissionOptions{Model: models.First.Model.String(), MaxCost: 1, Ask: "allow", TrustVerify: true})
	case err == nil:
		err = h.Launch(m.ID) // the mission of a killed host already runs
	}
	if err != nil {
		return nil, "", errors.Join(err, h.Close())
	}
	return conn, m.ID, nil
}
