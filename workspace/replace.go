package workspace

import (
	"errors"
	"io/fs"
	"os"
)

// replaceIf replaces the file base in d by text if its content still has the version, "" meaning that there is no such
// file, and syncs both. It reports false, and leaves the file as it is, if it was changed.
//
// The old and the new file are exchanged in one step and the old one is looked at afterwards, when no name leads to it
// any more: so a change that came at the last moment is seen, and the exchange is taken back.
func replaceIf(d *os.Root, base, version string, text []byte) (bool, error) {
	perm := filePerm
	if fi, err := d.Lstat(base); err == nil {
		perm = fi.Mode().Perm()
	}
	if err := d.Remove(tempName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err := writeNew(d, tempName, text, perm); err != nil {
		return false, err
	}
	now, err := versionIn(d, base)
	done := err == nil && now == version
	if done {
		done, err = swapIn(d, base, version)
	}
	if rerr := d.Remove(tempName); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	if done && err == nil {
		err = syncDir(d)
	}
	return done && err == nil, err
}

// swapIn puts the temporary file in the place of base if that still has the version, and leaves the other one of them
// under the temporary name.
func swapIn(d *os.Root, base, version string) (bool, error) {
	if version == "" {
		// A link, unlike a rename, does not replace a file that has come into being meanwhile.
		err := d.Link(tempName, base)
		if errors.Is(err, fs.ErrExist) {
			return false, nil
		}
		if err == nil {
			return true, nil
		}
		return rename(d, base)
	}
	switch ok, err := exchange(d, tempName, base); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !ok:
		return rename(d, base)
	}
	old, err := versionIn(d, tempName)
	if err == nil && old == version {
		return true, nil
	}
	_, back := exchange(d, tempName, base)
	if errors.Is(back, fs.ErrNotExist) {
		// Somebody moved our file away meanwhile; what they had written before goes back to its place.
		back = d.Rename(tempName, base)
	}
	return false, errors.Join(err, back)
}

// rename replaces base by the temporary file where nothing better is to be had.
func rename(d *os.Root, base string) (bool, error) {
	if err := d.Rename(tempName, base); err != nil {
		return false, err
	}
	return true, nil
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

// writeNew makes a file that does not exist yet, with exactly these permissions if they are an old file's, and syncs it.
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
