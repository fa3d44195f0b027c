package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"centurion"
	"centurion/config"
	"centurion/guard"
	"centurion/server"
	"centurion/text"
	"centurion/workspace"
)

// RunInterrupted runs a background host for every project with interrupted missions, until all have ended. The hosts are child
// processes: they end when ctx does, and leave unfinished work to the next ones.
func RunInterrupted(ctx context.Context, getenv func(string) string, output io.Writer, env []string, note func(string)) error {
	self, err := Executable()
	if err != nil {
		return err
	}
	projects, err := InterruptedProjects(ctx, getenv, note)
	if err != nil {
		return err
	}
	if len(projects) == 0 {
		note("no mission was interrupted: there is nothing to resume")
		return nil
	}
	type end struct {
		dir string
		err error
	}
	ends := make(chan end)
	var g guard.Group
	for _, p := range projects {
		note(p.Dir + ": resuming " + strings.Join(missionIDs(p.Interrupted()), ", "))
		g.Go("host of "+p.Dir, func() error {
			ends <- end{p.Dir, guard.Call("host "+p.Dir, func() error { return p.runBackground(ctx, self, output, env) })}
			return nil
		})
	}
	var crashed error
	for range projects {
		e := <-ends
		exit, exited := errors.AsType[*exec.ExitError](e.err)
		switch {
		case ctx.Err() != nil:
			note(e.dir + ": stopped; unfinished missions resume at the next start")
		case e.err == nil:
			note(e.dir + ": nothing is left to do")
		case exited && exit.Exited():
			note(e.dir + ": its host has failed: " + e.err.Error())
		default: // it was killed or never started: unlike after an error it reported, another attempt may help
			crashed = &centurion.Error{Op: "host " + e.dir, Kind: centurion.KindCrashed, Err: e.err, Hint: "continue with: centurion service run"}
			note(e.dir + ": its host has crashed: " + e.err.Error())
		}
	}
	if err := g.Wait(); err != nil || ctx.Err() != nil {
		return err // being told to stop is no failure of a service
	}
	return crashed
}

// runBackground runs a background host and waits for it. When ctx ends, it asks the host to end.
func (p Place) runBackground(ctx context.Context, self string, output io.Writer, env []string) error {
	cmd := p.hostCommand(ctx, self, "", output, env)
	cmd.WaitDelay = pauseTimeout
	cmd.Cancel = func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return cmd.Process.Kill() // a system without that signal
		}
		return nil
	}
	return cmd.Run()
}

// InterruptedProjects returns the projects with interrupted missions that can be hosted. note gets the reasons for the others.
func InterruptedProjects(ctx context.Context, getenv func(string) string, note func(string)) ([]Project, error) {
	state, err := config.StateDir(getenv)
	if err != nil {
		return nil, err
	}
	all, err := Projects(ctx, getenv, note)
	if err != nil {
		return nil, err
	}
	var found []Project
	for _, p := range all {
		left := missionIDs(p.Interrupted())
		if len(left) == 0 {
			continue
		}
		if err := p.checkHostable(state); err != nil {
			note(fmt.Sprintf("%s of %s stays interrupted: %v", strings.Join(left, ", "), p.Dir, err))
			continue
		}
		found = append(found, p)
	}
	return found, nil
}

// checkHostable returns an error if a host started in the project's directory would not find the project.
func (p Project) checkHostable(state string) error {
	ws, err := workspace.Open(p.Dir)
	if err != nil {
		return err
	}
	if config.ProjectDir(state, ws.Dir()) != p.State {
		err = &centurion.Error{Kind: centurion.KindConflict, Msg: "the directory has become another project"}
	}
	return errors.Join(err, ws.Close())
}

func missionIDs(all []server.Mission) []string {
	return text.Each(all, func(m server.Mission) string { return m.ID })
}

// hostCommand returns a background host of the project as a separate process: Ctrl-C in this terminal does not reach it, and it
// occupies no directory of the person. sandbox is how it confines commands, "" to leave that to the configuration.
func (p Place) hostCommand(ctx context.Context, self, sandbox string, output io.Writer, env []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, self, "host", "--dir", p.Dir, "--sandbox="+sandbox)
	cmd.Stdout, cmd.Stderr, cmd.Dir = output, output, p.State
	cmd.Env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, "CENTURION_HOST=") })
	detach(cmd)
	return cmd
}
