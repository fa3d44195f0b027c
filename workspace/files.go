package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"centurion"
)

// filePerm and dirPerm are the modes of new files and directories, before the umask.
const (
	filePerm fs.FileMode = 0o644
	dirPerm  fs.FileMode = 0o755
)

// Stat describes a file or directory, following links inside the project. Errors are those of [Workspace.Open].
func (w *Workspace) Stat(rel string) (fs.FileInfo, error) {
	const op = "look at file"
	w, name, err := w.within(rel)
	if err != nil {
		return nil, err
	}
	fi, err := w.root.Stat(name)
	if err != nil {
		return nil, w.fail(op, name, err)
	}
	return fi, nil
}

// Open opens a regular file for reading; the caller closes it. It never blocks, whatever the file is. Errors are KindNotFound (with the
// nearest name in its directory), KindUsage (a directory, pipe or device, which the FileInfo tells) and KindPermission (unreadable, or a
// link that leads outside).
func (w *Workspace) Open(rel string) (io.ReadCloser, fs.FileInfo, error) {
	const op = "read file"
	w, name, err := w.within(rel)
	if err != nil {
		return nil, nil, err
	}
	// Opening a device can have effects, so it is checked first; the second check, of the opened file, is decisive.
	fi, err := w.root.Stat(name)
	if err == nil {
		err = regular(op, name, fi)
	}
	if err != nil {
		return nil, fi, w.fail(op, name, err)
	}
	f, err := w.root.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, nil, w.fail(op, name, err)
	}
	if fi, err = f.Stat(); err == nil {
		err = regular(op, name, fi)
	}
	if err != nil {
		f.Close()
		return nil, fi, w.fail(op, name, err)
	}
	return f, fi, nil
}

func regular(op, name string, fi fs.FileInfo) error {
	switch {
	case fi.Mode().IsRegular():
		return nil
	case fi.IsDir():
		return &centurion.Error{Op: op, Kind: centurion.KindUsage, Msg: name + " is a directory", Hint: "list it instead"}
	}
	what := "a special file"
	switch {
	case fi.Mode()&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case fi.Mode()&fs.ModeSocket != 0:
		what = "a socket"
	case fi.Mode()&fs.ModeDevice != 0:
		what = "a device"
	}
	return &centurion.Error{Op: op, Kind: centurion.KindUsage, Msg: name + " is " + what + ", not a regular file"}
}

// ReadFile reads a regular file of at most limit bytes; 0 means no limit. For a larger file the error is KindUsage and names both
// sizes; other errors are those of [Workspace.Open].
func (w *Workspace) ReadFile(rel string, limit int64) ([]byte, fs.FileInfo, error) {
	const op = "read file"
	f, fi, err := w.Open(rel)
	if err != nil {
		return nil, fi, err
	}
	defer f.Close()
	tooLarge := func(size int64) error {
		return &centurion.Error{Op: op, Kind: centurion.KindUsage,
			Msg:  fmt.Sprintf("%s has %d bytes, more than the %d that are read at once", w.shown(rel), size, limit),
			Hint: "read a part of it"}
	}
	if limit > 0 && fi.Size() > limit {
		return nil, fi, tooLarge(fi.Size())
	}
	var r io.Reader = f
	if limit > 0 {
		r = io.LimitReader(f, limit+1) // it may grow while it is read
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, nil, w.fail(op, rel, err)
	}
	if limit > 0 && int64(len(b)) > limit {
		return nil, fi, tooLarge(int64(len(b)))
	}
	return b, fi, nil
}

// File is the content of a regular file.
type File struct {
	Data    []byte
	Mode    fs.FileMode // also of what exists but is no regular file
	Version string      // as [VersionOf] has it; "" if it does not exist
}

// Read is [Workspace.ReadFile] with the version of the content.
func (w *Workspace) Read(rel string, limit int64) (f File, err error) {
	data, fi, err := w.ReadFile(rel, limit)
	if fi != nil {
		f.Mode = fi.Mode()
	}
	if err == nil {
		f.Data, f.Version = data, VersionOf(data)
	}
	return f, err
}

// Version returns the hash of a file's content as [VersionOf] does, without loading the file into memory, and "" if it does not exist.
func (w *Workspace) Version(rel string) (string, error) {
	f, _, err := w.Open(rel)
	if centurion.KindOf(err) == centurion.KindNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", w.fail("read file", rel, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Replace is [Workspace.WriteFile] if the file still has this version, "" for none. The error is KindConflict if it has another one.
// Writes of other programs in the microseconds between check and write are not noticed.
func (w *Workspace) Replace(rel, version string, data []byte) error {
	switch now, err := w.Version(rel); {
	case err != nil:
		return err
	case now != version:
		return &centurion.Error{Op: "write file", Kind: centurion.KindConflict, Msg: w.shown(rel) + " has changed since you read it; read it again",
			Hint: "it changed while this call was under way; nothing was written"}
	}
	return w.WriteFile(rel, data)
}

// WriteFile replaces a file, or creates it and its parent directories, so that readers and crashes see either the old content or the
// new: it renames a synced temporary file over it and syncs the directory. The mode is kept (new files: 0644 before the umask). For a
// link inside the project it writes the target. Errors are KindPermission (read-only, or a link that leads outside), KindDisk and
// KindUsage (not a regular file). It does not check [Spot.Protected]: the tools do.
func (w *Workspace) WriteFile(rel string, data []byte) error {
	const op = "write file"
	d, name, base, fi, err := w.target(op, rel)
	if err != nil {
		return err
	}
	defer d.Close()
	if fi != nil && fi.Mode().Perm()&0o222 == 0 {
		return &centurion.Error{Op: op, Kind: centurion.KindPermission, Msg: w.shown(name) + " is read-only",
			Hint: "make it writable first, if it is meant to change"}
	}
	if err := writeAtomic(d, base, data, filePerm); err != nil {
		return w.fail(op, name, err)
	}
	return nil
}

// target resolves rel for writing: its directory, created if it is missing, and the name in it. fi is nil for a new file.
func (w *Workspace) target(op, rel string) (d *os.Root, name, base string, fi fs.FileInfo, err error) {
	if w, name, err = w.within(rel); err != nil {
		return nil, "", "", nil, err
	}
	if name, err = w.real(op, name); err != nil {
		return nil, "", "", nil, err
	}
	dir, base := splitRel(name)
	fi, err = w.root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		fi, err = nil, w.root.MkdirAll(dir, dirPerm)
	case err == nil:
		if err := regular(op, name, fi); err != nil {
			return nil, "", "", nil, err
		}
	}
	if err == nil {
		d, err = w.root.OpenRoot(dir)
	}
	if err != nil {
		return nil, "", "", nil, w.fail(op, name, err)
	}
	return d, name, base, fi, nil
}

// syncDir makes a rename in d survive a power cut.
func syncDir(d *os.Root) error {
	f, err := d.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !syncUnsupported(err) {
		return err
	}
	return nil
}

// fail gives a file system error its kind, a message with the project-relative path and a hint. Our own errors pass unchanged.
func (w *Workspace) fail(op, rel string, err error) error {
	if _, ok := errors.AsType[*centurion.Error](err); ok {
		return err
	}
	e, shown := &centurion.Error{Op: op, Kind: kindOf(err)}, w.shown(rel)
	switch {
	case escapes(err):
		e.Msg, e.Hint = shown+" leads outside the project", "use a path that stays inside "+w.dir
	case e.Kind == centurion.KindNotFound:
		e.Msg = shown + " does not exist"
		dir := path.Dir(shown)
		if near, listed := w.nearest(rel); near != "" {
			e.Hint = "did you mean " + path.Join(dir, near) + "?"
		} else if !listed {
			e.Hint = "its directory " + dir + " does not exist either"
		} else {
			e.Hint = "list the directory to see what is there"
		}
	case e.Kind == centurion.KindDisk:
		e.Msg, e.Err, e.Hint = shown, cause(err), "make room on the disk, then try again"
	case e.Kind == centurion.KindPermission:
		e.Msg, e.Err, e.Hint = shown, cause(err), "check the permissions of the file and its directory"
	default:
		e.Msg, e.Err = shown, cause(err)
	}
	return e
}

// escapes reports whether an os.Root refused a path. Its error is not exported.
func escapes(err error) bool {
	return err != nil && strings.Contains(err.Error(), "path escapes from parent")
}

// cause strips the operation and the absolute path from an error of package os.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

func kindOf(err error) centurion.Kind {
	switch {
	case escapes(err), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return centurion.KindPermission
	case errors.Is(err, fs.ErrNotExist):
		return centurion.KindNotFound
	case diskError(err):
		return centurion.KindDisk
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENAMETOOLONG),
		errors.Is(err, syscall.ELOOP):
		return centurion.KindUsage
	case errors.Is(err, fs.ErrExist):
		return centurion.KindConflict
	}
	return centurion.KindInternal
}

// nearest returns the most similar name in the directory of rel, or "". listed is false if there is no such directory.
func (w *Workspace) nearest(rel string) (near string, listed bool) {
	dir, base := splitRel(rel)
	names, _ := w.Names(dir, "")
	return centurion.Nearest(base, names), names != nil
}

// shown is a path as errors name it.
func (w *Workspace) shown(rel string) string {
	if h, ok := w.root.(onHost); ok {
		return filepath.ToSlash(h.at(rel))
	}
	return rel
}

// Remove removes a file, a link (not its target) or an empty directory. A missing one is no error. Errors are KindPermission (also for
// a parent link that leads outside), KindDisk and KindUsage. Like [Workspace.WriteFile] it does not check [Spot.Protected].
func (w *Workspace) Remove(rel string) error {
	const op = "remove file"
	w, name, err := w.within(rel)
	if err != nil {
		return err
	}
	if err := w.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return w.fail(op, name, err)
	}
	return nil
}
