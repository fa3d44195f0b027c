package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"centurion"
)

// Entry is a file, a directory or anything else found by a walk.
type Entry struct {
	Path    string // relative to the project, with slashes
	Mode    fs.FileMode
	Size    int64 // bytes; of regular files only
	ModTime time.Time
}

// IsDir reports whether the entry is a directory. A link to a directory is not.
func (e Entry) IsDir() bool { return e.Mode.IsDir() }

// IsFile reports whether the entry is a regular file.
func (e Entry) IsFile() bool { return e.Mode.IsRegular() }

// WalkOptions selects the entries of a walk. The zero value walks the whole project without ignored files and dot files.
type WalkOptions struct {
	Dir      string // where to start; "" is the project
	MaxDepth int    // levels below Dir; 0 means no limit, 1 only the entries of Dir itself
	Ignored  bool   // include files ignored by .gitignore and .git/info/exclude
	Hidden   bool   // include names that begin with a dot
	Named    bool   // Dir was named on purpose: if every file and directory in it is ignored, none is
}

// Walk yields everything below a directory, sorted by path, with a directory before its content. It never enters .git and follows no
// link. The .gitignore files above the project count if it is part of a larger git repository. An unreadable directory is yielded again
// with the error, and the walk continues if its reader does; an error for Dir itself (KindNotFound, KindUsage if it is not a directory,
// whose entry has its mode then, KindPermission), and the end of ctx, is the last pair.
func (w *Workspace) Walk(ctx context.Context, opts WalkOptions) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		dir := "."
		if opts.Dir != "" {
			var err error
			if w, dir, err = w.within(opts.Dir); err != nil {
				yield(Entry{Path: opts.Dir}, err)
				return
			}
		}
		fi, err := w.root.Stat(dir)
		if err == nil && !fi.IsDir() {
			err = &centurion.Error{Op: opWalk, Kind: centurion.KindUsage, Msg: dir + " is not a directory", Hint: "read it instead"}
		}
		if err != nil {
			e := Entry{Path: dir}
			if fi != nil {
				e.Mode = fi.Mode()
			}
			yield(e, w.fail(opWalk, dir, err))
			return
		}
		var rules ruleSet
		if !opts.Ignored {
			rules = w.outerRules()
			// The rules of the directories above Dir apply to it, too.
			for _, above := range ancestors(dir) {
				rules = rules.with(w, above)
			}
		}
		none := true
		wk := walker{w: w, ctx: ctx, opts: opts, yield: func(e Entry, err error) bool {
			none = none && err == nil && !e.IsDir() && !e.IsFile()
			return yield(e, err)
		}}
		wk.into = wk.dir
		if wk.dir(dir, 1, rules) && none && opts.Named && !opts.Ignored && dir != "." {
			wk.opts.Ignored = true
			wk.dir(dir, 1, ruleSet{})
		}
	}
}

const opWalk = "list files"

type walker struct {
	w     *Workspace
	ctx   context.Context
	opts  WalkOptions
	yield func(Entry, error) bool
	into  func(dir string, depth int, rules ruleSet) bool // handles a found directory
}

// dir walks one directory and reports whether the reader wants more.
func (wk *walker) dir(dir string, depth int, rules ruleSet) bool {
	if wk.ctx.Err() != nil {
		err := context.Cause(wk.ctx)
		wk.yield(Entry{Path: dir, Mode: fs.ModeDir}, &centurion.Error{Op: opWalk, Kind: centurion.KindOf(err), Err: err})
		return false
	}
	infos, err := wk.read(dir)
	if err != nil && !wk.yield(Entry{Path: dir, Mode: fs.ModeDir}, wk.w.fail(opWalk, dir, err)) {
		return false
	}
	hasRules := func(fi fs.FileInfo) bool { return strings.EqualFold(fi.Name(), ".gitignore") }
	if !wk.opts.Ignored && (dir == "." || slices.ContainsFunc(infos, hasRules)) {
		rules = rules.with(wk.w, dir)
	}
	for _, fi := range infos {
		name := fi.Name()
		rel := path.Join(dir, name)
		if strings.EqualFold(name, ".git") || dir == Directory && (name == lockName || name == tempName) || !wk.opts.Hidden && strings.HasPrefix(name, ".") ||
			!wk.opts.Ignored && rules.ignores(rel, fi.IsDir()) {
			continue
		}
		e := Entry{Path: rel, Mode: fi.Mode(), ModTime: fi.ModTime()}
		if e.IsFile() {
			e.Size = fi.Size()
		}
		if !wk.yield(e, nil) {
			return false
		}
		if fi.IsDir() && (wk.opts.MaxDepth == 0 || depth < wk.opts.MaxDepth) && !wk.into(rel, depth+1, rules) {
			return false
		}
	}
	return true
}

// read lists a directory by name.
func (wk *walker) read(dir string) ([]fs.FileInfo, error) {
	d, err := wk.w.For(dir).root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(-1)
	infos := make([]fs.FileInfo, 0, len(entries))
	for _, e := range entries {
		// Entries removed meanwhile are skipped.
		if fi, err := e.Info(); err == nil {
			infos = append(infos, fi)
		}
	}
	slices.SortFunc(infos, func(a, b fs.FileInfo) int { return strings.Compare(a.Name(), b.Name()) })
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return infos, err
}

// ancestors returns the directories above dir, from the project down, without dir.
func ancestors(dir string) []string {
	var out []string
	for dir != "." {
		dir = path.Dir(dir)
		out = append(out, dir)
	}
	slices.Reverse(out)
	return out
}
