package tools

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

const globMatches = 100

type globInput struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

func globTool() Tool {
	return define("glob", object(
		need("pattern", nonEmpty("The pattern of the path: *.go, src/**/*_test.go, docs/*.{md,txt}")),
		may("path", str("The directory to look in (default: the project)")),
	), func(globInput) Effect { return Effect{ReadOnly: true} }, runGlob)
}

func runGlob(ctx context.Context, c *Call, in globInput) (Result, error) {
	const op = "glob"
	if filepath.IsAbs(in.Pattern) { // models sometimes include the directory in the pattern
		base, rest := doublestar.SplitPattern(filepath.ToSlash(in.Pattern))
		in.Path, in.Pattern = filepath.FromSlash(base), "./"+rest
	}
	match, err := pathMatcher(op, in.Pattern)
	if err != nil {
		return Result{}, err
	}
	p, err := enter(ctx, c, op, in.Path)
	if err != nil {
		return Result{}, err
	}
	if err := p.allowSearch(ctx, c, op, in.Pattern); err != nil {
		return Result{}, err
	}
	var hits []found
	for f, err := range p.walk(ctx, op, 0) {
		if err != nil {
			return Result{}, err
		}
		if !f.dir && match(f.rel) {
			hits = append(hits, f)
		}
	}
	slices.SortStableFunc(hits, func(a, b found) int {
		return cmp.Or(b.mod.Compare(a.mod), cmp.Compare(a.rel, b.rel))
	})
	var b strings.Builder
	for _, f := range hits[:min(len(hits), globMatches)] {
		fmt.Fprintln(&b, path.Join(p.Name, f.rel))
	}
	switch {
	case len(hits) == 0:
		b.WriteString("no file matches; what .gitignore names is not looked at")
	case len(hits) > globMatches:
		fmt.Fprintf(&b, "(the newest %d of %d; make the pattern narrower for the others)\n", globMatches, len(hits))
	}
	return Result{Output: b.String(), Title: in.Pattern, Metadata: map[string]any{"count": len(hits), "truncated": len(hits) > globMatches}}, nil
}

// pathMatcher returns a matcher for paths. A pattern without a slash matches the name in any directory; one that begins with ./ or /
// does not.
func pathMatcher(op, pattern string) (func(rel string) bool, error) {
	if !doublestar.ValidatePattern(pattern) {
		return nil, usage(op, `* is any run of letters, ** any directories, {a,b} one of both; put \ before a special letter`,
			"%q is not a pattern", pattern)
	}
	clean := strings.TrimPrefix(strings.TrimPrefix(pattern, "."), "/")
	if len(clean) == len(pattern) || !strings.Contains(pattern, "/") {
		clean = pattern
	}
	if strings.HasSuffix(clean, "/") {
		clean += "**"
	}
	if !strings.Contains(pattern, "/") {
		return func(rel string) bool { return doublestar.MatchUnvalidated(clean, path.Base(rel)) }, nil
	}
	return func(rel string) bool { return doublestar.MatchUnvalidated(clean, rel) }, nil
}
