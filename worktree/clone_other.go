//go:build !darwin

package worktree

import "errors"

func cloneDir(string, string) error { return errors.ErrUnsupported }
