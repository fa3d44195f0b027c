package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"centurion"
	"centurion/text"
)

// DefaultSpool is how many bytes of a background command's output a [Spool] stores on disk: enough for the log of a long build, and
// little compared to a build's own files.
const DefaultSpool = 1 << 20

// Spool stores a background command's output in a file: the first half of the capacity from the beginning, the rest from the end. It
// keeps none of it in memory. Its methods are safe for concurrent use.
//
// The output byte at offset n is at n in the first half of the file, and after that in a ring that is the second half.
type Spool struct {
	mu    sync.Mutex
	file  *os.File
	half  int64
	total int64 // bytes printed
	upto  int64 // written bytes; less than total only after an error
	tried int64 // end of the last attempted write: the ring bytes it overwrites are not shown any more
	err   error // the first error of the file; nothing is written after it
	whole bool  // there is no further output
}

// NewSpool creates a new file for up to limit bytes; 0 means [DefaultSpool]. Only this user can access it. Errors have KindDisk.
func NewSpool(path string, limit int) (*Spool, error) {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	var f *os.File
	if err == nil {
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		return nil, &centurion.Error{Op: "keep output", Kind: centurion.KindDisk, Err: err,
			Msg: "cannot write the output", Hint: "free disk space or fix " + filepath.Dir(path)}
	}
	return &Spool{file: f, half: int64(max(cmp.Or(limit, DefaultSpool)/2, 1))}, nil
}

// Write stores b. It never fails and is never short: unstored bytes are counted, and reported by Since.
func (s *Spool) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.total
	s.total += int64(len(b))
	if s.err != nil {
		return len(b), nil
	}
	s.tried = s.total
	if s.err = s.put(from, b); s.err == nil {
		s.upto = s.total
	}
	return len(b), nil
}

// put writes b, which is at offset at of the output.
func (s *Spool) put(at int64, b []byte) error {
	n := len(b)
	if at < s.half {
		n = min(n, int(s.half-at))
		if _, err := s.file.WriteAt(b[:n], at); err != nil {
			return err
		}
		at, b = at+int64(n), b[n:]
	}
	if skip := int64(len(b)) - s.half; skip > 0 { // its beginning would be overwritten by its end
		at, b = at+skip, b[skip:]
	}
	for len(b) > 0 {
		pos := (at - s.half) % s.half
		n = min(len(b), int(s.half-pos))
		if _, err := s.file.WriteAt(b[:n], s.half+pos); err != nil {
			return err
		}
		at, b = at+int64(n), b[n:]
	}
	return nil
}

// End marks the end of the output.
func (s *Spool) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole = true
}

// Total returns the size of the output so far.
func (s *Spool) Total() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Since returns the output from offset on as valid UTF-8 of about keep bytes, head and tail, with a line about the omission, and the
// next offset. An incomplete letter at the end is left for the next call. The text notes unreadable or unwritten parts.
func (s *Spool) Since(offset int64, keep int) (said string, next int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	part := int64(max(keep/2, 1))
	offset = min(max(offset, 0), s.upto)
	next = s.upto
	oldest := max(s.half, s.tried-s.half) // in the ring
	var first, rest int64                 // the end of the head and the beginning of the tail
	switch {
	case oldest == s.half || offset >= oldest || s.upto <= s.half: // all new output is stored
		first, rest = min(offset+part, s.upto), max(offset, s.upto-part)
		if rest <= first {
			first, rest = s.upto, s.upto
		}
	case offset < s.half:
		first, rest = min(offset+part, s.half), min(max(s.upto-part, oldest), s.upto)
	default: // the beginning of the new output is lost
		first, rest = offset, min(max(s.upto-2*part, oldest), s.upto)
	}
	head, herr := s.get(offset, first)
	tail, terr := s.get(rest, s.upto)
	last := &head
	if rest < s.upto {
		last = &tail
	}
	if cut := text.Whole(*last); !s.whole && s.err == nil {
		next -= int64(len(*last) - len(cut))
		*last = cut
	}
	said = strings.ToValidUTF8(head, "\uFFFD")
	if left := rest - first; left > 0 {
		said = omit(head, tail, left)
	}
	if err := errors.Join(s.err, herr, terr); err != nil {
		said += fmt.Sprintf("\n… the rest could not be kept: %v …", err)
	}
	return said, next
}

// get reads the output between two offsets.
func (s *Spool) get(from, to int64) (string, error) {
	buf := make([]byte, 0, max(to-from, 0))
	for from < to {
		pos, n := from, min(to, s.half)-from
		if from >= s.half {
			ring := (from - s.half) % s.half
			pos, n = s.half+ring, min(to-from, s.half-ring)
		}
		at := len(buf)
		buf = buf[:at+int(n)]
		if got, err := s.file.ReadAt(buf[at:], pos); err != nil && (err != io.EOF || got < int(n)) {
			return string(buf[:at+got]), err
		}
		from += n
	}
	return string(buf), nil
}

// Remove closes the file and deletes it.
func (s *Spool) Remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}
