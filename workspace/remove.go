package workspace

import (
	"errors"
	"io/fs"
)

// Remove takes a file or an empty directory away, a link and not what it leads to. One that does not exist is no error.
// Errors are KindPermission (also of a link on the way that leads outside), KindDisk and KindUsage. Like
// [Workspace.WriteFile] it does not ask [Workspace.Protected].
func (w *Workspace) Remove(rel string) error {
	const op = "remove file"
	name, err := w.Rel(rel)
	if err != nil {
		return err
	}
	if err := w.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return w.fail(op, name, err)
	}
	return nil
}
