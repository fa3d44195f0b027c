package workspace

import (
	"path/filepath"
	"strings"
)

// Copy opens another checkout of the same project at dir. Paths below .opencode/ still refer to the project's own directory, and
// absolute paths into the project's directory refer to the files of the copy. Errors are those of [Open].
func (w *Workspace) Copy(dir string) (*Workspace, error) {
	c, err := Open(dir)
	if err != nil {
		return nil, err
	}
	c.project = w
	return c, nil
}

// For returns the workspace that contains rel, a result of [Workspace.Rel]: w itself, or for paths below .opencode/ in a copy, the
// original project.
func (w *Workspace) For(rel string) *Workspace {
	if w.project != nil && ownName(rel) {
		return w.project
	}
	return w
}

// Holds returns the workspace that contains the file with an absolute, fully resolved name, and its path there: w, or for paths below
// .opencode/ the original project. ok is false for paths elsewhere.
func (w *Workspace) Holds(name string) (in *Workspace, rel string, ok bool) {
	if p, ok := below(w.dir, name); ok {
		return w, p, true
	}
	if w.project == nil {
		return nil, "", false
	}
	p, ok := below(w.project.dir, name)
	if !ok || !ownName(p) {
		return nil, "", false
	}
	return w.project, p, true
}

// ownName reports whether a path is .opencode/ or below it.
func ownName(rel string) bool {
	first, _, _ := strings.Cut(rel, "/")
	return strings.EqualFold(trimDots(first), Directory)
}

// below returns the path of an absolute name relative to a directory, with slashes. ok is false if it is outside.
func below(dir, name string) (rel string, ok bool) {
	rel, err := filepath.Rel(dir, name)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// inside returns the path relative to the first base that contains an absolute name.
func (w *Workspace) inside(name string) (rel string, ok bool) {
	bases := []string{w.dir, w.given}
	if w.project != nil {
		bases = append(bases, w.project.dir, w.project.given)
	}
	for _, spelt := range []string{name, FollowLinks(filepath.Clean(name))} {
		for _, base := range bases {
			if rel, ok = below(base, spelt); ok {
				return rel, true
			}
		}
	}
	return "", false
}
