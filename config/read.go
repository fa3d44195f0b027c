package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"centurion"
)

// maxFile limits a configuration file and a file that one includes. Real ones are a few KB; the limit keeps a wrong path from filling
// the memory.
const maxFile = 1 << 20

// readText returns the content of a regular file, and false if there is none. Other files are refused: opening a pipe would wait for a
// writer forever.
func readText(path string) (string, bool, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return "", false, nil
	case err != nil:
		return "", false, err
	case !info.Mode().IsRegular():
		return "", false, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	return readAll(f, path)
}

func readAll(f fs.File, path string) (string, bool, error) {
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", false, err
	}
	if len(b) > maxFile {
		return "", false, fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return string(b), true, nil
}

// readError wraps a failure to read an existing file.
func readError(err error) *centurion.Error {
	return &centurion.Error{Op: "read config", Kind: centurion.KindConfig, Err: err,
		Hint: "make the file readable or remove it"}
}

// reference matches OpenCode's two kinds of substitutions in strings.
var reference = regexp.MustCompile(`\{(env|file):([^}]+)\}`)

// substituter replaces {env:NAME} and {file:path} in strings, without recursion. It works on string values, so that inserted text can
// never become a key or structure. Unlike OpenCode it ignores keys.
type substituter struct {
	opts Options
	root string // {file:…} in a project's file must stay inside it
}

func (s substituter) node(n *node) error {
	var failed error
	for part := range n.all {
		if part.kind != kindString {
			continue
		}
		part.text = reference.ReplaceAllStringFunc(part.text, func(ref string) string {
			if failed != nil {
				return ref
			}
			m := reference.FindStringSubmatch(ref)
			var v string
			v, failed = s.resolve(part, m[1], strings.TrimSpace(m[2]))
			return v
		})
	}
	return failed
}

func (s substituter) resolve(n *node, what, name string) (string, error) {
	if what == "file" {
		v, err := s.file(n, name)
		return strings.TrimSpace(v), err
	}
	if n.src.foreign() {
		return "{env:" + name + "}", nil
	}
	v := s.opts.env(name)
	if v == "" && n.missing == "" {
		n.missing = name
	}
	return v, nil
}

func (s substituter) file(n *node, name string) (string, error) {
	fail := func(format string, args ...any) error {
		return n.src.fault(n.line, "correct the path, which is relative to the file it stands in", "{file:%s}: %s", name, fmt.Sprintf(format, args...))
	}
	dir := s.root
	if n.src.path != "" {
		dir = filepath.Dir(n.src.path)
	}
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		name = filepath.Join(s.opts.home(), rest)
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	s.opts.Stamps.add(path)
	if !n.src.project {
		v, ok, err := readText(path)
		switch {
		case err != nil:
			return "", fail("%v", err)
		case !ok:
			return "", fail("%s does not exist", path)
		}
		return v, nil
	}
	return s.inside(path, fail)
}

// inside reads a file for a project's file: it must be inside the project, with links resolved.
func (s substituter) inside(path string, fail func(string, ...any) error) (string, error) {
	rel, err := filepath.Rel(s.root, path)
	if err != nil || !filepath.IsLocal(rel) {
		return "", fail("a project's file may only include files inside the project")
	}
	root, err := os.OpenRoot(s.root)
	if err != nil {
		return "", fail("%v", err)
	}
	defer root.Close()
	info, err := root.Stat(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fail("%s does not exist", path)
	case err != nil:
		return "", fail("%v", err)
	case !info.Mode().IsRegular():
		return "", fail("it is not a regular file")
	}
	f, err := root.Open(rel)
	if err != nil {
		return "", fail("%v", err)
	}
	defer f.Close()
	v, _, err := readAll(f, path)
	if err != nil {
		return "", fail("%v", err)
	}
	return v, nil
}
