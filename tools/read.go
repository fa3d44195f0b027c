package tools

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"centurion"
	"centurion/redact"
	"centurion/workspace"
)

const (
	readLines    = 2000     // shown lines, by default
	readLineLen  = 2000     // shown characters of a line
	readMaxBytes = 50 << 10 // of one result
)

type readInput struct {
	FilePath string `json:"filePath"`
	Offset   int    `json:"offset"`
	Limit    int    `json:"limit"`
}

func readTool() Tool {
	return define("read", object(
		need("filePath", nonEmpty("The file, relative to the project or absolute")),
		may("offset", integer("The first line to show, counted from 1", 0, 0)),
		may("limit", integer(fmt.Sprintf("How many lines to show (default %d)", readLines), 1, 0)),
	), func(readInput) Effect { return Effect{ReadOnly: true} }, runRead)
}

func runRead(ctx context.Context, c *Call, in readInput) (Result, error) {
	const op = "read"
	p, err := enter(ctx, c, op, in.FilePath)
	if err != nil {
		return Result{}, err
	}
	if err := p.allow(ctx, c, "read", map[string]any{"filepath": p.Name}); err != nil {
		return Result{}, err
	}
	f, info, err := p.open(op)
	if err != nil {
		if centurion.KindOf(err) == centurion.KindNotFound {
			c.Seen.Saw(p.key(), "")
		}
		return Result{}, err
	}
	defer f.Close()
	hash := sha256.New()
	r := io.TeeReader(f, hash)
	head := make([]byte, sniffLen)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return Result{}, p.fail(op, 0, err)
	}
	head = head[:n]
	if mime := centurion.DetectFile(head); mime != "" {
		return picture(c, op, p, mime, io.MultiReader(bytes.NewReader(head), f), info.Size())
	}
	if typ := binaryType(head); typ != "" {
		return Result{}, binaryError(op, p, typ, info.Size())
	}
	v := view{keys: c.Keys, from: max(1, in.Offset), limit: in.Limit}
	if v.limit == 0 {
		v.limit = readLines
	}
	if err := v.fill(ctx, io.MultiReader(bytes.NewReader(bytes.TrimPrefix(head, bom)), r)); err != nil {
		return Result{}, p.fail(op, 0, err)
	}
	if v.nul {
		return Result{}, binaryError(op, p, "data with NUL bytes", info.Size())
	}
	if v.total > 0 && v.from > v.total {
		return Result{}, usage(op, "", "offset %d is past the end: %s has %s", v.from, p.Name, centurion.Count(v.total, "line"))
	}
	version := hex.EncodeToString(hash.Sum(nil)) // as in workspace.VersionOf
	return Result{Output: v.text(), Title: p.Name, Metadata: map[string]any{"lines": v.total, "truncated": v.next != 0, knows: c.Seen.note(p.key(), version)}}, nil
}

func binaryError(op string, p place, typ string, bytes int64) error {
	return usage(op, "read shows text only; bash with file, xxd or strings can tell more", "%s is binary: %s, %s", p.Name, typ, centurion.Bytes(bytes))
}

// view is the part of a text shown by one call.
type view struct {
	keys        *redact.Keys
	from, limit int

	out   strings.Builder
	total int // number of lines
	shown int
	next  int // the next line to read; 0 at the end
	full  bool
	crlf  int  // lines ending in CRLF
	nul   bool // a line to be shown contains a NUL
}

func (v *view) fill(ctx context.Context, r io.Reader) error {
	l := newLines(r, readLineLen*utf8.UTFMax)
	for l.next() {
		v.total++
		if v.total%4096 == 0 && ctx.Err() != nil {
			return ended(ctx, "read")
		}
		if l.crlf {
			v.crlf++
		}
		if v.total < v.from || v.next != 0 {
			continue
		}
		if v.shown == v.limit || !v.add(l) {
			v.next = v.total
		}
	}
	return l.err
}

// add shows a line, and returns false if it does not fit any more.
func (v *view) add(l *lines) bool {
	if bytes.IndexByte(l.line, 0) >= 0 {
		v.nul = true
		return true
	}
	s := v.keys.Text(valid(string(l.line)))
	cut := headRunes(s, readLineLen)
	if l.cut || len(cut) < len(s) {
		cut = strings.TrimSuffix(cut, "…") + fmt.Sprintf("… (cut after %d characters)", readLineLen)
	}
	line := fmt.Sprintf("%6d| %s\n", v.total, cut)
	if v.out.Len()+len(line) > readMaxBytes { // the first line is shorter
		v.full = true
		return false
	}
	v.out.WriteString(line)
	v.shown++
	return true
}

// text returns the lines, followed by notes on how to read on and on hidden parts.
func (v *view) text() string {
	if v.total == 0 {
		return "(the file is empty)"
	}
	var notes []string
	if v.next != 0 {
		why := ""
		if v.full {
			why = fmt.Sprintf(" (at most %s at once)", centurion.Bytes(readMaxBytes))
		}
		notes = append(notes, fmt.Sprintf("lines %d-%d of %d%s; read on with offset %d", v.from, v.next-1, v.total, why, v.next))
	} else if v.from > 1 {
		notes = append(notes, fmt.Sprintf("lines %d-%d, the end of the file", v.from, v.total))
	}
	if v.crlf > 0 {
		notes = append(notes, "line ends are CRLF; edit and write keep them")
	}
	if len(notes) > 0 {
		fmt.Fprintf(&v.out, "(%s)\n", strings.Join(notes, "; "))
	}
	return v.out.String()
}

// picture reads an image or a PDF. The model gets it with the result if it accepts the type, otherwise a description. A damaged file is
// refused as binary.
func picture(c *Call, op string, p place, mime string, r io.Reader, all int64) (Result, error) {
	data, err := io.ReadAll(io.LimitReader(r, centurion.MaxFile+1))
	if err != nil {
		return Result{}, p.fail(op, 0, err)
	}
	what := "the PDF"
	if centurion.IsImage(mime) {
		what = "the image"
	}
	if all > centurion.MaxFile || len(data) > centurion.MaxFile {
		return Result{}, usage(op, "make a smaller copy with a command, then read that", "%s is %s of %s; at most %s can be shown", p.Name, mime, centurion.Bytes(max(all, int64(len(data)))), centurion.Bytes(centurion.MaxFile))
	}
	f, err := centurion.NewFile(p.Name, data)
	if err != nil {
		w, h := centurion.File{Mime: mime, Data: data}.Size()
		if w*h == 0 {
			return Result{}, binaryError(op, p, mime, all)
		}
		return Result{}, usage(op, "make a smaller copy with a command, then read that", "%s is %d×%d pixels; at most %d on each side can be shown", p.Name, w, h, centurion.MaxSide)
	}
	res := Result{Title: p.Name, Metadata: map[string]any{"mime": mime, "bytes": len(data), knows: c.Seen.note(p.key(), workspace.VersionOf(data))}}
	facts := fmt.Sprintf("%s (%s, %s)", f.Label(), mime, centurion.Bytes(int64(len(data))))
	if !c.Media.Takes(mime) {
		res.Output = fmt.Sprintf("%s: this model takes no pictures, so that %s cannot be shown to you. Commands such as file can tell more.", facts, what)
		if mime == centurion.MimePDF {
			res.Output = fmt.Sprintf("%s: this model takes no PDF, so that it cannot be shown to you. A command such as pdftotext can tell what it says.", facts)
		}
		return res, nil
	}
	res.Output, res.Attachments = fmt.Sprintf("%s: %s is attached to this result.", facts, what), []centurion.File{f}
	return res, nil
}
