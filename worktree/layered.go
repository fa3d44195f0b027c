package worktree

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"centurion"
	"centurion/worktree/gitobj"
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
	if home, err := os.UserHomeDir(); cs.top == filepath.Dir(cs.top) || err == nil && under(filepath.Clean(home), cs.top) {
		return nil, notLayered("your home directory lies in the project") // it would not be there for commands
	}
	return m, m.Mountable(cs.opts.Home)
}

func notLayered(why string) error {
	return &centurion.Error{Op: "mount layers", Kind: centurion.KindNotFound, Msg: why}
}

// Workspaces says how checkouts are made: [WorkspacesOverlay], or [WorkspacesCheckout] and why not with layers.
func (cs *checkouts) Workspaces() string {
	if _, err := cs.mounter(); err != nil {
		how := WorkspacesCheckout
		if cs.cloner.works() {
			how += ", cloned"
		}
		return how + ": " + strings.TrimPrefix(err.Error(), "mount layers: ")
	}
	return WorkspacesOverlay
}

// Prepare makes in advance what checkouts of a commit have in common: layers, or files to clone.
func (cs *checkouts) Prepare(ctx context.Context, commit string) error {
	_, why := cs.mounter()
	if why != nil && !cs.cloner.works() {
		return nil
	}
	tree, err := cs.tree(ctx, commit)
	switch {
	case err != nil:
	case why == nil:
		_, err = cs.layers.stackOf(ctx, tree)
	default:
		_, err = cs.layers.baseOf(ctx, tree)
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
		if e.Mode == gitobj.ModeSubmodule && gitDirOf(filepath.Join(cs.top, filepath.FromSlash(p))) != "" {
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
	c.standLayered()
	return c.mountLayers(ctx)
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
	l := centurion.Layers{Workspace: c.dir, At: top, Upper: c.upperDir(), Work: filepath.Join(slot, "work"), Check: c.rec.Check, Caches: filepath.Join(slot, "caches"),
		Binds: []centurion.Bind{{From: c.ownGit(), To: filepath.Join(top, ".git"), Write: true},
			{From: filepath.Join(c.repo.common, "objects"), To: filepath.Join(top, ".git", borrowed)}}}
	for _, id := range ids {
		l.Lower = append(l.Lower, c.repo.layers.files(id))
		if made := c.repo.layers.caches(id); isDir(made) {
			l.CachesBelow = made
		}
	}
	if err := os.MkdirAll(l.Caches, 0o700); err != nil {
		return failed("lay a checkout", "", err)
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

// standLayered is [Checkout.stand] for layers. Only commands in the checkout see its git, so that it is done before the next of them.
func (c *Checkout) standLayered() { c.stale, c.indexed = true, "" }

// fallBehind makes a commit the base of the work; the files follow when the checkout is used next, which most are not after a merge.
func (c *Checkout) fallBehind(ctx context.Context, commit string) (err error) {
	if c.rec.Behind == "" {
		if c.rec.Behind, err = c.repo.tree(ctx, c.rec.Last); err != nil {
			return err
		}
	}
	now, err := c.repo.tree(ctx, commit)
	if err != nil {
		return err
	}
	if c.rec.Behind == now {
		c.rec.Behind = ""
	}
	c.standLayered()
	return c.point(ctx, commit)
}

// catchUp makes the checkout ready for its next use: its files, what its setup has to do for them, and its git.
func (c *Checkout) catchUp(ctx context.Context) error {
	brought, err := c.bringUp(ctx)
	if err != nil || !brought {
		return err
	}
	return c.readyLayered(ctx)
}

// bringUp is catchUp without the setup. brought reports whether files were brought.
func (c *Checkout) bringUp(ctx context.Context) (brought bool, err error) {
	c.using.Lock()
	defer c.using.Unlock()
	if c.rec.Behind != "" {
		if err := c.apply(ctx, c.rec.Behind, c.rec.Start); err != nil {
			return false, err
		}
		c.rec.Behind, brought = "", true
		c.standLayered()
		if err := c.save(); err != nil {
			return false, err
		}
	}
	if c.stale {
		if err := c.refreshIndex(ctx); err != nil {
			return brought, err
		}
		if err := c.standIn(); err != nil {
			return brought, err
		}
		c.stale = false
		_ = os.Remove(c.repo.indexOf(c.name)) // a copy, which can be large
	}
	return brought, nil
}

// refreshIndex makes the index for the checkout's own git.
func (c *Checkout) refreshIndex(ctx context.Context) error {
	trees, err := c.repo.trees(ctx, cmp.Or(c.indexed, c.rec.Tree), c.rec.Last)
	if err != nil {
		return err
	}
	s, err := c.repo.layers.stackOf(ctx, trees[0])
	if err != nil {
		return err
	}
	index := c.repo.indexOf(c.name)
	if c.indexed != "" || trees[0] == trees[1] {
		return copyIndex(s.index, index)
	}
	u, err := c.look(ctx, s)
	if err != nil {
		return err
	}
	gone, err := c.goneFrom(ctx, s, u)
	if err != nil {
		return err
	}
	return c.indexUpper(ctx, index, s, u, gone)
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
	if err := c.catchUp(ctx); err != nil {
		return "", centurion.Place{}, err
	}
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

// apply changes the files from those of one commit or tree to another's, and leaves everything else. Interrupted, it can be done again.
func (c *Checkout) apply(ctx context.Context, from, to string) error {
	tree, err := c.repo.tree(ctx, to)
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
			c.standLayered()
			return nil
		}
	}
	if err := c.Still(); err != nil {
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

// discard removes a checkout that was never used.
func (c *Checkout) discard(ctx context.Context, branch, commit string) error {
	_, err := c.repo.drop(ctx, branch, "", commit)
	return errors.Join(err, c.Still(), c.forget(ctx))
}
