package worktree

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"centurion"
)

// Repo is the repository of a project. Its methods may be called from several goroutines.
type Repo struct {
	*objects
	*reverts
	*snapshots
	*checkouts
	*userSide
}

// repository is where the repository of a project is, and how git runs there.
type repository struct {
	opts   Options
	prog   *program
	top    string // of the person's working tree, with links resolved
	gitDir string // of the person's working tree
	common string // where objects and refs are; gitDir, except in a linked worktree
	prefix string // of the project below top, with slashes

	admin sync.Mutex // held where git's own locks would collide: the list of worktrees, packed refs
}

// objects reads and makes commits and trees, and moves branches.
type objects struct {
	*repository
	cache objectCache
}

// reverts takes parts of a change out of a tree, for the proof and for an undo.
type reverts struct{ *objects }

// snapshots records what a person sees: HEAD with what is not committed.
type snapshots struct{ *objects }

// checkouts are the working trees in which agents write, and what is kept of them.
type checkouts struct {
	*snapshots
	pool   pool
	setups setups
}

// userSide is the side of the user: their branch, index and files, which only a merge and its undo change.
type userSide struct {
	*objects
	landing sync.Mutex // held while this side is read and changed: one merge after the other
}

// InsideGitError says that a directory belongs to git itself: who writes there can break the repository.
type InsideGitError struct{}

func (InsideGitError) Error() string { return "its files are git's own" }

// Open finds the repository of a project. The error has centurion.KindNotFound if the project lies in none, or if there is no
// git program; the message says which. Inside a git directory, and in a bare repository, there is an [InsideGitError] in it.
func Open(ctx context.Context, o Options) (*Repo, error) {
	prog, err := newProgram(o.Mark)
	if err != nil {
		return nil, err
	}
	if err := prog.check(ctx); err != nil {
		return nil, err
	}
	if o.Keep <= 0 {
		o.Keep = 8
	}
	dir, err := filepath.EvalSymlinks(o.Dir)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return nil, &centurion.Error{Op: "open repository", Kind: centurion.KindNotFound, Msg: "no project at " + o.Dir, Err: err}
	}
	r := &repository{opts: o, prog: prog}
	if err := r.locate(ctx, dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Home, 0o700); err != nil {
		return nil, failed("open repository", "cannot make the directory of the checkouts", err)
	}
	if r.opts.Home, err = filepath.EvalSymlinks(o.Home); err != nil {
		return nil, failed("open repository", "cannot find the directory of the checkouts", err)
	}
	return newRepo(r), nil
}

func newRepo(r *repository) *Repo {
	all := &objects{repository: r}
	seen := &snapshots{all}
	return &Repo{all, &reverts{all}, seen, &checkouts{snapshots: seen}, &userSide{objects: all}}
}

// locate asks git where dir lies. It is the one call that git is left to look around in: it checks the owner, too.
func (r *repository) locate(ctx context.Context, dir string) error {
	out, err := r.prog.run(ctx, call{Dir: dir, Seek: true, Args: []string{"rev-parse", "--path-format=absolute",
		"--is-bare-repository", "--is-inside-work-tree", "--absolute-git-dir", "--git-common-dir"}})
	if err != nil {
		if centurion.KindOf(err) == centurion.KindNotFound {
			return &centurion.Error{Op: "open repository", Kind: centurion.KindNotFound, Msg: dir + " lies in no git repository",
				Hint: "git init makes one; without it, writers share the directory (--isolation shared)", Err: err}
		}
		return err
	}
	answers := strings.Split(line(out), "\n")
	if len(answers) != 4 || answers[1] != "true" {
		msg := dir + " lies inside a git directory, not in a working tree"
		if answers[0] == "true" {
			msg = dir + " is a bare repository: it has no working tree"
		}
		return &centurion.Error{Op: "open repository", Kind: centurion.KindNotFound, Msg: msg, Hint: "go to a clone or a worktree of it", Err: InsideGitError{}}
	}
	r.gitDir, r.common = filepath.Clean(answers[2]), filepath.Clean(answers[3])
	out, err = r.prog.run(ctx, call{Dir: dir, Seek: true, Args: []string{"rev-parse", "--show-toplevel"}})
	if err != nil {
		return err
	}
	if r.top, err = filepath.EvalSymlinks(filepath.FromSlash(line(out))); err != nil {
		return failed("open repository", "cannot find the top of the working tree", err)
	}
	below, err := filepath.Rel(r.top, dir)
	if err != nil || !filepath.IsLocal(below) {
		return &centurion.Error{Op: "open repository", Kind: centurion.KindConfig, Msg: dir + " lies outside the working tree " + r.top + " that its repository names (core.worktree)",
			Hint: "git config --unset core.worktree"}
	}
	if below != "." {
		r.prefix = filepath.ToSlash(below)
	}
	return nil
}

// check refuses a git that lacks what this package needs.
func (p *program) check(ctx context.Context) error {
	out, err := p.run(ctx, call{Args: []string{"version"}})
	if err != nil {
		return err
	}
	// "git version 2.39.5 (Apple Git-154)"
	words := strings.Fields(line(out))
	if len(words) < 3 {
		return nil
	}
	parts := strings.SplitN(words[2], ".", 3)
	if len(parts) < 2 {
		return nil
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if err1 != nil || err2 != nil || major > 2 || major == 2 && minor >= 38 {
		return nil
	}
	return &centurion.Error{Op: "open repository", Kind: centurion.KindNotFound, Msg: "git " + words[2] + " is too old; 2.38 or newer is needed",
		Hint: "install a newer git, or use --isolation shared"}
}

// git runs git in the repository: by default on the person's working tree, from its top.
func (r *repository) git(ctx context.Context, c call) ([]byte, error) {
	if c.GitDir == "" && c.WorkTree == "" && !c.Seek {
		c.GitDir, c.WorkTree = r.gitDir, r.top
	}
	if c.Dir == "" {
		c.Dir = r.top
	}
	return r.prog.run(ctx, c)
}

// Prefix is the project's directory relative to the repository's top, with slashes; empty for the top.
func (r *repository) Prefix() string { return r.prefix }

// private is the project's .opencode relative to the repository's top, with slashes. It belongs to no commit of the program.
func (r *repository) private() string {
	if r.prefix == "" {
		return ".opencode"
	}
	return r.prefix + "/.opencode"
}

// Head returns where the person stands.
func (r *repository) Head(ctx context.Context) (Head, error) {
	var h Head
	out, err := r.git(ctx, call{Args: []string{"symbolic-ref", "-q", "HEAD"}})
	switch {
	case err == nil:
		h.Branch = strings.TrimPrefix(line(out), "refs/heads/")
	case exitCode(err) != 1:
		return Head{}, err
	}
	out, err = r.git(ctx, call{Args: []string{"rev-parse", "-q", "--verify", "HEAD^{commit}"}})
	switch {
	case err == nil:
		h.Commit = line(out)
	case exitCode(err) != 1 || h.Branch == "":
		return Head{}, err
	}
	return h, nil
}

// Close ends the use of the repository; checkouts stay where they are.
func (r *Repo) Close() error { return nil }

// failed is an error of the file system.
func failed(op, msg string, err error) error {
	return &centurion.Error{Op: op, Kind: kindOf(err), Msg: msg, Err: err}
}
