package worktree

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"centurion"
	"centurion/worktree/gitobj"
)

// layersDir is the directory, below the home, of the layers that workspaces share.
const layersDir = "layers"

// maxDelta is the number of changed files above which a tree gets a base of its own instead of a delta: writing them costs about a tenth
// of a checkout of 20,000.
const maxDelta = 2000

// layers are directories that are made once, never change, and lie below the workspaces of all sessions. A base holds the files of a
// tree, a delta what another tree has beyond it, a setup what the setup commands have left.
type layers struct {
	repo *checkouts

	settingUp chan struct{} // has a buffer of one; full while a setup is running

	making sync.Mutex // held while a layer is made or removed; protects the fields below
	base   *layer     // the newest
	stacks map[string]*stack
	seen   map[string]bool // layers whose files were compared with their record

	asking sync.Mutex
	asked  *gitobj.Repo // protected by asking: the newest stack's answers about rules
}

// layer is one directory, in layers/<id>/files.
type layer struct {
	id      string
	Tree    string   `json:"tree,omitempty"`    // of a base
	Files   string   `json:"files"`             // the hash of all names, sizes, modes and times
	Outputs []string `json:"outputs,omitempty"` // of a setup: what is neither tracked nor ignored
	list    map[string]entry
}

// stack is what lies below workspaces at one tree.
type stack struct {
	lower []string // layers by id, the uppermost first
	tree  string
	base  map[string]entry // entries of the base's tree
	diff  map[string]entry // those that differ in tree; zero for removed ones
	index string           // an index of tree that knows the files' data

	dirs       func() map[string]bool  // the directories with files of the tree
	attributes func() map[string]entry // its files .gitattributes

	indexing sync.Mutex         // held while the index for ignore rules is made; protects rules
	rules    *gitobj.Repo       // answers about rules of the tree; nil before the first question
	ignoring sync.Mutex         // protects the fields below
	ignored  map[ignorable]bool // what git answered with the rules of the tree
	exclude  stamp              // of the repository's own rules
}

// dirsOf returns the directories with files of a stack's tree.
func dirsOf(s *stack) map[string]bool {
	dirs := map[string]bool{}
	for p := range s.all {
		for d := path.Dir(p); d != "." && !dirs[d]; d = path.Dir(d) {
			dirs[d] = true
		}
	}
	return dirs
}

// attributesOf returns the files .gitattributes of a stack.
func attributesOf(s *stack) map[string]entry {
	found := map[string]entry{}
	for p, e := range s.all {
		if path.Base(p) == ".gitattributes" && e.IsFile() {
			found[p] = e
		}
	}
	return found
}

// at returns the entry of a path.
func (s *stack) at(path string) entry {
	if e, differs := s.diff[path]; differs {
		return e
	}
	return s.base[path]
}

// all yields the paths of the tree's files.
func (s *stack) all(yield func(path string, e entry) bool) {
	for p, e := range s.base {
		if _, differs := s.diff[p]; !differs && !yield(p, e) {
			return
		}
	}
	for p, e := range s.diff {
		if e != (entry{}) && !yield(p, e) {
			return
		}
	}
}

func (l *layers) dir(id string) string   { return filepath.Join(l.repo.opts.Home, layersDir, id) }
func (l *layers) files(id string) string { return filepath.Join(l.dir(id), "files") }

// caches is where a setup's layer keeps what its commands wrote to the person's caches.
func (l *layers) caches(id string) string { return filepath.Join(l.dir(id), "caches") }

// stackOf returns the layers for a tree, which are made if they are missing.
func (l *layers) stackOf(ctx context.Context, tree string) (*stack, error) {
	l.making.Lock()
	defer l.making.Unlock()
	if s := l.stacks[tree]; s != nil {
		return s, nil
	}
	base, changes, err := l.baseFor(ctx, tree)
	if err != nil {
		return nil, err
	}
	s := &stack{lower: []string{base.id}, tree: tree, base: base.list, diff: map[string]entry{}, index: filepath.Join(l.dir(base.id), "index")}
	s.dirs = sync.OnceValue(func() map[string]bool { return dirsOf(s) })
	s.attributes = sync.OnceValue(func() map[string]entry { return attributesOf(s) })
	if len(changes) > 0 {
		id := "delta-" + base.Tree[:12] + "-" + tree[:12]
		for _, c := range changes {
			s.diff[c.Path] = c.to
		}
		if !l.has(id) {
			if err := l.make(id, func(dir string) (layer, error) { return layer{}, l.fillDelta(ctx, dir, base, tree, s, changes) }); err != nil {
				return nil, err
			}
		}
		s.lower, s.index = []string{id, base.id}, filepath.Join(l.dir(id), "index")
	}
	if l.stacks == nil {
		l.stacks = map[string]*stack{}
	}
	l.stacks[tree] = s
	return s, nil
}

// baseOf returns the base whose files are cloned for a tree.
func (l *layers) baseOf(ctx context.Context, tree string) (id string, err error) {
	l.making.Lock()
	defer l.making.Unlock()
	base, _, err := l.baseFor(ctx, tree)
	if err != nil {
		return "", err
	}
	return base.id, nil
}

// baseFor returns the base for a tree, and what differs. One that is there is used if not much does.
func (l *layers) baseFor(ctx context.Context, tree string) (*layer, []change, error) {
	var known []*layer
	if l.base != nil {
		known = append(known, l.base)
	} else {
		for _, id := range l.ids("base-") {
			if b, ok := l.read(id); ok && l.has(id) {
				known = append(known, &b)
			}
		}
	}
	for _, b := range known {
		changes, err := l.repo.raw(ctx, b.Tree, tree)
		if err != nil && centurion.KindOf(err) != centurion.KindNotFound && ctx.Err() != nil {
			return nil, nil, err
		}
		if err != nil || len(changes) > maxDelta || slices.ContainsFunc(changes, func(c change) bool { return c.from.Mode == gitobj.ModeSubmodule || c.to.Mode == gitobj.ModeSubmodule }) {
			continue // its tree may have been pruned
		}
		if b.list == nil {
			if b.list, err = l.list(ctx, b.Tree); err != nil {
				return nil, nil, err
			}
		}
		l.base = b
		return b, changes, nil
	}
	id := "base-" + tree[:12]
	list, err := l.list(ctx, tree)
	if err != nil {
		return nil, nil, err
	}
	if err := l.make(id, func(dir string) (layer, error) { return layer{Tree: tree}, l.fillBase(ctx, dir, tree) }); err != nil {
		return nil, nil, err
	}
	l.base = &layer{id: id, Tree: tree, list: list}
	return l.base, nil, nil
}

// list reads the entries of a tree.
func (l *layers) list(ctx context.Context, tree string) (map[string]entry, error) {
	out, err := l.repo.git(ctx, call{Args: []string{"ls-tree", "-r", "-z", "--full-tree", tree}})
	if err != nil {
		return nil, err
	}
	all := map[string]entry{}
	for _, line := range fields(out) {
		head, name, _ := strings.Cut(line, "\t")
		f := strings.Fields(head)
		if len(f) != 3 {
			return nil, badDiff("%q is no entry of a tree", cut([]byte(line)))
		}
		all[name] = entry{Mode: f[0], ID: f[2]}
	}
	return all, nil
}

// ids lists the layers with a prefix, the newest first.
func (l *layers) ids(prefix string) []string {
	entries, _ := os.ReadDir(filepath.Join(l.repo.opts.Home, layersDir))
	var ids []string
	made := map[string]int64{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), prefix) && !strings.HasSuffix(e.Name(), unmade) {
			ids = append(ids, e.Name())
			made[e.Name()] = info.ModTime().UnixNano()
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(made[b], made[a]) })
	return ids
}

// unmade ends the name of a layer that is being made.
const unmade = ".new"

// make makes a layer: fill writes its files below dir, and the layer appears only when it is complete.
func (l *layers) make(id string, fill func(dir string) (layer, error)) error {
	const op = "make a layer"
	temp := l.dir(id) + unmade
	if err := removeAll(temp); err != nil {
		return failed(op, "cannot remove the rest of an earlier one", err)
	}
	if err := os.MkdirAll(filepath.Join(temp, "files"), 0o700); err != nil {
		return failed(op, "", err)
	}
	made, err := fill(temp)
	if err == nil {
		made.Files, err = hashFiles(filepath.Join(temp, "files"))
	}
	if err == nil {
		var b []byte
		b, err = json.Marshal(made)
		err = errors.Join(err, os.WriteFile(filepath.Join(temp, "layer.json"), append(b, '\n'), 0o600))
	}
	if err == nil {
		if err = removeAll(l.dir(id)); err == nil {
			err = os.Rename(temp, l.dir(id))
		}
	}
	if err != nil {
		return errors.Join(failed(op, "", err), removeAll(temp))
	}
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[id] = true
	return nil
}

func (l *layers) read(id string) (made layer, ok bool) {
	b, err := os.ReadFile(filepath.Join(l.dir(id), "layer.json"))
	if err != nil || json.Unmarshal(b, &made) != nil {
		return layer{}, false
	}
	made.id = id
	return made, true
}

// has reports whether a layer is there and unchanged. It compares the files once in a process: a program that changes them later could change
// the record as well.
func (l *layers) has(id string) bool {
	if l.seen[id] {
		return true
	}
	made, ok := l.read(id)
	if !ok {
		return false
	}
	hash, err := hashFiles(l.files(id))
	if err != nil || hash != made.Files {
		return false
	}
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[id] = true
	return true
}

// present returns an error unless layers are there and unchanged.
func (l *layers) present(ids []string) error {
	l.making.Lock()
	defer l.making.Unlock()
	for _, id := range ids {
		if !l.has(id) {
			return &centurion.Error{Op: "use layers", Kind: centurion.KindNotFound, Msg: "the layer " + l.dir(id) + " was changed or removed"}
		}
	}
	return nil
}

// hashFiles hashes the names, sizes, modes and times of everything in a directory.
func hashFiles(dir string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || at == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		size, nanos := info.Size(), info.ModTime().UnixNano()
		if d.IsDir() { // both depend on how the file system keeps directories
			size, nanos = 0, 0
		}
		_, err = fmt.Fprintf(h, "%q %d %v %d\n", at[len(dir):], size, info.Mode(), nanos)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// fillBase checks a tree out. git needs a directory of its own for it, whose patterns leave .opencode out.
func (l *layers) fillBase(ctx context.Context, dir, tree string) error {
	own := filepath.Join(dir, "git")
	patterns := "/*\n!/" + escapePattern(l.repo.private()) + "\n"
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/none\n", "commondir": l.repo.common + "\n", "info/sparse-checkout": patterns} {
		if err := writeFile(filepath.Join(own, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	files := filepath.Join(dir, "files")
	read := call{Dir: files, GitDir: own, WorkTree: files, Index: filepath.Join(dir, "index"), Args: []string{"read-tree", "--reset", "-u", tree},
		Config: []string{"core.sparseCheckout=true", "core.sparseCheckoutCone=false", "sparse.expectFilesOutsideOfPatterns=true"}}
	if _, err := l.repo.git(ctx, read); err != nil {
		return err
	}
	for _, name := range []string{".git", l.repo.private()} { // where a workspace's own git directory and the project's .opencode are shown
		at := filepath.Join(files, filepath.FromSlash(name))
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
	}
	return os.RemoveAll(own)
}

// fillDelta writes the files in which a tree differs from a base, and what stands for those that it lacks.
func (l *layers) fillDelta(ctx context.Context, dir string, base *layer, tree string, s *stack, changes []change) error {
	files, index := filepath.Join(dir, "files"), filepath.Join(dir, "index")
	if err := copyIndex(filepath.Join(l.dir(base.id), "index"), index); err != nil {
		return err
	}
	at := call{Dir: files, GitDir: l.repo.gitDir, WorkTree: files, Index: index}
	read := at
	read.Args = []string{"read-tree", "-i", "-m", base.Tree, tree}
	if _, err := l.repo.git(ctx, read); err != nil {
		return err
	}
	var written, private strings.Builder
	var gone []string
	for _, c := range changes {
		switch {
		case under(c.Path, l.repo.private()):
			if c.to != (entry{}) {
				private.WriteString(c.Path + "\x00")
			}
		case c.to != (entry{}):
			written.WriteString(c.Path + "\x00")
		default:
			gone = append(gone, c.Path)
		}
	}
	for _, step := range []struct {
		paths string
		args  []string
	}{
		{private.String(), []string{"update-index", "-z", "--skip-worktree", "--stdin"}},
		{written.String(), []string{"checkout-index", "-z", "-u", "-f", "--stdin"}},
	} {
		if step.paths == "" {
			continue
		}
		run := at
		run.Args, run.Stdin = step.args, strings.NewReader(step.paths)
		if _, err := l.repo.git(ctx, run); err != nil {
			return err
		}
	}
	return markGone(files, gone, s)
}

// markGone makes whiteouts for removed files: one for a directory of which nothing is left.
func markGone(files string, gone []string, s *stack) error {
	if len(gone) == 0 {
		return nil
	}
	dirs, done := s.dirs(), map[string]bool{}
	for _, p := range gone {
		for d := path.Dir(p); d != "." && !dirs[d]; d = path.Dir(d) {
			p = d
		}
		if done[p] || s.at(p) != (entry{}) { // a file lies in the place of a directory
			continue
		}
		done[p] = true
		if dirs[p] { // a directory lies in the place of a file
			continue
		}
		at := filepath.Join(files, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := whiteout(at); err != nil {
			return fmt.Errorf("hide %s: %w", p, err)
		}
	}
	return nil
}

// ignoreIndex returns an index of the stack's tree for questions about ignore rules in a directory that holds only some of its files: git reads
// those .gitignore files from it that are marked as not checked out.
func (l *layers) ignoreIndex(ctx context.Context, s *stack) (string, error) {
	s.indexing.Lock()
	defer s.indexing.Unlock()
	index := filepath.Join(filepath.Dir(s.index), "ignore-index")
	if _, err := os.Stat(index); err == nil {
		return index, nil
	}
	var names strings.Builder
	for p := range s.all {
		if path.Base(p) == ".gitignore" && !under(p, l.repo.private()) {
			names.WriteString(p + "\x00")
		}
	}
	temp := index + unmade
	if err := copyIndex(s.index, temp); err != nil {
		return "", err
	}
	if names.Len() > 0 {
		mark := call{Index: temp, Args: []string{"update-index", "-z", "--skip-worktree", "--stdin"}, Stdin: strings.NewReader(names.String())}
		if _, err := l.repo.git(ctx, mark); err != nil {
			return "", err
		}
	}
	if err := os.Rename(temp, index); err != nil {
		return "", failed("ask for ignored files", "", err)
	}
	return index, nil
}

// collect removes the layers that no workspace uses, but not the newest base. removed names directories.
func (l *layers) collect(used func(id string) bool) (removed []string, err error) {
	l.making.Lock()
	defer l.making.Unlock()
	bases := l.ids("base-")
	for _, id := range l.ids("") {
		if used(id) || len(bases) > 0 && id == bases[0] {
			continue
		}
		if err := removeAll(l.dir(id)); err != nil {
			return removed, failed("remove a layer", "", err)
		}
		delete(l.seen, id)
		removed = append(removed, l.dir(id))
	}
	l.stacks = nil
	if l.base != nil && !l.seen[l.base.id] {
		l.base = nil
	}
	return removed, nil
}
