package workspace

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// On Windows, opening pipes and links does not need these.
const (
	openNonblock = 0
	openNofollow = 0
)

// Windows' codes for a full or failing disk.
const (
	errorDiskFull       = syscall.Errno(112)
	errorHandleDiskFull = syscall.Errno(39)
	errorIODevice       = syscall.Errno(1117)
)

// writeAtomic replaces name in d and syncs the file; Windows handles directories itself.
func writeAtomic(d *os.Root, name string, data []byte, perm fs.FileMode) error {
	temp := "." + name + rand.Text()
	if err := writeNew(d, temp, data, perm); err != nil {
		return err
	}
	if err := d.Rename(temp, name); err != nil {
		return errors.Join(err, d.Remove(temp))
	}
	return nil
}

// diskError reports whether the disk is full or failing.
func diskError(err error) bool {
	return errors.Is(err, errorDiskFull) || errors.Is(err, errorHandleDiskFull) || errors.Is(err, errorIODevice)
}

// syncUnsupported reports true: directories cannot be synced here.
func syncUnsupported(error) bool { return true }
