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
	// keepRemembered is how many bytes of the newest versions are kept when the file of a plan's history is rewritten, and
	// growRemembered how many times larger it may grow before that. A plan of fifty workers has some ten kilobytes.
	keepRemembered = 512 << 10
	growRemembered = 4

	// maxMemory is the largest such file that is read, in bytes. No history is that long: see maxTodo.
	maxMemory = 64 << 20

	idSize = 16 // bytes

	// unread marks an unreadable file, which must not be overwritten.
	unread = -1

	// noText is the version of a missing file.
	noText = "-"
)

// Remember stores the histories of the project's plans in a directory, which it creates, so that all processes using it share the
// knowledge of [TodoFile.Heal], also after a restart. Without it each process knows only what it has seen. Call it before
// [Workspace.Todo]. The directory should belong to the user and be outside the project: anyone who can write there can add lines to a
// plan. It takes at most some megabytes per plan. If a history cannot be read or written, edits succeed without it. Errors are
// KindPermission, KindDisk and KindUsage (it is not a directory).
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

// memory is the file with the history of one plan. It is accessed under the lock between processes, and closed in between. It begins
// with a random id, followed by records: a header line and a text. It is not synced: a power cut only loses knowledge.
type memory struct {
	root *os.Root // nil if nothing is stored
	name string
	id   [idSize]byte // the first bytes of the file; another file has another id
	at   int64        // the position up to which the history has read the file; 0 without a file, or unread
}

// newMemory returns the memory of a plan, given its project's directory and its path there.
func newMemory(root *os.Root, project, plan string) *memory {
	name := VersionOf([]byte(project + "\n" + plan))
	return &memory{root: root, name: name[:32] + ".plan"}
}

// load adds records of other processes to a history.
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
		// The file was removed, and a process that knew less started a new one. Versions known only here stay in memory.
		h.unnumber()
	}
	for _, r := range records {
		if r.n > h.n {
			h.remember(r.text, r.own)
			h.n = r.n
		}
	}
	if m.at += size; m.at < fi.Size() {
		return f.Truncate(m.at) // a process was killed during a write
	}
	return nil
}

// save adds the versions after number since to the file.
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

// rewrite replaces the file by one with the newest versions.
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

// lose makes the next load read the file from its beginning.
func (m *memory) lose() { m.id, m.at = [idSize]byte{}, 0 }

// move transfers the history to another plan, and remove drops it. Otherwise the next plan of that name would count as a successor, and
// be remembered as another version.
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

// recorded returns the records of the versions after a number.
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

// parseRecords returns the complete records at the beginning of b, and their length.
func parseRecords(b []byte) (out []version, good int64) {
	for {
		line, rest, ok := bytes.Cut(b[good:], []byte("\n"))
		if !ok {
			return out, good
		}
		var r version
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
