package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"centurion/worktree/gitobj"
)

// This file finds out what was changed in a checkout of layers.

// scanned is the result of a scan, and what it was found for.
type scanned struct {
	print string // of the upper layer; "" if it may not be used again
	tree  string
}

// racy is how old every change has to be before a scan for its result to be used again: times are those of the kernel's last tick, of
// which there are 100 a second and more.
const racy = 20 * time.Millisecond

// scanLayers is [Checkout.scan] for layers. If the files are behind and were changed, they are brought first.
func (c *Checkout) scanLayers(ctx context.Context) (string, error) {
	tree, err := c.scanUpper(ctx)
	switch {
	case err != nil || c.rec.Behind == "":
		return tree, err
	case tree == c.rec.Behind:
		return c.repo.tree(ctx, c.rec.Start)
	case c.seat == nil: // somebody else's, which is only looked at
		m, err := c.repo.mergeTrees(ctx, c.rec.Behind, c.rec.Start, tree)
		return m.tree, err
	}
	if err := c.catchUp(ctx); err != nil {
		return "", err
	}
	return c.scanUpper(ctx)
}

// scanUpper returns the tree that the files are, made of the last one and the upper layer. It takes no process if nothing has changed since
// the last scan.
func (c *Checkout) scanUpper(ctx context.Context) (string, error) {
	s, err := c.stack(ctx)
	if err != nil {
		return "", err
	}
	began := time.Now()
	u, err := c.look(ctx, s)
	if err != nil {
		return "", err
	}
	print, newest := u.print(c.rec.Tree, c.rec.Outputs)
	if c.scanned.print == print {
		return c.scanned.tree, nil
	}
	gone, err := c.goneFrom(ctx, s, u)
	if err != nil {
		return "", err
	}
	var tree string
	if len(u.nested) > 0 {
		tree, err = c.nestedTree(ctx, s, u, gone)
	} else {
		tree, err = c.upperTree(ctx, s, u, gone)
	}
	if err != nil {
		return "", err
	}
	c.scanned = scanned{tree: tree}
	if len(u.nested) == 0 && began.Sub(newest) > racy {
		c.scanned.print = print
	}
	return tree, nil
}

// print identifies the state of an upper layer, and returns the time of its newest change.
func (u upper) print(more ...any) (print string, newest time.Time) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q\n", more, u.gone, u.opaque, u.nested)
	for _, f := range u.files {
		inode, changed := identityOf(f.info)
		fmt.Fprintf(h, "%q %d %v %d %d\n", f.path, f.info.Size(), f.info.Mode(), changed.UnixNano(), inode)
		if changed.After(newest) {
			newest = changed
		}
	}
	return hex.EncodeToString(h.Sum(nil)), newest
}

// look lists what the upper layer holds, without what git ignores and what the setup has made.
func (c *Checkout) look(ctx context.Context, s *stack) (upper, error) {
	var u upper
	dirs := s.dirs()
	ours := func(p string) bool {
		return p == ".git" || under(p, c.repo.private()) || slices.ContainsFunc(c.rec.Outputs, func(o string) bool { return under(p, o) })
	}
	err := u.walk(c.upperDir(), "", func(p string) bool { return !dirs[p] || ours(p) })
	if err != nil {
		return u, failed("look at the changes", "", err)
	}
	u.left = slices.DeleteFunc(u.left, func(p string) bool { return ours(p) || s.at(p).Mode == gitobj.ModeSubmodule })
	var ask []string
	for _, f := range u.files {
		if s.at(f.path) == (entry{}) && !ours(f.path) {
			ask = append(ask, f.path)
		}
	}
	gone, err := c.goneFrom(ctx, s, u)
	if err != nil {
		return u, err
	}
	rules := slices.DeleteFunc(gone, func(p string) bool { return path.Base(p) != ".gitignore" })
	ignored, err := c.ignores(ctx, s, rules, u.left, ask)
	if err != nil {
		return u, err
	}
	for _, dir := range u.left {
		if !ignored(dir) {
			if err := c.lookInto(ctx, s, &u, rules, dir); err != nil {
				return u, err
			}
		}
	}
	drop := func(p string) bool { return ours(p) || ignored(p) }
	u.files = slices.DeleteFunc(u.files, func(f upperFile) bool { return drop(f.path) })
	u.gone, u.opaque, u.nested = slices.DeleteFunc(u.gone, ours), slices.DeleteFunc(u.opaque, ours), slices.DeleteFunc(u.nested, drop)
	return u, nil
}

// lookInto adds what is in a new directory that git does not ignore as a whole.
func (c *Checkout) lookInto(ctx context.Context, s *stack, u *upper, rules []string, dir string) error {
	if _, err := os.Lstat(filepath.Join(c.upperDir(), filepath.FromSlash(dir), ".git")); err == nil {
		u.nested = append(u.nested, dir)
		return nil
	}
	var in upper
	if err := in.walk(c.upperDir(), dir, func(string) bool { return false }); err != nil {
		return failed("look at the changes", "", err)
	}
	var ask []string
	for _, f := range in.files {
		ask = append(ask, f.path)
	}
	ignored, err := c.ignores(ctx, s, rules, slices.Concat(in.dirs, in.nested), ask)
	if err != nil {
		return err
	}
	in.files = slices.DeleteFunc(in.files, func(f upperFile) bool { return ignored(f.path) })
	u.files, u.gone = append(u.files, in.files...), append(u.gone, in.gone...)
	u.nested = append(u.nested, slices.DeleteFunc(in.nested, ignored)...)
	return nil
}

// ignores asks git which of these directories and other files it ignores. gone are the files with rules that were removed. With the rules of
// the stack it asks once for each, so that a change of the person's own rules (core.excludesFile) counts for what was not asked about yet.
func (c *Checkout) ignores(ctx context.Context, s *stack, gone, dirs, files []string) (func(path string) bool, error) {
	found := map[string]bool{}
	var ask []string
	same := len(gone) == 0 && !c.ownRules(".gitignore", slices.Concat(dirs, files))
	s.ignoring.Lock()
	if exclude := stampOf(filepath.Join(c.repo.common, "info", "exclude")); exclude != s.exclude || len(s.ignored) > maxIgnored {
		s.exclude, s.ignored = exclude, nil
	}
	asked := 0 // of the directories
	for i, p := range slices.Concat(dirs, files) {
		if is, known := s.ignored[ignorable{p, i < len(dirs)}]; same && known {
			found[p] = is
		} else if ask = append(ask, p); i < len(dirs) {
			asked++
		}
	}
	s.ignoring.Unlock()
	is := func(p string) bool { return found[p] }
	if len(ask) == 0 {
		return is, nil
	}
	var err error
	if same && asked == 0 && len(strings.Join(ask, "\x00")) < gitobj.MaxAsked {
		err = c.repo.layers.ignoredFiles(ctx, s, ask, found)
	} else {
		err = c.ignoredPaths(ctx, s, gone, ask, found)
	}
	if err != nil {
		return nil, err
	}
	if same {
		s.ignoring.Lock()
		defer s.ignoring.Unlock()
		if s.ignored == nil {
			s.ignored = map[ignorable]bool{}
		}
		for i, p := range slices.Concat(dirs, files) {
			s.ignored[ignorable{p, i < len(dirs)}] = found[p]
		}
	}
	return is, nil
}

// ignoredPaths adds the paths that git ignores, by the rules of the stack but of some files that are gone, and those of the upper layer.
func (c *Checkout) ignoredPaths(ctx context.Context, s *stack, gone, paths []string, found map[string]bool) error {
	index, err := c.repo.layers.ignoreIndex(ctx, s)
	if err != nil {
		return err
	}
	if len(gone) > 0 {
		without, remove, err := c.repo.temp()
		if err != nil {
			return err
		}
		defer remove()
		if err := copyIndex(index, without); err != nil {
			return err
		}
		if _, err := c.repo.git(ctx, call{Index: without, Args: []string{"update-index", "-z", "--force-remove", "--stdin"}, Stdin: zeroEnded(gone)}); err != nil {
			return err
		}
		index = without
	}
	question := view{gitDir: c.repo.gitDir, dir: c.upperDir(), index: index}.call("check-ignore", "-z", "--stdin")
	question.Stdin = zeroEnded(paths)
	out, err := c.repo.git(ctx, question)
	for _, p := range fields(out) {
		found[p] = true
	}
	if exitCode(err) == 1 { // none
		return nil
	}
	return err
}

// ownRules reports whether the upper layer has files of that name, such as .gitignore, with rules for some paths, or removes some.
func (c *Checkout) ownRules(name string, paths []string) bool {
	looked := map[string]bool{}
	for _, p := range paths {
		for d := p; d != "."; {
			if d = path.Dir(d); looked[d] {
				break
			}
			looked[d] = true
			if _, err := os.Lstat(filepath.Join(c.upperDir(), filepath.FromSlash(d), name)); err == nil {
				return true
			}
		}
	}
	return false
}

// ignorable is a path and whether it is a directory, on which rules depend.
type ignorable struct {
	path string
	dir  bool
}

// maxIgnored is how many answers about ignored files are kept for a stack.
const maxIgnored = 20_000

// zeroEnded is a list of paths for git's --stdin -z.
func zeroEnded(paths []string) io.Reader {
	return strings.NewReader(strings.Join(paths, "\x00") + "\x00")
}

// goneFrom lists the files of a stack's tree that are not in the checkout.
func (c *Checkout) goneFrom(ctx context.Context, s *stack, u upper) ([]string, error) {
	there := map[string]bool{}
	for _, f := range u.files {
		there[f.path] = true
	}
	away := map[string]bool{} // whatever lies below is not seen
	for _, p := range slices.Concat(u.gone, u.opaque) {
		away[p] = true
	}
	for _, p := range u.left { // a directory in the place of a file, which may hold nothing that counts
		if s.at(p) != (entry{}) {
			away[p] = true
		}
	}
	blocks := len(away) > 0
	for p := range there {
		blocks = blocks || s.dirs()[p] // a file or link in the place of a directory
	}
	var gone []string
	if blocks {
		for p := range s.all {
			if there[p] {
				continue
			}
			for d := p; d != "."; d = path.Dir(d) {
				if away[d] || d != p && there[d] {
					gone = append(gone, p)
					break
				}
			}
		}
	}
	if s.tree == c.rec.Ground {
		return gone, nil
	}
	came, err := c.cameSince(ctx, s)
	for _, p := range came {
		if !there[p] && !slices.Contains(gone, p) {
			if _, err := os.Lstat(filepath.Join(c.upperDir(), filepath.FromSlash(p))); errors.Is(err, fs.ErrNotExist) {
				gone = append(gone, p)
			}
		}
	}
	return gone, err
}

// cameSince lists the files of a stack's tree that came after the ground was laid: each is in the upper layer, and gone when it is not.
func (c *Checkout) cameSince(ctx context.Context, s *stack) (came []string, err error) {
	ground, err := c.repo.layers.stackOf(ctx, c.rec.Ground)
	if err != nil {
		return nil, err
	}
	add := func(p string, e entry) bool {
		if e != (entry{}) && ground.at(p) == (entry{}) && !under(p, c.repo.private()) {
			came = append(came, p)
		}
		return true
	}
	if s.lower[len(s.lower)-1] != ground.lower[len(ground.lower)-1] {
		s.all(add)
		return came, nil
	}
	for p := range s.diff { // one base: only what differs from it can have come
		add(p, s.at(p))
	}
	for p := range ground.diff {
		if _, twice := s.diff[p]; !twice {
			add(p, s.at(p))
		}
	}
	return came, nil
}

// upperTree stores the files of an upper layer, and returns the tree that they make of a stack's. Git stores them, because its filters and
// the rules of .gitattributes apply, with an index of only what these depend on.
func (c *Checkout) upperTree(ctx context.Context, s *stack, u upper, gone []string) (string, error) {
	changes, index := map[string]entry{}, map[string]entry{}
	maps.Copy(index, s.attributes())
	for _, f := range u.stored() {
		changes[f] = entry{}
	}
	u.files = slices.DeleteFunc(u.files, func(f upperFile) bool { // it has gone meanwhile, as temporary files do
		info, err := os.Lstat(filepath.Join(c.upperDir(), filepath.FromSlash(f.path)))
		return err != nil || isWhiteout(info)
	})
	for _, f := range u.stored() {
		if e := s.at(f); e != (entry{}) {
			index[f] = e
		}
	}
	for _, p := range gone {
		changes[p] = entry{}
		delete(index, p)
	}
	plain, err := c.storePlain(ctx, s, u, changes)
	if err != nil {
		return "", err
	}
	if files := u.stored(); !plain && len(files) > 0 {
		name, remove, err := c.repo.temp()
		if err != nil {
			return "", err
		}
		defer remove()
		if err := os.WriteFile(name, gitobj.NewIndex(index), 0o600); err != nil {
			return "", diskError("write a temporary index", err)
		}
		if err := c.addUpper(ctx, name, files); err != nil {
			return "", err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return "", diskError("read a temporary index", err)
		}
		if !gitobj.EachIndexed(data, len(s.tree)/2, func(name string, e entry) {
			if _, of := changes[name]; of {
				changes[name] = e
			}
		}) {
			return "", badDiff("git wrote an index that cannot be read")
		}
	}
	return c.repo.edit(ctx, s.tree, changes)
}

// stored are the paths of the files and links, which git stores.
func (u upper) stored() (paths []string) {
	for _, f := range u.files {
		if f.info.Mode().IsRegular() || f.info.Mode()&fs.ModeSymlink != 0 {
			paths = append(paths, f.path)
		}
	}
	return paths
}

// addUpper adds files of the upper layer to an index, or removes those that have just gone.
func (c *Checkout) addUpper(ctx context.Context, index string, files []string) error {
	v := view{gitDir: c.repo.gitDir, dir: c.upperDir(), index: index}
	add := v.call("update-index", "-z", "--add", "--replace", "--remove", "--stdin")
	add.Stdin = zeroEnded(files)
	_, err := c.repo.git(ctx, add)
	return err
}

// indexUpper brings an index of a stack's tree up to date with the upper layer.
func (c *Checkout) indexUpper(ctx context.Context, index string, s *stack, u upper, gone []string) error {
	if err := copyIndex(s.index, index); err != nil {
		return err
	}
	if len(gone) > 0 {
		remove := call{Index: index, Args: []string{"update-index", "-z", "--force-remove", "--stdin"}, Stdin: zeroEnded(gone)}
		if _, err := c.repo.git(ctx, remove); err != nil {
			return err
		}
	}
	if files := u.stored(); len(files) > 0 {
		return c.addUpper(ctx, index, files)
	}
	return nil
}

// nestedTree is upperTree with the files of repositories that an agent made inside.
func (c *Checkout) nestedTree(ctx context.Context, s *stack, u upper, gone []string) (string, error) {
	index, remove, err := c.repo.temp()
	if err != nil {
		return "", err
	}
	defer remove()
	if err := c.indexUpper(ctx, index, s, u, gone); err != nil {
		return "", err
	}
	for _, dir := range u.nested {
		if err := c.embed(ctx, index, dir); err != nil {
			return "", err
		}
	}
	out, err := c.repo.git(ctx, call{Index: index, Args: []string{"write-tree"}})
	return line(out), err
}

// between lists the files in which two trees differ; with known, only those that are in the first.
func (c *Checkout) between(ctx context.Context, from, to string, known bool) ([]string, error) {
	a, err := c.repo.tree(ctx, from)
	if err != nil || a == to {
		return nil, err
	}
	all, err := c.repo.raw(ctx, a, to)
	var names []string
	for _, ch := range all {
		if !known || ch.from != (entry{}) {
			names = append(names, ch.Path)
		}
	}
	return names, err
}
