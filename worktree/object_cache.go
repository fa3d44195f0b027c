package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// objectCache remembers what git has said of objects by their full ids: an object never changes, and asking again takes a process.
// An object that somebody prunes while the program works with it is missed by the call that reads it. The zero value is
// ready for use.
type objectCache struct {
	mu      sync.Mutex
	answers map[question]string
}

// question is something that git is asked of an object.
type question struct{ what, id string }

// What is asked. The answer is an id, too.
const (
	itsCommit = "commit" // it is one
	itsTree   = "tree"   // the tree of a commit or tree
	itsPublic = "public" // of a tree: it without .opencode/ of the project
)

// maxAnswers is with how many the memory begins anew. A mission of a thousand merges comes to some ten thousand, of 200 bytes each.
const maxAnswers = 50_000

// known returns an answer, or "".
func (c *objectCache) known(what, id string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers[question{what, id}]
}

// learn keeps an answer, unless the question was one after a name that may mean something else tomorrow.
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

// hasTree keeps the tree of a commit or tree.
func (c *objectCache) hasTree(id, tree string) {
	c.learn(itsTree, id, tree)
	c.learn(itsTree, tree, tree)
}

// made keeps what is known of a commit.
func (c *objectCache) made(commit, tree string) {
	c.learn(itsCommit, commit, commit)
	c.hasTree(commit, tree)
}

// isID reports whether a name is a full object id: git takes it for nothing else, even if a branch is named so.
func isID(name string) bool {
	return (len(name) == 40 || len(name) == 64) && strings.Trim(name, "0123456789abcdef") == ""
}

// standsAt reports whether the HEAD of a git directory holds exactly this: "ref: refs/heads/…", or a commit. Where refs are kept
// in another way than in files it never does.
func standsAt(gitDir, what string) bool {
	path := filepath.Join(gitDir, "HEAD")
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	b, err := os.ReadFile(path)
	return err == nil && strings.TrimRight(string(b), "\n") == what
}
