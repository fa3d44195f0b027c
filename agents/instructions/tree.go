package instructions

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"
)

// maxRead is the largest file to read, in bytes. Larger files were not written for a model to read at once.
const maxRead = 1 << 20

// tree is a directory to read files from: of the project, which no link leaves, or of the person, whose links may lead anywhere.
type tree struct {
	dir    string   // absolute, links resolved if it is the project's
	root   *os.Root // nil for the person's
	prefix string   // precedes names in it for readers
}

// openTree opens a directory of the project at project.
func openTree(dir, project string) (*tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, reason(err)
	}
	rel, err := filepath.Rel(project, dir)
	if err != nil {
		rel = dir
	}
	return &tree{dir: dir, root: root, prefix: filepath.ToSlash(rel)}, nil
}

func personTree(dir, home string) *tree {
	prefix := dir
	if rel, err := filepath.Rel(home, dir); home != "" && err == nil && filepath.IsLocal(rel) {
		prefix = filepath.Join("~", rel)
	}
	return &tree{dir: dir, prefix: filepath.ToSlash(prefix)}
}

func (t *tree) close() {
	if t.root != nil {
		_ = t.root.Close() // it was only read
	}
}

// show returns a file's name for readers.
func (t *tree) show(name string) string {
	if t.prefix == "." {
		return name
	}
	return strings.TrimSuffix(t.prefix, "/") + "/" + name
}

func (t *tree) fs() fs.FS {
	if t.root != nil {
		return t.root.FS()
	}
	return os.DirFS(t.dir)
}

func (t *tree) path(name string) string { return filepath.Join(t.dir, filepath.FromSlash(name)) }

func (t *tree) stat(name string) (fs.FileInfo, error) {
	if t.root != nil {
		return t.root.Stat(filepath.FromSlash(name))
	}
	return os.Stat(t.path(name))
}

func (t *tree) open(name string) (*os.File, error) {
	if t.root != nil {
		return t.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|openNonblock, 0)
	}
	return os.OpenFile(t.path(name), os.O_RDONLY|openNonblock, 0)
}

// read returns the content of a regular file and its absolute path, links followed.
func (t *tree) read(name string, withheld func(string) bool) (key string, data []byte, err error) {
	if _, err := regular(t.stat(name)); err != nil {
		return "", nil, err
	}
	if key, err = filepath.EvalSymlinks(t.path(name)); err != nil {
		return "", nil, err
	}
	if t.root != nil {
		rel, err := filepath.Rel(t.dir, key)
		if err != nil || !filepath.IsLocal(rel) {
			return "", nil, errOutside
		}
		name = filepath.ToSlash(rel)
		if inGit(name) || withheld != nil && withheld(name) {
			return "", nil, errWithheld
		}
	}
	f, err := t.open(name)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	if _, err := regular(f.Stat()); err != nil { // check what was actually opened
		return "", nil, err
	}
	data, err = io.ReadAll(io.LimitReader(f, maxRead+1))
	switch {
	case err != nil:
	case len(data) > maxRead:
		err = fmt.Errorf("it has more than %d bytes", maxRead)
	case bytes.IndexByte(data, 0) >= 0:
		err = errors.New("it is no text")
	}
	return key, data, err
}

var (
	errOutside  = errors.New("it is a link to a place outside the project")
	errWithheld = errors.New("agents may not read this file unasked")
)

func regular(fi fs.FileInfo, err error) (fs.FileInfo, error) {
	if err == nil && !fi.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	return fi, err
}

// inGit reports whether a path leads into git's own files, which may contain URLs with passwords.
func inGit(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return strings.EqualFold(part, ".git") })
}

func isNotExist(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// reason returns an error without its path, which is shown anyway.
func reason(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		if strings.Contains(pe.Err.Error(), "escapes") { // os.Root has no name for this error
			return errOutside
		}
		return pe.Err
	}
	return err
}

// normal returns a text without byte order mark and surrounding blanks, with LF line ends.
func normal(data []byte) string {
	s := strings.ToValidUTF8(strings.TrimPrefix(string(data), "\ufeff"), "\uFFFD")
	return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n"))
}

func versionOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// head returns the first whole lines of a text within limit bytes, or part of the first line if it is longer.
func head(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	limit = max(limit, 0)
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	if i := strings.LastIndexByte(s[:limit], '\n'); i > 0 {
		limit = i
	}
	return strings.TrimSpace(s[:limit])
}
