package tools

import (
	"context"
	"fmt"
	"iter"
	"path"
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

// allowSearch asks for permission to search, in OpenCode's format: the rules are matched against the search pattern.
func (p place) allowSearch(ctx context.Context, c *Call, perm string, patterns ...string) error {
	return c.Gate.Ask(ctx, c, Access{Permission: perm, Patterns: patterns, Always: []string{"*"},
		Metadata: map[string]any{"pattern": strings.Join(patterns, " | "), "path": p.Name}})
}

// walk yields the files and directories below the place, down to depth levels (0: all), sorted, each directory before its content. It
// skips links and unreadable directories. In the project it honours .gitignore, unless the whole place is ignored: then it was named on
// purpose.
func (p place) walk(ctx context.Context, op string, depth int) iter.Seq2[found, error] {
	return func(yield func(found, error) bool) {
		for e, err := range p.In.Walk(ctx, workspace.WalkOptions{Dir: p.Rel, MaxDepth: depth, Hidden: true, Ignored: p.Outside, Named: true}) {
			switch {
			case err != nil && e.Path != p.Rel && ctx.Err() == nil:
				continue
			case err != nil && ctx.Err() == nil && !e.IsDir() && e.Mode != 0:
				yield(found{}, usage(op, fmt.Sprintf("read it with read{\"filePath\": %q}, or give a directory", p.Name), "%s is not a directory", p.Name))
				return
			case err != nil:
				yield(found{}, p.fail(op, 0, err))
				return
			case !e.IsDir() && !e.IsFile():
				continue
			}
			rel := e.Path
			if p.Rel != "." {
				rel = strings.TrimPrefix(rel, p.Rel+"/")
			}
			if !yield(found{rel, e.IsDir(), e.Size, e.ModTime}, nil) {
				return
			}
		}
	}
}

// below returns the place of a file found by a walk.
func (p place) below(rel string) place {
	p.Rel, p.Name = path.Join(p.Rel, rel), path.Join(p.Name, rel)
	return p
}
