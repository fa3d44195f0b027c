package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"centurion"
	"centurion/guard/durable"
)

// MaxShadow limits the files in a Shadow, in bytes: larger ones are data or build results, and copying them at each step would fill the
// disk.
const MaxShadow = 50 << 20

// Shadow is a history of a directory's files, kept outside of it: for directories without git, with snapshots before each writing step.
// Contents are stored byte for byte, regardless of the line ends or filters of the directory's own git. A home belongs to one process
// at a time. The methods are safe for concurrent use.
type Shadow struct {
	repo *Repo // its own: git directory in home, working tree the directory

	mu      sync.Mutex // held while the index is read and written
	leftOut []string
}

// history is the ref of the newest saved state.
const history = "refs/heads/history"

// OpenShadow opens, or creates, the history in o.Home of the files in o.Dir. The error has centurion.KindNotFound without a git
// program, or without o.Dir.
func OpenShadow(ctx context.Context, o Options) (*Shadow, error) {
	dir, home := o.Dir, o.Home
	prog, err := newProgram(o.Mark)
	if err != nil {
		return nil, err
	}
	if err := prog.check(ctx); err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, notFound("open history", "there is no directory "+dir, err)
	}
	if home, err = filepath.Abs(home); err == nil {
		err = os.MkdirAll(home, 0o700)
	}
	if err != nil {
		return nil, diskError("make the directory of the history", err)
	}
	at := filepath.Join(home, "shadow.git")
	s := &Shadow{repo: newRepo(&repository{opts: Options{Dir: dir, Home: home}, prog: prog, top: dir, gitDir: at, common: at})}
	return s, s.prepare(ctx)
}

// prepare creates the repository, or removes leftovers of a killed process.
func (s *Shadow) prepare(ctx context.Context) error {
	at := s.repo.gitDir
	if _, err := os.Stat(filepath.Join(at, "info", "attributes")); err == nil {
		if err := os.Remove(filepath.Join(at, "index.lock")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return diskError("open history", err)
		}
		return nil
	}
	if _, err := s.repo.git(ctx, call{Args: []string{"init", "-q", "--template=", "-b", "history"}}); err != nil {
		return err
	}
	// Attributes come last: if they exist, the rest does.
	for _, f := range []struct{ name, text string }{
		{"exclude", "/.opencode\n"},
		{"attributes", "* -text -eol -crlf -filter -ident -working-tree-encoding\n"},
	} {
		if err := os.MkdirAll(filepath.Join(at, "info"), 0o700); err != nil {
			return diskError("make the history", err)
		}
		if err := durable.Replace(filepath.Join(at, "info", f.name), []byte(f.text), 0o644); err != nil {
			return diskError("make the history", err)
		}
	}
	return nil
}

// git runs git on the directory, ignoring the person's configuration of line ends.
func (s *Shadow) git(ctx context.Context, c call) ([]byte, error) {
	c.Config = append(c.Config, "core.autocrlf=false", "core.bigFileThreshold=16m")
	return s.repo.git(ctx, c)
}

// LeftOut names the files that the last Save skipped, relative to the directory: larger than [MaxShadow], or unreadable.
func (s *Shadow) LeftOut() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.leftOut)
}

// Save records the current files, without .opencode/ and those ignored by .gitignore, and returns the tree. It reads only files changed
// since the last Save. Nested repositories are recorded like other directories, without their .git. It skips files larger than
// [MaxShadow]; see LeftOut.
func (s *Shadow) Save(ctx context.Context, label string) (tree string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed, err := s.list(ctx, "", "")
	if err != nil {
		return "", err
	}
	gone, there := s.sort(changed)
	if len(gone) > 0 {
		if _, err := s.git(ctx, call{Args: []string{"update-index", "-z", "--index-info"}, Stdin: indexInfo(gone)}); err != nil {
			return "", err
		}
	}
	if err := s.add(ctx, there); err != nil {
		return "", err
	}
	out, err := s.git(ctx, call{Args: []string{"write-tree"}})
	if err != nil {
		return "", err
	}
	return s.keep(ctx, lastLine(out), label)
}

// keep makes a tree the newest of the history.
func (s *Shadow) keep(ctx context.Context, tree, label string) (string, error) {
	tip, err := s.repo.Tip(ctx, history)
	switch {
	case err == nil:
		if had, err := s.repo.tree(ctx, tip); err != nil || had == tree {
			return tree, err
		}
	case centurion.KindOf(err) != centurion.KindNotFound:
		return "", err
	}
	commit, err := s.repo.commitTree(ctx, tree, label+"\n", nil, tip)
	if err != nil {
		return "", err
	}
	_, err = s.git(ctx, call{Args: []string{"update-ref", history, commit}})
	return tree, err
}

// list names the files below a directory that differ from the index or are missing in it. Nested repositories are listed separately,
// since git would not enter them.
func (s *Shadow) list(ctx context.Context, below, index string) ([]string, error) {
	at := filepath.Join(s.repo.top, filepath.FromSlash(below))
	out, err := s.git(ctx, call{GitDir: s.repo.gitDir, WorkTree: at, Dir: at, Index: index,
		Args: []string{"ls-files", "-z", "-m", "-o", "--exclude-standard"}})
	if err != nil {
		return nil, err
	}
	var all []string
	for _, name := range fields(out) {
		name = below + name
		if !strings.HasSuffix(name, "/") {
			all = append(all, name)
			continue
		}
		more, err := s.list(ctx, name, filepath.Join(s.repo.gitDir, "no-index"))
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// sort splits paths into missing or skipped ones and existing ones.
func (s *Shadow) sort(paths []string) (gone map[string]entry, there []string) {
	s.leftOut = nil
	gone = map[string]entry{}
	p := s.placer()
	for _, name := range paths {
		info, err := os.Lstat(filepath.Join(s.repo.top, filepath.FromSlash(name)))
		switch {
		case err != nil || info.IsDir() || p.notADirectory(name) != "":
			gone[name] = entry{}
		case info.Size() > MaxShadow:
			gone[name] = entry{}
			s.leftOut = append(s.leftOut, name)
		default:
			there = append(there, name)
		}
	}
	slices.Sort(s.leftOut)
	return gone, there
}

// add records files. An unreadable one must not prevent the others.
func (s *Shadow) add(ctx context.Context, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	run := func(paths []string) error {
		_, err := s.git(ctx, call{Args: []string{"update-index", "-z", "--add", "--remove", "--replace", "--stdin"},
			Stdin: strings.NewReader(strings.Join(paths, "\x00") + "\x00")})
		return err
	}
	err := run(paths)
	if err == nil || ctx.Err() != nil {
		return err
	}
	readable := slices.DeleteFunc(slices.Clone(paths), func(name string) bool {
		at := filepath.Join(s.repo.top, filepath.FromSlash(name))
		if info, err := os.Lstat(at); err != nil || info.Mode()&fs.ModeSymlink != 0 {
			return false
		}
		f, err := os.Open(at)
		if err == nil {
			f.Close()
			return false
		}
		s.leftOut = append(s.leftOut, name)
		return true
	})
	slices.Sort(s.leftOut)
	if len(readable) == len(paths) || len(readable) == 0 {
		if len(readable) == 0 {
			return nil
		}
		return err
	}
	return run(readable)
}

func (s *Shadow) placer() placer { return placer{git: s.git, top: s.repo.top} }

// Stat lists the changes between two trees.
func (s *Shadow) Stat(ctx context.Context, from, to string) ([]centurion.FileChange, error) {
	return s.repo.Stat(ctx, from, to)
}

// Diff lists the changes of these files between two trees, with hunks.
func (s *Shadow) Diff(ctx context.Context, from, to string, paths ...string) ([]centurion.FileDiff, error) {
	all, err := s.repo.Diff(ctx, from, to)
	return slices.DeleteFunc(all, func(f centurion.FileDiff) bool {
		return !slices.Contains(paths, f.Path) && !slices.Contains(paths, f.Old)
	}), err
}

// Patch is the change between two trees as text.
func (s *Shadow) Patch(ctx context.Context, from, to string, color bool, paths ...string) (string, error) {
	return s.repo.Patch(ctx, from, to, color, paths...)
}

// Restore returns the files at paths (all that differ, if there are none) from their state in tree `to` to that in `from`. Files no
// longer as in `to` are listed in changed; with any, nothing is touched unless force is set. An obstacle such as a directory with other
// files is listed, and stays even then. files are the changes made, without files that were as in `from` already.
func (s *Shadow) Restore(ctx context.Context, from, to string, force bool, paths ...string) (files []centurion.FileChange, changed []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, err := s.repo.scratch()
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	g, err := s.compare(ctx, dir, from, to, paths)
	if err != nil {
		return nil, nil, err
	}
	if len(g.blocked) > 0 || len(g.changed) > 0 && !force || len(g.steps) == 0 {
		all := slices.Concat(g.changed, g.blocked)
		slices.Sort(all)
		return nil, slices.Compact(all), nil
	}
	return s.restore(ctx, dir, from, to, g.steps, g.infos)
}

// Blocked lists the files that Restore could not restore even with force, because of obstacles that must stay. It touches nothing.
func (s *Shadow) Blocked(ctx context.Context, from, to string, paths ...string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, err := s.repo.scratch()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	g, err := s.compare(ctx, dir, from, to, paths)
	return g.blocked, err
}

// going is the work of a Restore, and the obstacles.
type going struct {
	steps   []step
	changed []string // no longer as in the tree `to`
	blocked []string // an obstacle is in the way
	infos   map[string]fs.FileInfo
}

// compare determines the work; dir is a scratch directory.
func (s *Shadow) compare(ctx context.Context, dir, from, to string, paths []string) (g going, err error) {
	all, err := s.repo.raw(ctx, from, to)
	if err != nil {
		return g, err
	}
	all = slices.DeleteFunc(all, func(c change) bool { return !chosen(c.Path, paths) })
	work := filepath.Join(dir, "work")
	if b, err := os.ReadFile(filepath.Join(s.repo.gitDir, "index")); err == nil {
		if err := os.WriteFile(work, b, 0o600); err != nil {
			return g, diskError("copy the index", err)
		}
	}
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.Path
	}
	now, err := s.placer().look(ctx, work, names)
	if err != nil {
		return g, err
	}
	g.infos = now.infos
	for _, c := range all {
		is := now.entries[c.Path]
		if is == c.from {
			continue
		}
		if is != c.to {
			g.changed = append(g.changed, c.Path)
		}
		g.steps = append(g.steps, step{c.Path, is, c.from})
	}
	for _, st := range g.steps {
		if up := now.blocked[st.Path]; up != "" && st.New != (entry{}) && s.placer().inTheWay(st.Path, up, g.steps) {
			g.blocked = append(g.blocked, st.Path)
		}
	}
	return g, nil
}

func (s *Shadow) restore(ctx context.Context, dir, from, to string, steps []step, infos map[string]fs.FileInfo) ([]centurion.FileChange, []string, error) {
	done := map[string]bool{}
	for _, st := range steps {
		done[st.Path] = true
	}
	all, err := s.repo.changes(ctx, to, from, false)
	if err != nil {
		return nil, nil, err
	}
	if err := s.placer().stage(ctx, dir, from, steps); err != nil {
		return nil, nil, err
	}
	if err := s.placer().place(dir, steps, infos); err != nil {
		return nil, nil, err
	}
	all = slices.DeleteFunc(all, func(c change) bool { return !done[c.Path] && !done[c.before()] })
	return fileChanges(all), nil, nil
}

// chosen reports whether a path is at or below one of these; all are if there are none.
func chosen(name string, paths []string) bool {
	return len(paths) == 0 || slices.ContainsFunc(paths, func(p string) bool {
		p = strings.TrimSuffix(filepath.ToSlash(filepath.Clean(p)), "/")
		return p == "." || name == p || strings.HasPrefix(name, p+"/")
	})
}
