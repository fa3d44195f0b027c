package worktree

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"centurion"
)

// Checkout is a working tree. It belongs to one caller at a time.
//
// Git commands of an agent in it do not affect the host, which uses its own git directory and index, and takes the current files as the
// work. No work is lost: [Checkout.Release] commits first, and deletes a branch only when it is an ancestor of the target commit.
type Checkout struct {
	repo *checkouts
	seat *seat  // the caller's hold on it
	name string // "w1"
	dir  string // the top of the working tree
	rec  record

	index string // instead of the host's own; "" for that

	// With layers:
	using   sync.Mutex // held while the checkout is made ready for its next use
	stale   bool       // HEAD, branch and index of its own git are not yet those of the record
	indexed string     // the commit or tree whose index it gets then; "" for that of the last commit's files
	scanned scanned
	saved   string // the tree that Save stored last
}

// Where is the location of the checkout; Dir is the project's directory in it.
func (c *Checkout) Where() centurion.Checkout {
	return centurion.Checkout{Dir: c.project(), Branch: c.rec.Branch, Start: c.rec.Start, Overlay: c.layered()}
}

// project is the project's directory in the checkout.
func (c *Checkout) project() string { return filepath.Join(c.dir, filepath.FromSlash(c.repo.prefix)) }

// view is the checkout's files with the host's index.
func (c *Checkout) view() view {
	v := view{gitDir: c.rec.GitDir, dir: c.dir, index: cmp.Or(c.index, c.repo.indexOf(c.name)), without: c.rec.Outputs}
	if c.layered() {
		v.gitDir, v.dir = c.repo.gitDir, c.upperDir()
	}
	return v
}

// git runs git on the checkout's files with the host's index.
func (c *Checkout) git(ctx context.Context, args ...string) ([]byte, error) {
	return c.repo.git(ctx, c.view().call(args...))
}

// present checks that the directory and its repository entry still exist; a person may have deleted either.
func (c *Checkout) present() error {
	gone := func(what string, err error) error {
		e := &centurion.Error{Op: "use a checkout", Kind: centurion.KindNotFound, Msg: what, Err: err}
		if c.rec.Branch != "" {
			e.Hint = "what was committed in it is on the branch " + c.rec.Branch
		}
		return e
	}
	dir := c.dir
	if c.layered() {
		dir = c.upperDir()
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return gone("the directory "+dir+" was removed", err)
	}
	if c.layered() {
		return nil
	}
	if c.rec.GitDir == "" || !strings.HasPrefix(c.rec.GitDir, c.repo.common+string(filepath.Separator)) {
		return gone(c.dir+" belongs to another repository", nil)
	}
	if _, err := os.Stat(filepath.Join(c.rec.GitDir, "HEAD")); err != nil {
		return gone("git does not know "+c.dir+" any more (git worktree prune?)", err)
	}
	return nil
}

// held is present for a caller that believes to own the checkout.
func (c *Checkout) held() error {
	if c.rec.Free {
		return &centurion.Error{Op: "use a checkout", Kind: centurion.KindNotFound, Msg: c.dir + " was given back"}
	}
	return c.present()
}

// unlock removes locks left by a git that died with its host; no other process works here.
func (c *Checkout) unlock() {
	for _, path := range []string{c.repo.indexOf(c.name) + ".lock", filepath.Join(c.rec.GitDir, "index.lock"), filepath.Join(c.rec.GitDir, "HEAD.lock")} {
		os.Remove(path)
	}
}

// bring makes the files match a commit or tree: it updates tracked files, removes untracked ones except those of the setup, and keeps
// ignored ones. Only differing files are written.
func (c *Checkout) bring(ctx context.Context, to string) error {
	if c.layered() {
		return c.apply(ctx, c.rec.Last, to)
	}
	link := "gitdir: " + filepath.ToSlash(c.rec.GitDir) + "\n"
	if b, err := os.ReadFile(filepath.Join(c.dir, ".git")); err != nil || string(b) != link {
		os.RemoveAll(filepath.Join(c.dir, ".git")) // made by an agent
		if err := os.WriteFile(filepath.Join(c.dir, ".git"), []byte(link), 0o644); err != nil {
			return failed("bring a checkout", "cannot write the link to the repository", err)
		}
	}
	// .opencode/ of the project is marked as not checked out, by patterns that only the host's calls read. An agent's git sees only the
	// marks, and keeps them.
	patterns := "/*\n!/" + escapePattern(c.repo.private()) + "\n"
	if err := writeFile(filepath.Join(c.rec.GitDir, "info", "sparse-checkout"), []byte(patterns), 0o644); err != nil {
		return failed("bring a checkout", "cannot write its patterns", err)
	}
	read := c.view().call("read-tree", "--reset", "-u", to)
	read.Config = []string{"core.sparseCheckout=true", "core.sparseCheckoutCone=false", "sparse.expectFilesOutsideOfPatterns=true"}
	if _, err := c.repo.git(ctx, read); err != nil {
		if ctx.Err() != nil || centurion.KindOf(err) == centurion.KindDisk {
			return err
		}
		os.Remove(c.repo.indexOf(c.name)) // it may be damaged; without it every file is rewritten
		if _, again := c.repo.git(ctx, read); again != nil {
			return again
		}
	}
	args := []string{"clean", "-ffdq"}
	for _, p := range c.rec.Outputs {
		args = append(args, "-e", "/"+escapePattern(p))
	}
	if _, err := c.git(ctx, args...); err != nil {
		return err
	}
	tree, err := c.repo.tree(ctx, to)
	if err != nil {
		return err
	}
	c.rec.Tree = tree
	return c.submodules(ctx)
}

// stand makes HEAD and the index for an agent's git match Start and Branch, and ends an agent's unfinished merge or rebase.
func (c *Checkout) stand(ctx context.Context) error {
	if c.layered() {
		c.standLayered()
		return nil
	}
	at := call{Dir: c.dir, GitDir: c.rec.GitDir, WorkTree: c.dir}
	want := c.rec.Start
	if c.rec.Branch != "" {
		want = c.onBranch()
		at.Args = []string{"symbolic-ref", "HEAD", "refs/heads/" + c.rec.Branch}
	} else {
		at.Args = []string{"update-ref", "--no-deref", "HEAD", c.rec.Start}
	}
	if !standsAt(c.rec.GitDir, want) {
		if _, err := c.repo.git(ctx, at); err != nil {
			return err
		}
	}
	for _, name := range operations {
		if err := os.RemoveAll(filepath.Join(c.rec.GitDir, name)); err != nil {
			return failed("bring a checkout", "", err)
		}
	}
	return copyIndex(c.repo.indexOf(c.name), filepath.Join(c.rec.GitDir, "index"))
}

// operations are what a merge, a rebase or the like, that is not finished, leaves in a git directory.
var operations = []string{"MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD", "AUTO_MERGE", "BISECT_LOG", "rebase-merge", "rebase-apply", "sequencer"}

// onBranch is the content of HEAD while the checkout is on its branch.
func (c *Checkout) onBranch() string { return "ref: refs/heads/" + c.rec.Branch }

// share replaces the copy of .opencode by a link to the project's own.
func (c *Checkout) share() error {
	if c.layered() { // it is shown in the mount
		return nil
	}
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return failed("bring a checkout", "", err)
	}
	defer root.Close()
	if p := c.repo.prefix; p != "" {
		if err := root.MkdirAll(p, 0o755); err != nil {
			return failed("bring a checkout", "cannot make the project's directory", err)
		}
	}
	real := filepath.Join(c.repo.top, filepath.FromSlash(c.repo.private()))
	at := filepath.FromSlash(c.repo.private())
	if old, err := root.Readlink(at); err == nil && old == real {
		return nil
	}
	if err := root.RemoveAll(at); err != nil {
		return failed("bring a checkout", "cannot remove a copy of .opencode", err)
	}
	if !canLink {
		return nil
	}
	if err := root.Symlink(real, at); err != nil && !errors.Is(err, fs.ErrExist) {
		return failed("bring a checkout", "cannot link .opencode", err)
	}
	return nil
}

// settled refuses if there is work outside the last commit.
func (c *Checkout) settled(ctx context.Context, op string) error {
	if c.rec.Branch == "" {
		return nil
	}
	tree, err := c.scan(ctx)
	if err != nil {
		return err
	}
	last, err := c.repo.tree(ctx, c.rec.Last)
	if err != nil {
		return err
	}
	if last != tree {
		return &centurion.Error{Op: op, Kind: centurion.KindConflict, Msg: "there is uncommitted work in " + c.dir, Hint: "commit it first"}
	}
	return c.keepStray(ctx)
}

// Move moves a checkout without uncommitted work to another commit, which becomes its Start. Ignored files stay. The error has
// centurion.KindConflict if there is uncommitted work. The old commit is kept under refs/centurion/kept/ unless the new one contains it
// or its change.
func (c *Checkout) Move(ctx context.Context, commit string) error {
	if err := c.held(); err != nil {
		return err
	}
	commit, err := c.repo.commitOf(ctx, commit)
	if err != nil {
		return err
	}
	if err := c.settled(ctx, "move a checkout"); err != nil {
		return err
	}
	if c.rec.Branch != "" && c.rec.Last != c.rec.Start {
		landed, err := c.repo.hasChange(ctx, commit, c.rec.Last, c.rec.Start)
		if err == nil && !landed {
			err = c.repo.keep(ctx, c.rec.Branch, c.rec.Last)
		}
		if err != nil {
			return err
		}
	}
	if c.layered() {
		return c.fallBehind(ctx, commit)
	}
	if err := c.shift(ctx, commit, commit); err != nil {
		return err
	}
	return c.finish(ctx)
}

// finish prepares the files for work, and saves the record.
func (c *Checkout) finish(ctx context.Context) error {
	if err := c.stand(ctx); err != nil {
		return err
	}
	if err := c.share(); err != nil {
		return err
	}
	if err := c.ready(ctx); err != nil {
		return err
	}
	return c.save()
}

// shift moves the files to a tree or commit and makes onto the base of the work. It records the intention first, so that a crash cannot
// leave half of it; the end of ctx does not stop it.
func (c *Checkout) shift(ctx context.Context, to, onto string) error {
	if c.rec.Behind != "" {
		if err := c.catchUp(ctx); err != nil {
			return err
		}
	}
	c.rec.Next, c.rec.Onto = to, onto
	if err := c.save(); err != nil {
		return err
	}
	err := c.shifted(context.WithoutCancel(ctx))
	if err != nil && c.rec.Next != "" { // a surviving session continues to write here, which must not be overwritten later
		c.rec.Next, c.rec.Onto = "", ""
		return errors.Join(err, c.save())
	}
	return err
}

// shifted completes a recorded shift.
func (c *Checkout) shifted(ctx context.Context) error {
	if err := c.bring(ctx, c.rec.Next); err != nil {
		return err
	}
	onto := c.rec.Onto
	c.rec.Next, c.rec.Onto = "", ""
	return c.point(ctx, onto) // which saves the record
}

// point makes commit the base of the work, and moves the branch there.
func (c *Checkout) point(ctx context.Context, commit string) error {
	if c.rec.Branch != "" {
		if err := c.repo.db.MoveRef(ctx, "refs/heads/"+c.rec.Branch, commit, ""); err != nil {
			return err
		}
	}
	c.rec.Start, c.rec.Last, c.saved = commit, commit, ""
	return c.save()
}

// Lay writes a tree (of a conflict) over the working tree and makes onto its Start, so that the next commit is based on it. The last
// commit is kept under refs/centurion/kept/. The error has centurion.KindConflict if there is uncommitted work.
func (c *Checkout) Lay(ctx context.Context, tree, onto string) error {
	if err := c.held(); err != nil {
		return err
	}
	onto, err := c.repo.commitOf(ctx, onto)
	if err != nil {
		return err
	}
	if err := c.settled(ctx, "lay a tree"); err != nil {
		return err
	}
	if c.rec.Branch != "" && c.rec.Last != c.rec.Start {
		if err := c.repo.keep(ctx, c.rec.Branch, c.rec.Last, onto); err != nil {
			return err
		}
	}
	if err := c.shift(ctx, tree, onto); err != nil {
		return err
	}
	if err := c.stand(ctx); err != nil {
		return err
	}
	if err := c.share(); err != nil {
		return err
	}
	// For the agent's git, the changes of the tree are uncommitted: its index is that of onto, with refreshed file data.
	if c.layered() {
		c.indexed = onto
		return nil
	}
	_, err = c.repo.git(ctx, call{Dir: c.dir, GitDir: c.rec.GitDir, WorkTree: c.dir, Args: []string{"read-tree", "--reset", onto}})
	return err
}

// Clean prepares the checkout for a check: it updates tracked files to the tree, removes untracked ones and keeps ignored ones. If tree
// is a commit, HEAD is set to it. The error has centurion.KindConflict if the checkout has a branch and uncommitted work.
func (c *Checkout) Clean(ctx context.Context, tree string) error {
	if err := c.held(); err != nil {
		return err
	}
	if err := c.settled(ctx, "clean a checkout"); err != nil {
		return err
	}
	if c.layered() {
		if c.rec.Branch != "" {
			return &centurion.Error{Op: "clean a checkout", Kind: centurion.KindUsage, Msg: c.dir + " has a branch"}
		}
		if err := c.relay(ctx, tree); err != nil {
			return err
		}
	} else if err := c.bring(ctx, tree); err != nil {
		return err
	}
	if c.rec.Branch == "" && tree != c.rec.Tree { // the id of a tree is not a commit's
		if commit, err := c.repo.commitOf(ctx, tree); err == nil {
			c.rec.Start, c.rec.Last = commit, commit
		} else if centurion.KindOf(err) != centurion.KindNotFound {
			return err
		}
	}
	return c.finish(ctx)
}

// Changed lists tracked files that differ from the checkout's last tree, relative to the repository's top.
func (c *Checkout) Changed(ctx context.Context) ([]string, error) {
	if err := c.held(); err != nil {
		return nil, err
	}
	return c.changed(ctx)
}

// changed is Changed for a checkout without an owner, too.
func (c *Checkout) changed(ctx context.Context) ([]string, error) {
	if c.layered() {
		tree, err := c.scanLayers(ctx)
		if err != nil {
			return nil, err
		}
		at := c.rec.Tree
		if c.rec.Behind != "" {
			at = c.rec.Start
		}
		return c.between(ctx, at, tree, true)
	}
	out, err := c.git(ctx, "diff", "--no-ext-diff", "--no-textconv", "--no-renames", "--diff-filter=a", "--name-only", "-z", c.rec.Tree,
		"--", ":(top,glob)**", exclude(c.repo.private()))
	return fields(out), err
}

// Uncommitted lists files changed, added or deleted since the last commit, relative to the repository's top. It omits ignored files,
// files of the setup, and nested repositories. It takes one git process, cheap enough to run after each command.
func (c *Checkout) Uncommitted(ctx context.Context) ([]string, error) {
	if err := c.held(); err != nil {
		return nil, err
	}
	if c.layered() {
		tree, err := c.scanLayers(ctx)
		if err != nil {
			return nil, err
		}
		return c.between(ctx, c.rec.Last, tree, false)
	}
	// Not ls-files: that does not list a file which has become a directory.
	out, err := c.git(ctx, "status", "--porcelain", "-z", "-uall", "--no-renames", "--ignore-submodules=dirty", "--", ":(top,glob)**", exclude(c.repo.private()))
	if err != nil {
		return nil, err
	}
	var files []string
	for _, f := range fields(out) {
		if len(f) > 3 && f[1] != ' ' { // the second letter is of the files, the first of the agent's own commits
			files = append(files, f[3:])
		}
	}
	return slices.DeleteFunc(files, func(p string) bool {
		return strings.HasSuffix(p, "/") || slices.ContainsFunc(c.rec.Outputs, func(o string) bool { return p == o || strings.HasPrefix(p, o+"/") })
	}), nil
}
