package orchestrator

import (
	"os"
	"syscall"
)

// inMemory puts the tests' directories on a file system in memory where the machine has one with room: what they wait for
// otherwise is mostly the disk, at each commit of a state. It returns what removes them.
func inMemory() func() {
	const memory, room = "/dev/shm", 1 << 30
	var fs syscall.Statfs_t
	if err := syscall.Statfs(memory, &fs); err != nil || os.Getenv("TMPDIR") != "" || uint64(fs.Bsize)*fs.Bavail < room {
		return func() {}
	}
	dir, err := os.MkdirTemp(memory, "centurion-test-")
	if err != nil {
		return func() {}
	}
	os.Setenv("TMPDIR", dir)
	return func() { os.RemoveAll(dir) }
}
