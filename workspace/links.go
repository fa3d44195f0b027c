package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"centurion"
)

// maxLinks limits the links that are followed for one path, as Linux does.
const maxLinks = 40

// reach is how the files of a workspace are reached: through an *os.Root, or outside of every workspace by their names on the host.
type reach interface {
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	Readlink(name string) (string, error)
	Open(name string) (*os.File, error)
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	OpenRoot(name string) (*os.Root, error)
	MkdirAll(name string, perm fs.FileMode) error
	Rename(from, to string) error
	Remove(name string) error
	Close() error
}

// onHost is the files below a directory of the host that is in no workspace.
type onHost string

func (h onHost) at(name string) string                        { return filepath.Join(string(h), filepath.FromSlash(name)) }
func (h onHost) Stat(name string) (fs.FileInfo, error)        { return os.Stat(h.at(name)) }
func (h onHost) Lstat(name string) (fs.FileInfo, error)       { return os.Lstat(h.at(name)) }
func (h onHost) Readlink(name string) (string, error)         { return os.Readlink(h.at(name)) }
func (h onHost) Open(name string) (*os.File, error)           { return os.Open(h.at(name)) }
func (h onHost) OpenRoot(name string) (*os.Root, error)       { return os.OpenRoot(h.at(name)) }
func (h onHost) MkdirAll(name string, perm fs.FileMode) error { return os.MkdirAll(h.at(name), perm) }
func (h onHost) Rename(from, to string) error                 { return os.Rename(h.at(from), h.at(to)) }
func (h onHost) Remove(name string) error                     { return os.Remove(h.at(name)) }
func (h onHost) Close() error                                 { return nil }
func (h onHost) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(h.at(name), flag, perm)
}

// hostFiles returns the files of the host around an absolute name that is in no workspace, and the name among them.
func hostFiles(abs string) (*Workspace, string) {
	top := filepath.VolumeName(abs) + string(filepath.Separator)
	rel, _ := below(top, abs)
	return &Workspace{dir: top, given: top, root: onHost(top)}, rel
}

// Spot is where a path leads when its links are followed: an existing file or directory, or one that may be made.
type Spot struct {
	In      *Workspace // has its files: the workspace itself, the project for .opencode/, or the host's other files
	Rel     string     // its path in In
	Name    string     // for models: relative to the workspace as it was given, with slashes; absolute and resolved if it is outside
	Outside bool       // it is in no workspace
}

// Abs returns the absolute name that commands of the workspace use.
func (s Spot) Abs() string { return filepath.Join(s.In.dir, filepath.FromSlash(s.Rel)) }

// Protected reports whether the file tools of an agent must not write there: .opencode/ and everything called .git, in any case.
func (s Spot) Protected() bool {
	return !s.Outside && (protectedName(s.Rel) || protectedName(s.Name))
}

// Find returns where a path leads. It is relative to the workspace or absolute, may leave it, and is cleaned first. What does not exist,
// or is a link that leads nowhere, is at the place of its own name. Errors are KindUsage: an empty path, or one with a NUL.
func (w *Workspace) Find(given string) (Spot, error) {
	name, err := w.Rel(given)
	full := given
	switch {
	case err == nil:
		full = filepath.Join(w.dir, filepath.FromSlash(name))
	case centurion.KindOf(err) != centurion.KindPermission:
		return Spot{}, err
	case !filepath.IsAbs(given):
		full = filepath.Join(w.dir, given)
	}
	full = w.follow(filepath.Clean(full))
	if in, rel, ok := w.Holds(full); ok {
		if err != nil {
			name = rel
		}
		return Spot{In: in, Rel: rel, Name: name}, nil
	}
	in, rel := hostFiles(full)
	return Spot{In: in, Rel: rel, Name: filepath.ToSlash(full), Outside: true}, nil
}

// FindFile is [Workspace.Find] and, unless that is outside, [Workspace.Read] in one call. The spot is valid if it has an In, whatever the
// error.
func (w *Workspace) FindFile(given string, limit int64) (Spot, File, error) {
	s, err := w.Find(given)
	if err != nil || s.Outside {
		return s, File{}, err
	}
	f, err := s.In.Read(s.Rel, limit)
	return s, f, err
}

// FollowLinks resolves the links of the existing part of an absolute path of the host.
func FollowLinks(name string) string {
	h, _ := hostFiles(name)
	return h.follow(name)
}

// follow resolves the links of the existing part of an absolute path.
func (w *Workspace) follow(name string) string {
	links := 0
	at, parts := w.start(name)
	for i, part := range parts {
		next, err := w.step(at, part, &links)
		if err != nil {
			return filepath.Join(at, filepath.Join(parts[i:]...))
		}
		at = next
	}
	return at
}

// start divides an absolute name into a directory without links and the names below it.
func (w *Workspace) start(name string) (at string, parts []string) {
	at = filepath.VolumeName(name) + string(filepath.Separator)
	if rest, ok := strings.CutPrefix(name, w.dir); ok && (rest == "" || os.IsPathSeparator(rest[0]) || len(w.dir) == len(at)) {
		at = w.dir
	}
	return at, strings.Split(name[min(len(at), len(name)):], string(filepath.Separator))
}

// step goes from a directory without links to a name in it, and follows that if it is a link. It looks at the workspace's own files
// through its root, so that a target in its directory is in it whatever the host has there.
func (w *Workspace) step(at, part string, links *int) (string, error) {
	switch part {
	case "", ".":
		return at, nil
	case "..":
		return filepath.Dir(at), nil
	}
	next := filepath.Join(at, part)
	in, rel := w.reach(next)
	fi, err := in.Lstat(rel)
	if err != nil {
		return "", err
	}
	if fi.Mode()&fs.ModeSymlink == 0 {
		if _, host := in.(onHost); host && runtime.GOOS == "windows" {
			return filepath.EvalSymlinks(next) // a short name becomes the long one
		}
		return next, nil
	}
	if *links++; *links > maxLinks {
		return "", &fs.PathError{Op: "follow", Path: next, Err: syscall.ELOOP}
	}
	to, err := in.Readlink(rel)
	if err != nil {
		return "", err
	}
	to = filepath.FromSlash(to)
	if filepath.IsAbs(to) {
		volume := filepath.VolumeName(to) + string(filepath.Separator)
		at, to = volume, to[len(volume):]
	}
	for part := range strings.SplitSeq(to, string(filepath.Separator)) {
		if at, err = w.step(at, part, links); err != nil {
			return "", err
		}
	}
	return at, nil
}

// reach returns what has the files at an absolute name, whose directory is resolved, and the name there.
func (w *Workspace) reach(abs string) (reach, string) {
	if in, rel, ok := w.Holds(abs); ok {
		return in.root, rel
	}
	in, rel := hostFiles(abs)
	return in.root, rel
}

// entries lists a directory with an absolute, resolved name, in no order; nothing if it is none or cannot be read.
func (w *Workspace) entries(abs string) []fs.DirEntry {
	in, rel := w.reach(abs)
	if fi, err := in.Lstat(rel); err != nil || !fi.IsDir() {
		return nil
	}
	d, err := in.Open(rel)
	if err != nil {
		return nil
	}
	defer d.Close()
	found, _ := d.ReadDir(-1)
	return found
}
