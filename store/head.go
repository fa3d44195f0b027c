package store

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"

	"centurion"
)

// mark says how far a state has come.
type mark struct {
	seq   int64 // the newest journal row that was ever committed
	ticks int64 // commits without a journal row
}

// head is the small file beside the state that names its newest commit. SQLite takes a log that is missing, cut or
// damaged for one that ends earlier, and says nothing; the head says so. It is written after each commit and not synced:
// after a power cut it may name an older one, which is harmless. It is a help, so its errors are passed over.
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

// readHead returns what the head beside the state at path names, zero if it is missing or unreadable.
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
	return &head{f: f, now: readHead(path)}
}

// advance names a newer commit: its journal row, or the number of a change without one. A state that ends before a row is told by
// the row, whatever changes came before it.
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

// mark returns how far the state itself has come.
func (c *conn) mark() (m mark, err error) {
	h, err := c.host()
	if err != nil {
		return m, err
	}
	m.ticks = h.ticks
	err = c.row("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'journal'").Scan(&m.seq)
	return m, err
}

// errMissing says that a state ends before what the file beside it knows.
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
