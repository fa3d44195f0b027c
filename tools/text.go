package tools

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

// sniffLen is the length of the head that decides whether a file is text.
const sniffLen = 8 << 10

var bom = []byte("\xef\xbb\xbf")

// binaryType returns the type of binary data from the head of a file, or "" for text: UTF-8, or a single-byte encoding with a few
// letters outside ASCII. A NUL, or more than a tenth of invalid UTF-8 bytes, makes it binary.
func binaryType(head []byte) string {
	invalid := 0
	nul := bytes.IndexByte(head, 0) >= 0
	for b := head; !nul && len(b) > 0; {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 && (utf8.FullRune(b) || len(head) < sniffLen) {
			invalid++ // not a letter cut off at the end of the head
		}
		b = b[n:]
	}
	if !nul && invalid*10 <= len(head) {
		return ""
	}
	switch {
	case bytes.HasPrefix(head, []byte("\x7fELF")):
		return "an ELF executable"
	case bytes.HasPrefix(head, []byte("MZ")):
		return "a Windows executable"
	case bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		return "a SQLite database"
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return "UTF-16 text"
	}
	typ, _, _ := strings.Cut(http.DetectContentType(head), ";")
	if strings.HasPrefix(typ, "text/") {
		typ = "application/octet-stream"
	}
	return typ
}

// lines reads a text line by line in constant memory: of long lines only the head is kept.
type lines struct {
	r    *bufio.Reader
	keep int // kept bytes of a line

	line []byte // without its line end; valid until the next call of next
	cut  bool   // the line was longer than keep
	crlf bool   // the line ended in CRLF
	open bool   // the text ended within this line
	err  error
}

func newLines(r io.Reader, keep int) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), keep: keep}
}

// next reads the next line, and returns false at the end.
func (l *lines) next() bool {
	l.line, l.cut, l.crlf, l.open = l.line[:0], false, false, false
	read := 0
	last := byte(0)
	for {
		piece, err := l.r.ReadSlice('\n')
		read += len(piece)
		if err == nil { // the line is complete
			piece = piece[:len(piece)-1]
			if len(piece) > 0 {
				last = piece[len(piece)-1]
			}
			l.crlf = last == '\r'
		} else if len(piece) > 0 {
			last = piece[len(piece)-1]
		}
		l.line = append(l.line, piece[:min(len(piece), l.keep-len(l.line))]...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			if err != io.EOF {
				l.err = err
				return false
			}
			l.open = true
		}
		break
	}
	if read == 0 {
		return false
	}
	length := read
	if !l.open {
		length--
	}
	if l.crlf {
		length--
	}
	if length > l.keep {
		l.cut = true
		length = l.keep
	}
	l.line = l.line[:length]
	return true
}

// headRunes returns the first n characters of s, with an ellipsis if there are more.
func headRunes(s string, n int) string {
	count := 0
	for i := range s {
		if count == n {
			return s[:i] + "…"
		}
		count++
	}
	return s
}

// tailRunes returns the last n characters of s.
func tailRunes(s string, n int) string {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return s[i:]
}

// valid replaces invalid UTF-8, which a model's API would refuse.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func bomLen(head []byte) int {
	if bytes.HasPrefix(head, bom) {
		return len(bom)
	}
	return 0
}
