package sandbox

import (
	"os"
	"os/exec"

	"centurion"
)

// process is the shell of a command that was started.
type process interface {
	pid() int         // as this process sees it; also the number of its process group
	wait() int        // until the shell has exited; its exit code, -1 after a signal
	exceeded() string // after wait: the limit for which the command was killed; "" if for none
}

// child is a command that this process started itself.
type child struct{ cmd *exec.Cmd }

func (c *child) pid() int { return c.cmd.Process.Pid }

func (c *child) wait() int {
	_ = c.cmd.Wait() // the result is read from its state
	return c.cmd.ProcessState.ExitCode()
}

func (c *child) exceeded() string { return "" }

// startChild starts a command as a child of this process.
func startChild(c centurion.Command, args, env []string, out *os.File) (*child, error) {
	cmd := &exec.Cmd{Path: args[0], Args: args, Dir: c.Dir, Env: env, Stdout: out, Stderr: out}
	isolate(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &child{cmd}, nil
}
