package worktree

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"centurion"
	"centurion/worktree/gitobj"
)

// entry is an entry of a tree or an index. The zero entry means none.
type entry = gitobj.Entry

// change is the change of one file between two trees, with both entries.
type change struct {
	centurion.FileDiff
	from, to entry
}

// before is the file's path in the old tree.
func (c change) before() string { return cmp.Or(c.Old, c.Path) }

var errDiff = errors.New("git printed a diff that cannot be read")

func badDiff(format string, args ...any) error {
	return &centurion.Error{Op: "read diff", Kind: centurion.KindInternal, Msg: fmt.Sprintf(format, args...), Err: errDiff}
}

// parseChanges parses the output of `git diff-tree --raw --numstat [-p] -z`: the raw lines, the counts, and an optional patch after a
// NUL.
func parseChanges(out []byte) ([]change, error) {
	var all []change
	at := map[string]int{}
	for len(out) > 0 && out[0] == ':' {
		var c change
		var err error
		if c, out, err = parseRaw(out); err != nil {
			return nil, err
		}
		at[c.Path] = len(all)
		all = append(all, c)
	}
	for len(out) > 0 && out[0] != 0 && !bytes.HasPrefix(out, []byte("diff --git ")) {
		var err error
		if out, err = parseCounts(out, all, at); err != nil {
			return nil, err
		}
	}
	out = bytes.TrimPrefix(out, []byte{0})
	if len(out) == 0 {
		return all, nil
	}
	return all, parsePatch(out, all)
}

// parseRaw parses ":<mode> <mode> <id> <id> <status>\0<path>\0[<path>\0]".
func parseRaw(out []byte) (c change, rest []byte, err error) {
	head, rest, ok := bytes.Cut(out, []byte{0})
	f := strings.Fields(strings.TrimPrefix(string(head), ":"))
	if !ok || len(f) != 5 || len(f[0]) != 6 || len(f[1]) != 6 {
		return c, nil, badDiff("the line %q is no entry", cut(head))
	}
	name, rest, ok := bytes.Cut(rest, []byte{0})
	if !ok || len(name) == 0 {
		return c, nil, badDiff("the entry %q has no path", cut(head))
	}
	c.Path = string(name)
	c.from, c.to = entryOf(f[0], f[2]), entryOf(f[1], f[3])
	switch f[4][0] {
	case 'A':
		c.Status = "added"
	case 'D':
		c.Status = "deleted"
	case 'M', 'T':
		c.Status = "modified"
	case 'R', 'C':
		var to []byte
		if to, rest, ok = bytes.Cut(rest, []byte{0}); !ok || len(to) == 0 {
			return c, nil, badDiff("the entry %q has one path only", cut(head))
		}
		c.Old, c.Path, c.Status = c.Path, string(to), "renamed"
	default:
		return c, nil, badDiff("the entry %q has the unknown status %s", cut(head), f[4])
	}
	return c, rest, nil
}

func entryOf(mode, id string) entry {
	if strings.Trim(mode, "0") == "" {
		return entry{}
	}
	return entry{Mode: mode, ID: id}
}

// parseCounts parses "<added>\t<deleted>\t<path>\0", or with an empty path "<old>\0<new>\0" after it.
func parseCounts(out []byte, all []change, at map[string]int) (rest []byte, err error) {
	head, rest, ok := bytes.Cut(out, []byte{0})
	f := bytes.SplitN(head, []byte{'\t'}, 3)
	if !ok || len(f) != 3 {
		return nil, badDiff("%q is no line of counts", cut(head))
	}
	name := f[2]
	if len(name) == 0 {
		if _, rest, ok = bytes.Cut(rest, []byte{0}); ok {
			name, rest, ok = bytes.Cut(rest, []byte{0})
		}
		if !ok {
			return nil, badDiff("the counts %q lack a path", cut(head))
		}
	}
	i, known := at[string(name)]
	if !known {
		return nil, badDiff("there are counts for %q, which did not change", cut(name))
	}
	if string(f[0]) == "-" {
		all[i].Binary = true
		return rest, nil
	}
	for n, into := range map[int]*int{0: &all[i].Added, 1: &all[i].Deleted} {
		if *into, err = strconv.Atoi(string(f[n])); err != nil || *into < 0 {
			return nil, badDiff("%q is no number of lines", cut(f[n]))
		}
	}
	return rest, nil
}

// typeChange reports whether the file's type changed, as from file to link: git's patch deletes and adds it.
func (c change) typeChange() bool {
	return c.from.Mode != "" && c.to.Mode != "" && c.from.Mode[:2] != c.to.Mode[:2]
}

// whole reports whether the change cannot be divided into hunks.
func (c change) whole() bool {
	return c.typeChange() || c.from.Mode == gitobj.ModeSubmodule || c.to.Mode == gitobj.ModeSubmodule
}

// parsePatch parses the patch of these changes, in the same order. It ignores the names in it, which may be quoted.
func parsePatch(out []byte, all []change) error {
	i, pieces := -1, 0
	for len(out) > 0 {
		line, behind := nextLine(out)
		switch {
		case bytes.HasPrefix(line, []byte("diff --git ")):
			if pieces++; i < 0 || pieces > 2 || !all[i].typeChange() {
				i, pieces = i+1, 1
			}
			if i >= len(all) {
				return badDiff("the patch has more files than the %d that changed", len(all))
			}
		case bytes.HasPrefix(line, []byte("@@ ")):
			if i < 0 {
				return badDiff("the hunk %q belongs to no file", cut(line))
			}
			h, rest, err := parseHunk(out)
			if err != nil {
				return err
			}
			if !all[i].whole() {
				all[i].Hunks = append(all[i].Hunks, h)
			}
			behind = rest
		}
		out = behind
	}
	return nil
}

// parseHunk parses one hunk using the counts in its header.
func parseHunk(out []byte) (h centurion.Hunk, rest []byte, err error) {
	head, body := nextLine(out)
	old, start, add, err := ranges(string(head))
	if err != nil {
		return h, nil, err
	}
	h.Header, h.NewStart, h.NewLines = strings.TrimSuffix(string(head), "\n"), start, add
	rest = body
	for old > 0 || add > 0 {
		var line []byte
		if line, rest = nextLine(rest); len(line) == 0 {
			return h, nil, badDiff("the hunk %q ends too early", h.Header)
		}
		switch line[0] {
		case ' ':
			old, add = old-1, add-1
		case '-':
			old--
		case '+':
			add--
		case '\\':
		default:
			return h, nil, badDiff("the hunk %q has the line %q", h.Header, cut(line))
		}
	}
	if old < 0 || add < 0 {
		return h, nil, badDiff("the hunk %q has more lines than it says", h.Header)
	}
	if len(rest) > 0 && rest[0] == '\\' {
		_, rest = nextLine(rest)
	}
	h.Text = string(body[:len(body)-len(rest)])
	if h.Text == "" || h.Text[len(h.Text)-1] != '\n' {
		return h, nil, badDiff("the hunk %q does not end with a line", h.Header)
	}
	return h, rest, nil
}

var hunkHead = centurion.Pattern(`^@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// ranges parses the head of a hunk: its lines in the old file, and its start and lines in the new one.
func ranges(head string) (old, start, add int, err error) {
	m := hunkHead().FindStringSubmatch(head)
	if m == nil {
		return 0, 0, 0, badDiff("%q is no head of a hunk", cut([]byte(head)))
	}
	for i, into := range []*int{&old, &start, &add} {
		if *into, err = strconv.Atoi(cmp.Or(m[i+1], "1")); err != nil {
			return 0, 0, 0, badDiff("%q is no number of lines", m[i+1])
		}
	}
	return old, start, add, nil
}

// nextLine splits off a line including its line feed.
func nextLine(b []byte) (line, rest []byte) {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return b[:i+1], b[i+1:]
	}
	return b, nil
}

// cut shortens a quotation in an error.
func cut(b []byte) string { return string(b[:min(len(b), 80)]) }

// undoHunks returns the content of a file with these sorted hunks reverted. Every byte of a hunk must be there.
func undoHunks(content []byte, hunks []centurion.Hunk) ([]byte, error) {
	var b bytes.Buffer
	at := 1 // the line number at the start of content
	for _, h := range hunks {
		start := h.NewStart
		if h.NewLines == 0 {
			start++ // an empty range; its number is that of the line before
		}
		for ; at < start; at++ {
			line, rest := nextLine(content)
			if len(line) == 0 {
				return nil, badDiff("the hunk %q lies behind the file's end", h.Header)
			}
			b.Write(line)
			content = rest
		}
		before, after := sides(h.Text)
		if !bytes.HasPrefix(content, after) {
			return nil, badDiff("the hunk %q is not what the file has", h.Header)
		}
		content = content[len(after):]
		b.Write(before)
		at += h.NewLines
	}
	b.Write(content)
	return b.Bytes(), nil
}

// sides are the lines of a hunk before and after the change.
func sides(text string) (before, after []byte) {
	lines := slices.Collect(strings.Lines(text))
	for i, l := range lines {
		body := l[1:]
		if i+1 < len(lines) && lines[i+1][0] == '\\' {
			body = strings.TrimSuffix(body, "\n")
		}
		if l[0] == ' ' || l[0] == '-' {
			before = append(before, body...)
		}
		if l[0] == ' ' || l[0] == '+' {
			after = append(after, body...)
		}
	}
	return before, after
}
