package tools

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"

	"centurion"
)

type writeInput struct {
	FilePath string `json:"filePath"`
	Content  string `json:"content"`
}

func writeTool() Tool {
	return define("write", object(
		need("filePath", nonEmpty("The file, relative to the project or absolute; missing directories are made")),
		need("content", str("The whole new text of the file")),
	), func(in writeInput) Effect { return writes(in.FilePath) }, runWrite)
}

// writes is the effect of replacing one file. A path that is not plainly inside the project could be anything.
func writes(given string) Effect {
	p := path.Clean(strings.ReplaceAll(given, `\`, "/"))
	if given == "" || path.IsAbs(p) || p == ".." || strings.HasPrefix(p, "../") || strings.HasPrefix(p, "~") || strings.Contains(p, ":") {
		return Effect{}
	}
	return Effect{Writes: []string{p}}
}

func runWrite(ctx context.Context, c *Call, in writeInput) (Result, error) {
	const op = "write"
	p, old, err := enterFile(ctx, c, op, in.FilePath)
	exists := err == nil
	if !exists && centurion.KindOf(err) != centurion.KindNotFound {
		return Result{}, err
	}
	if err := c.Seen.Check(p.key(), old.Version); err != nil {
		return Result{}, err
	}
	data, kept := likeBefore(old.Data, []byte(in.Content))
	if exists && bytes.Equal(old.Data, data) {
		return Result{}, usage(op, "nothing has to be done", "%s already has exactly this content", p.Name)
	}
	if err := p.keepsKeys(c, op, old.Data, data); err != nil {
		return Result{}, err
	}
	change := diff(p.Name, string(old.Data), string(data))
	if err := p.allow(ctx, c, "edit", map[string]any{"filepath": p.Name, "diff": change}); err != nil {
		return Result{}, err
	}
	if err := p.replace(ctx, c, old.Version, data); err != nil {
		return Result{}, err
	}
	r := Result{Title: p.Name, Metadata: map[string]any{"filepath": p.Name, "diff": change, "exists": exists, knows: c.Seen.known(p.key())}, Files: p.changed()}
	if exists {
		r.Output = fmt.Sprintf("replaced %s%s, %s", p.Name, kept, centurion.Count(lineCount(in.Content), "line"))
	} else {
		r.Output = fmt.Sprintf("created %s, %s", p.Name, centurion.Count(lineCount(in.Content), "line"))
	}
	if mark := c.Keys.Mark(in.Content); mark != "" {
		r.Output += fmt.Sprintf("; it has %s as it stands there, not the key", mark)
	}
	return r, nil
}

// changed lists the file for the record of a call's changes in the project.
func (p place) changed() []string {
	if p.Outside {
		return nil
	}
	return []string{p.Rel}
}

// likeBefore gives new content the byte order mark and the CRLF line ends of the old, if the old used them throughout and the model did
// not write them. kept describes what was kept.
func likeBefore(old, content []byte) (data []byte, kept string) {
	var what []string
	if crlf := bytes.Count(old, []byte("\r\n")); crlf > 0 && crlf == bytes.Count(old, []byte("\n")) && !bytes.Contains(content, []byte("\r\n")) &&
		bytes.Contains(content, []byte("\n")) {
		content = bytes.ReplaceAll(content, []byte("\n"), []byte("\r\n"))
		what = append(what, "CRLF line ends")
	}
	if bytes.HasPrefix(old, bom) && !bytes.HasPrefix(content, bom) {
		content = append(bytes.Clone(bom), content...)
		what = append(what, "byte order mark")
	}
	if len(what) == 0 {
		return content, ""
	}
	return content, " (its " + strings.Join(what, " and ") + " kept)"
}

func lineCount(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}
