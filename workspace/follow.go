package workspace

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
)

// maxFollowed limits the files that one path of a script is followed to, and the entries that are looked at below a directory.
const maxFollowed = 50_000

var errTooMany = errors.New("too many files")

// Follow returns where an absolute path leads when all links in it are followed: relative to the project with slashes inside it, as
// [Workspace.Holds] has it, absolute outside, and nothing if there is no such file. The path is not cleaned first, since a .. behind a
// link leads to where its target lies. glob says that it is a pattern of a shell, whose matches are followed; deep that the targets of
// the links below a directory are returned, too. ok is false if these are more than [maxFollowed].
func (w *Workspace) Follow(name string, glob, deep bool) (targets []string, ok bool) {
	f := follower{ws: w, glob: glob, deep: deep, seen: map[string]bool{}}
	at, parts := w.start(filepath.FromSlash(name))
	if f.follow(at, parts, 0) != nil {
		return nil, false
	}
	return f.targets, true
}

var bracket = regexp.MustCompile(`\[[^/]*`)

// looser returns a pattern of [filepath.Match] that matches at least what the pattern of a shell does: shells write sets in other ways.
func looser(pattern string) string { return bracket.ReplaceAllString(pattern, "*") }

// follower collects the targets of paths.
type follower struct {
	ws         *Workspace
	glob, deep bool
	targets    []string
	seen       map[string]bool // by target
	looked     int             // matches, and entries of directories
}

// follow goes on from a directory without links; so many links were followed to it.
func (f *follower) follow(at string, parts []string, links int) error {
	for i, part := range parts {
		if f.glob && strings.ContainsAny(part, `*?[\`) {
			return f.match(at, part, parts[i+1:], links)
		}
		next, err := f.ws.step(at, part, &links)
		if err != nil {
			return nil // no such file, or no way to it for this program: then none for the script
		}
		at = next
	}
	return f.found(at)
}

// match goes on to the entries of a directory that match a pattern, or are called so.
func (f *follower) match(at, pattern string, rest []string, links int) error {
	for _, e := range f.ws.entries(at) {
		ok, err := filepath.Match(looser(pattern), e.Name())
		if err != nil {
			return err
		}
		if !ok && e.Name() != pattern {
			continue
		}
		if f.looked++; f.looked > maxFollowed {
			return errTooMany
		}
		n := links
		if next, err := f.ws.step(at, e.Name(), &n); err == nil {
			if err := f.follow(next, rest, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// found records a target, and with deep those below it.
func (f *follower) found(real string) error {
	if f.seen[real] {
		return nil
	}
	f.seen[real] = true
	_, rel, inside := f.ws.Holds(real)
	if !inside {
		f.targets = append(f.targets, filepath.ToSlash(real))
		return nil
	}
	f.targets = append(f.targets, rel)
	if !f.deep {
		return nil
	}
	return f.below(real)
}

func (f *follower) below(dir string) error {
	for _, e := range f.ws.entries(dir) {
		if f.looked++; f.looked > maxFollowed {
			return errTooMany
		}
		var err error
		switch links := 0; {
		case e.Type()&fs.ModeSymlink != 0:
			if next, gone := f.ws.step(dir, e.Name(), &links); gone == nil {
				err = f.found(next)
			}
		case e.IsDir():
			err = f.below(filepath.Join(dir, e.Name()))
		}
		if err != nil {
			return err
		}
	}
	return nil // an unreadable directory cannot be read by the script either
}
