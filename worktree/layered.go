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

	"centurion"
)

// This file has what differs for a checkout made of layers: its files are mounted at the project's own path for its commands, the host
// reaches them through the runner, and what was changed is what its upper layer holds. Its directory, c.dir, is only its name.

// layered reports whether a checkout is made of layers.
func (c *Checkout) layered() bool { return c.rec.Ground != "" }

func (c *Checkout) upperDir() string { return filepath.Join(c.repo.slotOf(c.name), "upper") }

// mounter returns the runner that mounts layers, or why there is none for this project.
func (cs *checkouts) mounter() (centurion.Mounter, error) {
	m, ok := cs.opts.Runner.(centurion.Mounter)
	switch {
	case cs.opts.Workspaces == WorkspacesCheckout:
		return nil, notLayered("worktree.workspaces is \"checkout\"")
	case !ok:
		return nil, notLayered("nothing runs commands")
	}
	return m, m.Mountable(cs.opts.Home)
}

func notLayered(why string) error {
	return &centurion.Error{Op: "mount layers", Kind: centurion.KindNotFound, Msg: why}
}

// Workspaces says how checkouts are made: [WorkspacesOverlay], or [WorkspacesCheckout] and why not with layers.
func (cs *checkouts) Workspaces() string {
	if _, err := cs.mounter(); err != nil {
		return WorkspacesCheckout + ": " + strings.TrimPrefix(err.Error(), "mount layers: ")
	}
	return WorkspacesOverlay
}

// Prepare makes the layers for checkouts of a commit in advance, where checkouts are made of layers.
func (cs *checkouts) Prepare(ctx context.Context, commit string) error {
	if _, err := cs.mounter(); err != nil {
		return nil
	}
	tree, err := cs.tree(ctx, commit)
	if err == nil {
		_, err = cs.layers.stackOf(ctx, tree)
	}
	return err
}

// takeLayered makes a checkout of layers. The error has [centurion.KindNotFound] if this commit can have none.
func (cs *checkouts) takeLayered(ctx context.Context, w Want) (*Checkout, error) {
	if _, err := cs.mounter(); err != nil {
		return nil, err
	}
	tree, err := cs.tree(ctx, w.Commit)
	if err != nil {
		return nil, err
	}
	s, err := cs.layers.stackOf(ctx, tree)
	if err != nil {
		return nil, err
	}
	if cs.populatedIn(s) {
		return nil, notLayered("the project has submodules")
	}
	c, err := cs.newLayered(ctx, w, tree)
	if err != nil {
		return nil, err
	}
	cs.pool.take(c.seat)
	return c, nil
}

// populatedIn reports whether the person has initialised a submodule of a tree.
func (cs *checkouts) populatedIn(s *stack) bool {
	for p, e := range s.all {
		if e.Mode == modeSubmodule && gitDirOf(filepath.Join(cs.top, filepath.FromSlash(p))) != "" {
			return true
		}
	}
	return false
}

// newLayered makes a checkout of layers in a new slot, which is removed after an error.
func (cs *checkouts) newLayered(ctx context.Context, w Want, tree string) (*Checkout, error) {
	seat, err := cs.newName()
	if err != nil {
		return nil, err
	}
	c := &Checkout{repo: cs, seat: seat, name: seat.name, dir: cs.dirOf(seat.name)}
	c.rec = record{Ground: tree, Tree: tree, Start: w.Commit, Last: w.Commit, Setup: w.Setup, Check: w.Check}
	if err = c.save(); err == nil { // before there is anything else in the slot
		if err = c.beginLayered(ctx, w); err != nil {
			err = errors.Join(err, c.discard(context.WithoutCancel(ctx), w.Branch, w.Commit))
		}
	}
	if err != nil {
		cs.pool.leave(seat)
		return nil, err
	}
	return c, nil
}

func (c *Checkout) beginLayered(ctx context.Context, w Want) error {
	if w.Branch != "" {
		if err := c.repo.startBranch(ctx, w.Branch, w.Commit); err != nil {
			return err
		}
		c.rec.Branch = w.Branch
	}
	if err := c.makeOwnGit(ctx); err != nil {
		return err
	}
	if len(w.Setup) > 0 {
		var err error
		if c.rec.Done, c.rec.Outputs, err = c.repo.setupLayer(ctx, w, c.rec.Ground); err != nil {
			return err
		}
	}
	if err := c.lay(ctx); err != nil {
		return err
	}
	if err := c.include(ctx); err != nil {
		return err
	}
	c.rec.Made = true
	return c.save()
}

// lay gives the checkout an empty upper layer over those of its ground, and mounts it.
func (c *Checkout) lay(ctx context.Context) error {
	slot := c.repo.slotOf(c.name)
	old, err := c.repo.scratch()
	if err != nil {
		return err
	}
	defer func() { _ = removeAll(old) }() // what stays is removed with the home's temporary files
	for _, name := range []string{"upper", "work"} {
		at := filepath.Join(slot, name)
		if err := os.Rename(at, filepath.Join(old, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return failed("lay a checkout", "", err)
		}
		if err := os.Mkdir(at, 0o755); err != nil {
			return failed("lay a checkout", "", err)
		}
	}
	c.scanned = scanned{}
	if err := c.mountLayers(ctx); err != nil {
		return err
	}
	return c.standLayered(ctx)
}

// mountLayers tells the runner of the checkout's layers. Those that are missing are made again.
func (c *Checkout) mountLayers(ctx context.Context) error {
	m, err := c.repo.mounter()
	if err != nil {
		return err
	}
	s, err := c.repo.layers.stackOf(ctx, c.rec.Ground)
	if err != nil {
		return err
	}
	ids := slices.Clone(s.lower)
	if id := setupID(c.rec.Done); c.rec.Done != "" && c.repo.layers.present([]string{id}) == nil {
		ids = slices.Insert(ids, len(ids)-1, id) // on the base, below what the mission's work has changed
	}
	slot := c.repo.slotOf(c.name)
	top := c.repo.top
	l := centurion.Layers{Workspace: c.dir, At: top, Upper: c.upperDir(), Work: filepath.Join(slot, "work"), Check: c.rec.Check,
		Binds: []centurion.Bind{{From: c.ownGit(), To: filepath.Join(top, ".git"), Write: true},
			{From: filepath.Join(c.repo.common, "objects"), To: filepath.Join(top, ".git", borrowed)}}}
	for _, id := range ids {
		l.Lower = append(l.Lower, c.repo.layers.files(id))
	}
	own := filepath.Join(top, filepath.FromSlash(c.repo.private()))
	if info, err := os.Stat(own); err == nil && info.IsDir() {
		l.Binds = append(l.Binds, centurion.Bind{From: own, To: own})
	}
	if !slices.Equal(ids, c.rec.Layers) {
		c.rec.Layers = ids
		if err := c.save(); err != nil {
			return err
		}
	}
	return m.Mount(l)
}

// standLayered is [Checkout.stand] for layers: the index is that of the tree that the files were last set to.
func (c *Checkout) standLayered(ctx context.Context) error {
	if c.scanned.tree != "" { // its index is there, and knows the newest files
		return c.standIn()
	}
	return c.standAt(ctx, c.rec.Tree)
}

// standAt is standLayered with the index of another tree or commit.
func (c *Checkout) standAt(ctx context.Context, at string) error {
	tree, err := c.repo.tree(ctx, at)
	if err != nil {
		return err
	}
	s, err := c.repo.layers.stackOf(ctx, tree)
	if err != nil {
		return err
	}
	if err := copyIndex(s.index, c.repo.indexOf(c.name)); err != nil {
		return err
	}
	c.scanned = scanned{}
	return c.standIn()
}

// stack returns the layers of the tree that the files were last set to.
func (c *Checkout) stack(ctx context.Context) (*stack, error) {
	tree, err := c.repo.tree(ctx, c.rec.Tree)
	if err != nil {
		return nil, err
	}
	return c.repo.layers.stackOf(ctx, tree)
}

// Files returns how this process reaches the project's files in the checkout: at is a directory to open, which changes when the
// workspace's helper has ended, and place where commands find them.
func (c *Checkout) Files(ctx context.Context) (at string, place centurion.Place, err error) {
	if !c.layered() {
		return c.project(), centurion.Place{Dir: c.project(), Workspace: c.dir}, nil
	}
	prefix := filepath.FromSlash(c.repo.prefix)
	at, err = c.mounted(ctx)
	return filepath.Join(at, prefix), centurion.Place{Dir: filepath.Join(c.repo.top, prefix), Workspace: c.dir}, err
}

// mounted returns the path by which this process reaches the top of a checkout of layers.
func (c *Checkout) mounted(ctx context.Context) (string, error) {
	m, err := c.repo.mounter()
	if err != nil {
		return "", err
	}
	at, err := m.Files(c.dir)
	if centurion.KindOf(err) != centurion.KindNotFound {
		return at, err
	}
	if err := c.mountLayers(ctx); err != nil { // it was released, and stayed because of an error
		return "", err
	}
	return m.Files(c.dir)
}

// Layered reports whether commands in the checkout see it at the project's own path.
func (c *Checkout) Layered() bool { return c.layered() }

// root opens the top of the checkout's files.
func (c *Checkout) root(ctx context.Context) (root *os.Root, err error) {
	dir := c.dir
	if c.layered() {
		if dir, err = c.mounted(ctx); err != nil {
			return nil, err
		}
	}
	if root, err = os.OpenRoot(dir); err != nil {
		return nil, failed("use a checkout", "", err)
	}
	return root, nil
}

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

// apply changes the files from the last commit's to a tree's, and leaves everything else. Interrupted, it can be done again.
func (c *Checkout) apply(ctx context.Context, to string) error {
	tree, err := c.repo.tree(ctx, to)
	if err != nil {
		return err
	}
	from, err := c.repo.tree(ctx, c.rec.Last)
	if err != nil {
		return err
	}
	changes, err := c.repo.raw(ctx, from, tree)
	if err != nil {
		return err
	}
	var steps []step
	for _, ch := range changes {
		if !under(ch.Path, c.repo.private()) {
			steps = append(steps, step{Path: ch.Path, New: ch.to})
		}
	}
	if err := c.applySteps(ctx, tree, steps); err != nil {
		return err
	}
	c.rec.Tree, c.scanned = tree, scanned{}
	return nil
}

// applySteps gives files the contents that they have in a tree.
func (c *Checkout) applySteps(ctx context.Context, tree string, steps []step) error {
	const op = "bring a checkout"
	if len(steps) == 0 {
		return nil
	}
	dir, err := c.repo.scratch()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := (placer{git: c.repo.git, top: c.repo.top}).stage(ctx, dir, tree, steps); err != nil {
		return err
	}
	root, err := c.root(ctx)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, removed := range []bool{true, false} { // removed files make room for new ones
		for _, s := range steps {
			if (s.New == entry{}) != removed {
				continue
			}
			if err := placeIn(root, filepath.Join(dir, "new"), s); err != nil {
				return failed(op, "cannot write "+s.Path, err)
			}
		}
	}
	return nil
}

// placeIn carries out one step below a root. Directories that become empty are removed, as git does.
func placeIn(root *os.Root, staged string, s step) error {
	if s.New == (entry{}) {
		if err := root.Remove(s.Path); err != nil && !errors.Is(err, fs.ErrNotExist) && !isNotDirectory(err) {
			return err
		}
		for d := path.Dir(s.Path); d != "." && root.Remove(d) == nil; d = path.Dir(d) {
		}
		return nil
	}
	for d, rest, more := strings.Cut(s.Path, "/"); more; { // a file may lie in the place of a directory
		if info, err := root.Lstat(d); err == nil && !info.IsDir() {
			if err := root.Remove(d); err != nil {
				return err
			}
		}
		var next string
		next, rest, more = strings.Cut(rest, "/")
		d += "/" + next
	}
	if err := errors.Join(root.MkdirAll(path.Dir(s.Path), 0o755), root.RemoveAll(s.Path)); err != nil {
		return err
	}
	from := filepath.Join(staged, filepath.FromSlash(s.Path))
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if info.IsDir() { // a submodule
		return root.Mkdir(s.Path, 0o755)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		return errors.Join(err, root.Symlink(target, s.Path))
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := root.OpenFile(s.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// relay gives the checkout the files of another tree, in a fresh upper layer. Everything that ran in it is ended.
func (c *Checkout) relay(ctx context.Context, to string) error {
	tree, err := c.repo.tree(ctx, to)
	if err != nil {
		return err
	}
	if tree == c.rec.Ground {
		if left, err := os.ReadDir(c.upperDir()); err == nil && len(left) == 0 {
			c.rec.Tree = tree
			return c.standLayered(ctx)
		}
	}
	if err := c.unmount(); err != nil {
		return err
	}
	c.rec.Ground, c.rec.Tree = tree, tree
	if len(c.rec.Setup) > 0 {
		if c.rec.Done, c.rec.Outputs, err = c.repo.setupLayer(ctx, Want{Commit: c.rec.Start, Setup: c.rec.Setup}, tree); err != nil {
			return err
		}
	}
	if err := c.lay(ctx); err != nil {
		return err
	}
	return c.include(ctx)
}

// unmount ends everything that runs in the checkout. Its upper layer stays.
func (c *Checkout) unmount() error {
	if r, ok := c.repo.opts.Runner.(centurion.Releaser); ok {
		return r.Release(c.dir)
	}
	return nil
}

// discard removes a checkout that was never used.
func (c *Checkout) discard(ctx context.Context, branch, commit string) error {
	_, err := c.repo.drop(ctx, branch, "", commit)
	return errors.Join(err, c.unmount(), c.forget(ctx))
}
