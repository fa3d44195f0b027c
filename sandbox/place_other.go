//go:build !linux

package sandbox

import (
	"errors"
	"os"

	"centurion"
	"centurion/sandbox/confine"
)

// confined starts commands where nothing confines them.
type confined struct{}

func (confined) open(*Confinement, confine.Policy, string, []string) error {
	return errors.New("this system has no means that are used to confine commands")
}

func (confined) gone() bool { return false }

func (confined) start(c centurion.Command, args, env []string, _ string, out *os.File) (process, error) {
	return startChild(c, args, env, out)
}

func (confined) outside(dir string) string { return dir }

func (confined) close() error { return nil }

// Helper is for Linux only.
func Helper() int { return 2 }

// SealDescriptors is for Linux only.
func SealDescriptors() error { return nil }

// DefaultLimits is for Linux only.
func DefaultLimits() (none confine.Limits) { return none }
