//go:build unix

package host

import (
	"os/exec"
	"syscall"
)

// detach gives a command its own session, so that it survives this terminal.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
