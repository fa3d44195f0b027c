package workspace

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// exchange swaps two names in d atomically and returns false if the file system does not support that.
func exchange(d *os.Root, a, b string) (bool, error) {
	dir, err := d.Open(".")
	if err != nil {
		return false, err
	}
	defer dir.Close()
	fd := int(dir.Fd())
	err = unix.Renameat2(fd, a, fd, b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) {
		return false, nil
	}
	return err == nil, err
}
