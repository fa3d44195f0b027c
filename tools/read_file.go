package tools

import (
	"fmt"
	"io"

	"centurion"
	"centurion/workspace"
)

// picture reads an image or a PDF. The model gets it with the result if it accepts the type, otherwise a description. A damaged file is
// refused as binary.
func picture(c *Call, op string, p place, mime string, r io.Reader, all int64) (Result, error) {
	data, err := io.ReadAll(io.LimitReader(r, centurion.MaxFile+1))
	if err != nil {
		return Result{}, p.fail(op, err)
	}
	what := "the PDF"
	if centurion.IsImage(mime) {
		what = "the image"
	}
	if all > centurion.MaxFile || len(data) > centurion.MaxFile {
		return Result{}, usage(op, "make a smaller copy with a command, then read that", "%s is %s of %s; at most %s can be shown", p.name, mime, centurion.Bytes(max(all, int64(len(data)))), centurion.Bytes(centurion.MaxFile))
	}
	f, err := centurion.NewFile(p.name, data)
	if err != nil {
		w, h := centurion.File{Mime: mime, Data: data}.Size()
		if w*h == 0 {
			return Result{}, binaryError(op, p, mime, all)
		}
		return Result{}, usage(op, "make a smaller copy with a command, then read that", "%s is %d×%d pixels; at most %d on each side can be shown", p.name, w, h, centurion.MaxSide)
	}
	res := Result{Title: p.name, Metadata: map[string]any{"mime": mime, "bytes": len(data), knows: c.Seen.note(p.key(), workspace.VersionOf(data))}}
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
