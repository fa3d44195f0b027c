package worktree

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"centurion"
)

// Diff lists the changes between two commits or trees, with hunks (three lines of context) and renames, without .opencode/. Binary
// files, submodules and type changes (such as a file to a link) have no hunks.
func (o *objects) Diff(ctx context.Context, from, to string) ([]centurion.FileDiff, error) {
	all, err := o.changes(ctx, from, to, true)
	if err != nil {
		return nil, err
	}
	diffs := make([]centurion.FileDiff, len(all))
	for i, c := range all {
		diffs[i] = c.FileDiff
	}
	return diffs, nil
}

// Stat is Diff without the hunks.
func (o *objects) Stat(ctx context.Context, from, to string) ([]centurion.FileChange, error) {
	all, err := o.changes(ctx, from, to, false)
	return fileChanges(all), err
}

func fileChanges(all []change) []centurion.FileChange {
	files := make([]centurion.FileChange, 0, len(all)) // never null in JSON
	for _, c := range all {
		files = append(files, c.FileChange)
	}
	return files
}

// Patch is the change between two commits or trees as text, as printed by `git diff`, optionally with ANSI colours. paths, relative to
// the repository's top, limit it to files at or below them. `git apply` accepts it, including binary files; .opencode/ is omitted.
func (o *objects) Patch(ctx context.Context, from, to string, color bool, paths ...string) (string, error) {
	trees, err := o.trees(ctx, from, to)
	if err != nil {
		return "", err
	}
	if len(paths) == 0 && !color { // as checks ask for it
		if trees[0] == trees[1] {
			return "", nil
		}
		out, err := o.db.Compare(ctx, trees[0], trees[1], patchArgs(nil, color, o.private(), nil)...)
		return string(out), err
	}
	out, err := o.git(ctx, call{Args: patchArgs(trees, color, o.private(), paths)})
	return string(out), err
}

// diffTree compares two trees regardless of the person's diff configuration.
func diffTree(more ...string) []string {
	return append([]string{"diff-tree", "-r", "--full-index", "--no-ext-diff", "--no-textconv", "--no-color-moved", "-U3",
		"--inter-hunk-context=0", "--src-prefix=a/", "--dst-prefix=b/", "--no-relative", "--ignore-submodules=none",
		"--submodule=short", "--diff-algorithm=myers", "--indent-heuristic", "-O/dev/null"}, more...)
}

func patchArgs(trees []string, color bool, own string, paths []string) []string {
	args := diffTree("-M", "-l2000", "-p", "--binary", "--color=never")
	if color {
		args[len(args)-1] = "--color=always"
	}
	args = append(append(args, trees...), "--")
	for _, p := range paths {
		args = append(args, ":(top,literal)"+strings.TrimSuffix(p, "/"))
	}
	if len(paths) == 0 {
		args = append(args, ":(top)")
	}
	return append(args, ":(top,exclude,literal)"+own)
}

// trees resolves commits or trees to trees.
func (o *objects) trees(ctx context.Context, commits ...string) ([]string, error) {
	trees := make([]string, 0, len(commits))
	for _, c := range commits {
		t, err := o.tree(ctx, c)
		if err != nil {
			return nil, err
		}
		trees = append(trees, t)
	}
	return trees, nil
}

// changes compares two commits or trees, detecting renames.
func (o *objects) changes(ctx context.Context, from, to string, hunks bool) ([]change, error) {
	trees, err := o.trees(ctx, from, to)
	if err != nil || trees[0] == trees[1] {
		return nil, err
	}
	args := diffTree("-M", "-l2000", "--raw", "--numstat", "-z", "--no-color")
	if hunks {
		args = append(args, "-p")
	}
	out, err := o.db.Compare(ctx, trees[0], trees[1], append(args, "--", ":(top)", ":(top,exclude,literal)"+o.private())...)
	if err != nil {
		return nil, err
	}
	return parseChanges(out)
}

// Log lists the first-parent commits from `from` (empty: from the root) to `to`, oldest first, without their files.
func (o *objects) Log(ctx context.Context, from, to string) ([]Commit, error) {
	args := []string{"rev-list", "--first-parent", "--reverse", "--topo-order", "--no-commit-header", "--format=%H %T %P", to}
	if from != "" {
		args = append(args, "^"+from)
	}
	out, err := o.git(ctx, call{Args: append(args, "--")})
	if err != nil {
		return nil, err
	}
	var all []Commit
	for l := range strings.Lines(string(out)) {
		ids := strings.Fields(l)
		if len(ids) < 2 {
			continue
		}
		c := Commit{ID: ids[0], Tree: ids[1]}
		if len(ids) > 2 {
			c.Parent = ids[2]
		}
		all = append(all, c)
	}
	return all, nil
}

// Message returns the message of a commit.
func (o *objects) Message(ctx context.Context, commit string) (string, error) {
	out, err := o.git(ctx, call{Args: []string{"log", "-1", "--no-show-signature", "--format=%B", commit, "--"}})
	return strings.TrimSpace(string(out)), err
}

// LastWith returns the newest first-parent commit between `from` (may be empty) and `to` whose message has that line; empty if there is
// none.
func (o *objects) LastWith(ctx context.Context, text, from, to string) (string, error) {
	args := []string{"rev-list", "--first-parent", "--no-commit-header", "--format=%H%n%B%x00", to}
	if from != "" {
		args = append(args, "^"+from)
	}
	out, err := o.git(ctx, call{Args: append(args, "--")})
	if err != nil {
		return "", err
	}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		id, message, _ := strings.Cut(strings.TrimSpace(entry), "\n")
		for l := range strings.Lines(message) {
			if strings.TrimSpace(l) == text {
				return id, nil
			}
		}
	}
	return "", nil
}

// CommitTree makes a commit of a tree with a parent. It moves no branch.
func (o *objects) CommitTree(ctx context.Context, tree, parent, message string) (string, error) {
	tree, err := o.tree(ctx, tree)
	if err != nil {
		return "", err
	}
	return o.commitTree(ctx, tree, o.attributed(message), nil, parent)
}

// Look returns the tree of the current files of a checkout. It may run while another session works there, and changes nothing.
func (s *checkouts) Look(ctx context.Context, at centurion.Checkout) (tree string, err error) {
	tmp, err := os.MkdirTemp(s.opts.Home, "look-")
	if err != nil {
		return "", failed("look into checkout", "cannot make a directory for the index", err)
	}
	defer os.RemoveAll(tmp) // leftovers are among the checkouts and do no harm
	top := at.Dir
	if s.prefix != "" {
		top = strings.TrimSuffix(filepath.ToSlash(filepath.Clean(top)), "/"+s.prefix)
	}
	index := filepath.Join(tmp, "index")
	if name := filepath.Base(filepath.Dir(top)); number(name) > 0 {
		if rec, ok := s.readRecord(name); ok && rec.Ground != "" && rec.Branch == at.Branch {
			c := &Checkout{repo: s, name: name, dir: top, rec: rec, index: index}
			return c.scanLayers(ctx)
		}
	}
	if _, err := os.Stat(top); err != nil {
		return "", failed("look into checkout", "there is no checkout at "+at.Dir, err)
	}
	v := view{gitDir: s.gitDir, dir: top, index: index}
	if _, err := s.git(ctx, v.call("read-tree", at.Start)); err != nil {
		return "", err
	}
	if _, err := s.gather(ctx, v, at.Start); err != nil {
		return "", err
	}
	out, err := s.git(ctx, v.call("write-tree"))
	return line(out), err
}
