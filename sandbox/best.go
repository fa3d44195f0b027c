package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"centurion"
	"centurion/sandbox/confine"
)

// Best returns the strongest way that works on this machine, and why no stronger one does; nil for [confine.Full]. Each way is tried once
// in a process by running a command, because switches, security modules and containers forbid parts that the kernel has.
func Best() (confine.Way, error) { return best() }

var best = sync.OnceValues(func() (confine.Way, error) {
	var why error
	for _, way := range []confine.Way{confine.Full, confine.Files} {
		err := try(way)
		if err == nil {
			return way, why
		}
		why = errors.Join(why, fmt.Errorf("%s: %w", way, err))
	}
	return confine.None, why
})

// try runs one command in a way.
func try(way confine.Way) (err error) {
	dir, err := os.MkdirTemp("", "centurion-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := &Runner{Confine: &Confinement{Way: way, Hide: []string{filepath.Join(dir, "hidden")}, Dir: filepath.Join(dir, "places")}}
	defer func() { err = errors.Join(err, r.Close()) }()
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	res, err := r.Run(context.Background(), centurion.Command{Script: "exec touch tried", Dir: work})
	if err == nil && res.ExitCode != 0 {
		err = fmt.Errorf("a command failed: %s", res.Output)
	}
	return err
}
