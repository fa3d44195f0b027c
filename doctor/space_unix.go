//go:build unix

package doctor

import "golang.org/x/sys/unix"

// freeSpace returns how many bytes this user may still write to the file system of dir.
func freeSpace(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil // their types differ between systems
}
