package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"centurion"
	"centurion/guard/durable"
	"centurion/workspace"
)

// maxEdit is the largest file that is replaced as a whole, in bytes. Reading has no such limit.
const maxEdit = 32 << 20

// place is a file or directory named by a call, with all links resolved, so that permission is asked for the touched file itself.
type place struct {
	ws   *workspace.Workspace
	name string // name for the model: relative to the project with slashes, or absolute if outside
	rel  string // relative to the project with slashes, links resolved; "" if outside
	abs  string // absolute, links resolved
}

func (p place) outside() bool { return p.rel == "" }

// key names the file for the version check and for its lock.
func (p place) key() string {
	if p.outside() {
		return filepath.ToSlash(p.abs)
	}
	return p.rel
}

// enter resolves given: relative to the project, absolute, or below the home directory (~/). For a place outside the project it asks
// for permission before looking at it.
func enter(ctx context.Context, c *Call, op, given string) (place, error) {
	p, err := locate(c, op, given)
	if err != nil || !p.outside() {
		return p, err
	}
	dir := path.Dir(filepath.ToSlash(p.abs))
	return p, c.Gate.Ask(ctx, c, Access{Permission: "external_directory", Patterns: []string{filepath.ToSlash(p.abs)},
		Always: []string{strings.TrimSuffix(dir, "/") + "/*"}, Metadata: map[string]any{"filepath": p.abs, "parentDir": dir}})
}

func locate(c *Call, op, given string) (place, error) {
	if given == "" {
		given = "."
	}
	if strings.ContainsRune(given, 0) {
		return place{}, usage(op, "", "the path contains a NUL byte")
	}
	if rest, ok := strings.CutPrefix(given, "~"); ok && (rest == "" || rest[0] == '/' || rest[0] == filepath.Separator) {
		home, err := os.UserHomeDir()
		if err != nil {
			return place{}, usage(op, "give an absolute path", "%s cannot be found: there is no home directory", given)
		}
		given = filepath.Join(home, rest)
	}
	p := place{ws: c.Workspace}
	lexical := given
	if rel, err := c.Workspace.Rel(given); err == nil {
		p.name = filepath.ToSlash(rel)
		lexical = filepath.Join(c.Workspace.For(rel).Dir(), filepath.FromSlash(rel))
	} else if centurion.KindOf(err) != centurion.KindPermission { // KindPermission: it is outside
		return place{}, err
	}
	if !filepath.IsAbs(lexical) {
		lexical = filepath.Join(c.Workspace.Dir(), lexical)
	}
	p.abs = workspace.FollowLinks(filepath.Clean(lexical))
	if ws, rel, ok := c.Workspace.Holds(p.abs); ok {
		p.ws, p.rel = ws, rel
		if p.name == "" {
			p.name = p.rel
		}
		return p, nil
	}
	p.name = filepath.ToSlash(p.abs)
	return p, nil
}

// allow asks for permission for the call's action on the place. A link is checked under both its names, because a rule may be written
// for either.
func (p place) allow(ctx context.Context, c *Call, perm string, meta map[string]any) error {
	patterns := []string{p.key()}
	if p.name != p.key() {
		patterns = append(patterns, p.name)
	}
	return c.Gate.Ask(ctx, c, Access{Permission: perm, Patterns: patterns, Always: []string{"*"}, Metadata: meta})
}

// writable refuses places that no file tool writes.
func (p place) writable(op string) error {
	if p.outside() || !p.ws.Protected(p.rel) {
		return nil
	}
	hint := "leave .git to git commands"
	if first, _, _ := strings.Cut(p.rel, "/"); strings.EqualFold(first, workspace.Directory) {
		hint = "the plan is changed with update_todo, context.md and summary.md with update_context; the rest of .opencode/ belongs to the host"
	}
	return &centurion.Error{Op: op, Kind: centurion.KindPermission, Hint: hint, Msg: p.name + " is not written by file tools"}
}

// stat describes the place. If it does not exist the error has KindNotFound and offers the nearest names.
func (p place) stat(op string) (fs.FileInfo, error) {
	info, err := os.Stat(p.abs)
	if err != nil {
		return nil, p.fail(op, err)
	}
	return info, nil
}

// file describes the place, which must be a regular file.
func (p place) file(op string) (fs.FileInfo, error) {
	info, err := p.stat(op)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, usage(op, fmt.Sprintf("list it with ls{\"path\": %q}", p.name), "%s is a directory", p.name)
	case !info.Mode().IsRegular():
		return nil, usage(op, "", "%s is no regular file but %s", p.name, fileKind(info.Mode()))
	}
	return info, nil
}

func fileKind(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else (" + m.String() + ")"
}

// open opens the regular file for reading; inside the project through its root, so that a link created meanwhile leads nowhere.
func (p place) open(op string) (*os.File, error) {
	if !p.outside() {
		f, _, err := p.ws.Open(p.rel)
		return f, err
	}
	f, err := os.Open(p.abs)
	if err != nil {
		return nil, p.fail(op, err)
	}
	return f, nil
}

// content reads the whole file and its version.
func (p place) content(op string) ([]byte, error) {
	info, err := p.file(op)
	if err != nil {
		return nil, err
	}
	f, err := p.open(op)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxEdit+1))
	switch {
	case err != nil:
		return nil, p.fail(op, err)
	case len(data) > maxEdit:
		return nil, usage(op, "change it with a command", "%s has %s; at most %s are edited", p.name, centurion.Bytes(info.Size()), centurion.Bytes(maxEdit))
	}
	return data, nil
}

// keepsKeys refuses a new content that has a placeholder where the file has the key for which it stands.
func (p place) keepsKeys(c *Call, op string, old, data []byte) error {
	mark := c.Keys.Lost(string(old), string(data))
	if mark == "" {
		return nil
	}
	return &centurion.Error{Op: op, Kind: centurion.KindPermission, Msg: fmt.Sprintf("%s has a key that is only shown as %s, and this would overwrite it with that text", p.name, mark),
		Hint: "change the other lines with edit, or leave the key to the person"}
}

// replace writes the file if it is unchanged since the call read it (old; nil if there was none), and records the new version as seen
// if the session knew the old one. Writes of other programs in the microseconds between check and write are not noticed.
func (p place) replace(ctx context.Context, c *Call, op string, old, data []byte) error {
	release, err := c.Writers.hold(ctx, p.abs)
	if err != nil {
		return err
	}
	defer release()
	now, err := p.content(op)
	gone := centurion.KindOf(err) == centurion.KindNotFound
	if err != nil && !gone {
		return err
	}
	if gone != (old == nil) || !bytes.Equal(now, old) {
		return &centurion.Error{Op: op, Kind: centurion.KindConflict,
			Msg:  p.name + " has changed since you read it; read it again",
			Hint: "it changed while this call was under way; nothing was written"}
	}
	if err := p.write(op, data); err != nil {
		return err
	}
	before := ""
	if old != nil {
		before = workspace.VersionOf(old)
	}
	if c.Seen.Check(p.key(), before) == nil {
		c.Seen.Saw(p.key(), workspace.VersionOf(data))
	}
	return nil
}

func (p place) write(op string, data []byte) error {
	if !p.outside() {
		return p.ws.WriteFile(p.rel, data)
	}
	if err := writeOutside(p.abs, data); err != nil {
		return p.fail(op, err)
	}
	return nil
}

// writeOutside replaces a file outside the project atomically and keeps its mode.
func writeOutside(name string, data []byte) error {
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(name); err == nil {
		mode = info.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return durable.Replace(name, data, mode)
}

// fail converts a file system error for the model.
func (p place) fail(op string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &centurion.Error{Op: op, Kind: centurion.KindNotFound, Msg: p.name + " does not exist", Hint: p.similar()}
	case errors.Is(err, fs.ErrPermission):
		return &centurion.Error{Op: op, Kind: centurion.KindPermission, Msg: "the system refuses access to " + p.name, Err: bare(err)}
	}
	return &centurion.Error{Op: op, Kind: centurion.KindDisk, Msg: p.name, Err: bare(err)}
}

// bare removes the path, in the system's own form, from an error.
func bare(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// similar describes existing alternatives to a missing place.
func (p place) similar() string {
	const most = 2000 // names checked in one directory
	dir, name := filepath.Dir(p.abs), path.Dir(p.name)
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Sprintf("there is no directory %s either; look with glob or ls", name)
	}
	defer f.Close()
	names, _ := f.Readdirnames(most)
	near := nearest(filepath.Base(p.abs), names, 3)
	if len(near) == 0 {
		return "look with glob or ls where it is"
	}
	for i, n := range near {
		near[i] = path.Join(name, n)
	}
	return "did you mean " + strings.Join(near, " or ") + "?"
}
