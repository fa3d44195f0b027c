package workspace

import (
	"bytes"
	"io"
	"os"
	"time"
)

const (
	// hold is how long a file that an edit replaced is looked at afterwards: an editor that had opened it before may
	// still write to it, where nobody else will ever read it. An editor opens and writes in one go, within milliseconds.
	hold = 2 * time.Second

	// maxHeld bounds the descriptors that are kept for it, per plan. The oldest is given up first.
	maxHeld = 64
)

// heldFile is an open file that no name leads to any more.
type heldFile struct {
	f    *os.File
	sum  string // version of the content that is known
	at   time.Time
	size int64
	mod  time.Time
}

// holdFile opens a file that is about to lose its name and whose content should have the version.
func holdFile(d *os.Root, name, sum string) *heldFile {
	f, err := d.Open(name)
	if err != nil {
		return nil // it cannot be looked at; the edit itself went well
	}
	// The size is not asked for now: a write of the last microseconds must differ from what is noted here.
	return &heldFile{f: f, sum: sum, at: time.Now(), size: -1}
}

// found is what somebody wrote into a file without a name.
type found struct {
	in   *heldFile
	text []byte
	sum  string
}

// look returns what has been written into held files and is complete, oldest first. A file whose time is over is closed,
// and so is one that its writer leaves incomplete.
func (t *TodoFile) look() []found {
	var out []found
	keep := t.held[:0]
	for _, h := range t.held {
		old := time.Since(h.at) > hold
		text, settled, err := h.read(old, t.hist.partial)
		sum := VersionOf(text)
		fresh := err == nil && text != nil && sum != h.sum && len(bytes.TrimSpace(text)) > 0
		switch {
		case fresh && settled:
			out = append(out, found{h, text, sum})
		case err != nil, old && !fresh, time.Since(h.at) > 2*hold:
			h.f.Close()
			continue
		}
		keep = append(keep, h)
	}
	clear(t.held[len(keep):])
	t.setHeld(keep)
	return out
}

// read returns the content if it may have changed since the last look, else nil, and whether its writer has come to rest.
func (h *heldFile) read(always bool, partial func([]byte) bool) (text []byte, settled bool, err error) {
	fi, err := h.f.Stat()
	if err != nil {
		return nil, false, err
	}
	if !always && fi.Size() == h.size && fi.ModTime().Equal(h.mod) {
		return nil, false, nil
	}
	text, err = io.ReadAll(io.NewSectionReader(h.f, 0, maxTodo))
	if err != nil {
		return nil, false, err
	}
	if VersionOf(text) == h.sum {
		h.size, h.mod = fi.Size(), fi.ModTime()
		return text, true, nil
	}
	wait := rest
	if partial(text) {
		wait = emptyRest
	}
	age := time.Since(fi.ModTime())
	return text, age >= wait || age < 0, nil
}

// late reports whether something was written into a held file that has not been taken in. An edit that is under way takes
// it in itself.
func (t *TodoFile) late() bool {
	select {
	case t.turn <- struct{}{}:
	default:
		return false
	}
	defer func() { <-t.turn }()
	return len(t.look()) > 0
}

// taken notes that what was found has been dealt with. The file stays under watch: its writer may go on.
func (f found) taken() {
	f.in.sum, f.in.at, f.in.size = f.sum, time.Now(), -1
}

// keep adds files to those that are looked at.
func (t *TodoFile) keep(more ...*heldFile) {
	all := t.held
	for _, h := range more {
		if h != nil {
			all = append(all, h)
		}
	}
	for len(all) > maxHeld {
		all[0].f.Close()
		all = all[1:]
	}
	t.setHeld(all)
}

func (t *TodoFile) setHeld(all []*heldFile) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = all
}

// release closes all of them.
func (t *TodoFile) release() {
	for _, h := range t.held {
		h.f.Close()
	}
	t.setHeld(nil)
}
