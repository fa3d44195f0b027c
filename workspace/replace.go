package workspace

import (
	"errors"
	"io/fs"
	"os"

	"centurion/failpoint"
)

// replaceIf replaces the content of file base in d if it still has the version ("" for no file), and syncs both. It returns false,
// leaving the file unchanged, if it does not.
//
// The old and the new file are exchanged atomically, and the nameless old one is checked afterwards: thus a last-moment change is
// noticed, and the exchange undone. A file that briefly had the name is returned open, because an editor may have it open, too; nil if
// there is none.
func replaceIf(d *os.Root, base, version string, text []byte) (done bool, thrown *heldFile, err error) {
	perm := filePerm
	if fi, err := d.Lstat(base); err == nil {
		perm = fi.Mode().Perm()
	}
	if err := d.Remove(tempName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, nil, err
	}
	if err := writeNew(d, tempName, text, perm); err != nil {
		return false, nil, err
	}
	now, err := versionIn(d, base)
	done = err == nil && now == version
	if done {
		var swapped bool
		failpoint.Hit(failpoint.TodoBeforeRename)
		done, swapped, err = swapIn(d, base, version)
		switch {
		case swapped && done:
			thrown = holdFile(d, tempName, version)
		case swapped:
			thrown = holdFile(d, tempName, VersionOf(text))
		}
	}
	if rerr := d.Remove(tempName); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	if done && err == nil {
		failpoint.Hit(failpoint.TodoAfterRename)
		err = syncDir(d)
	}
	return done && err == nil, thrown, err
}

// swapIn puts the temporary file in the place of base if that still has the version; the other of the two gets the temporary name.
// swapped reports whether they were exchanged at all, even briefly.
func swapIn(d *os.Root, base, version string) (done, swapped bool, err error) {
	if version == "" {
		done, err := nameIn(d, base)
		return done, false, err
	}
	switch ok, err := exchange(d, tempName, base); {
	case errors.Is(err, fs.ErrNotExist):
		return false, false, nil
	case err != nil:
		return false, false, err
	case !ok:
		err := d.Rename(tempName, base) // no better way exists here
		return err == nil, false, err
	}
	old, err := versionIn(d, tempName)
	if err == nil && old == version {
		return true, true, nil
	}
	_, back := exchange(d, tempName, base)
	if errors.Is(back, fs.ErrNotExist) {
		// Our file was moved away meanwhile; restore the other's earlier text, but not over a new one.
		_, back = nameIn(d, base)
	}
	return false, true, errors.Join(err, back)
}

// nameIn gives the temporary file the name base, and returns false if there is such a file.
func nameIn(d *os.Root, base string) (done bool, err error) {
	err = d.Link(tempName, base) // unlike a rename, it does not replace a file created meanwhile
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		err = d.Rename(tempName, base)
	}
	return err == nil, err
}

// versionIn returns the version of a file, "" if it does not exist.
func versionIn(d *os.Root, name string) (string, error) {
	b, err := d.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return VersionOf(b), nil
}

// writeNew creates a new file, with exactly these permissions if they are an old file's, and syncs it.
func writeNew(d *os.Root, name string, data []byte, perm fs.FileMode) (err error) {
	f, err := d.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			err = errors.Join(err, d.Remove(name))
		}
	}()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if perm != filePerm {
		if err := f.Chmod(perm); err != nil {
			return err
		}
	}
	return f.Sync()
}
