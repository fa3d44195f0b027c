package worktree

import (
	"context"
	"os"

	"centurion"
)

// Init makes dir the top of a new repository with one commit of its content. The error has centurion.KindNotFound if git is missing or
// too old, and centurion.KindConflict if dir is already the top of a repository.
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
	// No template: the person's hooks and excludes do not belong into it.
	for _, args := range [][]string{{"init", "-q", "--template=", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "--allow-empty", "-m", message}} {
		if _, err := prog.run(ctx, call{Dir: dir, Seek: true, Args: args}); err != nil {
			return err
		}
	}
	return nil
}
