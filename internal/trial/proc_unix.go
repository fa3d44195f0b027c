//go:build unix

package trial

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// inGroup starts a command in a process group of its own, so that it can be ended with what it has started.
func inGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endGroup ends a process group, which may be gone.
func endGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// endProcess ends a process, which may be gone.
func endProcess(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }

// freeSpace is how many bytes are free on the disk of a directory, 0 if nobody knows.
func freeSpace(dir string) uint64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0
	}
	return uint64(s.Bavail) * uint64(s.Bsize)
}

// inodeOf returns the number of a file, as the kernel's list of locks names it.
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
