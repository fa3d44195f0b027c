package tools

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"centurion"
	"centurion/workspace"
)

// maxEdit is the largest file that is replaced as a whole, in bytes. Reading has no such limit.
const maxEdit = 32 << 20

// place is a file or directory named by a call, with all links resolved, so that permission is asked for the touched file itself.
type place struct{ workspace.Spot }

// key names the file for the version check and for its lock.
func (p place) key() string {
	if p.Outside {
		return p.Name
	}
	return p.Rel
}

// enter resolves given: relative to the project, absolute, or below the home directory (~/). For a place outside the project it asks
// for permission before looking at it.
func enter(ctx context.Context, c *Call, op, given string) (place, error) {
	p, err := locate(c, op, given)
	if err != nil {
		return p, err
	}
	return p, p.allowOutside(ctx, c)
}

// enterFile is enter, with the content of a file that is to be replaced. It refuses places that no file tool writes.
func enterFile(ctx context.Context, c *Call, op, given string) (p place, old workspace.File, err error) {
	if given, err = spelt(op, given); err != nil {
		return p, old, err
	}
	p.Spot, old, err = c.Workspace.FindFile(given, maxEdit)
	if p.In == nil {
		return p, old, err
	}
	if err := cmp.Or(p.allowOutside(ctx, c), p.writable(op)); err != nil {
		return p, old, err
	}
	if p.Outside {
		old, err = p.In.Read(p.Rel, maxEdit)
	}
	if err != nil {
		err = p.fail(op, old.Mode, err)
	}
	return p, old, err
}

func locate(c *Call, op, given string) (p place, err error) {
	if given, err = spelt(op, given); err == nil {
		p.Spot, err = c.Workspace.Find(given)
	}
	return p, err
}

// spelt returns a path without the shorthands of a shell.
func spelt(op, given string) (string, error) {
	if given == "" {
		return ".", nil
	}
	if strings.ContainsRune(given, 0) {
		return "", usage(op, "", "the path contains a NUL byte")
	}
	if rest, ok := strings.CutPrefix(given, "~"); ok && (rest == "" || rest[0] == '/' || rest[0] == filepath.Separator) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", usage(op, "give an absolute path", "%s cannot be found: there is no home directory", given)
		}
		return filepath.Join(home, rest), nil
	}
	return given, nil
}

// allowOutside asks for permission for a place outside the project.
func (p place) allowOutside(ctx context.Context, c *Call) error {
	if !p.Outside {
		return nil
	}
	dir := path.Dir(p.Name)
	return c.Gate.Ask(ctx, c, Access{Permission: "external_directory", Patterns: []string{p.Name},
		Always: []string{strings.TrimSuffix(dir, "/") + "/*"}, Metadata: map[string]any{"filepath": p.Abs(), "parentDir": dir}})
}

// allow asks for permission for the call's action on the place. A link is checked under both its names, because a rule may be written
// for either.
func (p place) allow(ctx context.Context, c *Call, perm string, meta map[string]any) error {
	patterns := []string{p.key()}
	if p.Name != p.key() {
		patterns = append(patterns, p.Name)
	}
	return c.Gate.Ask(ctx, c, Access{Permission: perm, Patterns: patterns, Always: []string{"*"}, Metadata: meta})
}

// writable refuses places that no file tool writes.
func (p place) writable(op string) error {
	if !p.Protected() {
		return nil
	}
	hint := "leave .git to git commands"
	if first, _, _ := strings.Cut(p.Rel, "/"); strings.EqualFold(first, workspace.Directory) {
		hint = "the plan is changed with update_todo, context.md and summary.md with update_context; the rest of .opencode/ belongs to the host"
	}
	return &centurion.Error{Op: op, Kind: centurion.KindPermission, Hint: hint, Msg: p.Name + " is not written by file tools"}
}

// open opens the regular file for reading, so that a link created meanwhile leads nowhere.
func (p place) open(op string) (io.ReadCloser, fs.FileInfo, error) {
	f, info, err := p.In.Open(p.Rel)
	if err != nil {
		mode := fs.FileMode(0)
		if info != nil {
			mode = info.Mode()
		}
		return nil, nil, p.fail(op, mode, err)
	}
	return f, info, nil
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

// keepsKeys refuses a new content that has a placeholder where the file has the key for which it stands.
func (p place) keepsKeys(c *Call, op string, old, data []byte) error {
	mark := c.Keys.Lost(string(old), string(data))
	if mark == "" {
		return nil
	}
	return &centurion.Error{Op: op, Kind: centurion.KindPermission, Msg: fmt.Sprintf("%s has a key that is only shown as %s, and this would overwrite it with that text", p.Name, mark),
		Hint: "change the other lines with edit, or leave the key to the person"}
}

// replace writes the file if it still has the version that the call read ("" if there was none), and records the new version as seen if
// the session knew the old one.
func (p place) replace(ctx context.Context, c *Call, version string, data []byte) error {
	release, err := c.Writers.hold(ctx, p.key())
	if err != nil {
		return err
	}
	defer release()
	if err := p.In.Replace(p.Rel, version, data); err != nil {
		return err
	}
	if c.Seen.Check(p.key(), version) == nil {
		c.Seen.Saw(p.key(), workspace.VersionOf(data))
	}
	return nil
}

// fail explains to the model why the file cannot be read. mode is that of what is no regular file.
func (p place) fail(op string, mode fs.FileMode, err error) error {
	switch {
	case centurion.KindOf(err) == centurion.KindNotFound:
		return &centurion.Error{Op: op, Kind: centurion.KindNotFound, Msg: p.Name + " does not exist", Hint: p.similar()}
	case mode.IsDir():
		return usage(op, fmt.Sprintf("list it with ls{\"path\": %q}", p.Name), "%s is a directory", p.Name)
	case !mode.IsRegular():
		return usage(op, "", "%s is no regular file but %s", p.Name, fileKind(mode))
	}
	return err
}

// similar describes existing alternatives to a missing place.
func (p place) similar() string {
	const most = 2000 // names checked in one directory
	dir := path.Dir(p.Name)
	names, _ := p.In.Names(path.Dir(p.Rel), "")
	if names == nil {
		return fmt.Sprintf("there is no directory %s either; look with glob or ls", dir)
	}
	near := nearest(path.Base(p.Rel), names[:min(len(names), most)], 3)
	if len(near) == 0 {
		return "look with glob or ls where it is"
	}
	for i, n := range near {
		near[i] = path.Join(dir, n)
	}
	return "did you mean " + strings.Join(near, " or ") + "?"
}
