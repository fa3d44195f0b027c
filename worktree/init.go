package worktree

import (
	"context"
	"os"

	"centurion"
)

// Init makes dir the top of a new repository with one commit of all that lies in it. The error has centurion.KindNotFound if
// there is no git program or one that is too old, and centurion.KindConflict if dir is the top of a repository already.
func Init(ctx context.Context, dir, message string) error {
	prog, err := newProgram("")
	if err != nil {
		return err
	}
	if err := prog.check(ctx); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return failed("make repository", "cannot open "+dir, err)
	}
	defer root.Close()
	if _, err := root.Lstat(".git"); err == nil {
		return &centurion.Error{Op: "make repository", Kind: centurion.KindConflict, Msg: dir + " is a repository already"}
	}
	// No template: hooks and excludes of the person's do not belong into it.
	for _, args := range [][]string{{"init", "-q", "--template=", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "--allow-empty", "-m", message}} {
		if _, err := prog.run(ctx, call{Dir: dir, Seek: true, Args: args}); err != nil {
			return err
		}
	}
	return nil
}
