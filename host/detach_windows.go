package host

import (
	"os/exec"
	"syscall"
)

// Windows' process flags: no console, and its own group, so that it survives this console.
const (
	detachedProcess = 0x00000008
	newProcessGroup = 0x00000200
)

// detach starts a command apart from this console.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: detachedProcess | newProcessGroup}
}
