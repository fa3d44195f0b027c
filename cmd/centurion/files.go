package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/config"
	"centurion/host"
	"centurion/orchestrator"
	"centurion/workspace"
)

// namedModels is how many models an error names that would take a file.
const namedModels = 4

// fileFlag is --file of run and send.
func fileFlag(cmd *cobra.Command, paths *[]string) {
	cmd.Flags().StringArrayVarP(paths, "file", "f", nil, "attach a text, an image (PNG, JPEG, GIF, WebP) or a PDF; may be given several times")
}

// attached are the files that a person gives with a text: texts become part of a message and stand
// beside a goal, images and documents go beside both.
type attached struct {
	text  string
	files []centurion.File
}

// attachments reads files that a person has named, relative to where they are. What a person gives by hand needs no permission
// rule. Room is how many bytes of texts there may be. Every error has centurion.KindUsage.
func attachments(ws *workspace.Workspace, paths []string, room int) (attached, error) {
	var out attached
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
			out.files = append(out.files, f)
			continue
		}
		data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
		if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
			return out, attachError(p, "it is neither a text nor of a type that a model takes", "attach a PNG, JPEG, GIF or WebP image, a PDF or a text")
		}
		out.text += fmt.Sprintf("\n\n<file path=%q>\n%s\n</file>", where, strings.TrimRight(string(data), "\n"))
		if len(out.text) > room {
			return out, attachError(p, fmt.Sprintf("the text would have more than %d KB with it", maxGoal>>10), "name the file in the text instead: agents can read it in parts")
		}
	}
	return out, centurion.CheckFiles(out.files)
}

// readGiven reads a file that a person has named.
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

// bareError drops the path from an error, which says it already.
func bareError(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

// similarFile offers the nearest name in the directory of a file that is not there.
func similarFile(p string) string {
	entries, _ := os.ReadDir(filepath.Dir(p)) // without any there is nothing to offer
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if near := centurion.Nearest(filepath.Base(p), names); near != "" {
		return "did you mean " + filepath.Join(filepath.Dir(p), near) + "?"
	}
	return "paths are relative to the current directory"
}

// projectPath is how agents are told of a file: relative to the project with slashes, else absolute.
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

// takenBy refuses files that the mission's model does not take, and says which models do.
func (a attached) takenBy(models *host.Models) error {
	r := models.First
	for _, f := range a.files {
		if r.Media.Takes(f.Mime) {
			continue
		}
		hint := "if it does, set " + orchestrator.MediaKey(r.Model)
		if others := models.Config.ModelsTaking(f.Mime, namedModels); len(others) > 0 {
			hint = "take one that does: --model " + strings.Join(others, ", ")
		}
		return &centurion.Error{Op: "attach " + cmp.Or(f.Path, f.Name), Kind: centurion.KindUsage, Msg: fmt.Sprintf("the model %s takes no %s", r.Model, kindOf(f)), Hint: hint}
	}
	return nil
}

// sendWith puts the files of `centurion send` into a message.
func (c *cli) sendWith(f *readFlags, p *orchestrator.Post, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	_, ws, err := c.locate(f.dir)
	if err != nil {
		return err
	}
	defer ws.Close()
	with, err := attachments(ws, paths, orchestrator.MaxPost-len(p.Text))
	p.Text, p.Files = p.Text+with.text, with.files
	return err
}

// blind tells the person that who gets their files is a model that takes none of the kind: it is told of them in words. Where
// the model is not known, or its configuration cannot be read, there is nothing to tell.
func (c *cli) blind(ctx context.Context, f *readFlags, p orchestrator.Post, got orchestrator.Posted) {
	if len(p.Files) == 0 || got.Session == "" {
		return
	}
	_ = c.open(ctx, f, func(v *view) error {
		s, err := v.API.Session(ctx, got.Session)
		if err != nil || s.Model == nil {
			return err
		}
		cfg, err := config.Load(config.Options{Dir: s.Directory, Env: c.getenv})
		if err != nil {
			return err
		}
		r, err := cfg.ResolveModel(ctx, s.Model.Provider+"/"+s.Model.ID)
		if err != nil {
			return err
		}
		for _, file := range p.Files {
			if !r.Media.Takes(file.Mime) {
				c.note(fmt.Sprintf("the model %s takes no %s: it is told in words that there is one; if it does take them, set %s",
					r.Model, kindOf(file), orchestrator.MediaKey(r.Model)))
				return nil
			}
		}
		return nil
	})
}

// kindOf names the kind of a file.
func kindOf(f centurion.File) string {
	if f.Mime == centurion.MimePDF {
		return "PDF files"
	}
	return "images"
}

// takes names the types of file that a model takes.
func takes(m centurion.Media) (out []string) {
	if m.Image {
		out = append(out, "images")
	}
	if m.PDF {
		out = append(out, "PDF")
	}
	return out
}
