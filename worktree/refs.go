package worktree

import (
	"context"
	"path"
	"strings"

	"centurion"
)

// Tip returns the commit of a branch (without refs/heads/) or another ref (refs/...). The error has centurion.KindNotFound if there is
// none.
func (o *objects) Tip(ctx context.Context, branch string) (string, error) {
	ref := refOf(branch)
	out, err := o.git(ctx, call{Args: []string{"rev-parse", "--verify", "--quiet", "--end-of-options", ref + "^{commit}"}})
	if err != nil {
		if exitCode(err) == 1 {
			return "", notFound("find branch "+branch, "the repository has no "+ref, err)
		}
		return "", err
	}
	o.cache.learn(itsCommit, lastLine(out), lastLine(out))
	return lastLine(out), nil
}

// Advance moves a branch (created if from is empty) from one commit to another. The error has centurion.KindConflict if it is not at
// from.
func (o *objects) Advance(ctx context.Context, branch, from, to string) error {
	ref := refOf(branch)
	_, err := o.git(ctx, call{Args: []string{"update-ref", "-m", "centurion: merge", "--no-deref", "--end-of-options", ref, to, o.orZero(from, to)}})
	if err == nil || ctx.Err() != nil {
		return err
	}
	at, tipErr := o.Tip(ctx, branch)
	if centurion.KindOf(tipErr) == centurion.KindNotFound {
		at = ""
	} else if tipErr != nil {
		return err
	}
	if at == from {
		return err
	}
	return &centurion.Error{Op: "advance " + branch, Kind: centurion.KindConflict, Err: err,
		Msg: "the branch stands at " + orNothing(at) + ", not at " + orNothing(from)}
}

// IsAncestor reports whether commit equals of or is one of its ancestors.
func (o *objects) IsAncestor(ctx context.Context, commit, of string) (bool, error) {
	_, err := o.git(ctx, call{Args: []string{"merge-base", "--is-ancestor", "--end-of-options", commit, of}})
	if exitCode(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

// TreeOf returns the tree of a commit without the project's .opencode/: results that differ only there are equal.
func (o *objects) TreeOf(ctx context.Context, commit string) (string, error) {
	tree, err := o.tree(ctx, commit)
	if err != nil {
		return "", err
	}
	if t := o.cache.known(itsPublic, tree); t != "" {
		return t, nil
	}
	public, err := o.withoutPrivate(ctx, tree)
	if err == nil {
		o.cache.learn(itsPublic, tree, public)
	}
	return public, err
}

// withoutPrivate makes a tree without the project's .opencode/.
func (o *objects) withoutPrivate(ctx context.Context, tree string) (string, error) {
	own := o.private()
	out, err := o.git(ctx, call{Args: []string{"ls-tree", "-z", "--full-tree", tree, "--", own}})
	if err != nil || len(out) == 0 {
		return tree, err
	}
	// Remove the entry from its directory, and empty directories from their parents: git keeps none.
	for p := own; ; {
		dir := path.Dir(p)
		at := tree
		if dir != "." {
			at = tree + ":" + dir
		}
		list, err := o.git(ctx, call{Args: []string{"ls-tree", "-z", "--end-of-options", at}})
		if err != nil {
			return "", err
		}
		var kept strings.Builder
		for _, e := range fields(list) {
			if _, name, _ := strings.Cut(e, "\t"); name != path.Base(p) {
				kept.WriteString(e + "\x00")
			}
		}
		if kept.Len() == 0 && dir != "." {
			p = dir
			continue
		}
		return o.replaceDir(ctx, tree, dir, kept.String())
	}
}

// replaceDir makes a tree with these entries, in the format of `ls-tree -z`, in a directory.
func (o *objects) replaceDir(ctx context.Context, tree, dir, entries string) (string, error) {
	for {
		out, err := o.git(ctx, call{Args: []string{"mktree", "-z", "--missing"}, Stdin: strings.NewReader(entries)})
		if err != nil || dir == "." {
			return lastLine(out), err
		}
		made, name := lastLine(out), path.Base(dir)
		dir = path.Dir(dir)
		at := tree
		if dir != "." {
			at = tree + ":" + dir
		}
		list, err := o.git(ctx, call{Args: []string{"ls-tree", "-z", "--end-of-options", at}})
		if err != nil {
			return "", err
		}
		var with strings.Builder
		for _, e := range fields(list) {
			if _, n, _ := strings.Cut(e, "\t"); n == name {
				e = "040000 tree " + made + "\t" + name
			}
			with.WriteString(e + "\x00")
		}
		entries = with.String()
	}
}

// tree is the tree of a commit or tree; the empty string is the empty tree.
func (o *objects) tree(ctx context.Context, commit string) (string, error) {
	if commit == "" {
		return o.emptyTree(ctx)
	}
	if t := o.cache.known(itsTree, commit); t != "" {
		return t, nil
	}
	out, err := o.git(ctx, call{Args: []string{"rev-parse", "--verify", "--quiet", "--end-of-options", commit + "^{tree}"}})
	if err != nil {
		if c := exitCode(err); c == 1 || c == 128 {
			return "", notFound("find tree", "the repository has no commit or tree "+commit, err)
		}
		return "", err
	}
	o.cache.hasTree(commit, lastLine(out))
	return lastLine(out), nil
}

func (o *objects) emptyTree(ctx context.Context) (string, error) {
	out, err := o.git(ctx, call{Args: []string{"mktree", "-z"}, Stdin: strings.NewReader("")})
	return lastLine(out), err
}

// orZero is a commit, or the null id as long as like.
func (o *objects) orZero(commit, like string) string {
	if commit != "" {
		return commit
	}
	return strings.Repeat("0", max(len(like), 40))
}

func refOf(branch string) string {
	if strings.HasPrefix(branch, "refs/") {
		return branch
	}
	return "refs/heads/" + branch
}

func orNothing(commit string) string {
	if commit == "" {
		return "nothing"
	}
	return short(commit)
}

// short is the abbreviated id of a commit.
func short(commit string) string { return commit[:min(len(commit), 10)] }

func lastLine(out []byte) string {
	s := strings.TrimRight(string(out), "\r\n")
	return s[strings.LastIndexByte(s, '\n')+1:]
}

func notFound(op, msg string, err error) error {
	return &centurion.Error{Op: op, Kind: centurion.KindNotFound, Msg: msg, Err: err}
}
