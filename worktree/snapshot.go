package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"centurion"
)

// Snapshot commits the person's view: HEAD with modified and untracked, but not ignored files. It does not touch index, branch or
// files. Without dirty, or without uncommitted changes, it is HEAD. ref (refs/...) keeps the commit alive.
//
// It omits changes in .opencode/ of the project, nested repositories, uncommitted changes inside submodules, and the biggest untracked
// files if all together exceed [MaxUntracked]. With unmerged files the error has centurion.KindConflict. In a repository without
// commits the result is a root commit that is on no branch.
func (s *snapshots) Snapshot(ctx context.Context, ref string, dirty bool) (centurion.Base, error) {
	head, err := s.Head(ctx)
	if err != nil {
		return centurion.Base{}, err
	}
	base := centurion.Base{Commit: head.Commit, Head: head.Commit, Branch: head.Branch}
	if dirty || head.Commit == "" {
		tree, n, err := s.sight(ctx, head.Commit, dirty, &base)
		if err != nil {
			return centurion.Base{}, err
		}
		if n > 0 || head.Commit == "" {
			base.Dirty = n
			if base.Commit, err = s.commitTree(ctx, tree, "Uncommitted changes at the start of the mission\n", nil, head.Commit); err != nil {
				return centurion.Base{}, err
			}
		}
	}
	if _, err := s.git(ctx, call{Args: []string{"update-ref", ref, base.Commit}}); err != nil {
		return centurion.Base{}, err
	}
	return base, nil
}

// sight writes the tree of the person's view and counts the files that differ from head. It uses a copy of the person's index, so that
// unchanged files are not read.
func (s *snapshots) sight(ctx context.Context, head string, dirty bool, base *centurion.Base) (tree string, n int, err error) {
	index, remove, err := s.temp()
	if err != nil {
		return "", 0, err
	}
	defer remove()
	if dirty {
		if err := copyIndex(filepath.Join(s.gitDir, "index"), index); err != nil {
			return "", 0, err
		}
		if err := s.unmerged(ctx, index); err != nil {
			return "", 0, err
		}
		v := view{gitDir: s.gitDir, dir: s.top, index: index, leave: func(untracked []string) []string {
			base.LeftOut, base.LeftOutBytes = tooBig(s.top, untracked, MaxUntracked)
			return base.LeftOut
		}}
		if _, err := s.gather(ctx, v, head); err != nil {
			return "", 0, err
		}
	}
	out, err := s.git(ctx, call{Index: index, Args: []string{"write-tree"}})
	if err != nil {
		return "", 0, err
	}
	tree = line(out)
	args := []string{"ls-tree", "-r", "-z", "--name-only", tree}
	if head != "" {
		args = []string{"diff-tree", "-r", "-z", "--name-only", "--no-renames", head, tree}
	}
	out, err = s.git(ctx, call{Args: args})
	return tree, len(fields(out)), err
}

// MaxUntracked limits the untracked files in a snapshot, in total bytes: more are data or build results, and each checkout would copy
// them again.
const MaxUntracked = 50 << 20

// tooBig selects the biggest files to omit, so that the others fit into the limit.
func tooBig(dir string, names []string, limit int64) (big []string, size int64) {
	type file struct {
		name string
		size int64
	}
	var files []file
	var total int64
	for _, name := range names {
		if info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name))); err == nil && info.Mode().IsRegular() {
			files = append(files, file{name, info.Size()})
			total += info.Size()
		}
	}
	slices.SortStableFunc(files, func(a, b file) int { return cmp.Compare(b.size, a.size) })
	for _, f := range files {
		if total <= limit {
			break
		}
		big, size, total = append(big, f.name), size+f.size, total-f.size
	}
	return big, size
}

// unmerged refuses an index with an unfinished merge: the wanted content of these files is unknown.
func (s *snapshots) unmerged(ctx context.Context, index string) error {
	out, err := s.git(ctx, call{Index: index, Args: []string{"ls-files", "-u", "-z"}})
	if err != nil || len(out) == 0 {
		return err
	}
	files := map[string]bool{}
	first := ""
	for _, f := range fields(out) {
		_, path, _ := strings.Cut(f, "\t")
		files[path] = true
		if first == "" {
			first = path
		}
	}
	return &centurion.Error{Op: "take a snapshot", Kind: centurion.KindConflict, Msg: fmt.Sprintf("a merge is not finished: %d unmerged files, the first is %s", len(files), first),
		Hint: "resolve them and git add them, or git merge --abort, or leave uncommitted work out with --dirty ignore"}
}

// view is a set of files with an index of the host.
type view struct {
	gitDir, dir, index string
	without            []string // omitted untracked paths, relative to dir
	subs               []string // submodules that keep their recorded commit
	// leave selects further untracked files to omit; nil for none.
	leave func(untracked []string) []string
}

func (v view) call(args ...string) call {
	return call{Dir: v.dir, GitDir: v.gitDir, WorkTree: v.dir, Index: v.index, Args: args}
}

// gather updates an index to the current files, except .opencode/ of the project, which stays as in head, and nested repositories,
// which it returns.
func (s *snapshots) gather(ctx context.Context, v view, head string) (nested []string, err error) {
	if err := s.hide(ctx); err != nil { // ignored files are not read
		return nil, err
	}
	nested, untracked, err := s.untracked(ctx, v)
	if err != nil {
		return nil, err
	}
	// Git rejects exclusions of ignored files, so only files that it would add are named.
	var big, specs []string
	if v.leave != nil {
		big = v.leave(untracked)
	}
	for _, p := range slices.Concat(nested, v.without, big) {
		if slices.ContainsFunc(untracked, func(u string) bool { return u == p || strings.HasPrefix(u, p+"/") }) {
			specs = append(specs, exclude(p))
		}
	}
	if err := s.addAll(ctx, v, append(specs, v.submodules()...)); err != nil {
		return nil, err
	}
	return nested, s.restorePrivate(ctx, v, head)
}

// addAll is `git add -A` without some paths.
func (s *snapshots) addAll(ctx context.Context, v view, without []string) error {
	c := v.call("add", "-A", "--pathspec-from-file=-", "--pathspec-file-nul")
	for try := 0; ; try++ {
		// A pattern such as ** fails if there is no file at all; the top itself does not.
		c.Stdin = strings.NewReader(strings.Join(append([]string{":(top)"}, without...), "\x00"))
		_, err := s.git(ctx, c)
		if err == nil || try == 2 || ctx.Err() != nil { // a file may disappear between being listed and being read
			return err
		}
	}
}

func exclude(path string) string { return ":(exclude,top,literal)" + path }

// submodules are the exclusions of submodules that are handled elsewhere.
func (v view) submodules() []string {
	var specs []string
	for _, p := range v.subs {
		specs = append(specs, exclude(p))
	}
	return specs
}

// untracked lists the files that are neither tracked nor ignored, and the directories among them that are nested repositories; all
// without a trailing slash.
func (s *snapshots) untracked(ctx context.Context, v view) (nested, all []string, err error) {
	out, err := s.git(ctx, v.call("ls-files", "-o", "--exclude-standard", "-z"))
	if err != nil {
		return nil, nil, err
	}
	for _, p := range fields(out) {
		dir, ok := strings.CutSuffix(p, "/")
		if ok {
			nested = append(nested, dir)
		}
		all = append(all, dir)
	}
	return nested, all, nil
}

// restorePrivate resets .opencode/ in an index to its state in head.
func (s *snapshots) restorePrivate(ctx context.Context, v view, head string) error {
	only := ":(top,literal)" + s.private()
	if head == "" {
		_, err := s.git(ctx, v.call("rm", "--cached", "-r", "-q", "-f", "--ignore-unmatch", "--", only))
		return err
	}
	_, err := s.git(ctx, v.call("diff-index", "--cached", "--quiet", head, "--", only))
	if err == nil || exitCode(err) != 1 {
		return err
	}
	_, err = s.git(ctx, v.call("reset", "-q", "--no-refresh", head, "--", only))
	return err
}

// temp returns a name for a temporary index. remove deletes it and its lock.
func (o *objects) temp() (path string, remove func(), err error) {
	dir, err := o.scratch()
	if err != nil {
		return "", nil, err
	}
	return filepath.Join(dir, "index"), func() { os.RemoveAll(dir) }, nil
}

// copyIndex copies an index with its time. Git treats files as changed unless they are older than the index; with a newer time, a file
// written between index and copy, with the same size, would count as unchanged. A missing index is an empty one.
func copyIndex(from, to string) error {
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return failed("copy the index", "", err)
		}
		return nil
	}
	if err != nil {
		return failed("copy the index", "", err)
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return failed("copy the index", "", err)
	}
	half := to + ".half"
	err = os.WriteFile(half, b, 0o600)
	if err == nil {
		err = os.Chtimes(half, info.ModTime(), info.ModTime())
	}
	if err == nil {
		err = os.Rename(half, to)
	}
	if err != nil {
		os.Remove(half)
		return failed("copy the index", "", err)
	}
	return nil
}

// writeFile replaces a file atomically.
func writeFile(path string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	half := path + ".half"
	err := os.WriteFile(half, content, mode)
	if err == nil {
		err = os.Rename(half, path)
	}
	if err != nil {
		os.Remove(half)
	}
	return err
}
