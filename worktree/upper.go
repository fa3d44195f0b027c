package worktree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// upperFile is a file or link in the upper layer of a workspace.
type upperFile struct {
	path string // relative, with slashes
	info fs.FileInfo
}

// upper is what the upper layer of a workspace holds: everything that was changed there, in the order of the walk.
type upper struct {
	files  []upperFile
	gone   []string // files and directories that were removed
	opaque []string // directories that hide everything of the same name below them
	nested []string // directories with a git repository of their own, which are not entered
	dirs   []string // directories that were entered
	left   []string // directories that were not
}

// walk adds what is in a directory of an upper layer at dir. skip leaves directories out, and what disappears meanwhile is left out, too: a
// tool or command may be writing.
func (u *upper) walk(dir, below string, skip func(path string) bool) error {
	start := filepath.Join(dir, filepath.FromSlash(below))
	return filepath.WalkDir(start, func(at string, d fs.DirEntry, err error) error {
		if at != dir && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || at == start {
			return err
		}
		rel, err := filepath.Rel(dir, at)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		info, err := d.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case isWhiteout(info):
			u.gone = append(u.gone, rel)
		case !d.IsDir():
			u.files = append(u.files, upperFile{rel, info})
		case skip(rel):
			u.left = append(u.left, rel)
			return filepath.SkipDir
		default:
			u.dirs = append(u.dirs, rel)
			if isOpaque(at) {
				u.opaque = append(u.opaque, rel)
			}
			if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
				u.nested = append(u.nested, rel)
				return filepath.SkipDir
			}
		}
		return nil
	})
}

// under reports whether a path is dir or lies below it.
func under(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir) && len(path) > len(dir) && path[len(dir)] == '/'
}
