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
	// maxLine is the longest event that is read, and the longest answer that does not stream. The longest line seen from
	// a real endpoint was below 6 MB.
	maxLine   = 16 << 20
	readBlock = 4 << 10 // as much as the transport reads at once; it is allocated for every request
)

// sieve hands go-openai's reader nothing but well-formed data lines, one an event. It takes out comments and other
// fields, which that reader counts and collects; turns an event of type error into a data line with an error in it; turns
// an answer that is one JSON document and not a stream into one data line; and refuses what is neither.
//
// Lines are passed through in pieces and not collected, so that an event of many megabytes is not held here as well.
type sieve struct {
	src   *bufio.Reader
	ctype string

	out     []byte // what Read has yet to hand out; a slice of src's buffer or of small
	small   [64]byte
	err     error // told once out is empty
	begun   bool
	passing bool   // in the middle of a data line
	length  int    // of the line so far
	tail    string // closes the data line
	event   string // the type of the event that is being read
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

// begin looks at the first byte that is no white space: no line of a stream of events starts with one of JSON or HTML.
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

// document reads an answer that is one JSON document.
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

// advance puts the next piece of a data line into out, or passes over the next piece of any other line.
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

// openData starts a data line: the field's name, and the payload's first byte. A space after an opening brace keeps
// go-openai from seeing an error in the line: its test for errors matches a null error too, ends the stream, and loses
// most of what real errors say.
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
			s.err = err // an empty data line says nothing
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

// pass hands on the next piece of the line.
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
		// A last line without an end is complete if its JSON is; if it is not, the decoder says so.
		s.passing = false
		s.err = err
		if err == io.EOF {
			s.out = append(append([]byte(nil), piece...), s.tail+"\n"...)
		}
	}
}

// field passes over a line that is not data, and remembers an event's type.
func (s *sieve) field() {
	var start []byte
	for {
		piece, err := s.src.ReadSlice('\n')
		if len(start) < 64 {
			start = append(start, piece[:min(len(piece), 64)]...)
		}
		if err == bufio.ErrBufferFull {
			continue // a comment may be as long as it likes: nothing of it is kept
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
