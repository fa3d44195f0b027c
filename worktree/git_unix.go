//go:build unix

package worktree

import (
	"errors"
	"os/exec"
	"syscall"
)

// ownGroup gives git a process group, so that cancelling also ends its filters. Git first gets the chance to remove its locks, and is
// killed if it does not end.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// diskFailed reports whether the disk is full or failing.
func diskFailed(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EIO) || errors.Is(err, syscall.EROFS)
}

// canLink reports whether any user may make symbolic links here.
const canLink = true
