package store

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"

	"centurion"
)

// mark is the position of a state.
type mark struct {
	seq   int64 // the newest journal row ever committed
	ticks int64 // number of commits without a journal row
}

// head is the small file next to the state that names its newest commit. SQLite silently treats a missing, cut-off or damaged log as
// one that ends earlier; the head reveals that. It is written after each commit but not synced: after a power cut it may name an older
// commit, which is harmless. It is only an aid, so its errors are ignored.
type head struct {
	f   *os.File // nil if it cannot be opened
	now mark
}

const (
	headSuffix = "-head"
	headMagic  = "CENTHEAD"
	headSize   = len(headMagic) + 8 + 8 + 4 // magic, seq, ticks, checksum
)

func isMissing(path string) bool {
	_, err := os.Lstat(path)
	return os.IsNotExist(err)
}

// readHead returns the position in the head file of the state at path, zero if it is missing or unreadable.
func readHead(path string) mark {
	b, err := os.ReadFile(path + headSuffix)
	if err != nil || len(b) != headSize || string(b[:8]) != headMagic ||
		binary.LittleEndian.Uint32(b[24:]) != crc32.Checksum(b[:24], castagnoli) {
		return mark{}
	}
	return mark{seq: int64(binary.LittleEndian.Uint64(b[8:])), ticks: int64(binary.LittleEndian.Uint64(b[16:]))}
}

func openHead(path string) *head {
	f, err := os.OpenFile(path+headSuffix, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return &head{}
	}
	if info, err := f.Stat(); err == nil && info.Size() > int64(headSize) { // writing over its beginning would never make it valid
		_ = f.Truncate(int64(headSize))
	}
	return &head{f: f, now: readHead(path)}
}

// advance records a newer commit: its journal row, or the number of a change without one. A state that ends before a row is recognised
// by the row, regardless of other changes.
func (h *head) advance(seq, ticks int64) {
	if h.f == nil || seq == 0 && ticks == 0 {
		return
	}
	h.now = mark{seq: cmp.Or(seq, h.now.seq), ticks: ticks}
	_, _ = h.f.WriteAt(h.now.encode(), 0)
}

func (m mark) encode() []byte {
	b := make([]byte, 0, headSize)
	b = append(b, headMagic...)
	b = binary.LittleEndian.AppendUint64(b, uint64(m.seq))
	b = binary.LittleEndian.AppendUint64(b, uint64(m.ticks))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func (h *head) close() {
	if h != nil && h.f != nil {
		_ = h.f.Close()
	}
}

// mark returns the position of the state itself.
func (c *conn) mark() (m mark, err error) {
	h, err := c.host()
	if err != nil {
		return m, err
	}
	m.ticks = h.ticks
	m.seq, err = c.number(journalSeq)
	return m, err
}

// errMissing is the error for a state that ends before the position in its head file.
func errMissing(path string, known, have mark) error {
	e := &centurion.Error{Op: "open state", Kind: centurion.KindState, Hint: hintDoctor}
	switch {
	case known.seq > have.seq:
		e.Msg = fmt.Sprintf("%s: %d events are missing: the newest committed is %d, the newest there is %d; the file or its log (-wal) was lost or replaced",
			path, known.seq-have.seq, known.seq, have.seq)
	default:
		e.Msg = fmt.Sprintf("%s: the last %d changes are missing: the file or its log (-wal) was lost or replaced", path, known.ticks-have.ticks)
	}
	return e
}
