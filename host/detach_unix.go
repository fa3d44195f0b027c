//go:build unix

package host

import (
	"os/exec"
	"syscall"
)

// detach gives a command a session of its own: the end of this terminal does not reach it.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
