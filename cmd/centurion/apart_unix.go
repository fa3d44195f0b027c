//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// apart gives a command a session of its own: the end of this terminal does not reach it.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
