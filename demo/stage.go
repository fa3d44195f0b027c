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
	"centurion/provider/scripted"
	"centurion/worktree"
)

// Stage is what a demonstration takes place on.
type Stage struct {
	Dir     string // holds everything
	Project string
	State   string
	URL     string // of the model
	Model   *scripted.Model
}

// StageIn returns the stage that a demonstration in dir has.
func StageIn(dir string) Stage {
	project := filepath.Join(dir, "pocket")
	return Stage{Dir: dir, Project: project, State: config.ProjectDir(filepath.Join(dir, "home"), project)}
}

// NewStage unpacks the sample project into a directory of its own and starts the scripted model. What conf leaves open
// is as the scenario says. It says on out where everything is, unless that is nil.
func NewStage(ctx context.Context, out io.Writer, hurry bool, conf scripted.Config) (Stage, error) {
	dir, err := os.MkdirTemp("", "centurion-demo-")
	if err != nil {
		return Stage{}, &centurion.Error{Op: "make the sample project", Kind: centurion.KindDisk, Err: err, Hint: "set TMPDIR to a directory that can be written"}
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil { // as a command that is called there sees it
		dir = real
	}
	s := StageIn(dir)
	if err := Unpack(s.Project); err != nil {
		return s, &centurion.Error{Op: "make the sample project", Kind: centurion.KindDisk, Err: err}
	}
	// Without git the writers share the directory, and what a check is worth is not tried.
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

// parentPoll is how often a child looks whether its parent still lives: nothing announces the end of a parent that was
// killed, and an orphan that nobody watches should not work on for long.
const parentPoll = 200 * time.Millisecond

// WhileParent runs f with a context that ends when this process has another parent than it had.
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
