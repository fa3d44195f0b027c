package workspace

import (
	"errors"
	"io/fs"
)

// Remove removes a file, a link (not its target) or an empty directory. A missing one is no error. Errors are KindPermission (also for
// a parent link that leads outside), KindDisk and KindUsage. Like [Workspace.WriteFile] it does not check [Workspace.Protected].
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
