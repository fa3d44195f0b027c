//go:build !linux

package worktree

import (
	"errors"
	"io/fs"
)

// Layers are mounted on Linux only.
func isWhiteout(fs.FileInfo) bool { return false }

func whiteout(string) error { return errors.ErrUnsupported }

func isOpaque(string) bool { return false }

func inode(fs.FileInfo) uint64 { return 0 }

func isNotDirectory(error) bool { return false }
