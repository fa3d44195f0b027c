package workspace

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
)

// maxFollowed limits the files that one path of a script is followed to, and the entries that are looked at below a directory.
const maxFollowed = 50_000

var errTooMany = errors.New("too many files")

// Follow returns where an absolute path leads when all links in it are followed: relative to the project with slashes inside it, as
// [Workspace.Holds] has it, absolute outside, and nothing if there is no such file. The path is not cleaned first, since a .. behind a
// link leads to where its target lies. glob says that it is a pattern of a shell, whose matches are followed; deep that the targets of
// the links below a directory are returned, too. ok is false if these are more than [maxFollowed].
func (w *Workspace) Follow(name string, glob, deep bool) (targets []string, ok bool) {
	f := follower{ws: w, seen: map[string]bool{}}
	names := []string{filepath.FromSlash(name)}
	if glob {
		found, err := filepath.Glob(looser(names[0]))
		if err != nil || len(found) > maxFollowed {
			return nil, false
		}
		names = append(names, found...)
	}
	for _, name := range names {
		if f.follow(name, deep) != nil {
			return nil, false
		}
	}
	return f.targets, true
}

var bracket = regexp.MustCompile(`\[[^/]*`)

// looser returns a pattern of [filepath.Glob] that matches at least what the pattern of a shell does: shells write sets in other ways.
func looser(pattern string) string { return bracket.ReplaceAllString(pattern, "*") }

// follower collects the targets of paths.
type follower struct {
	ws      *Workspace
	targets []string
	seen    map[string]bool // by target
	looked  int             // entries of directories
}

func (f *follower) follow(name string, deep bool) error {
	real, err := filepath.EvalSymlinks(name)
	if err != nil || f.seen[real] {
		return nil // no such file, or no way to it for this program: then none for the script
	}
	f.seen[real] = true
	_, rel, inside := f.ws.Holds(real)
	if !inside {
		f.targets = append(f.targets, filepath.ToSlash(real))
		return nil
	}
	f.targets = append(f.targets, rel)
	if !deep {
		return nil
	}
	return filepath.WalkDir(real, func(name string, d fs.DirEntry, err error) error {
		if f.looked++; f.looked > maxFollowed {
			return errTooMany
		}
		if err == nil && d.Type()&fs.ModeSymlink != 0 {
			return f.follow(name, true)
		}
		return nil // an unreadable directory cannot be read by the script either
	})
}
