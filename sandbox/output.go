package sandbox

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// output keeps the head and the tail of what a command prints, in memory that does not grow with it.
type output struct {
	mu    sync.Mutex
	head  []byte
	tail  []byte // a ring once it is full
	next  int    // where the ring goes on
	half  int
	total int64
}

func newOutput(keep int) *output { return &output{half: max(keep/2, 1)} }

// readFrom copies r until it ends or fails; both mean that there is no more to come.
func (o *output) readFrom(r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		o.write(buf[:n])
		if err != nil {
			return
		}
	}
}

func (o *output) write(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total += int64(len(b))
	if room := o.half - len(o.head); room > 0 {
		n := min(room, len(b))
		o.head = append(o.head, b[:n]...)
		b = b[n:]
	}
	if len(b) > o.half {
		b = b[len(b)-o.half:]
	}
	if room := o.half - len(o.tail); room > 0 && len(b) > 0 {
		n := min(room, len(b))
		o.tail = append(o.tail, b[:n]...)
		b = b[n:]
	}
	for len(b) > 0 { // the ring is full: the oldest bytes go
		n := copy(o.tail[o.next:], b)
		o.next = (o.next + n) % o.half
		b = b[n:]
	}
}

// result returns what is kept as valid UTF-8, with a line in between that tells what was left out, and the bytes printed
// in all.
func (o *output) result() (string, int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := string(o.tail[o.next:]) + string(o.tail[:o.next])
	left := o.total - int64(len(o.head)) - int64(len(tail))
	if left == 0 {
		return strings.ToValidUTF8(string(o.head)+tail, "\uFFFD"), o.total
	}
	return omit(string(o.head), tail, left), o.total
}

// omit puts together the two ends of an output of which left bytes between them are missing, as valid UTF-8. What is
// left of a letter at the edges goes as well.
func omit(head, tail string, left int64) string {
	whole := cutEnd(head)
	left += int64(len(head) - len(whole))
	for i := range utf8.UTFMax { // the rest of a letter whose start was left out
		if i < len(tail) && utf8.RuneStart(tail[i]) {
			left += int64(i)
			tail = tail[i:]
			break
		}
	}
	text := fmt.Sprintf("… %d bytes left out …\n%s", left, tail)
	if whole != "" {
		text = strings.TrimSuffix(whole, "\n") + "\n" + text
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// cutEnd leaves out a letter at the end of s that is not complete.
func cutEnd(s string) string {
	for i := len(s) - 1; i >= max(0, len(s)-utf8.UTFMax); i-- {
		if utf8.RuneStart(s[i]) {
			if !utf8.FullRuneInString(s[i:]) {
				return s[:i]
			}
			break
		}
	}
	return s
}
