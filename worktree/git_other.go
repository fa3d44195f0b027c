//go:build !unix

package worktree

import (
	"errors"
	"os/exec"
	"runtime"
	"syscall"
)

// ownGroup does nothing here: a cancelled git is killed, and its filters end when their pipes close.
func ownGroup(*exec.Cmd) {}

// diskFailed reports whether the disk is full.
func diskFailed(err error) bool { return errors.Is(err, syscall.Errno(112)) } // ERROR_DISK_FULL

// canLink reports whether any user may make symbolic links here.
const canLink = runtime.GOOS != "windows"
