package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"centurion"
)

// setupID is the layer of a setup, by the state that identifies its commands and lock files.
func setupID(state string) string { return "setup-" + state[:min(16, len(state))] }

// stateOf is [setupState] for a tree.
func (cs *checkouts) stateOf(s *stack, commands []string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", commands)
	var names []string
	for p := range s.all {
		if dir, name := path.Split(p); path.Clean("/"+dir) == path.Clean("/"+cs.prefix) &&
			slices.ContainsFunc(lockFiles(), func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok }) {
			names = append(names, p)
		}
	}
	slices.Sort(names)
	for _, p := range names {
		fmt.Fprintf(h, "%q %s\n", p, s.at(p).ID)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// setupLayer returns the layer that the setup commands leave in a tree: what they make is the same for all workspaces, so that they run
// once. outputs are its files that are neither tracked nor ignored.
func (cs *checkouts) setupLayer(ctx context.Context, w Want, tree string) (state string, outputs []string, err error) {
	s, err := cs.layers.stackOf(ctx, tree)
	if err != nil {
		return "", nil, err
	}
	state = cs.stateOf(s, w.Setup)
	id := setupID(state)
	select {
	case cs.layers.settingUp <- struct{}{}:
		defer func() { <-cs.layers.settingUp }()
	case <-ctx.Done():
		return "", nil, context.Cause(ctx)
	}
	if cs.layers.present([]string{id}) == nil {
		made, _ := cs.layers.read(id)
		return state, made.Outputs, nil
	}
	if err := cs.setups.given(state); err != nil {
		return "", nil, err
	}
	c, err := cs.newLayered(ctx, Want{Commit: w.Commit}, tree)
	if err != nil {
		return "", nil, err
	}
	outputs, err = c.fillSetup(ctx, s, w.Setup, id)
	if centurion.KindOf(err) == centurion.KindConfig {
		cs.setups.failed(state, err)
	}
	err = errors.Join(err, c.discard(context.WithoutCancel(ctx), "", ""))
	cs.pool.leave(c.seat)
	return state, outputs, err
}

// fillSetup runs the setup commands in a checkout, and makes a layer of what they leave. What they changed in tracked files is dropped.
func (c *Checkout) fillSetup(ctx context.Context, s *stack, commands []string, id string) (outputs []string, err error) {
	for _, command := range commands {
		if err := c.setup(ctx, command); err != nil {
			return nil, err
		}
	}
	if err := c.Still(); err != nil {
		return nil, err
	}
	if outputs, err = c.outputs(ctx, s); err != nil {
		return nil, err
	}
	var u upper
	if err := u.walk(c.upperDir(), "", func(p string) bool { return !s.dirs()[p] }); err != nil {
		return nil, failed("set a checkout up", "", err)
	}
	drop := slices.Concat(u.gone, u.opaque)
	for _, f := range u.files {
		drop = append(drop, f.path)
	}
	for _, p := range drop {
		if s.at(p) != (entry{}) || s.dirs()[p] {
			if err := removeAll(filepath.Join(c.upperDir(), filepath.FromSlash(p))); err != nil {
				return nil, failed("set a checkout up", "cannot drop a changed file", err)
			}
		}
	}
	l := &c.repo.layers
	l.making.Lock()
	defer l.making.Unlock()
	return outputs, l.make(id, func(dir string) (layer, error) {
		files := filepath.Join(dir, "files")
		return layer{Outputs: outputs}, errors.Join(os.Remove(files), os.Rename(c.upperDir(), files),
			os.Rename(filepath.Join(c.repo.slotOf(c.name), "caches"), filepath.Join(dir, "caches")))
	})
}

// outputs lists the files and directories in the upper layer that are neither tracked nor ignored.
func (c *Checkout) outputs(ctx context.Context, s *stack) ([]string, error) {
	u, err := c.look(ctx, s)
	if err != nil {
		return nil, err
	}
	names := slices.Clone(u.nested)
	for _, f := range u.files {
		if s.at(f.path) == (entry{}) {
			names = append(names, f.path)
		}
	}
	var out []string
	for _, p := range names {
		for d := path.Dir(p); d != "." && !s.dirs()[d]; d = path.Dir(d) {
			p = d
		}
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out, nil
}

// readyLayered runs the setup in a checkout whose lock files have changed since its layers were laid.
func (c *Checkout) readyLayered(ctx context.Context) error {
	if len(c.rec.Setup) == 0 {
		return nil
	}
	s, err := c.stack(ctx)
	if err != nil {
		return err
	}
	state := c.repo.stateOf(s, c.rec.Setup)
	if state == c.rec.Done || state == c.rec.Redone {
		return nil
	}
	if err := c.repo.setups.given(state); err != nil {
		return err
	}
	for _, command := range c.rec.Setup {
		if err := c.setup(ctx, command); err != nil {
			if centurion.KindOf(err) == centurion.KindConfig {
				c.repo.setups.failed(state, err)
			}
			return err
		}
	}
	made, err := c.outputs(ctx, s)
	if err != nil {
		return err
	}
	for _, p := range made {
		if !slices.Contains(c.rec.Outputs, p) {
			c.rec.Outputs = append(c.rec.Outputs, p)
		}
	}
	tree, err := c.scanLayers(ctx)
	if err != nil {
		return err
	}
	changed, err := c.between(ctx, c.rec.Tree, tree, true)
	if err != nil {
		return err
	}
	var steps []step
	for _, p := range changed {
		steps = append(steps, step{Path: p, New: s.at(p)})
	}
	if err := c.applySteps(ctx, s.tree, steps); err != nil {
		return err
	}
	c.rec.Redone, c.scanned = state, scanned{}
	return c.save()
}
