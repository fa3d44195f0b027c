package provider

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"centurion"
)

const (
	// maxLine limits an event, and an answer that is not streamed. The longest line seen from a real endpoint was below 6 MB.
	maxLine   = 16 << 20
	readBlock = 4 << 10 // the transport's own read size; allocated for every request
)

// frames reads the data of a stream of events. It skips comments and other fields, converts an event of type error to data with an
// error, and an answer that is one JSON document to one event; and refuses anything else.
type frames struct {
	src   *bufio.Reader
	ctype string
	begun bool
	event string // the type of the current event
}

func newFrames(r io.Reader, contentType string) *frames {
	return &frames{src: bufio.NewReaderSize(r, readBlock), ctype: contentType}
}

// next returns the data of the next event, or io.EOF at the end of the stream.
func (f *frames) next() ([]byte, error) {
	if !f.begun {
		f.begun = true
		if document, err := f.begin(); document != nil || err != nil {
			return document, err
		}
	}
	for {
		line, err := f.line()
		if err != nil && err != io.EOF {
			return nil, err
		}
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		data, line = bytes.TrimSpace(data), bytes.TrimSpace(line)
		switch kind, named := bytes.CutPrefix(line, []byte("event:")); {
		case ok && string(data) == "[DONE]":
			return nil, io.EOF
		case ok && len(data) > 0 && f.event == "error":
			return slices.Concat([]byte(`{"error":`), data, []byte("}")), nil
		case ok && len(data) > 0:
			return data, nil // a last line without its end is complete if its JSON is
		case named:
			f.event = string(bytes.TrimSpace(kind))
		case len(line) == 0:
			f.event = ""
		}
		if err != nil {
			return nil, err
		}
	}
}

// line reads a line, and keeps only the beginning of one without data: comments may have any length.
func (f *frames) line() (line []byte, err error) {
	for {
		piece, err := f.src.ReadSlice('\n')
		if len(line) == 0 || bytes.HasPrefix(line, []byte("data:")) {
			if cap(line) < len(line)+len(piece) {
				line = slices.Grow(line, len(line)+len(piece)) // doubled: append alone would allocate five times a long line
			}
			line = append(line, piece...)
		}
		switch {
		case len(line) > len("data: ")+maxLine:
			return nil, tooLong()
		case err != bufio.ErrBufferFull:
			return line, err
		}
	}
}

// begin checks the first non-space byte: no line of a stream of events starts like JSON or HTML. It returns an answer that is one JSON
// document.
func (f *frames) begin() ([]byte, error) {
	for n := 0; n <= maxLine; n++ {
		b, err := f.src.ReadByte()
		if err != nil {
			return nil, err
		}
		switch b {
		case ' ', '\t', '\r', '\n':
			continue
		case 0xEF: // a byte order mark
			if rest, _ := f.src.Peek(2); string(rest) == "\xBB\xBF" {
				_, _ = f.src.Discard(2)
				continue
			}
		}
		_ = f.src.UnreadByte()
		switch b {
		case '{', '[':
			return f.document()
		case '<':
			start, _ := f.src.Peek(200)
			return nil, &centurion.Error{Kind: centurion.KindConfig, Hint: "check the base URL; it usually ends in /v1",
				Msg: fmt.Sprintf("the answer is %s and not a stream of events: %s", cmp.Or(f.ctype, "of unknown type"), excerpt(start))}
		}
		return nil, nil
	}
	return nil, tooLong()
}

// document reads an answer that is one JSON document.
func (f *frames) document() ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(f.src, maxLine+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > maxLine:
		return nil, tooLong()
	case !json.Valid(b):
		return nil, &centurion.Error{Kind: centurion.KindStreamCut, Msg: "the answer is neither a stream of events nor JSON: " + excerpt(b)}
	}
	return b, nil
}

func tooLong() error {
	return &centurion.Error{Kind: centurion.KindStreamCut, Msg: "an event is longer than " + centurion.Bytes(maxLine)}
}
