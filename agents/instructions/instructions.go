// Package instructions finds what a project and a person have written for agents: AGENTS.md files, the entries of `instructions` in the
// configuration, and skills. It reads files and formats their texts for a system prompt; it asks no one and fetches nothing, and no
// text changes a tool or a permission.
//
// Project files came with the project: they are read under an os.Root, so that no link leads outside, and are kept apart from the
// person's own files at home.
package instructions

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Limits of what a session is given. Real AGENTS.md files have a few KB; together they precede every request.
const (
	MaxFile = 32 << 10 // bytes of one text
	MaxAll  = 96 << 10 // bytes of all texts of a prompt
)

const (
	minHead  = 512    // bytes: a shorter head is useless
	maxFiles = 64     // texts of one prompt
	maxNear  = 256    // directories below the project to check for one session
	maxWalk  = 20_000 // files and directories to compare with one pattern
)

// Config says where to look. Empty fields are skipped.
type Config struct {
	Dir      string   // the project
	Above    []string // the directories above it that belong to its repository, outermost first
	Home     string   // the person's home directory
	OpenCode string   // the person's directory of OpenCode, usually ~/.config/opencode
	// Entries are those of `instructions`: files or doublestar patterns. Relative ones belong to the project and the directories above
	// it, others (absolute, or with ~) to the person unless they name a file of the project.
	Entries []string
}

// Finder finds texts and skills. It caches nothing: every call reads the files again. A nil Finder finds nothing.
type Finder struct{ cfg Config }

// New returns a finder. Directories that do not exist are no error.
func New(cfg Config) *Finder {
	cfg.Dir = resolved(cfg.Dir)
	cfg.Above = slices.Clone(cfg.Above)
	for i, d := range cfg.Above {
		cfg.Above[i] = resolved(d)
	}
	return &Finder{cfg}
}

func resolved(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); dir != "" && err == nil {
		return real
	}
	return dir
}

// Want says what a session needs. The zero value means the AGENTS.md of the project and of the directories above it.
type Want struct {
	Full bool     // with the entries of `instructions`
	Near []string // files or patterns in the project: also the AGENTS.md of each directory on the way to them
	Max  int      // bytes of all texts; 0 means [MaxAll]
	// Withheld excludes a file of the project: path is relative to the project, links followed. Nil excludes none.
	Withheld func(path string) bool
}

// File is a text as given to a session.
type File struct {
	Name    string // for people: relative to the project with slashes, ~/… or absolute
	Person  bool   // it is the person's own, not part of the project
	Text    string // valid UTF-8 with LF line ends; only the head, or empty, if there was no room
	Size    int    // bytes of the whole text
	Version string // of the file: its SHA-256 in hexadecimal
}

// Whole reports whether the text is complete.
func (f File) Whole() bool { return len(f.Text) == f.Size }

// Found is the result for a session: the person's texts first, then the project's, the nearest to its files last.
type Found struct {
	Files    []File
	Problems []string // what was not read and why, one line each
	ReadOnly bool     // the session changes no files, so the prompt does not mention that
}

// Find reads the texts for a session. An unreadable text is a problem, not an error, so that no work fails because of it. The error is
// that of ctx.
func (f *Finder) Find(ctx context.Context, w Want) (Found, error) {
	if f == nil {
		return Found{}, nil
	}
	s := search{ctx: ctx, cfg: f.cfg, want: w}
	defer s.close()
	s.person()
	if w.Full {
		for _, e := range f.cfg.Entries {
			s.entry(e)
		}
	}
	levels := s.levels()
	for _, t := range levels {
		s.agentsFile(t, ".")
	}
	if len(levels) > 0 {
		for _, dir := range nearDirs(w.Near) {
			s.agentsFile(levels[len(levels)-1], dir)
		}
	}
	if err := ctx.Err(); err != nil {
		return Found{}, context.Cause(ctx)
	}
	return s.found(), nil
}

// search is one call of Find.
type search struct {
	ctx   context.Context
	cfg   Config
	want  Want
	trees []*tree // those opened

	texts    []text
	problems []string
}

// text is a file that was read.
type text struct {
	key string // its absolute path, links followed
	File
}

func (s *search) close() {
	for _, t := range s.trees {
		t.close()
	}
}

func (s *search) problem(format string, args ...any) {
	if p := fmt.Sprintf(format, args...); !slices.Contains(s.problems, p) {
		s.problems = append(s.problems, p)
	}
}

// levels opens the directories of the project, outermost first, the project itself last. Links inside one do not lead out of it.
func (s *search) levels() []*tree {
	if len(s.trees) == 0 && s.cfg.Dir != "" {
		for _, d := range append(slices.Clone(s.cfg.Above), s.cfg.Dir) {
			t, err := openTree(d, s.cfg.Dir)
			if err != nil {
				s.problem("%s: %v", d, err)
				continue
			}
			s.trees = append(s.trees, t)
		}
	}
	return s.trees
}

// person reads the person's own files for every project.
func (s *search) person() {
	for _, at := range []struct{ dir, file string }{{s.cfg.OpenCode, "AGENTS.md"}, {below(s.cfg.Home, ".claude"), "CLAUDE.md"}} {
		if at.dir != "" && s.read(personTree(at.dir, s.cfg.Home), at.file) {
			return
		}
	}
}

func below(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

// agentsFile reads the AGENTS.md of a directory, or else its CLAUDE.md.
func (s *search) agentsFile(t *tree, dir string) {
	_ = s.read(t, path.Join(dir, "AGENTS.md")) || s.read(t, path.Join(dir, "CLAUDE.md"))
}

// entry reads the files of an entry of `instructions`.
func (s *search) entry(e string) {
	if strings.Contains(e, "://") {
		s.problem("instructions %q: addresses are not fetched", e)
		return
	}
	name := e
	if rest, ok := strings.CutPrefix(e, "~/"); ok {
		if s.cfg.Home == "" {
			s.problem("instructions %q: there is no home directory", e)
			return
		}
		name = filepath.Join(s.cfg.Home, filepath.FromSlash(rest))
	}
	if filepath.IsAbs(name) {
		base, rest := doublestar.SplitPattern(filepath.ToSlash(filepath.Clean(name)))
		base = filepath.FromSlash(base)
		rel, err := filepath.Rel(s.cfg.Dir, resolved(base))
		if s.cfg.Dir == "" || err != nil || !filepath.IsLocal(rel) {
			if !s.match(personTree(base, s.cfg.Home), e, rest) {
				s.problem("instructions %q: there is no such file", e)
			}
			return
		}
		name = path.Join(filepath.ToSlash(rel), rest)
	}
	if !filepath.IsLocal(name) {
		s.problem("instructions %q: it lies outside the project", e)
		return
	}
	found := false
	for _, t := range s.levels() {
		found = s.match(t, e, path.Clean(filepath.ToSlash(name))) || found
	}
	if !found {
		s.problem("instructions %q: there is no such file", e)
	}
}

// match reads the files of a tree that match a pattern, and reports whether there are any.
func (s *search) match(t *tree, entry, pattern string) bool {
	if !strings.ContainsAny(pattern, `*?[{\`) {
		return s.read(t, pattern)
	}
	if !doublestar.ValidatePattern(pattern) {
		s.problem("instructions %q: the pattern is malformed", entry)
		return true
	}
	base, _ := doublestar.SplitPattern(pattern)
	hidden, seen, found := strings.HasPrefix(pattern, ".") || strings.Contains(pattern, "/."), 0, false
	err := fs.WalkDir(t.fs(), base, func(p string, d fs.DirEntry, err error) error {
		if seen++; seen > maxWalk {
			s.problem("instructions %q: only the first %d entries were searched", entry, maxWalk)
			return fs.SkipAll
		}
		switch name := path.Base(p); {
		case s.ctx.Err() != nil:
			return fs.SkipAll
		case err != nil:
			return nil // a missing or unreadable directory has no matches
		case d.IsDir() && p != base && (name == "node_modules" || name == ".git" || !hidden && name[0] == '.'):
			return fs.SkipDir
		case d.IsDir() || !hidden && name[0] == '.' || !doublestar.MatchUnvalidated(pattern, p):
			return nil
		}
		found = s.read(t, p) || found
		return nil
	})
	if err != nil {
		s.problem("instructions %q: %v", entry, err)
	}
	return found
}

// read adds a file and reports whether it exists.
func (s *search) read(t *tree, name string) bool {
	key, data, err := t.read(name, s.want.Withheld)
	switch {
	case isNotExist(err):
		return false
	case err != nil:
		s.problem("%s: %v", t.show(name), reason(err))
		return true
	}
	clean := normal(data)
	if clean != "" {
		s.texts = append(s.texts, text{key, File{Name: t.show(name), Person: t.root == nil, Text: clean, Size: len(clean), Version: versionOf(data)}})
	}
	return true
}

// found orders the texts and allots space: nearest first, so that the farthest is cut.
func (s *search) found() Found {
	seen, out, left := map[string]bool{}, []File{}, MaxAll
	if s.want.Max > 0 {
		left = min(left, s.want.Max)
	}
	for _, person := range []bool{false, true} {
		for _, t := range slices.Backward(s.texts) {
			if t.Person != person || seen[t.key] {
				continue
			}
			seen[t.key] = true
			if len(out) == maxFiles {
				s.problem("%s and others: over the limit (%d)", t.Name, maxFiles)
				break
			}
			if room := min(left, MaxFile); len(t.Text) > room {
				t.Text = head(t.Text, room)
				if room < minHead {
					t.Text = ""
				}
			}
			left -= len(t.Text)
			out = append(out, t.File)
		}
	}
	slices.Reverse(out)
	return Found{Files: out, Problems: s.problems}
}

// nearDirs lists the directories on the way to files or patterns, outermost first.
func nearDirs(near []string) []string {
	var dirs []string
	for _, n := range near {
		n = filepath.ToSlash(n)
		if strings.ContainsAny(n, `*?[{`) {
			n, _ = doublestar.SplitPattern(n)
		}
		if n = path.Clean(n); n == "." || !filepath.IsLocal(filepath.FromSlash(n)) {
			continue
		}
		for d := n; d != "." && len(dirs) < maxNear; d = path.Dir(d) { // n itself may be a directory
			if !slices.Contains(dirs, d) {
				dirs = append(dirs, d)
			}
		}
	}
	slices.SortFunc(dirs, func(a, b string) int {
		return cmp.Or(strings.Count(a, "/")-strings.Count(b, "/"), strings.Compare(a, b))
	})
	return dirs
}
