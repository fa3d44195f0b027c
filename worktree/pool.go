package worktree

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"centurion"
)

// names lists the checkouts of the home: directories and records named w<n>, lowest first.
func (cs *checkouts) names() []string {
	entries, err := os.ReadDir(cs.opts.Home)
	if err != nil {
		return nil
	}
	var all []string
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".json")
		if number(name) > 0 && !slices.Contains(all, name) && (e.IsDir() || name != e.Name()) {
			all = append(all, name)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	return all
}

// number is n of "w<n>", or 0.
func number(name string) int {
	digits, ok := strings.CutPrefix(name, "w")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 1 || strconv.Itoa(n) != digits {
		return 0
	}
	return n
}

// Take gets a checkout from the pool, or makes one. Tracked files match w.Commit, there are no untracked ones, and ignored ones are
// unchanged, so that dependencies need not be reinstalled; files named in the project's .worktreeinclude are copied from the person's
// tree. If a host that died left a checkout of w.Branch, Take returns it unchanged, with its own Start. Otherwise the work of an
// existing branch of that name that is not in w.Commit is kept under refs/centurion/kept/, and the branch starts over.
func (cs *checkouts) Take(ctx context.Context, w Want) (*Checkout, error) {
	if err := cs.hide(ctx); err != nil {
		return nil, err
	}
	if w.Branch != "" {
		if c, err := cs.left(ctx, w.Branch); c != nil || err != nil {
			return c, err
		}
	}
	commit, err := cs.commitOf(ctx, w.Commit)
	if err != nil {
		return nil, err
	}
	w.Commit = commit
	c, err := cs.takeLayered(ctx, w)
	if err == nil || cs.opts.Workspaces == WorkspacesOverlay || centurion.KindOf(err) != centurion.KindNotFound {
		return c, err
	}
	for _, name := range cs.names() {
		s := cs.pool.look(name)
		if s == nil {
			continue
		}
		c, err := cs.pooled(ctx, s, w)
		if err != nil {
			cs.pool.leave(s)
			return nil, err
		}
		if c != nil {
			cs.pool.take(s)
			return c, nil
		}
		cs.pool.leave(s)
	}
	return cs.fresh(ctx, w)
}

// left finds the unused checkout of a branch.
func (cs *checkouts) left(ctx context.Context, branch string) (*Checkout, error) {
	ours := func(rec record, ok bool) bool { return ok && rec.Branch == branch && !rec.Free && rec.Made }
	for _, name := range cs.names() {
		if !ours(cs.readRecord(name)) {
			continue
		}
		c, err := cs.returnTo(ctx, name, ours)
		if centurion.KindOf(err) == centurion.KindNotFound {
			continue
		}
		if c != nil || err != nil {
			return c, err
		}
	}
	return nil, nil
}

// returnTo takes over the named checkout unchanged, if its record is still the wanted one. It returns nil if it is in use or its record
// has changed; the error has centurion.KindNotFound if it no longer exists.
func (cs *checkouts) returnTo(ctx context.Context, name string, ours func(rec record, ok bool) bool) (*Checkout, error) {
	s, err := cs.pool.await(ctx, name)
	if s == nil {
		return nil, err
	}
	rec, ok := cs.readRecord(name)
	if !ours(rec, ok) {
		cs.pool.leave(s)
		return nil, nil
	}
	c := &Checkout{repo: cs, seat: s, name: name, dir: cs.dirOf(name), rec: rec}
	if err = c.present(); err == nil {
		c.unlock()
		if c.layered() {
			c.stale = missing(filepath.Join(c.ownGit(), "HEAD")) // it was never used
			if cs.opts.Runner != nil {                           // without one, nothing runs in it
				err = c.mountLayers(ctx)
			}
		}
	}
	if err == nil {
		if rec.Next != "" {
			err = c.shifted(ctx)
		}
	}
	if err != nil {
		cs.pool.leave(s)
		return nil, err
	}
	cs.pool.take(s)
	return c, nil
}

// pooled takes the checkout of a seat if it is free, and repairs an unfinished one. It returns nil if it is not available.
func (cs *checkouts) pooled(ctx context.Context, s *seat, w Want) (*Checkout, error) {
	rec, ok := cs.readRecord(s.name)
	c := &Checkout{repo: cs, seat: s, name: s.name, dir: cs.dirOf(s.name), rec: rec}
	if !ok {
		return nil, c.rescue(ctx)
	}
	if rec.Made && !rec.Free && rec.Branch != "" {
		return nil, nil // a mission that is not running has work in it
	}
	if c.layered() || c.present() != nil {
		return nil, c.forget(ctx)
	}
	return c, c.begin(ctx, w)
}

// fresh makes a new checkout.
func (cs *checkouts) fresh(ctx context.Context, w Want) (*Checkout, error) {
	if cs.making.Acquire(ctx, 1) != nil {
		return nil, context.Cause(ctx)
	}
	defer cs.making.Release(1)
	s, err := cs.newName()
	if err != nil {
		return nil, err
	}
	c := &Checkout{repo: cs, seat: s, name: s.name, dir: cs.dirOf(s.name)}
	err = c.add(ctx, w.Commit)
	if err == nil {
		err = c.cloned(ctx, w.Commit)
	}
	if err == nil {
		err = c.begin(ctx, w)
	}
	if err != nil {
		// The next Take completes a half-made one. On a full disk it is removed instead.
		if centurion.KindOf(err) == centurion.KindDisk && !c.rec.Made {
			_ = c.forget(context.WithoutCancel(ctx))
		}
		cs.pool.leave(s)
		return nil, err
	}
	cs.pool.take(s)
	return c, nil
}

// newName makes the directory of a checkout under an unused name.
func (cs *checkouts) newName() (*seat, error) {
	for n := 1; ; n++ {
		name := "w" + strconv.Itoa(n)
		if _, err := os.Lstat(cs.recordOf(name)); err == nil {
			continue
		}
		s := cs.pool.look(name)
		if s == nil {
			continue
		}
		err := os.Mkdir(cs.slotOf(name), 0o700)
		if err == nil {
			os.Remove(cs.indexOf(name))
			return s, nil
		}
		cs.pool.leave(s)
		if !errors.Is(err, fs.ErrExist) {
			return nil, failed("make a checkout", "cannot make "+cs.slotOf(name), err)
		}
	}
}

// add makes the worktree, without files. Git does not lock its list of worktrees, so we do. The list may contain one whose directory
// and record a person has deleted: -f replaces it.
func (c *Checkout) add(ctx context.Context, commit string) error {
	gitDir, err := c.addWorktree(ctx, commit)
	if err != nil {
		return err
	}
	c.rec = record{GitDir: gitDir}
	return c.save()
}

func (c *Checkout) addWorktree(ctx context.Context, commit string) (gitDir string, err error) {
	r := c.repo
	r.admin.Lock()
	defer r.admin.Unlock()
	if _, err := r.git(ctx, call{Args: []string{"worktree", "add", "-q", "-f", "--no-checkout", "--detach", c.dir, commit}}); err != nil {
		return "", err
	}
	if gitDir, err = linkTarget(c.dir); err != nil {
		return "", failed("make a checkout", "git made no link in "+c.dir, err)
	}
	return gitDir, nil
}

// linkTarget reads the git directory named by the file .git in dir.
func linkTarget(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, ".git"))
	if err != nil {
		return "", err
	}
	target := filepath.FromSlash(strings.TrimSpace(strings.TrimPrefix(string(b), "gitdir: ")))
	if !filepath.IsAbs(target) {
		target = filepath.Join(dir, target)
	}
	return filepath.Clean(target), nil
}

// begin prepares a free checkout for w and gives it to the caller. On failure it deletes the branch, which is unused.
func (c *Checkout) begin(ctx context.Context, w Want) error {
	err := c.beginAt(ctx, w)
	if err != nil {
		_, _ = c.repo.drop(context.WithoutCancel(ctx), w.Branch, c.rec.GitDir, w.Commit) // leftovers are found by GC
	}
	return err
}

func (c *Checkout) beginAt(ctx context.Context, w Want) error {
	c.unlock()
	c.rec.Setup = w.Setup
	if w.Branch != "" {
		if err := c.repo.startBranch(ctx, w.Branch, w.Commit); err != nil {
			return err
		}
	}
	if err := c.bring(ctx, w.Commit); err != nil {
		return err
	}
	c.rec.Branch, c.rec.Start, c.rec.Last = w.Branch, w.Commit, w.Commit
	if err := c.stand(ctx); err != nil {
		return err
	}
	if err := c.share(); err != nil {
		return err
	}
	if err := c.include(ctx); err != nil {
		return err
	}
	if err := c.ready(ctx); err != nil {
		return err
	}
	c.rec.Made, c.rec.Free = true, false
	return c.save()
}

// startBranch makes a branch, or moves an existing one, whose work is kept, to commit.
func (o *objects) startBranch(ctx context.Context, branch, commit string) error {
	ref := "refs/heads/" + branch
	old, err := o.commitOf(ctx, ref)
	if err == nil && old != commit {
		if err := o.keep(ctx, branch, old, commit); err != nil {
			return err
		}
	}
	if old == commit {
		return nil
	}
	return o.db.MoveRef(ctx, ref, commit, "")
}

// keep keeps a commit alive under refs/centurion/kept/, unless it is an ancestor of one of in.
func (o *objects) keep(ctx context.Context, label, commit string, in ...string) error {
	for _, other := range in {
		if in, err := o.reached(ctx, commit, other); in || err != nil {
			return err
		}
	}
	ref := KeptRefs + cmp.Or(label, "detached") + "/" + commit[:min(12, len(commit))]
	return o.db.MoveRef(ctx, ref, commit, "")
}

// KeptRefs is the prefix of the refs that keep commits without a branch.
const KeptRefs = "refs/centurion/kept/"

// commitOf resolves a name to a commit. The error has centurion.KindNotFound if there is none.
func (o *objects) commitOf(ctx context.Context, name string) (string, error) {
	if c := o.cache.known(itsCommit, name); c != "" {
		return c, nil
	}
	id, _, err := o.db.Resolve(ctx, name+"^{commit}")
	if centurion.KindOf(err) == centurion.KindNotFound {
		return "", &centurion.Error{Op: "find a commit", Kind: centurion.KindNotFound, Msg: "there is no commit " + strconv.Quote(name), Err: err}
	}
	o.cache.learn(itsCommit, id, id)
	return id, err
}

// Reopen finds the checkout, with all its files, that a host which died had at a location. The error has centurion.KindNotFound if
// there is none.
func (cs *checkouts) Reopen(ctx context.Context, at centurion.Checkout) (*Checkout, error) {
	gone := &centurion.Error{Op: "reopen a checkout", Kind: centurion.KindNotFound, Msg: "there is no checkout at " + at.Dir}
	if at.Branch != "" {
		gone.Hint = "what was committed or saved in it is on the branch " + at.Branch
	}
	lost := func() error { return cmp.Or(cs.recover(ctx, at.Branch), error(gone)) }
	ours := func(rec record, ok bool) bool {
		return ok && rec.Made && !rec.Free && rec.Branch == at.Branch
	}
	for _, name := range cs.names() {
		c := &Checkout{repo: cs, dir: cs.dirOf(name)}
		if rec, ok := cs.readRecord(name); c.project() != filepath.Clean(at.Dir) {
			continue
		} else if !ours(rec, ok) {
			return nil, lost()
		}
		c, err := cs.returnTo(ctx, name, ours)
		switch {
		case centurion.KindOf(err) == centurion.KindNotFound:
			gone.Err = err
			return nil, lost()
		case err != nil:
			return nil, err
		case c != nil:
			return c, nil
		case !ours(cs.readRecord(name)):
			return nil, lost()
		}
		return nil, &centurion.Error{Op: "reopen a checkout", Kind: centurion.KindConflict, Msg: at.Dir + " is already in use"}
	}
	return nil, lost()
}
