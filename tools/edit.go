package tools

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/workspace"
)

//go:embed edit.md
var editDoc string

type editInput struct {
	FilePath   string `json:"filePath"`
	OldString  string `json:"oldString"`
	NewString  string `json:"newString"`
	ReplaceAll bool   `json:"replaceAll"`
}

func editTool() Tool {
	return define("edit", editDoc, object(
		need("filePath", nonEmpty("The file, relative to the project or absolute")),
		need("oldString", nonEmpty("The text to replace, exactly as in the file, with enough context to occur once")),
		need("newString", str("The new text; empty deletes the old one")),
		may("replaceAll", boolean("Replace every occurrence (default false)")),
	), func(in editInput) Effect { return writes(in.FilePath) }, runEdit)
}

func runEdit(ctx context.Context, c *Call, in editInput) (Result, error) {
	const op = "edit"
	p, err := enter(ctx, c, op, in.FilePath)
	if err != nil {
		return Result{}, err
	}
	if err := p.writable(op); err != nil {
		return Result{}, err
	}
	old, err := p.content(op)
	if err != nil {
		return Result{}, err
	}
	if typ := binaryType(old[:min(len(old), sniffLen)]); typ != "" {
		return Result{}, binaryError(op, p, typ, int64(len(old)))
	}
	data, n, err := substitute(p.name, old, in)
	if err != nil || in.ReplaceAll {
		// A text that occurs once in the file can be replaced without a read: nothing that the session has not named is lost.
		if unseen := c.Seen.Check(p.key(), workspace.VersionOf(old)); unseen != nil {
			return Result{}, unseen
		}
	}
	if err != nil {
		return Result{}, err
	}
	change := diff(p.name, string(old), string(data))
	if err := p.allow(ctx, c, "edit", map[string]any{"filepath": p.name, "diff": change}); err != nil {
		return Result{}, err
	}
	if err := p.replace(ctx, c, op, old, data); err != nil {
		return Result{}, err
	}
	out := "edited " + p.name
	if n > 1 {
		out += fmt.Sprintf(", %d places", n)
	}
	return Result{Output: out + "\n" + change, Title: p.name, Files: p.changed(),
		Metadata: map[string]any{"filepath": p.name, "diff": change, "replaced": n, knows: c.Seen.known(p.key())}}, nil
}

// substitute replaces the text in data and returns how often. The search uses LF only, as the model does; other bytes are unchanged,
// and inserted text gets the line ends of the replaced one.
func substitute(name string, data []byte, in editInput) ([]byte, int, error) {
	const op = "edit"
	from, to := lf(in.OldString), lf(in.NewString)
	if from == to {
		return nil, 0, usage(op, "say what has to become different", "oldString and newString are the same; nothing would change")
	}
	t := flatten(data)
	at := occurrences(t.text, from)
	switch {
	case len(at) == 0:
		return nil, 0, notFound(name, t.text, from)
	case len(at) > 1 && !in.ReplaceAll:
		return nil, 0, usage(op, "give more of the lines around the one you mean, or replaceAll",
			"oldString occurs %s in %s, %s", centurion.Count(len(at), "time"), name, atLines(t.text, at))
	}
	var out bytes.Buffer
	done := 0
	for _, i := range at {
		start, end := t.original(i), t.original(i+len(from))
		out.Write(data[done:start])
		repl := to
		if t.crlf(data[start:end]) {
			repl = strings.ReplaceAll(to, "\n", "\r\n")
		}
		out.WriteString(repl)
		done = end
	}
	out.Write(data[done:])
	return out.Bytes(), len(at), nil
}

func lf(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// flat is a text with LF for every CRLF and without byte order mark.
type flat struct {
	text   string
	skip   int   // length of the byte order mark
	crs    []int // positions in text of removed CRs, before the byte at that index
	mostly bool  // most lines end in CRLF
}

func flatten(data []byte) flat {
	t := flat{}
	if bytes.HasPrefix(data, bom) {
		t.skip = len(bom)
	}
	rest := data[t.skip:]
	var b strings.Builder
	b.Grow(len(rest))
	for {
		i := bytes.Index(rest, []byte("\r\n"))
		if i < 0 {
			break
		}
		b.Write(rest[:i])
		t.crs = append(t.crs, b.Len())
		rest = rest[i+1:]
	}
	b.Write(rest)
	t.text = b.String()
	t.mostly = len(t.crs)*2 > strings.Count(t.text, "\n")
	return t
}

// original is the position in the data of the byte at index i of the text. For an LF whose CR was removed it is that of the CR, so that
// both are replaced together.
func (t flat) original(i int) int {
	n, _ := slices.BinarySearch(t.crs, i) // CRs removed before i
	return t.skip + i + n
}

// crlf reports whether the replacement of a piece should have CRLF line ends.
func (t flat) crlf(piece []byte) bool {
	if n := bytes.Count(piece, []byte("\n")); n > 0 {
		return bytes.Count(piece, []byte("\r\n"))*2 >= n
	}
	return t.mostly
}

// occurrences returns the non-overlapping positions of part in text.
func occurrences(text, part string) []int {
	var at []int
	for i := 0; ; {
		j := strings.Index(text[i:], part)
		if j < 0 {
			return at
		}
		at = append(at, i+j)
		i += j + len(part)
	}
}

// atLines names the lines of the offsets.
func atLines(text string, at []int) string {
	const most = 10
	var s []string
	line, done := 1, 0
	for _, i := range at[:min(len(at), most)] {
		line += strings.Count(text[done:i], "\n")
		done = i
		s = append(s, fmt.Sprint(line))
	}
	if len(at) > most {
		s = append(s, "…")
	}
	return "in lines " + strings.Join(s, ", ")
}
