package worktree

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"centurion"
)

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
func (s *snapshots) Look(ctx context.Context, at centurion.Checkout) (tree string, err error) {
	tmp, err := os.MkdirTemp(s.opts.Home, "look-")
	if err != nil {
		return "", failed("look into checkout", "cannot make a directory for the index", err)
	}
	defer os.RemoveAll(tmp) // leftovers are among the checkouts and do no harm
	top := at.Dir
	if s.prefix != "" {
		top = strings.TrimSuffix(filepath.ToSlash(filepath.Clean(top)), "/"+s.prefix)
	}
	if _, err := os.Stat(top); err != nil {
		return "", failed("look into checkout", "there is no checkout at "+at.Dir, err)
	}
	v := view{gitDir: s.gitDir, dir: top, index: filepath.Join(tmp, "index")}
	if _, err := s.git(ctx, v.call("read-tree", at.Start)); err != nil {
		return "", err
	}
	if _, err := s.gather(ctx, v, at.Start); err != nil {
		return "", err
	}
	out, err := s.git(ctx, v.call("write-tree"))
	return line(out), err
}
