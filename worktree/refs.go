package worktree

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"centurion"
	"centurion/worktree/gitobj"
)

// Tip returns the commit of a branch (without refs/heads/) or another ref (refs/...). The error has centurion.KindNotFound if there is
// none.
func (o *objects) Tip(ctx context.Context, branch string) (string, error) {
	ref := refOf(branch)
	id, _, err := o.db.Resolve(ctx, ref+"^{commit}")
	if centurion.KindOf(err) == centurion.KindNotFound {
		return "", notFound("find branch "+branch, "the repository has no "+ref, err)
	}
	o.cache.learn(itsCommit, id, id)
	return id, err
}

// Advance moves a branch (created if from is empty) from one commit to another. The error has centurion.KindConflict if it is not at
// from.
func (o *objects) Advance(ctx context.Context, branch, from, to string) error {
	o.left.mu.Lock()
	defer o.left.mu.Unlock()
	err := o.advance(ctx, branch, from, to)
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

// advance is Advance, with o.left locked.
func (o *objects) advance(ctx context.Context, branch, from, to string) error {
	ref := refOf(branch)
	err := o.db.MoveRef(ctx, ref, to, orZero(from, to))
	if err == nil {
		o.left.set(ref, to)
	}
	return err
}

// leftAt is where this process left branches.
type leftAt struct {
	mu sync.Mutex        // held while a branch is moved, so that no reader takes the move for that of another program
	at map[string]string // commits by ref
}

func (l *leftAt) set(ref, commit string) {
	if l.at == nil {
		l.at = map[string]string{}
	}
	l.at[ref] = commit
}

// Held is the tip of a branch that only [objects.Advance] may move. If another program has moved or deleted the branch since this process
// moved it, or held it first, Held puts it back and keeps the other commit under refs/centurion/kept/. was is where the branch stood: tip
// if no program moved it, "" if it was deleted. The error has centurion.KindNotFound for a branch that this process has never seen.
func (o *objects) Held(ctx context.Context, branch string) (tip, was string, err error) {
	o.left.mu.Lock()
	defer o.left.mu.Unlock()
	was, err = o.Tip(ctx, branch)
	tip = o.left.at[refOf(branch)]
	switch {
	case tip == "" && err == nil:
		o.left.set(refOf(branch), was)
		return was, was, nil
	case tip == "" || err == nil && was == tip:
		return was, was, err
	case centurion.KindOf(err) == centurion.KindNotFound:
		was = ""
	case err != nil:
		return "", "", err
	default:
		if err := o.keep(ctx, branch, was, tip); err != nil {
			return "", "", err
		}
	}
	return tip, was, o.advance(ctx, branch, was, tip)
}

// IsAncestor reports whether commit equals of or is one of its ancestors.
func (o *objects) IsAncestor(ctx context.Context, commit, of string) (bool, error) {
	if commit == of && o.cache.known(itsCommit, commit) != "" {
		return true, nil
	}
	for at := of; at != ""; { // most were made by this process
		if at = o.cache.known(itsParent, at); at == commit && at != "" {
			return true, nil
		}
	}
	_, err := o.git(ctx, call{Args: []string{"merge-base", "--is-ancestor", "--end-of-options", commit, of}})
	if exitCode(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

// reached is IsAncestor, and false for commits that do not exist.
func (o *objects) reached(ctx context.Context, commit, from string) (bool, error) {
	if commit == from {
		return true, nil
	}
	is, err := o.IsAncestor(ctx, commit, from)
	if exitCode(err) == 128 {
		return false, nil
	}
	return is, err
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
	return o.edit(ctx, tree, map[string]entry{o.private(): gitobj.Nothing})
}

// tree is the tree of a commit or tree; the empty string is the empty tree.
func (o *objects) tree(ctx context.Context, commit string) (string, error) {
	if commit == "" {
		out, err := o.git(ctx, call{Args: []string{"mktree", "-z"}, Stdin: strings.NewReader("")})
		return lastLine(out), err
	}
	if t := o.cache.known(itsTree, commit); t != "" {
		return t, nil
	}
	id, _, err := o.db.Resolve(ctx, commit+"^{tree}")
	if centurion.KindOf(err) == centurion.KindNotFound {
		return "", notFound("find tree", "the repository has no commit or tree "+commit, err)
	}
	if err != nil {
		return "", err
	}
	o.cache.hasTree(commit, id)
	return id, nil
}

// orZero is a commit, or the null id as long as like.
func orZero(commit, like string) string {
	return cmp.Or(commit, strings.Repeat("0", max(len(like), 40)))
}

func refOf(branch string) string {
	if strings.HasPrefix(branch, "refs/") {
		return branch
	}
	return "refs/heads/" + branch
}

func orNothing(commit string) string { return cmp.Or(short(commit), "nothing") }

// short is the abbreviated id of a commit.
func short(commit string) string { return commit[:min(len(commit), 10)] }

func lastLine(out []byte) string {
	s := strings.TrimRight(string(out), "\r\n")
	return s[strings.LastIndexByte(s, '\n')+1:]
}

func notFound(op, msg string, err error) error {
	return &centurion.Error{Op: op, Kind: centurion.KindNotFound, Msg: msg, Err: err}
}

// objectCache caches git's answers about objects by full id: objects never change, and each answer costs a process. If an object is
// pruned meanwhile, the call that reads it fails. The zero value is ready to use.
type objectCache struct {
	mu      sync.Mutex
	answers map[question]string
}

// question is a question to git about an object.
type question struct{ what, id string }

// The kinds of questions. The answer is an id, too.
const (
	itsCommit = "commit" // the id, if it is a commit
	itsTree   = "tree"   // the tree of a commit or tree
	itsPublic = "public" // the tree without the project's .opencode/
	itsParent = "parent" // the first parent of a commit
	itsOrigin = "origin" // the commit that it is on another base
)

// maxAnswers is the size at which the cache is cleared. A mission of a thousand merges needs some ten thousand answers of 200 bytes.
const maxAnswers = 50_000

// known returns an answer, or "".
func (c *objectCache) known(what, id string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers[question{what, id}]
}

// learn stores an answer, unless the question was about a name that may change its meaning.
func (c *objectCache) learn(what, id, answer string) {
	if !gitobj.IsID(id) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil || len(c.answers) >= maxAnswers {
		c.answers = map[question]string{}
	}
	c.answers[question{what, id}] = answer
}

// hasTree stores the tree of a commit or tree.
func (c *objectCache) hasTree(id, tree string) {
	c.learn(itsTree, id, tree)
	c.learn(itsTree, tree, tree)
}

// made stores the facts of a commit.
func (c *objectCache) made(commit, tree string) {
	c.learn(itsCommit, commit, commit)
	c.hasTree(commit, tree)
}

// standsAt reports whether the HEAD of a git directory is exactly this: "ref: refs/heads/…", or a commit. It returns false if refs are
// not stored in files.
func standsAt(gitDir, what string) bool {
	path := filepath.Join(gitDir, "HEAD")
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	b, err := os.ReadFile(path)
	return err == nil && strings.TrimRight(string(b), "\n") == what
}
