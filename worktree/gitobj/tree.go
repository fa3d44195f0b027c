package gitobj

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"

	"centurion"
)

// Entry is an entry of a tree or an index. The zero entry means none.
type Entry struct {
	Mode string `json:"mode,omitempty"` // one of the constants
	ID   string `json:"id,omitempty"`
}

// The modes of entries.
const (
	ModeFile      = "100644"
	ModeExec      = "100755"
	ModeLink      = "120000"
	ModeSubmodule = "160000"
	ModeTree      = "040000"
)

// IsFile reports whether an entry is a regular file.
func (e Entry) IsFile() bool { return strings.HasPrefix(e.Mode, "100") }

// Nothing stands in an edit for a path that is removed with everything below it.
var Nothing = Entry{Mode: ModeTree}

// Tree is a tree of git: the entries of one directory by name. It is shared and must not be changed.
type Tree map[string]Entry

// trees caches trees by id: they never change, and the next commit of a directory is made of the last. The zero value is ready to use.
type trees struct {
	mu      sync.Mutex
	of      map[string]Tree
	entries int
}

// maxEntries is the number of entries at which the cache is cleared. Each takes some hundred bytes.
const maxEntries = 100_000

func (t *trees) known(id string) Tree {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[id]
}

func (t *trees) learn(id string, tree Tree) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil || t.entries >= maxEntries {
		t.of, t.entries = map[string]Tree{}, 0
	}
	t.of[id] = tree
	t.entries += len(tree)
}

// ReadTree returns the entries of a tree.
func (r *Repo) ReadTree(ctx context.Context, id string) (Tree, error) {
	if dir := r.trees.known(id); dir != nil {
		return dir, nil
	}
	content, err := r.Object(ctx, id, "tree")
	if err != nil {
		return nil, err
	}
	dir, err := parseTree(content, len(id)/2)
	if err != nil {
		return nil, &centurion.Error{Op: "read a tree", Kind: centurion.KindInternal, Msg: "the tree " + id + " cannot be read", Err: err}
	}
	r.trees.learn(id, dir)
	return dir, nil
}

var errTree = errors.New("it is cut off")

// parseTree reads a tree whose objects' names have so many bytes: "<mode> <name>", NUL and the object's name for each entry.
func parseTree(content []byte, oid int) (Tree, error) {
	dir := Tree{}
	for len(content) > 0 {
		head, rest, ok := bytes.Cut(content, []byte{0})
		mode, name, named := bytes.Cut(head, []byte{' '})
		if !ok || !named || len(rest) < oid {
			return nil, errTree
		}
		dir[string(name)] = Entry{Mode: strings.Repeat("0", max(0, 6-len(mode))) + string(mode), ID: hex.EncodeToString(rest[:oid])}
		content = rest[oid:]
	}
	return dir, nil
}

// writeTree stores a tree.
func (r *Repo) writeTree(ctx context.Context, dir Tree) (id string, err error) {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(dir)) {
		kind := "blob"
		switch e := dir[name]; e.Mode {
		case ModeTree:
			kind = "tree"
		case ModeSubmodule:
			kind = "commit"
		}
		b.WriteString(dir[name].Mode + " " + kind + " " + dir[name].ID + "\t" + name + "\x00")
	}
	err = r.ask(ctx, []string{"mktree", "-z", "--missing", "--batch"}, b.String()+"\x00", func(out *bufio.Reader) error {
		l, err := out.ReadString('\n')
		id = strings.TrimSpace(l)
		return err
	})
	if err != nil {
		return "", err
	}
	r.trees.learn(id, dir)
	return id, nil
}

// Edit makes a tree with other entries at some paths; the zero entry removes a file. Where a new file needs the place of a directory or
// another file, those give way.
func (r *Repo) Edit(ctx context.Context, tree string, changes map[string]Entry) (id string, err error) {
	for p, e := range changes {
		if e != (Entry{}) && e != Nothing && !storable(p) {
			return "", &centurion.Error{Op: "write tree", Kind: centurion.KindUsage, Msg: p + " is no path that a commit may have"}
		}
	}
	id, _, err = r.editDirectory(ctx, tree, changes)
	return id, err
}

// editDirectory is Edit for a directory, empty for a new one. it is empty afterwards if nothing is left in it.
func (r *Repo) editDirectory(ctx context.Context, tree string, changes map[string]Entry) (id string, empty bool, err error) {
	dir := Tree{}
	if tree != "" {
		if dir, err = r.ReadTree(ctx, tree); err != nil {
			return "", false, err
		}
		dir = maps.Clone(dir)
	}
	before := maps.Clone(dir)
	below := map[string]map[string]Entry{}
	for p, e := range changes {
		name, rest, deeper := strings.Cut(p, "/")
		switch {
		case deeper:
			if below[name] == nil {
				below[name] = map[string]Entry{}
			}
			below[name][rest] = e
		case e == Nothing:
			delete(dir, name)
		case e != (Entry{}):
			dir[name] = e
		case dir[name].Mode != ModeTree:
			delete(dir, name)
		}
	}
	for name, changes := range below {
		adds := false
		for _, e := range changes {
			adds = adds || e != (Entry{}) && e != Nothing
		}
		in := dir[name]
		if !adds && in.Mode != ModeTree {
			continue
		}
		if in.Mode != ModeTree {
			in.ID = ""
		}
		id, empty, err := r.editDirectory(ctx, in.ID, changes)
		switch {
		case err != nil:
			return "", false, err
		case empty:
			delete(dir, name)
		default:
			dir[name] = Entry{ModeTree, id}
		}
	}
	if maps.Equal(dir, before) && tree != "" {
		return tree, len(dir) == 0, nil
	}
	if len(dir) == 0 && tree == "" {
		return "", true, nil
	}
	id, err = r.writeTree(ctx, dir)
	return id, len(dir) == 0, err
}

// storable reports whether git takes a path into a tree: none of its parts is ".", ".." or empty, or .git for any file system.
func storable(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		part = strings.Map(func(r rune) rune {
			switch { // macOS ignores these
			case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
				return -1
			}
			return unicode.ToLower(r)
		}, part)
		if part == "" || part == "." || part == ".." {
			return false
		}
		part, _, _ = strings.Cut(part, ":")
		if part = strings.TrimRight(part, ". "); part == ".git" || part == "git~1" {
			return false
		}
	}
	return true
}
