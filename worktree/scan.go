package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// This file finds out what was changed in a checkout of layers.

// scanned is the result of a scan, and what it was found for.
type scanned struct {
	print string // of the upper layer; "" if it may not be used again
	tree  string
}

// racy is how old every change has to be before a scan for its result to be used again: file systems round times.
const racy = 50 * time.Millisecond

// scanLayers is [Checkout.scan] for layers: the tree that the files are, made of the last one and the upper layer. It takes no process if
// nothing has changed since the last scan.
func (c *Checkout) scanLayers(ctx context.Context) (string, error) {
	s, err := c.stack(ctx)
	if err != nil {
		return "", err
	}
	began := time.Now()
	u, err := c.look(ctx, s)
	if err != nil {
		return "", err
	}
	print, newest := u.print(c.rec.Tree, c.rec.Outputs)
	if c.scanned.print == print {
		return c.scanned.tree, nil
	}
	gone, err := c.goneFrom(ctx, s, u)
	if err != nil {
		return "", err
	}
	index := c.view().index
	if err := copyIndex(s.index, index); err != nil {
		return "", err
	}
	tree := s.tree
	if !u.empty() || len(gone) > 0 {
		if tree, err = c.writeUpper(ctx, index, u, gone); err != nil {
			return "", err
		}
	}
	c.scanned = scanned{tree: tree}
	if len(u.nested) == 0 && began.Sub(newest) > racy {
		c.scanned.print = print
	}
	return tree, nil
}

// print identifies the state of an upper layer, and returns the time of its newest change.
func (u upper) print(more ...any) (print string, newest time.Time) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q\n", more, u.gone, u.opaque, u.nested)
	for _, f := range u.files {
		fmt.Fprintf(h, "%q %d %v %d %d\n", f.path, f.info.Size(), f.info.Mode(), f.info.ModTime().UnixNano(), inode(f.info))
		if t := f.info.ModTime(); t.After(newest) {
			newest = t
		}
	}
	return hex.EncodeToString(h.Sum(nil)), newest
}

// look lists what the upper layer holds, without what git ignores and what the setup has made.
func (c *Checkout) look(ctx context.Context, s *stack) (upper, error) {
	var u upper
	dirs := s.dirs()
	ours := func(p string) bool {
		return p == ".git" || under(p, c.repo.private()) || slices.ContainsFunc(c.rec.Outputs, func(o string) bool { return under(p, o) })
	}
	err := u.walk(c.upperDir(), "", func(p string) bool { return !dirs[p] || ours(p) })
	if err != nil {
		return u, failed("look at the changes", "", err)
	}
	u.left = slices.DeleteFunc(u.left, func(p string) bool { return ours(p) || s.at(p).Mode == modeSubmodule })
	ask := slices.Clone(u.left)
	for _, f := range u.files {
		if s.at(f.path) == (entry{}) && !ours(f.path) {
			ask = append(ask, f.path)
		}
	}
	gone, err := c.goneFrom(ctx, s, u)
	if err != nil {
		return u, err
	}
	rules := slices.DeleteFunc(gone, func(p string) bool { return path.Base(p) != ".gitignore" })
	ignored, err := c.ignores(ctx, s, rules, ask)
	if err != nil {
		return u, err
	}
	for _, dir := range u.left {
		if !ignored(dir) {
			if err := c.lookInto(ctx, s, &u, rules, dir); err != nil {
				return u, err
			}
		}
	}
	drop := func(p string) bool { return ours(p) || ignored(p) }
	u.files = slices.DeleteFunc(u.files, func(f upperFile) bool { return drop(f.path) })
	u.gone, u.opaque, u.nested = slices.DeleteFunc(u.gone, ours), slices.DeleteFunc(u.opaque, ours), slices.DeleteFunc(u.nested, drop)
	return u, nil
}

// lookInto adds what is in a new directory that git does not ignore as a whole.
func (c *Checkout) lookInto(ctx context.Context, s *stack, u *upper, rules []string, dir string) error {
	if _, err := os.Lstat(filepath.Join(c.upperDir(), filepath.FromSlash(dir), ".git")); err == nil {
		u.nested = append(u.nested, dir)
		return nil
	}
	var in upper
	if err := in.walk(c.upperDir(), dir, func(string) bool { return false }); err != nil {
		return failed("look at the changes", "", err)
	}
	ask := slices.Concat(in.dirs, in.nested)
	for _, f := range in.files {
		ask = append(ask, f.path)
	}
	ignored, err := c.ignores(ctx, s, rules, ask)
	if err != nil {
		return err
	}
	in.files = slices.DeleteFunc(in.files, func(f upperFile) bool { return ignored(f.path) })
	u.files, u.gone = append(u.files, in.files...), append(u.gone, in.gone...)
	u.nested = append(u.nested, slices.DeleteFunc(in.nested, ignored)...)
	return nil
}

// ignores asks git which of these paths it ignores. gone are the files with rules that were removed.
func (c *Checkout) ignores(ctx context.Context, s *stack, gone, paths []string) (func(path string) bool, error) {
	found := map[string]bool{}
	is := func(p string) bool { return found[p] }
	if len(paths) == 0 {
		return is, nil
	}
	index, err := c.repo.layers.ignoreIndex(ctx, s)
	if err != nil {
		return nil, err
	}
	if len(gone) > 0 {
		without, remove, err := c.repo.temp()
		if err != nil {
			return nil, err
		}
		defer remove()
		if err := copyIndex(index, without); err != nil {
			return nil, err
		}
		if _, err := c.repo.git(ctx, call{Index: without, Args: []string{"update-index", "-z", "--force-remove", "--stdin"}, Stdin: zeroEnded(gone)}); err != nil {
			return nil, err
		}
		index = without
	}
	ask := view{gitDir: c.repo.gitDir, dir: c.upperDir(), index: index}.call("check-ignore", "-z", "--stdin")
	ask.Stdin = zeroEnded(paths)
	out, err := c.repo.git(ctx, ask)
	if err != nil && exitCode(err) != 1 { // 1: none
		return nil, err
	}
	for _, p := range fields(out) {
		found[p] = true
	}
	return is, nil
}

// zeroEnded is a list of paths for git's --stdin -z.
func zeroEnded(paths []string) io.Reader {
	return strings.NewReader(strings.Join(paths, "\x00") + "\x00")
}

// goneFrom lists the files of a stack's tree that are not in the checkout.
func (c *Checkout) goneFrom(ctx context.Context, s *stack, u upper) ([]string, error) {
	there := map[string]bool{}
	for _, f := range u.files {
		there[f.path] = true
	}
	away := map[string]bool{} // whatever lies below is not seen
	for _, p := range slices.Concat(u.gone, u.opaque) {
		away[p] = true
	}
	var gone []string
	if len(away)+len(there) > 0 {
		for p := range s.all {
			if there[p] {
				continue
			}
			for d := p; d != "."; d = path.Dir(d) {
				if away[d] || d != p && there[d] { // a file or link in the place of a directory
					gone = append(gone, p)
					break
				}
			}
		}
	}
	if s.tree == c.rec.Ground {
		return gone, nil
	}
	// A file that came after the ground was laid is in the upper layer, and gone when it is not.
	ground, err := c.repo.layers.stackOf(ctx, c.rec.Ground)
	if err != nil {
		return nil, err
	}
	for p := range s.all {
		if ground.at(p) == (entry{}) && !there[p] && !under(p, c.repo.private()) {
			if _, err := os.Lstat(filepath.Join(c.upperDir(), filepath.FromSlash(p))); errors.Is(err, fs.ErrNotExist) && !slices.Contains(gone, p) {
				gone = append(gone, p)
			}
		}
	}
	return gone, nil
}

// writeUpper brings an index of the last tree up to date with an upper layer, and writes its tree.
func (c *Checkout) writeUpper(ctx context.Context, index string, u upper, gone []string) (string, error) {
	v := view{gitDir: c.repo.gitDir, dir: c.upperDir(), index: index}
	if len(gone) > 0 {
		remove := v.call("update-index", "-z", "--force-remove", "--stdin")
		remove.Stdin = zeroEnded(gone)
		if _, err := c.repo.git(ctx, remove); err != nil {
			return "", err
		}
	}
	if len(u.files) > 0 {
		var names strings.Builder
		for _, f := range u.files {
			if f.info.Mode().IsRegular() || f.info.Mode()&fs.ModeSymlink != 0 {
				names.WriteString(f.path + "\x00")
			}
		}
		add := v.call("update-index", "-z", "--add", "--replace", "--stdin")
		add.Stdin = strings.NewReader(names.String())
		if _, err := c.repo.git(ctx, add); err != nil {
			return "", err
		}
	}
	for _, dir := range u.nested {
		if err := c.embed(ctx, index, dir); err != nil {
			return "", err
		}
	}
	out, err := c.repo.git(ctx, v.call("write-tree"))
	return line(out), err
}

// between lists the files in which two trees differ; with known, only those that are in the first.
func (c *Checkout) between(ctx context.Context, from, to string, known bool) ([]string, error) {
	a, err := c.repo.tree(ctx, from)
	if err != nil || a == to {
		return nil, err
	}
	all, err := c.repo.raw(ctx, a, to)
	var names []string
	for _, ch := range all {
		if !known || ch.from != (entry{}) {
			names = append(names, ch.Path)
		}
	}
	return names, err
}
