//go:build unix

package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"centurion"
)

var inForce = []string{
	"processes: one group for each command, ended as a whole; a process that leaves its group on purpose survives a command that ends well and does not hold its output",
}

const sweepInForce = "a host that was killed: what it left running is found by its environment and ended by the project's next host"

// terminateSignal asks a process to end.
var terminateSignal os.Signal = syscall.SIGTERM

// child is a command that this process started itself.
type child struct{ cmd *exec.Cmd }

func (c *child) pid() int { return c.cmd.Process.Pid }

func (c *child) wait() int {
	_ = c.cmd.Wait() // the result is read from its state
	return c.cmd.ProcessState.ExitCode()
}

func (c *child) exceeded() string { return "" }

func (c *child) release() {}

// startChild starts a command as a child of this process, in a process group of its own. It sets no parent-death signal: the kernel sends
// that when the forking thread ends, and Go ends threads at will, so it would kill living commands.
func startChild(c centurion.Command, args, env []string, s streams) (*child, error) {
	cmd := &exec.Cmd{Path: args[0], Args: args, Dir: c.Cwd(), Env: env, SysProcAttr: &syscall.SysProcAttr{Setpgid: true}}
	s.set(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &child{cmd}, nil
}

// terminate asks the group to end, and continues stopped processes, which could not handle the signal.
func terminate(p process) {
	_ = syscall.Kill(-p.pid(), syscall.SIGTERM)
	_ = syscall.Kill(-p.pid(), syscall.SIGCONT)
}

func kill(p process) { _ = syscall.Kill(-p.pid(), syscall.SIGKILL) }

// alive reports whether the group has a running member. A group's id is not reused while it has any member.
func alive(p process) bool {
	if err := syscall.Kill(-p.pid(), 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	return runs(p.pid())
}

func findShell() (string, error) {
	// Models write for bash, whatever they are told; a script for sh runs in it, too.
	for _, name := range []string{"bash", "sh"} {
		if shell, err := exec.LookPath(name); err == nil {
			return shell, nil
		}
	}
	return "", &centurion.Error{Op: "run command", Kind: centurion.KindNotFound, Msg: "neither bash nor sh on PATH",
		Hint: "add the directory that holds sh to PATH"}
}
