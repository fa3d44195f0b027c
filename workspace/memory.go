package workspace

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"centurion"
)

const (
	// keepRemembered is how many bytes of the newest versions are kept when the file of a plan's history is written anew,
	// and growRemembered how many times that it may grow to before. A plan of fifty workers has some ten kilobytes.
	keepRemembered = 512 << 10
	growRemembered = 4

	// maxMemory is the size in bytes up to which such a file is read. No history is that long: see maxTodo.
	maxMemory = 64 << 20

	idSize = 16 // bytes

	// unread is the place in a file that could not be read: what is in it must not be replaced.
	unread = -1

	// noText stands for the version of a missing file.
	noText = "-"
)

// Remember has the histories of the project's plans kept in a directory, which it makes, so that what [TodoFile.Heal]
// knows is known to every process that calls Remember with the same directory, and after a restart. Without it each
// process knows what it has seen itself. Call it before [Workspace.Todo]. The directory should be the user's own and not
// in the project: who can write there can have lines put into a plan. It takes some megabytes for a plan at most. A
// history that cannot be read or written costs no edit: it is done without then. Errors are KindPermission, KindDisk and
// KindUsage (it is not a directory).
func (w *Workspace) Remember(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	if err != nil {
		return memoryError(dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return memoryError(dir, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.memory != nil {
		w.memory.Close()
	}
	w.memory = root
	return nil
}

func memoryError(dir string, err error) error {
	return &centurion.Error{Op: "keep histories", Kind: kindOf(err), Msg: "directory " + dir, Err: cause(err),
		Hint: "check the path and its permissions"}
}

// memory is the file that holds the history of one plan. It is read and written with the lock between processes held, and
// closed in between. It begins with a random id; then come records, each a line that says what follows, and a text. It is
// not synced: what a power cut takes from it is only known no more.
type memory struct {
	root *os.Root // nil if nothing is kept
	name string
	id   [idSize]byte // that the file begins with: another file has another
	at   int64        // up to where the history holds what is in the file; 0 if there is no file, or unread
}

// newMemory returns the memory of a plan, given its project's directory and its path in it.
func newMemory(root *os.Root, project, plan string) *memory {
	name := VersionOf([]byte(project + "\n" + plan))
	return &memory{root: root, name: name[:32] + ".plan"}
}

// record is one version in the file.
type record struct {
	n    uint64
	own  bool
	text []byte
}

// load adds to a history what other processes have added to the file.
func (m *memory) load(h *history) {
	if m.root == nil {
		return
	}
	switch err := m.read(h); {
	case errors.Is(err, fs.ErrNotExist):
		m.lose()
	case err != nil:
		m.at = unread
	}
}

func (m *memory) read(h *history) (err error) {
	f, err := m.root.OpenFile(m.name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	var id [idSize]byte
	switch _, err := f.ReadAt(id[:], 0); {
	case errors.Is(err, io.EOF):
		m.lose() // it was emptied
		return nil
	case err != nil:
		return err
	}
	anew := m.at <= 0 || id != m.id || fi.Size() < m.at
	if anew {
		m.id, m.at = id, idSize
	}
	b, err := io.ReadAll(io.NewSectionReader(f, m.at, maxMemory))
	if err != nil {
		return err
	}
	records, size := parseRecords(b)
	if anew && len(records) > 0 && records[len(records)-1].n < h.n {
		// Somebody took the file away, and a process that knew less began it. What only this one knows stays in memory.
		h.unnumber()
	}
	for _, r := range records {
		if r.n > h.n {
			h.remember(r.text, r.own)
			h.n = r.n
		}
	}
	if m.at += size; m.at < fi.Size() {
		return f.Truncate(m.at) // a process was killed while it wrote
	}
	return nil
}

// save adds the versions behind number since to the file.
func (m *memory) save(h *history, since uint64) {
	if m.root == nil || m.at == unread || h.n == since {
		return
	}
	if err := m.write(h, since); err != nil {
		m.lose()
	}
}

func (m *memory) write(h *history, since uint64) error {
	newest := 0
	for _, v := range h.list[max(0, len(h.list)-2):] {
		newest += len(v.text)
	}
	if m.at == 0 || m.at > int64(growRemembered*max(keepRemembered, newest)) {
		return m.rewrite(h)
	}
	f, err := m.root.OpenFile(m.name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	n, err := f.WriteAt(recorded(h.list, since), m.at)
	m.at += int64(n)
	return errors.Join(err, f.Close())
}

// rewrite replaces the file by one that holds the newest versions.
func (m *memory) rewrite(h *history) error {
	since, size := h.n, 0
	for i, v := range slices.Backward(h.list) {
		if size += len(v.text); size > keepRemembered && i < len(h.list)-2 {
			break
		}
		since = min(since, max(v.n, 1)-1)
	}
	copy(m.id[:], rand.Text())
	text := append(m.id[:], recorded(h.list, since)...)
	next := m.name + ".new"
	if err := m.root.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	m.at = int64(len(text))
	return m.root.Rename(next, m.name)
}

// lose makes the next one read the file from its beginning.
func (m *memory) lose() { m.id, m.at = [idSize]byte{}, 0 }

// move gives the history to another plan, and remove drops it. If it stays, the plan that gets the name next is one that
// comes after it: another plan, which is remembered as that.
func (m *memory) move(to *memory) {
	if m.root != nil {
		_ = m.root.Rename(m.name, to.name)
		m.lose()
	}
}

func (m *memory) remove() {
	if m.root != nil {
		_ = m.root.Remove(m.name)
		m.lose()
	}
}

// recorded returns the records of the versions behind a number.
func recorded(list []version, since uint64) []byte {
	var b bytes.Buffer
	for _, v := range list {
		if v.n > since {
			v.appendTo(&b)
		}
	}
	return b.Bytes()
}

func (v version) appendTo(b *bytes.Buffer) {
	sum, how := v.sum, "met"
	if sum == "" {
		sum = noText
	}
	if v.own {
		how = "own"
	}
	fmt.Fprintf(b, "%d %s %s %d\n", v.n, how, sum, len(v.text))
	b.Write(v.text)
	b.WriteByte('\n')
}

// parseRecords returns the records at the beginning of b that are whole, and their length.
func parseRecords(b []byte) (out []record, good int64) {
	for {
		line, rest, ok := bytes.Cut(b[good:], []byte("\n"))
		if !ok {
			return out, good
		}
		var r record
		var how, sum string
		var size int
		if n, err := fmt.Sscanf(string(line), "%d %s %s %d", &r.n, &how, &sum, &size); n < 4 || err != nil ||
			size < 0 || size >= len(rest) || rest[size] != '\n' {
			return out, good
		}
		if r.own = how == "own"; sum != noText {
			if r.text = rest[:size:size]; VersionOf(r.text) != strings.ToLower(sum) {
				return out, good
			}
		}
		out = append(out, r)
		good += int64(len(line) + 1 + size + 1)
	}
}
