package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
)

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
	if !isID(id) || !isID(answer) {
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

// isID reports whether a name is a full object id, which git prefers to a branch of that name.
func isID(name string) bool {
	return (len(name) == 40 || len(name) == 64) && strings.Trim(name, "0123456789abcdef") == ""
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
