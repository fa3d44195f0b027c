// Package redact replaces keys and passwords in texts by placeholders such as [key OPENAI_API_KEY]: the values that it is given, and
// texts that have the well-known shape of a key. It is pure, and always gives the same result for the same text and keys.
//
// It knows a key as it is written, also inside JSON, and no other encoding of it. A key that was printed in parts is not found.
package redact

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Key is a value to replace, and the name for its placeholder.
type Key struct{ Name, Value string }

const (
	open  = "[key "
	close = "]"
)

// Keys replaces a set of keys and the well-known shapes. The zero Keys knows the shapes only; a nil *Keys replaces nothing. Its methods
// are safe for concurrent use.
type Keys struct {
	mu    sync.Mutex // protects known
	known []Key
	table atomic.Pointer[table] // of known; nil for none
}

// New returns a Keys with these keys.
func New(keys ...Key) *Keys {
	k := &Keys{}
	k.Add(keys...)
	return k
}

// Add adds keys. Of several names for a value, the first one stays. It ignores values that cannot be keys: those shorter than eight
// bytes, numbers, single words and JSON documents.
func (k *Keys) Add(keys ...Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := len(k.known)
	for _, x := range keys {
		x.Value = strings.TrimSpace(x.Value)
		if secret(x.Value) && !slices.ContainsFunc(k.known, func(o Key) bool { return o.Value == x.Value }) {
			k.known = append(k.known, x)
		}
	}
	if len(k.known) > before {
		k.table.Store(newTable(k.known, nil))
	}
}

// tables returns the patterns in the order in which they apply: the shape of a key must not hide the beginning of a known one.
func (k *Keys) tables() []*table {
	if own := k.table.Load(); own != nil {
		return []*table{own, shapeTable()}
	}
	return []*table{shapeTable()}
}

// Text returns the text with its keys replaced. JSON stays valid JSON.
func (k *Keys) Text(s string) string {
	if k == nil {
		return s
	}
	for _, t := range k.tables() {
		s, _ = t.replace(s, 0, true)
	}
	return s
}

// Mark returns the first of the placeholders that a text contains, "" if it has none.
func (k *Keys) Mark(s string) string {
	if k == nil || !strings.Contains(s, open) {
		return ""
	}
	for _, mark := range k.marks() {
		if strings.Contains(s, mark) {
			return mark
		}
	}
	return ""
}

func (k *Keys) marks() (all []string) {
	for _, t := range k.tables() {
		all = append(all, t.marks...)
	}
	return all
}

// Lost returns a placeholder that a new version of a file has where the old one has a key, or "". A writer that has only seen
// placeholders would destroy the key.
func (k *Keys) Lost(before, after string) string {
	if k.Mark(after) == "" {
		return ""
	}
	wasShown, isShown := k.Text(before), k.Text(after)
	for _, mark := range k.marks() {
		marksBefore, marksAfter := strings.Count(before, mark), strings.Count(after, mark)
		if marksAfter > marksBefore && strings.Count(isShown, mark)-marksAfter < strings.Count(wasShown, mark)-marksBefore {
			return mark
		}
	}
	return ""
}

// table finds keys by the two bytes with which they begin.
type table struct {
	pairs [1 << 16 / 64]uint64 // bits
	leads [256]bool            // first bytes
	at    map[uint16][]pattern
	marks []string // each placeholder once
}

// pattern is one key or shape.
type pattern struct {
	prefix, mark string
	shape        *shape // of the rest; nil for a key that ends with the prefix
}

// shapeTable finds the well-known shapes.
var shapeTable = sync.OnceValue(func() *table { return newTable(nil, shapes) })

func newTable(keys []Key, shapes []shape) *table {
	t := &table{at: map[uint16][]pattern{}}
	add := func(p pattern) {
		pair := uint16(p.prefix[0])<<8 | uint16(p.prefix[1])
		t.pairs[pair/64] |= 1 << (pair % 64)
		t.leads[p.prefix[0]] = true
		t.at[pair] = append(t.at[pair], p)
		if !slices.Contains(t.marks, p.mark) {
			t.marks = append(t.marks, p.mark)
		}
	}
	for _, k := range keys {
		forms := []string{k.Value}
		for _, form := range inJSON(k.Value) {
			if !slices.Contains(forms, form) {
				forms = append(forms, form)
			}
		}
		for _, form := range forms {
			add(pattern{prefix: form, mark: open + plainName(k.Name) + close})
		}
	}
	for i := range shapes {
		for _, prefix := range shapes[i].prefixes {
			add(pattern{prefix: prefix, mark: open + shapes[i].name + close, shape: &shapes[i]})
		}
	}
	return t
}

// inJSON returns a text as it is written inside a JSON string, with and without the escapes for HTML.
func inJSON(s string) []string {
	html, _ := json.Marshal(s) // a string can always be marshalled
	var plain strings.Builder
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // adds a line end
	return []string{string(html[1 : len(html)-1]), plain.String()[1 : plain.Len()-2]}
}

// plainName keeps what is harmless in every text: letters, digits and a few signs.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (word(byte(r)) || strings.ContainsRune(" ._/-", r)) {
			return r
		}
		return '_'
	}, name)
}

// replace replaces the keys in s from an offset on. Unless the text is final, it stops at what may be the beginning of a key, and rest
// is that offset; otherwise it is the length of s. Bytes before the offset are context only.
func (t *table) replace(s string, from int, final bool) (out string, rest int) {
	var b strings.Builder
	done := from
	for i := from; i < len(s); i++ {
		if i+1 == len(s) {
			if !final && t.leads[s[i]] {
				return b.String() + s[done:i], i
			}
			break
		}
		pair := uint16(s[i])<<8 | uint16(s[i+1])
		if t.pairs[pair/64]&(1<<(pair%64)) == 0 {
			continue
		}
		n, mark, open := t.longest(s, i, pair)
		if open && !final {
			return b.String() + s[done:i], i
		}
		if n > 0 {
			b.WriteString(s[done:i])
			b.WriteString(mark)
			done = i + n
			i = done - 1
		}
	}
	if done == 0 {
		return s, len(s)
	}
	b.WriteString(s[done:])
	return b.String(), len(s)
}

// longest returns the length and placeholder of the longest key at i, 0 if there is none. open means that more text could make a key,
// or a longer one.
func (t *table) longest(s string, i int, pair uint16) (n int, mark string, open bool) {
	for _, p := range t.at[pair] {
		tail := s[i:]
		m, unsure := 0, false
		switch {
		case len(tail) < len(p.prefix):
			unsure = strings.HasPrefix(p.prefix, tail) && starts(s, i, p.shape)
		case !strings.HasPrefix(tail, p.prefix):
		case p.shape == nil:
			m = len(p.prefix)
		case starts(s, i, p.shape):
			if m, unsure = p.shape.match(tail[len(p.prefix):]); m > 0 {
				m += len(p.prefix)
			}
		}
		open = open || unsure
		if m > n {
			n, mark = m, p.mark
		}
	}
	return n, mark, open
}
