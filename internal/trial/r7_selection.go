package trial

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// selectBytes is how many bytes of one recording may be played for the lines in between, so that the time for a recording is linear
	// in its length, not quadratic.
	selectBytes = 4 << 20
	// selectAlike is how many lines of a kind are cut at every byte: the first of a kind is often the first of all, and followed by
	// something else than the rest.
	selectAlike = 2
)

// selection says which lines of a recording are tested.
type selection struct {
	all   bool   // every byte of every line is cut at
	every []bool // these lines are cut at every byte
	some  []bool // these at their ends and inside; they are also repeated and moved
	kinds int
}

// selectionOf selects lines of a recording of the given size: all of a short one; of a long one, all bytes of the first lines of each
// kind of event and of the very last line, and as many of the others, evenly spread, as selectBytes allows.
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

// whole reports whether a line is cut at every byte. After the last line, at the end of the stream, this is always true.
func (s selection) whole(line int) bool { return s.all || line >= len(s.every) || s.every[line] }

// looked reports whether a line is tested at all.
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

// kindOf returns what events of one kind have in common: field names, value types, and the words that distinguish events.
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
