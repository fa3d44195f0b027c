//go:build !windows

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/google/renameio/v2"
)

// openNonblock keeps open from waiting for the other end of a named pipe; openNofollow keeps it from following a link.
const (
	openNonblock = syscall.O_NONBLOCK
	openNofollow = syscall.O_NOFOLLOW
)

// writeAtomic replaces name in d, keeping its mode, and syncs the file and the directory.
func writeAtomic(d *os.Root, name string, data []byte, perm fs.FileMode) error {
	err := renameio.WriteFile(name, data, perm, renameio.WithRoot(d))
	if err != nil {
		return err
	}
	return syncDir(d)
}

// diskError reports whether the disk is full, over its quota or failing.
func diskError(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EIO)
}

// syncUnsupported reports whether a file system cannot sync directories, and so does not need it.
func syncUnsupported(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP)
}
