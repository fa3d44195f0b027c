package host

import (
	"os/exec"
	"syscall"
)

// Windows' flags of a process: no console, and a group of its own, so that the end of this console does not reach it.
const (
	detachedProcess = 0x00000008
	newProcessGroup = 0x00000200
)

// detach starts a command apart from this console.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: detachedProcess | newProcessGroup}
}
