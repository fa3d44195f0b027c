package tools

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"centurion/workspace"
)

// found is a file or directory below a place.
type found struct {
	rel  string // relative to the place, with slashes
	dir  bool
	size int64
	mod  time.Time
}

// directory checks that the place is a directory.
func (p place) directory(op string) error {
	info, err := p.stat(op)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return usage(op, fmt.Sprintf("read it with read{\"filePath\": %q}, or give a directory", p.name), "%s is not a directory", p.name)
	}
	return nil
}

// allowSearch asks for permission to search, in OpenCode's format: the rules are matched against the search pattern.
func (p place) allowSearch(ctx context.Context, c *Call, perm string, patterns ...string) error {
	return c.Gate.Ask(ctx, c, Access{Permission: perm, Patterns: patterns, Always: []string{"*"},
		Metadata: map[string]any{"pattern": strings.Join(patterns, " | "), "path": p.name}})
}

// walk yields the files and directories below the place, down to depth levels (0: all), sorted, each directory before its content. It
// skips links and unreadable directories. In the project it honours .gitignore, unless the whole place is ignored: then it was named on
// purpose.
func (p place) walk(ctx context.Context, depth int) iter.Seq2[found, error] {
	if p.outside() {
		return p.walkOutside(ctx, depth)
	}
	return func(yield func(found, error) bool) {
		opts := workspace.WalkOptions{Dir: p.rel, MaxDepth: depth, Hidden: true}
		none := true
		for f, err := range p.walkProject(ctx, opts) {
			none = false
			if !yield(f, err) {
				return
			}
		}
		if !none || p.rel == "." {
			return
		}
		opts.Ignored = true
		p.walkProject(ctx, opts)(yield)
	}
}

func (p place) walkProject(ctx context.Context, opts workspace.WalkOptions) iter.Seq2[found, error] {
	return func(yield func(found, error) bool) {
		for e, err := range p.ws.Walk(ctx, opts) {
			switch {
			case err != nil && e.Path != p.rel && ctx.Err() == nil:
				continue
			case err != nil:
				yield(found{}, err)
				return
			case !e.IsDir() && !e.IsFile():
				continue
			}
			rel := e.Path
			if p.rel != "." {
				rel = strings.TrimPrefix(rel, p.rel+"/")
			}
			if !yield(found{rel, e.IsDir(), e.Size, e.ModTime}, nil) {
				return
			}
		}
	}
}

// walkOutside yields everything but .git.
func (p place) walkOutside(ctx context.Context, depth int) iter.Seq2[found, error] {
	return func(yield func(found, error) bool) {
		err := fs.WalkDir(os.DirFS(p.abs), ".", func(rel string, d fs.DirEntry, err error) error {
			switch {
			case ctx.Err() != nil:
				return ended(ctx, "walk")
			case err != nil && rel == ".":
				return p.fail("walk", err)
			case err != nil:
				return fs.SkipDir
			case rel == ".":
				return nil
			case d.IsDir() && d.Name() == ".git":
				return fs.SkipDir
			case !d.IsDir() && !d.Type().IsRegular():
				return nil
			}
			f := found{rel: rel, dir: d.IsDir()}
			if info, err := d.Info(); err == nil {
				f.size, f.mod = info.Size(), info.ModTime()
			}
			switch {
			case !yield(f, nil):
				return fs.SkipAll
			case f.dir && depth > 0 && strings.Count(rel, "/")+1 == depth:
				return fs.SkipDir
			}
			return nil
		})
		if err != nil {
			yield(found{}, err)
		}
	}
}

// below returns the place of a file found by a walk.
func (p place) below(rel string) place {
	b := place{ws: p.ws, name: path.Join(p.name, rel), abs: filepath.Join(p.abs, filepath.FromSlash(rel))}
	if !p.outside() {
		b.rel = path.Join(p.rel, rel)
	}
	return b
}
