package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The rights of Landlock's versions. A right that the kernel does not know must not be asked for.
const (
	readRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	netRights = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
)

// Landlock returns the version of Landlock that the kernel offers, 0 for none.
func Landlock() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// fsRights returns all rights to files that a version knows.
func fsRights(version int) uint64 {
	rights := uint64(unix.LANDLOCK_ACCESS_FS_REFER - 1)
	for _, added := range []struct {
		version int
		right   uint64
	}{{2, unix.LANDLOCK_ACCESS_FS_REFER}, {3, unix.LANDLOCK_ACCESS_FS_TRUNCATE}, {5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV}, {9, unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX}} {
		if version >= added.version {
			rights |= added.right
		}
	}
	return rights
}

// ruleset is a Landlock ruleset under construction.
type ruleset struct {
	fd  int
	all uint64 // the rights to files that it handles
}

// newRuleset makes a ruleset that forbids everything that the kernel's version of Landlock can forbid: all access to files, with
// network also TCP, with alone also signals to processes outside and their abstract sockets.
func newRuleset(version int, network, alone bool) (*ruleset, error) {
	r := &ruleset{all: fsRights(version)}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: r.all}
	size := unsafe.Sizeof(attr.Handled_access_fs)
	if version >= 4 {
		size = unsafe.Offsetof(attr.Scoped)
		if !network {
			attr.Handled_access_net = netRights
		}
	}
	if version >= 6 {
		size = unsafe.Offsetof(attr.Scoped) + unsafe.Sizeof(attr.Scoped)
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		if alone {
			attr.Scoped |= unix.LANDLOCK_SCOPE_SIGNAL
		}
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return nil, fmt.Errorf("make Landlock ruleset: %w", errno)
	}
	r.fd = int(fd)
	return r, nil
}

// allow grants rights below a path; a path that does not exist is passed over.
func (r *ruleset) allow(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
			return nil
		}
		return fmt.Errorf("allow %s: %w", path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("allow %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights & r.all, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("allow %s: %w", path, errno)
	}
	return nil
}

// allowBut grants rights below a directory except to what is hidden in it: Landlock only adds rights, so the neighbours of a hidden path are
// granted one by one. New entries beside a hidden path are not granted.
func (r *ruleset) allowBut(dir string, rights uint64, hidden []string) error {
	hidden = slices.DeleteFunc(slices.Clone(hidden), func(h string) bool { return h == dir || !below(h, []string{dir}) })
	if len(hidden) == 0 {
		return r.allow(dir, rights)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // what cannot be listed is not granted
	}
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		if e.Type()&os.ModeSymlink != 0 || slices.Contains(hidden, at) {
			continue // the target of a link is judged where it lies
		}
		if err := r.allowBut(at, rights, hidden); err != nil {
			return err
		}
	}
	return nil
}

// devices are what every program may expect to write to.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"}

// rules makes the ruleset of a policy. With emptied, hidden paths are not there any more, and caches are laid over.
func (p Policy) rules(version int, emptied, network bool) (*ruleset, error) {
	r, err := newRuleset(version, network || emptied, !emptied)
	if err != nil {
		return nil, err
	}
	var hidden []string
	write := append(append([]string{}, devices...), p.Write...)
	if emptied {
		write = slices.Concat(write, p.Empty, p.Caches, p.Lend) // mounts keep from what is not lent
		err = r.allow("/", readRights)
	} else {
		write, hidden = append(write, p.Temp), resolved(p.Hide)
		for _, path := range append([]string{"/"}, p.Read...) {
			err = errors.Join(err, r.allowBut(path, readRights, hidden))
		}
	}
	for _, path := range write {
		if path != "" {
			err = errors.Join(err, r.allowBut(path, r.all, hidden))
		}
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// resolved follows the links in paths and leaves out those that do not exist.
func resolved(paths []string) (out []string) {
	for _, p := range paths {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			out = append(out, real)
		}
	}
	return out
}

// restrict confines the calling thread, and what it starts, for good.
func (r *ruleset) restrict() error {
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0); errno != 0 {
		return fmt.Errorf("restrict thread by Landlock: %w", errno)
	}
	return nil
}

func (r *ruleset) close() { _ = unix.Close(r.fd) }
