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

var _ centurion.Mounter = (*Runner)(nil)

// layered are the workspaces of layers of a [Runner]. The zero value is ready to use.
type layered struct {
	mu     sync.Mutex // protects the fields below
	mounts map[string]centurion.Layers
	tried  map[string]error // by directory
}

// of returns the layers of a workspace, if it has any.
func (l *layered) of(workspace string) (centurion.Layers, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	layers, ok := l.mounts[workspace]
	return layers, ok
}

// Mount implements [centurion.Mounter].
func (r *Runner) Mount(l centurion.Layers) error {
	if r.Confine == nil || r.Confine.Way != confine.Full {
		return notMountable(errors.New("commands are not confined by namespaces"))
	}
	r.layers.mu.Lock()
	defer r.layers.mu.Unlock()
	if r.layers.mounts == nil {
		r.layers.mounts = map[string]centurion.Layers{}
	}
	r.layers.mounts[l.Workspace] = l
	return nil
}

// Files implements [centurion.Mounter].
func (r *Runner) Files(workspace string) (string, error) {
	layers, ok := r.layers.of(workspace)
	if !ok {
		return "", &centurion.Error{Op: "mount layers", Kind: centurion.KindNotFound, Msg: workspace + " is no workspace of layers"}
	}
	p, err := r.placeOf(centurion.Command{Workspace: workspace}, "")
	if err == nil && r.stopped() {
		err = errHelperGone
	}
	if err != nil {
		return "", &centurion.Error{Op: "mount layers", Kind: centurion.KindInternal, Msg: "the workspace cannot be mounted", Err: err,
			Hint: "see: centurion doctor"}
	}
	return p.outside(layers.At), nil
}

// Mountable implements [centurion.Mounter].
func (r *Runner) Mountable(dir string) error {
	r.layers.mu.Lock()
	err, tried := r.layers.tried[dir]
	r.layers.mu.Unlock()
	if tried {
		return err
	}
	if err = r.tryLayers(dir); err != nil {
		err = notMountable(err)
	}
	r.layers.mu.Lock()
	defer r.layers.mu.Unlock()
	if r.layers.tried == nil {
		r.layers.tried = map[string]error{}
	}
	r.layers.tried[dir] = err
	return err
}

func notMountable(err error) error {
	return &centurion.Error{Op: "mount layers", Kind: centurion.KindNotFound, Msg: "no overlay can be mounted", Err: err}
}

// tryLayers mounts two small layers, and looks whether a command's file lands in the upper one only.
func (r *Runner) tryLayers(dir string) (err error) {
	temp, err := os.MkdirTemp(dir, "try-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, RemovePlaces(temp)) }()
	at := func(name string) string { return filepath.Join(temp, name) }
	for _, name := range []string{"at", "lower", "upper", "work"} {
		if err := os.Mkdir(at(name), 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(at("lower"), "below"), nil, 0o600); err != nil {
		return err
	}
	l := centurion.Layers{Workspace: temp, At: at("at"), Lower: []string{at("lower")}, Upper: at("upper"), Work: at("work")}
	if err := r.Mount(l); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Release(temp)) }()
	res, err := r.Run(context.Background(), centurion.Command{Script: "mv below above", Dir: l.At, Workspace: temp})
	if err != nil {
		return err
	}
	files, err := r.Files(temp)
	if err != nil {
		return err
	}
	_, inside := os.Stat(filepath.Join(files, "above"))
	_, upper := os.Stat(filepath.Join(l.Upper, "above"))
	_, lower := os.Stat(filepath.Join(at("lower"), "below"))
	if err := errors.Join(inside, upper, lower); err != nil || res.ExitCode != 0 {
		return fmt.Errorf("a command in it failed: %s (%w)", res.Output, err)
	}
	return nil
}
