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
	if p, err := filepath.Rel(w.dir, name); err == nil && filepath.IsLocal(p) {
		return w, filepath.ToSlash(p), true
	}
	if w.project == nil {
		return nil, "", false
	}
	p, err := filepath.Rel(w.project.dir, name)
	if p = filepath.ToSlash(p); err != nil || !filepath.IsLocal(p) || !ownName(p) {
		return nil, "", false
	}
	return w.project, p, true
}

// ownName reports whether a path is .opencode/ or below it.
func ownName(rel string) bool {
	first, _, _ := strings.Cut(rel, "/")
	return strings.EqualFold(trimDots(first), Directory)
}

// bases are the directories whose absolute names lead into the workspace.
func (w *Workspace) bases() []string {
	out := []string{w.dir, w.given}
	if w.project != nil {
		out = append(out, w.project.dir, w.project.given)
	}
	return out
}

// inside returns the path relative to the first base that contains an absolute name.
func (w *Workspace) inside(name string) (rel string, ok bool) {
	for _, base := range w.bases() {
		if p, err := filepath.Rel(base, name); err == nil && filepath.IsLocal(p) {
			return filepath.ToSlash(p), true
		}
	}
	followed := FollowLinks(filepath.Clean(name))
	if p, err := filepath.Rel(w.dir, followed); err == nil && filepath.IsLocal(p) {
		return filepath.ToSlash(p), true
	}
	if w.project == nil {
		return "", false
	}
	p, err := filepath.Rel(w.project.dir, followed)
	return filepath.ToSlash(p), err == nil && filepath.IsLocal(p)
}
