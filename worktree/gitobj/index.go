package gitobj

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
)

// This file reads and writes git's index: its format is stable, and a process to do it costs more than most indexes do.

// indexStat is how many bytes of an entry come before the object's name; its mode is at indexMode.
const indexStat, indexMode = 40, 24

// NewIndex makes an index with these entries, whose files git does not know.
func NewIndex(entries map[string]Entry) []byte {
	var b bytes.Buffer
	size := 20
	b.WriteString("DIRC")
	b.Write(binary.BigEndian.AppendUint32(nil, 2)) // the version
	b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(entries))))
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e := entries[name]
		mode, _ := strconv.ParseUint(e.Mode, 8, 32) // of a tree of git
		id, _ := hex.DecodeString(e.ID)
		size = len(id)
		var head [indexStat]byte
		binary.BigEndian.PutUint32(head[indexMode:], uint32(mode))
		b.Write(head[:])
		b.Write(id)
		b.Write(binary.BigEndian.AppendUint16(nil, uint16(min(len(name), 0xfff))))
		b.WriteString(name)
		n := indexStat + len(id) + 2 + len(name)
		b.Write(make([]byte, 8-n%8)) // one NUL at least
	}
	if size == sha256.Size {
		sum := sha256.Sum256(b.Bytes())
		return append(b.Bytes(), sum[:]...)
	}
	sum := sha1.Sum(b.Bytes())
	return append(b.Bytes(), sum[:]...)
}

// EachIndexed yields the entries of an index whose objects' names have so many bytes. ok is false if it cannot be read.
func EachIndexed(data []byte, oid int, yield func(name string, e Entry)) (ok bool) {
	if len(data) < 12 || string(data[:4]) != "DIRC" {
		return false
	}
	version, entries := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	name := []byte{}
	for at := 12; entries > 0; entries-- {
		p := at + indexStat + oid + 2
		if p+2 > len(data) {
			return false
		}
		if version >= 3 && data[p-2]&0x40 != 0 {
			p += 2
		}
		if version == 4 {
			strip, n := offset(data[p:])
			if p += n; n == 0 || strip > len(name) {
				return false
			}
			name = name[:len(name)-strip]
		} else {
			name = name[:0]
		}
		end := bytes.IndexByte(data[min(p, len(data)):], 0)
		if end < 0 {
			return false
		}
		name = append(name, data[p:p+end]...)
		mode := strconv.FormatUint(uint64(binary.BigEndian.Uint32(data[at+indexMode:])), 8)
		yield(string(name), Entry{mode, hex.EncodeToString(data[at+indexStat : at+indexStat+oid])})
		if version == 4 {
			at = p + end + 1
		} else {
			at += (p - at + end + 8) &^ 7
		}
	}
	return true
}

// offset decodes git's numbers of variable length; n is 0 if there is none.
func offset(data []byte) (value, n int) {
	for n < len(data) && n < 4 {
		c := data[n]
		if n++; n > 1 {
			value++
		}
		value = value<<7 | int(c&0x7f)
		if c&0x80 == 0 {
			return value, n
		}
	}
	return 0, 0
}
