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

// isolate gives the command a process group of its own. The parent-death signal is left out: the kernel sends it when
// the thread that forked ends, and Go ends threads as it likes, so that it would kill living commands.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate asks the group to end, and wakes what has been stopped: it could not hear the request.
func terminate(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGCONT)
}

func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// alive reports whether the group has a member that still runs. A group's number is not given away again while it has
// any member.
func alive(cmd *exec.Cmd) bool {
	if err := syscall.Kill(-cmd.Process.Pid, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	return runs(cmd.Process.Pid)
}

func findShell() (string, error) {
	// Models write for bash, whatever they are told; a script for sh runs in it as well.
	for _, name := range []string{"bash", "sh"} {
		if shell, err := exec.LookPath(name); err == nil {
			return shell, nil
		}
	}
	return "", &centurion.Error{Op: "run command", Kind: centurion.KindNotFound, Msg: "neither bash nor sh on PATH",
		Hint: "add the directory that holds sh to PATH"}
}
