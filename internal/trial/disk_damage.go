package trial

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"centurion"
)

// pageSize is that of every state file, in bytes.
const pageSize = 4096

// mutationKinds are the ways to damage a state. Each changes the files and describes the change, or returns "" if it does not fit.
var mutationKinds = []struct {
	name string
	do   func(r *rand.Rand, files map[string][]byte, name string) string
}{
	{"flip", func(r *rand.Rand, files map[string][]byte, name string) string {
		at, bit := r.IntN(len(files[name])), r.IntN(8)
		files[name][at] ^= 1 << bit
		return fmt.Sprintf("bit %d of byte %d", bit, at)
	}},
	{"cut", func(r *rand.Rand, files map[string][]byte, name string) string {
		at := r.IntN(len(files[name]))
		if r.IntN(2) == 0 {
			at -= at % pageSize
		}
		files[name] = files[name][:at]
		return fmt.Sprintf("after %d bytes", at)
	}},
	{"zero", func(r *rand.Rand, files map[string][]byte, name string) string {
		at, size := page(r, files[name]), min(pageSize, len(files[name]))
		clear(files[name][at : at+size])
		return fmt.Sprintf("the page at %d", at)
	}},
	{"garbage", func(r *rand.Rand, files map[string][]byte, name string) string {
		at := r.IntN(len(files[name]))
		part := files[name][at:min(at+1+r.IntN(600), len(files[name]))]
		for i := range part {
			part[i] = byte(r.Uint32())
		}
		return fmt.Sprintf("%d bytes at %d", len(part), at)
	}},
	{"swap", func(r *rand.Rand, files map[string][]byte, name string) string {
		a, b := page(r, files[name]), page(r, files[name])
		if a == b || len(files[name]) < 2*pageSize {
			return ""
		}
		x, y := files[name][a:a+pageSize], files[name][b:b+pageSize]
		old := slices.Clone(x)
		copy(x, y)
		copy(y, old)
		return fmt.Sprintf("the pages at %d and %d", a, b)
	}},
	{"old", func(r *rand.Rand, files map[string][]byte, name string) string { // a write that the disk has lost
		a, b := page(r, files[name]), page(r, files[name])
		if a == b || len(files[name]) < 2*pageSize {
			return ""
		}
		copy(files[name][a:a+pageSize], files[name][b:b+pageSize])
		return fmt.Sprintf("page at %d in the place of that at %d", b, a)
	}},
	{"gone", func(_ *rand.Rand, files map[string][]byte, name string) string {
		delete(files, name)
		return "the whole file"
	}},
}

// page returns the offset of a complete page in a file, or 0.
func page(r *rand.Rand, b []byte) int { return r.IntN(max(1, len(b)/pageSize)) * pageSize }

// mutate damages a copy of one of a state's files, and says which one and how.
func mutate(r *rand.Rand, files map[string][]byte) (name, what string) {
	for {
		name = []string{"", "", "-wal"}[r.IntN(3)]
		kind := mutationKinds[r.IntN(len(mutationKinds))]
		if kind.name == "gone" && r.IntN(8) > 0 { // there are only two ways to do it
			continue
		}
		files[name] = slices.Clone(files[name])
		if what := kind.do(r, files, name); what != "" {
			return name, fmt.Sprintf("%s centurion.db%s: %s", kind.name, name, what)
		}
	}
}

// firstDifference shows where two dumps differ.
func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d is %s and was %s", i, centurion.Clip(y[i], 300), centurion.Clip(x[i], 300))
		}
	}
	return fmt.Sprintf("%d lines, and there were %d", len(y), len(x))
}
