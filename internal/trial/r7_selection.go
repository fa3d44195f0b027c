package trial

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// selectBytes is how many bytes of one recording may be played for the lines between the kinds of events that it has: so the
	// time for a recording grows with its length, and not with the square.
	selectBytes = 4 << 20
	// selectAlike is how many lines of a kind are cut at every byte: the first of a kind is often the first of all, and is
	// followed by something else than the rest.
	selectAlike = 2
)

// selection says which lines of a recording are looked at.
type selection struct {
	all   bool   // every byte of every line is cut at
	every []bool // these lines are cut at every byte
	some  []bool // these at their borders and inside; they are told twice and moved, too
	kinds int
}

// selectionOf selects lines of a recording whose stream has so many bytes: all of a short one. Of a long one, the first lines of
// each kind of event and the last line of all count whole, and of the others as many, evenly spread, as selectBytes allows.
func selectionOf(lines []string, size int, full bool) selection {
	if full || size <= r7Long {
		return selection{all: true}
	}
	s := selection{every: make([]bool, len(lines)), some: make([]bool, len(lines))}
	seen := map[string]int{}
	for i, line := range lines {
		kind := kindOf(line)
		seen[kind]++
		s.every[i] = seen[kind] <= selectAlike || i == len(lines)-1
	}
	s.kinds = len(seen)
	step := max(1, (len(lines)*size+selectBytes-1)/selectBytes)
	for i := range lines {
		s.some[i] = s.every[i] || i%step == 0
	}
	return s
}

// whole reports whether a line is cut at every byte. What comes after the last line, the end of the stream, always is.
func (s selection) whole(line int) bool { return s.all || line >= len(s.every) || s.every[line] }

// looked reports whether it is looked at at all.
func (s selection) looked(line int) bool { return s.all || line >= len(s.some) || s.some[line] }

func (s selection) String() string {
	if s.all {
		return "cut at every byte"
	}
	count := func(of []bool) (n int) {
		for _, b := range of {
			if b {
				n++
			}
		}
		return n
	}
	every := count(s.every)
	return fmt.Sprintf("cut at every byte of %d lines, which have all %d kinds of events in them, and at the borders and inside of %d more, of %d",
		every, s.kinds, count(s.some)-every, len(s.every))
}

// kindOf returns what events of one kind have in common: the names of their fields, the types of the values, and the words by
// which events are told apart.
func kindOf(line string) string {
	var v any
	if json.Unmarshal([]byte(line), &v) != nil {
		return "no JSON"
	}
	var b strings.Builder
	shape(&b, "", v)
	return b.String()
}

func shape(b *strings.Builder, key string, v any) {
	switch v := v.(type) {
	case map[string]any:
		b.WriteByte('{')
		for _, k := range slices.Sorted(maps.Keys(v)) {
			b.WriteString(k + ":")
			shape(b, k, v[k])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		if len(v) > 0 {
			shape(b, "", v[0])
		}
		b.WriteByte(']')
	case string:
		switch key {
		case "type", "object", "role", "status", "finish_reason", "stop_reason", "name":
			b.WriteString(v)
		default:
			if v == "" {
				b.WriteString("empty")
			} else {
				b.WriteString("text")
			}
		}
		b.WriteByte(',')
	default:
		fmt.Fprintf(b, "%T,", v)
	}
}
