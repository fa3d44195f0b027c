package verify

import (
	"fmt"
	"strings"
)

// lacking says what a tree without the work lacks.
type lacking struct {
	stubbed  functions // do nothing
	reverted functions // do what they did before the work
	empty    []string  // new files without their content
	piece    string    // the file that lacks a piece
}

// functions are names of functions, by file.
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

// String is a clause that follows "when".
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
	add(l.stubbed.count, l.stubbed.names, "this function does nothing", "these functions do nothing")
	add(l.reverted.count, l.reverted.names, "this function does what it did before the work", "these functions do what they did before the work")
	add(len(l.empty), l.empty, "this file is empty", "these files are empty")
	return strings.Join(parts, "; ")
}

// heading is the text above the patch. It says how much one failure shows: all functions were changed at once.
func (l lacking) heading() string {
	switch l.stubbed.count + l.reverted.count + len(l.empty) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("Taken out so that %s.\n", l)
	}
	return fmt.Sprintf("Taken out so that %s.\nAll at once: which of them the check depends on was not tried.\n", l)
}
