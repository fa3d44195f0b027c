package goal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"centurion"
	"centurion/config"
	"centurion/orchestrator/mail"
	"centurion/text"
	"centurion/workspace"
)

// Attached are the files that a person attaches to a text: texts become part of a message and accompany a goal, images and documents
// accompany both.
type Attached struct {
	Text  string
	Files []centurion.File
}

// Attach reads files named by a person, relative to where they are. They need no permission rule. room is the maximum size of the texts
// in bytes. Every error has centurion.KindUsage.
func Attach(ws *workspace.Workspace, paths []string, room int) (Attached, error) {
	var out Attached
	for _, p := range paths {
		data, err := readGiven(p)
		if err != nil {
			return out, err
		}
		where := projectPath(ws, p)
		if centurion.DetectFile(data) != "" {
			f, err := centurion.NewFile(where, data)
			if err != nil {
				return out, err
			}
			out.Files = append(out.Files, f)
			continue
		}
		data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
		if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
			return out, attachError(p, "it is neither a text nor of a type that a model takes", "attach a PNG, JPEG, GIF or WebP image, a PDF or a text")
		}
		out.Text += fmt.Sprintf("\n\n<file path=%q>\n%s\n</file>", where, strings.TrimRight(string(data), "\n"))
		if len(out.Text) > room {
			return out, attachError(p, "the text would have more than "+centurion.Bytes(MaxSize)+" with it", "name the file in the text instead: agents can read it in parts")
		}
	}
	return out, centurion.CheckFiles(out.Files)
}

// readGiven reads a file named by a person.
func readGiven(p string) ([]byte, error) {
	info, err := os.Stat(p)
	switch {
	case p == "":
		return nil, &centurion.Error{Kind: centurion.KindUsage, Msg: "--file needs a path", Hint: "name a file: --file notes.md"}
	case errors.Is(err, fs.ErrNotExist):
		return nil, attachError(p, "it does not exist", similarFile(p))
	case err != nil:
		return nil, attachError(p, bareError(err), "")
	case info.IsDir():
		return nil, attachError(p, "it is a directory", "name the files in it, each with --file")
	case !info.Mode().IsRegular():
		return nil, attachError(p, "it is no regular file", "write what comes from it to a file first")
	case info.Size() > centurion.MaxFile:
		return nil, attachError(p, fmt.Sprintf("it has %s; at most %s can be sent to a model", centurion.Bytes(info.Size()), centurion.Bytes(centurion.MaxFile)), "make it smaller")
	}
	f, err := os.Open(p)
	if err != nil {
		return nil, attachError(p, bareError(err), "")
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, centurion.MaxFile+1)) // it may grow meanwhile
	if err != nil {
		return nil, attachError(p, bareError(err), "")
	}
	return data, nil
}

func attachError(p, msg, hint string) error {
	return &centurion.Error{Op: "attach " + p, Kind: centurion.KindUsage, Msg: msg, Hint: hint}
}

// bareError drops the path from an error that is shown with it.
func bareError(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

// similarFile suggests the nearest name in the directory of a missing file.
func similarFile(p string) string {
	entries, _ := os.ReadDir(filepath.Dir(p)) // without any there is nothing to offer
	near := centurion.Nearest(filepath.Base(p), text.Each(entries, fs.DirEntry.Name))
	return text.If(near != "", "did you mean "+filepath.Join(filepath.Dir(p), near)+"?", "paths are relative to the current directory")
}

// projectPath returns a file's path as agents see it: relative to the project with slashes, else absolute.
func projectPath(ws *workspace.Workspace, p string) string {
	abs, err := filepath.Abs(p)
	if err != nil {
		return filepath.ToSlash(p)
	}
	for _, name := range []string{abs, workspace.FollowLinks(abs)} {
		if rel, err := ws.Rel(name); err == nil {
			return filepath.ToSlash(rel)
		}
	}
	return filepath.ToSlash(abs)
}

// CheckTakenBy refuses files that the mission's model does not accept, and names the models that do.
func (a Attached) CheckTakenBy(r config.Resolved, cfg *config.Config) error {
	for _, f := range a.Files {
		if r.Media.Takes(f.Mime) {
			continue
		}
		others := cfg.ModelsTaking(f.Mime, namedModels)
		hint := text.If(len(others) > 0, "take one that does: --model "+strings.Join(others, ", "), "if it does, set "+mail.MediaKey(r.Model))
		return &centurion.Error{Op: "attach " + cmp.Or(f.Path, f.Name), Kind: centurion.KindUsage, Msg: fmt.Sprintf("the model %s takes no %s", r.Model, KindOf(f)), Hint: hint}
	}
	return nil
}

// KindOf names the kind of a file.
func KindOf(f centurion.File) string {
	return text.If(f.Mime == centurion.MimePDF, "PDF files", "images")
}

// namedModels is how many suitable models an error names.
const namedModels = 4

// FileTypes names the file types that a model accepts.
func FileTypes(m centurion.Media) []string {
	return text.Filled(text.When(m.Image, "images"), text.When(m.PDF, "PDF"))
}

// MaxSize is the maximum size of a goal in bytes: it is sent with every request.
const MaxSize = 256 << 10
