package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// mounts are a trial's mounts, all undone at its end.
type mounts struct {
	mu   sync.Mutex // protects the fields below
	dirs []string
}

// command runs one of the system's programs.
func command(ctx context.Context, argv ...string) error {
	ctx, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, lastLines(string(out), 3))
	}
	return nil
}

// tmpfs mounts a tmpfs of the given megabytes at dir, which it creates.
func (m *mounts) tmpfs(ctx context.Context, dir string, mb int) error {
	return m.mount(ctx, dir, "-t", "tmpfs", "-o", "size="+strconv.Itoa(mb)+"m,mode=700", "tmpfs")
}

// image mounts an image file at dir. Its journal is committed on sync and rarely otherwise, so that nothing unsynced is on it by
// chance.
func (m *mounts) image(ctx context.Context, file, dir string) error {
	return m.mount(ctx, dir, "-t", "ext4", "-o", "loop,commit=300", file)
}

func (m *mounts) mount(ctx context.Context, dir string, args ...string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := command(ctx, append(append([]string{"mount"}, args...), dir)...); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dirs = append(m.dirs, dir)
	return nil
}

// unmount undoes the newest mount of dir. Killed processes may hold it for a moment.
func (m *mounts) unmount(dir string) error {
	ctx := context.Background() // even at the end of a stopped trial
	var err error
	if !soon(ctx, goneLimit, func() bool { err = command(ctx, "umount", dir); return err == nil }) {
		if lerr := command(ctx, "umount", "-l", dir); lerr != nil {
			return errors.Join(err, lerr)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := len(m.dirs) - 1; i >= 0; i-- {
		if m.dirs[i] == dir {
			m.dirs = append(m.dirs[:i], m.dirs[i+1:]...)
			break
		}
	}
	return err
}

// close undoes all mounts.
func (m *mounts) close() error {
	var errs []error
	for len(m.dirs) > 0 {
		n := len(m.dirs)
		errs = append(errs, m.unmount(m.dirs[n-1]))
		if len(m.dirs) == n {
			break // it cannot be undone
		}
	}
	return errors.Join(errs...)
}

// newImage makes an empty ext4 image of so many megabytes.
func newImage(ctx context.Context, file string, mb int) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(int64(mb)<<20), f.Close()); err != nil {
		return err
	}
	return command(ctx, "mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", file)
}

// imageBlock is the unit in which an image is copied, in bytes.
const imageBlock = 1 << 20

// freeze copies an image repeatedly until two copies are equal: then all pending writes have reached it.
func freeze(from, to string) error {
	for range 50 {
		if err := copySparse(from, to); err != nil {
			return err
		}
		if same, err := sameFile(from, to); err != nil || same {
			return err
		}
	}
	return fmt.Errorf("%s did not come to rest", filepath.Base(from))
}

func copySparse(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	buf, zero := make([]byte, imageBlock), make([]byte, imageBlock)
	for at := int64(0); ; {
		n, err := io.ReadFull(in, buf)
		if n > 0 && !bytes.Equal(buf[:n], zero[:n]) {
			if _, err := out.WriteAt(buf[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return out.Truncate(at)
		}
		if err != nil {
			return err
		}
	}
}

func sameFile(a, b string) (bool, error) {
	x, err := os.Open(a)
	if err != nil {
		return false, err
	}
	defer func() { _ = x.Close() }() // only read
	y, err := os.Open(b)
	if err != nil {
		return false, err
	}
	defer func() { _ = y.Close() }()
	p, q := make([]byte, imageBlock), make([]byte, imageBlock)
	for {
		n, err := io.ReadFull(x, p)
		k, kerr := io.ReadFull(y, q)
		if n != k || !bytes.Equal(p[:n], q[:k]) {
			return false, nil
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return true, nil
		}
		if err := errors.Join(err, kerr); err != nil {
			return false, err
		}
	}
}
