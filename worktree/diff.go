package worktree

import (
	"context"
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
	var files []centurion.FileChange
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
	args = append(append(args, trees...), "--", ":(top)", ":(top,exclude,literal)"+o.private())
	out, err := o.git(ctx, call{Args: args})
	if err != nil {
		return nil, err
	}
	return parseChanges(out)
}
