//go:build !linux

package worktree

import (
	"errors"
	"io/fs"
	"time"
)

// Layers are mounted on Linux only.
func isWhiteout(fs.FileInfo) bool { return false }

func whiteout(string) error { return errors.ErrUnsupported }

func isOpaque(string) bool { return false }

func identityOf(info fs.FileInfo) (inode uint64, changed time.Time) { return 0, info.ModTime() }

func isNotDirectory(error) bool { return false }
