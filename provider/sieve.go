package provider

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"centurion"
)

const (
	// maxLine limits an event, and an answer that is not streamed. The longest line seen from a real endpoint was below 6 MB.
	maxLine   = 16 << 20
	readBlock = 4 << 10 // the transport's own read size; allocated for every request
)

// sieve passes only well-formed data lines to go-openai's reader, one per event. It removes comments and other fields, which that
// reader counts and collects; converts an event of type error to a data line with an error, and an answer that is one JSON document to
// one data line; and refuses anything else.
//
// Lines are passed on in pieces, so that events of many megabytes are not buffered here, too.
type sieve struct {
	src   *bufio.Reader
	ctype string

	out     []byte // pending output of Read; a slice of src's buffer or of small
	small   [64]byte
	err     error // returned once out is empty
	begun   bool
	passing bool   // in the middle of a data line
	length  int    // of the line so far
	tail    string // closes the data line
	event   string // the type of the current event
}

func newSieve(r io.Reader, contentType string) *sieve {
	return &sieve{src: bufio.NewReaderSize(r, readBlock), ctype: contentType}
}

func (s *sieve) Read(p []byte) (int, error) {
	for len(s.out) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		if !s.begun {
			s.begun = true
			s.begin()
			continue
		}
		s.advance()
	}
	n := copy(p, s.out)
	s.out = s.out[n:]
	return n, nil
}

// begin checks the first non-space byte: a line of an event stream never starts like JSON or HTML.
func (s *sieve) begin() {
	for n := 0; ; n++ {
		b, err := s.src.ReadByte()
		if err != nil {
			s.err = err
			return
		}
		switch b {
		case ' ', '\t', '\r', '\n':
			if n > maxLine {
				s.err = tooLong()
				return
			}
			continue
		case 0xEF: // a byte order mark
			if rest, _ := s.src.Peek(2); string(rest) == "\xBB\xBF" {
				_, _ = s.src.Discard(2)
				continue
			}
		case '{', '[':
			_ = s.src.UnreadByte()
			s.document()
			return
		case '<':
			_ = s.src.UnreadByte()
			start, _ := s.src.Peek(200)
			s.err = &centurion.Error{Kind: centurion.KindConfig, Msg: fmt.Sprintf("the answer is %s and not a stream of events: %s",
				s.contentType(), excerpt(start)), Hint: "check the base URL; it usually ends in /v1"}
			return
		}
		_ = s.src.UnreadByte()
		return
	}
}

func (s *sieve) contentType() string {
	if s.ctype == "" {
		return "of unknown type"
	}
	return s.ctype
}

// document reads an answer that is a JSON document.
func (s *sieve) document() {
	b, err := io.ReadAll(io.LimitReader(s.src, maxLine+1))
	if err != nil {
		s.err = err
		return
	}
	if len(b) > maxLine {
		s.err = tooLong()
		return
	}
	line := bytes.NewBufferString("data:")
	if err := json.Compact(line, b); err != nil {
		s.err = &centurion.Error{Kind: centurion.KindStreamCut, Msg: "the answer is neither a stream of events nor JSON: " + excerpt(b)}
		return
	}
	line.WriteByte('\n')
	s.out, s.err = line.Bytes(), io.EOF
	if rest, ok := bytes.CutPrefix(s.out, []byte("data:{")); ok {
		s.out = append([]byte("data:{ "), rest...) // see openData
	}
}

// advance puts the next piece of a data line into out, or skips the next piece of any other line.
func (s *sieve) advance() {
	if s.passing {
		s.pass()
		return
	}
	head, err := s.src.Peek(5)
	if string(head) == "data:" {
		_, _ = s.src.Discard(5)
		s.openData()
		return
	}
	if len(head) == 0 {
		s.err = err
		return
	}
	s.field()
}

// openData starts a data line: the field's name, and the payload's first byte. A space after an opening brace keeps go-openai from
// detecting an error in the line: its test also matches a null error, ends the stream, and loses most of a real error.
func (s *sieve) openData() {
	out := append(s.small[:0], "data:"...)
	s.tail = ""
	if s.event == "error" {
		out = append(out, `{ "error":`...)
		s.tail = "}"
	}
	for {
		b, err := s.src.ReadByte()
		if err != nil || b == '\n' {
			s.err = err // an empty data line has no meaning
			return
		}
		if b == ' ' || b == '\t' || b == '\r' {
			continue
		}
		if out = append(out, b); b == '{' {
			out = append(out, ' ')
		}
		break
	}
	s.out, s.passing, s.length = out, true, 0
}

// pass passes on the next piece of the line.
func (s *sieve) pass() {
	piece, err := s.src.ReadSlice('\n')
	s.length += len(piece)
	if s.length > maxLine {
		s.err = tooLong()
		return
	}
	switch err {
	case nil:
		s.passing = false
		s.out = piece
		if s.tail != "" {
			s.out = append(bytes.TrimRight(append([]byte(nil), piece...), "\r\n"), s.tail+"\n"...)
		}
	case bufio.ErrBufferFull:
		s.out = piece
	default:
		// A last line without an end is complete if its JSON is; otherwise the decoder reports it.
		s.passing = false
		s.err = err
		if err == io.EOF {
			s.out = append(append([]byte(nil), piece...), s.tail+"\n"...)
		}
	}
}

// field skips a line that is not data, and remembers an event's type.
func (s *sieve) field() {
	var start []byte
	for {
		piece, err := s.src.ReadSlice('\n')
		if len(start) < 64 {
			start = append(start, piece[:min(len(piece), 64)]...)
		}
		if err == bufio.ErrBufferFull {
			continue // comments may be of any length: nothing of them is kept
		}
		s.err = err
		break
	}
	line := strings.TrimSpace(string(start))
	if line == "" {
		s.event = ""
	} else if v, ok := strings.CutPrefix(line, "event:"); ok {
		s.event = strings.TrimSpace(v)
	}
}

func tooLong() error {
	return &centurion.Error{Kind: centurion.KindStreamCut, Msg: "an event is longer than " + centurion.Bytes(maxLine)}
}
