//go:build unix

package trial

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// inGroup starts a command in its own process group, so that it can be ended with its children.
func inGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endGroup ends a process group, which may be gone.
func endGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// endProcess ends a process, which may be gone.
func endProcess(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }

// freeSpace returns how many bytes are free on a directory's disk, 0 if unknown.
func freeSpace(dir string) uint64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0
	}
	return uint64(s.Bavail) * uint64(s.Bsize)
}

// inodeOf returns a file's number as in the kernel's list of locks.
func inodeOf(path string) string {
	st, err := os.Stat(path)
	if err != nil {
		return "none"
	}
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return strconv.FormatUint(uint64(s.Ino), 10)
	}
	return "none"
}
