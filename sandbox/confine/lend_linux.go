package confine

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Give lets commands write below a directory, which is one of Lend or lies in one, but not below the names in it that are protected. It is
// called in a helper that has entered the policy.
func (p Policy) Give(dir string, names []string) error {
	dir, err := p.lent(dir)
	if err != nil {
		return err
	}
	if slices.Contains(p.Lend, dir) { // a mount of its own, so that also a process that works there may write; its names are protected already
		return writable(unix.AT_FDCWD, dir, 0)
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("lend %s: %w", dir, err)
	}
	defer unix.Close(fd)
	if err := writable(fd, "", unix.AT_EMPTY_PATH); err != nil {
		return err
	}
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, dir, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("lend %s: %w", dir, err)
	}
	for _, name := range names {
		path, err := filepath.EvalSymlinks(filepath.Join(dir, name))
		if err != nil || !below(path, []string{dir}) {
			continue // it is not there, or not writable where it is
		}
		if err := protect(path); err != nil {
			return errors.Join(err, p.Take(dir))
		}
	}
	return nil
}

// busyTries and busyPause are how long a directory is waited for in which a command has a file open.
const (
	busyTries = 20
	busyPause = 10 * time.Millisecond
)

// Take ends that: a command with an open file there may still write to it.
func (p Policy) Take(dir string) error {
	dir, err := p.lent(dir)
	if err != nil {
		return err
	}
	if !slices.Contains(p.Lend, dir) {
		return unix.Unmount(dir, unix.MNT_DETACH)
	}
	for range busyTries {
		if err = readOnly(dir); !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(busyPause)
	}
	return err
}

func (p Policy) lent(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err == nil && !below(real, p.Lend) {
		err = fmt.Errorf("%s is not lent here", dir)
	}
	return real, err
}

func writable(at int, path string, flags uint) error {
	if err := unix.MountSetattr(at, path, flags, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("lend %s: %w", path, err)
	}
	return nil
}
