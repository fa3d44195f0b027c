package verify

import (
	"fmt"
	"strings"
)

// lacking is what the work does not do in a tree that kept its signatures, or which piece of it is not there.
type lacking struct {
	idle  functions // do nothing
	old   functions // do what they did before the work
	empty []string  // files that are there and say nothing
	piece string    // the file that lacks a piece
}

// functions are names of functions by the file in which they stand.
type functions struct {
	names []string // "Allow (limit.go)"
	count int
}

// with adds functions of one file.
func (f functions) with(path string, names []string) functions {
	if len(names) == 0 {
		return f
	}
	return functions{append(f.names, fmt.Sprintf("%s (%s)", some(names, 3), path)), f.count + len(names)}
}

// String says what it is, to go on after "when".
func (l lacking) String() string {
	var parts []string
	add := func(n int, names []string, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, one+": "+names[0])
		case n > 1:
			parts = append(parts, many+": "+some(names, 4))
		}
	}
	add(l.idle.count, l.idle.names, "this function does nothing", "these functions do nothing")
	add(l.old.count, l.old.names, "this function does what it did before the work", "these functions do what they did before the work")
	add(len(l.empty), l.empty, "this file is empty", "these files are empty")
	return strings.Join(parts, "; ")
}

// heading stands above the patch that tells the same line by line. It says how much one red run shows: all were taken out at once.
func (l lacking) heading() string {
	switch l.idle.count + l.old.count + len(l.empty) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("Taken out so that %s.\n", l)
	}
	return fmt.Sprintf("Taken out so that %s.\nAll at once: which of them the check depends on was not tried.\n", l)
}
