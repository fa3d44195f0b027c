package confine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// HelperAttrs returns how a helper process may be started, the best way first: in namespaces of its own, with the same user and the
// capabilities that [Enter] and [Policy.Launch] need there, which count in its own user namespace only. Root needs no such namespace: a
// container may forbid them and still have all capabilities. Without one only Landlock keeps a command of root from devices.
func HelperAttrs() []*syscall.SysProcAttr {
	const own = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	uid, gid := os.Getuid(), os.Getgid()
	all := []*syscall.SysProcAttr{{
		Cloneflags:  unix.CLONE_NEWUSER | own,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER,
			unix.CAP_CHOWN, unix.CAP_FSETID, unix.CAP_MKNOD},
	}}
	if uid == 0 && Landlock() > 0 {
		all = append(all, &syscall.SysProcAttr{Cloneflags: own})
	}
	return all
}

// Enter furnishes the namespaces of this process, a helper: everything can only be read, hidden paths are empty, and what the policy
// lets commands write is put on top. It returns the policy with its paths resolved, and only those caches that can be written.
func Enter(p Policy) (Policy, error) {
	p = p.real()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return p, fmt.Errorf("make mounts private: %w", err)
	}
	if p.Overlay != nil {
		if err := p.Overlay.mount(); err != nil {
			return p, err
		}
	}
	trees, err := p.takeTrees()
	if err != nil {
		return p, err
	}
	var home []tree
	if slices.ContainsFunc(p.Empty, func(dir string) bool { return p.Home != dir && below(p.Home, []string{dir}) }) {
		t, err := take(p.Home, true)
		if err != nil {
			return p, err
		}
		home = append(home, t)
	}
	aside, _ := unix.OpenTree(unix.AT_FDCWD, p.Aside, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC) // negative if there is none
	beneath, _ := unix.OpenTree(unix.AT_FDCWD, p.Below, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err := readOnly("/"); err != nil {
		return p, err
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return p, fmt.Errorf("mount /proc: %w", err)
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("800"), 0o644) // commands before everything else; without it nothing is unsafe
	if os.Getuid() == 0 {
		for _, switches := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/scsi", "/proc/acpi"} {
			if err := protect(switches); err != nil { // they are root's own files, whatever its capabilities
				return p, err
			}
		}
	}
	emptied, err := p.hide(home)
	if err != nil {
		return p, err
	}
	p.Caches = p.layCaches(aside, beneath)
	for _, t := range trees {
		if err := errors.Join(t.put(), p.hideIn(t.path, &emptied)); err != nil {
			return p, err
		}
	}
	for _, path := range p.Protect {
		if err := protect(path); err != nil {
			return p, err
		}
	}
	for _, dir := range emptied { // not before: mount points were made in them
		if err := readOnly(dir); err != nil {
			return p, err
		}
	}
	return p, nil
}

// real follows the links of all paths, and leaves out those that do not exist.
func (p Policy) real() Policy {
	p.Read, p.Hide, p.Protect, p.Caches, p.Write = resolved(p.Read), resolved(p.Hide), resolved(p.Protect), resolved(p.Caches), resolved(p.Write)
	p.Lend = resolved(p.Lend)
	p.Empty, p.Home = resolved(p.Empty), strings.Join(resolved([]string{p.Home}), "")
	shorter := func(a, b string) int { return len(a) - len(b) }
	for _, list := range [][]string{p.Read, p.Hide, p.Protect, p.Caches} {
		slices.SortStableFunc(list, shorter) // a directory before what lies in it
	}
	p.Caches = slices.DeleteFunc(p.Caches, func(dir string) bool {
		i := slices.Index(p.Caches, dir)
		return below(dir, p.Caches[:i]) || below(dir, p.Write)
	})
	return p
}

// tree is a part of the file system that is put back on top.
type tree struct {
	path string
	fd   int
}

// takeTrees copies the mounts of the paths that stay as they are while everything around them changes.
func (p Policy) takeTrees() (trees []tree, err error) {
	for i, path := range slices.Concat(p.Read, p.Lend, p.Write) {
		t, err := take(path, i < len(p.Read)+len(p.Lend))
		if err != nil {
			return nil, err
		}
		trees = append(trees, t)
	}
	slices.SortStableFunc(trees, func(a, b tree) int { return len(a.path) - len(b.path) })
	return trees, nil
}

// take copies the mounts of a path.
func take(path string, readOnly bool) (tree, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err == nil && readOnly {
		err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	}
	if err != nil {
		return tree{}, fmt.Errorf("take %s: %w", path, err)
	}
	return tree{path, fd}, nil
}

// put puts a tree back to its path, which is made if it has been emptied away.
func (t tree) put() error {
	defer unix.Close(t.fd)
	if err := os.MkdirAll(t.path, 0o755); err != nil {
		return fmt.Errorf("put %s back: %w", t.path, err)
	}
	if err := unix.MoveMount(t.fd, "", unix.AT_FDCWD, t.path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("put %s back: %w", t.path, err)
	}
	return nil
}

// readOnly makes a directory and all mounts below it read-only.
func readOnly(dir string) error {
	err := unix.MountSetattr(unix.AT_FDCWD, dir, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if dir == "/" {
		err = unix.MountSetattr(unix.AT_FDCWD, dir, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	}
	if err != nil {
		return fmt.Errorf("make %s read-only: %w", dir, err)
	}
	return nil
}

// protect makes a path below a writable one read-only.
func protect(path string) error {
	t, err := take(path, true)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err == nil {
		defer unix.Close(t.fd)
		err = unix.MoveMount(t.fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
	}
	if err != nil {
		return fmt.Errorf("protect %s: %w", path, err)
	}
	return nil
}

// hide empties the temporary and the hidden paths, and in between puts back what lies in the temporary ones and stays, so that what is
// hidden there is hidden, too. It returns the hidden directories, which are still writable.
func (p Policy) hide(stays []tree) (emptied []string, err error) {
	for _, dir := range p.Empty {
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777,size=50%"); err != nil {
			return nil, fmt.Errorf("empty %s: %w", dir, err)
		}
	}
	for _, t := range stays {
		if err := t.put(); err != nil {
			return nil, err
		}
	}
	err = p.hideIn("/", &emptied)
	return emptied, err
}

// hideIn empties the hidden paths below a directory, and adds the directories to emptied.
func (p Policy) hideIn(dir string, emptied *[]string) error {
	for _, path := range p.Hide {
		info, err := os.Lstat(path)
		if err != nil || path == dir || !below(path, []string{dir}) {
			continue // it lies elsewhere, or in something that is empty now
		}
		if info.IsDir() {
			err = unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=64k")
		} else {
			err = unix.Mount("/dev/null", path, "", unix.MS_BIND, "")
		}
		switch _, gone := os.Lstat(path); {
		case err == nil && info.IsDir():
			*emptied = append(*emptied, path)
		case err != nil && !errors.Is(gone, os.ErrNotExist): // else it was removed meanwhile, as programs do with their sockets
			return fmt.Errorf("hide %s: %w", path, err)
		}
	}
	return nil
}

// layCaches lays a writable layer over each cache directory and returns those where that worked. aside is a mount for what is written, and
// beneath one of what others have written; it closes both. Older kernels, and file systems that are layers themselves, refuse.
func (p Policy) layCaches(aside, beneath int) (laid []string) {
	at, leave := p.show(aside, "aside")
	defer leave()
	others, leave := p.show(beneath, "beneath")
	defer leave()
	if at == "" {
		return nil
	}
	for _, dir := range p.Caches {
		sum := sha256.Sum256([]byte(dir)) // the same for each workspace, whatever other caches there are
		name := hex.EncodeToString(sum[:8])
		lower := []string{dir}
		if more := filepath.Join(others, name, "upper"); others != "" && isDir(more) {
			lower = []string{more, dir}
		}
		upper, work := filepath.Join(at, name, "upper"), filepath.Join(at, name, "work")
		if errors.Join(os.MkdirAll(upper, 0o700), os.MkdirAll(work, 0o700)) == nil && overlay(dir, lower, upper, work) == nil {
			laid = append(laid, dir)
		}
	}
	return laid
}

// show mounts a tree where only the helper sees it: it is gone before the first command. at is empty if that is not possible.
func (p Policy) show(tree int, name string) (at string, leave func()) {
	leave = func() {}
	if tree < 0 || len(p.Empty) == 0 {
		return "", leave
	}
	defer unix.Close(tree)
	at = filepath.Join(p.Empty[0], name)
	if os.Mkdir(at, 0o700) != nil {
		return "", leave
	}
	if unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH) != nil {
		_ = os.Remove(at)
		return "", leave
	}
	return at, func() {
		_ = unix.Unmount(at, unix.MNT_DETACH)
		_ = os.Remove(at)
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// overlay mounts layers at a directory.
func overlay(at string, lower []string, upper, work string) error {
	// A name with a comma or a colon would need escapes that differ by kernel; a descriptor has neither.
	var names []string
	for _, dir := range append([]string{upper, work}, lower...) {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open layer %s: %w", dir, err)
		}
		defer unix.Close(fd)
		names = append(names, "/proc/self/fd/"+strconv.Itoa(fd))
	}
	options := "upperdir=" + names[0] + ",workdir=" + names[1] + ",lowerdir=" + strings.Join(names[2:], ":") + ",userxattr"
	return unix.Mount("overlay", at, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options)
}

// mount mounts a workspace of layers, and what is shown in it.
func (o *Overlay) mount() error {
	fds := make([]int, len(o.Binds))
	for i, b := range o.Binds { // before the layers lie over them
		fd, err := unix.OpenTree(unix.AT_FDCWD, b.From, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err != nil {
			return fmt.Errorf("take %s: %w", b.From, err)
		}
		defer unix.Close(fd)
		if !b.Write {
			if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
				return fmt.Errorf("make %s read-only: %w", b.From, err)
			}
		}
		fds[i] = fd
	}
	if err := overlay(o.At, o.Lower, o.Upper, o.Work); err != nil {
		return fmt.Errorf("mount layers: %w", err)
	}
	for i, b := range o.Binds {
		if err := unix.MoveMount(fds[i], "", unix.AT_FDCWD, b.To, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("show %s in the workspace: %w", b.From, err)
		}
	}
	return nil
}
