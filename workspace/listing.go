package workspace

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"centurion"
)

// Files lists the project's files breadth first, without .opencode and ignored files, and stops after max of them, so that the top of a
// huge project is listed quickly. whole is false if it stopped. Unreadable directories are skipped.
func (w *Workspace) Files(ctx context.Context, max int) (files []string, whole bool, err error) {
	wk := walker{w: w, ctx: ctx, opts: WalkOptions{Hidden: true}, yield: func(e Entry, _ error) bool {
		if !e.IsFile() {
			return ctx.Err() == nil
		}
		if len(files) == max {
			return false
		}
		files = append(files, e.Path)
		return true
	}}
	var queue []func() bool
	wk.into = func(dir string, depth int, rules ruleSet) bool {
		if dir != Directory {
			queue = append(queue, func() bool { return wk.dir(dir, depth, rules) })
		}
		return true
	}
	for wk.into(".", 1, w.outerRules()); len(queue) > 0; queue = queue[1:] {
		if !queue[0]() {
			return files, false, context.Cause(ctx)
		}
	}
	return files, true, nil
}

// Listing formats file names in at most limit bytes, one line per directory. If the names of a directory do not fit, its line has the
// number of files in it. Higher directories take precedence over deeper ones, and within a depth shorter ones. The result does not
// depend on the order of files.
func Listing(files []string, limit int) string {
	root := &listed{dirs: map[string]*listed{}}
	for _, f := range files {
		root.add(f)
	}
	left := limit - len(root.lines())
	for depth := []*listed{root}; len(depth) > 0; {
		for _, d := range depth {
			d.cost = d.tryOpen(true)
		}
		slices.SortFunc(depth, func(a, b *listed) int { return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.path, b.path)) })
		var next []*listed
		for _, d := range depth {
			for _, named := range []bool{true, false} {
				if cost := d.tryOpen(named); cost <= left && (named || len(d.dirs) > 0) {
					d.open, d.named, left = true, named, left-cost
					next = append(next, d.below()...)
					break
				}
			}
		}
		depth = next
	}
	if left < 0 {
		return ""
	}
	return strings.TrimSuffix(root.lines(), "\n")
}

// listed is a directory in a [Listing].
type listed struct {
	path  string // ends with a slash, quoted if needed; "" for the project
	files []string
	dirs  map[string]*listed
	total int // number of files in it and below

	open  bool // its directories have their own lines
	named bool // its files are named
	cost  int
}

func (d *listed) add(file string) {
	d.total++
	for {
		dir, rest, below := strings.Cut(file, "/")
		if !below {
			d.files = append(d.files, file)
			return
		}
		if d.dirs[dir] == nil {
			d.dirs[dir] = &listed{path: path.Join(d.path, dir) + "/", dirs: map[string]*listed{}}
		}
		d, file = d.dirs[dir], rest
		d.total++
	}
}

func (d *listed) below() []*listed {
	out := make([]*listed, 0, len(d.dirs))
	for _, b := range d.dirs {
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b *listed) int { return cmp.Compare(a.path, b.path) })
	return out
}

// tryOpen returns how many more bytes it takes to open a closed directory.
func (d *listed) tryOpen(named bool) int {
	closed := len(d.lines())
	d.open, d.named = true, named
	cost := len(d.lines()) - closed
	d.open, d.named = false, false
	return cost
}

func (d *listed) lines() string {
	if !d.open {
		return fmt.Sprintf("%s (%s)\n", name(cmp.Or(d.path, "./")), centurion.Count(d.total, "file"))
	}
	var b strings.Builder
	switch {
	case len(d.files) == 0:
	case d.named && len(d.files) == 1:
		b.WriteString(name(d.path+d.files[0]) + "\n")
	case d.named:
		slices.Sort(d.files)
		between := ""
		if d.path != "" {
			b.WriteString(name(d.path) + ":")
			between = " "
		}
		for _, f := range d.files {
			b.WriteString(between + name(f))
			between = " "
		}
		b.WriteByte('\n')
	default:
		fmt.Fprintf(&b, "%s (%s)\n", name(d.path+"*"), centurion.Count(len(d.files), "file"))
	}
	for _, sub := range d.below() {
		b.WriteString(sub.lines())
	}
	return b.String()
}

// name is a path in a listing: quoted unless it is plain words, so that it ends neither its line nor the surrounding markup.
func name(p string) string {
	plain := func(r rune) bool {
		return r > ' ' && strconv.IsPrint(r) && !strings.ContainsRune("<>\"`", r) && r != '\uFFFD'
	}
	if strings.IndexFunc(p, func(r rune) bool { return !plain(r) }) < 0 {
		return p
	}
	return strings.NewReplacer("<", `\x3c`, ">", `\x3e`, "`", `\x60`).Replace(strconv.QuoteToASCII(p))
}
