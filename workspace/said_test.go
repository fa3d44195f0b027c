package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"centurion"
	"centurion/workspace/todo"
)

// broken reaches files of which one operation fails, always with an error that package os would return.
type broken struct {
	reach
	op, name string
	err      error
}

func (b broken) fails(op, name string) error {
	if op != b.op || name != b.name {
		return nil
	}
	return &fs.PathError{Op: op, Path: "/absolute/" + name, Err: b.err}
}

func (b broken) Stat(name string) (fs.FileInfo, error) {
	if err := b.fails("stat", name); err != nil {
		return nil, err
	}
	return b.reach.Stat(name)
}

func (b broken) Lstat(name string) (fs.FileInfo, error) {
	if err := b.fails("lstat", name); err != nil {
		return nil, err
	}
	return b.reach.Lstat(name)
}

func (b broken) Open(name string) (*os.File, error) {
	if err := b.fails("open", name); err != nil {
		return nil, err
	}
	return b.reach.Open(name)
}

func (b broken) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	if err := b.fails("open file", name); err != nil {
		return nil, err
	}
	return b.reach.OpenFile(name, flag, perm)
}

func (b broken) OpenRoot(name string) (*os.Root, error) {
	if err := b.fails("open root", name); err != nil {
		return nil, err
	}
	return b.reach.OpenRoot(name)
}

func (b broken) MkdirAll(name string, perm fs.FileMode) error {
	if err := b.fails("mkdir", name); err != nil {
		return err
	}
	return b.reach.MkdirAll(name, perm)
}

func (b broken) Rename(from, to string) error {
	if err := b.fails("rename", from); err != nil {
		return &os.LinkError{Op: "rename", Old: "/absolute/" + from, New: "/absolute/" + to, Err: b.err}
	}
	return b.reach.Rename(from, to)
}

func (b broken) Remove(name string) error {
	if err := b.fails("remove", name); err != nil {
		return err
	}
	return b.reach.Remove(name)
}

// said is all that an error tells, with the project's directory as $DIR.
func said(w *Workspace, err error) string {
	if err == nil {
		return "nothing"
	}
	return strings.ReplaceAll(fmt.Sprintf("%s: %v | %s", centurion.KindOf(err), err, centurion.HintOf(err)), w.dir, "$DIR")
}

func project(t *testing.T, files ...string) *Workspace {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		name, text, _ := strings.Cut(f, "=")
		full := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	w, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func wantSaid(t *testing.T, w *Workspace, what string, err error, want string) {
	t.Helper()
	if got := said(w, err); got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// operations is each whole operation, as a person or a model meets its errors.
var operations = map[string]func(w *Workspace, name string) error{
	"stat":    func(w *Workspace, name string) error { _, err := w.Stat(name); return err },
	"read":    func(w *Workspace, name string) error { _, _, err := w.ReadFile(name, 3); return err },
	"version": func(w *Workspace, name string) error { _, err := w.Version(name); return err },
	"replace": func(w *Workspace, name string) error { return w.Replace(name, "", nil) },
	"write":   func(w *Workspace, name string) error { return w.WriteFile(name, []byte("x")) },
	"append":  func(w *Workspace, name string) error { return w.AppendJSON(name, []byte("1")) },
	"remove":  func(w *Workspace, name string) error { return w.Remove(name) },
	"names":   func(w *Workspace, name string) error { _, err := w.Names(name, ""); return err },
	"walk": func(w *Workspace, name string) (err error) {
		for _, e := range w.Walk(context.Background(), WalkOptions{Dir: name}) {
			err = errors.Join(err, e)
		}
		return err
	},
	"lines": func(w *Workspace, name string) (err error) {
		for _, e := range w.Lines(name) {
			err = errors.Join(err, e)
		}
		return err
	},
	"writable": func(w *Workspace, _ string) error { return w.CheckWritable() },
	"edit": func(w *Workspace, _ string) error {
		_, err := w.Todo().Edit(context.Background(), func(d *todo.Doc) error { _, err := d.Add("", todo.Item{Title: "new"}); return err })
		return err
	},
	"note": func(w *Workspace, _ string) error {
		_, _, err := w.Context().Note(context.Background(), "new", nil)
		return err
	},
	"context": func(w *Workspace, _ string) error {
		_, err := w.Context().Replace(context.Background(), "new", nil)
		return err
	},
	"archive": func(w *Workspace, name string) error { _, err := w.Todo().Archive(name); return err },
	"rename":  func(w *Workspace, name string) error { _, err := w.Todo().Rename(name); return err },
}

// refusals is what each operation says of a path that is not for it.
var refusals = []struct{ op, name, want string }{
	{"append", "../x", "permission: find path: ../x is outside the project | use a path inside $DIR"},
	{"append", "", "usage: find path: the path is empty | give a path relative to the project, or . for the project itself"},
	{"lines", "../x", "permission: find path: ../x is outside the project | use a path inside $DIR"},
	{"lines", "", "usage: find path: the path is empty | give a path relative to the project, or . for the project itself"},
	{"names", "../x", "permission: find path: ../x is outside the project | use a path inside $DIR"},
	{"names", "", "usage: find path: the path is empty | give a path relative to the project, or . for the project itself"},
	{"read", "../x", "permission: find path: ../x is outside the project | use a path inside $DIR"},
	{"read", "", "usage: find path: the path is empty | give a path relative to the project, or . for the project itself"},
	{"replace", "../x", "permission: find path: ../x is outside the project | use a path inside $DIR"},
	{"replace", "", "usage: find path: the path is empty | give a path relative to the project, or . for the project itself"},
	{"stat", "../x", "permission: find path: ../x is outside the project | use a path inside $DIR"},
	{"stat", "", "usage: find path: the path is empty | give a path relative to the project, or . for the project itself"},
	{"version", "../x", "permission: find path: ../x is outside the project | use a path inside $DIR"},
	{"version", "", "usage: find path: the path is empty | give a path relative to the project, or . for the project itself"},
	{"walk", "../x", "permission: find path: ../x is outside the project | use a path inside $DIR"},
	{"write", "../x", "permission: find path: ../x is outside the project | use a path inside $DIR"},
	{"write", "", "usage: find path: the path is empty | give a path relative to the project, or . for the project itself"},
	{"remove", "../x", "permission: find path: ../x is outside the project | use a path inside $DIR"},
	{"remove", "", "usage: find path: the path is empty | give a path relative to the project, or . for the project itself"},
	{"archive", "../x", "usage: archive todo: \"../x\" is not a plain file name | "},
	{"archive", "", "usage: archive todo: \"\" is not a plain file name | "},
	{"rename", "../x", "usage: rename todo: \"../x\" is not a plain file name | "},
	{"rename", "", "usage: rename todo: \"\" is not a plain file name | "},
	{"read", "a", "usage: read file: a is a directory | list it instead"},
	{"read", "sock", "usage: read file: sock is a socket, not a regular file | "},
	{"read", "pipe", "usage: read file: pipe is a named pipe, not a regular file | "},
	{"read", "a/main.go/x", "usage: read file: a/main.go/x: not a directory | "},
	{"stat", "a/main.go/x", "usage: look at file: a/main.go/x: not a directory | "},
	{"lines", "a", "usage: read file: a is a directory | list it instead"},
	{"version", "pipe", "usage: read file: pipe is a named pipe, not a regular file | "},
	{"append", "a", "usage: append to file: a is a directory | list it instead"},
	{"append", "sock", "usage: append to file: sock is a socket, not a regular file | "},
	{"write", ".", "usage: write file: . is a directory | list it instead"},
	{"write", "x-only", "permission: write file: x-only is read-only | make it writable first, if it is meant to change"},
	{"write", "pipe", "usage: write file: pipe is a named pipe, not a regular file | "},
	{"replace", "a/main.go", "conflict: write file: a/main.go has changed since you read it; read it again | it changed while this call was under way; nothing was written"},
	{"remove", "a", "conflict: remove file: a: directory not empty | "},
	{"walk", "a/main.go", "usage: list files: a/main.go is not a directory | read it instead"},
	{"archive", "a/b", "usage: archive todo: \"a/b\" is not a plain file name | "},
	{"rename", ".", "usage: rename todo: \".\" is not a plain file name | "},
	{"read", "a/main.go", "usage: read file: a/main.go has 4 bytes, more than the 3 that are read at once | read a part of it"},
	{"stat", "a/man.go", "not_found: look at file: a/man.go does not exist | did you mean a/main.go?"},
	{"read", "q/w", "not_found: read file: q/w does not exist | its directory q does not exist either"},
	{"walk", "yyyyyyyy", "not_found: list files: yyyyyyyy does not exist | list the directory to see what is there"},
	{"read", "out", "permission: read file: out leads outside the project | use a path that stays inside $DIR"},
	{"write", "out", "permission: write file: out leads outside the project | use a path that stays inside $DIR"},
	{"archive", "there.md", "conflict: archive todo: .opencode/archive/there.md exists already | choose another name"},
	{"rename", "context.md", "conflict: rename todo: .opencode/context.md exists already | choose another name"},
}

// An error says what was attempted and on what, what is wrong, and what to do about it.
func TestWhatErrorsSay(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("other texts of the system")
	}
	w := project(t, "a/main.go=text", ".opencode/todo.md=- [ ] T1 a\n", ".opencode/archive/there.md=", ".opencode/context.md=old\n")
	l, err := net.Listen("unix", filepath.Join(w.dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := errors.Join(exec.Command("mkfifo", filepath.Join(w.dir, "pipe")).Run(), os.WriteFile(filepath.Join(w.dir, "x-only"), nil, 0o555),
		os.Symlink("/etc/passwd", filepath.Join(w.dir, "out"))); err != nil {
		t.Fatal(err)
	}
	for _, tt := range refusals {
		wantSaid(t, w, tt.op+" "+tt.name, operations[tt.op](w, tt.name), tt.want)
	}
}

// What the system refuses is told with the project's path of it, and of the right kind.
func TestWhatFailuresSay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		op, name    string // of the operation
		part, where string // that fails
		err         error
		want        string
	}{
		{"stat", "a", "stat", "a", syscall.EACCES, "permission: look at file: a: permission denied | check the permissions of the file and its directory"},
		{"read", "a", "open file", "a", syscall.EACCES, "permission: read file: a: permission denied | check the permissions of the file and its directory"},
		{"read", "a", "open file", "a", syscall.EIO, "disk: read file: a: input/output error | make room on the disk, then try again"},
		{"version", "a", "open file", "a", syscall.EMFILE, "internal: read file: a: too many open files | "},
		{"write", "a", "open root", ".", syscall.EROFS, "permission: write file: a: read-only file system | check the permissions of the file and its directory"},
		{"write", "n/a", "mkdir", "n", syscall.ENOSPC, "disk: write file: n/a: no space left on device | make room on the disk, then try again"},
		{"append", "a", "open root", ".", syscall.EDQUOT, "disk: append to file: a: disk quota exceeded | make room on the disk, then try again"},
		{"remove", "a", "remove", "a", syscall.ENOTEMPTY, "conflict: remove file: a: directory not empty | "},
		{"remove", "a", "remove", "a", syscall.EROFS, "permission: remove file: a: read-only file system | check the permissions of the file and its directory"},
		{"names", ".", "open file", ".", syscall.EACCES, "permission: read directory: .: permission denied | check the permissions of the file and its directory"},
		{"walk", ".", "stat", ".", syscall.EACCES, "permission: list files: .: permission denied | check the permissions of the file and its directory"},
		{"walk", ".", "open", ".", syscall.EACCES, "permission: list files: .: permission denied | check the permissions of the file and its directory"},
		{"writable", "", "mkdir", ".opencode", syscall.EROFS, "permission: write in project: .opencode: read-only file system | check the permissions of the file and its directory"},
		{"writable", "", "stat", ".opencode/.", syscall.EACCES, "permission: write in project: .opencode: permission denied | check the permissions of the file and its directory"},
		{"edit", "", "mkdir", ".opencode", syscall.EACCES, "permission: edit todo: .opencode: permission denied | check the permissions of the file and its directory"},
		{"edit", "", "stat", ".opencode/todo.md", syscall.EIO, "disk: read file: .opencode/todo.md: input/output error | make room on the disk, then try again"},
		{"edit", "", "open root", ".opencode", syscall.EACCES, "permission: edit todo: .opencode/todo.md: permission denied | check the permissions of the file and its directory"},
		{"note", "", "open root", ".opencode", syscall.EACCES, "permission: edit shared text: .opencode/context.md: permission denied | check the permissions of the file and its directory"},
		{"note", "", "open file", ".opencode/context.md", syscall.EIO, "disk: read file: .opencode/context.md: input/output error | make room on the disk, then try again"},
		{"context", "", "mkdir", ".opencode/archive", syscall.EROFS, "permission: edit shared text: .opencode/archive: read-only file system | check the permissions of the file and its directory"},
		{"context", "", "open root", ".opencode/archive", syscall.EACCES, "permission: edit shared text: .opencode/archive: permission denied | check the permissions of the file and its directory"},
		{"archive", "x", "mkdir", ".opencode/archive", syscall.ENOSPC, "disk: archive todo: .opencode/archive: no space left on device | make room on the disk, then try again"},
		{"archive", "x", "rename", ".opencode/todo.md", syscall.EXDEV, "internal: archive todo: .opencode/todo.md: invalid cross-device link | "},
		{"rename", "x", "lstat", ".opencode/todo.md", syscall.EACCES, "permission: rename todo: .opencode/todo.md: permission denied | check the permissions of the file and its directory"},
		{"rename", "x", "open root", ".opencode", syscall.EACCES, "permission: edit todo: .opencode: permission denied | check the permissions of the file and its directory"},
		{"archive", "x", "open root", ".opencode/archive", syscall.EACCES, "permission: edit todo: .opencode/archive: permission denied | check the permissions of the file and its directory"},
	} {
		w := project(t, "a=text", ".opencode/todo.md=- [ ] T1 a\n", ".opencode/context.md=old\n")
		w.root = broken{w.root, tt.part, tt.where, tt.err}
		wantSaid(t, w, tt.op+" "+tt.name+", "+tt.part, operations[tt.op](w, tt.name), tt.want)
	}
}
