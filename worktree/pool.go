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
	"sync"

	"centurion"
)

// pool tells which checkouts of the home somebody of this host has. Everything else about them is on the disk.
type pool struct {
	mu   sync.Mutex
	used map[string]bool // by name
}

// claim takes a name for its caller, unless somebody has it.
func (p *pool) claim(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used[name] {
		return false
	}
	if p.used == nil {
		p.used = map[string]bool{}
	}
	p.used[name] = true
	return true
}

func (p *pool) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.used, name)
}

// names lists the checkouts of the home: directories and records that are named w and a number, the lowest first.
func (r *Repo) names() []string {
	entries, err := os.ReadDir(r.opts.Home)
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

// Take brings a checkout from the pool, or makes one. Its tracked files are those of w.Commit, there are no untracked ones,
// and those that are ignored are as they were, so that dependencies need not be installed again; files that the project
// names in .worktreeinclude are copied from the person's tree. A checkout of w.Branch that a host which died has left is
// given back as it is, with its own Start. A branch of that name whose work is not in w.Commit is kept under
// refs/centurion/kept/ before it begins anew.
func (r *Repo) Take(ctx context.Context, w Want) (*Checkout, error) {
	if err := r.Hide(ctx); err != nil {
		return nil, err
	}
	if w.Branch != "" {
		if c, err := r.left(ctx, w.Branch); c != nil || err != nil {
			return c, err
		}
	}
	commit, err := r.commitOf(ctx, w.Commit)
	if err != nil {
		return nil, err
	}
	w.Commit = commit
	for _, name := range r.names() {
		if !r.pool.claim(name) {
			continue
		}
		c, err := r.pooled(ctx, name, w)
		if err != nil {
			r.pool.leave(name)
			return nil, err
		}
		if c != nil {
			return c, nil
		}
		r.pool.leave(name)
	}
	return r.fresh(ctx, w)
}

// left finds the checkout of a branch that nobody has now.
func (r *Repo) left(ctx context.Context, branch string) (*Checkout, error) {
	for _, name := range r.names() {
		rec, ok := r.readRecord(name)
		if !ok || rec.Branch != branch || rec.Free || !rec.Made || !r.pool.claim(name) {
			continue
		}
		c := &Checkout{repo: r, name: name, dir: r.dirOf(name), rec: rec}
		if c.present() != nil {
			r.pool.leave(name)
			continue
		}
		c.unlock()
		if rec.Next != "" {
			if err := c.shifted(ctx); err != nil {
				r.pool.leave(name)
				return nil, err
			}
		}
		return c, nil
	}
	return nil, nil
}

// pooled takes the checkout of that name if it is free, or mends it if it was never finished. It returns nil if it is not
// to be had.
func (r *Repo) pooled(ctx context.Context, name string, w Want) (*Checkout, error) {
	rec, ok := r.readRecord(name)
	c := &Checkout{repo: r, name: name, dir: r.dirOf(name), rec: rec}
	if !ok {
		return nil, c.rescue(ctx)
	}
	if rec.Made && !rec.Free && rec.Branch != "" {
		return nil, nil // a mission that is not running has work in it
	}
	if c.present() != nil {
		return nil, c.forget(ctx)
	}
	return c, c.begin(ctx, w)
}

// fresh makes a new checkout.
func (r *Repo) fresh(ctx context.Context, w Want) (*Checkout, error) {
	name, err := r.newName()
	if err != nil {
		return nil, err
	}
	c := &Checkout{repo: r, name: name, dir: r.dirOf(name)}
	err = c.add(ctx, w.Commit)
	if err == nil {
		err = c.begin(ctx, w)
	}
	if err != nil {
		// What is half made is taken up by the next Take. After a full disk it had better go.
		if centurion.KindOf(err) == centurion.KindDisk && !c.rec.Made {
			_ = c.forget(context.WithoutCancel(ctx))
		}
		r.pool.leave(name)
		return nil, err
	}
	return c, nil
}

// newName makes the directory of a checkout under a name that nobody has.
func (r *Repo) newName() (string, error) {
	for n := 1; ; n++ {
		name := "w" + strconv.Itoa(n)
		if _, err := os.Lstat(r.recordOf(name)); err == nil || !r.pool.claim(name) {
			continue
		}
		err := os.Mkdir(r.dirOf(name), 0o700)
		if err == nil {
			os.Remove(r.indexOf(name))
			return name, nil
		}
		r.pool.leave(name)
		if !errors.Is(err, fs.ErrExist) {
			return "", failed("make a checkout", "cannot make "+r.dirOf(name), err)
		}
	}
}

// add makes the worktree, still without files. Git takes no lock for its list of worktrees, so we do.
func (c *Checkout) add(ctx context.Context, commit string) error {
	r := c.repo
	r.admin.Lock()
	defer r.admin.Unlock()
	if _, err := r.git(ctx, call{Args: []string{"worktree", "add", "-q", "--no-checkout", "--detach", c.dir, commit}}); err != nil {
		return err
	}
	gitDir, err := linkTarget(c.dir)
	if err != nil {
		return failed("make a checkout", "git made no link in "+c.dir, err)
	}
	c.rec = record{GitDir: gitDir}
	return c.save()
}

// linkTarget reads the git directory that the file .git in dir names.
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

// begin brings a free checkout to what w wants and makes it the caller's.
func (c *Checkout) begin(ctx context.Context, w Want) error {
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

// startBranch makes a branch, or brings one of that name, whose work is kept, to commit.
func (r *Repo) startBranch(ctx context.Context, branch, commit string) error {
	ref := "refs/heads/" + branch
	old, err := r.commitOf(ctx, ref)
	if err == nil && old != commit {
		if err := r.keep(ctx, branch, old, commit); err != nil {
			return err
		}
	}
	_, err = r.git(ctx, call{Args: []string{"update-ref", ref, commit}})
	return err
}

// keep keeps a commit alive under refs/centurion/kept/, unless one of those in has it as an ancestor.
func (r *Repo) keep(ctx context.Context, label, commit string, in ...string) error {
	for _, other := range in {
		if commit == other {
			return nil
		}
		_, err := r.git(ctx, call{Args: []string{"merge-base", "--is-ancestor", commit, other}})
		if err == nil {
			return nil
		}
		if code := exitCode(err); code != 1 && code != 128 {
			return err
		}
	}
	ref := keptRefs + cmp.Or(label, "detached") + "/" + commit[:min(12, len(commit))]
	_, err := r.git(ctx, call{Args: []string{"update-ref", ref, commit}})
	return err
}

// keptRefs is where commits stay that no branch has any more.
const keptRefs = "refs/centurion/kept/"

// commitOf resolves a name to a commit. The error has centurion.KindNotFound if there is none.
func (r *Repo) commitOf(ctx context.Context, name string) (string, error) {
	if c := r.objects.known(itsCommit, name); c != "" {
		return c, nil
	}
	out, err := r.git(ctx, call{Args: []string{"rev-parse", "-q", "--verify", "--end-of-options", name + "^{commit}"}})
	if err != nil {
		if exitCode(err) != 0 {
			return "", &centurion.Error{Op: "find a commit", Kind: centurion.KindNotFound, Msg: "there is no commit " + strconv.Quote(name), Err: err}
		}
		return "", err
	}
	r.objects.learn(itsCommit, line(out), line(out))
	return line(out), nil
}

// Reopen finds the checkout that a host which died had at dir, with everything that was written in it. The error has
// centurion.KindNotFound if there is none.
func (r *Repo) Reopen(ctx context.Context, at centurion.Checkout) (*Checkout, error) {
	gone := &centurion.Error{Op: "reopen a checkout", Kind: centurion.KindNotFound, Msg: "there is no checkout at " + at.Dir}
	if at.Branch != "" {
		gone.Hint = "what was committed in it is on the branch " + at.Branch
	}
	for _, name := range r.names() {
		rec, ok := r.readRecord(name)
		c := &Checkout{repo: r, name: name, dir: r.dirOf(name), rec: rec}
		if !ok || c.project() != filepath.Clean(at.Dir) {
			continue
		}
		if !rec.Made || rec.Free || rec.Branch != at.Branch {
			return nil, gone
		}
		if err := c.present(); err != nil {
			gone.Err = err
			return nil, gone
		}
		if !r.pool.claim(name) {
			return nil, &centurion.Error{Op: "reopen a checkout", Kind: centurion.KindConflict, Msg: "somebody works in " + at.Dir + " already"}
		}
		c.unlock()
		if rec.Next != "" {
			if err := c.shifted(ctx); err != nil {
				r.pool.leave(name)
				return nil, err
			}
		}
		return c, nil
	}
	return nil, gone
}
