package tools

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"centurion"
)

const (
	lsDepth   = 3
	lsEntries = 200
	lsLook    = 20_000 // counting stops after this many entries
)

type lsInput struct {
	Path string `json:"path"`
}

func lsTool() Tool {
	return define("ls", object(
		may("path", str("The directory (default: the project)")),
	), func(lsInput) Effect { return Effect{ReadOnly: true} }, runLs)
}

func runLs(ctx context.Context, c *Call, in lsInput) (Result, error) {
	const op = "ls"
	p, err := enter(ctx, c, op, in.Path)
	if err != nil {
		return Result{}, err
	}
	if err := p.allow(ctx, c, "list", map[string]any{"path": p.Name}); err != nil {
		return Result{}, err
	}
	t := tree{children: map[string][]found{}}
	for f, err := range p.walk(ctx, op, lsDepth+1) {
		if err != nil {
			return Result{}, err
		}
		if t.add(f); t.seen == lsLook {
			break
		}
	}
	return Result{Output: t.text(p.Name), Title: p.Name, Metadata: map[string]any{"count": t.shown, "truncated": t.hidden > 0}}, nil
}

// tree is the listing of a directory.
type tree struct {
	children map[string][]found // by directory, down to lsDepth
	below    map[string]int     // number of entries, by directory at lsDepth
	seen     int
	shown    int
	hidden   int
}

func (t *tree) add(f found) {
	t.seen++
	depth := strings.Count(f.rel, "/") + 1
	if depth <= lsDepth {
		dir := path.Dir(f.rel)
		t.children[dir] = append(t.children[dir], f)
		return
	}
	if t.below == nil {
		t.below = map[string]int{}
	}
	t.below[path.Dir(f.rel)]++
}

// text shows as much as fits, higher directories before deeper ones, so that one large directory does not hide its neighbours.
func (t *tree) text(name string) string {
	chosen := map[string]bool{} // directories with shown entries
	room := lsEntries
	for level := []string{"."}; len(level) > 0; {
		var next []string
		slices.SortStableFunc(level, func(a, b string) int { return cmp.Compare(len(t.children[a]), len(t.children[b])) })
		for _, dir := range level {
			entries := t.children[dir]
			if len(entries) > room && dir != "." {
				continue
			}
			chosen[dir] = true
			room -= min(room, len(entries))
			for _, f := range entries {
				if f.dir {
					next = append(next, f.rel)
				}
			}
		}
		level = next
	}
	var b strings.Builder
	if name != "." {
		name += "/"
	}
	fmt.Fprintln(&b, name)
	t.write(&b, ".", "  ", chosen)
	if t.seen == 0 {
		b.WriteString("  (empty, or all of it is ignored by .gitignore)\n")
	}
	if t.hidden > 0 {
		more := ""
		if t.seen == lsLook {
			more = " or more"
		}
		fmt.Fprintf(&b, "(%d%s not shown; list a directory below, or use glob)\n", t.hidden, more)
	}
	return b.String()
}

func (t *tree) write(b *strings.Builder, dir, indent string, chosen map[string]bool) {
	for i, f := range t.children[dir] {
		if t.shown == lsEntries {
			rest := len(t.children[dir]) - i
			t.hidden += rest
			fmt.Fprintf(b, "%s… %d more\n", indent, rest)
			return
		}
		t.shown++
		base := path.Base(f.rel)
		if !f.dir {
			fmt.Fprintf(b, "%s%s  %s\n", indent, base, centurion.Bytes(f.size))
			continue
		}
		switch n := t.below[f.rel] + len(t.children[f.rel]); {
		case n > 0 && (t.below[f.rel] > 0 || !chosen[f.rel]):
			t.hidden += n
			fmt.Fprintf(b, "%s%s/  (%d inside)\n", indent, base, n)
		default:
			fmt.Fprintf(b, "%s%s/\n", indent, base)
			t.write(b, f.rel, indent+"  ", chosen)
		}
	}
}
