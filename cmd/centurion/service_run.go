package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"centurion"
	"centurion/config"
	"centurion/guard"
	"centurion/server"
	"centurion/workspace"
)

// serviceRun is `centurion service run`: a background host for every project with interrupted missions, until all have
// ended. The hosts are children: they end when ctx does, and leave what they were at to the next ones.
func (c *cli) serviceRun(ctx context.Context) error {
	self, err := executable()
	if err != nil {
		return err
	}
	projects, err := c.stranded(ctx)
	if err != nil {
		return err
	}
	if len(projects) == 0 {
		c.note("no mission was interrupted: there is nothing to bring back")
		return nil
	}
	type end struct {
		dir string
		err error
	}
	ends := make(chan end)
	var g guard.Group
	for _, p := range projects {
		c.note(p.dir + ": goes on with " + strings.Join(ids(p.interrupted()), ", "))
		g.Go("host of "+p.dir, func() error {
			ends <- end{p.dir, guard.Call("host "+p.dir, func() error { return c.child(ctx, self, p.place) })}
			return nil
		})
	}
	var crashed error
	for range projects {
		e := <-ends
		exit, exited := errors.AsType[*exec.ExitError](e.err)
		switch {
		case ctx.Err() != nil:
			c.note(e.dir + ": stopped; what is not done goes on at the next start")
		case e.err == nil:
			c.note(e.dir + ": nothing is left to do")
		case exited && exit.Exited():
			c.note(e.dir + ": its host has failed: " + e.err.Error())
		default: // it was killed or never began: another attempt may help, unlike after an error that it has told
			crashed = &centurion.Error{Op: "host " + e.dir, Kind: centurion.KindCrashed, Err: e.err, Hint: "go on with: centurion service run"}
			c.note(e.dir + ": its host has crashed: " + e.err.Error())
		}
	}
	if err := g.Wait(); err != nil || ctx.Err() != nil {
		return err // to be told to stop is no failure of a service
	}
	return crashed
}

// child runs a background host and waits for it. When ctx ends it is told to end.
func (c *cli) child(ctx context.Context, self string, p place) error {
	cmd := exec.CommandContext(ctx, self, "host", "--dir", p.dir)
	cmd.Stdout, cmd.Stderr = c.err, c.err
	cmd.Dir = p.state // it holds no directory of the person's
	cmd.Env = slices.DeleteFunc(slices.Clone(c.env), func(kv string) bool { return strings.HasPrefix(kv, "CENTURION_HOST=") })
	apart(cmd) // Ctrl-C comes from here, once
	cmd.WaitDelay = stopTime
	cmd.Cancel = func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return cmd.Process.Kill() // a system without that signal
		}
		return nil
	}
	return cmd.Run()
}

// stranded returns the projects with interrupted missions that can be hosted. Why another one cannot is told.
func (c *cli) stranded(ctx context.Context) ([]project, error) {
	state, err := config.StateDir(c.getenv)
	if err != nil {
		return nil, err
	}
	all, err := c.projects(ctx)
	if err != nil {
		return nil, err
	}
	var found []project
	for _, p := range all {
		left := ids(p.interrupted())
		if len(left) == 0 {
			continue
		}
		if err := p.hostable(state); err != nil {
			c.note(fmt.Sprintf("%s of %s stays interrupted: %v", strings.Join(left, ", "), p.dir, err))
			continue
		}
		found = append(found, p)
	}
	return found, nil
}

// hostable returns an error if a host that is started in the project's directory would not find the project.
func (p project) hostable(state string) error {
	ws, err := workspace.Open(p.dir)
	if err != nil {
		return err
	}
	if config.ProjectDir(state, ws.Dir()) != p.state {
		err = &centurion.Error{Kind: centurion.KindConflict, Msg: "the directory has become another project"}
	}
	return errors.Join(err, ws.Close())
}

func ids(all []server.Mission) []string {
	out := make([]string, len(all))
	for i, m := range all {
		out[i] = m.ID
	}
	return out
}
