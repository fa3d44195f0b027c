package sandbox

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"centurion/text"
)

// output keeps the head and the tail of a command's output, in a fixed amount of memory.
type output struct {
	head  []byte
	tail  []byte // a ring once it is full
	next  int    // next position in the ring
	half  int
	total int64
}

func newOutput(keep int) *output { return &output{half: max(keep/2, 1)} }

func (o *output) Write(b []byte) (int, error) {
	size := len(b)
	o.total += int64(size)
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
	for len(b) > 0 { // the ring is full: drop the oldest bytes
		n := copy(o.tail[o.next:], b)
		o.next = (o.next + n) % o.half
		b = b[n:]
	}
	return size, nil
}

// result returns the kept output as valid UTF-8, with a line in between about the omission, and the total size.
func (o *output) result() (string, int64) {
	tail := string(o.tail[o.next:]) + string(o.tail[:o.next])
	left := o.total - int64(len(o.head)) - int64(len(tail))
	if left == 0 {
		return strings.ToValidUTF8(string(o.head)+tail, "\uFFFD"), o.total
	}
	return omit(string(o.head), tail, left), o.total
}

// omit joins both ends of an output, with left missing bytes between them, as valid UTF-8. Partial letters at the edges are dropped,
// too.
func omit(head, tail string, left int64) string {
	whole := text.Whole(head)
	left += int64(len(head) - len(whole))
	for i := range utf8.UTFMax { // the rest of a letter without its start
		if i < len(tail) && utf8.RuneStart(tail[i]) {
			left += int64(i)
			tail = tail[i:]
			break
		}
	}
	said := fmt.Sprintf("… %d bytes left out …\n%s", left, tail)
	if whole != "" {
		said = strings.TrimSuffix(whole, "\n") + "\n" + said
	}
	return strings.ToValidUTF8(said, "\uFFFD")
}
