package worktree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"centurion"
)

// step is the change of one file in a directory.
type step struct {
	Path string `json:"path"` // relative to the top, with slashes
	Old  entry  `json:"old"`  // the current entry as git would store it; zero without a file
	New  entry  `json:"new"`
}

// placer updates files in a directory that is in use: all of them, or none.
type placer struct {
	git func(ctx context.Context, c call) ([]byte, error) // in the repository with the objects, with its work tree
	top string
}

// seen is the state of files in a directory: as git would store them, and their file infos, to notice later changes.
type seen struct {
	entries map[string]entry
	infos   map[string]fs.FileInfo
	blocked map[string]string // paths that cannot have a file, with the obstacle
}

// look reads the state of these paths. index is a copy of the index, which saves reading unchanged files; it is modified. New contents
// are stored as objects, so that nothing is lost.
func (p placer) look(ctx context.Context, index string, paths []string) (seen, error) {
	s := seen{map[string]entry{}, map[string]fs.FileInfo{}, map[string]string{}}
	var there bytes.Buffer
	for _, name := range paths {
		if up := p.notADirectory(name); up != "" {
			s.blocked[name] = up
			continue
		}
		info, err := os.Lstat(filepath.Join(p.top, filepath.FromSlash(name)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return s, diskError("look at "+name, err)
		case info.IsDir():
			s.blocked[name] = name
		case !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0:
			s.blocked[name] = name
		default:
			s.infos[name] = info
			there.WriteString(name + "\x00")
		}
	}
	if there.Len() == 0 {
		return s, nil
	}
	if _, err := p.git(ctx, call{Index: index, Args: []string{"update-index", "-z", "--add", "--replace", "--stdin"}, Stdin: &there}); err != nil {
		return s, err
	}
	all, err := p.indexEntries(ctx, index)
	if err != nil {
		return s, err
	}
	for name := range s.infos {
		s.entries[name] = all[name].entry
	}
	return s, nil
}

// notADirectory is the first existing parent of a path that is not a directory; links to directories do not count as directories.
func (p placer) notADirectory(name string) string {
	for i := range len(name) {
		if name[i] != '/' {
			continue
		}
		info, err := os.Lstat(filepath.Join(p.top, filepath.FromSlash(name[:i])))
		if err != nil {
			return ""
		}
		if !info.IsDir() {
			return name[:i]
		}
	}
	return ""
}

// indexed is an entry of an index.
type indexed struct {
	entry
	stage int  // 0 except during an unfinished merge
	skip  bool // excluded from the working tree by the person
}

func (p placer) indexEntries(ctx context.Context, index string) (map[string]indexed, error) {
	out, err := p.git(ctx, call{Index: index, Args: []string{"ls-files", "-z", "-s", "-t"}})
	if err != nil {
		return nil, err
	}
	all := map[string]indexed{}
	for _, l := range fields(out) {
		head, name, _ := strings.Cut(l, "\t")
		f := strings.Fields(head)
		if len(f) != 4 {
			return nil, badDiff("%q is no entry of an index", cut([]byte(l)))
		}
		stage, _ := strconv.Atoi(f[3])
		all[name] = indexed{entry{Mode: f[1], ID: f[2]}, max(stage, all[name].stage), f[0] == "S"}
	}
	return all, nil
}

// stage writes new contents in their working tree form (line ends, filters) into a directory, using the attributes of the given tree.
func (p placer) stage(ctx context.Context, dir, tree string, steps []step) error {
	index := filepath.Join(dir, "index")
	come := map[string]entry{}
	var names bytes.Buffer
	for _, s := range steps {
		if s.New != (entry{}) {
			come[s.Path] = s.New
			names.WriteString(s.Path + "\x00")
		}
	}
	if len(come) == 0 {
		return nil
	}
	if tree != "" {
		if _, err := p.git(ctx, call{Index: index, Args: []string{"read-tree", "--end-of-options", tree}}); err != nil {
			return err
		}
	}
	if _, err := p.git(ctx, call{Index: index, Args: []string{"update-index", "-z", "--replace", "--index-info"}, Stdin: indexInfo(come)}); err != nil {
		return err
	}
	_, err := p.git(ctx, call{Index: index, Args: []string{"checkout-index", "-z", "--stdin", "-f", "--prefix=" + filepath.ToSlash(filepath.Join(dir, "new")) + "/"}, Stdin: &names})
	return err
}

// placing is a file change in progress.
type placing struct {
	placer
	dir  string // for the new files, and the old ones until the end
	done []step
}

// errMeanwhile means that a file changed just before it was to be replaced.
var errMeanwhile = errors.New("changed meanwhile")

// place moves the staged files from dir to their places. It fails if an old file no longer matches infos. After an error every file is
// unchanged.
func (p placer) place(dir string, steps []step, infos map[string]fs.FileInfo) error {
	x := &placing{placer: p, dir: dir}
	for _, goes := range []bool{true, false} { // removed files make room for new ones
		for _, s := range steps {
			if (s.New == entry{}) != goes {
				continue
			}
			if err := x.step(s, infos[s.Path]); err != nil {
				return errors.Join(err, x.back())
			}
		}
	}
	return nil
}

func (x *placing) at(name string) string { return filepath.Join(x.top, filepath.FromSlash(name)) }

func (x *placing) kept(name string) string {
	return filepath.Join(x.dir, "old", filepath.FromSlash(name))
}

func (x *placing) step(s step, was fs.FileInfo) error {
	at := x.at(s.Path)
	if s.Old != (entry{}) {
		if err := move(at, x.kept(s.Path)); err != nil {
			return diskError("replace "+s.Path, err)
		}
		x.done = append(x.done, s)
		now, err := os.Lstat(x.kept(s.Path))
		if err == nil && was != nil && (now.Size() != was.Size() || !now.ModTime().Equal(was.ModTime())) {
			return &centurion.Error{Op: "replace " + s.Path, Kind: centurion.KindConflict, Err: errMeanwhile}
		}
	} else {
		if _, err := os.Lstat(at); err == nil {
			return &centurion.Error{Op: "write " + s.Path, Kind: centurion.KindConflict, Err: errMeanwhile}
		}
		x.done = append(x.done, s)
	}
	if s.New == (entry{}) {
		x.prune(s.Path)
		return nil
	}
	if err := move(filepath.Join(x.dir, "new", filepath.FromSlash(s.Path)), at); err != nil {
		return diskError("write "+s.Path, err)
	}
	return nil
}

// back restores every file.
func (x *placing) back() error {
	var errs []error
	for _, s := range slices.Backward(x.done) {
		if s.New != (entry{}) {
			if _, err := os.Lstat(filepath.Join(x.dir, "new", filepath.FromSlash(s.Path))); errors.Is(err, fs.ErrNotExist) {
				if err := os.Remove(x.at(s.Path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
					errs = append(errs, err)
				}
				x.prune(s.Path)
			}
		}
		if s.Old != (entry{}) {
			if err := move(x.kept(s.Path), x.at(s.Path)); err != nil {
				errs = append(errs, err)
			}
		}
	}
	x.done = nil
	return errors.Join(errs...)
}

// prune removes directories that have become empty, as git does.
func (x *placing) prune(name string) {
	for d := path.Dir(name); d != "."; d = path.Dir(d) {
		if os.Remove(x.at(d)) != nil {
			return
		}
	}
}

// move renames a file or link, even to another file system, atomically.
func move(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	err := os.Rename(from, to)
	if err == nil || !errors.Is(err, syscall.EXDEV) {
		return err
	}
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err == nil {
			err = os.Symlink(target, to)
		}
		if err != nil {
			return err
		}
		return os.Remove(from)
	}
	if err := copyOver(from, to, info); err != nil {
		return err
	}
	return os.Remove(from)
}

func copyOver(from, to string, info fs.FileInfo) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	tmp, err := os.CreateTemp(filepath.Dir(to), ".centurion-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = io.Copy(tmp, in)
	err = cmp.Or(err, tmp.Chmod(info.Mode().Perm()), tmp.Close())
	err = cmp.Or(err, os.Chtimes(tmp.Name(), info.ModTime(), info.ModTime()))
	return cmp.Or(err, os.Rename(tmp.Name(), to))
}

// inTheWay reports whether the obstacle at a path remains after these steps: a directory with remaining content, or a file that is not
// removed.
func (p placer) inTheWay(name, blocker string, steps []step) bool {
	goes := map[string]bool{}
	for _, s := range steps {
		if s.New == (entry{}) {
			goes[s.Path] = true
		}
	}
	if blocker != name {
		return !goes[blocker]
	}
	left := false
	err := filepath.WalkDir(filepath.Join(p.top, filepath.FromSlash(name)), func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(p.top, at)
		if err != nil || !goes[filepath.ToSlash(rel)] {
			left = true
			return fs.SkipAll
		}
		return nil
	})
	return left || err != nil
}
