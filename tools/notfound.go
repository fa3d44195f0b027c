package tools

import (
	"fmt"
	"regexp"
	"strings"

	"centurion"
)

// lineNumber matches the line numbers added by read.
var lineNumber = regexp.MustCompile(`(?m)^ *\d+\| ?`)

// notFound explains why a text is not in a file: it contains line numbers, only blanks differ, or otherwise the most similar lines.
func notFound(name, text, part string) error {
	where := fmt.Sprintf("oldString is not in %s: ", name)
	// Code is on separate lines, followed by the advice.
	shown := func(do, format string, at, n int, lines []string) error {
		return &centurion.Error{Op: "edit", Kind: centurion.KindUsage, Msg: where + fmt.Sprintf(format, lineRange(at+1, at+n)) + "\n" + quote(lines, at, n) + "\n" + do}
	}
	fail := func(hint, format string, args ...any) error {
		return &centurion.Error{Op: "edit", Kind: centurion.KindUsage, Hint: hint,
			Msg: where + fmt.Sprintf(format, args...)}
	}
	if text == "" {
		return fail("use write", "the file is empty")
	}
	if bare := lineNumber.ReplaceAllString(part, ""); bare != part && strings.Contains(text, bare) {
		return fail("leave out the numbers", "it contains the line numbers that read shows")
	}
	have := strings.Split(text, "\n")
	want := strings.Split(strings.Trim(part, "\n"), "\n")
	if i := sameButBlanks(have, want); i >= 0 {
		return shown("copy the spaces and tabs exactly", "it differs only in whitespace from %s:", i, len(want), have)
	}
	i, score := nearestLines(have, want)
	if score < 0.5 {
		return fail("read the file again, or check that you mean this file", "nothing in it is like %q", headRunes(strings.TrimSpace(want[0]), 60))
	}
	return shown("copy that text exactly, or read the file again", "the nearest text is in %s:", i, min(len(want), len(have)-i), have)
}

// lineRange names lines by their numbers.
func lineRange(from, to int) string {
	if from == to {
		return fmt.Sprintf("line %d", from)
	}
	return fmt.Sprintf("lines %d-%d", from, to)
}

// sameButBlanks returns the index of the lines that equal want except for blanks, or -1.
func sameButBlanks(have, want []string) int {
	squeezed := make([]string, len(want))
	letters := 0
	for j, w := range want {
		squeezed[j] = squeeze(w)
		letters += len(squeezed[j])
	}
	if letters == 0 {
		return -1
	}
next:
	for i := range len(have) - len(want) + 1 {
		for j, w := range squeezed {
			if squeeze(have[i+j]) != w {
				continue next
			}
		}
		return i
	}
	return -1
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }

// nearestLines returns the position of the lines most similar to want, and their similarity from 0 to 1. To limit its cost it compares
// only the first lines of want and of the file.
func nearestLines(have, want []string) (at int, score float64) {
	want = want[:min(len(want), 8)]
	sets := make([]map[[2]byte]bool, len(want))
	for j, w := range want {
		sets[j] = pairs(w)
	}
	haveSets := make([]map[[2]byte]bool, 0, len(have))
	for _, h := range have[:min(len(have), 20_000)] {
		haveSets = append(haveSets, pairs(h))
	}
	for i := range haveSets {
		sum, n := 0.0, 0
		for j, s := range sets {
			if len(s) == 0 {
				continue
			}
			n++
			if i+j < len(haveSets) {
				sum += alike(haveSets[i+j], s)
			}
		}
		if n > 0 && sum/float64(n) > score {
			at, score = i, sum/float64(n)
		}
	}
	return at, score
}

// alike is the share of common pairs of two lines.
func alike(a, b map[[2]byte]bool) float64 {
	common := 0
	for p := range b {
		if a[p] {
			common++
		}
	}
	return float64(2*common) / float64(len(a)+len(b))
}

// pairs is the set of adjacent bytes in a line, ignoring blanks and case.
func pairs(line string) map[[2]byte]bool {
	line = strings.ToLower(squeeze(line[:min(len(line), 300)]))
	if len(line) == 1 {
		return map[[2]byte]bool{{line[0]}: true}
	}
	set := make(map[[2]byte]bool, len(line))
	for i := range len(line) - 1 {
		set[[2]byte{line[i], line[i+1]}] = true
	}
	return set
}

// quote shows n lines with numbers, with literal tabs.
func quote(lines []string, at, n int) string {
	const most = 12
	var b strings.Builder
	for i := at; i < min(at+min(n, most), len(lines)); i++ {
		fmt.Fprintf(&b, "%6d| %s\n", i+1, headRunes(valid(lines[i]), 300))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
