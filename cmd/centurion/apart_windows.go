package main

import (
	"os/exec"
	"syscall"
)

// Windows' flags of a process: no console, and a group of its own, so that the end of this console does not reach it.
const (
	detachedProcess = 0x00000008
	newProcessGroup = 0x00000200
)

// apart starts a command apart from this console.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: detachedProcess | newProcessGroup}
}
