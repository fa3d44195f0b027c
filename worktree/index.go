package worktree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// temp returns a name for a temporary index. remove deletes it and its lock.
func (o *objects) temp() (path string, remove func(), err error) {
	dir := filepath.Join(o.opts.Home, "tmp")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, failed("make a temporary index", "cannot make its directory", err)
	}
	sub, err := os.MkdirTemp(dir, "index")
	if err != nil {
		return "", nil, failed("make a temporary index", "cannot make its directory", err)
	}
	return filepath.Join(sub, "index"), func() { os.RemoveAll(sub) }, nil
}

// copyIndex copies an index with its time. Git treats files as changed unless they are older than the index; with a newer time, a file
// written between index and copy, with the same size, would count as unchanged. A missing index is an empty one.
func copyIndex(from, to string) error {
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return failed("copy the index", "", err)
		}
		return nil
	}
	if err != nil {
		return failed("copy the index", "", err)
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return failed("copy the index", "", err)
	}
	half := to + ".half"
	err = os.WriteFile(half, b, 0o600)
	if err == nil {
		err = os.Chtimes(half, info.ModTime(), info.ModTime())
	}
	if err == nil {
		err = os.Rename(half, to)
	}
	if err != nil {
		os.Remove(half)
		return failed("copy the index", "", err)
	}
	return nil
}

// writeFile replaces a file atomically.
func writeFile(path string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	half := path + ".half"
	err := os.WriteFile(half, content, mode)
	if err == nil {
		err = os.Rename(half, path)
	}
	if err != nil {
		os.Remove(half)
	}
	return err
}
