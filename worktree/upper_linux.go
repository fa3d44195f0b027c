package worktree

import (
	"errors"
	"io/fs"
	"syscall"
	"time"
)

// isWhiteout reports whether an entry of an upper layer stands for one that was removed: a character device with the number 0.
func isWhiteout(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&fs.ModeCharDevice != 0 && st.Rdev == 0
}

// identityOf returns the number of a file and the time of its last change of any kind, which programs cannot set.
func identityOf(info fs.FileInfo) (inode uint64, changed time.Time) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino, time.Unix(st.Ctim.Unix())
	}
	return 0, info.ModTime()
}

// isNotDirectory reports whether a path goes through something that is no directory.
func isNotDirectory(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

// whiteout makes such an entry, which needs no rights.
func whiteout(path string) error { return syscall.Mknod(path, syscall.S_IFCHR, 0) }

// isOpaque reports whether a directory of an upper layer hides the one below it.
func isOpaque(dir string) bool {
	var value [8]byte
	n, err := syscall.Getxattr(dir, "user.overlay.opaque", value[:])
	return err == nil && n == 1 && value[0] == 'y'
}
