// Package workspace is the project directory, or a checkout of it that may be mounted elsewhere: confined file access through an
// os.Root, where links lead, the walk that honours .gitignore, and the plan in .opencode/todo.md, with one function to edit and one to
// watch it. It owns no git command, no permission rule and no meaning of the plan (package todo does), and stores nothing outside the
// project.
package workspace

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"centurion"
)

// Directory is the program's own directory inside a project, relative to it.
const Directory = ".opencode"

// Workspace is an open project directory. Its methods are safe for concurrent use. Path arguments may be anything that [Workspace.Rel]
// accepts.
type Workspace struct {
	dir   string // absolute, links resolved
	given string // absolute, as it was opened
	id    string // the name for commands, if that is not dir
	root  reach  // its files; dir is no way to them
	// project is the original project of a copy, nil for the project itself. It belongs to its opener.
	project   *Workspace
	elsewhere bool // from CopyIn

	shared chan struct{} // has a buffer of one; full while a shared text is changed in this process

	mu     sync.Mutex // protects the fields below
	todos  map[string]*TodoFile
	memory *os.Root // for the histories of plans; nil if they are not stored
}

// Open opens the project directory dir, "" for the current one. Errors are KindNotFound (with the nearest name), KindUsage (not a
// directory) and KindPermission (unreadable).
func Open(dir string) (*Workspace, error) {
	const op = "open project"
	if strings.ContainsRune(dir, 0) {
		return nil, &centurion.Error{Op: op, Kind: centurion.KindUsage, Msg: "the directory's name holds a NUL character"}
	}
	given, err := filepath.Abs(dir)
	if err != nil {
		return nil, &centurion.Error{Op: op, Kind: centurion.KindInternal, Err: err}
	}
	fi, err := os.Stat(given)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		hint := "make it first, or name another directory with --dir"
		host, name := hostFiles(given)
		if near, _ := host.nearest(name); near != "" {
			hint = "did you mean " + filepath.Join(filepath.Dir(given), near) + "?"
		}
		return nil, &centurion.Error{Op: op, Kind: centurion.KindNotFound,
			Msg: fmt.Sprintf("directory %s does not exist", given), Hint: hint}
	case err != nil:
		return nil, openError(op, given, err)
	case !fi.IsDir():
		return nil, &centurion.Error{Op: op, Kind: centurion.KindUsage, Msg: given + " is not a directory",
			Hint: "name the project's directory, not a file in it"}
	}
	real, err := filepath.EvalSymlinks(given)
	if err != nil {
		return nil, openError(op, given, err)
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, openError(op, given, err)
	}
	if err := readable(root); err != nil {
		root.Close()
		return nil, openError(op, given, err)
	}
	return newWorkspace(real, given, root), nil
}

func newWorkspace(dir, given string, root reach) *Workspace {
	return &Workspace{dir: dir, given: given, root: root, shared: make(chan struct{}, 1), todos: map[string]*TodoFile{}}
}

func openError(op, dir string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return &centurion.Error{Op: op, Kind: centurion.KindPermission, Msg: "directory " + dir + " cannot be read",
			Hint: "check its permissions and those of the directories above it"}
	}
	return &centurion.Error{Op: op, Kind: kindOf(err), Msg: "directory " + dir, Err: cause(err), Hint: "check the path, or name another directory with --dir"}
}

func readable(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	if _, err := d.Readdirnames(1); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// Close closes the workspace, which must not be used afterwards.
func (w *Workspace) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.todos {
		t.release()
	}
	if w.memory != nil {
		w.memory.Close() // only used by edits of plans, which have seen any errors
	}
	return w.root.Close()
}

// Dir returns the directory, absolute and with links resolved.
func (w *Workspace) Dir() string { return w.dir }

// CheckWritable checks that the program may write in the project, by creating .opencode/ and a temporary file in it. Errors are
// KindPermission, KindDisk and KindUsage (.opencode is not a directory).
func (w *Workspace) CheckWritable() error {
	const op = "write in project"
	if err := w.makeDirectory(op); err != nil {
		return err
	}
	probe := Directory + "/.write-" + rand.Text()
	f, err := w.root.OpenFile(probe, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return w.fail(op, Directory, err)
	}
	_, err = f.Write(make([]byte, 4096)) // a full disk still has room for an empty file
	if err = errors.Join(err, f.Close(), w.root.Remove(probe)); err != nil {
		return w.fail(op, Directory, err)
	}
	return nil
}

// makeDirectory creates .opencode/ if it does not exist.
func (w *Workspace) makeDirectory(op string) error {
	err := w.root.MkdirAll(Directory, dirPerm)
	if err == nil {
		_, err = w.root.Stat(Directory + "/.")
	}
	if errors.Is(err, fs.ErrExist) || kindOf(err) == centurion.KindUsage {
		return &centurion.Error{Op: op, Kind: centurion.KindUsage, Msg: Directory + " is not a directory",
			Hint: "move it away: the program keeps its plan there"}
	}
	if err != nil {
		return w.fail(op, Directory, err)
	}
	return nil
}

// within returns the workspace that has a path, and the path there; see [Workspace.For].
func (w *Workspace) within(given string) (*Workspace, string, error) {
	name, err := w.Rel(given)
	return w.For(name), name, err
}

// Rel turns a relative or absolute path into one relative to the project, cleaned, with slashes, "." for the project itself. Absolute
// paths may be spelt with or without the links in the project's own path. Errors are KindUsage (empty, or with a NUL) and
// KindPermission (outside the project). It only checks names: a link that leads outside is refused when it is followed.
func (w *Workspace) Rel(name string) (string, error) {
	const op = "find path"
	switch {
	case name == "":
		return "", &centurion.Error{Op: op, Kind: centurion.KindUsage, Msg: "the path is empty",
			Hint: "give a path relative to the project, or . for the project itself"}
	case strings.ContainsRune(name, 0):
		return "", &centurion.Error{Op: op, Kind: centurion.KindUsage, Msg: fmt.Sprintf("path %q holds a NUL character", name)}
	}
	if !filepath.IsAbs(name) {
		if p := filepath.Clean(name); filepath.IsLocal(p) {
			return filepath.ToSlash(p), nil
		}
		return "", w.outside(op, name)
	}
	if p, ok := w.inside(name); ok {
		return p, nil
	}
	return "", w.outside(op, name)
}

func (w *Workspace) outside(op, name string) error {
	return &centurion.Error{Op: op, Kind: centurion.KindPermission, Msg: fmt.Sprintf("%s is outside the project", name),
		Hint: "use a path inside " + w.dir}
}

// protectedName reports whether a path is .opencode/, or below it, or has a part called .git, in any case.
func protectedName(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	if strings.EqualFold(trimDots(first), Directory) {
		return true
	}
	for part := range strings.SplitSeq(p, "/") {
		// GIT~1 is Windows' short name of .git.
		if part = trimDots(part); strings.EqualFold(part, ".git") || strings.EqualFold(part, "git~1") {
			return true
		}
	}
	return false
}

// trimDots removes trailing characters that Windows ignores.
func trimDots(s string) string {
	if s == "." || s == ".." {
		return s
	}
	return strings.TrimRight(s, ". ")
}

// VersionOf returns the version of this content: its SHA-256 in hexadecimal.
func VersionOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// real resolves the links of rel for writing: a rename would otherwise replace the link. Links that lead nowhere or outside are
// refused.
func (w *Workspace) real(op, rel string) (string, error) {
	fi, err := w.root.Lstat(rel)
	if err != nil || fi.Mode()&fs.ModeSymlink == 0 {
		return rel, nil // other problems show in the next step
	}
	if _, err := w.root.Stat(rel); err != nil {
		return "", w.fail(op, rel, err)
	}
	p, ok := below(w.dir, w.follow(filepath.Join(w.dir, filepath.FromSlash(rel))))
	if !ok {
		return "", w.outside(op, rel)
	}
	return p, nil
}

// splitRel returns the directory and the name of a project-relative path.
func splitRel(rel string) (dir, base string) { return path.Dir(rel), path.Base(rel) }

// The program's own files inside a project, relative to it. Everything else in .opencode/ is the person's.
const (
	DocsPath         = Directory + "/docs"               // fetched pages
	ArchivePath      = Directory + "/archive"            // replaced plans, contexts and summaries
	TodoPath         = Directory + "/todo.md"            // the plan of the newest mission
	ContextPath      = Directory + "/context.md"         // shared knowledge of the project's sessions
	SummaryPath      = Directory + "/summary.md"         // a summary of the last work
	DocsMetadataPath = DocsPath + "/" + docsMetadataName // the fetched pages and their expiry
	docsMetadataName = "_metadata.json"
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

// CopyIn is [Workspace.Copy] of files that are reached through root only, wherever that is. at is where commands find them: its
// directory is absolute, with links resolved, and may be the project's own. Close closes root.
func (w *Workspace) CopyIn(root *os.Root, at centurion.Place) *Workspace {
	c := newWorkspace(filepath.Clean(at.Dir), at.Dir, root)
	c.id, c.project, c.elsewhere = at.Workspace, w, true
	return c
}

// Place is where commands find the files.
func (w *Workspace) Place() centurion.Place {
	return centurion.Place{Dir: w.dir, Workspace: cmp.Or(w.id, w.dir)}
}

// Elsewhere reports whether the host has other files, or none, at the paths that the workspace's files have for commands: see
// [Workspace.CopyIn].
func (w *Workspace) Elsewhere() bool { return w.elsewhere }

// For returns the workspace that contains rel, a result of [Workspace.Rel]: w itself, or for paths below .opencode/ in a copy, the
// original project.
func (w *Workspace) For(rel string) *Workspace {
	if w.project != nil && ownName(rel) {
		return w.project
	}
	return w
}

// Holds returns the workspace that contains the file with an absolute, fully resolved name, and its path there: w, or for paths below
// .opencode/, of w or of the project, the original project. ok is false for paths elsewhere.
func (w *Workspace) Holds(name string) (in *Workspace, rel string, ok bool) {
	if p, ok := below(w.dir, name); ok {
		return w.For(p), p, true
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
	for _, spelt := range []string{name, w.follow(filepath.Clean(name))} {
		for _, base := range bases {
			if rel, ok = below(base, spelt); ok {
				return rel, true
			}
		}
	}
	return "", false
}
