package worktree

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/semaphore"

	"centurion"
	"centurion/worktree/gitobj"
)

// Repo is the repository of a project. Its methods are safe for concurrent use.
type Repo struct {
	*objects
	*reverts
	*snapshots
	*checkouts
	*userSide
}

// repository locates the repository of a project and runs git there.
type repository struct {
	opts   Options
	prog   *program
	top    string // of the person's working tree, with links resolved
	gitDir string // of the person's working tree
	common string // location of objects and refs; gitDir, except in a linked worktree
	prefix string // of the project below top, with slashes
	db     *gitobj.Repo

	admin sync.Mutex // held where git's own locks would collide: the list of worktrees, packed refs
}

// objects reads and makes commits and trees, and moves branches.
type objects struct {
	*repository
	cache objectCache
	left  leftAt
}

// reverts reverts parts of a change in a tree, for the proof and for an undo.
type reverts struct{ *objects }

// snapshots records the person's view: HEAD with uncommitted changes.
type snapshots struct{ *objects }

// checkouts manages the agents' working trees and the work kept from them.
type checkouts struct {
	*snapshots
	pool   pool
	setups setups
	layers layers
	cloner cloner
	making *semaphore.Weighted // checkouts of all files at once: more would only share the disk
}

// userSide is the user's branch, index and files, which only a merge and its undo change.
type userSide struct {
	*objects
	landing sync.Mutex // held while this side is read and changed: merges run one by one
}

// InsideGitError means that a directory belongs to git itself, where writes can damage the repository.
type InsideGitError struct{}

func (InsideGitError) Error() string { return "its files are git's own" }

// Open finds the repository of a project. The error has centurion.KindNotFound if there is no repository or no git program; the message
// says which. Inside a git directory, and in a bare repository, it wraps an [InsideGitError].
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

// answers is git in processes that answer many questions, which differ from c in their arguments.
func (r *repository) answers(c call) *gitobj.Repo {
	return &gitobj.Repo{Temp: filepath.Join(r.opts.Home, "tmp"),
		Command: func(ctx context.Context, args []string) (cmd *exec.Cmd, fresh func() bool, err error) {
			c := c
			c.Args = args
			f, err := r.prog.over.of(ctx, r.prog, c)
			if err != nil {
				return nil, nil, err
			}
			return r.prog.command(context.Background(), c, f), f.fresh, nil
		},
		Failed: func(args []string, stderr string, err error) error {
			return failure(call{Args: args, Dir: c.Dir}, stderr, err)
		}}
}

func newRepo(r *repository) *Repo {
	r.db = r.answers(call{Dir: r.top, GitDir: r.gitDir, WorkTree: r.top})
	all := &objects{repository: r}
	seen := &snapshots{all}
	places := &checkouts{snapshots: seen, making: semaphore.NewWeighted(int64(max(2, runtime.NumCPU())))}
	places.cloner = newCloner(r.opts.Home, cloneDir)
	places.layers = layers{repo: places, settingUp: make(chan struct{}, 1)}
	return &Repo{all, &reverts{all}, seen, places, &userSide{objects: all}}
}

// locate asks git for the repository of dir. It is the only call in which git searches for a repository; git also checks its owner.
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

// check refuses a git that is too old for this package.
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

// git runs git in the repository, by default on the person's working tree, from its top.
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

// private is the project's .opencode relative to the repository's top, with slashes. No commit of the program contains it.
func (r *repository) private() string {
	if r.prefix == "" {
		return ".opencode"
	}
	return r.prefix + "/.opencode"
}

// Head returns the person's HEAD.
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

// Close ends the use of the repository; checkouts stay.
func (r *Repo) Close() error {
	r.db.Close()
	r.layers.keepOnly(nil)
	return nil
}

// failed makes a file system error.
func failed(op, msg string, err error) error {
	return &centurion.Error{Op: op, Kind: kindOf(err), Msg: msg, Err: err}
}

// Init makes dir the top of a new repository with one commit of its content. The error has centurion.KindNotFound if git is missing or
// too old, and centurion.KindConflict if dir is already the top of a repository.
func Init(ctx context.Context, dir, message string) error {
	prog, err := newProgram("")
	if err != nil {
		return err
	}
	if err := prog.check(ctx); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return failed("make repository", "cannot open "+dir, err)
	}
	defer root.Close()
	if _, err := root.Lstat(".git"); err == nil {
		return &centurion.Error{Op: "make repository", Kind: centurion.KindConflict, Msg: dir + " is a repository already"}
	}
	// No template: the person's hooks and excludes do not belong into it.
	for _, args := range [][]string{{"init", "-q", "--template=", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "--allow-empty", "-m", message}} {
		if _, err := prog.run(ctx, call{Dir: dir, Seek: true, Args: args}); err != nil {
			return err
		}
	}
	return nil
}
