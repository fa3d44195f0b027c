package workspace

import (
	"bytes"
	"io"
	"os"
	"slices"
	"time"

	"centurion/workspace/todo"
)

const (
	// hold is how long a file is watched after an edit has replaced it: an editor that opened it before may still write to it, unnoticed
	// otherwise. Editors open and write within milliseconds.
	hold = 2 * time.Second

	// maxHeld limits the descriptors held for that, per plan. Fifty agents that edit at once make some hundred edits within the time
	// that an editor on a busy machine takes for one save.
	maxHeld = 256
)

// heldFile is an open file without a name.
type heldFile struct {
	f    *os.File
	sum  string // version of the known content
	at   time.Time
	size int64
	mod  time.Time

	written bool // to, and not taken in yet
}

// holdFile opens a file that is about to lose its name and whose content should have the version.
func holdFile(d *os.Root, name, sum string) *heldFile {
	f, err := d.Open(name)
	if err != nil {
		return nil // it cannot be watched; the edit itself succeeded
	}
	// The size is not read now: a write in the last microseconds must differ from what is noted here.
	return &heldFile{f: f, sum: sum, at: time.Now(), size: -1}
}

// found is text written into a file without a name.
type found struct {
	in   *heldFile
	text []byte
	sum  string
}

// look returns complete texts written into held files, oldest first. It closes files after their time, and those left incomplete by
// their writer.
func (t *TodoFile) look() []found {
	var out []found
	keep := t.held[:0]
	for _, h := range t.held {
		old := time.Since(h.at) > hold
		text, settled, err := h.read(old, t.hist.partial)
		sum := VersionOf(text)
		h.written = err == nil && text != nil && sum != h.sum
		fresh := h.written && len(bytes.TrimSpace(text)) > 0
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

// read returns the content if it may have changed since the last look, otherwise nil. settled reports whether its writer has finished.
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

// late reports whether text written into a held file was not taken in yet. A running edit takes it in itself.
func (t *TodoFile) late() bool {
	select {
	case t.turn <- struct{}{}:
	default:
		return false
	}
	defer func() { <-t.turn }()
	return len(t.look()) > 0
}

// taken records that the found text was handled. The file stays under watch: its writer may continue.
func (f found) taken() {
	f.in.sum, f.in.at, f.in.size, f.in.written = f.sum, time.Now(), -1, false
}

// keep adds files to the watched ones. If there are too many, the oldest is closed, but one that is being written to only last.
func (t *TodoFile) keep(more ...*heldFile) {
	all := t.held
	for _, h := range more {
		if h != nil {
			all = append(all, h)
		}
	}
	for len(all) > maxHeld {
		i := max(0, slices.IndexFunc(all, func(h *heldFile) bool { return !h.written }))
		all[i].f.Close()
		all = slices.Delete(all, i, i+1)
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

// maxForeign limits the stored foreign changes; the oldest are dropped. A person saves a few times per minute, and each is fetched
// within a second.
const maxForeign = 64

// Foreign is a change of a plan made by a person's editor or a command instead of an edit of Centurion: from the version that its
// writer had read, as far as known, to the result. Edits made meanwhile are in neither.
type Foreign struct{ From, To *todo.Doc }

// Foreign returns, oldest first and each once, the foreign changes that edits and [TodoFile.Heal] of this process have found since its
// last call. The first known text does not count as a change, nor does a missing or empty file: the next text is compared with the one
// before that. Changes found first by another process are not included.
func (t *TodoFile) Foreign() []Foreign {
	t.mu.Lock()
	defer t.mu.Unlock()
	met := t.met
	t.met = nil
	return met
}

func (t *TodoFile) meet(changes []Foreign) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.met = append(t.met, changes...)
	t.met = t.met[max(0, len(t.met)-maxForeign):]
}
