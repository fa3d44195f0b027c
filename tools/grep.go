package tools

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"centurion"
	"centurion/guard"
	"centurion/permission"
)

const (
	grepMatches = 100
	grepLineLen = 300     // shown characters of a line
	grepLineMax = 1 << 20 // searched bytes of a line
	grepKeep    = 4096    // kept bytes of a long line, more than is ever shown
	grepBatch   = 64      // files searched in parallel
)

type grepInput struct {
	Pattern  string   `json:"pattern"`
	Patterns []string `json:"patterns"`
	Path     string   `json:"path"`
	Include  string   `json:"include"`
}

func grepTool() Tool {
	return define("grep", object(
		may("pattern", nonEmpty("The regular expression (RE2)")),
		may("patterns", list("Several at once instead: lines that match any of them", nonEmpty("A regular expression"))),
		may("path", str("The directory or file to look in (default: the project)")),
		may("include", str("Only files that match: *.go, src/**/*.{ts,tsx}")),
	), func(grepInput) Effect { return Effect{ReadOnly: true} }, runGrep)
}

func runGrep(ctx context.Context, c *Call, in grepInput) (Result, error) {
	const op = "grep"
	re, each, err := in.compile(op)
	if err != nil {
		return Result{}, err
	}
	match := func(string) bool { return true }
	if in.Include != "" {
		if match, err = pathMatcher(op, in.Include); err != nil {
			return Result{}, err
		}
	}
	p, err := enter(ctx, c, op, in.Path)
	if err != nil {
		return Result{}, err
	}
	if err := p.allowSearch(ctx, c, op, in.all()...); err != nil {
		return Result{}, err
	}
	info, err := p.In.Stat(p.Rel)
	if err != nil {
		return Result{}, p.fail(op, 0, err)
	}
	s := &search{call: c, at: p, re: re, each: each}
	var files []string
	switch {
	case info.Mode().IsRegular():
		if err := p.allow(ctx, c, "read", map[string]any{"filepath": p.Name}); err != nil {
			return Result{}, err
		}
		files = []string{"."}
	case info.IsDir():
		for f, err := range p.walk(ctx, op, 0) {
			if err != nil {
				return Result{}, err
			}
			switch {
			case f.dir || !match(f.rel):
			case permission.Secret(path.Join(p.Name, f.rel)):
				s.kept++
			default:
				files = append(files, f.rel)
			}
		}
	default:
		return Result{}, usage(op, "give a directory or a file", "%s is %s", p.Name, fileKind(info.Mode()))
	}
	if err := s.find(ctx, files); err != nil {
		return Result{}, err
	}
	return Result{Output: s.text(len(files)), Title: re.String(), Metadata: map[string]any{"matches": s.n, "truncated": s.more}}, nil
}

func (in grepInput) all() []string {
	return slices.DeleteFunc(append([]string{in.Pattern}, in.Patterns...), func(s string) bool { return s == "" })
}

// compile returns an expression that matches any of the patterns, and for several patterns each of them.
func (in grepInput) compile(op string) (re *regexp.Regexp, each []pattern, err error) {
	all := in.all()
	if len(all) == 0 {
		return nil, nil, usage(op, "give the regular expression in pattern, or several in patterns", "there is no pattern")
	}
	for _, p := range all {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, nil, usage(op, `put \ before ( ) [ ] { } . * + ? | if they are meant as such; there is no look-around`,
				"pattern %q is not a regular expression: %s", p, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
		each = append(each, pattern{re: re})
	}
	if len(all) == 1 {
		return each[0].re, nil, nil
	}
	re, err = regexp.Compile("(?:" + strings.Join(all, ")|(?:") + ")")
	if err != nil { // only if they are too large together
		return nil, nil, usage(op, "search for fewer at once", "the patterns are too large together: %s", err)
	}
	return re, each, nil
}

// pattern is one of several patterns.
type pattern struct {
	re *regexp.Regexp
	n  int // shown lines that match it
}

// hit is a matching line.
type hit struct {
	line int
	text string
}

// search collects the results.
type search struct {
	call *Call
	at   place
	re   *regexp.Regexp
	each []pattern // each of several patterns; nil for one

	out   strings.Builder
	n     int  // shown lines
	files int  // files of these lines
	kept  int  // files skipped because they usually hold secrets
	more  bool // not all results are shown
}

// add shows the lines of a file and reports whether more are wanted. It shows a file only if it may be read.
func (s *search) add(ctx context.Context, rel string, hits []hit) (bool, error) {
	if len(hits) == 0 {
		return true, nil
	}
	if s.n == grepMatches {
		s.more = true
		return false, nil
	}
	p := s.at.below(rel)
	if rel != "." { // otherwise permission was requested before the search
		err := p.allow(ctx, s.call, "read", map[string]any{"filepath": p.Name})
		if centurion.KindOf(err) == centurion.KindPermission {
			return true, nil // not counted: the rule hides that there is such a line
		}
		if err != nil {
			return false, err
		}
	}
	if s.n > 0 {
		s.out.WriteByte('\n')
	}
	fmt.Fprintln(&s.out, p.Name)
	s.files++
	for _, h := range hits {
		if s.n == grepMatches {
			s.more = true
			return false, nil
		}
		s.n++
		for i := range s.each {
			if s.each[i].re.MatchString(h.text) {
				s.each[i].n++
			}
		}
		fmt.Fprintf(&s.out, "%6d| %s\n", h.line, s.cut(h.text))
	}
	return true, nil
}

// clip returns a line in the form kept until it is shown: of a long line, the piece around the match.
func clip(re *regexp.Regexp, line []byte) string {
	if len(line) <= grepKeep {
		return string(line)
	}
	from := 0
	if at := re.FindIndex(line); at != nil {
		from = max(0, at[0]-grepLineLen*utf8.UTFMax)
	}
	return string(line[from:min(len(line), from+grepKeep)])
}

// cut shortens a long line to the piece around the match.
func (s *search) cut(line string) string {
	line = s.call.Keys.Text(valid(line))
	if utf8.RuneCountInString(line) <= grepLineLen {
		return line
	}
	before := ""
	if at := s.re.FindStringIndex(line); at != nil && utf8.RuneCountInString(line[:at[1]]) > grepLineLen {
		before = "…" + tailRunes(line[:at[0]], grepLineLen/3)
		line = line[at[0]:]
	}
	return before + headRunes(line, grepLineLen-utf8.RuneCountInString(before))
}

func (s *search) text(searched int) string {
	if s.n == 0 {
		fmt.Fprintf(&s.out, "no line matches in %s", centurion.Count(searched, "file"))
		if pattern := s.re.String(); strings.Contains(pattern, `\n`) || strings.Contains(pattern, "\n") {
			s.out.WriteString("; a pattern is matched against one line at a time")
		}
		s.out.WriteByte('\n')
	} else {
		what := centurion.Count(s.n, "match") + " in " + centurion.Count(s.files, "file")
		if s.more {
			what = fmt.Sprintf("the first %d matches; there are more: make the pattern narrower, or use include or path", s.n)
		}
		fmt.Fprintf(&s.out, "\n(%s)\n", what)
		for _, p := range s.each {
			fmt.Fprintf(&s.out, "(%s: %s)\n", p.re, centurion.Count(p.n, "line"))
		}
	}
	if s.kept > 0 {
		fmt.Fprintf(&s.out, "(not searched, because such files usually hold secrets: %s; name one in path to ask for it)\n", centurion.Count(s.kept, "file"))
	}
	return s.out.String()
}

// find adds the matching lines of files below the place, several files in parallel, until no more are wanted. It starts no program: that
// could follow a link that is exchanged for a file meanwhile.
func (s *search) find(ctx context.Context, files []string) error {
	for len(files) > 0 {
		batch := files[:min(len(files), grepBatch)]
		files = files[len(batch):]
		found := make([][]hit, len(batch))
		var next atomic.Int64
		var g guard.Group
		for range min(len(batch), runtime.GOMAXPROCS(0), 8) {
			g.Go("grep", func() error {
				for {
					i := int(next.Add(1)) - 1
					if i >= len(batch) || ctx.Err() != nil {
						return nil
					}
					found[i] = searchFile(s.at.below(batch[i]), s.re)
				}
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ended(ctx, "grep")
		}
		for i, hits := range found {
			if more, err := s.add(ctx, batch[i], hits); !more || err != nil {
				return err
			}
		}
	}
	return nil
}

// searchFile returns the first matching lines of a text file, one more than is ever shown; none if it cannot be read.
func searchFile(p place, re *regexp.Regexp) []hit {
	f, _, err := p.In.Open(p.Rel)
	if err != nil {
		return nil
	}
	defer f.Close()
	head := make([]byte, sniffLen)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil
	}
	if binaryType(head[:n]) != "" {
		return nil
	}
	var hits []hit
	l := newLines(io.MultiReader(bytes.NewReader(head[bomLen(head[:n]):n]), f), grepLineMax)
	for i := 1; l.next() && len(hits) <= grepMatches; i++ {
		if re.Match(l.line) {
			hits = append(hits, hit{i, clip(re, l.line)})
		}
	}
	return hits
}
